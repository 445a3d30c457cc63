/* One transformer layer forwards and backwards, with what it keeps in between. */
#include <string.h>

#include "program/builder_internal.h"

static nd_layer_of layer_of(const nd_builder *b, int32_t layer)
{
    const nd_layer_kind *kind = &b->model->layer_kinds[b->model->kind_of_layer[layer]];
    return (nd_layer_of){.layer = layer,
                         .unit = nd_unit_find(b, ND_UNIT_LAYER, layer),
                         .experts_unit = kind->moe ? nd_unit_find(b, ND_UNIT_EXPERTS, layer) : -1,
                         .kind = kind};
}

static nd_recompute layer_recompute(const nd_layout *layout, int32_t layer)
{
    if (layout->recompute != ND_RECOMPUTE_EVERY) {
        return layout->recompute;
    }
    return layer % layout->recompute_every == 0 ? ND_RECOMPUTE_FULL : ND_RECOMPUTE_NONE;
}

static nd_norm_of stream_norm(const nd_builder *b, const nd_layer_of *at, nd_role role, nd_role bias)
{
    return (nd_norm_of){.unit = at->unit,
                        .role = role,
                        .bias = bias,
                        .rows = b->stream_rows,
                        .cols = b->model->hidden,
                        .tag = nd_role_name(role)};
}

static nd_norm_of norm1_of(const nd_builder *b, const nd_layer_of *at)
{
    return stream_norm(b, at, ND_ROLE_NORM1, ND_ROLE_NORM1_BIAS);
}

static nd_norm_of norm2_of(const nd_builder *b, const nd_layer_of *at)
{
    return stream_norm(b, at, ND_ROLE_NORM2, ND_ROLE_NORM2_BIAS);
}

static int64_t stream_elements(const nd_builder *b)
{
    return b->stream_rows * b->model->hidden;
}

/* y (taken over) with its bias, normed where the family does so, plus the residual. */
static int32_t close_half(nd_builder *b, const nd_layer_of *at, int32_t residual, int32_t y, nd_role bias, nd_role post,
                          int32_t *kept_out, int32_t *kept_stats)
{
    nd_bias(b, nd_whole(y), b->stream_rows, at->unit, bias, b->model->hidden);
    if (nd_unit_has(b, at->unit, post)) {
        nd_norm_of norm = stream_norm(b, at, post, ND_ROLE_COUNT);
        *kept_out = y;
        y = nd_norm(b, *kept_out, &norm, kept_stats);
    }
    nd_emit_add(b, nd_whole(residual), nd_whole(y), nd_whole(y), stream_elements(b), "residual");
    return y;
}

static int32_t attention_half(nd_builder *b, const nd_layer_of *at, nd_kept_layer *kept)
{
    nd_norm_of norm1 = norm1_of(b, at);
    kept->norm1 = nd_norm(b, kept->x, &norm1, &kept->stats1);
    int32_t inner = nd_region_enter(b, kept->norm1, "enter attention");
    int32_t y = nd_build_attention(b, at, inner, &kept->attention);
    nd_release(b, &inner);
    nd_region_leave(b, &y, "leave attention");
    return close_half(b, at, kept->x, y, ND_ROLE_O_BIAS, ND_ROLE_NORM1_POST, &kept->attention.out,
                      &kept->attention.out_stats);
}

/* Everything of the forward pass that the backward pass reads; with `whole` the layer's result too. */
static int32_t forward(nd_builder *b, const nd_layer_of *at, bool whole, nd_kept_layer *kept)
{
    kept->x_mid = attention_half(b, at, kept);
    nd_norm_of norm2 = norm2_of(b, at);
    kept->norm2 = nd_norm(b, kept->x_mid, &norm2, &kept->stats2);
    bool needs_out = whole || nd_unit_has(b, at->unit, ND_ROLE_NORM2_POST);
    int32_t y = nd_build_ffn(b, at, kept->norm2, needs_out, &kept->ffn);
    if (whole) {
        return close_half(b, at, kept->x_mid, y, ND_ROLE_DOWN_BIAS, ND_ROLE_NORM2_POST, &kept->ffn.out,
                          &kept->ffn.out_stats);
    }
    if (needs_out) {
        nd_bias(b, nd_whole(y), b->stream_rows, at->unit, ND_ROLE_DOWN_BIAS, b->model->hidden);
        nd_norm_of post = stream_norm(b, at, ND_ROLE_NORM2_POST, ND_ROLE_COUNT);
        int32_t normed = nd_norm(b, y, &post, &kept->ffn.out_stats);
        nd_release(b, &normed);
        kept->ffn.out = y;
    }
    return 0;
}

/* Drop what selective recompute makes again: norms and products of activations, cheap to compute and wide. */
static void drop_cheap(nd_builder *b, nd_kept_layer *kept)
{
    nd_release(b, &kept->norm1);
    nd_release(b, &kept->norm2);
    nd_release(b, &kept->ffn.product);
    nd_release(b, &kept->ffn.experts.product);
}

