/** Step time in closed form. Private building block of the estimate. docs/MODEL.md, "Step time". */
#ifndef ND_COST_MODEL_TIME_H
#define ND_COST_MODEL_TIME_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

void nd_estimate_time(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                      nd_time_breakdown *out);

ND_END_DECLS

#endif
