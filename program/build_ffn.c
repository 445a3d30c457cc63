/* Feed-forward of a layer: dense, or routed experts with an optional shared expert. */
#include "program/builder_internal.h"

static bool gated(const nd_builder *b)
{
    return nd_ffn_matrices(b->model->ffn) == 3;
}

int32_t nd_build_product(nd_builder *b, int32_t gate, int32_t up, int64_t rows, int64_t cols, nd_ref live_rows)
{
    int32_t product = nd_buffer_new(b, rows * cols, b->real, ND_MEMORY_ACTIVATIONS, "feed-forward product");
    nd_ins ins = {.op = ND_INS_ACTIVATION,
                  .in = {nd_whole(up)},
                  .out = {nd_whole(product)},
                  .live_rows = live_rows,
                  .rows = rows,
                  .cols = cols,
                  .activation = b->model->ffn == ND_FFN_SWIGLU ? ND_ACTIVATION_SILU : ND_ACTIVATION_GELU,
                  .tag = "activation"};
    if (gate != 0) {
        ins.op = ND_INS_GLU;
        ins.in[0] = nd_whole(gate);
        ins.in[1] = nd_whole(up);
    }
    nd_emit(b, &ins);
    return product;
}

void nd_build_product_back(nd_builder *b, int32_t gate, int32_t up, int32_t *dproduct, int64_t rows, int64_t cols,
                           nd_ref live_rows, int32_t *dgate, int32_t *dup)
{
    *dup = nd_buffer_new(b, rows * cols, b->real, ND_MEMORY_WORKSPACE, "dup");
    nd_ins ins = {.op = ND_INS_ACTIVATION_GRAD,
                  .in = {nd_whole(up), nd_whole(*dproduct)},
                  .out = {nd_whole(*dup)},
                  .live_rows = live_rows,
                  .rows = rows,
                  .cols = cols,
                  .activation = b->model->ffn == ND_FFN_SWIGLU ? ND_ACTIVATION_SILU : ND_ACTIVATION_GELU,
                  .tag = "activation"};
    if (gate != 0) {
        *dgate = nd_buffer_new(b, rows * cols, b->real, ND_MEMORY_WORKSPACE, "dgate");
        ins.op = ND_INS_GLU_GRAD;
        ins.in[0] = nd_whole(gate);
        ins.in[1] = nd_whole(up);
        ins.in[2] = nd_whole(*dproduct);
        ins.out[0] = nd_whole(*dgate);
        ins.out[1] = nd_whole(*dup);
    }
    nd_emit(b, &ins);
    nd_release(b, dproduct);
}

typedef struct mlp {
    nd_matrix_of gate, up, down;
    int64_t inner;
    bool gated;
} mlp;

/* The dense feed-forward, or of an MoE layer the shared experts as one. */
static mlp mlp_of(const nd_builder *b, const nd_layer_of *at)
{
    bool shared = at->kind->moe;
    int64_t hidden = b->model->hidden;
    int64_t inner = (shared ? b->model->shared_ffn_hidden : b->model->ffn_hidden) / b->tp;
    return (mlp){
        .gate = {at->unit, shared ? ND_ROLE_SHARED_GATE : ND_ROLE_GATE, 0, inner, hidden, "feed-forward gate"},
        .up = {at->unit, shared ? ND_ROLE_SHARED_UP : ND_ROLE_UP, 0, inner, hidden, "feed-forward up"},
        .down = {at->unit, shared ? ND_ROLE_SHARED_DOWN : ND_ROLE_DOWN, 0, hidden, inner, "feed-forward down"},
        .inner = inner,
        .gated = gated(b),
    };
}

static int32_t build_mlp(nd_builder *b, const nd_layer_of *at, int32_t x, bool needs_out, nd_kept_ffn *kept)
{
    mlp w = mlp_of(b, at);
    int64_t rows = b->region_rows;
    if (w.gated) {
        kept->gate = nd_linear(b, x, rows, &w.gate);
    }
    kept->up = nd_linear(b, x, rows, &w.up);
    if (!at->kind->moe) {
        nd_bias(b, nd_whole(kept->up), rows, at->unit, ND_ROLE_UP_BIAS, w.inner);
    }
    kept->product = nd_build_product(b, kept->gate, kept->up, rows, w.inner, nd_whole(0));
    return needs_out ? nd_linear(b, kept->product, rows, &w.down) : 0;
}

