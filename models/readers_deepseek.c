/* DeepSeek V2 and V3: latent attention, shared experts, dense first layers. */
#include "models/reader_internal.h"

typedef struct deepseek_traits {
    int64_t kv_heads, vocab, experts, topk, shared, first_dense, moe_ffn_hidden;
    nd_tp_plan tp_plan;
} deepseek_traits;

static nd_status read_mla(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    spec->attention = ND_ATTENTION_MLA;
    spec->kv_heads = spec->heads; /* the latent is shared, but each head has its own keys and values */
    ND_TRY(nd_reader_nullable(r, "q_lora_rank", NULL, 1, ND_HIDDEN_MAX, 1536, 0, &spec->mla_q_rank));
    ND_TRY(nd_reader_count(r, "kv_lora_rank", NULL, ND_HIDDEN_MAX, 512, &spec->mla_kv_rank));
    ND_TRY(nd_reader_count(r, "qk_nope_head_dim", NULL, ND_HEAD_DIM_MAX, 128, &spec->mla_nope_dim));
    ND_TRY(nd_reader_count(r, "qk_rope_head_dim", NULL, ND_HEAD_DIM_MAX, 64, &spec->mla_rope_dim));
    ND_TRY(nd_reader_count(r, "v_head_dim", NULL, ND_HEAD_DIM_MAX, 128, &spec->mla_v_dim));
    /* Saved files put qk_rope_head_dim under head_dim, so that key is not read. */
    spec->head_dim = spec->mla_nope_dim + spec->mla_rope_dim;
    return ND_OK;
}

static nd_status read_experts(nd_model_reader *r, const deepseek_traits *traits)
{
    nd_model_spec *spec = r->spec;
    nd_json value;
    int64_t first_dense = 0;
    int64_t every = 1;
    int64_t shared = 0;
    if (nd_reader_find(r, "n_routed_experts", "num_local_experts", &value) && nd_json_typeof(value) == ND_JSON_NULL) {
        return ND_OK; /* a dense DeepSeek */
    }
    ND_TRY(nd_reader_experts(r, "n_routed_experts", "num_local_experts", traits->experts, traits->topk));
    ND_TRY(
        nd_reader_count(r, "moe_intermediate_size", NULL, ND_FFN_MAX, traits->moe_ffn_hidden, &spec->moe_ffn_hidden));
    ND_TRY(nd_reader_nullable(r, "n_shared_experts", NULL, 0, ND_EXPERTS_MAX, traits->shared, 0, &shared));
    ND_TRY(nd_reader_nullable(r, "first_k_dense_replace", NULL, 0, ND_POSITIONS_MAX, traits->first_dense, 0,
                              &first_dense));
    ND_TRY(nd_reader_count(r, "moe_layer_freq", NULL, ND_MODEL_LAYERS_MAX, 1, &every));
    spec->shared_ffn_hidden = shared * spec->moe_ffn_hidden;
    for (int64_t i = 0; i < spec->layers; i++) {
        r->layer[i].moe = i >= first_dense && i % every == 0;
    }
    return ND_OK;
}

static nd_status read_deepseek(nd_model_reader *r, const deepseek_traits *traits)
{
    const nd_llama_traits shapes = {.kv_heads = traits->kv_heads,
                                    .vocab = traits->vocab,
                                    .head_dim = 1, /* replaced by read_mla() */
                                    .no_head_dim_key = true,
                                    .tp_plan = traits->tp_plan};
    int64_t extra_layers = 0;
    ND_TRY(nd_reader_llama_like(r, &shapes));
    ND_TRY(read_mla(r));
    ND_TRY(read_experts(r, traits));
    ND_TRY(nd_reader_nullable(r, "num_nextn_predict_layers", NULL, 0, ND_MODEL_LAYERS_MAX, 0, 0, &extra_layers));
    if (extra_layers > 0) {
        nd_reader_note(r->spec, "%lld multi-token-prediction layer%s not counted", (long long)extra_layers,
                       extra_layers == 1 ? "" : "s");
    }
    return ND_OK;
}

nd_status nd_read_deepseek_v2(nd_model_reader *r)
{
    static const deepseek_traits traits = {.experts = 64, .shared = 2, .tp_plan = ND_TP_PLAN_FULL};
    return read_deepseek(r, &traits);
}

nd_status nd_read_deepseek_v3(nd_model_reader *r)
{
    static const deepseek_traits traits = {.vocab = 129280,
                                           .experts = 256,
                                           .topk = 8,
                                           .shared = 1,
                                           .first_dense = 3,
                                           .moe_ffn_hidden = 2048,
                                           .tp_plan = ND_TP_PLAN_MLP_ONLY};
    return read_deepseek(r, &traits);
}
