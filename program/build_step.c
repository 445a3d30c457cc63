/* Once a step: count the labels, and after the last micro-batch sum what copies have in parts, clip, update, gather. */
#include "program/builder_internal.h"

typedef struct segment {
    const nd_param *param;
    const nd_piece *piece;
    int64_t first, count; /* in the shard */
} segment;

/* The part of piece `index` that this rank's shard of the unit holds; count 0: none. */
static segment segment_of(const nd_builder *b, const nd_unit *unit, int32_t index)
{
    const nd_piece *piece = &b->program->placement.pieces[unit->first_piece + index];
    int64_t shard = unit->shard_index * unit->shard_elements;
    int64_t first = piece->offset > shard ? piece->offset : shard;
    int64_t end = piece->offset + piece->rows * piece->cols;
    int64_t shard_end = shard + unit->shard_elements;
    end = end < shard_end ? end : shard_end;
    return (segment){.param = &b->program->params.params[piece->param],
                     .piece = piece,
                     .first = first - shard,
                     .count = end > first ? end - first : 0};
}

static void all_reduce(nd_builder *b, nd_ref ref, int64_t elements, nd_members_kind group, const char *tag)
{
    if (nd_members_of(&b->layout, b->model->kv_heads, group, b->program->rank).count > 1) {
        nd_emit(b, &(nd_ins){.op = ND_INS_ALL_REDUCE,
                             .in = {ref},
                             .out = {ref},
                             .rows = elements,
                             .cols = 1,
                             .group = group,
                             .tag = tag});
    }
}

static bool partial_over_tp(const nd_builder *b, const nd_param *param)
{
    nd_mutation mutation = b->program->options.mutation;
    bool router = param->role == ND_ROLE_ROUTER || param->role == ND_ROLE_ROUTER_BIAS;
    if (b->tp == 1 || (mutation == ND_MUTATION_ROUTER_SUM && router)) {
        return false;
    }
    if (param->partial == ND_PARTIAL_SP) {
        return b->sp && mutation != ND_MUTATION_SP_NORM_SUM;
    }
    return param->partial == ND_PARTIAL_ALWAYS;
}

static bool copied_heads(const nd_builder *b, const nd_param *param)
{
    return param->split == ND_PARAM_KV_HEADS && b->tp > b->model->kv_heads &&
           b->program->options.mutation != ND_MUTATION_KV_REPLICA_SUM;
}

/* Gradients of what several tp ranks hold; neighbours in the shard that need the same sum travel together. */
static void sum_over_tp(nd_builder *b, int32_t index)
{
    const nd_unit *unit = &b->program->placement.units[index];
    nd_ref grads = b->uses[index].reduced;
    int64_t first = 0;
    int64_t count = 0;
    for (int32_t i = 0; i <= unit->pieces; i++) {
        segment s = {0};
        bool partial = false;
        if (i < unit->pieces) {
            s = segment_of(b, unit, i);
            partial = s.count > 0 && partial_over_tp(b, s.param);
            if (s.count > 0 && copied_heads(b, s.param)) {
                all_reduce(b, nd_at(grads.buffer, grads.offset + s.first), s.count, ND_MEMBERS_KV_REPLICA,
                           "sum over copies of a kv head");
            }
        }
        if (count > 0 && (!partial || first + count != s.first)) {
            all_reduce(b, nd_at(grads.buffer, grads.offset + first), count, ND_MEMBERS_TP, "sum over tp");
            count = 0;
        }
        if (partial) {
            first = count > 0 ? first : s.first;
            count += s.count;
        }
    }
}

static void sum_tied(nd_builder *b, int32_t index)
{
    const nd_unit *unit = &b->program->placement.units[index];
    if (b->model->tied_embeddings && b->pp > 1 && unit->kind == ND_UNIT_EMBED &&
        b->program->options.mutation != ND_MUTATION_TIED_SUM) {
        all_reduce(b, b->uses[index].reduced, unit->shard_elements, ND_MEMBERS_EMBED, "sum over tied embeddings");
    }
}

/* Does this rank speak for the data ranks that hold the same elements? */
static bool counts(const nd_builder *b, const nd_unit *unit)
{
    if (unit->shards > 1) {
        return b->coords[ND_AXIS_DP_REPLICATE] == 0;
    }
    nd_members_kind group = unit->kind == ND_UNIT_EXPERTS ? ND_MEMBERS_EXPERT_GRAD : ND_MEMBERS_GRAD;
    return nd_members_of(&b->layout, b->model->kv_heads, group, b->program->rank).index == 0;
}

static void add_squares(nd_builder *b, int32_t index, int32_t squares)
{
    const nd_unit *unit = &b->program->placement.units[index];
    nd_ref grads = b->uses[index].reduced;
    bool all = b->program->options.mutation == ND_MUTATION_NORM_DOUBLE_COUNT;
    for (int32_t i = 0; i < unit->pieces && counts(b, unit); i++) {
        segment s = segment_of(b, unit, i);
        if (s.count > 0 && (all || s.piece->primary)) {
            nd_emit(b, &(nd_ins){.op = ND_INS_SUM_SQUARES,
                                 .in = {nd_at(grads.buffer, grads.offset + s.first)},
                                 .out = {nd_whole(squares)},
                                 .rows = s.count,
                                 .cols = 1,
                                 .accumulate = true,
                                 .tag = "gradient norm"});
        }
    }
}

