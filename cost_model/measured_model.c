/* The model of a measured row: a built-in when the name is one and the shape agrees, else the shape columns. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/measured_internal.h"

static const int64_t usual_vocab_size = 51200; /* GPT-2's 50,257, padded as Megatron does */

/* "Llama-3-70B-12L": a model cut to 12 layers. The name without that. */
static void base_name(const char *name, char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "%s", name);
    size_t length = strlen(out);
    size_t digits = length > 1 && out[length - 1] == 'L' ? length - 1 : 0;
    while (digits > 0 && isdigit((unsigned char)out[digits - 1])) {
        digits--;
    }
    if (digits > 0 && digits < length - 1 && out[digits - 1] == '-') {
        out[digits - 1] = '\0';
    }
}

/* Layers that the name of a cut model states, or 0. */
static int64_t layers_in_name(const char *name)
{
    char base[ND_MODEL_NAME_MAX];
    base_name(name, base, sizeof base);
    return strlen(base) < strlen(name) ? strtoll(name + strlen(base) + 1, NULL, 10) : 0;
}

/* Cut or stretch a model to `layers`, its leading dense layers reduced to one when it has experts. */
static void set_layers(nd_model_spec *m, int64_t layers)
{
    if (layers <= 0 || layers == m->layers || layers > ND_MODEL_LAYERS_MAX) {
        return;
    }
    bool leading_dense = m->experts > 0 && m->layer_kinds_count > 1 && !m->layer_kinds[m->kind_of_layer[0]].moe;
    uint8_t first = m->kind_of_layer[0];
    for (int64_t i = m->layers; i < layers; i++) {
        m->kind_of_layer[i] = m->kind_of_layer[i - 1];
    }
    if (leading_dense && layers < m->layers) {
        memset(m->kind_of_layer, m->kind_of_layer[m->layers - 1], (size_t)layers);
        m->kind_of_layer[0] = first;
    }
    m->layers = layers;
    for (int64_t kind = 0; kind < m->layer_kinds_count; kind++) {
        m->layer_kinds[kind].layers = 0;
    }
    for (int64_t i = 0; i < layers; i++) {
        m->layer_kinds[m->kind_of_layer[i]].layers++;
    }
}

/* The row's own figures win over those of the built-in. */
static void override_shape(nd_row *row, nd_model_spec *m)
{
    set_layers(m, nd_row_int_to(row, "layers", ND_MODEL_LAYERS_MAX, layers_in_name(nd_row_text(row, "model"))));
    m->vocab = nd_row_int(row, "vocab", m->vocab);
    m->kv_heads = nd_row_int(row, "kv_heads", m->kv_heads);
    m->ffn_hidden = nd_row_int(row, "ffn_hidden", m->ffn_hidden);
    m->experts = nd_row_int(row, "experts", m->experts);
    m->experts_topk = nd_row_int(row, "experts_topk", m->experts_topk);
    m->moe_ffn_hidden = nd_row_int(row, "moe_ffn_hidden", m->moe_ffn_hidden);
    m->tied_embeddings = nd_row_int(row, "tied_embeddings", m->tied_embeddings) != 0;
}

/* True when `name` is a built-in or config.json of the row's width. */
static bool load_by_name(nd_row *row, const char *name, nd_model_spec *out, nd_error *why)
{
    nd_model_spec found;
    if (*name == '\0' || nd_model_load(name, false, &found, why) != ND_OK) {
        return false;
    }
    if (nd_row_int(row, "hidden", found.hidden) != found.hidden ||
        nd_row_int(row, "heads", found.heads) != found.heads ||
        (found.experts == 0 && nd_row_int(row, "experts", 0) > 0)) {
        return false;
    }
    *out = found;
    override_shape(row, out);
    return true;
}

static void one_kind(nd_model_spec *m)
{
    m->layer_kinds_count = 1;
    m->layer_kinds[0] = (nd_layer_kind){.layers = m->layers, .moe = m->experts > 0};
    memset(m->kind_of_layer, 0, sizeof m->kind_of_layer);
}

