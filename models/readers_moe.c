/* Mixtral, Qwen-MoE, gpt-oss, Llama-4. */
#include "models/reader_internal.h"

nd_status nd_read_mixtral(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.kv_heads = 8, .tp_plan = ND_TP_PLAN_FULL};
    int64_t window_tokens = 0;
    bool typed = false;
    ND_TRY(nd_reader_llama_like(r, &traits));
    r->spec->moe_ffn_hidden = r->spec->ffn_hidden; /* intermediate_size is the size of an expert */
    ND_TRY(nd_reader_experts(r, "num_local_experts", "num_experts", 8, 2));
    nd_reader_moe_all(r);
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, 0, 0, &window_tokens));
    ND_TRY(nd_reader_layer_types(r, window_tokens, 0, &typed));
    if (!typed) {
        nd_reader_window_all(r, window_tokens);
    }
    return ND_OK;
}

nd_status nd_read_qwen2_moe(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.kv_heads = 16, .no_head_dim_key = true, .tp_plan = ND_TP_PLAN_FULL};
    nd_model_spec *spec = r->spec;
    bool qkv_bias = true;
    ND_TRY(nd_reader_llama_like(r, &traits));
    ND_TRY(nd_reader_flag(r, "qkv_bias", NULL, true, &qkv_bias));
    spec->q_bias = qkv_bias;
    spec->kv_bias = qkv_bias;
    spec->o_bias = false;
    ND_TRY(nd_reader_experts(r, "num_experts", "num_local_experts", 60, 4));
    ND_TRY(nd_reader_count(r, "moe_intermediate_size", NULL, ND_FFN_MAX, 1408, &spec->moe_ffn_hidden));
    ND_TRY(nd_reader_count(r, "shared_expert_intermediate_size", NULL, ND_FFN_MAX, 5632, &spec->shared_ffn_hidden));
    spec->shared_gate = true;
    ND_TRY(nd_reader_sparse_step(r));
    return nd_reader_window_qwen(r);
}

nd_status nd_read_qwen3_moe(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.kv_heads = 4, .qk_norm = ND_QK_NORM_HEAD, .tp_plan = ND_TP_PLAN_FULL};
    ND_TRY(nd_reader_llama_like(r, &traits));
    ND_TRY(nd_reader_experts(r, "num_experts", "num_local_experts", 128, 8));
    ND_TRY(nd_reader_count(r, "moe_intermediate_size", NULL, ND_FFN_MAX, 768, &r->spec->moe_ffn_hidden));
    ND_TRY(nd_reader_sparse_step(r));
    return nd_reader_window_qwen(r);
}

nd_status nd_read_gpt_oss(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.vocab = 201088,
                                           .positions = 131072,
                                           .heads = 64,
                                           .kv_heads = 8,
                                           .head_dim = 64,
                                           .attention_bias = true,
                                           .tp_plan = ND_TP_PLAN_NONE};
    nd_model_spec *spec = r->spec;
    int64_t window_tokens = 0;
    bool typed = false;
    ND_TRY(nd_reader_llama_like(r, &traits));
    spec->moe_ffn_hidden = spec->ffn_hidden;
    spec->attention_sinks = true;
    spec->router_bias = true;
    spec->expert_bias = true;
    ND_TRY(nd_reader_experts(r, "num_local_experts", "num_experts", 128, 4));
    nd_reader_moe_all(r);
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, 128, 0, &window_tokens));
    ND_TRY(nd_reader_layer_types(r, window_tokens, 0, &typed));
    if (!typed) {
        nd_reader_window_period(r, window_tokens, 2);
    }
    return ND_OK;
}

