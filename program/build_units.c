/* Weights and gradients of units: what is gathered when, and what is reduced after which micro-batch. */
#include <assert.h>
#include <stddef.h>

#include "program/builder_internal.h"

static const nd_unit *unit_of(const nd_builder *b, int32_t unit)
{
    return &b->program->placement.units[unit];
}

static const nd_piece *piece_of(const nd_builder *b, int32_t unit, nd_role role)
{
    return nd_placement_piece(&b->program->placement, &b->program->params, unit_of(b, unit), role);
}

static int64_t padded(const nd_unit *unit)
{
    return unit->shard_elements * unit->shards;
}

bool nd_unit_shards_weights(const nd_builder *b, int32_t unit)
{
    return b->layout.sharding == ND_SHARDING_ZERO3 && unit_of(b, unit)->shards > 1;
}

/* Whether gradients are reduced after every micro-batch. */
static bool shards_grads(const nd_builder *b, int32_t unit)
{
    return b->layout.sharding >= ND_SHARDING_ZERO2 && unit_of(b, unit)->shards > 1;
}

/* Experts of different ranks mix sequences in one matrix product: there is no order of sequences to keep. */
static bool batch_first(const nd_builder *b, int32_t unit)
{
    return b->program->options.batch_first && (unit_of(b, unit)->kind != ND_UNIT_EXPERTS || b->layout.ep == 1);
}

int32_t nd_unit_find(const nd_builder *b, nd_unit_kind kind, int32_t layer)
{
    const nd_unit *unit = nd_placement_unit(&b->program->placement, kind, layer);
    assert(unit != NULL);
    return (int32_t)(unit - b->program->placement.units);
}

bool nd_unit_has(const nd_builder *b, int32_t unit, nd_role role)
{
    return piece_of(b, unit, role) != NULL;
}

void nd_unit_open(nd_builder *b, int32_t unit)
{
    nd_unit_use *use = &b->uses[unit];
    if (!nd_unit_shards_weights(b, unit) || use->gathers++ > 0) {
        return;
    }
    const nd_unit *held = unit_of(b, unit);
    use->gathered = nd_buffer_new(b, padded(held), b->real, ND_MEMORY_GATHERED, "gathered weights");
    nd_emit(b, &(nd_ins){.op = ND_INS_ALL_GATHER,
                         .stream = ND_STREAM_GATHER,
                         .in = {nd_whole(b->program->states[unit].weights)},
                         .out = {nd_whole(use->gathered)},
                         .rows = held->shard_elements,
                         .cols = 1,
                         .group = held->shard,
                         .tag = "gather weights"});
}

void nd_unit_close(nd_builder *b, int32_t unit)
{
    nd_unit_use *use = &b->uses[unit];
    if (nd_unit_shards_weights(b, unit) && --use->gathers == 0) {
        nd_release(b, &use->gathered);
    }
}

nd_ref nd_weight(const nd_builder *b, int32_t unit, nd_role role)
{
    const nd_piece *piece = piece_of(b, unit, role);
    assert(piece != NULL);
    bool gathers = nd_unit_shards_weights(b, unit);
    return nd_at(gathers ? b->uses[unit].gathered : b->program->states[unit].weights, piece->offset);
}

nd_ref nd_weight_grad(nd_builder *b, int32_t unit, nd_role role)
{
    const nd_piece *piece = piece_of(b, unit, role);
    assert(piece != NULL);
    nd_unit_use *use = &b->uses[unit];
    if (!shards_grads(b, unit) && !batch_first(b, unit)) {
        return nd_at(b->program->states[unit].grads, piece->offset);
    }
    if (use->grads == 0) {
        int64_t elements = padded(unit_of(b, unit));
        use->grads = nd_buffer_new(b, elements, b->wide, ND_MEMORY_GATHERED, "whole gradients");
        nd_emit_zero(b, nd_whole(use->grads), elements);
    }
    return nd_at(use->grads, piece->offset);
}