static void adamw(nd_builder *b, int32_t index, int32_t scale, int64_t first, int64_t count, bool decay)
{
    const nd_unit *unit = &b->program->placement.units[index];
    const nd_unit_state *state = &b->program->states[index];
    nd_ref grads = b->uses[index].reduced;
    nd_ref weight = nd_whole(0);
    if (b->real != b->wide) {
        bool whole = !nd_unit_shards_weights(b, index);
        weight = nd_at(state->weights, (whole ? unit->shard_index * unit->shard_elements : 0) + first);
    }
    nd_emit(b, &(nd_ins){.op = ND_INS_ADAMW,
                         .in = {nd_at(grads.buffer, grads.offset + first), nd_whole(scale)},
                         .out = {nd_at(state->master.buffer, state->master.offset + first), nd_at(state->m, first),
                                 nd_at(state->v, first), weight},
                         .rows = count,
                         .cols = 1,
                         .decay = decay,
                         .tag = "adamw"});
}

static void update_unit(nd_builder *b, int32_t index, int32_t scale)
{
    const nd_unit *unit = &b->program->placement.units[index];
    int64_t first = 0;
    int64_t count = 0;
    bool decay = false;
    for (int32_t i = 0; i < unit->pieces; i++) {
        segment s = segment_of(b, unit, i);
        if (s.count == 0) {
            continue;
        }
        if (count > 0 && (decay != s.param->decay || first + count != s.first)) {
            adamw(b, index, scale, first, count, decay);
            count = 0;
        }
        first = count > 0 ? first : s.first;
        decay = s.param->decay;
        count += s.count;
    }
    if (count > 0) {
        adamw(b, index, scale, first, count, decay);
    }
    if (unit->shards > 1 && !nd_unit_shards_weights(b, index)) {
        int32_t weights = b->program->states[index].weights;
        nd_emit(b, &(nd_ins){.op = ND_INS_ALL_GATHER,
                             .stream = ND_STREAM_GATHER,
                             .in = {nd_at(weights, unit->shard_index * unit->shard_elements)},
                             .out = {nd_whole(weights)},
                             .rows = unit->shard_elements,
                             .cols = 1,
                             .group = unit->shard,
                             .tag = "gather updated weights"});
    }
    nd_release(b, &b->uses[index].grads); /* batch_first keeps them until here */
}

void nd_build_update(nd_builder *b)
{
    b->layer = -1;
    b->micro = -1;
    b->pass = ND_PASS_BACKWARD;
    int32_t units = b->program->placement.units_count;
    int32_t squares = nd_buffer_new(b, 1, ND_ELEM_F64, ND_MEMORY_WORKSPACE, "sum of squares");
    int32_t scale = nd_buffer_new(b, 1, ND_ELEM_F64, ND_MEMORY_WORKSPACE, "clip scale");
    nd_emit_zero(b, nd_whole(squares), 1);
    for (int32_t i = 0; i < units; i++) {
        b->layer = b->program->placement.units[i].layer;
        sum_over_tp(b, i);
        sum_tied(b, i);
        add_squares(b, i, squares);
    }
    b->layer = -1;
    all_reduce(b, nd_whole(squares), 1, ND_MEMBERS_WORLD, "gradient norm");
    all_reduce(b, nd_whole(b->program->loss), 1, ND_MEMBERS_WORLD, "loss");
    nd_emit(b, &(nd_ins){.op = ND_INS_CLIP,
                         .in = {nd_whole(squares)},
                         .out = {nd_whole(b->program->grad_norm), nd_whole(scale)},
                         .rows = 1,
                         .cols = 1,
                         .max_norm = b->program->options.clip_norm,
                         .tag = "clip"});
    for (int32_t i = 0; i < units; i++) {
        b->layer = b->program->placement.units[i].layer;
        update_unit(b, i, scale);
    }
    nd_release(b, &squares);
    nd_release(b, &scale);
}

static void zero_grads(nd_builder *b)
{
    for (int32_t i = 0; i < b->program->placement.units_count; i++) {
        int32_t grads = b->program->states[i].grads;
        if (grads != 0 && !b->failed) {
            nd_emit_zero(b, nd_whole(grads), b->program->buffers[grads].elements);
        }
    }
}

/* All labels of this rank's sequences; loss and gradients are divided by their number over all ranks. */
void nd_build_step_start(nd_builder *b, int32_t *count)
{
    zero_grads(b);
    nd_emit_zero(b, nd_whole(b->program->loss), 1);
    *count = 0;
    if (b->coords[ND_AXIS_PP] != b->pp - 1) {
        return;
    }
    *count = nd_buffer_new(b, 1, ND_ELEM_F64, ND_MEMORY_WORKSPACE, "labels of the step");
    nd_emit_zero(b, nd_whole(*count), 1);
    for (int32_t micro = 0; micro < b->layout.grad_accum; micro++) {
        b->micro = micro;
        int32_t labels = nd_build_load(b, true);
        nd_emit(b, &(nd_ins){.op = ND_INS_COUNT_LABELS,
                             .in = {nd_whole(labels)},
                             .out = {nd_whole(*count)},
                             .rows = b->region_rows,
                             .cols = 1,
                             .accumulate = true,
                             .tag = "count labels"});
        nd_release(b, &labels);
    }
    b->micro = -1;
    if (b->program->options.mutation != ND_MUTATION_MEAN_OF_MEANS) {
        all_reduce(b, nd_whole(*count), 1, ND_MEMBERS_GRAD, "labels of the step");
        return;
    }
    int32_t ranks = nd_members_of(&b->layout, 1, ND_MEMBERS_GRAD, b->program->rank).count;
    for (int32_t factor = 1; factor < ranks; factor *= 2) { /* own number x ranks, a power of two in that test */
        nd_emit_add(b, nd_whole(*count), nd_whole(*count), nd_whole(*count), 1, "mistake");
    }
}
