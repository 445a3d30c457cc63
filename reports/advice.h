/** What would make a layout fit that does not: single changes, tried with the cost model. */
#ifndef ND_REPORTS_ADVICE_H
#define ND_REPORTS_ADVICE_H

#include "cost_model/estimate.h"
#include "frameworks/framework.h"

ND_BEGIN_DECLS

enum { ND_ADVICE_MAX = 8 };

/** One change and what it leads to. */
typedef struct nd_advice {
    char change[64]; /* as one types it: "--optimizer adamw-8bit", "--pin offload=params", "4 nodes" */
    nd_memory_breakdown memory;
} nd_advice;

/** Try the changes one by one on `layout`, which does not fit.
 * \param[out] out  at most ND_ADVICE_MAX, those that fit or are borderline, in the order of the least disturbance
 * \return how many; 0 when no single change suffices */
int32_t nd_advice_find(const nd_cost_context *cost, const nd_framework *framework, const nd_layout *layout,
                       nd_advice out[ND_ADVICE_MAX]);

ND_END_DECLS

#endif
