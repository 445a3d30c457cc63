/* Routed experts: top-k router, rows sorted by expert, exchanged over the expert-parallel group without dropping any,
 * and combined with the router's weights. */
#include "program/builder_internal.h"

typedef struct routing {
    int64_t rows;     /* routed by this rank */
    int64_t copies;   /* rows x topk */
    int64_t held;     /* experts of this rank */
    int64_t arriving; /* rows that its experts may get at most: every row of the group, once per expert it can pick */
    int64_t inner;    /* columns of an expert on this rank */
    int64_t hidden, experts, topk;
    bool exchanges;
} routing;

static routing routing_of(const nd_builder *b, int64_t rows)
{
    const nd_model_spec *m = b->model;
    int64_t ep = b->layout.ep;
    int64_t held = m->experts / ep;
    int64_t most = m->experts_topk < held ? m->experts_topk : held;
    return (routing){.rows = rows,
                     .copies = rows * m->experts_topk,
                     .held = held,
                     .arriving = ep > 1 ? ep * rows * most : rows * m->experts_topk,
                     .inner = ep > 1 ? m->moe_ffn_hidden : m->moe_ffn_hidden / b->tp,
                     .hidden = m->hidden,
                     .experts = m->experts,
                     .topk = m->experts_topk,
                     .exchanges = ep > 1};
}

static nd_matrix_of router(const nd_builder *b, const nd_layer_of *at)
{
    return (nd_matrix_of){at->unit, ND_ROLE_ROUTER, 0, b->model->experts, b->model->hidden, "router"};
}

static int32_t ints(nd_builder *b, int64_t elements, const char *tag)
{
    return nd_buffer_new(b, elements, ND_ELEM_I32, ND_MEMORY_ACTIVATIONS, tag);
}

static int32_t reals(nd_builder *b, int64_t elements, const char *tag)
{
    return nd_buffer_new(b, elements, b->real, ND_MEMORY_ACTIVATIONS, tag);
}

static void route(nd_builder *b, const nd_layer_of *at, const routing *r, int32_t x, nd_kept_experts *kept)
{
    nd_matrix_of w = router(b, at);
    int32_t logits = nd_linear(b, x, r->rows, &w);
    nd_bias(b, nd_whole(logits), r->rows, at->unit, ND_ROLE_ROUTER_BIAS, r->experts);
    kept->probs = nd_buffer_new(b, r->rows * r->experts, b->wide, ND_MEMORY_ACTIVATIONS, "router probabilities");
    kept->experts = ints(b, r->copies, "chosen experts");
    kept->weights = nd_buffer_new(b, r->copies, b->wide, ND_MEMORY_ACTIVATIONS, "router weights");
    nd_emit(b, &(nd_ins){.op = ND_INS_ROUTE,
                         .in = {nd_whole(logits)},
                         .out = {nd_whole(kept->probs), nd_whole(kept->experts), nd_whole(kept->weights)},
                         .rows = r->rows,
                         .cols = r->experts,
                         .copies = r->topk,
                         .tag = "route"});
    nd_release(b, &logits);
    kept->slots = ints(b, r->copies, "slots");
    kept->offsets = ints(b, r->experts + 1, "expert offsets");
    kept->counts = ints(b, r->experts, "rows per expert");
    nd_emit(b, &(nd_ins){.op = ND_INS_SORT,
                         .in = {nd_whole(kept->experts)},
                         .out = {nd_whole(kept->slots), nd_whole(kept->offsets), nd_whole(kept->counts)},
                         .rows = r->rows,
                         .cols = r->experts,
                         .copies = r->topk,
                         .tag = "sort by expert"});
}

