/* The attention core over a context-parallel group: alone, as a ring, with keys and values gathered, or with heads
 * traded for positions (Ulysses). */
#include <math.h>

#include "program/builder_internal.h"

/* One call of the attention kernel. */
typedef struct core {
    int64_t q_rows, kv_rows; /* of the micro-batch */
    int64_t heads, kv_heads;
    nd_seq_map q_map, kv_map;
    nd_ref q, k, v;
} core;

static int64_t key_elements(const nd_builder *b, int64_t rows, int64_t kv_heads)
{
    return rows * kv_heads * b->qk_dim;
}

static int64_t kv_elements(const nd_builder *b, int64_t rows, int64_t kv_heads)
{
    return rows * kv_heads * (b->qk_dim + b->v_dim);
}

static core core_of(const nd_builder *b, int64_t q_rows, int64_t kv_rows, int64_t heads, int64_t kv_heads, int32_t q,
                    int32_t kv)
{
    nd_seq_map map = nd_region_map(b);
    return (core){.q_rows = q_rows,
                  .kv_rows = kv_rows,
                  .heads = heads,
                  .kv_heads = kv_heads,
                  .q_map = map,
                  .kv_map = map,
                  .q = nd_whole(q),
                  .k = nd_whole(kv),
                  .v = nd_at(kv, key_elements(b, kv_rows, kv_heads))};
}

static nd_ins call(const nd_builder *b, const nd_layer_of *at, nd_ins_op op, const core *c)
{
    return (nd_ins){.op = op,
                    .in = {c->q, c->k, c->v},
                    .rows = c->q_rows,
                    .cols = c->kv_rows,
                    .heads = c->heads,
                    .kv_heads = c->kv_heads,
                    .dim = b->qk_dim,
                    .v_dim = b->v_dim,
                    .window = at->kind->window_tokens,
                    .chunked = at->kind->chunked,
                    .micro_batch = b->micro_batch,
                    .q_map = c->q_map,
                    .kv_map = c->kv_map,
                    .scale = 1.0 / sqrt((double)b->qk_dim),
                    .tag = "attention"};
}

static void attend(nd_builder *b, const nd_layer_of *at, const core *c, int32_t o, int32_t lse, bool accumulate)
{
    nd_ins ins = call(b, at, ND_INS_ATTENTION, c);
    ins.out[0] = nd_whole(o);
    ins.out[1] = nd_whole(lse);
    ins.accumulate = accumulate;
    nd_emit(b, &ins);
}

/* What the backward kernel reads beside q, k and v. */
typedef struct core_grads {
    int32_t dout, lse, delta;
    int32_t dq;
    int32_t dkv; /* wide: keys, then values */
} core_grads;

static void attend_back(nd_builder *b, const nd_layer_of *at, const core *c, const core_grads *g)
{
    nd_ins ins = call(b, at, ND_INS_ATTENTION_GRAD, c);
    ins.in[3] = nd_whole(g->dout);
    ins.in[4] = nd_whole(g->lse);
    ins.in[5] = nd_whole(g->delta);
    ins.out[0] = nd_whole(g->dq);
    ins.out[1] = nd_whole(g->dkv);
    ins.out[2] = nd_at(g->dkv, key_elements(b, c->kv_rows, c->kv_heads));
    nd_emit(b, &ins);
}

static int32_t zeros(nd_builder *b, int64_t elements, const char *tag)
{
    int32_t buffer = nd_buffer_new(b, elements, b->wide, ND_MEMORY_WORKSPACE, tag);
    nd_emit_zero(b, nd_whole(buffer), elements);
    return buffer;
}

/* delta, and dq and dkv at zero. */
static core_grads grads_start(nd_builder *b, int64_t q_rows, int64_t heads, int64_t dkv_elements, int32_t o,
                              int32_t dout, int32_t lse)
{
    core_grads g = {.dout = dout, .lse = lse};
    g.delta = nd_buffer_new(b, q_rows * heads, b->wide, ND_MEMORY_WORKSPACE, "attention delta");
    nd_emit(b, &(nd_ins){.op = ND_INS_ATTENTION_DELTA,
                         .in = {nd_whole(o), nd_whole(dout)},
                         .out = {nd_whole(g.delta)},
                         .rows = q_rows,
                         .cols = heads * b->v_dim,
                         .heads = heads,
                         .v_dim = b->v_dim,
                         .tag = "attention delta"});
    g.dq = zeros(b, q_rows * heads * b->qk_dim, "dq");
    g.dkv = zeros(b, dkv_elements, "dk, dv");
    return g;
}