static int32_t members(const nd_builder *b, nd_members_kind kind)
{
    return nd_members_of(&b->layout, b->model->kv_heads, kind, b->program->rank).count;
}

static void reduce(nd_builder *b, nd_ins_op op, nd_ref in, nd_ref out, int64_t elements, nd_members_kind group)
{
    bool skipped = group == ND_MEMBERS_REPLICATE && b->program->options.mutation == ND_MUTATION_REPLICA_SUM;
    if (members(b, group) > 1 && !skipped) {
        nd_emit(b, &(nd_ins){.op = op,
                             .stream = ND_STREAM_REDUCE,
                             .in = {in},
                             .out = {out},
                             .rows = elements,
                             .cols = 1,
                             .group = group,
                             .tag = "reduce gradients"});
    }
}

/* Add `addend` (taken over) to the sums of 1, 2, 4, ... sequences that are waiting for a partner. */
static void add_to_tree(nd_builder *b, int32_t unit, int32_t addend)
{
    nd_unit_use *use = &b->uses[unit];
    int64_t elements = padded(unit_of(b, unit));
    int level = 0;
    for (; use->tree[level] != 0; level++) {
        nd_emit_add(b, nd_whole(use->tree[level]), nd_whole(addend), nd_whole(use->tree[level]), elements,
                    "add gradients");
        nd_release(b, &addend);
        addend = use->tree[level];
        use->tree[level] = 0;
    }
    use->tree[level] = addend;
}

/* The whole sum; what waits on several levels (grad_accum no power of two) is added from the smallest up. */
static int32_t take_tree(nd_builder *b, int32_t unit)
{
    nd_unit_use *use = &b->uses[unit];
    int64_t elements = padded(unit_of(b, unit));
    int32_t sum = 0;
    for (int level = 0; level < ND_TREE_LEVELS_MAX; level++) {
        int32_t larger = use->tree[level];
        use->tree[level] = 0;
        if (larger == 0) {
            continue;
        }
        if (sum != 0) {
            nd_emit_add(b, nd_whole(larger), nd_whole(sum), nd_whole(larger), elements, "add gradients");
            nd_release(b, &sum);
        }
        sum = larger;
    }
    return sum;
}

/* Data ranks before cp members: first over dp_shard, then dp_replicate, then cp. */
static void reduce_batch_first(nd_builder *b, int32_t unit)
{
    const nd_unit *held = unit_of(b, unit);
    nd_unit_use *use = &b->uses[unit];
    use->grads = take_tree(b, unit);
    int64_t first = 0;
    int64_t count = padded(held);
    if (held->shards > 1) {
        count = held->shard_elements * b->cp;
        first = (held->shard_index / b->cp) * count;
        reduce(b, ND_INS_REDUCE_SCATTER, nd_whole(use->grads), nd_at(use->grads, first), count, ND_MEMBERS_DP_SHARD);
    }
    reduce(b, ND_INS_ALL_REDUCE, nd_at(use->grads, first), nd_at(use->grads, first), count, ND_MEMBERS_REPLICATE);
    nd_ref part = nd_at(use->grads, first);
    if (held->shards > 1) {
        nd_ref own = nd_at(use->grads, first + (held->shard_index % b->cp) * held->shard_elements);
        reduce(b, ND_INS_REDUCE_SCATTER, part, own, held->shard_elements, ND_MEMBERS_CP);
        part = own;
    } else {
        reduce(b, ND_INS_ALL_REDUCE, part, part, count, ND_MEMBERS_CP);
    }
    use->reduced = part;
}

/* Add the whole gradients of a micro-batch into the shard. */
static void reduce_into_shard(nd_builder *b, int32_t unit, nd_ref shard)
{
    const nd_unit *held = unit_of(b, unit);
    nd_unit_use *use = &b->uses[unit];
    nd_ref own = nd_at(use->grads, held->shard_index * held->shard_elements);
    reduce(b, ND_INS_REDUCE_SCATTER, nd_whole(use->grads), own, held->shard_elements, held->shard);
    nd_emit(b, &(nd_ins){.op = ND_INS_ADD,
                         .stream = ND_STREAM_REDUCE,
                         .in = {shard, own},
                         .out = {shard},
                         .rows = held->shard_elements,
                         .cols = 1,
                         .tag = "add gradients"});
    nd_release(b, &use->grads);
}

