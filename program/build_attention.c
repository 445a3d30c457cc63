/* Attention of a layer: projections, norms of queries and keys, rotary embedding, output projection. */
#include "program/builder_internal.h"

void nd_rope(nd_builder *b, nd_ref x, int64_t heads, int64_t dim, int64_t rot_dim, bool inverse)
{
    nd_seq_map map = nd_region_map(b);
    if (b->program->options.mutation == ND_MUTATION_ROPE_POSITIONS) {
        map.zigzag = false;
    }
    nd_emit(b, &(nd_ins){.op = ND_INS_ROPE,
                         .in = {x},
                         .out = {x},
                         .rows = b->region_rows,
                         .cols = heads * dim,
                         .heads = heads,
                         .dim = dim,
                         .rot_dim = rot_dim,
                         .micro_batch = b->micro_batch,
                         .q_map = map,
                         .theta = b->program->options.rope_theta,
                         .inverse = inverse,
                         .tag = "rotary"});
}

static bool rotates(const nd_builder *b)
{
    return b->model->learned_positions == 0;
}

static nd_matrix_of projection(const nd_builder *b, const nd_layer_of *at, nd_role role)
{
    int64_t heads = role == ND_ROLE_Q ? b->heads : b->kv_heads;
    const char *tag = role == ND_ROLE_Q ? "attention q" : role == ND_ROLE_K ? "attention k" : "attention v";
    return (nd_matrix_of){
        .unit = at->unit, .role = role, .n = heads * b->model->head_dim, .k = b->model->hidden, .tag = tag};
}

static nd_matrix_of output(const nd_builder *b, const nd_layer_of *at)
{
    return (nd_matrix_of){
        .unit = at->unit, .role = ND_ROLE_O, .n = b->model->hidden, .k = b->heads * b->v_dim, .tag = "attention out"};
}

static nd_norm_of head_norm(const nd_builder *b, const nd_layer_of *at, bool queries)
{
    int64_t heads = queries ? b->heads : b->kv_heads;
    return (nd_norm_of){.unit = at->unit,
                        .role = queries ? ND_ROLE_Q_NORM : ND_ROLE_K_NORM,
                        .bias = ND_ROLE_COUNT,
                        .rows = b->region_rows * heads,
                        .cols = b->model->head_dim,
                        .tag = queries ? "query norm" : "key norm"};
}

static bool norms_heads(const nd_builder *b)
{
    return b->model->qk_norm != ND_QK_NORM_NONE;
}

static void project(nd_builder *b, const nd_layer_of *at, int32_t x, nd_kept_attention *kept)
{
    int64_t rows = b->region_rows;
    nd_matrix_of q = projection(b, at, ND_ROLE_Q);
    nd_matrix_of k = projection(b, at, ND_ROLE_K);
    nd_matrix_of v = projection(b, at, ND_ROLE_V);
    kept->kv = nd_buffer_new(b, rows * (k.n + v.n), b->real, ND_MEMORY_ACTIVATIONS, "keys, values");
    nd_ref values = nd_at(kept->kv, rows * k.n);
    nd_linear_into(b, x, rows, &v, values);
    nd_bias(b, values, rows, at->unit, ND_ROLE_V_BIAS, v.n);
    kept->q = nd_linear(b, x, rows, &q);
    nd_bias(b, nd_whole(kept->q), rows, at->unit, ND_ROLE_Q_BIAS, q.n);
    if (!norms_heads(b)) {
        nd_linear_into(b, x, rows, &k, nd_whole(kept->kv));
        nd_bias(b, nd_whole(kept->kv), rows, at->unit, ND_ROLE_K_BIAS, k.n);
        return;
    }
    kept->q_pre = kept->q;
    kept->k_pre = nd_linear(b, x, rows, &k);
    nd_bias(b, nd_whole(kept->k_pre), rows, at->unit, ND_ROLE_K_BIAS, k.n);
    nd_norm_of queries = head_norm(b, at, true);
    nd_norm_of keys = head_norm(b, at, false);
    kept->q = nd_norm(b, kept->q_pre, &queries, &kept->q_stats);
    nd_norm_into(b, kept->k_pre, &keys, &kept->k_stats, nd_whole(kept->kv));
}

