/* GPT-2, GPT-NeoX, OPT, Falcon: LayerNorm and a feed-forward without gate. */
#include "models/reader_internal.h"

/* What the four have in common; the caller has read hidden and heads. */
static nd_status set_classic(nd_model_reader *r, const char *heads_key, const char *old_heads_key, nd_tp_plan tp_plan)
{
    nd_model_spec *spec = r->spec;
    spec->attention = ND_ATTENTION_GQA;
    spec->kv_heads = spec->heads;
    spec->ffn = ND_FFN_GELU;
    spec->norm = ND_NORM_LAYER;
    spec->norms_per_layer = 2;
    spec->final_norm = true;
    spec->embed_dim = spec->hidden;
    spec->tp_plan = tp_plan;
    if (spec->hidden % spec->heads != 0) {
        return nd_json_fail(nd_reader_at(r, heads_key, old_heads_key), r->err,
                            "the hidden size %lld is no multiple of the %lld attention heads", (long long)spec->hidden,
                            (long long)spec->heads);
    }
    spec->head_dim = spec->hidden / spec->heads;
    return ND_OK;
}

static void set_biases(nd_model_spec *spec, bool attention, bool ffn)
{
    spec->q_bias = attention;
    spec->kv_bias = attention;
    spec->o_bias = attention;
    spec->ffn_bias = ffn;
}

nd_status nd_read_gpt2(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    bool cross_attention = false;
    ND_TRY(nd_reader_count(r, "n_embd", "hidden_size", ND_HIDDEN_MAX, 0, &spec->hidden));
    ND_TRY(nd_reader_count(r, "n_layer", "num_hidden_layers", ND_MODEL_LAYERS_MAX, 0, &spec->layers));
    ND_TRY(nd_reader_count(r, "n_head", "num_attention_heads", ND_HEADS_MAX, 0, &spec->heads));
    ND_TRY(nd_reader_count(r, "vocab_size", NULL, ND_VOCAB_MAX, 50257, &spec->vocab));
    ND_TRY(
        nd_reader_count(r, "n_positions", "max_position_embeddings", ND_POSITIONS_MAX, 1024, &spec->learned_positions));
    ND_TRY(set_classic(r, "n_head", "num_attention_heads", ND_TP_PLAN_NONE));
    ND_TRY(nd_reader_nullable(r, "n_inner", "intermediate_size", 1, ND_FFN_MAX, 4 * spec->hidden, 4 * spec->hidden,
                              &spec->ffn_hidden));
    ND_TRY(nd_reader_flag(r, "add_cross_attention", NULL, false, &cross_attention));
    if (cross_attention) {
        (void)nd_json_fail(nd_reader_at(r, "add_cross_attention", NULL), r->err,
                           "add_cross_attention is true: only decoder-only models are planned");
        return nd_reader_unsupported(r->err);
    }
    spec->max_seq_len_tokens = spec->learned_positions;
    set_biases(spec, true, true);
    return nd_reader_tied(r, true);
}

nd_status nd_read_gpt_neox(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    bool attention_bias = true;
    ND_TRY(nd_reader_count(r, "hidden_size", NULL, ND_HIDDEN_MAX, 0, &spec->hidden));
    ND_TRY(nd_reader_count(r, "num_hidden_layers", NULL, ND_MODEL_LAYERS_MAX, 0, &spec->layers));
    ND_TRY(nd_reader_count(r, "num_attention_heads", NULL, ND_HEADS_MAX, 0, &spec->heads));
    ND_TRY(nd_reader_count(r, "vocab_size", NULL, ND_VOCAB_MAX, 50432, &spec->vocab));
    ND_TRY(nd_reader_count(r, "intermediate_size", NULL, ND_FFN_MAX, 0, &spec->ffn_hidden));
    ND_TRY(nd_reader_nullable(r, "max_position_embeddings", NULL, 1, ND_POSITIONS_MAX, 2048, 0,
                              &spec->max_seq_len_tokens));
    ND_TRY(nd_reader_flag(r, "attention_bias", NULL, true, &attention_bias));
    ND_TRY(set_classic(r, "num_attention_heads", NULL, ND_TP_PLAN_FULL));
    set_biases(spec, attention_bias, true);
    return nd_reader_tied(r, false);
}

/* OPT-350M normalises after the residual and embeds in a narrower space, with a projection on either side. */
static nd_status read_opt_variants(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    bool norm_before = true;
    bool no_final_norm = false;
    bool weighted_norms = true;
    bool biases = true;
    ND_TRY(nd_reader_nullable(r, "word_embed_proj_dim", NULL, 1, ND_HIDDEN_MAX, spec->hidden, spec->hidden,
                              &spec->embed_dim));
    ND_TRY(nd_reader_flag(r, "do_layer_norm_before", NULL, true, &norm_before));
    ND_TRY(nd_reader_flag(r, "_remove_final_layer_norm", NULL, false, &no_final_norm));
    ND_TRY(nd_reader_flag(r, "layer_norm_elementwise_affine", NULL, true, &weighted_norms));
    ND_TRY(nd_reader_flag(r, "enable_bias", NULL, true, &biases));
    if (!weighted_norms) {
        (void)nd_json_fail(nd_reader_at(r, "layer_norm_elementwise_affine", NULL), r->err,
                           "layer_norm_elementwise_affine is false: norms without weights are not supported in opt");
        return nd_reader_unsupported(r->err);
    }
    spec->final_norm = norm_before && !no_final_norm;
    set_biases(spec, biases, biases);
    return ND_OK;
}

