/* Model FLOPs (docs/MODEL.md, "FLOPs"). */
#include "models/model_spec.h"

/* Sum of 1 + 2 + ... + n in double: exact to 2^53, and no overflow beyond. */
static double triangle(int64_t n)
{
    return 0.5 * (double)n * ((double)n + 1.0);
}

double nd_attention_pairs(int64_t seq_len_tokens, int64_t window_tokens, nd_flops_convention convention)
{
    if (convention == ND_FLOPS_FULL) {
        return (double)seq_len_tokens * (double)seq_len_tokens;
    }
    if (window_tokens <= 0 || window_tokens >= seq_len_tokens) {
        return triangle(seq_len_tokens);
    }
    return triangle(window_tokens) + (double)(seq_len_tokens - window_tokens) * (double)window_tokens;
}

double nd_layer_kind_pairs(const nd_layer_kind *kind, int64_t seq_len_tokens, nd_flops_convention convention)
{
    if (convention == ND_FLOPS_FULL || !kind->chunked || kind->window_tokens <= 0) {
        return nd_attention_pairs(seq_len_tokens, kind->window_tokens, convention);
    }
    int64_t whole = seq_len_tokens / kind->window_tokens;
    int64_t rest = seq_len_tokens % kind->window_tokens;
    return (double)whole * triangle(kind->window_tokens) + triangle(rest);
}

double nd_model_flops_per_token(const nd_model_spec *model, int64_t seq_len_tokens, nd_flops_convention convention)
{
    nd_param_counts n = nd_model_params(model);
    /* Lookups multiply nothing; a tied matrix stays in, as the head. */
    int64_t lookups = (model->tied_embeddings ? 0 : n.input_embedding) + model->learned_positions * model->hidden;
    double flops = 6.0 * (double)(n.active - lookups);
    double dims = (double)model->heads * (double)(nd_model_qk_dim(model) + nd_model_v_dim(model));
    for (int64_t k = 0; k < model->layer_kinds_count; k++) {
        const nd_layer_kind *kind = &model->layer_kinds[k];
        double keys = nd_layer_kind_pairs(kind, seq_len_tokens, convention) / (double)seq_len_tokens;
        flops += 6.0 * (double)kind->layers * keys * dims; /* 2 per multiply-add, x3 for forward and backward */
    }
    return flops;
}