/* Who gets how many rows, and in which order the received ones are grouped by expert. */
static void agree(nd_builder *b, const routing *r, nd_kept_experts *kept)
{
    int32_t received = ints(b, r->experts, "received counts");
    nd_emit(b, &(nd_ins){.op = ND_INS_ALL_TO_ALL,
                         .in = {nd_whole(kept->counts)},
                         .out = {nd_whole(received)},
                         .rows = r->held,
                         .cols = 1,
                         .group = ND_MEMBERS_EP,
                         .tag = "exchange counts"});
    kept->back_slots = ints(b, r->arriving, "received slots");
    kept->back_offsets = ints(b, r->held + 1, "received offsets");
    kept->send_rows = ints(b, b->layout.ep, "rows to send");
    kept->receive_rows = ints(b, b->layout.ep, "rows to receive");
    nd_emit(b, &(nd_ins){.op = ND_INS_REGROUP,
                         .in = {nd_whole(kept->counts), nd_whole(received)},
                         .out = {nd_whole(kept->back_slots), nd_whole(kept->back_offsets), nd_whole(kept->send_rows),
                                 nd_whole(kept->receive_rows)},
                         .rows = r->arriving,
                         .cols = r->experts,
                         .parts = b->layout.ep,
                         .tag = "group received rows"});
    nd_release(b, &received);
}

/* How many rows the experts of this rank have: the last of their offsets. */
static nd_ref live_rows(const routing *r, const nd_kept_experts *kept)
{
    return r->exchanges ? nd_at(kept->back_offsets, r->held) : nd_whole(0);
}

static void scatter(nd_builder *b, int32_t x, int32_t slots, int32_t out, int64_t rows, int64_t copies, nd_ref live)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_ROWS_SCATTER,
                         .in = {nd_whole(x), nd_whole(slots)},
                         .out = {nd_whole(out)},
                         .live_rows = live,
                         .rows = rows,
                         .cols = b->model->hidden,
                         .copies = copies,
                         .tag = "permute"});
}

static void combine(nd_builder *b, int32_t y, int32_t slots, int32_t weights, int32_t out, const nd_ins *shape)
{
    nd_ins ins = *shape;
    ins.op = ND_INS_ROWS_COMBINE;
    ins.in[0] = nd_whole(y);
    ins.in[1] = nd_whole(slots);
    ins.in[2] = nd_whole(weights);
    ins.out[0] = nd_whole(out);
    ins.cols = b->model->hidden;
    ins.tag = "unpermute";
    nd_emit(b, &ins);
}

/* Rows to the ranks of their experts, or back. */
static int32_t exchange(nd_builder *b, const routing *r, int32_t x, bool back, const nd_kept_experts *kept,
                        const char *tag)
{
    int64_t rows = back ? r->copies : r->arriving;
    int32_t out = reals(b, rows * r->hidden, tag);
    nd_emit(b, &(nd_ins){.op = ND_INS_ALL_TO_ALL_ROWS,
                         .in = {nd_whole(x), nd_whole(back ? kept->receive_rows : kept->send_rows),
                                nd_whole(back ? kept->send_rows : kept->receive_rows)},
                         .out = {nd_whole(out)},
                         .rows = rows,
                         .cols = r->hidden,
                         .copies = r->copies,
                         .group = ND_MEMBERS_EP,
                         .tag = tag});
    return out;
}

/* Sorted copies of the rows of this rank (taken over) -> rows of its experts, grouped. */
static int32_t to_experts(nd_builder *b, const routing *r, int32_t sorted, const nd_kept_experts *kept)
{
    if (!r->exchanges) {
        return sorted;
    }
    int32_t received = exchange(b, r, sorted, false, kept, "all-to-all to experts");
    nd_release(b, &sorted);
    int32_t grouped = reals(b, r->arriving * r->hidden, "rows of experts");
    scatter(b, received, kept->back_slots, grouped, r->arriving, 1, live_rows(r, kept));
    nd_release(b, &received);
    return grouped;
}

/* The reverse; `grouped` is taken over. */
static int32_t from_experts(nd_builder *b, const routing *r, int32_t grouped, const nd_kept_experts *kept)
{
    if (!r->exchanges) {
        return grouped;
    }
    int32_t by_source = reals(b, r->arriving * r->hidden, "rows by source");
    combine(b, grouped, kept->back_slots, 0, by_source,
            &(nd_ins){.live_rows = live_rows(r, kept), .rows = r->arriving, .copies = 1});
    nd_release(b, &grouped);
    int32_t sorted = exchange(b, r, by_source, true, kept, "all-to-all from experts");
    nd_release(b, &by_source);
    return sorted;
}

/* Grouped matrices of the experts. */

