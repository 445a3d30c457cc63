/* Which layers see a window, which have experts, and the layer kinds that follow. */
#include <string.h>

#include "models/reader_internal.h"

static void set_window(nd_reader_layer *layer, int64_t window_tokens, bool chunked)
{
    layer->window_tokens = window_tokens;
    layer->chunked = chunked && window_tokens > 0;
}

void nd_reader_window_all(nd_model_reader *r, int64_t window_tokens)
{
    for (int64_t i = 0; i < r->spec->layers; i++) {
        set_window(&r->layer[i], window_tokens, false);
    }
}

void nd_reader_window_period(nd_model_reader *r, int64_t window_tokens, int64_t period)
{
    for (int64_t i = 0; i < r->spec->layers; i++) {
        set_window(&r->layer[i], (i + 1) % period == 0 ? 0 : window_tokens, false);
    }
}

static nd_status read_layer_type(nd_model_reader *r, nd_json entry, int64_t index, int64_t window_tokens,
                                 int64_t chunk_tokens)
{
    const char *text = NULL;
    ND_TRY(nd_json_as_string(entry, "layer_types", &text, r->err));
    if (strcmp(text, "full_attention") == 0) {
        set_window(&r->layer[index], 0, false);
    } else if (strcmp(text, "sliding_attention") == 0) {
        set_window(&r->layer[index], window_tokens, false);
    } else if (strcmp(text, "chunked_attention") == 0) {
        set_window(&r->layer[index], chunk_tokens, true);
    } else {
        (void)nd_json_fail(entry, r->err,
                           "layer_types has '%.40s'; supported are full_attention, sliding_attention and "
                           "chunked_attention",
                           text);
        return nd_reader_unsupported(r->err);
    }
    return ND_OK;
}

nd_status nd_reader_layer_types(nd_model_reader *r, int64_t window_tokens, int64_t chunk_tokens, bool *found)
{
    nd_json types;
    *found = false;
    if (!nd_json_find(r->object, "layer_types", &types) || nd_json_typeof(types) == ND_JSON_NULL) {
        return ND_OK;
    }
    if (nd_json_typeof(types) != ND_JSON_ARRAY) {
        return nd_json_fail(types, r->err, "'layer_types' must be an array of strings, got %s",
                            nd_json_type_name(nd_json_typeof(types)));
    }
    if ((int64_t)nd_json_size(types) != r->spec->layers) {
        return nd_json_fail(types, r->err, "'layer_types' has %zu entries for %lld layers; give one for each layer",
                            nd_json_size(types), (long long)r->spec->layers);
    }
    for (int64_t i = 0; i < r->spec->layers; i++) {
        ND_TRY(read_layer_type(r, nd_json_at(types, (size_t)i), i, window_tokens, chunk_tokens));
    }
    *found = true;
    return ND_OK;
}

nd_status nd_reader_window_qwen(nd_model_reader *r)
{
    bool sliding = false;
    int64_t window_tokens = 0;
    int64_t first = 0;
    bool typed = false;
    ND_TRY(nd_reader_flag(r, "use_sliding_window", NULL, false, &sliding));
    ND_TRY(nd_reader_nullable(r, "sliding_window", NULL, 1, ND_POSITIONS_MAX, 4096, 0, &window_tokens));
    ND_TRY(nd_reader_nullable(r, "max_window_layers", NULL, 0, ND_POSITIONS_MAX, 28, 0, &first));
    if (!sliding) {
        window_tokens = 0;
    }
    ND_TRY(nd_reader_layer_types(r, window_tokens, 0, &typed));
    if (!typed) {
        for (int64_t i = 0; i < r->spec->layers; i++) {
            set_window(&r->layer[i], i >= first ? window_tokens : 0, false);
        }
    }
    return ND_OK;
}

void nd_reader_moe_all(nd_model_reader *r)
{
    for (int64_t i = 0; i < r->spec->layers; i++) {
        r->layer[i].moe = true;
    }
}

static nd_status read_mlp_only_layers(nd_model_reader *r)
{
    nd_json list;
    if (!nd_json_find(r->object, "mlp_only_layers", &list) || nd_json_typeof(list) == ND_JSON_NULL) {
        return ND_OK;
    }
    if (nd_json_typeof(list) != ND_JSON_ARRAY) {
        return nd_json_fail(list, r->err, "'mlp_only_layers' must be an array of layer numbers, got %s",
                            nd_json_type_name(nd_json_typeof(list)));
    }
    for (size_t i = 0; i < nd_json_size(list); i++) {
        int64_t index = 0;
        ND_TRY(nd_json_as_int(nd_json_at(list, i), "mlp_only_layers", 0, ND_MODEL_LAYERS_MAX - 1, &index, r->err));
        if (index < r->spec->layers) {
            r->layer[index].moe = false;
        }
    }
    return ND_OK;
}

nd_status nd_reader_sparse_step(nd_model_reader *r)
{
    int64_t step = 1;
    ND_TRY(nd_reader_count(r, "decoder_sparse_step", NULL, ND_POSITIONS_MAX, 1, &step));
    for (int64_t i = 0; i < r->spec->layers; i++) {
        r->layer[i].moe = (i + 1) % step == 0;
    }
    return read_mlp_only_layers(r);
}

nd_status nd_reader_experts(nd_model_reader *r, const char *key, const char *old_key, int64_t experts_missing,
                            int64_t topk_missing)
{
    nd_model_spec *spec = r->spec;
    ND_TRY(nd_reader_count(r, key, old_key, ND_EXPERTS_MAX, experts_missing, &spec->experts));
    ND_TRY(nd_reader_count(r, "num_experts_per_tok", "experts_per_token", ND_EXPERTS_MAX, topk_missing,
                           &spec->experts_topk));
    if (spec->experts_topk > spec->experts) {
        return nd_json_fail(nd_reader_at(r, "num_experts_per_tok", "experts_per_token"), r->err,
                            "num_experts_per_tok is %lld but there are only %lld experts; it must not exceed them",
                            (long long)spec->experts_topk, (long long)spec->experts);
    }
    return ND_OK;
}

static bool same_kind(const nd_layer_kind *kind, const nd_reader_layer *layer)
{
    return kind->moe == layer->moe && kind->chunked == layer->chunked && kind->window_tokens == layer->window_tokens;
}

nd_status nd_reader_finish(nd_model_reader *r)
{
    nd_model_spec *spec = r->spec;
    spec->layer_kinds_count = 0;
    for (int64_t i = 0; i < spec->layers; i++) {
        int64_t k = 0;
        while (k < spec->layer_kinds_count && !same_kind(&spec->layer_kinds[k], &r->layer[i])) {
            k++;
        }
        if (k == spec->layer_kinds_count) {
            if (k == ND_LAYER_KINDS_MAX) {
                return nd_json_fail(r->object, r->err, "the layers are of more than %d kinds", ND_LAYER_KINDS_MAX);
            }
            spec->layer_kinds[k] = (nd_layer_kind){
                .moe = r->layer[i].moe, .window_tokens = r->layer[i].window_tokens, .chunked = r->layer[i].chunked};
            spec->layer_kinds_count++;
        }
        spec->layer_kinds[k].layers++;
        spec->kind_of_layer[i] = (uint8_t)k;
    }
    return ND_OK;
}