/* *buffer in the compute type. */
static void narrow(nd_builder *b, int32_t *buffer, int64_t elements, const char *tag)
{
    if (b->real == b->wide) {
        return;
    }
    int32_t out = nd_buffer_new(b, elements, b->real, ND_MEMORY_ACTIVATIONS, tag);
    nd_emit_copy(b, nd_whole(*buffer), nd_whole(out), elements);
    nd_release(b, buffer);
    *buffer = out;
}

static void new_outputs(nd_builder *b, int64_t rows, int64_t heads, nd_elem elem, int32_t *o, int32_t *lse)
{
    *o = nd_buffer_new(b, rows * heads * b->v_dim, elem, ND_MEMORY_ACTIVATIONS, "attention output");
    *lse = nd_buffer_new(b, rows * heads, b->wide, ND_MEMORY_ACTIVATIONS, "log-sum-exp");
}

/* Ring: keys and values travel, one hop a step. */

static void shift(nd_builder *b, int32_t from, int32_t to, int64_t elements, const char *tag)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_SHIFT,
                         .stream = ND_STREAM_RING,
                         .in = {nd_whole(from)},
                         .out = {nd_whole(to)},
                         .rows = elements,
                         .cols = 1,
                         .group = ND_MEMBERS_CP,
                         .tag = tag});
}

/* Send *buffer on; `next` receives the neighbour's meanwhile. */
static int32_t start_shift(nd_builder *b, int32_t buffer, int64_t elements, nd_elem elem, const char *tag)
{
    int32_t next = nd_buffer_new(b, elements, elem, ND_MEMORY_WORKSPACE, tag);
    shift(b, buffer, next, elements, tag);
    return next;
}

static core ring_step(const nd_builder *b, int32_t q, int32_t kv, int32_t step)
{
    core c = core_of(b, b->region_rows, b->region_rows, b->heads, b->kv_heads, q, kv);
    c.kv_map.member = (b->coords[ND_AXIS_CP] - step + b->cp) % b->cp;
    return c;
}

static void ring(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept)
{
    int64_t elements = kv_elements(b, b->region_rows, b->kv_heads);
    new_outputs(b, b->region_rows, b->heads, b->wide, &kept->o, &kept->lse);
    int32_t kv = kept->kv;
    nd_retain(b, kv);
    for (int32_t step = 0; step < b->cp; step++) {
        int32_t next = step + 1 < b->cp ? start_shift(b, kv, elements, b->real, "ring: keys, values") : 0;
        core c = ring_step(b, kept->q, kv, step);
        attend(b, at, &c, kept->o, kept->lse, step > 0);
        nd_release(b, &kv);
        kv = next;
    }
    narrow(b, &kept->o, b->region_rows * b->heads * b->v_dim, "attention output");
}

/* Gradients of keys and values travel with them and take one hop more, which brings them home. */
static void ring_back(nd_builder *b, const nd_layer_of *at, const nd_kept_attention *kept, core_grads *g)
{
    int64_t elements = kv_elements(b, b->region_rows, b->kv_heads);
    int32_t hops = b->program->options.mutation == ND_MUTATION_RING_LAST_HOP ? b->cp - 1 : b->cp;
    int32_t kv = kept->kv;
    nd_retain(b, kv);
    for (int32_t step = 0; step < b->cp; step++) {
        int32_t next = step + 1 < b->cp ? start_shift(b, kv, elements, b->real, "ring: keys, values") : 0;
        core c = ring_step(b, kept->q, kv, step);
        attend_back(b, at, &c, g);
        nd_release(b, &kv);
        kv = next;
        if (step < hops) {
            int32_t moved = start_shift(b, g->dkv, elements, b->wide, "ring: dk, dv");
            nd_release(b, &g->dkv);
            g->dkv = moved;
        }
    }
}

