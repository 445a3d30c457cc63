/* Llama and the families that differ from it by defaults, biases and norms. */
#include <string.h>

#include "models/reader_internal.h"

static nd_status read_shapes(nd_model_reader *r, const nd_llama_traits *traits)
{
    nd_model_spec *spec = r->spec;
    ND_TRY(nd_reader_count(r, "hidden_size", NULL, ND_HIDDEN_MAX, traits->hidden, &spec->hidden));
    ND_TRY(nd_reader_count(r, "num_hidden_layers", NULL, ND_MODEL_LAYERS_MAX, traits->layers, &spec->layers));
    ND_TRY(nd_reader_count(r, "vocab_size", NULL, ND_VOCAB_MAX, traits->vocab, &spec->vocab));
    ND_TRY(nd_reader_count(r, "num_attention_heads", NULL, ND_HEADS_MAX, traits->heads, &spec->heads));
    if (traits->ffn_hidden >= 0) {
        ND_TRY(nd_reader_count(r, "intermediate_size", NULL, ND_FFN_MAX, traits->ffn_hidden, &spec->ffn_hidden));
    }
    spec->embed_dim = spec->hidden;
    return nd_reader_nullable(r, "max_position_embeddings", NULL, 1, ND_POSITIONS_MAX, traits->positions, 0,
                              &spec->max_seq_len_tokens);
}

static nd_status read_heads(nd_model_reader *r, const nd_llama_traits *traits)
{
    nd_model_spec *spec = r->spec;
    int64_t kv_missing = traits->kv_heads > 0 ? traits->kv_heads : spec->heads;
    ND_TRY(
        nd_reader_nullable(r, "num_key_value_heads", NULL, 1, ND_HEADS_MAX, kv_missing, spec->heads, &spec->kv_heads));
    if (spec->heads % spec->kv_heads != 0) {
        return nd_json_fail(nd_reader_at(r, "num_key_value_heads", NULL), r->err,
                            "num_attention_heads %lld is no multiple of num_key_value_heads %lld",
                            (long long)spec->heads, (long long)spec->kv_heads);
    }
    if (!traits->no_head_dim_key) {
        ND_TRY(nd_reader_nullable(r, "head_dim", NULL, 1, ND_HEAD_DIM_MAX, traits->head_dim, 0, &spec->head_dim));
    }
    if (spec->head_dim == 0) {
        if (spec->hidden % spec->heads != 0) {
            return nd_json_fail(nd_reader_at(r, "num_attention_heads", NULL), r->err,
                                "hidden_size %lld is no multiple of num_attention_heads %lld and there is no head_dim",
                                (long long)spec->hidden, (long long)spec->heads);
        }
        spec->head_dim = spec->hidden / spec->heads;
    }
    return ND_OK;
}

static nd_status read_biases(nd_model_reader *r, const nd_llama_traits *traits)
{
    nd_model_spec *spec = r->spec;
    bool attention_bias = traits->attention_bias;
    ND_TRY(nd_reader_flag(r, "attention_bias", NULL, traits->attention_bias, &attention_bias));
    spec->q_bias = attention_bias || traits->qkv_bias;
    spec->kv_bias = spec->q_bias;
    spec->o_bias = attention_bias && !traits->qkv_bias;
    if (traits->mlp_bias_key) {
        ND_TRY(nd_reader_flag(r, "mlp_bias", NULL, false, &spec->ffn_bias));
    }
    return ND_OK;
}

static nd_status read_activation(nd_model_reader *r)
{
    nd_json value;
    const char *text = "silu";
    if (nd_reader_find(r, "hidden_act", "hidden_activation", &value) && nd_json_typeof(value) != ND_JSON_NULL) {
        ND_TRY(nd_json_as_string(value, "hidden_act", &text, r->err));
    }
    r->spec->ffn = strncmp(text, "gelu", 4) == 0 ? ND_FFN_GEGLU : ND_FFN_SWIGLU;
    return ND_OK;
}

