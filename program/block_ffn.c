/* Feed-forward half of a layer: dense, or routed experts with an optional shared expert. */
#include "program/block_internal.h"

static bool gated(const nd_model_spec *model)
{
    return nd_ffn_matrices(model->ffn) == 3;
}

/* Rows that one rank routes, and how the experts that it holds are cut. */
typedef struct routing {
    int64_t rows;   /* token copies of this rank, balanced routing */
    int64_t groups; /* experts of this rank */
    int64_t rows_per_expert;
    int64_t inner; /* columns of an expert on this rank */
} routing;

static routing route(const nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    int64_t ep = builder->layout->ep;
    int64_t expert_tp = nd_expert_tp(builder->layout);
    /* with expert parallelism every tp rank routes its own part of the sequence */
    int64_t tokens = ep > 1 ? builder->tokens / builder->tp : builder->tokens;
    routing r = {.rows = tokens * m->experts_topk, .groups = m->experts / ep};
    r.groups = r.groups > 0 ? r.groups : 1;
    r.rows_per_expert = r.rows / r.groups > 0 ? r.rows / r.groups : 1;
    r.inner = m->moe_ffn_hidden / expert_tp > 0 ? m->moe_ffn_hidden / expert_tp : 1;
    return r;
}

/* up (and gate), activation, down of `rows` rows with `inner` columns, `groups` times. */
static void mlp(nd_block_builder *builder, int64_t rows, int64_t inner, int64_t groups, bool routed)
{
    const nd_model_spec *model = builder->model;
    int64_t up_matrices = gated(model) ? 2 : 1;
    double columns = (double)rows * (double)inner * (double)groups;
    nd_builder_matrix(builder, &(nd_matrix){.name = routed ? "expert_up" : "ffn_up",
                                            .rows = rows,
                                            .out = up_matrices * inner,
                                            .in = model->hidden,
                                            .groups = groups,
                                            .per_op_recompute_frac = gated(model) ? 0.5 : 0.0,
                                            .fp8 = true,
                                            .frozen_adapter = routed});
    nd_builder_keep(builder, (double)up_matrices * columns * builder->element_bytes, 0.5);
    nd_traffic traffic = nd_builder_traffic(builder);
    double bytes = traffic.activation * (double)(up_matrices + 1) * columns * builder->element_bytes;
    nd_builder_elementwise(builder, "activation", bytes, traffic.activation_kernels);
    /* the product, and in eager code the activated gate beside it */
    bool keeps_gate = gated(model) && !builder->style->fused_elementwise;
    nd_builder_keep(builder, columns * nd_builder_input_bytes(builder), 0.0);
    nd_builder_keep(builder, keeps_gate ? columns * builder->element_bytes : 0.0, 0.0);
    nd_builder_matrix(builder, &(nd_matrix){.name = routed ? "expert_down" : "ffn_down",
                                            .rows = rows,
                                            .out = model->hidden,
                                            .in = inner,
                                            .groups = groups,
                                            .per_op_recompute_frac = gated(model) ? 0.0 : 1.0,
                                            .fp8 = true,
                                            .frozen_adapter = routed});
}

static void dispatch_or_combine(nd_block_builder *builder, const char *name, const routing *r)
{
    bool repeats = builder->pass == ND_PASS_RECOMPUTE;
    if (builder->layout->ep == 1 || (repeats && builder->recompute != ND_RECOMPUTE_FULL)) {
        return;
    }
    double bytes = (double)r->rows * (double)builder->model->hidden * builder->element_bytes;
    nd_builder_collective(builder, name, ND_ALL_TO_ALL, ND_GROUP_EP, bytes)->copies = builder->model->experts_topk;
}

