/** Hard rules: what no software could run. Each has an id, the numbers, and the nearest legal value. */
#ifndef ND_PLANNER_CONSTRAINTS_H
#define ND_PLANNER_CONSTRAINTS_H

#include "cost_model/estimate.h"
#include "frameworks/framework.h"

ND_BEGIN_DECLS

/** Check a layout against model, cluster, training and stack (framework may be NULL).
 *
 * \param[out] rule    static id of the first rule that it breaks ("tp-divides-heads"), may be NULL
 * \param[out] refusal the words and the nearest legal value, may be NULL (then nothing is formatted)
 * \return true when legal.
 */
bool nd_layout_allowed(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                       const char **rule, nd_refusal *refusal);

ND_END_DECLS

#endif