/* Every field but `x` is a buffer number: the layer keeps nothing else. */
static void drop_all_but_input(nd_builder *b, nd_kept_layer *kept)
{
    int32_t x = kept->x;
    kept->x = 0;
    int32_t fields[sizeof *kept / sizeof(int32_t)];
    memcpy(fields, kept, sizeof *kept);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        nd_release(b, &fields[i]);
    }
    memset(kept, 0, sizeof *kept);
    kept->x = x;
}

int32_t nd_build_layer(nd_builder *b, int32_t layer, int32_t x, nd_kept_layer *kept)
{
    nd_layer_of at = layer_of(b, layer);
    nd_recompute recompute = layer_recompute(&b->layout, layer);
    *kept = (nd_kept_layer){.x = x};
    int32_t out = forward(b, &at, true, kept);
    if (recompute == ND_RECOMPUTE_FULL) {
        drop_all_but_input(b, kept);
    } else if (recompute == ND_RECOMPUTE_SELECTIVE) {
        drop_cheap(b, kept);
    }
    return out;
}

static void make_again(nd_builder *b, const nd_layer_of *at, nd_kept_layer *kept)
{
    nd_recompute recompute = layer_recompute(&b->layout, at->layer);
    nd_pass pass = b->pass;
    b->pass = ND_PASS_RECOMPUTE;
    if (recompute == ND_RECOMPUTE_FULL) {
        (void)forward(b, at, false, kept);
    } else if (recompute == ND_RECOMPUTE_SELECTIVE) {
        nd_norm_of norm1 = norm1_of(b, at);
        nd_norm_of norm2 = norm2_of(b, at);
        kept->norm1 = nd_norm(b, kept->x, &norm1, &kept->stats1);
        kept->norm2 = nd_norm(b, kept->x_mid, &norm2, &kept->stats2);
    }
    b->pass = pass;
}

/* The gradient of a half's output before bias and post-norm: dy itself (a new reference) or a new buffer. */
static int32_t open_half_back(nd_builder *b, const nd_layer_of *at, int32_t dy, nd_role bias, nd_role post,
                              int32_t *kept_out, int32_t *kept_stats)
{
    int32_t inner = 0;
    if (nd_unit_has(b, at->unit, post)) {
        nd_norm_of norm = stream_norm(b, at, post, ND_ROLE_COUNT);
        nd_norm_grad(b, *kept_out, *kept_stats, nd_whole(dy), &norm, &inner);
        nd_release(b, kept_out);
        nd_release(b, kept_stats);
    } else {
        nd_retain(b, dy);
        inner = dy;
    }
    nd_bias_grad(b, nd_whole(inner), b->stream_rows, at->unit, bias, b->model->hidden);
    return inner;
}

/* dy plus what came through the norm; in place unless deferred weight gradients still read dy. */
static int32_t add_norm_grad(nd_builder *b, int32_t dy, int32_t x, int32_t *stats, int32_t *dnorm,
                             const nd_norm_of *norm)
{
    int32_t dx = dy;
    if (b->defers) {
        dx = nd_buffer_new(b, stream_elements(b), b->real, ND_MEMORY_WORKSPACE, "stream gradient");
        nd_emit_copy(b, nd_whole(dy), nd_whole(dx), stream_elements(b));
        nd_release(b, &dy);
    }
    nd_norm_grad(b, x, *stats, nd_whole(*dnorm), norm, &dx);
    nd_release(b, dnorm);
    nd_release(b, stats);
    return dx;
}

int32_t nd_build_layer_back(nd_builder *b, int32_t layer, int32_t dy, nd_kept_layer *kept)
{
    nd_layer_of at = layer_of(b, layer);
    make_again(b, &at, kept);
    int32_t inner =
        open_half_back(b, &at, dy, ND_ROLE_DOWN_BIAS, ND_ROLE_NORM2_POST, &kept->ffn.out, &kept->ffn.out_stats);
    int32_t dnorm = nd_build_ffn_back(b, &at, kept->norm2, inner, &kept->ffn);
    nd_release(b, &inner);
    nd_release(b, &kept->norm2);
    nd_norm_of norm2 = norm2_of(b, &at);
    int32_t dmid = add_norm_grad(b, dy, kept->x_mid, &kept->stats2, &dnorm, &norm2);
    nd_release(b, &kept->x_mid);

    inner = open_half_back(b, &at, dmid, ND_ROLE_O_BIAS, ND_ROLE_NORM1_POST, &kept->attention.out,
                           &kept->attention.out_stats);
    int32_t x = nd_region_enter(b, kept->norm1, "enter attention");
    int32_t dout = nd_region_enter_back(b, inner, "leave attention");
    nd_release(b, &inner);
    dnorm = nd_build_attention_back(b, &at, x, dout, &kept->attention);
    nd_release(b, &x);
    nd_release(b, &dout);
    nd_release(b, &kept->norm1);
    nd_region_leave_back(b, &dnorm, "enter attention");
    nd_norm_of norm1 = norm1_of(b, &at);
    int32_t dx = add_norm_grad(b, dmid, kept->x, &kept->stats1, &dnorm, &norm1);
    nd_release(b, &kept->x);
    return dx;
}