int32_t nd_build_attention(nd_builder *b, const nd_layer_of *at, int32_t x, nd_kept_attention *kept)
{
    if (b->model->attention == ND_ATTENTION_MLA) {
        nd_build_latent(b, at, x, kept);
    } else {
        int64_t dim = b->model->head_dim;
        project(b, at, x, kept);
        if (rotates(b)) {
            nd_rope(b, nd_whole(kept->q), b->heads, dim, dim, false);
            nd_rope(b, nd_whole(kept->kv), b->kv_heads, dim, dim, false);
        }
    }
    nd_build_core(b, at, kept);
    nd_matrix_of out = output(b, at);
    return nd_linear(b, kept->o, b->region_rows, &out);
}

static void undo_head_norms(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept, int32_t *dq, int32_t *dkv)
{
    nd_norm_of queries = head_norm(b, at, true);
    nd_norm_of keys = head_norm(b, at, false);
    int64_t keys_count = keys.rows * keys.cols;
    int32_t dq_pre = 0;
    int32_t dk_pre = 0;
    nd_norm_grad(b, kept->q_pre, kept->q_stats, nd_whole(*dq), &queries, &dq_pre);
    nd_norm_grad(b, kept->k_pre, kept->k_stats, nd_whole(*dkv), &keys, &dk_pre);
    nd_release(b, dq);
    *dq = dq_pre;
    nd_emit_copy(b, nd_whole(dk_pre), nd_whole(*dkv), keys_count);
    nd_release(b, &dk_pre);
    nd_release(b, &kept->q_pre);
    nd_release(b, &kept->q_stats);
    nd_release(b, &kept->k_pre);
    nd_release(b, &kept->k_stats);
}

static void project_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dq, int32_t dkv, int32_t *dx)
{
    static const nd_role roles[] = {ND_ROLE_Q, ND_ROLE_K, ND_ROLE_V};
    static const nd_role biases[] = {ND_ROLE_Q_BIAS, ND_ROLE_K_BIAS, ND_ROLE_V_BIAS};
    int64_t rows = b->region_rows;
    nd_matrix_of w[3];
    nd_ref dy[3] = {nd_whole(dq), nd_whole(dkv), nd_whole(dkv)};
    for (int i = 0; i < 3; i++) {
        w[i] = projection(b, at, roles[i]);
    }
    dy[2].offset = rows * w[1].n;
    for (int i = 0; i < 3; i++) {
        nd_linear_grad_input(b, dy[i], rows, &w[i], dx);
    }
    for (int i = 0; i < 3; i++) {
        nd_bias_grad(b, dy[i], rows, at->unit, biases[i], w[i].n);
        nd_linear_grad_weight(b, dy[i], x, rows, &w[i]);
    }
}

int32_t nd_build_attention_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dy, nd_kept_attention *kept)
{
    nd_matrix_of out = output(b, at);
    int32_t dout = 0;
    nd_linear_grad_input(b, nd_whole(dy), b->region_rows, &out, &dout);
    nd_linear_grad_weight(b, nd_whole(dy), kept->o, b->region_rows, &out);
    int32_t dq = 0;
    int32_t dkv = 0;
    nd_build_core_back(b, at, dout, kept, &dq, &dkv);
    nd_release(b, &dout);
    int32_t dx = 0;
    if (b->model->attention == ND_ATTENTION_MLA) {
        nd_build_latent_back(b, at, x, dq, dkv, kept, &dx);
    } else {
        int64_t dim = b->model->head_dim;
        if (rotates(b)) {
            nd_rope(b, nd_whole(dq), b->heads, dim, dim, true);
            nd_rope(b, nd_whole(dkv), b->kv_heads, dim, dim, true);
        }
        if (norms_heads(b)) {
            undo_head_norms(b, at, kept, &dq, &dkv);
        }
        project_back(b, at, x, dq, dkv, &dx);
    }
    nd_release(b, &dq);
    nd_release(b, &dkv);
    return dx;
}
