#include "executor/rank.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "executor/bf16.h"
#include "executor/poison_internal.h"

struct nd_rank {
    const nd_program *program;
    nd_rank_options options;
    nd_device *device;
    char *arena;
    int64_t live_bytes;
    int64_t live_class_bytes[ND_MEMORY_CLASS_COUNT];
    nd_rank_measured measured;
    double *start_s, *end_s;
    int64_t batch_first_sequence; /* of this rank in the step that runs */
    int64_t step;
    int32_t at; /* instruction that runs; -1: none yet */
};

/* Sequences are dealt in the order of the global batch: a data rank takes a contiguous block of it. */
static int64_t first_sequence(const nd_rank *rank, int32_t micro)
{
    const nd_program *program = rank->program;
    const nd_layout *layout = &program->layout;
    int32_t coords[ND_AXIS_COUNT];
    nd_mesh_coords(layout, program->rank, coords);
    int64_t data_rank =
        (int64_t)coords[ND_AXIS_DP_REPLICATE] * layout->size[ND_AXIS_DP_SHARD] + coords[ND_AXIS_DP_SHARD];
    int64_t per_rank = layout->grad_accum * layout->micro_batch;
    return (rank->step - 1) * program->train.global_batch_seqs + data_rank * per_rank +
           (int64_t)micro * layout->micro_batch;
}

static void load(void *user, int32_t micro, const nd_seq_map *map, int32_t micro_batch, int32_t *tokens,
                 int32_t *labels)
{
    const nd_rank *rank = user;
    nd_data_rows(rank->options.data, first_sequence(rank, micro), micro_batch, map, tokens, labels);
}

static void count_memory(nd_rank *rank, const nd_buffer *buffer, int sign)
{
    int64_t bytes = sign * nd_buffer_bytes(buffer);
    nd_memory_class of = buffer->memory_class;
    rank->live_bytes += bytes;
    rank->live_class_bytes[of] += bytes;
    nd_rank_measured *m = &rank->measured;
    if (rank->live_class_bytes[of] > m->peak_class_bytes[of]) {
        m->peak_class_bytes[of] = rank->live_class_bytes[of];
    }
    if (rank->live_bytes > m->peak_bytes) {
        m->peak_bytes = rank->live_bytes;
    }
}

/* The last bytes of a buffer up to where the next may begin are nobody's, and stay poisoned. */
static void poison(const nd_rank *rank, const nd_buffer *buffer, bool alive)
{
    char *memory = rank->arena + buffer->offset;
    size_t bytes = (size_t)(buffer->elements * nd_elem_bytes(buffer->elem));
    if (alive) {
        nd_poison_lift(memory, bytes);
    } else {
        nd_poison(memory, bytes);
    }
}

static void begin_or_end(nd_rank *rank, const nd_buffer *buffer, bool begins)
{
    count_memory(rank, buffer, begins ? 1 : -1);
    if (rank->options.poison) {
        poison(rank, buffer, begins);
    }
}

static nd_status open_parts(nd_rank *rank, nd_error *err)
{
    const nd_program *program = rank->program;
    void *arena = NULL;
    ND_TRY(rank->options.backend->open((int32_t)program->rank, program->options.real, &rank->device, err));
    ND_TRY(rank->options.backend->reserve(rank->device, program->arena_bytes, &arena, err));
    rank->arena = arena;
    if (rank->options.profile) {
        rank->start_s = calloc((size_t)program->ins_count, sizeof *rank->start_s);
        rank->end_s = calloc((size_t)program->ins_count, sizeof *rank->end_s);
        if (rank->start_s == NULL || rank->end_s == NULL) {
            return nd_fail(err, ND_ENOMEM, "out of memory for the profile of %d instructions", program->ins_count);
        }
    }
    if (rank->options.poison) {
        nd_poison(arena, (size_t)program->arena_bytes);
    }
    for (int32_t id = 1; id < program->buffers_count; id++) {
        if (program->buffers[id].born < 0) {
            begin_or_end(rank, &program->buffers[id], true);
        }
    }
    return ND_OK;
}

