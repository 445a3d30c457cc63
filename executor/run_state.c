#include "executor/run_state.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of the wide type to and from fp64, which holds both without rounding. */
static void narrow(const double *from, nd_elem wide, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        if (wide == ND_ELEM_F64) {
            ((double *)to)[i] = from[i];
        } else {
            ((float *)to)[i] = (float)from[i];
        }
    }
}

static void widen(const void *from, nd_elem wide, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = wide == ND_ELEM_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
    }
}

enum { BLOCK = 4096 };

static nd_ref part_of(const nd_unit_state *state, nd_checkpoint_part part)
{
    return part == ND_CHECKPOINT_MASTER ? state->master
                                        : (nd_ref){.buffer = part == ND_CHECKPOINT_M ? state->m : state->v};
}

static void fill(void *user, int32_t unit, nd_checkpoint_part part, void *out)
{
    nd_rank *rank = user;
    const nd_program *program = nd_rank_program(rank);
    nd_elem wide = nd_wide_elem(program->options.real);
    nd_ref from = part_of(&program->states[unit], part);
    int64_t elements = program->placement.units[unit].shard_elements;
    double block[BLOCK];
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t take = elements - at < BLOCK ? elements - at : BLOCK;
        nd_rank_read(rank, (nd_ref){from.buffer, from.offset + at}, take, block);
        narrow(block, wide, take, (char *)out + at * nd_elem_bytes(wide));
    }
}

nd_status nd_run_save(const nd_run *run, const char *directory, nd_error *err)
{
    const nd_program *program = nd_rank_program(nd_run_rank(run, 0));
    nd_checkpoint_writer *writer = NULL;
    const nd_checkpoint_info info = {.layout = program->layout,
                                     .chunks = program->chunks,
                                     .step = nd_run_steps_done(run),
                                     .seed = nd_run_options_get(run)->data.seed,
                                     .wide = nd_wide_elem(program->options.real)};
    ND_TRY(nd_checkpoint_create(directory, nd_run_model(run), nd_run_params(run), &info, &writer, err));
    for (int32_t i = 0; i < nd_run_ranks(run); i++) {
        nd_rank *rank = nd_run_rank(run, i);
        nd_status status = nd_checkpoint_put(writer, &nd_rank_program(rank)->placement, fill, rank, err);
        if (status != ND_OK) {
            nd_checkpoint_discard(writer);
            return status;
        }
    }
    return nd_checkpoint_finish(writer, err);
}

/** A rank that is being loaded. */
typedef struct loading {
    const nd_checkpoint *checkpoint;
    nd_rank *rank;
    void *numbers; /* READ_BLOCK of the wide type */
} loading;

enum { READ_BLOCK = 64 * BLOCK };

static void write_rank(const loading *l, nd_elem wide, int64_t elements, nd_ref to)
{
    double block[BLOCK];
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t take = elements - at < BLOCK ? elements - at : BLOCK;
        widen((const char *)l->numbers + at * nd_elem_bytes(wide), wide, take, block);
        nd_rank_write(l->rank, (nd_ref){to.buffer, to.offset + at}, take, block);
    }
}

/* Elements first .. of the flat unit into `to`, a block at a time. */
static nd_status load_part(const loading *l, const nd_unit *unit, nd_checkpoint_part part, int64_t first,
                           int64_t elements, nd_ref to, nd_error *err)
{
    const nd_placement *placement = &nd_rank_program(l->rank)->placement;
    for (int64_t at = 0; at < elements; at += READ_BLOCK) {
        int64_t take = elements - at < READ_BLOCK ? elements - at : READ_BLOCK;
        ND_TRY(nd_checkpoint_read(l->checkpoint, placement, unit, part, first + at, take, l->numbers, err));
        write_rank(l, nd_checkpoint_info_get(l->checkpoint)->wide, take, (nd_ref){to.buffer, to.offset + at});
    }
    return ND_OK;
}

static nd_status load_unit(const loading *l, int32_t index, nd_error *err)
{
    const nd_program *program = nd_rank_program(l->rank);
    const nd_unit *unit = &program->placement.units[index];
    const nd_unit_state *state = &program->states[index];
    int64_t shard = unit->shard_elements;
    int64_t first = unit->shard_index * shard;
    int64_t weights = program->buffers[state->weights].elements;
    ND_TRY(load_part(l, unit, ND_CHECKPOINT_MASTER, weights > shard ? 0 : first, weights,
                     (nd_ref){.buffer = state->weights}, err));
    for (int part = 0; part < ND_CHECKPOINT_PARTS; part++) {
        nd_ref to = part_of(state, (nd_checkpoint_part)part);
        if (to.buffer != state->weights) {
            ND_TRY(load_part(l, unit, (nd_checkpoint_part)part, first, shard, to, err));
        }
    }
    return ND_OK;
}

static nd_status load_ranks(nd_run *run, const nd_checkpoint *checkpoint, nd_error *err)
{
    loading l = {.checkpoint = checkpoint, .numbers = malloc(READ_BLOCK * sizeof(double))};
    if (l.numbers == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    nd_status status = ND_OK;
    for (int32_t i = 0; i < nd_run_ranks(run) && status == ND_OK; i++) {
        l.rank = nd_run_rank(run, i);
        int32_t units = nd_rank_program(l.rank)->placement.units_count;
        for (int32_t unit = 0; unit < units && status == ND_OK; unit++) {
            status = load_unit(&l, unit, err);
        }
    }
    free(l.numbers);
    return status;
}

nd_status nd_run_resume(nd_run *run, const char *path, nd_error *err)
{
    nd_checkpoint *checkpoint = NULL;
    nd_elem wide = nd_wide_elem(nd_rank_program(nd_run_rank(run, 0))->options.real);
    ND_TRY(nd_checkpoint_open(path, nd_run_model(run), nd_run_params(run), wide, &checkpoint, err));
    nd_status status = load_ranks(run, checkpoint, err);
    if (status == ND_OK) {
        nd_run_set_steps_done(run, nd_checkpoint_info_get(checkpoint)->step);
    }
    nd_checkpoint_close(checkpoint);
    return status;
}
