/** Reading the price of a model part. docs/MODEL.md, "Step time". */
#ifndef ND_COST_MODEL_PRICE_H
#define ND_COST_MODEL_PRICE_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Seconds of the kernels of one pass. */
double nd_part_compute_s(const nd_part_price *price, nd_pass pass);

/** Seconds of forward and backward, and of that part `rerun` of the recompute pass. */
double nd_part_passes_s(const nd_part_price *price, double rerun);

/** Seconds of one pass: its kernels and the communication that they do not hide. */
double nd_part_pass_s(const nd_part_price *price, nd_pass pass);

/** Parameters of one rank before data-parallel sharding: out->params_*, but for LoRA's. Of the context model and
 * params are read. */
void nd_price_params(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *out);

ND_END_DECLS

#endif
