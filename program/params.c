#include "program/params.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const role_names[ND_ROLE_COUNT] = {
#define ND_ROLE_NAME(name, text) [name] = (text),
    ND_ROLE_LIST(ND_ROLE_NAME)
#undef ND_ROLE_NAME
};

const char *nd_role_name(nd_role role)
{
    assert(role < ND_ROLE_COUNT);
    return role_names[role];
}

typedef struct lister {
    const nd_model_spec *model;
    nd_param *params; /* NULL: only count */
    int32_t count;
    int32_t layer; /* -1: outside the layers */
} lister;

static void name_param(const lister *l, const nd_param *param, const char *name, char *out)
{
    if (param->expert >= 0) {
        (void)snprintf(out, ND_PARAM_NAME_MAX, "model.layers.%d.mlp.experts.%d.%s", l->layer, param->expert, name);
    } else if (l->layer >= 0) {
        (void)snprintf(out, ND_PARAM_NAME_MAX, "model.layers.%d.%s", l->layer, name);
    } else {
        (void)snprintf(out, ND_PARAM_NAME_MAX, "%s", name);
    }
}

static void add(lister *l, nd_param param, const char *name)
{
    if (l->params != NULL) {
        param.layer = l->layer;
        name_param(l, &param, name, param.name);
        l->params[l->count] = param;
    }
    l->count++;
}

/* A matrix: random, with weight decay. */
static void matrix(lister *l, nd_role role, const char *name, int64_t rows, int64_t cols, nd_param_split split,
                   nd_param_partial partial)
{
    add(l,
        (nd_param){.role = role,
                   .expert = -1,
                   .rows = rows,
                   .cols = cols,
                   .split = split,
                   .partial = partial,
                   .init = ND_INIT_NORMAL,
                   .decay = true},
        name);
}

/* A vector: no weight decay. */
static void vector(lister *l, nd_role role, const char *name, int64_t cols, nd_param_split split,
                   nd_param_partial partial, nd_param_init init)
{
    add(l,
        (nd_param){
            .role = role, .expert = -1, .rows = 1, .cols = cols, .split = split, .partial = partial, .init = init},
        name);
}

static void stream_norm(lister *l, nd_role role, const char *weight, const char *bias)
{
    int64_t hidden = l->model->hidden;
    vector(l, role, weight, hidden, ND_PARAM_WHOLE, ND_PARTIAL_SP, ND_INIT_ONES);
    if (l->model->norm == ND_NORM_LAYER) {
        vector(l, (nd_role)(role + 1), bias, hidden, ND_PARAM_WHOLE, ND_PARTIAL_SP, ND_INIT_ZEROS);
    }
}

static void bias(lister *l, bool exists, nd_role role, const char *name, int64_t cols, nd_param_split split)
{
    if (exists) {
        nd_param_partial partial = split == ND_PARAM_WHOLE ? ND_PARTIAL_SP : ND_PARTIAL_NEVER;
        vector(l, role, name, cols, split, partial, ND_INIT_ZEROS);
    }
}