static void build_mlp_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dy, nd_kept_ffn *kept, int32_t *dx)
{
    mlp w = mlp_of(b, at);
    int64_t rows = b->region_rows;
    if (kept->product == 0) {
        kept->product = nd_build_product(b, kept->gate, kept->up, rows, w.inner, nd_whole(0));
    }
    int32_t dproduct = 0;
    int32_t dgate = 0;
    int32_t dup = 0;
    nd_linear_grad_input(b, nd_whole(dy), rows, &w.down, &dproduct);
    nd_linear_grad_weight(b, nd_whole(dy), kept->product, rows, &w.down);
    nd_release(b, &kept->product);
    nd_build_product_back(b, kept->gate, kept->up, &dproduct, rows, w.inner, nd_whole(0), &dgate, &dup);
    nd_release(b, &kept->gate);
    nd_release(b, &kept->up);
    if (w.gated) {
        nd_linear_grad_input(b, nd_whole(dgate), rows, &w.gate, dx);
    }
    nd_linear_grad_input(b, nd_whole(dup), rows, &w.up, dx);
    if (w.gated) {
        nd_linear_grad_weight(b, nd_whole(dgate), x, rows, &w.gate);
    }
    nd_linear_grad_weight(b, nd_whole(dup), x, rows, &w.up);
    if (!at->kind->moe) {
        nd_bias_grad(b, nd_whole(dup), rows, at->unit, ND_ROLE_UP_BIAS, w.inner);
    }
    nd_release(b, &dgate);
    nd_release(b, &dup);
}

/* Qwen2-MoE scales the shared experts' output by the sigmoid of one number a row. */

static nd_matrix_of scale_of(const nd_builder *b, const nd_layer_of *at)
{
    return (nd_matrix_of){at->unit, ND_ROLE_SHARED_SCALE, 0, 1, b->model->hidden, "shared expert's gate"};
}

static void scale_shared(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t *y, nd_kept_ffn *kept)
{
    nd_matrix_of w = scale_of(b, at);
    int64_t rows = b->region_rows;
    kept->shared_out = *y;
    kept->shared_scale = nd_linear(b, x, rows, &w);
    *y = nd_buffer_new(b, rows * b->model->hidden, b->real, ND_MEMORY_WORKSPACE, "gated shared expert");
    nd_emit(b, &(nd_ins){.op = ND_INS_ROW_GATE,
                         .in = {nd_whole(kept->shared_out), nd_whole(kept->shared_scale)},
                         .out = {nd_whole(*y)},
                         .rows = rows,
                         .cols = b->model->hidden,
                         .tag = "gate shared expert"});
}

/* The gradient of the shared experts' own output, and what the gate adds to dx. */
static int32_t scale_shared_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dy, nd_kept_ffn *kept,
                                 int32_t *dx)
{
    nd_matrix_of w = scale_of(b, at);
    int64_t rows = b->region_rows;
    int32_t dout = nd_buffer_new(b, rows * b->model->hidden, b->real, ND_MEMORY_WORKSPACE, "shared expert gradient");
    int32_t dscale = nd_buffer_new(b, rows, b->real, ND_MEMORY_WORKSPACE, "gate gradient");
    nd_emit(b, &(nd_ins){.op = ND_INS_ROW_GATE_GRAD,
                         .in = {nd_whole(kept->shared_out), nd_whole(kept->shared_scale), nd_whole(dy)},
                         .out = {nd_whole(dout), nd_whole(dscale)},
                         .rows = rows,
                         .cols = b->model->hidden,
                         .tag = "gate shared expert"});
    nd_linear_grad_input(b, nd_whole(dscale), rows, &w, dx);
    nd_linear_grad_weight(b, nd_whole(dscale), x, rows, &w);
    nd_release(b, &dscale);
    nd_release(b, &kept->shared_out);
    nd_release(b, &kept->shared_scale);
    return dout;
}

/* With ep > 1 every tp rank routes its own rows: those of the stream under sequence parallelism, else a slice. */

static int64_t routed_rows(const nd_builder *b)
{
    return b->region_rows / b->tp;
}

static bool slices(const nd_builder *b)
{
    return b->tp > 1 && !b->sp;
}

static int32_t own_rows(nd_builder *b, int32_t x)
{
    if (!slices(b)) {
        nd_retain(b, x);
        return x;
    }
    int64_t elements = routed_rows(b) * b->model->hidden;
    int32_t slice = nd_buffer_new(b, elements, b->real, ND_MEMORY_WORKSPACE, "rows of this tp rank");
    nd_emit_copy(b, nd_at(x, b->coords[ND_AXIS_TP] * elements), nd_whole(slice), elements);
    return slice;
}