nd_status nd_reader_llama_like(nd_model_reader *r, const nd_llama_traits *traits)
{
    nd_model_spec *spec = r->spec;
    spec->attention = ND_ATTENTION_GQA;
    spec->norm = ND_NORM_RMS;
    spec->norms_per_layer = 2;
    spec->final_norm = true;
    spec->qk_norm = traits->qk_norm;
    spec->tp_plan = traits->tp_plan;
    ND_TRY(read_shapes(r, traits));
    ND_TRY(read_heads(r, traits));
    ND_TRY(read_biases(r, traits));
    ND_TRY(read_activation(r));
    return nd_reader_tied(r, traits->tied);
}

nd_status nd_read_llama(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.mlp_bias_key = true, .tp_plan = ND_TP_PLAN_FULL};
    return nd_reader_llama_like(r, &traits);
}

/* A window on every layer, unless layer_types says otherwise. */
static nd_status read_window(nd_model_reader *r, int64_t missing, int64_t period)
{
    int64_t window_tokens = 0;
    bool typed = false;
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, missing, 0, &window_tokens));
    ND_TRY(nd_reader_layer_types(r, window_tokens, 0, &typed));
    if (!typed && period > 0) {
        nd_reader_window_period(r, window_tokens, period);
    } else if (!typed) {
        nd_reader_window_all(r, window_tokens);
    }
    return ND_OK;
}

nd_status nd_read_mistral(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.kv_heads = 8, .tp_plan = ND_TP_PLAN_FULL};
    ND_TRY(nd_reader_llama_like(r, &traits));
    return read_window(r, 4096, 0);
}

nd_status nd_read_qwen2(nd_model_reader *r)
{
    static const nd_llama_traits traits = {
        .kv_heads = 32, .qkv_bias = true, .no_head_dim_key = true, .tp_plan = ND_TP_PLAN_FULL};
    ND_TRY(nd_reader_llama_like(r, &traits));
    return nd_reader_window_qwen(r);
}

nd_status nd_read_qwen3(nd_model_reader *r)
{
    static const nd_llama_traits traits = {
        .kv_heads = 32, .head_dim = 128, .qk_norm = ND_QK_NORM_HEAD, .tp_plan = ND_TP_PLAN_FULL};
    ND_TRY(nd_reader_llama_like(r, &traits));
    return nd_reader_window_qwen(r);
}

nd_status nd_read_phi3(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.vocab = 32064, .no_head_dim_key = true, .tp_plan = ND_TP_PLAN_GATHERED};
    ND_TRY(nd_reader_llama_like(r, &traits));
    return read_window(r, 0, 0);
}

nd_status nd_read_granite(nd_model_reader *r)
{
    static const nd_llama_traits traits = {
        .vocab = 32000, .positions = 2048, .mlp_bias_key = true, .no_head_dim_key = true, .tp_plan = ND_TP_PLAN_FULL};
    return nd_reader_llama_like(r, &traits);
}

nd_status nd_read_olmo2(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.vocab = 50304,
                                           .positions = 2048,
                                           .no_head_dim_key = true,
                                           .qk_norm = ND_QK_NORM_FULL,
                                           .tp_plan = ND_TP_PLAN_GATHERED};
    return nd_reader_llama_like(r, &traits);
}

nd_status nd_read_olmo3(nd_model_reader *r)
{
    ND_TRY(nd_read_olmo2(r));
    return read_window(r, 4096, 4);
}

nd_status nd_read_smollm3(nd_model_reader *r)
{
    static const nd_llama_traits traits = {
        .vocab = 128256, .kv_heads = 4, .tied = true, .mlp_bias_key = true, .tp_plan = ND_TP_PLAN_FULL};
    bool sliding = false;
    bool typed = false;
    int64_t window_tokens = 0;
    ND_TRY(nd_reader_llama_like(r, &traits));
    ND_TRY(nd_reader_flag(r, "use_sliding_window", NULL, false, &sliding));
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, 0, 0, &window_tokens));
    ND_TRY(nd_reader_layer_types(r, sliding ? window_tokens : 0, 0, &typed));
    if (!typed && sliding && window_tokens > 0) {
        (void)nd_json_fail(nd_reader_at(r, "use_sliding_window", NULL), r->err,
                           "use_sliding_window needs layer_types in smollm3: say which layers slide");
        return nd_reader_unsupported(r->err);
    }
    return ND_OK;
}
