/* Attention half of a layer: norm, projections, rotary, core, output projection, residual. */
#include "program/block_internal.h"

static void project_gqa(nd_block_builder *builder)
{
    const nd_model_spec *model = builder->model;
    int64_t heads = nd_block_heads(model, builder->layout);
    int64_t kv_heads = nd_block_kv_heads(model, builder->layout);
    int64_t out = (heads + 2 * kv_heads) * model->head_dim;
    nd_builder_matrix(builder, &(nd_matrix){.name = "qkv",
                                            .rows = builder->tokens,
                                            .out = out,
                                            .in = model->hidden,
                                            .groups = 1,
                                            /* of three matmuls the second, k, is repeated */
                                            .per_op_recompute_frac = (double)(kv_heads * model->head_dim) / (double)out,
                                            .fp8 = true});
    nd_builder_keep(builder, (double)builder->tokens * (double)out * builder->element_bytes, 0.5);
}

static void project_mla(nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    int64_t rows = builder->tokens;
    int64_t heads = nd_block_heads(m, builder->layout);
    int64_t qk_dim = m->mla_nope_dim + m->mla_rope_dim;
    int64_t q_in = m->mla_q_rank > 0 ? m->mla_q_rank : m->hidden;
    if (m->mla_q_rank > 0) {
        nd_builder_matrix(builder, &(nd_matrix){"q_down", rows, m->mla_q_rank, m->hidden, 1, 0.0, true, false});
        nd_builder_keep(builder, (double)rows * (double)m->mla_q_rank * builder->element_bytes, 1.0);
    }
    nd_builder_matrix(builder, &(nd_matrix){"q_up", rows, heads * qk_dim, q_in, 1, 1.0, true, false});
    nd_builder_matrix(builder,
                      &(nd_matrix){"kv_down", rows, m->mla_kv_rank + m->mla_rope_dim, m->hidden, 1, 0.0, true, false});
    nd_builder_keep(builder, (double)rows * (double)(m->mla_kv_rank + m->mla_rope_dim) * builder->element_bytes, 1.0);
    nd_builder_matrix(builder, &(nd_matrix){"kv_up", rows, heads * (m->mla_nope_dim + m->mla_v_dim), m->mla_kv_rank, 1,
                                            1.0, true, false});
    /* q, and k and v expanded to all heads */
    double expanded = (double)rows * (double)heads * (double)(2 * qk_dim + m->mla_v_dim);
    nd_builder_keep(builder, expanded * builder->element_bytes, 0.5);
}

static void rotary(nd_block_builder *builder)
{
    const nd_model_spec *model = builder->model;
    int64_t heads = nd_block_heads(model, builder->layout);
    int64_t kv_heads = model->attention == ND_ATTENTION_MLA ? heads : nd_block_kv_heads(model, builder->layout);
    nd_traffic traffic = nd_builder_traffic(builder);
    double passes = traffic.rotary + (model->qk_norm == ND_QK_NORM_NONE ? 0.0 : 2.0);
    double elements = (double)builder->tokens * (double)(heads + kv_heads) * (double)nd_model_qk_dim(model);
    nd_builder_elementwise(builder, "rotary", passes * elements * builder->element_bytes, traffic.rotary_kernels);
}

/* Keys and values of one rank in elements; MLA exchanges the compressed latent. */
static double kv_elements(const nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    if (m->attention == ND_ATTENTION_MLA) {
        int64_t heads = nd_block_heads(m, builder->layout);
        return (double)builder->tokens * (double)heads * (double)(nd_model_qk_dim(m) + m->mla_v_dim);
    }
    return 2.0 * (double)builder->tokens * (double)nd_block_kv_heads(m, builder->layout) * (double)m->head_dim;
}

static void exchange_context(nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    int32_t cp = builder->layout->size[ND_AXIS_CP];
    bool backward = builder->pass == ND_PASS_BACKWARD;
    bool repeats = builder->pass == ND_PASS_RECOMPUTE;
    if (cp == 1 || (repeats && builder->recompute != ND_RECOMPUTE_FULL)) {
        return;
    }
    double kv_bytes = kv_elements(builder) * builder->element_bytes;
    switch (builder->layout->cp_method) {
    case ND_CP_METHOD_RING: {
        nd_op *op = nd_builder_collective(builder, "cp ring", ND_SEND_RECV, ND_GROUP_CP, kv_bytes);
        /* the backward pass also carries the gradients of keys and values around the ring */
        op->repeats = (backward ? 2 : 1) * (cp - 1);
        op->hidden_behind_attention = true;
        break;
    }
    case ND_CP_METHOD_ALLGATHER:
        nd_builder_collective(builder, "cp all-gather (k, v)", ND_ALL_GATHER, ND_GROUP_CP, kv_bytes * cp);
        if (backward) {
            nd_builder_collective(builder, "cp reduce-scatter (dk, dv)", ND_REDUCE_SCATTER, ND_GROUP_CP, kv_bytes * cp);
        }
        break;
    case ND_CP_METHOD_ULYSSES: {
        double heads = (double)nd_block_heads(m, builder->layout);
        double tokens = (double)builder->tokens;
        double q_bytes = tokens * heads * (double)nd_model_qk_dim(m) * builder->element_bytes;
        double o_bytes = tokens * heads * (double)nd_model_v_dim(m) * builder->element_bytes;
        nd_builder_collective(builder, "ulysses all-to-all (q)", ND_ALL_TO_ALL, ND_GROUP_CP, q_bytes);
        nd_op *op =
            nd_builder_collective(builder, "ulysses all-to-all (k, v)", ND_ALL_TO_ALL, ND_GROUP_CP, kv_bytes / 2.0);
        op->repeats = 2;
        nd_builder_collective(builder, "ulysses all-to-all (out)", ND_ALL_TO_ALL, ND_GROUP_CP, o_bytes);
        break;
    }
    case ND_CP_METHOD_COUNT:
        break;
    }
}

