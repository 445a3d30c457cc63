/** The work of one micro-batch on one pipeline stage. Private building block of the estimate. docs/MODEL.md,
 * "Step time". */
#ifndef ND_COST_MODEL_STAGE_WORK_H
#define ND_COST_MODEL_STAGE_WORK_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Seconds of one micro-batch and one stage, all of its chunks together. */
typedef struct nd_stage_work {
    double gemm_s, attention_s, elementwise_s, head_s;
    double recompute_s;
    double tp_s, cp_s, ep_s; /* exposed */
    double hidden_s;
    double forward_s, backward_s; /* with recompute and exposed communication */
    double weight_gradient_s;     /* of backward_s */
    double launches;              /* kernels and collectives, recompute included */
} nd_stage_work;

/** Forward and backward. */
double nd_stage_work_s(const nd_stage_work *work);

/** Whether whole gradients are added up over micro-batches in a pass of their own: the only thing in a stage's work
 * that depends on accumulation and sharding. */
bool nd_stage_accumulates(const nd_cost_context *context, const nd_layout *layout);

/** Work of the layers `counts` with the embedding when `first` and the head when `last`. */
nd_stage_work nd_stage_work_of(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                               const int64_t counts[ND_LAYER_KINDS_MAX], bool first, bool last);

ND_END_DECLS

#endif
