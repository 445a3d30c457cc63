/* Matrices, biases and norms of a layer, and the borders of the tensor-parallel region. */
#include <stdlib.h>

#include "program/builder_internal.h"

static nd_ref weight_of(const nd_builder *b, const nd_matrix_of *w)
{
    nd_ref weight = nd_weight(b, w->unit, w->role);
    weight.offset += w->row * w->k;
    return weight;
}

void nd_linear_into(nd_builder *b, int32_t x, int64_t rows, const nd_matrix_of *w, nd_ref out)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_GEMM,
                         .in = {nd_whole(x), weight_of(b, w)},
                         .out = {out},
                         .m = rows,
                         .n = w->n,
                         .k = w->k,
                         .trans_b = true,
                         .tag = w->tag});
}

int32_t nd_linear(nd_builder *b, int32_t x, int64_t rows, const nd_matrix_of *w)
{
    int32_t out = nd_buffer_new(b, rows * w->n, b->real, ND_MEMORY_ACTIVATIONS, w->tag);
    nd_linear_into(b, x, rows, w, nd_whole(out));
    return out;
}

void nd_bias(nd_builder *b, nd_ref x, int64_t rows, int32_t unit, nd_role role, int64_t n)
{
    if (nd_unit_has(b, unit, role)) {
        nd_emit(b, &(nd_ins){.op = ND_INS_BIAS,
                             .in = {x, nd_weight(b, unit, role)},
                             .out = {x},
                             .rows = rows,
                             .cols = n,
                             .tag = nd_role_name(role)});
    }
}

void nd_bias_grad(nd_builder *b, nd_ref dy, int64_t rows, int32_t unit, nd_role role, int64_t n)
{
    if (nd_unit_has(b, unit, role)) {
        nd_emit(b, &(nd_ins){.op = ND_INS_BIAS_GRAD,
                             .in = {dy},
                             .out = {nd_weight_grad(b, unit, role)},
                             .rows = rows,
                             .cols = n,
                             .accumulate = true,
                             .tag = nd_role_name(role)});
    }
}

void nd_linear_grad_input(nd_builder *b, nd_ref dy, int64_t rows, const nd_matrix_of *w, int32_t *dx)
{
    bool adds = *dx != 0;
    if (!adds) {
        *dx = nd_buffer_new(b, rows * w->k, b->real, ND_MEMORY_WORKSPACE, w->tag);
    }
    nd_emit(b, &(nd_ins){.op = ND_INS_GEMM,
                         .in = {dy, weight_of(b, w)},
                         .out = {nd_whole(*dx)},
                         .m = rows,
                         .n = w->k,
                         .k = w->n,
                         .accumulate = adds,
                         .tag = w->tag});
}

/* Remember a weight gradient; its inputs stay until then. */
static void defer(nd_builder *b, const nd_weight_grad_of *grad)
{
    if (b->deferred_count == b->deferred_capacity) {
        int32_t capacity = b->deferred_capacity == 0 ? 64 : 2 * b->deferred_capacity;
        nd_weight_grad_of *larger = realloc(b->deferred, (size_t)capacity * sizeof *larger);
        if (larger == NULL) {
            b->failed = true;
            return;
        }
        b->deferred = larger;
        b->deferred_capacity = capacity;
    }
    nd_weight_grad_of *entry = &b->deferred[b->deferred_count++];
    *entry = *grad;
    entry->chunk = b->chunk;
    entry->micro = b->micro;
    entry->layer = b->layer;
    for (int i = 0; i < ND_INS_IN_MAX; i++) {
        nd_retain(b, entry->ins.in[i].buffer);
    }
}

static void emit_grad(nd_builder *b, const nd_weight_grad_of *grad)
{
    nd_ins ins = grad->ins;
    ins.out[0] = nd_weight_grad(b, grad->unit, grad->role);
    ins.out[0].offset += grad->offset;
    nd_emit(b, &ins);
}

void nd_emit_weight_grad(nd_builder *b, const nd_weight_grad_of *grad)
{
    if (b->defers) {
        defer(b, grad);
    } else {
        emit_grad(b, grad);
    }
}

void nd_linear_grad_weight(nd_builder *b, nd_ref dy, int32_t x, int64_t rows, const nd_matrix_of *w)
{
    nd_emit_weight_grad(b, &(nd_weight_grad_of){.ins = {.op = ND_INS_GEMM,
                                                        .in = {dy, nd_whole(x)},
                                                        .m = w->n,
                                                        .n = w->k,
                                                        .k = rows,
                                                        .trans_a = true,
                                                        .accumulate = true,
                                                        .tag = w->tag},
                                                .unit = w->unit,
                                                .role = w->role,
                                                .offset = w->row * w->k});
}

void nd_emit_deferred(nd_builder *b, int32_t chunk, int32_t micro)
{
    int32_t kept = 0;
    int32_t layer = b->layer;
    for (int32_t i = 0; i < b->deferred_count && !b->failed; i++) {
        nd_weight_grad_of entry = b->deferred[i];
        if (entry.chunk != chunk || entry.micro != micro) {
            b->deferred[kept++] = entry;
            continue;
        }
        b->layer = entry.layer;
        emit_grad(b, &entry);
        for (int k = 0; k < ND_INS_IN_MAX; k++) {
            nd_release(b, &entry.ins.in[k].buffer);
        }
    }
    b->layer = layer;
    b->deferred_count = kept;
}