static void reduce_sharded(nd_builder *b, int32_t unit, bool last)
{
    const nd_unit *held = unit_of(b, unit);
    nd_ref shard = nd_whole(b->program->states[unit].grads);
    /* under zero_bubble an earlier micro-batch's reduction may have taken what this one had */
    if (b->uses[unit].grads != 0) {
        reduce_into_shard(b, unit, shard);
    }
    if (last) {
        reduce(b, ND_INS_ALL_REDUCE, shard, shard, held->shard_elements, ND_MEMBERS_REPLICATE);
        b->uses[unit].reduced = shard;
    }
}

static void reduce_whole(nd_builder *b, int32_t unit)
{
    const nd_unit *held = unit_of(b, unit);
    nd_ref whole = nd_whole(b->program->states[unit].grads);
    if (held->shards == 1) {
        bool experts = held->kind == ND_UNIT_EXPERTS;
        bool replicas_apart = b->program->options.mutation == ND_MUTATION_REPLICA_SUM;
        nd_members_kind all = experts ? ND_MEMBERS_EXPERT_GRAD : ND_MEMBERS_GRAD;
        nd_members_kind inner = experts ? ND_MEMBERS_EXPERT_SHARD : ND_MEMBERS_SHARD;
        reduce(b, ND_INS_ALL_REDUCE, whole, whole, padded(held), replicas_apart ? inner : all);
        b->uses[unit].reduced = whole;
        return;
    }
    nd_ref own = nd_at(whole.buffer, held->shard_index * held->shard_elements);
    reduce(b, ND_INS_REDUCE_SCATTER, whole, own, held->shard_elements, held->shard);
    reduce(b, ND_INS_ALL_REDUCE, own, own, held->shard_elements, ND_MEMBERS_REPLICATE);
    b->uses[unit].reduced = own;
}

void nd_unit_reduce(nd_builder *b, int32_t unit)
{
    nd_unit_use *use = &b->uses[unit];
    bool last = ++use->done == b->layout.grad_accum;
    if (batch_first(b, unit)) {
        if (use->grads != 0) {
            add_to_tree(b, unit, use->grads);
            use->grads = 0;
        }
        if (last) {
            reduce_batch_first(b, unit);
        }
    } else if (shards_grads(b, unit)) {
        reduce_sharded(b, unit, last);
    } else if (last) {
        reduce_whole(b, unit);
    }
}

void nd_build_states(nd_builder *b)
{
    nd_program *program = b->program;
    for (int32_t i = 0; i < program->placement.units_count; i++) {
        const nd_unit *unit = unit_of(b, i);
        nd_unit_state *state = &program->states[i];
        int64_t shard = unit->shard_elements;
        bool whole_weights = !nd_unit_shards_weights(b, i);
        state->weights =
            nd_buffer_persistent(b, whole_weights ? padded(unit) : shard, b->real, ND_MEMORY_WEIGHTS, "weights");
        if (b->real == b->wide) {
            state->master = nd_at(state->weights, whole_weights ? unit->shard_index * shard : 0);
        } else {
            state->master = nd_whole(nd_buffer_persistent(b, shard, b->wide, ND_MEMORY_OPTIMIZER, "master weights"));
        }
        state->m = nd_buffer_persistent(b, shard, b->wide, ND_MEMORY_OPTIMIZER, "first moments");
        state->v = nd_buffer_persistent(b, shard, b->wide, ND_MEMORY_OPTIMIZER, "second moments");
        if (!batch_first(b, i)) {
            int64_t elements = shards_grads(b, i) ? shard : padded(unit);
            state->grads = nd_buffer_persistent(b, elements, b->wide, ND_MEMORY_GRADS, "gradients");
        }
    }
}
