/** The plans that no other one beats in step time, peak memory and GPUs together. */
#ifndef ND_PLANNER_PARETO_H
#define ND_PLANNER_PARETO_H

#include "planner/plan.h"

ND_BEGIN_DECLS

/** Keep the front of `plans`, fastest first; the order is total, the same on every run.
 *
 * A front of more than `limit` points is thinned: what goes is at most a factor 1 + f better, in each of the three,
 * than a point that stays, with the smallest f of 0.01, 0.0125, 0.0156, ... that suffices. \param[in,out] plans
 * `*count` entries; on return the first `*count` are those kept, at most `limit` \param[in]     limit  >= 1 \param[out]
 * coarseness_frac  f, 0 when the whole front is kept \return ND_OK or ND_ENOMEM, which leaves the plans in another
 * order */
nd_status nd_pareto_front(nd_plan *plans, int32_t *count, int32_t limit, double *coarseness_frac,
                          nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