static void experts(nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    routing r = route(builder);
    double rows_bytes = (double)r.rows * (double)m->hidden * builder->element_bytes;
    nd_builder_matrix(builder, &(nd_matrix){.name = "router",
                                            .rows = builder->tokens,
                                            .out = m->experts,
                                            .in = m->hidden,
                                            .groups = 1,
                                            .frozen_adapter = true});
    /* router probabilities are fp32 and kept twice: before and after the softmax */
    nd_builder_elementwise(
        builder, "route, permute",
        nd_builder_traffic(builder).permute * rows_bytes + 4.0 * (double)(builder->tokens * m->experts), 6);
    nd_builder_keep(builder, 8.0 * (double)(builder->tokens * m->experts), 1.0);
    dispatch_or_combine(builder, "ep all-to-all (dispatch)", &r);
    mlp(builder, r.rows_per_expert, r.inner, r.groups, true);
    nd_builder_keep(builder, 2.0 * rows_bytes, 1.0); /* permuted input and output */
    dispatch_or_combine(builder, "ep all-to-all (combine)", &r);
}

void nd_builder_ffn(nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    bool moe = m->layer_kinds[builder->layer_kind].moe;
    /* routed experts under expert parallelism take the sequence shards as they are */
    bool over_tp = !moe || builder->layout->ep == 1 || m->shared_ffn_hidden > 0;
    int64_t dense = moe ? m->shared_ffn_hidden : m->ffn_hidden;
    nd_builder_residual(builder);
    if (over_tp) {
        nd_builder_tp_enter(builder);
    }
    if (dense > 0) {
        int64_t inner = dense / builder->tp > 0 ? dense / builder->tp : 1;
        mlp(builder, builder->tokens, inner, 1, false);
    }
    if (moe) {
        experts(builder);
    }
    if (over_tp) {
        nd_builder_tp_leave(builder);
    }
}

double nd_block_working_bytes(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              int32_t layer_kind)
{
    /* gradients of the widest activation pair are alive beside the saved tensors */
    double element_bytes = (double)nd_dtype_compute_bytes(train->precision);
    double tokens = nd_block_tokens(layout, train);
    double tp = (double)layout->size[ND_AXIS_TP];
    /* sequence parallelism: the gathered input, the gathered output gradient, and the input gradient before its
     * reduce-scatter are whole */
    double gathered = layout->sequence_parallel ? 3.0 * tokens * (double)model->hidden * element_bytes : 0.0;
    if (!model->layer_kinds[layer_kind].moe) {
        return gathered + 2.0 * tokens * (double)model->ffn_hidden / tp * element_bytes;
    }
    double rows = tokens * (double)model->experts_topk / (layout->ep > 1 ? tp : 1.0);
    double inner = (double)model->moe_ffn_hidden / (double)nd_expert_tp(layout);
    double shared = 2.0 * tokens * (double)model->shared_ffn_hidden / tp;
    double routed = 2.0 * rows * inner;
    return gathered + (routed > shared ? routed : shared) * element_bytes;
}

double nd_block_lora_params(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            int32_t layer_kind)
{
    double tp = (double)layout->size[ND_AXIS_TP];
    double hidden = (double)model->hidden;
    double heads = (double)nd_block_heads(model, layout);
    double sizes = hidden + heads * (double)nd_model_v_dim(model); /* output projection */
    if (model->attention == ND_ATTENTION_MLA) {
        double qk = heads * (double)nd_model_qk_dim(model);
        double kv = (double)model->mla_kv_rank;
        sizes += model->mla_q_rank > 0 ? hidden + 2.0 * (double)model->mla_q_rank + qk : hidden + qk;
        sizes += hidden + kv + (double)model->mla_rope_dim;
        sizes += kv + heads * (double)(model->mla_nope_dim + model->mla_v_dim);
    } else {
        double kv = (double)nd_block_kv_heads(model, layout) * (double)model->head_dim;
        sizes += 3.0 * hidden + heads * (double)model->head_dim + 2.0 * kv;
    }
    bool moe = model->layer_kinds[layer_kind].moe;
    double inner = (double)(moe ? model->shared_ffn_hidden : model->ffn_hidden) / tp;
    if (inner > 0.0) {
        sizes += (double)nd_ffn_matrices(model->ffn) * (hidden + inner);
    }
    return (double)train->lora_rank * sizes;
}
