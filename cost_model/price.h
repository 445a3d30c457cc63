/** Placement of the groups of a layout, and the price of lists of operations. Private building blocks of the
 * estimate. docs/MODEL.md, "Step time". */
#ifndef ND_COST_MODEL_PRICE_H
#define ND_COST_MODEL_PRICE_H

#include "cost_model/collectives.h"
#include "cost_model/estimate.h"
#include "cost_model/kernels.h"

ND_BEGIN_DECLS

/** Seconds of a collective op (all its repeats). */
double nd_price_collective_s(const nd_cost_context *context, const nd_layout *layout, const nd_op *op);

ND_END_DECLS

#endif
