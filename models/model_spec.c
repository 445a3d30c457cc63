/* Consistency of a spec. */
#include "models/model_spec.h"

#include "models/reader_internal.h"

static nd_status check_range(const char *what, int64_t value, int64_t min, int64_t max, nd_error *err)
{
    if (value < min || value > max) {
        return nd_fail(err, ND_EINVAL, "%s is %lld; it must be from %lld to %lld", what, (long long)value,
                       (long long)min, (long long)max);
    }
    return ND_OK;
}

static nd_status check_shapes(const nd_model_spec *m, nd_error *err)
{
    ND_TRY(check_range("hidden", m->hidden, 1, ND_HIDDEN_MAX, err));
    ND_TRY(check_range("layers", m->layers, 1, ND_MODEL_LAYERS_MAX, err));
    ND_TRY(check_range("vocab", m->vocab, 1, ND_VOCAB_MAX, err));
    ND_TRY(check_range("embed_dim", m->embed_dim, 1, ND_HIDDEN_MAX, err));
    ND_TRY(check_range("max_seq_len_tokens", m->max_seq_len_tokens, 0, ND_POSITIONS_MAX, err));
    ND_TRY(check_range("learned_positions", m->learned_positions, 0, ND_POSITIONS_MAX + 2, err));
    return check_range("norms_per_layer", m->norms_per_layer, 1, 4, err);
}

static nd_status check_attention(const nd_model_spec *m, nd_error *err)
{
    ND_TRY(check_range("heads", m->heads, 1, ND_HEADS_MAX, err));
    ND_TRY(check_range("kv_heads", m->kv_heads, 1, m->heads, err));
    if (m->heads % m->kv_heads != 0) {
        return nd_fail(err, ND_EINVAL, "heads %lld is no multiple of kv_heads %lld", (long long)m->heads,
                       (long long)m->kv_heads);
    }
    if (m->attention == ND_ATTENTION_GQA) {
        return check_range("head_dim", m->head_dim, 1, ND_HEAD_DIM_MAX, err);
    }
    ND_TRY(check_range("mla_q_rank", m->mla_q_rank, 0, ND_HIDDEN_MAX, err));
    ND_TRY(check_range("mla_kv_rank", m->mla_kv_rank, 1, ND_HIDDEN_MAX, err));
    ND_TRY(check_range("mla_nope_dim", m->mla_nope_dim, 1, ND_HEAD_DIM_MAX, err));
    ND_TRY(check_range("mla_rope_dim", m->mla_rope_dim, 1, ND_HEAD_DIM_MAX, err));
    return check_range("mla_v_dim", m->mla_v_dim, 1, ND_HEAD_DIM_MAX, err);
}

static nd_status check_ffn(const nd_model_spec *m, bool any_moe, bool any_dense, nd_error *err)
{
    if (any_dense) {
        ND_TRY(check_range("ffn_hidden", m->ffn_hidden, 1, ND_FFN_MAX, err));
    }
    ND_TRY(check_range("experts", m->experts, any_moe ? 1 : 0, ND_EXPERTS_MAX, err));
    if (!any_moe) {
        return ND_OK;
    }
    ND_TRY(check_range("experts_topk", m->experts_topk, 1, m->experts, err));
    ND_TRY(check_range("moe_ffn_hidden", m->moe_ffn_hidden, 1, ND_FFN_MAX, err));
    return check_range("shared_ffn_hidden", m->shared_ffn_hidden, 0, ND_EXPERTS_MAX * ND_FFN_MAX, err);
}

static nd_status check_kinds(const nd_model_spec *m, nd_error *err)
{
    int64_t layers[ND_LAYER_KINDS_MAX] = {0};
    bool any[2] = {false, false};
    ND_TRY(check_range("layer_kinds_count", m->layer_kinds_count, 1, ND_LAYER_KINDS_MAX, err));
    for (int64_t i = 0; i < m->layers; i++) {
        ND_TRY(check_range("kind_of_layer", m->kind_of_layer[i], 0, m->layer_kinds_count - 1, err));
        layers[m->kind_of_layer[i]]++;
    }
    for (int64_t k = 0; k < m->layer_kinds_count; k++) {
        const nd_layer_kind *kind = &m->layer_kinds[k];
        ND_TRY(check_range("window_tokens", kind->window_tokens, 0, ND_POSITIONS_MAX, err));
        if (kind->layers != layers[k]) {
            return nd_fail(err, ND_EINVAL, "layer kind %lld says %lld layers but kind_of_layer has %lld", (long long)k,
                           (long long)kind->layers, (long long)layers[k]);
        }
        any[kind->moe ? 1 : 0] = true;
    }
    return check_ffn(m, any[1], any[0], err);
}

/* In double, since the point is that int64_t products do not overflow afterwards. */
static double estimate_params(const nd_model_spec *m)
{
    double hidden = (double)m->hidden;
    double q_dim = (double)m->heads * (double)(nd_model_qk_dim(m) + nd_model_v_dim(m));
    double attention = 2.0 * q_dim * (hidden + (double)m->mla_q_rank + (double)m->mla_kv_rank) +
                       hidden * ((double)m->mla_q_rank + (double)m->mla_kv_rank);
    double expert = 3.0 * hidden * (double)m->moe_ffn_hidden;
    double shared = 3.0 * hidden * (double)m->shared_ffn_hidden;
    double moe = (double)m->experts * (expert + hidden) + shared;
    double dense = 3.0 * hidden * (double)m->ffn_hidden;
    double tables = (2.0 * (double)m->vocab + (double)m->learned_positions + 2.0 * (double)m->embed_dim) *
                    ((double)m->embed_dim + hidden);
    return (double)m->layers * (attention + moe + dense) + tables;
}

nd_status nd_model_check(const nd_model_spec *model, nd_error *err)
{
    ND_TRY(check_shapes(model, err));
    ND_TRY(check_attention(model, err));
    ND_TRY(check_kinds(model, err));
    double params = estimate_params(model);
    if (params > ND_PARAMS_MAX) {
        return nd_fail(err, ND_EINVAL,
                       "these shapes make up to %.1e parameters, more than the %.0e allowed; check them", params,
                       ND_PARAMS_MAX);
    }
    return ND_OK;
}