/* All-gather: every rank sees all keys and values at once. */

static int32_t gather_kv(nd_builder *b, int32_t kv)
{
    int64_t rows = b->region_rows;
    int64_t keys = key_elements(b, rows, b->kv_heads);
    int64_t values = kv_elements(b, rows, b->kv_heads) - keys;
    int32_t all = nd_buffer_new(b, (keys + values) * b->cp, b->real, ND_MEMORY_WORKSPACE, "gathered keys, values");
    const nd_ref from[2] = {nd_whole(kv), nd_at(kv, keys)};
    const nd_ref to[2] = {nd_whole(all), nd_at(all, keys * b->cp)};
    for (int i = 0; i < 2; i++) {
        nd_emit(b, &(nd_ins){.op = ND_INS_ALL_GATHER,
                             .stream = ND_STREAM_RING,
                             .in = {from[i]},
                             .out = {to[i]},
                             .rows = i == 0 ? keys : values,
                             .cols = 1,
                             .group = ND_MEMBERS_CP,
                             .tag = i == 0 ? "gather keys" : "gather values"});
    }
    return all;
}

static core gathered_core(const nd_builder *b, int32_t q, int32_t all)
{
    core c = core_of(b, b->region_rows, b->region_rows * b->cp, b->heads, b->kv_heads, q, all);
    c.kv_map.member = -1;
    c.kv_map.positions = c.kv_map.seq_len;
    return c;
}

static void gathered(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept)
{
    new_outputs(b, b->region_rows, b->heads, b->real, &kept->o, &kept->lse);
    int32_t all = gather_kv(b, kept->kv);
    core c = gathered_core(b, kept->q, all);
    attend(b, at, &c, kept->o, kept->lse, false);
    nd_release(b, &all);
}

static void gathered_back(nd_builder *b, const nd_layer_of *at, const nd_kept_attention *kept, core_grads *g)
{
    int64_t rows = b->region_rows;
    int64_t keys = key_elements(b, rows, b->kv_heads);
    int64_t values = kv_elements(b, rows, b->kv_heads) - keys;
    int32_t all = gather_kv(b, kept->kv);
    core c = gathered_core(b, kept->q, all);
    attend_back(b, at, &c, g);
    nd_release(b, &all);
    int32_t own = nd_buffer_new(b, keys + values, b->wide, ND_MEMORY_WORKSPACE, "dk, dv");
    const nd_ref from[2] = {nd_whole(g->dkv), nd_at(g->dkv, keys * b->cp)};
    const nd_ref to[2] = {nd_whole(own), nd_at(own, keys)};
    for (int i = 0; i < 2; i++) {
        nd_emit(b, &(nd_ins){.op = ND_INS_REDUCE_SCATTER,
                             .stream = ND_STREAM_RING,
                             .in = {from[i]},
                             .out = {to[i]},
                             .rows = i == 0 ? keys : values,
                             .cols = 1,
                             .group = ND_MEMBERS_CP,
                             .tag = i == 0 ? "reduce dk" : "reduce dv"});
    }
    nd_release(b, &g->dkv);
    g->dkv = own;
}

/* Ulysses: all-to-all from (own positions, all heads) to (all positions, own heads) and back. */

static int64_t heads_per_part(const nd_builder *b, int64_t heads)
{
    return heads / b->cp > 0 ? heads / b->cp : 1;
}

static void trade(nd_builder *b, nd_ref in, nd_ref out, int64_t elements, const char *tag)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_ALL_TO_ALL,
                         .stream = ND_STREAM_RING,
                         .in = {in},
                         .out = {out},
                         .rows = elements,
                         .cols = 1,
                         .group = ND_MEMBERS_CP,
                         .tag = tag});
}