static nd_ins grouped(const routing *r, const nd_kept_experts *kept)
{
    return (nd_ins){.op = ND_INS_GEMM_GROUPED,
                    .in = {[2] = nd_whole(r->exchanges ? kept->back_offsets : kept->offsets)},
                    .rows = r->arriving,
                    .groups = r->held};
}

static int32_t expert_linear(nd_builder *b, const nd_layer_of *at, const routing *r, nd_role role, int32_t x,
                             const nd_kept_experts *kept)
{
    bool down = role == ND_ROLE_EXPERT_DOWN;
    nd_ins ins = grouped(r, kept);
    ins.n = down ? r->hidden : r->inner;
    ins.k = down ? r->inner : r->hidden;
    int32_t out = reals(b, r->arriving * ins.n, nd_role_name(role));
    ins.in[0] = nd_whole(x);
    ins.in[1] = nd_weight(b, at->experts_unit, role);
    ins.out[0] = nd_whole(out);
    ins.m = r->arriving;
    ins.trans_b = true;
    ins.tag = nd_role_name(role);
    nd_emit(b, &ins);
    return out;
}

static void expert_linear_back(nd_builder *b, const nd_layer_of *at, const routing *r, nd_role role, int32_t x,
                               int32_t dy, const nd_kept_experts *kept, int32_t *dx)
{
    bool down = role == ND_ROLE_EXPERT_DOWN;
    int64_t out_cols = down ? r->hidden : r->inner;
    int64_t in_cols = down ? r->inner : r->hidden;
    nd_ins input = grouped(r, kept);
    input.accumulate = *dx != 0;
    if (*dx == 0) {
        *dx = nd_buffer_new(b, r->arriving * in_cols, b->real, ND_MEMORY_WORKSPACE, nd_role_name(role));
    }
    input.in[0] = nd_whole(dy);
    input.in[1] = nd_weight(b, at->experts_unit, role);
    input.out[0] = nd_whole(*dx);
    input.m = r->arriving;
    input.n = in_cols;
    input.k = out_cols;
    input.tag = nd_role_name(role);
    nd_emit(b, &input);
    nd_weight_grad_of weight = {.ins = grouped(r, kept), .unit = at->experts_unit, .role = role};
    weight.ins.in[0] = nd_whole(dy);
    weight.ins.in[1] = nd_whole(x);
    weight.ins.m = out_cols;
    weight.ins.n = in_cols;
    weight.ins.k = r->arriving;
    weight.ins.trans_a = true;
    weight.ins.accumulate = true;
    weight.ins.tag = nd_role_name(role);
    nd_emit_weight_grad(b, &weight);
}

static bool gated(const nd_builder *b)
{
    return nd_ffn_matrices(b->model->ffn) == 3;
}

int32_t nd_build_experts(nd_builder *b, const nd_layer_of *at, int32_t x, int64_t rows, bool needs_out,
                         nd_kept_experts *kept)
{
    routing r = routing_of(b, rows);
    route(b, at, &r, x, kept);
    if (r.exchanges) {
        agree(b, &r, kept);
    }
    int32_t sorted = reals(b, r.copies * r.hidden, "permuted rows");
    scatter(b, x, kept->slots, sorted, r.copies, r.topk, nd_whole(0));
    kept->rows = to_experts(b, &r, sorted, kept);
    if (gated(b)) {
        kept->gate = expert_linear(b, at, &r, ND_ROLE_EXPERT_GATE, kept->rows, kept);
    }
    kept->up = expert_linear(b, at, &r, ND_ROLE_EXPERT_UP, kept->rows, kept);
    kept->product = nd_build_product(b, kept->gate, kept->up, r.arriving, r.inner, live_rows(&r, kept));
    int32_t out = expert_linear(b, at, &r, ND_ROLE_EXPERT_DOWN, kept->product, kept);
    kept->out = from_experts(b, &r, out, kept);
    if (!needs_out) {
        return 0;
    }
    int32_t y = nd_buffer_new(b, rows * r.hidden, b->real, ND_MEMORY_WORKSPACE, "experts' output");
    combine(b, kept->out, kept->slots, kept->weights, y, &(nd_ins){.rows = rows, .copies = r.topk});
    return y;
}