static nd_ref weight_or_none(const nd_builder *b, int32_t unit, nd_role role)
{
    return role != ND_ROLE_COUNT && nd_unit_has(b, unit, role) ? nd_weight(b, unit, role) : nd_whole(0);
}

static nd_ref grad_or_none(nd_builder *b, int32_t unit, nd_role role)
{
    return role != ND_ROLE_COUNT && nd_unit_has(b, unit, role) ? nd_weight_grad(b, unit, role) : nd_whole(0);
}

/* The norms of queries, keys and latents are RMS norms in every family. */
static bool is_layer_norm(const nd_builder *b, const nd_norm_of *norm)
{
    return b->model->norm == ND_NORM_LAYER && norm->cols == b->model->hidden;
}

void nd_norm_into(nd_builder *b, int32_t x, const nd_norm_of *norm, int32_t *stats, nd_ref out)
{
    bool layer_norm = is_layer_norm(b, norm);
    if (*stats == 0) {
        *stats = nd_buffer_new(b, norm->rows * (layer_norm ? 2 : 1), b->wide, ND_MEMORY_ACTIVATIONS, "norm statistics");
    }
    nd_emit(b, &(nd_ins){.op = ND_INS_NORM,
                         .in = {nd_whole(x), weight_or_none(b, norm->unit, norm->role),
                                weight_or_none(b, norm->unit, norm->bias)},
                         .out = {out, nd_whole(*stats)},
                         .rows = norm->rows,
                         .cols = norm->cols,
                         .layer_norm = layer_norm,
                         .eps = b->program->options.norm_eps,
                         .tag = norm->tag});
}

int32_t nd_norm(nd_builder *b, int32_t x, const nd_norm_of *norm, int32_t *stats)
{
    int32_t out = nd_buffer_new(b, norm->rows * norm->cols, b->real, ND_MEMORY_ACTIVATIONS, norm->tag);
    nd_norm_into(b, x, norm, stats, nd_whole(out));
    return out;
}

void nd_norm_grad(nd_builder *b, int32_t x, int32_t stats, nd_ref dy, const nd_norm_of *norm, int32_t *dx)
{
    bool adds = *dx != 0;
    if (!adds) {
        *dx = nd_buffer_new(b, norm->rows * norm->cols, b->real, ND_MEMORY_WORKSPACE, norm->tag);
    }
    nd_emit(b, &(nd_ins){.op = ND_INS_NORM_GRAD,
                         .in = {nd_whole(x), weight_or_none(b, norm->unit, norm->role), nd_whole(stats), dy},
                         .out = {nd_whole(*dx), grad_or_none(b, norm->unit, norm->role),
                                 grad_or_none(b, norm->unit, norm->bias)},
                         .rows = norm->rows,
                         .cols = norm->cols,
                         .layer_norm = is_layer_norm(b, norm),
                         .accumulate = adds,
                         .tag = norm->tag});
}

static void collective(nd_builder *b, nd_ins_op op, int32_t in, int32_t out, int64_t rows, const char *tag)
{
    nd_emit(b, &(nd_ins){.op = op,
                         .in = {nd_whole(in)},
                         .out = {nd_whole(out)},
                         .rows = rows,
                         .cols = b->model->hidden,
                         .group = ND_MEMBERS_TP,
                         .tag = tag});
}

/* All rows of the region from this rank's rows of the stream. */
static int32_t gather_rows(nd_builder *b, int32_t x, const char *tag)
{
    int32_t out = nd_buffer_new(b, b->region_rows * b->model->hidden, b->real, ND_MEMORY_WORKSPACE, tag);
    collective(b, ND_INS_ALL_GATHER, x, out, b->stream_rows, tag);
    return out;
}

/* Sum *y over tp: its own rows under sequence parallelism, else all. */
static void sum_rows(nd_builder *b, int32_t *y, const char *tag)
{
    if (b->tp == 1) {
        return;
    }
    if (!b->sp) {
        collective(b, ND_INS_ALL_REDUCE, *y, *y, b->region_rows, tag);
        return;
    }
    int32_t out = nd_buffer_new(b, b->stream_rows * b->model->hidden, b->real, ND_MEMORY_WORKSPACE, tag);
    collective(b, ND_INS_REDUCE_SCATTER, *y, out, b->stream_rows, tag);
    nd_release(b, y);
    *y = out;
}

int32_t nd_region_enter(nd_builder *b, int32_t x, const char *tag)
{
    if (!b->sp) {
        nd_retain(b, x);
        return x;
    }
    return gather_rows(b, x, tag);
}

void nd_region_leave(nd_builder *b, int32_t *y, const char *tag)
{
    sum_rows(b, y, tag);
}

int32_t nd_region_enter_back(nd_builder *b, int32_t dy, const char *tag)
{
    return nd_region_enter(b, dy, tag);
}

void nd_region_leave_back(nd_builder *b, int32_t *dx, const char *tag)
{
    sum_rows(b, dx, tag);
}