/* An array of `no_rope_layers` says 1 where rotary is used, and those layers attend in chunks. */
static nd_status read_llama4_chunks(nd_model_reader *r, int64_t chunk_tokens)
{
    nd_json list;
    bool listed = nd_json_find(r->object, "no_rope_layers", &list) && nd_json_typeof(list) != ND_JSON_NULL;
    if (listed && nd_json_typeof(list) != ND_JSON_ARRAY) {
        return nd_json_fail(list, r->err, "'no_rope_layers' must be an array of 0 and 1, got %s",
                            nd_json_type_name(nd_json_typeof(list)));
    }
    listed = listed && nd_json_size(list) > 0; /* empty means every fourth layer, as when absent */
    if (listed && (int64_t)nd_json_size(list) != r->spec->layers) {
        return nd_json_fail(list, r->err, "'no_rope_layers' has %zu entries for %lld layers; give one for each layer",
                            nd_json_size(list), (long long)r->spec->layers);
    }
    for (int64_t i = 0; i < r->spec->layers; i++) {
        int64_t rotary = (i + 1) % 4 != 0;
        if (listed) {
            ND_TRY(nd_json_as_int(nd_json_at(list, (size_t)i), "no_rope_layers", 0, 1, &rotary, r->err));
        }
        r->layer[i].window_tokens = rotary != 0 ? chunk_tokens : 0;
        r->layer[i].chunked = rotary != 0 && chunk_tokens > 0;
    }
    return ND_OK;
}

static nd_status read_llama4_experts(nd_model_reader *r)
{
    nd_json list;
    if (!nd_json_find(r->object, "moe_layers", &list) || nd_json_typeof(list) == ND_JSON_NULL) {
        int64_t step = 1;
        ND_TRY(nd_reader_count(r, "interleave_moe_layer_step", NULL, ND_MODEL_LAYERS_MAX, 1, &step));
        for (int64_t i = 0; i < r->spec->layers; i++) {
            r->layer[i].moe = (i + 1) % step == 0;
        }
        return ND_OK;
    }
    if (nd_json_typeof(list) != ND_JSON_ARRAY) {
        return nd_json_fail(list, r->err, "'moe_layers' must be an array of layer numbers, got %s",
                            nd_json_type_name(nd_json_typeof(list)));
    }
    for (size_t i = 0; i < nd_json_size(list); i++) {
        int64_t index = 0;
        ND_TRY(nd_json_as_int(nd_json_at(list, i), "moe_layers", 0, r->spec->layers - 1, &index, r->err));
        r->layer[index].moe = true;
    }
    return ND_OK;
}

nd_status nd_read_llama4(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.hidden = 5120,
                                           .layers = 48,
                                           .heads = 40,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .ffn_hidden = 8192,
                                           .vocab = 202048,
                                           .positions = 131072,
                                           .tp_plan = ND_TP_PLAN_FULL};
    nd_model_spec *spec = r->spec;
    bool qk_norm = true;
    bool typed = false;
    int64_t chunk_tokens = 0;
    ND_TRY(nd_reader_llama_like(r, &traits));
    spec->moe_ffn_hidden = spec->ffn_hidden;
    spec->shared_ffn_hidden = spec->ffn_hidden; /* one shared expert, as large as a routed one */
    ND_TRY(nd_reader_count(r, "intermediate_size_mlp", NULL, ND_FFN_MAX, 16384, &spec->ffn_hidden));
    ND_TRY(nd_reader_flag(r, "use_qk_norm", NULL, true, &qk_norm));
    spec->qk_norm = qk_norm ? ND_QK_NORM_UNWEIGHTED : ND_QK_NORM_NONE;
    ND_TRY(nd_reader_experts(r, "num_local_experts", "num_experts", 16, 1));
    ND_TRY(read_llama4_experts(r));
    ND_TRY(nd_reader_nullable(r, "attention_chunk_size", NULL, 1, ND_POSITIONS_MAX, 8192, 0, &chunk_tokens));
    ND_TRY(nd_reader_layer_types(r, 0, chunk_tokens, &typed));
    return typed ? ND_OK : read_llama4_chunks(r, chunk_tokens);
}
