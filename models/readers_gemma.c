/* Gemma 2 and 3: four norms a layer, tied, windows in most layers. */
#include "models/reader_internal.h"

static nd_status read_gemma(nd_model_reader *r, const nd_llama_traits *traits, int64_t period)
{
    int64_t window_tokens = 0;
    bool typed = false;
    ND_TRY(nd_reader_llama_like(r, traits));
    r->spec->norms_per_layer = 4;
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, 4096, 0, &window_tokens));
    ND_TRY(nd_reader_layer_types(r, window_tokens, 0, &typed));
    if (!typed) {
        ND_TRY(nd_reader_count(r, "sliding_window_pattern", "_sliding_window_pattern", ND_MODEL_LAYERS_MAX, period,
                               &period));
        nd_reader_window_period(r, window_tokens, period);
    }
    nd_json activation;
    if (!nd_reader_find(r, "hidden_activation", "hidden_act", &activation)) {
        r->spec->ffn = ND_FFN_GEGLU;
    }
    return ND_OK;
}

nd_status nd_read_gemma2(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.hidden = 2304,
                                           .ffn_hidden = 9216,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .vocab = 256000,
                                           .positions = 8192,
                                           .tied = true,
                                           .tp_plan = ND_TP_PLAN_FULL};
    return read_gemma(r, &traits, 2);
}

/* Hub files leave out what equals the class default, so every shape has one here. */
nd_status nd_read_gemma3(nd_model_reader *r)
{
    static const nd_llama_traits traits = {.hidden = 2304,
                                           .ffn_hidden = 9216,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .vocab = 262208,
                                           .positions = 131072,
                                           .tied = true,
                                           .qk_norm = ND_QK_NORM_HEAD,
                                           .tp_plan = ND_TP_PLAN_FULL};
    return read_gemma(r, &traits, 6);
}
