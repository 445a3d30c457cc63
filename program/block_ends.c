/* Both ends of the model: the embedding lookup, and the head with its loss. */
#include "program/block_internal.h"

void nd_builder_embedding(nd_block_builder *builder)
{
    if (builder->pass == ND_PASS_RECOMPUTE) {
        return;
    }
    double elements = (double)builder->tokens * (double)builder->model->hidden;
    bool backward = builder->pass == ND_PASS_BACKWARD;
    if (backward && builder->train->lora_rank > 0) {
        return; /* frozen */
    }
    /* forward: read rows, write activations; backward: read gradients, add them into fp32 rows */
    nd_builder_elementwise(builder, "embedding", (backward ? 10.0 : 2.0 * builder->element_bytes) * elements,
                           backward ? 3 : 1);
    if (builder->tp > 1 && !backward) {
        bool sp = builder->residual_split > 1;
        nd_builder_collective(builder, sp ? "tp reduce-scatter (embedding)" : "tp all-reduce (embedding)",
                              sp ? ND_REDUCE_SCATTER : ND_ALL_REDUCE, ND_GROUP_TP, elements * builder->element_bytes);
    }
}

void nd_builder_head(nd_block_builder *builder)
{
    const nd_model_spec *model = builder->model;
    bool backward = builder->pass == ND_PASS_BACKWARD;
    if (builder->pass == ND_PASS_RECOMPUTE) {
        return;
    }
    int64_t columns = (model->vocab + builder->tp - 1) / builder->tp;
    double norm_elements = (double)builder->tokens * (double)model->hidden / (double)builder->residual_split;
    nd_builder_elementwise(builder, "final norm", (backward ? 4.0 : 2.0) * norm_elements * builder->element_bytes, 2);
    nd_builder_tp_enter(builder);
    nd_builder_matrix(builder, &(nd_matrix){.name = "head",
                                            .rows = builder->tokens,
                                            .out = columns,
                                            .in = model->hidden,
                                            .groups = 1,
                                            .frozen_adapter = true});
    double logits = (double)builder->tokens * (double)columns;
    /* a third of the loss traffic is the forward pass: write logits, read them for the softmax */
    double share = backward ? 2.0 / 3.0 : 1.0 / 3.0;
    nd_builder_elementwise(builder, "loss", share * builder->style->loss_traffic_bytes * logits, 5);
    if (builder->tp > 1 && !backward) {
        /* maximum, denominator and target logit of every token, fp32 */
        nd_builder_collective(builder, "tp all-reduce (loss)", ND_ALL_REDUCE, ND_GROUP_TP,
                              12.0 * (double)builder->tokens);
    }
}
