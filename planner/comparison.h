/** Two layouts of one model on one cluster, term by term of their step times. */
#ifndef ND_PLANNER_COMPARISON_H
#define ND_PLANNER_COMPARISON_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

enum { ND_GAP_TERMS_MAX = 20 };

/** One term of the step time that has no parts. */
typedef struct nd_gap_term {
    const char *key; /* as in nd_time_breakdown and JSON ("exposed_dp_s"); static storage */
    double slower_s; /* in the slower layout */
    double faster_s;
    double lost_s;      /* the difference; negative where the slower one is ahead */
    double factor_frac; /* by what the step grows when this term changes after those before it; their product is the
                         * ratio of the two steps */
} nd_gap_term;

typedef struct nd_comparison_side {
    nd_layout layout;
    nd_estimate estimate;
    nd_comm_breakdown comm;
    double step_s;  /* for the tokens of the asked layout's step */
    bool was_asked; /* this is the layout that the question is about */
} nd_comparison_side;

typedef struct nd_comparison {
    nd_comparison_side slower, faster;
    double lost_s; /* slower.step_s - faster.step_s, >= 0 */
    int32_t count;
    nd_gap_term terms[ND_GAP_TERMS_MAX]; /* largest loss first; lost_s adds up to the gap */
    int32_t explaining;                  /* so many of them explain 90 % of the gap; 0: there is no gap */
    bool within_uncertainty;             /* the slower one's 80 % interval holds the faster one's step */
    double batch_factor; /* sequences of the asked layout's step / of the other's: 1 unless they differ */
} nd_comparison;

/** Compare `asked` with `other`; either may be the slower one.
 * \param[in] context, other_context  may differ in the global batch only */
void nd_compare_layouts(const nd_cost_context *context, const nd_layout *asked, const nd_cost_context *other_context,
                        const nd_layout *other, nd_comparison *out);

/** The collective of `comm` that makes up most of an exposed term ("exposed_tp_s", ...), or NULL. */
const nd_comm_line *nd_comm_largest_of(const nd_comm_breakdown *comm, const char *key);

ND_END_DECLS

#endif