static void pack(nd_builder *b, nd_ins_op op, nd_ref in, nd_ref out, int64_t heads, int64_t dim, bool sum)
{
    nd_emit(b, &(nd_ins){.op = op,
                         .in = {in},
                         .out = {out},
                         .rows = b->region_rows,
                         .cols = heads * dim,
                         .heads = heads,
                         .dim = dim,
                         .parts = b->cp,
                         .sum = sum,
                         .tag = op == ND_INS_PACK ? "pack heads" : "unpack heads"});
}

/* Own positions and all heads of `in` -> all positions and own heads of `out`. */
static void to_heads(nd_builder *b, nd_ref in, nd_ref out, int64_t heads, int64_t dim, const char *tag)
{
    int64_t part = b->region_rows * heads_per_part(b, heads) * dim;
    int32_t packed = nd_buffer_new(b, part * b->cp, b->real, ND_MEMORY_WORKSPACE, "packed heads");
    pack(b, ND_INS_PACK, in, nd_whole(packed), heads, dim, false);
    trade(b, nd_whole(packed), out, part, tag);
    nd_release(b, &packed);
}

/* The reverse; gradients of a head that several parts hold are summed. */
static void to_positions(nd_builder *b, nd_ref in, nd_ref out, int64_t heads, int64_t dim, bool sum, const char *tag)
{
    int64_t part = b->region_rows * heads_per_part(b, heads) * dim;
    int32_t packed = nd_buffer_new(b, part * b->cp, b->real, ND_MEMORY_WORKSPACE, "packed heads");
    trade(b, in, nd_whole(packed), part, tag);
    pack(b, ND_INS_UNPACK, nd_whole(packed), out, heads, dim, sum);
    nd_release(b, &packed);
}

static core ulysses_core(const nd_builder *b, int32_t q, int32_t kv)
{
    int64_t rows = b->region_rows * b->cp;
    core c = core_of(b, rows, rows, heads_per_part(b, b->heads), heads_per_part(b, b->kv_heads), q, kv);
    c.q_map = c.kv_map = (nd_seq_map){.seq_len = c.q_map.seq_len, .cp = 1, .positions = c.q_map.seq_len};
    return c;
}

static void ulysses(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept)
{
    int64_t local = b->region_rows;
    int64_t rows = local * b->cp;
    int64_t heads = heads_per_part(b, b->heads);
    int64_t kv_heads = heads_per_part(b, b->kv_heads);
    int32_t q = nd_buffer_new(b, rows * heads * b->qk_dim, b->real, ND_MEMORY_ACTIVATIONS, "queries of own heads");
    int32_t kv =
        nd_buffer_new(b, kv_elements(b, rows, kv_heads), b->real, ND_MEMORY_ACTIVATIONS, "keys, values of own heads");
    to_heads(b, nd_whole(kept->q), nd_whole(q), b->heads, b->qk_dim, "all-to-all q");
    to_heads(b, nd_whole(kept->kv), nd_whole(kv), b->kv_heads, b->qk_dim, "all-to-all k");
    to_heads(b, nd_at(kept->kv, key_elements(b, local, b->kv_heads)), nd_at(kv, key_elements(b, rows, kv_heads)),
             b->kv_heads, b->v_dim, "all-to-all v");
    nd_release(b, &kept->q);
    nd_release(b, &kept->kv);
    kept->q = q;
    kept->kv = kv;
    new_outputs(b, rows, heads, b->real, &kept->o_core, &kept->lse);
    core c = ulysses_core(b, q, kv);
    attend(b, at, &c, kept->o_core, kept->lse, false);
    kept->o = nd_buffer_new(b, local * b->heads * b->v_dim, b->real, ND_MEMORY_ACTIVATIONS, "attention output");
    to_positions(b, nd_whole(kept->o_core), nd_whole(kept->o), b->heads, b->v_dim, false, "all-to-all out");
}