/* Head counts of GPT-like models when only the width is known: the head size nearest to 128, the usual one. */
static int64_t usual_heads(nd_row *row, int64_t hidden)
{
    int64_t heads = nd_row_int(row, "heads", 0);
    if (heads > 0) {
        return heads;
    }
    nd_row_assume(row, ND_ASSUMED_SHAPE);
    for (int64_t away = 0; away < 64; away++) {
        if (hidden % (128 + away) == 0) {
            return hidden / (128 + away);
        }
        if (hidden % (128 - away) == 0) {
            return hidden / (128 - away);
        }
    }
    return 1;
}

static int64_t usual_ffn(nd_row *row, int64_t hidden)
{
    int64_t ffn = nd_row_int(row, "ffn_hidden", 0);
    if (ffn == 0 && nd_row_int(row, "experts", 0) == 0) {
        nd_row_assume(row, ND_ASSUMED_SHAPE);
        return 4 * hidden;
    }
    return ffn;
}

static int64_t usual_vocab(nd_row *row)
{
    int64_t vocab = nd_row_int(row, "vocab", 0);
    if (vocab > 0) {
        return vocab;
    }
    nd_row_assume(row, ND_ASSUMED_SHAPE);
    return usual_vocab_size;
}

/* Layers that make up the stated parameters, when the source gives a size and a width but no depth. */
static int64_t layers_of_size(nd_row *row)
{
    int64_t layers = nd_row_int(row, "layers", 0);
    double hidden = (double)nd_row_int(row, "hidden", 0);
    double params = nd_row_double(row, "params_b", 0.0) * 1e9;
    if (layers > 0 || params <= 0.0 || hidden <= 0.0 || nd_row_has(row, "ffn_kind", "glu")) {
        return layers;
    }
    nd_row_assume(row, ND_ASSUMED_SHAPE);
    double embedding = hidden * (double)nd_row_int(row, "vocab", usual_vocab_size);
    return (int64_t)lround((params - embedding) / (12.0 * hidden * hidden)); /* 4 of attention, 8 of the feed-forward */
}

static void shape_of_columns(nd_row *row, nd_model_spec *m)
{
    bool gated = nd_row_has(row, "ffn_kind", "glu");
    memset(m, 0, sizeof *m);
    (void)snprintf(m->name, sizeof m->name, "%s", nd_row_text(row, "model"));
    m->hidden = nd_row_int(row, "hidden", 0);
    m->embed_dim = m->hidden;
    m->layers = layers_of_size(row);
    m->vocab = usual_vocab(row);
    m->heads = usual_heads(row, m->hidden);
    m->kv_heads = nd_row_int(row, "kv_heads", m->heads);
    m->head_dim = m->heads > 0 ? m->hidden / m->heads : 0;
    m->ffn = gated ? ND_FFN_SWIGLU : ND_FFN_GELU;
    m->ffn_hidden = usual_ffn(row, m->hidden);
    m->norm = gated ? ND_NORM_RMS : ND_NORM_LAYER;
    m->norms_per_layer = 2;
    m->final_norm = true;
    m->tied_embeddings = nd_row_int(row, "tied_embeddings", gated ? 0 : 1) != 0;
    m->experts = nd_row_int(row, "experts", 0);
    m->experts_topk = nd_row_int(row, "experts_topk", 0);
    m->moe_ffn_hidden = nd_row_int(row, "moe_ffn_hidden", 0);
    one_kind(m);
}

nd_status nd_row_model(nd_row *row, nd_model_spec *out, nd_error *err)
{
    char base[ND_MODEL_NAME_MAX];
    base_name(nd_row_text(row, "model"), base, sizeof base);
    nd_error why = {.status = ND_OK};
    if (load_by_name(row, base, out, &why)) {
        (void)snprintf(out->name, sizeof out->name, "%s", nd_row_text(row, "model"));
        return nd_model_check(out, err);
    }
    if (nd_row_int(row, "hidden", 0) <= 0 || layers_of_size(row) <= 0) {
        bool unknown = why.status == ND_ENOTFOUND || why.status == ND_OK;
        return unknown ? nd_fail(err, ND_EUNSUPPORTED,
                                 "no built-in is called '%.60s' and the row has no hidden and layers", base)
                       : nd_fail(err, ND_EUNSUPPORTED, "%.300s", why.message);
    }
    shape_of_columns(row, out);
    return nd_model_check(out, err);
}
