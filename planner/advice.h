/** What to change where no layout fits. The degrees and modes are not the question then: a search has tried them all.
 * So each other change is made and followed by a search of its own, and where no single one suffices, two of them.
 */
#ifndef ND_PLANNER_ADVICE_H
#define ND_PLANNER_ADVICE_H

#include "planner/fixes.h"
#include "planner/search.h"

ND_BEGIN_DECLS

enum { ND_ADVICE_MAX = 12 };

typedef struct nd_advice {
    nd_fix fixes[ND_ADVICE_MAX]; /* what disturbs least first; fix.layout_keys says how the layout differs from the
                                  * closest one, empty where that fits as it is */
    int32_t count;               /* 0: neither one change nor two suffice */
    bool pairs;                  /* each is of two changes */
} nd_advice;

/** Optimizer, loss, offload, more nodes, half the sequence, LoRA, QLoRA.
 *
 * With each change the closest layout stays as it is where it fits then, else it is the fastest that a search finds,
 * one that surely fits before a borderline one. A change counts when the peak is expected to fit and the host suffices.
 * Searches end when those without success have seen 2 million layouts.
 *
 * \param[in]  framework may be NULL
 * \param[in]  options   of the search that found nothing: its pins hold; NULL: none
 * \param[in]  closest   the search's closest layout
 * \return ND_ENOMEM
 */
nd_status nd_advice_find(const nd_cost_context *context, const nd_framework *framework,
                         const nd_search_options *options, const nd_layout *closest, nd_advice *out,
                         nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
