/* Memory passes of the element-wise kernels, counted per element in the precision of the activations (an fp32 tensor
 * counts twice). docs/MODEL.md, "Element-wise traffic". */
#include "program/block_internal.h"

/* One kernel for each chain of norm, residual and activation. */
static const nd_traffic fused_forward = {3.5, 2.0, 2.0, 1.0, 4.0, 4, 1, 1};
static const nd_traffic fused_backward = {5.5, 3.0, 2.0, 5.0 / 3.0, 6.0, 5, 1, 1};
/* One kernel for each operation, LayerNorm as one kernel. */
static const nd_traffic eager_forward = {6.0, 3.0, 3.0, 2.2, 4.0, 11, 4, 1};
static const nd_traffic eager_backward = {8.5, 4.0, 3.0, 3.0, 6.0, 15, 4, 1};
/* RMSNorm in eager Python casts to fp32 and runs six kernels: cast 3, square 4, mean 2, scale 4, cast 3, weight 2 = 18
 * passes forward; its backward 27. Rotary embedding likewise: negate, join, two products, a sum, for queries and for
 * keys. The gate is an activation and a product. */
static const nd_traffic eager_rms_forward = {21.0, 18.0, 10.0, 2.2, 4.0, 16, 10, 2};
static const nd_traffic eager_rms_backward = {30.0, 27.0, 10.0, 3.0, 6.0, 24, 12, 4};

nd_traffic nd_builder_traffic(const nd_block_builder *builder)
{
    bool backward = builder->pass == ND_PASS_BACKWARD;
    if (builder->style->fused_elementwise) {
        return backward ? fused_backward : fused_forward;
    }
    if (builder->model->norm == ND_NORM_RMS) {
        return backward ? eager_rms_backward : eager_rms_forward;
    }
    return backward ? eager_backward : eager_forward;
}

void nd_builder_residual(nd_block_builder *builder)
{
    nd_traffic traffic = nd_builder_traffic(builder);
    double elements = (double)builder->tokens * (double)builder->model->hidden / (double)builder->residual_split;
    double extra_norms = (double)builder->model->norms_per_layer / 2.0 - 1.0;
    double passes = traffic.residual + (extra_norms > 0.0 ? extra_norms * traffic.extra_norm : 0.0);
    nd_builder_elementwise(builder, "norm, residual", passes * elements * builder->element_bytes, traffic.kernels);
    /* input and output of the norm; per-op selective checkpointing keeps the input only */
    nd_builder_keep(builder, elements * builder->element_bytes, 1.0);
    nd_builder_keep(builder, elements * nd_builder_input_bytes(builder), 0.0);
    if (!builder->style->fused_elementwise && builder->model->norm == ND_NORM_RMS) {
        /* eager RMSNorm keeps the input in fp32 and, unless its weight is frozen, the normalised value */
        double normalised = builder->train->lora_rank > 0 ? 0.0 : builder->element_bytes;
        nd_builder_keep(builder, (4.0 - builder->element_bytes + normalised) * elements, 0.0);
    }
}
