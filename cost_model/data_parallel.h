/** Traffic of gradients and sharded weights, and how much of it is left exposed. Private building block of the
 * estimate. docs/MODEL.md, "Data-parallel traffic". */
#ifndef ND_COST_MODEL_DATA_PARALLEL_H
#define ND_COST_MODEL_DATA_PARALLEL_H

#include "cost_model/collectives.h"
#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Traffic of one pass of one micro-batch over the stage: what the pass waits for, and what runs beside it. */
typedef struct nd_dp_pass {
    double exposed_s, hidden_s;
} nd_dp_pass;

/** Seconds of one step and one rank. */
typedef struct nd_dp_cost {
    double exposed_s;
    double hidden_s;
    double pressure_s; /* hidden_s weighted by how hard it presses on the kernels: network rate / NVLink rate */
    /* the same by micro-batch: first and last may gather and reduce for all; exposed_s and hidden_s are
     * first_forward + (m - 1) (forward + backward) + last_backward of m micro-batches */
    nd_dp_pass first_forward, forward, backward, last_backward;
} nd_dp_cost;

/** One layer kind's collectives in one micro-batch (FSDP) or the whole stage's in one step (otherwise). */
typedef struct nd_dp_unit {
    double gather_s, reduce_s; /* of the dense part */
    double expert_gather_s, expert_reduce_s;
    double replicate_s; /* all-reduce over dp_replicate, dense and experts */
} nd_dp_unit;

/** Bytes of one weight when it is gathered, and of one gradient when it is reduced. */
double nd_dp_gather_bytes(const nd_cost_context *context);
double nd_dp_reduce_bytes(const nd_cost_context *context);

/** Times to gather and reduce `dense` and `expert` parameters (counts of one rank before sharding), of which
 * `trained` dense parameters have gradients. */
nd_dp_unit nd_dp_price(const nd_cost_context *context, const nd_layout *layout, double dense, double expert,
                       double trained_dense, double trained_expert);

/** Whether weights or gradients travel layer by layer (FSDP) rather than whole, once a step. */
bool nd_dp_by_layer(const nd_cost_context *context, const nd_layout *layout);

/** What the stage with these layer counts adds to the step. */
nd_dp_cost nd_dp_cost_of_stage(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                               int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX]);

ND_END_DECLS

#endif
