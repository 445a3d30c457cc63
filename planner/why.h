/** Why a layout is not in the list, or not first in it: one of three answers with its evidence.
 *
 * Not legal: every rule that it breaks, and the nearest layout that breaks none. Does not fit (or only just): the term
 * of memory, which degree divides it, and the smallest change that makes it fit. Fits: its place in the ranking of a
 * search with the same inputs, and the terms of the step time by which it loses to the first (or wins over the next).
 */
#ifndef ND_PLANNER_WHY_H
#define ND_PLANNER_WHY_H

#include "planner/comparison.h"
#include "planner/divisions.h"
#include "planner/fixes.h"
#include "planner/plan.h"
#include "planner/repair.h"

ND_BEGIN_DECLS

typedef enum nd_why_answer {
    ND_WHY_ILLEGAL,
    ND_WHY_UNFIT,      /* the GPU's memory does not suffice */
    ND_WHY_HOST_UNFIT, /* it fits the GPUs, but the nodes lack host memory while training */
    ND_WHY_BORDERLINE,
    ND_WHY_NOT_FIRST,
    ND_WHY_FIRST
} nd_why_answer;

/** "illegal", "unfit", "host_unfit", "borderline", "not_first", "first": the words of JSON. */
const char *nd_why_answer_name(nd_why_answer answer);

/** Where the layout stands among what a search finds. */
typedef struct nd_why_place {
    int32_t rank;     /* from 1: meshes whose best layout comes before this one, plus 1 */
    int32_t meshes;   /* that fit, this layout's own included */
    bool at_least;    /* there may be more meshes than the search lists: `meshes` is a lower bound, and so is a rank
                       * that is the last of them */
    bool has_variant; /* another variant of the same mesh is better: */
    nd_plan variant;
    bool has_other; /* the first plan, or the next mesh when this layout is the first: */
    nd_plan other;
    int64_t searched; /* layouts */
    int64_t fitting;
} nd_why_place;

typedef struct nd_why {
    nd_why_answer answer;
    nd_layout layout;

    nd_repair repair; /* ND_WHY_ILLEGAL, else repair.count is 0 */
    bool has_legal;   /* no chain of nearest values led to a legal layout, but the search knows one: */
    nd_plan legal;    /* the legal layout that differs least */

    nd_estimate estimate; /* from here on: unset when not legal */
    nd_divisions divisions;
    double host_memory_bytes;  /* of a node; 0: unknown */
    bool has_likely, has_sure; /* smallest change after which it is expected to fit, and surely fits */
    nd_fix likely, sure;
    bool has_search_fit; /* no small change of layout or software helps, but these GPUs can train it: */
    nd_plan search_fit;  /* the search's first plan */

    nd_why_place place; /* when it fits and nothing else was named to compare with; rank 0: not looked for */
    bool has_comparison;
    nd_comparison comparison; /* with place.other, or with the layout that was named */
} nd_why;

/** What to compare with instead of the search's first plan. */
typedef struct nd_why_against {
    const nd_cost_context *context; /* may differ from the other one in the global batch only */
    const nd_layout *layout;        /* passed nd_layout_allowed() */
} nd_why_against;

/** Answer for `layout`, legal or not.
 *
 * \param[in]  framework may be NULL
 * \param[in]  given     bit (1u << nd_layout_key) of what the user wrote
 * \param[in]  against   may be NULL: the search's first plan
 * \return ND_ENOMEM
 */
nd_status nd_why_layout(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                        uint32_t given, const nd_why_against *against, nd_why *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