static bool runs_core(const nd_block_builder *builder)
{
    if (builder->pass != ND_PASS_RECOMPUTE) {
        return true;
    }
    /* core-attention selective repeats exactly this; per-op selective keeps its output */
    return builder->recompute == ND_RECOMPUTE_FULL ||
           (builder->recompute == ND_RECOMPUTE_SELECTIVE && !builder->style->selective_is_per_op);
}

/* Passes of the score matrix that no GEMM makes, in elements of 16 bit. Fused (Megatron): one causal softmax kernel
 * that touches half of what it reads, and dropout with a one-byte mask. Eager: scale, mask, cast, softmax in fp32,
 * cast, dropout, each its own kernel. Own count. */
typedef struct score_cost {
    double passes;
    int32_t kernels;
} score_cost;

static score_cost score_traffic(const nd_block_builder *builder)
{
    static const score_cost fused[2] = {{4.0, 2}, {4.5, 2}};
    static const score_cost eager[2] = {{16.5, 6}, {14.0, 6}};
    const score_cost *costs = builder->style->fused_elementwise ? fused : eager;
    return costs[builder->pass == ND_PASS_BACKWARD];
}

/* Without flash attention: two batched GEMMs over the whole matrix forward, four backward, no causal saving. */
static void materialise_scores(nd_block_builder *builder, nd_op *op)
{
    double scores = (double)op->batch * (double)op->heads * (double)op->q_len * (double)op->kv_len;
    score_cost cost = score_traffic(builder);
    op->math = true;
    op->pairs = (double)op->q_len * (double)op->kv_len;
    op->flops = 2.0 * scores * (double)(op->qk_dim + op->v_dim) * (op->backward ? 2.0 : 1.0);
    op->hbm_bytes = cost.passes * scores * builder->element_bytes;
    op->kernels = cost.kernels;
    if (builder->pass == ND_PASS_FORWARD && builder->recompute == ND_RECOMPUTE_NONE) {
        op->saved_bytes += 5.0 * scores; /* scores 2, softmax 2, dropout mask 1 */
    }
}

static void core(nd_block_builder *builder)
{
    const nd_model_spec *m = builder->model;
    const nd_layout *layout = builder->layout;
    int64_t seq = builder->train->seq_len_tokens;
    int64_t cp = layout->size[ND_AXIS_CP];
    bool ulysses = cp > 1 && layout->cp_method == ND_CP_METHOD_ULYSSES;
    int64_t heads = nd_block_heads(m, layout);
    int64_t own_heads = ulysses ? (heads / cp > 0 ? heads / cp : 1) : heads;
    const nd_layer_kind *kind = &m->layer_kinds[builder->layer_kind];
    int64_t window = kind->window_tokens;
    if (!runs_core(builder)) {
        return;
    }
    nd_op_list *list = builder->list;
    nd_op *op = &list->ops[list->count++];
    *op = (nd_op){
        .kind = ND_OP_ATTENTION,
        .name = "attention",
        .groups = 1,
        .repeats = 1,
        .kernels = 1,
        .batch = layout->micro_batch,
        .q_len = ulysses ? seq : seq / cp,
        .kv_len = window > 0 && window < seq ? window : seq,
        .heads = own_heads,
        .qk_dim = nd_model_qk_dim(m),
        .v_dim = nd_model_v_dim(m),
        .pairs = nd_layer_kind_pairs(kind, seq, ND_FLOPS_CAUSAL) / (ulysses ? 1.0 : (double)cp),
        .backward = builder->pass == ND_PASS_BACKWARD,
    };
    op->flops = 2.0 * (double)op->batch * (double)own_heads * op->pairs * (double)(op->qk_dim + op->v_dim) *
                (op->backward ? 2.5 : 1.0); /* flash backward: 5 GEMMs against 2 */
    double out_elements = (double)builder->tokens * (double)heads * (double)op->v_dim;
    nd_builder_keep(builder, out_elements * builder->element_bytes, 1.5);         /* + the k or v that per-op keeps */
    nd_builder_keep(builder, 4.0 * (double)builder->tokens * (double)heads, 1.0); /* fp32 log-sum-exp */
    if (builder->train->attention == ND_ATTENTION_MATH) {
        materialise_scores(builder, op);
    }
}

void nd_builder_attention(nd_block_builder *builder)
{
    const nd_model_spec *model = builder->model;
    nd_builder_residual(builder);
    nd_builder_tp_enter(builder);
    if (model->attention == ND_ATTENTION_MLA) {
        project_mla(builder);
    } else {
        project_gqa(builder);
    }
    rotary(builder);
    exchange_context(builder);
    core(builder);
    nd_builder_matrix(builder, &(nd_matrix){.name = "attention_out",
                                            .rows = builder->tokens,
                                            .out = model->hidden,
                                            .in = nd_block_heads(model, builder->layout) * nd_model_v_dim(model),
                                            .groups = 1,
                                            .per_op_recompute_frac = 1.0,
                                            .fp8 = true});
    if (nd_builder_input_bytes(builder) < builder->element_bytes) {
        /* its own copy: attention keeps the 16-bit output for itself */
        double elements =
            (double)builder->tokens * (double)(nd_block_heads(model, builder->layout) * nd_model_v_dim(model));
        nd_builder_keep(builder, elements * nd_builder_input_bytes(builder), 0.0);
    }
    nd_builder_tp_leave(builder);
}