nd_status nd_read_opt(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    ND_TRY(nd_reader_count(r, "hidden_size", "d_model", ND_HIDDEN_MAX, 0, &spec->hidden));
    ND_TRY(nd_reader_count(r, "num_hidden_layers", NULL, ND_MODEL_LAYERS_MAX, 0, &spec->layers));
    ND_TRY(nd_reader_count(r, "num_attention_heads", NULL, ND_HEADS_MAX, 0, &spec->heads));
    ND_TRY(nd_reader_count(r, "vocab_size", NULL, ND_VOCAB_MAX, 50272, &spec->vocab));
    ND_TRY(nd_reader_count(r, "ffn_dim", "intermediate_size", ND_FFN_MAX, 0, &spec->ffn_hidden));
    ND_TRY(nd_reader_count(r, "max_position_embeddings", NULL, ND_POSITIONS_MAX, 2048, &spec->max_seq_len_tokens));
    ND_TRY(set_classic(r, "num_attention_heads", NULL, ND_TP_PLAN_NONE));
    spec->learned_positions = spec->max_seq_len_tokens + 2; /* the table starts with two unused rows */
    ND_TRY(read_opt_variants(r));
    return nd_reader_tied(r, true);
}

static nd_status read_falcon_kv_heads(nd_model_reader *r, bool new_architecture)
{
    nd_model_spec *spec = r->spec;
    bool multi_query = true;
    ND_TRY(nd_reader_flag(r, "multi_query", NULL, true, &multi_query));
    ND_TRY(
        nd_reader_nullable(r, "num_kv_heads", "n_head_kv", 1, ND_HEADS_MAX, spec->heads, spec->heads, &spec->kv_heads));
    if (multi_query && !new_architecture) {
        spec->kv_heads = 1;
    }
    if (spec->heads % spec->kv_heads != 0) {
        return nd_json_fail(nd_reader_at(r, "num_kv_heads", "n_head_kv"), r->err,
                            "num_attention_heads %lld is no multiple of num_kv_heads %lld", (long long)spec->heads,
                            (long long)spec->kv_heads);
    }
    return ND_OK;
}

/* One norm feeds both branches of the parallel block, unless the new architecture asks for two. */
static nd_status read_falcon_norms(nd_model_reader *r, bool new_architecture)
{
    bool parallel = true;
    int64_t parallel_norms = 2;
    ND_TRY(nd_reader_flag(r, "parallel_attn", NULL, true, &parallel));
    ND_TRY(nd_reader_nullable(r, "num_ln_in_parallel_attn", NULL, 1, 2, 2, 2, &parallel_norms));
    if (new_architecture) {
        r->spec->norms_per_layer = parallel_norms;
    } else {
        r->spec->norms_per_layer = parallel ? 1 : 2;
    }
    return ND_OK;
}

nd_status nd_read_falcon(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    bool new_architecture = false;
    bool bias = false;
    ND_TRY(nd_reader_count(r, "hidden_size", "n_embed", ND_HIDDEN_MAX, 0, &spec->hidden));
    ND_TRY(nd_reader_count(r, "num_hidden_layers", "n_layer", ND_MODEL_LAYERS_MAX, 0, &spec->layers));
    ND_TRY(nd_reader_count(r, "num_attention_heads", "n_head", ND_HEADS_MAX, 0, &spec->heads));
    ND_TRY(nd_reader_count(r, "vocab_size", NULL, ND_VOCAB_MAX, 65024, &spec->vocab));
    ND_TRY(set_classic(r, "num_attention_heads", "n_head", ND_TP_PLAN_NONE));
    ND_TRY(nd_reader_nullable(r, "ffn_hidden_size", NULL, 1, ND_FFN_MAX, 4 * spec->hidden, 4 * spec->hidden,
                              &spec->ffn_hidden));
    ND_TRY(nd_reader_nullable(r, "max_position_embeddings", NULL, 1, ND_POSITIONS_MAX, 2048, 0,
                              &spec->max_seq_len_tokens));
    ND_TRY(nd_reader_flag(r, "new_decoder_architecture", NULL, false, &new_architecture));
    ND_TRY(nd_reader_flag(r, "bias", NULL, false, &bias));
    set_biases(spec, bias, bias);
    ND_TRY(read_falcon_kv_heads(r, new_architecture));
    ND_TRY(read_falcon_norms(r, new_architecture));
    return nd_reader_tied(r, true);
}
