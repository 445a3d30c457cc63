/* Exact parameter counts (docs/MODEL.md, "Parameters"). */
#include "models/model_spec.h"

int64_t nd_ffn_matrices(nd_ffn_kind kind)
{
    return kind == ND_FFN_GELU ? 2 : 3;
}

int64_t nd_model_qk_dim(const nd_model_spec *model)
{
    return model->attention == ND_ATTENTION_MLA ? model->mla_nope_dim + model->mla_rope_dim : model->head_dim;
}

int64_t nd_model_v_dim(const nd_model_spec *model)
{
    return model->attention == ND_ATTENTION_MLA ? model->mla_v_dim : model->head_dim;
}

static int64_t gqa_params(const nd_model_spec *m)
{
    int64_t q_dim = m->heads * m->head_dim;
    int64_t kv_dim = m->kv_heads * m->head_dim;
    int64_t params = m->hidden * q_dim + 2 * m->hidden * kv_dim + q_dim * m->hidden;
    params += m->q_bias ? q_dim : 0;
    params += m->kv_bias ? 2 * kv_dim : 0;
    params += m->o_bias ? m->hidden : 0;
    params += m->qk_norm == ND_QK_NORM_HEAD ? 2 * m->head_dim : 0;
    params += m->qk_norm == ND_QK_NORM_FULL ? q_dim + kv_dim : 0;
    return params;
}

/* The compressed query and key-value have a norm each; their biases, if any, are on the compressing projections. */
static int64_t mla_params(const nd_model_spec *m)
{
    int64_t qk_dim = m->mla_nope_dim + m->mla_rope_dim;
    int64_t q_dim = m->heads * qk_dim;
    int64_t kv_down = m->mla_kv_rank + m->mla_rope_dim;
    int64_t q =
        m->mla_q_rank > 0 ? m->hidden * m->mla_q_rank + m->mla_q_rank + m->mla_q_rank * q_dim : m->hidden * q_dim;
    int64_t kv = m->hidden * kv_down + m->mla_kv_rank + m->mla_kv_rank * m->heads * (m->mla_nope_dim + m->mla_v_dim);
    int64_t o = m->heads * m->mla_v_dim * m->hidden;
    int64_t biases = (m->q_bias ? m->mla_q_rank : 0) + (m->kv_bias ? kv_down : 0) + (m->o_bias ? m->hidden : 0);
    return q + kv + o + biases;
}

static int64_t ffn_params(const nd_model_spec *m, int64_t ffn_hidden, bool bias)
{
    int64_t matrices = nd_ffn_matrices(m->ffn);
    return matrices * m->hidden * ffn_hidden + (bias ? (matrices - 1) * ffn_hidden + m->hidden : 0);
}

static int64_t norm_params(const nd_model_spec *m)
{
    return m->norm == ND_NORM_LAYER ? 2 * m->hidden : m->hidden;
}

static int64_t moe_layers(const nd_model_spec *m)
{
    int64_t layers = 0;
    for (int64_t k = 0; k < m->layer_kinds_count; k++) {
        layers += m->layer_kinds[k].moe ? m->layer_kinds[k].layers : 0;
    }
    return layers;
}

static void count_moe(const nd_model_spec *m, nd_param_counts *n)
{
    n->moe_layers = moe_layers(m);
    if (n->moe_layers == 0) {
        return;
    }
    n->router_layer = m->hidden * m->experts + (m->router_bias ? m->experts : 0) + (m->shared_gate ? m->hidden : 0);
    n->shared_layer = m->shared_ffn_hidden > 0 ? ffn_params(m, m->shared_ffn_hidden, false) : 0;
    n->expert = ffn_params(m, m->moe_ffn_hidden, m->expert_bias);
    n->experts_total = n->moe_layers * m->experts * n->expert;
}

nd_param_counts nd_model_params(const nd_model_spec *model)
{
    nd_param_counts n = {0};
    int64_t projections = model->embed_dim != model->hidden ? 2 * model->embed_dim * model->hidden : 0;
    n.input_embedding = model->vocab * model->embed_dim;
    n.positions = model->learned_positions * model->hidden + projections;
    n.head = model->tied_embeddings ? 0 : n.input_embedding;
    n.final_norm = model->final_norm ? norm_params(model) : 0;
    n.attention_layer = model->attention == ND_ATTENTION_MLA ? mla_params(model) : gqa_params(model);
    n.attention_layer += model->attention_sinks ? model->heads : 0;
    n.norms_layer = model->norms_per_layer * norm_params(model);
    count_moe(model, &n);
    int64_t dense_layers = model->layers - n.moe_layers;
    n.dense_ffn_layer = dense_layers > 0 ? ffn_params(model, model->ffn_hidden, model->ffn_bias) : 0;
    n.total = n.input_embedding + n.positions + n.head + n.final_norm +
              model->layers * (n.attention_layer + n.norms_layer) + dense_layers * n.dense_ffn_layer +
              n.moe_layers * (n.router_layer + n.shared_layer) + n.experts_total;
    n.active = n.total - n.moe_layers * (model->experts - model->experts_topk) * n.expert;
    return n;
}