nd_status nd_rank_open(const nd_program *program, const nd_rank_options *options, nd_rank **out, nd_error *err)
{
    nd_rank *rank = calloc(1, sizeof *rank);
    if (rank == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    rank->program = program;
    rank->options = *options;
    rank->at = -1;
    nd_status status = open_parts(rank, err);
    if (status != ND_OK) {
        nd_rank_close(rank);
        return status;
    }
    *out = rank;
    return ND_OK;
}

void nd_rank_close(nd_rank *rank)
{
    if (rank != NULL) {
        if (rank->options.poison && rank->arena != NULL) {
            nd_poison_lift(rank->arena, (size_t)rank->program->arena_bytes);
        }
        rank->options.backend->close(rank->device);
        free(rank->start_s);
        free(rank->end_s);
        free(rank);
    }
}

static nd_operand find(const nd_rank *rank, nd_ref ref)
{
    if (ref.buffer == 0) {
        return (nd_operand){0};
    }
    const nd_buffer *buffer = &rank->program->buffers[ref.buffer];
    return (nd_operand){.data = rank->arena + buffer->offset + ref.offset * nd_elem_bytes(buffer->elem),
                        .elem = buffer->elem};
}

nd_call nd_rank_call(nd_rank *rank, int32_t index, const nd_step *step)
{
    const nd_ins *ins = &rank->program->ins[index];
    nd_call call = {.ins = ins, .step = step, .load = load, .load_user = rank};
    for (int i = 0; i < ND_INS_IN_MAX; i++) {
        call.in[i] = find(rank, ins->in[i]);
    }
    for (int i = 0; i < ND_INS_OUT_MAX; i++) {
        call.out[i] = find(rank, ins->out[i]);
    }
    call.live_rows = find(rank, ins->live_rows).data;
    return call;
}

nd_status nd_rank_compute(nd_rank *rank, const nd_call *call, nd_error *err)
{
    rank->step = call->step->step;
    return rank->options.backend->execute(rank->device, call, err);
}

static nd_status run(nd_rank *rank, const nd_call *call, nd_error *err)
{
    const nd_ins *ins = call->ins;
    if (ins->op == ND_INS_ALLOC || ins->op == ND_INS_FREE) {
        begin_or_end(rank, &rank->program->buffers[ins->out[0].buffer], ins->op == ND_INS_ALLOC);
        return ND_OK;
    }
    if (ins->op == ND_INS_WAIT) {
        return ND_OK; /* this executor runs the list in order */
    }
    if (!nd_ins_communicates(ins->op)) {
        return nd_rank_compute(rank, call, err);
    }
    const nd_program *program = rank->program;
    nd_members members = nd_members_of(&program->layout, rank->options.kv_heads, ins->group, program->rank);
    return rank->options.comm->table->execute(rank->options.comm, (int32_t)program->rank, call, &members, err);
}

static double number_at(const nd_operand *operand, int64_t i)
{
    assert(operand->data != NULL);
    switch (operand->elem) {
    case ND_ELEM_F64:
        return ((const double *)operand->data)[i];
    case ND_ELEM_F32:
        return (double)((const float *)operand->data)[i];
    case ND_ELEM_BF16:
        return (double)nd_from_bf16(((const uint16_t *)operand->data)[i]);
    case ND_ELEM_I32:
    case ND_ELEM_COUNT:
        break;
    }
    return (double)((const int32_t *)operand->data)[i];
}

/* Elements that an instruction writes to its first output; 0 where not all of them are defined. */
static int64_t written(const nd_call *call)
{
    const nd_ins *ins = call->ins;
    if (call->live_rows != NULL || ins->op == ND_INS_ALL_TO_ALL_ROWS || ins->op == ND_INS_GEMM_GROUPED) {
        return 0;
    }
    return ins->op == ND_INS_GEMM ? ins->m * ins->n : ins->rows * ins->cols;
}

static nd_status look_for_nan(const nd_rank *rank, const nd_call *call, nd_error *err)
{
    bool watched = call->ins->op == ND_INS_GEMM || call->ins->op == ND_INS_ADD || call->ins->op == ND_INS_ADAMW ||
                   call->ins->op == ND_INS_NORM || call->ins->op == ND_INS_ALL_REDUCE;
    for (int64_t i = 0; watched && i < written(call); i++) {
        double x = number_at(&call->out[0], i);
        if (!isfinite(x) && !(call->ins->max && isinf(x))) {
            return nd_fail(err, ND_EINVAL, "step %" PRId64 ": %s in element %" PRId64 " of the result", rank->step,
                           isnan(x) ? "NaN" : "infinity", i);
        }
    }
    return ND_OK;
}

void nd_rank_where(const nd_rank *rank, char text[ND_RANK_WHERE_MAX])
{
    int used = snprintf(text, ND_RANK_WHERE_MAX, "rank %" PRId64, rank->program->rank);
    if (rank->at < 0) {
        return;
    }
    const nd_ins *ins = &rank->program->ins[rank->at];
    used += snprintf(text + used, (size_t)(ND_RANK_WHERE_MAX - used), ", instruction %d (%s, %s)", rank->at,
                     nd_ins_name(ins->op), ins->tag);
    if (ins->layer >= 0 && used < ND_RANK_WHERE_MAX) {
        (void)snprintf(text + used, (size_t)(ND_RANK_WHERE_MAX - used), ", layer %d", ins->layer);
    }
}

/* The message gets where it happened in front. */
static nd_status locate(const nd_rank *rank, nd_status status, nd_error *err)
{
    char where[ND_RANK_WHERE_MAX];
    if (err == NULL || status == ND_EINTERRUPTED) {
        return status;
    }
    nd_error why = *err;
    nd_rank_where(rank, where);
    return nd_fail(err, status, "%s: %.800s", where, why.message);
}

nd_status nd_rank_step(nd_rank *rank, const nd_step *step, nd_error *err)
{
    rank->step = step->step;
    for (int32_t i = 0; i < rank->program->ins_count; i++) {
        nd_call call = nd_rank_call(rank, i, step);
        rank->at = i;
        if (rank->start_s != NULL) {
            rank->start_s[i] = nd_monotonic_s();
        }
        nd_status status = run(rank, &call, err);
        if (status == ND_OK && rank->options.check_nan) {
            status = look_for_nan(rank, &call, err);
        }
        if (rank->end_s != NULL) {
            rank->end_s[i] = nd_monotonic_s();
        }
        if (status != ND_OK) {
            return locate(rank, status, err);
        }
    }
    return rank->options.backend->synchronise(rank->device, err);
}

void nd_rank_read(nd_rank *rank, nd_ref from, int64_t elements, double *out)
{
    nd_operand operand = find(rank, from);
    assert(operand.data != NULL);
    for (int64_t i = 0; i < elements; i++) {
        out[i] = number_at(&operand, i);
    }
}

void nd_rank_write(nd_rank *rank, nd_ref to, int64_t elements, const double *in)
{
    nd_operand operand = find(rank, to);
    assert(operand.data != NULL);
    for (int64_t i = 0; i < elements; i++) {
        switch (operand.elem) {
        case ND_ELEM_F64:
            ((double *)operand.data)[i] = in[i];
            break;
        case ND_ELEM_F32:
            ((float *)operand.data)[i] = (float)in[i];
            break;
        case ND_ELEM_BF16:
            ((uint16_t *)operand.data)[i] = nd_to_bf16((float)in[i]);
            break;
        case ND_ELEM_I32:
        case ND_ELEM_COUNT:
            ((int32_t *)operand.data)[i] = (int32_t)in[i];
            break;
        }
    }
}

static double scalar(nd_rank *rank, int32_t buffer)
{
    double x = 0.0;
    nd_rank_read(rank, (nd_ref){.buffer = buffer}, 1, &x);
    return x;
}

double nd_rank_loss(nd_rank *rank)
{
    return scalar(rank, rank->program->loss);
}

double nd_rank_grad_norm(nd_rank *rank)
{
    return scalar(rank, rank->program->grad_norm);
}

const nd_program *nd_rank_program(const nd_rank *rank)
{
    return rank->program;
}

nd_rank_measured nd_rank_measured_get(const nd_rank *rank)
{
    nd_rank_measured measured = rank->measured;
    measured.start_s = rank->start_s;
    measured.end_s = rank->end_s;
    return measured;
}

/** Where the runs of a unit go while weights are filled in. */
typedef struct fill {
    nd_rank *rank;
    const nd_init_options *options;
    nd_ref to; /* element `first` of the flat unit */
    int64_t first;
    double *row; /* scratch */
} fill;

static void fill_run(void *user, const nd_piece *piece, int64_t flat, int64_t row, int64_t col, int64_t elements)
{
    const fill *f = user;
    const nd_param *param = &f->rank->program->params.params[piece->param];
    for (int64_t i = 0; i < elements; i++) {
        f->row[i] = nd_init_value(f->options, param, piece->param, row, col + i);
    }
    nd_rank_write(f->rank, (nd_ref){f->to.buffer, f->to.offset + flat - f->first}, elements, f->row);
}

static void zero(nd_rank *rank, int32_t buffer)
{
    const nd_buffer *b = &rank->program->buffers[buffer];
    memset(rank->arena + b->offset, 0, (size_t)(b->elements * nd_elem_bytes(b->elem)));
}

static void init_unit(nd_rank *rank, int32_t index, fill *f)
{
    const nd_program *program = rank->program;
    const nd_unit *unit = &program->placement.units[index];
    const nd_unit_state *state = &program->states[index];
    int64_t shard_first = unit->shard_index * unit->shard_elements;
    bool whole = program->buffers[state->weights].elements > unit->shard_elements;
    zero(rank, state->weights);
    zero(rank, state->m);
    zero(rank, state->v);
    f->to = (nd_ref){.buffer = state->weights};
    f->first = whole ? 0 : shard_first;
    nd_placement_runs(&program->placement, unit, f->first, program->buffers[state->weights].elements, fill_run, f);
    if (state->master.buffer != state->weights) {
        zero(rank, state->master.buffer);
        f->to = state->master;
        f->first = shard_first;
        nd_placement_runs(&program->placement, unit, shard_first, unit->shard_elements, fill_run, f);
    }
}

nd_status nd_rank_init(nd_rank *rank, const nd_init_options *options, nd_error *err)
{
    const nd_program *program = rank->program;
    int64_t widest = 1;
    for (int32_t i = 0; i < program->placement.pieces_count; i++) {
        int64_t cols = program->placement.pieces[i].cols;
        widest = cols > widest ? cols : widest;
    }
    fill f = {.rank = rank, .options = options, .row = malloc((size_t)widest * sizeof(double))};
    if (f.row == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    for (int32_t i = 0; i < program->placement.units_count; i++) {
        init_unit(rank, i, &f);
    }
    free(f.row);
    return ND_OK;
}
