/* Queries, keys and values of multi-head latent attention (DeepSeek-V2): low-rank projections with a norm between, and
 * a rotary part that all heads share. */
#include "program/builder_internal.h"

typedef struct latent {
    nd_matrix_of q_down, q_up, kv_down, rot_down, kv_up;
    nd_norm_of q_norm, kv_norm;
    bool compresses_q;
} latent;

static latent matrices(const nd_builder *b, const nd_layer_of *at)
{
    const nd_model_spec *m = b->model;
    int64_t rows = b->region_rows;
    bool compresses = m->mla_q_rank > 0;
    int64_t q_in = compresses ? m->mla_q_rank : m->hidden;
    return (latent){
        .q_down = {at->unit, ND_ROLE_Q_DOWN, 0, m->mla_q_rank, m->hidden, "query down"},
        .q_up = {at->unit, ND_ROLE_Q, 0, b->heads * b->qk_dim, q_in, "query up"},
        .kv_down = {at->unit, ND_ROLE_KV_DOWN, 0, m->mla_kv_rank, m->hidden, "key-value down"},
        .rot_down = {at->unit, ND_ROLE_KV_DOWN, m->mla_kv_rank, m->mla_rope_dim, m->hidden, "rotary key"},
        .kv_up = {at->unit, ND_ROLE_KV_UP, 0, b->heads * (m->mla_nope_dim + m->mla_v_dim), m->mla_kv_rank,
                  "key-value up"},
        .q_norm = {at->unit, ND_ROLE_Q_DOWN_NORM, ND_ROLE_COUNT, rows, m->mla_q_rank, "query norm"},
        .kv_norm = {at->unit, ND_ROLE_KV_DOWN_NORM, ND_ROLE_COUNT, rows, m->mla_kv_rank, "key-value norm"},
        .compresses_q = compresses,
    };
}

static void emit_split(nd_builder *b, bool backward, nd_ref up, nd_ref rot, nd_ref keys, nd_ref values)
{
    nd_ins ins = {.op = backward ? ND_INS_SPLIT_LATENT_GRAD : ND_INS_SPLIT_LATENT,
                  .rows = b->region_rows,
                  .heads = b->heads,
                  .dim = b->qk_dim,
                  .v_dim = b->v_dim,
                  .rot_dim = b->model->mla_rope_dim,
                  .tag = "split latent"};
    nd_ref *whole = backward ? ins.out : ins.in;
    nd_ref *parts = backward ? ins.in : ins.out;
    whole[0] = up;
    whole[1] = rot;
    parts[0] = keys;
    parts[1] = values;
    nd_emit(b, &ins);
}

static nd_ref values_of(const nd_builder *b, int32_t kv)
{
    return nd_at(kv, b->region_rows * b->heads * b->qk_dim);
}

void nd_build_latent(nd_builder *b, const nd_layer_of *at, int32_t x, nd_kept_attention *kept)
{
    latent w = matrices(b, at);
    int64_t rows = b->region_rows;
    int64_t rope = b->model->mla_rope_dim;
    if (w.compresses_q) {
        kept->q_latent = nd_linear(b, x, rows, &w.q_down);
        kept->q_latent_norm = nd_norm(b, kept->q_latent, &w.q_norm, &kept->q_latent_stats);
    }
    kept->q = nd_linear(b, w.compresses_q ? kept->q_latent_norm : x, rows, &w.q_up);
    nd_rope(b, nd_whole(kept->q), b->heads, b->qk_dim, rope, false);
    kept->kv_latent = nd_linear(b, x, rows, &w.kv_down);
    kept->kv_latent_norm = nd_norm(b, kept->kv_latent, &w.kv_norm, &kept->kv_latent_stats);
    int32_t rot = nd_linear(b, x, rows, &w.rot_down);
    nd_rope(b, nd_whole(rot), 1, rope, rope, false);
    int32_t up = nd_linear(b, kept->kv_latent_norm, rows, &w.kv_up);
    kept->kv =
        nd_buffer_new(b, rows * b->heads * (b->qk_dim + b->v_dim), b->real, ND_MEMORY_ACTIVATIONS, "keys, values");
    emit_split(b, false, nd_whole(up), nd_whole(rot), nd_whole(kept->kv), values_of(b, kept->kv));
    nd_release(b, &up);
    nd_release(b, &rot);
}

static void queries_back(nd_builder *b, const latent *w, int32_t x, int32_t dq, nd_kept_attention *kept, int32_t *dx)
{
    int64_t rows = b->region_rows;
    nd_rope(b, nd_whole(dq), b->heads, b->qk_dim, b->model->mla_rope_dim, true);
    if (!w->compresses_q) {
        nd_linear_grad_input(b, nd_whole(dq), rows, &w->q_up, dx);
        nd_linear_grad_weight(b, nd_whole(dq), x, rows, &w->q_up);
        return;
    }
    int32_t dnorm = 0;
    int32_t dlatent = 0;
    nd_linear_grad_input(b, nd_whole(dq), rows, &w->q_up, &dnorm);
    nd_linear_grad_weight(b, nd_whole(dq), kept->q_latent_norm, rows, &w->q_up);
    nd_norm_grad(b, kept->q_latent, kept->q_latent_stats, nd_whole(dnorm), &w->q_norm, &dlatent);
    nd_release(b, &dnorm);
    nd_linear_grad_input(b, nd_whole(dlatent), rows, &w->q_down, dx);
    nd_linear_grad_weight(b, nd_whole(dlatent), x, rows, &w->q_down);
    nd_release(b, &dlatent);
}

void nd_build_latent_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dq, int32_t dkv,
                          nd_kept_attention *kept, int32_t *dx)
{
    latent w = matrices(b, at);
    int64_t rows = b->region_rows;
    int64_t rope = b->model->mla_rope_dim;
    queries_back(b, &w, x, dq, kept, dx);
    int32_t dup = nd_buffer_new(b, rows * w.kv_up.n, b->real, ND_MEMORY_WORKSPACE, "key-value gradients");
    int32_t drot = nd_buffer_new(b, rows * rope, b->real, ND_MEMORY_WORKSPACE, "rotary key gradients");
    emit_split(b, true, nd_whole(dup), nd_whole(drot), nd_whole(dkv), values_of(b, dkv));
    nd_rope(b, nd_whole(drot), 1, rope, rope, true);
    nd_linear_grad_input(b, nd_whole(drot), rows, &w.rot_down, dx);
    nd_linear_grad_weight(b, nd_whole(drot), x, rows, &w.rot_down);
    int32_t dnorm = 0;
    int32_t dlatent = 0;
    nd_linear_grad_input(b, nd_whole(dup), rows, &w.kv_up, &dnorm);
    nd_linear_grad_weight(b, nd_whole(dup), kept->kv_latent_norm, rows, &w.kv_up);
    nd_norm_grad(b, kept->kv_latent, kept->kv_latent_stats, nd_whole(dnorm), &w.kv_norm, &dlatent);
    nd_linear_grad_input(b, nd_whole(dlatent), rows, &w.kv_down, dx);
    nd_linear_grad_weight(b, nd_whole(dlatent), x, rows, &w.kv_down);
    int32_t *const used[] = {&dup,
                             &drot,
                             &dnorm,
                             &dlatent,
                             &kept->q_latent,
                             &kept->q_latent_norm,
                             &kept->q_latent_stats,
                             &kept->kv_latent,
                             &kept->kv_latent_norm,
                             &kept->kv_latent_stats};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
        nd_release(b, used[i]);
    }
}