static void route_back(nd_builder *b, const nd_layer_of *at, const routing *r, int32_t x, int32_t dweights,
                       nd_kept_experts *kept, int32_t *dx)
{
    nd_matrix_of w = router(b, at);
    int32_t dlogits = nd_buffer_new(b, r->rows * r->experts, b->real, ND_MEMORY_WORKSPACE, "router gradients");
    nd_emit(b, &(nd_ins){
                   .op = ND_INS_ROUTE_GRAD,
                   .in = {nd_whole(kept->probs), nd_whole(kept->experts), nd_whole(kept->weights), nd_whole(dweights)},
                   .out = {nd_whole(dlogits)},
                   .rows = r->rows,
                   .cols = r->experts,
                   .copies = r->topk,
                   .tag = "route"});
    nd_linear_grad_input(b, nd_whole(dlogits), r->rows, &w, dx);
    nd_linear_grad_weight(b, nd_whole(dlogits), x, r->rows, &w);
    nd_bias_grad(b, nd_whole(dlogits), r->rows, at->unit, ND_ROLE_ROUTER_BIAS, r->experts);
    nd_release(b, &dlogits);
}

static void release_kept(nd_builder *b, nd_kept_experts *kept)
{
    int32_t *const all[] = {&kept->probs,     &kept->experts,      &kept->weights,    &kept->slots,
                            &kept->offsets,   &kept->counts,       &kept->back_slots, &kept->back_offsets,
                            &kept->send_rows, &kept->receive_rows, &kept->rows,       &kept->gate,
                            &kept->up,        &kept->product,      &kept->out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        nd_release(b, all[i]);
    }
}

/* Gradient of the rows of the experts from that of their output (taken over). */
static int32_t experts_input_back(nd_builder *b, const nd_layer_of *at, const routing *r, int32_t dout,
                                  nd_kept_experts *kept)
{
    if (kept->product == 0) {
        kept->product = nd_build_product(b, kept->gate, kept->up, r->arriving, r->inner, live_rows(r, kept));
    }
    int32_t dproduct = 0;
    int32_t dgate = 0;
    int32_t dup = 0;
    int32_t drows = 0;
    expert_linear_back(b, at, r, ND_ROLE_EXPERT_DOWN, kept->product, dout, kept, &dproduct);
    nd_release(b, &dout);
    nd_build_product_back(b, kept->gate, kept->up, &dproduct, r->arriving, r->inner, live_rows(r, kept), &dgate, &dup);
    if (gated(b)) {
        expert_linear_back(b, at, r, ND_ROLE_EXPERT_GATE, kept->rows, dgate, kept, &drows);
    }
    expert_linear_back(b, at, r, ND_ROLE_EXPERT_UP, kept->rows, dup, kept, &drows);
    nd_release(b, &dgate);
    nd_release(b, &dup);
    return drows;
}

void nd_build_experts_back(nd_builder *b, const nd_layer_of *at, int32_t x, int64_t rows, int32_t dy,
                           nd_kept_experts *kept, int32_t *dx)
{
    routing r = routing_of(b, rows);
    int32_t dsorted = reals(b, r.copies * r.hidden, "gradients of permuted rows");
    int32_t dweights = nd_buffer_new(b, r.copies, b->wide, ND_MEMORY_WORKSPACE, "gradients of router weights");
    nd_emit(b, &(nd_ins){.op = ND_INS_ROWS_COMBINE_GRAD,
                         .in = {nd_whole(kept->out), nd_whole(kept->slots), nd_whole(kept->weights), nd_whole(dy)},
                         .out = {nd_whole(dsorted), nd_whole(dweights)},
                         .rows = rows,
                         .cols = r.hidden,
                         .copies = r.topk,
                         .tag = "unpermute"});
    int32_t drows = experts_input_back(b, at, &r, to_experts(b, &r, dsorted, kept), kept);
    int32_t dcopies = from_experts(b, &r, drows, kept);
    bool adds = *dx != 0;
    if (!adds) {
        *dx = nd_buffer_new(b, rows * r.hidden, b->real, ND_MEMORY_WORKSPACE, "dx of experts");
    }
    combine(b, dcopies, kept->slots, 0, *dx, &(nd_ins){.rows = rows, .copies = r.topk, .accumulate = adds});
    nd_release(b, &dcopies);
    route_back(b, at, &r, x, dweights, kept, dx);
    nd_release(b, &dweights);
    release_kept(b, kept);
}