static void projections(lister *l)
{
    const nd_model_spec *m = l->model;
    int64_t q = m->heads * m->head_dim;
    int64_t kv = m->kv_heads * m->head_dim;
    matrix(l, ND_ROLE_Q, "self_attn.q_proj.weight", q, m->hidden, ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    bias(l, m->q_bias, ND_ROLE_Q_BIAS, "self_attn.q_proj.bias", q, ND_PARAM_ROWS);
    matrix(l, ND_ROLE_K, "self_attn.k_proj.weight", kv, m->hidden, ND_PARAM_KV_HEADS, ND_PARTIAL_NEVER);
    bias(l, m->kv_bias, ND_ROLE_K_BIAS, "self_attn.k_proj.bias", kv, ND_PARAM_KV_HEADS);
    matrix(l, ND_ROLE_V, "self_attn.v_proj.weight", kv, m->hidden, ND_PARAM_KV_HEADS, ND_PARTIAL_NEVER);
    bias(l, m->kv_bias, ND_ROLE_V_BIAS, "self_attn.v_proj.bias", kv, ND_PARAM_KV_HEADS);
    if (m->qk_norm == ND_QK_NORM_HEAD) {
        vector(l, ND_ROLE_Q_NORM, "self_attn.q_norm.weight", m->head_dim, ND_PARAM_WHOLE, ND_PARTIAL_ALWAYS,
               ND_INIT_ONES);
        vector(l, ND_ROLE_K_NORM, "self_attn.k_norm.weight", m->head_dim, ND_PARAM_WHOLE, ND_PARTIAL_ALWAYS,
               ND_INIT_ONES);
    }
    matrix(l, ND_ROLE_O, "self_attn.o_proj.weight", m->hidden, q, ND_PARAM_COLS, ND_PARTIAL_NEVER);
    bias(l, m->o_bias, ND_ROLE_O_BIAS, "self_attn.o_proj.bias", m->hidden, ND_PARAM_WHOLE);
}

static void latent_projections(lister *l)
{
    const nd_model_spec *m = l->model;
    int64_t q = m->heads * (m->mla_nope_dim + m->mla_rope_dim);
    if (m->mla_q_rank > 0) {
        matrix(l, ND_ROLE_Q_DOWN, "self_attn.q_a_proj.weight", m->mla_q_rank, m->hidden, ND_PARAM_WHOLE,
               ND_PARTIAL_ALWAYS);
        vector(l, ND_ROLE_Q_DOWN_NORM, "self_attn.q_a_layernorm.weight", m->mla_q_rank, ND_PARAM_WHOLE,
               ND_PARTIAL_ALWAYS, ND_INIT_ONES);
        matrix(l, ND_ROLE_Q, "self_attn.q_b_proj.weight", q, m->mla_q_rank, ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    } else {
        matrix(l, ND_ROLE_Q, "self_attn.q_proj.weight", q, m->hidden, ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    }
    matrix(l, ND_ROLE_KV_DOWN, "self_attn.kv_a_proj_with_mqa.weight", m->mla_kv_rank + m->mla_rope_dim, m->hidden,
           ND_PARAM_WHOLE, ND_PARTIAL_ALWAYS);
    vector(l, ND_ROLE_KV_DOWN_NORM, "self_attn.kv_a_layernorm.weight", m->mla_kv_rank, ND_PARAM_WHOLE,
           ND_PARTIAL_ALWAYS, ND_INIT_ONES);
    matrix(l, ND_ROLE_KV_UP, "self_attn.kv_b_proj.weight", m->heads * (m->mla_nope_dim + m->mla_v_dim), m->mla_kv_rank,
           ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    matrix(l, ND_ROLE_O, "self_attn.o_proj.weight", m->hidden, m->heads * m->mla_v_dim, ND_PARAM_COLS,
           ND_PARTIAL_NEVER);
}

static bool gated(const lister *l)
{
    return nd_ffn_matrices(l->model->ffn) == 3;
}

static void dense_ffn(lister *l)
{
    const nd_model_spec *m = l->model;
    if (gated(l)) {
        matrix(l, ND_ROLE_GATE, "mlp.gate_proj.weight", m->ffn_hidden, m->hidden, ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    }
    matrix(l, ND_ROLE_UP, "mlp.up_proj.weight", m->ffn_hidden, m->hidden, ND_PARAM_ROWS, ND_PARTIAL_NEVER);
    bias(l, m->ffn_bias, ND_ROLE_UP_BIAS, "mlp.up_proj.bias", m->ffn_hidden, ND_PARAM_ROWS);
    matrix(l, ND_ROLE_DOWN, "mlp.down_proj.weight", m->hidden, m->ffn_hidden, ND_PARAM_COLS, ND_PARTIAL_NEVER);
    bias(l, m->ffn_bias, ND_ROLE_DOWN_BIAS, "mlp.down_proj.bias", m->hidden, ND_PARAM_WHOLE);
}

/* By role and then by expert, so that each role's experts follow each other in memory. */
static void routed_experts(lister *l)
{
    static const struct {
        nd_role role;
        const char *name;
    } parts[] = {{ND_ROLE_EXPERT_GATE, "gate_proj.weight"},
                 {ND_ROLE_EXPERT_UP, "up_proj.weight"},
                 {ND_ROLE_EXPERT_DOWN, "down_proj.weight"}};
    const nd_model_spec *m = l->model;
    for (size_t i = gated(l) ? 0 : 1; i < sizeof parts / sizeof parts[0]; i++) {
        bool down = parts[i].role == ND_ROLE_EXPERT_DOWN;
        for (int32_t expert = 0; expert < m->experts; expert++) {
            add(l,
                (nd_param){.role = parts[i].role,
                           .expert = expert,
                           .rows = down ? m->hidden : m->moe_ffn_hidden,
                           .cols = down ? m->moe_ffn_hidden : m->hidden,
                           .split = ND_PARAM_EXPERT,
                           .init = ND_INIT_NORMAL,
                           .decay = true},
                parts[i].name);
        }
    }
}

static void moe_ffn(lister *l)
{
    const nd_model_spec *m = l->model;
    int64_t shared = m->shared_ffn_hidden;
    matrix(l, ND_ROLE_ROUTER, "mlp.gate.weight", m->experts, m->hidden, ND_PARAM_WHOLE, ND_PARTIAL_ALWAYS);
    if (m->router_bias) {
        vector(l, ND_ROLE_ROUTER_BIAS, "mlp.gate.bias", m->experts, ND_PARAM_WHOLE, ND_PARTIAL_ALWAYS, ND_INIT_ZEROS);
    }
    if (shared > 0 && gated(l)) {
        matrix(l, ND_ROLE_SHARED_GATE, "mlp.shared_experts.gate_proj.weight", shared, m->hidden, ND_PARAM_ROWS,
               ND_PARTIAL_NEVER);
    }
    if (shared > 0) {
        matrix(l, ND_ROLE_SHARED_UP, "mlp.shared_experts.up_proj.weight", shared, m->hidden, ND_PARAM_ROWS,
               ND_PARTIAL_NEVER);
        matrix(l, ND_ROLE_SHARED_DOWN, "mlp.shared_experts.down_proj.weight", m->hidden, shared, ND_PARAM_COLS,
               ND_PARTIAL_NEVER);
    }
    if (m->shared_gate) {
        matrix(l, ND_ROLE_SHARED_SCALE, "mlp.shared_expert_gate.weight", 1, m->hidden, ND_PARAM_WHOLE,
               ND_PARTIAL_ALWAYS);
    }
    routed_experts(l);
}

static void layer(lister *l)
{
    const nd_model_spec *m = l->model;
    bool four = m->norms_per_layer == 4;
    stream_norm(l, ND_ROLE_NORM1, "input_layernorm.weight", "input_layernorm.bias");
    if (m->attention == ND_ATTENTION_MLA) {
        latent_projections(l);
    } else {
        projections(l);
    }
    if (four) {
        vector(l, ND_ROLE_NORM1_POST, "post_attention_layernorm.weight", m->hidden, ND_PARAM_WHOLE, ND_PARTIAL_SP,
               ND_INIT_ONES);
    }
    stream_norm(l, ND_ROLE_NORM2, four ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight",
                "post_attention_layernorm.bias");
    if (four) {
        vector(l, ND_ROLE_NORM2_POST, "post_feedforward_layernorm.weight", m->hidden, ND_PARAM_WHOLE, ND_PARTIAL_SP,
               ND_INIT_ONES);
    }
    if (m->layer_kinds[m->kind_of_layer[l->layer]].moe) {
        moe_ffn(l);
    } else {
        dense_ffn(l);
    }
}

static void list(lister *l)
{
    const nd_model_spec *m = l->model;
    l->count = 0;
    l->layer = -1;
    matrix(l, ND_ROLE_EMBED, "model.embed_tokens.weight", m->vocab, m->hidden, ND_PARAM_VOCAB, ND_PARTIAL_NEVER);
    if (m->learned_positions > 0) {
        matrix(l, ND_ROLE_POSITIONS, "model.embed_positions.weight", m->learned_positions, m->hidden, ND_PARAM_WHOLE,
               ND_PARTIAL_SP);
    }
    for (int32_t i = 0; i < m->layers; i++) {
        l->layer = i;
        layer(l);
    }
    l->layer = -1;
    stream_norm(l, ND_ROLE_FINAL_NORM, "model.norm.weight", "model.norm.bias");
    if (!m->tied_embeddings) {
        matrix(l, ND_ROLE_HEAD, "lm_head.weight", m->vocab, m->hidden, ND_PARAM_VOCAB, ND_PARTIAL_NEVER);
    }
}

/* The part of the model that no program exists for, or NULL. */
static const char *missing_part(const nd_model_spec *m)
{
    bool latent_bias = m->attention == ND_ATTENTION_MLA && (m->q_bias || m->kv_bias || m->o_bias);
    return m->attention_sinks                                    ? "attention sinks"
           : m->expert_bias                                      ? "biases of experts"
           : m->embed_dim != m->hidden                           ? "an embedding narrower than the model"
           : m->norms_per_layer != 2 && m->norms_per_layer != 4  ? "one norm for attention and feed-forward"
           : m->norms_per_layer == 4 && m->norm == ND_NORM_LAYER ? "four layer norms with biases"
           : m->qk_norm == ND_QK_NORM_FULL                       ? "a norm over whole queries and keys"
           : m->ffn_bias && nd_ffn_matrices(m->ffn) == 3         ? "biases of a gated feed-forward"
           : !m->final_norm                                      ? "a model without a final norm"
           : latent_bias                                         ? "biases in latent attention"
                                                                 : NULL;
}

nd_status nd_param_list_create(const nd_model_spec *model, nd_param_list *out, nd_error *err)
{
    const char *missing = missing_part(model);
    if (missing != NULL) {
        return nd_fail(err, ND_EUNSUPPORTED, "%s cannot be executed, only estimated: there is no kernel for %s",
                       model->name, missing);
    }
    lister l = {.model = model};
    list(&l);
    l.params = calloc((size_t)l.count, sizeof *l.params);
    if (l.params == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the list of %d parameters", l.count);
    }
    list(&l);
    *out = (nd_param_list){.count = l.count, .params = l.params};
    return ND_OK;
}

void nd_param_list_free(nd_param_list *params)
{
    if (params != NULL) {
        free(params->params);
        *params = (nd_param_list){0};
    }
}