static void ulysses_back(nd_builder *b, const nd_layer_of *at, int32_t dout, const nd_kept_attention *kept, int32_t *dq,
                         int32_t *dkv)
{
    int64_t local = b->region_rows;
    int64_t rows = local * b->cp;
    int64_t heads = heads_per_part(b, b->heads);
    int64_t kv_heads = heads_per_part(b, b->kv_heads);
    int32_t dout_heads = nd_buffer_new(b, rows * heads * b->v_dim, b->real, ND_MEMORY_WORKSPACE, "do of own heads");
    to_heads(b, nd_whole(dout), nd_whole(dout_heads), b->heads, b->v_dim, "all-to-all do");
    core_grads g = grads_start(b, rows, heads, kv_elements(b, rows, kv_heads), kept->o_core, dout_heads, kept->lse);
    core c = ulysses_core(b, kept->q, kept->kv);
    attend_back(b, at, &c, &g);
    nd_release(b, &g.delta);
    nd_release(b, &dout_heads);
    narrow(b, &g.dq, rows * heads * b->qk_dim, "dq");
    narrow(b, &g.dkv, kv_elements(b, rows, kv_heads), "dk, dv");
    *dq = nd_buffer_new(b, local * b->heads * b->qk_dim, b->real, ND_MEMORY_WORKSPACE, "dq");
    *dkv = nd_buffer_new(b, kv_elements(b, local, b->kv_heads), b->real, ND_MEMORY_WORKSPACE, "dk, dv");
    to_positions(b, nd_whole(g.dq), nd_whole(*dq), b->heads, b->qk_dim, true, "all-to-all dq");
    to_positions(b, nd_whole(g.dkv), nd_whole(*dkv), b->kv_heads, b->qk_dim, true, "all-to-all dk");
    to_positions(b, nd_at(g.dkv, key_elements(b, rows, kv_heads)), nd_at(*dkv, key_elements(b, local, b->kv_heads)),
                 b->kv_heads, b->v_dim, true, "all-to-all dv");
    nd_release(b, &g.dq);
    nd_release(b, &g.dkv);
}

static bool trades_heads(const nd_builder *b)
{
    return b->cp > 1 && b->layout.cp_method == ND_CP_METHOD_ULYSSES;
}

void nd_build_core(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept)
{
    if (trades_heads(b)) {
        ulysses(b, at, kept);
        return;
    }
    if (b->cp == 1) {
        new_outputs(b, b->region_rows, b->heads, b->real, &kept->o, &kept->lse);
        core c = core_of(b, b->region_rows, b->region_rows, b->heads, b->kv_heads, kept->q, kept->kv);
        attend(b, at, &c, kept->o, kept->lse, false);
    } else if (b->layout.cp_method == ND_CP_METHOD_RING) {
        ring(b, at, kept);
    } else {
        gathered(b, at, kept);
    }
    kept->o_core = kept->o;
    nd_retain(b, kept->o);
}

static void release_core(nd_builder *b, nd_kept_attention *kept)
{
    nd_release(b, &kept->q);
    nd_release(b, &kept->kv);
    nd_release(b, &kept->o);
    nd_release(b, &kept->o_core);
    nd_release(b, &kept->lse);
}

void nd_build_core_back(nd_builder *b, const nd_layer_of *at, int32_t dout, nd_kept_attention *kept, int32_t *dq,
                        int32_t *dkv)
{
    if (trades_heads(b)) {
        ulysses_back(b, at, dout, kept, dq, dkv);
        release_core(b, kept);
        return;
    }
    int64_t rows = b->region_rows;
    int64_t own = kv_elements(b, rows, b->kv_heads);
    bool all = b->cp > 1 && b->layout.cp_method == ND_CP_METHOD_ALLGATHER;
    core_grads g = grads_start(b, rows, b->heads, all ? own * b->cp : own, kept->o_core, dout, kept->lse);
    if (b->cp == 1) {
        core c = core_of(b, rows, rows, b->heads, b->kv_heads, kept->q, kept->kv);
        attend_back(b, at, &c, &g);
    } else if (all) {
        gathered_back(b, at, kept, &g);
    } else {
        ring_back(b, at, kept, &g);
    }
    nd_release(b, &g.delta);
    release_core(b, kept);
    narrow(b, &g.dq, rows * b->heads * b->qk_dim, "dq");
    narrow(b, &g.dkv, own, "dk, dv");
    *dq = g.dq;
    *dkv = g.dkv;
}