static void all_rows(nd_builder *b, int32_t *y)
{
    if (!slices(b)) {
        return;
    }
    int32_t out = nd_buffer_new(b, b->region_rows * b->model->hidden, b->real, ND_MEMORY_WORKSPACE, "routed rows");
    nd_emit(b, &(nd_ins){.op = ND_INS_ALL_GATHER,
                         .in = {nd_whole(*y)},
                         .out = {nd_whole(out)},
                         .rows = routed_rows(b),
                         .cols = b->model->hidden,
                         .group = ND_MEMBERS_TP,
                         .tag = "gather routed rows"});
    nd_release(b, y);
    *y = out;
}

static void add_into(nd_builder *b, int32_t *sum, int32_t *addend, int64_t rows)
{
    if (*sum == 0) {
        *sum = *addend;
        *addend = 0;
    } else if (*addend != 0) {
        nd_emit_add(b, nd_whole(*sum), nd_whole(*addend), nd_whole(*sum), rows * b->model->hidden, "add experts");
        nd_release(b, addend);
    }
}

static bool has_dense(const nd_builder *b, const nd_layer_of *at)
{
    return !at->kind->moe || b->model->shared_ffn_hidden > 0;
}

static bool scales_shared(const nd_builder *b, const nd_layer_of *at)
{
    return at->kind->moe && nd_unit_has(b, at->unit, ND_ROLE_SHARED_SCALE);
}

/* Does anything of this layer run inside the tensor-parallel region? */
static bool has_region(const nd_builder *b, const nd_layer_of *at)
{
    return has_dense(b, at) || b->layout.ep == 1;
}

int32_t nd_build_ffn(nd_builder *b, const nd_layer_of *at, int32_t norm, bool needs_out, nd_kept_ffn *kept)
{
    int32_t y = 0;
    if (has_region(b, at)) {
        int32_t x = nd_region_enter(b, norm, "enter feed-forward");
        if (has_dense(b, at)) {
            y = build_mlp(b, at, x, needs_out || scales_shared(b, at), kept);
            if (scales_shared(b, at)) {
                scale_shared(b, at, x, &y, kept);
            }
        }
        if (at->kind->moe && b->layout.ep == 1) {
            int32_t routed = nd_build_experts(b, at, x, b->region_rows, needs_out, &kept->experts);
            add_into(b, &y, &routed, b->region_rows);
        }
        nd_release(b, &x);
        if (needs_out) {
            nd_region_leave(b, &y, "leave feed-forward");
        } else {
            nd_release(b, &y);
        }
    }
    if (at->kind->moe && b->layout.ep > 1) {
        int32_t x = own_rows(b, norm);
        int32_t routed = nd_build_experts(b, at, x, routed_rows(b), needs_out, &kept->experts);
        nd_release(b, &x);
        if (needs_out) {
            all_rows(b, &routed);
            add_into(b, &y, &routed, b->stream_rows);
        }
    }
    return y;
}

static void region_back(nd_builder *b, const nd_layer_of *at, int32_t norm, int32_t dy, nd_kept_ffn *kept,
                        int32_t *dnorm)
{
    int32_t x = nd_region_enter(b, norm, "enter feed-forward");
    int32_t inner = nd_region_enter_back(b, dy, "leave feed-forward");
    if (has_dense(b, at)) {
        int32_t dout = inner;
        nd_retain(b, inner);
        if (scales_shared(b, at)) {
            nd_release(b, &dout);
            dout = scale_shared_back(b, at, x, inner, kept, dnorm);
        }
        build_mlp_back(b, at, x, dout, kept, dnorm);
        nd_release(b, &dout);
    }
    if (at->kind->moe && b->layout.ep == 1) {
        nd_build_experts_back(b, at, x, b->region_rows, inner, &kept->experts, dnorm);
    }
    nd_release(b, &inner);
    nd_release(b, &x);
    nd_region_leave_back(b, dnorm, "enter feed-forward");
}

int32_t nd_build_ffn_back(nd_builder *b, const nd_layer_of *at, int32_t norm, int32_t dy, nd_kept_ffn *kept)
{
    int32_t dnorm = 0;
    if (has_region(b, at)) {
        region_back(b, at, norm, dy, kept, &dnorm);
    }
    if (at->kind->moe && b->layout.ep > 1) {
        int32_t x = own_rows(b, norm);
        int32_t dout = own_rows(b, dy);
        int32_t dx = 0;
        nd_build_experts_back(b, at, x, routed_rows(b), dout, &kept->experts, &dx);
        nd_release(b, &x);
        nd_release(b, &dout);
        all_rows(b, &dx);
        add_into(b, &dnorm, &dx, b->stream_rows);
    }
    return dnorm;
}
