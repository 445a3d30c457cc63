#include "executor/run_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/units.h"
#include "executor/disk.h"
#include "executor/safetensors.h"

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

static nd_settings settings_of(const nd_run *run)
{
    const nd_run_options *options = nd_run_options_get(run);
    const nd_program *program = nd_rank_program(nd_run_rank(run, 0));
    nd_settings s = {.seed = options->data.seed,
                     .seq_len_tokens = program->train.seq_len_tokens,
                     .global_batch_seqs = program->train.global_batch_seqs,
                     .warmup_steps = options->warmup_steps,
                     .decay_steps = options->decay_steps,
                     .masked_frac = options->data.masked_frac,
                     .beta1 = options->step.beta1,
                     .beta2 = options->step.beta2,
                     .eps = options->step.eps,
                     .lr = options->step.lr,
                     .weight_decay = options->step.weight_decay,
                     .clip_norm = options->program.clip_norm};
    nd_data_identity(nd_run_data(run), &s.data_bytes, &s.data_checksum);
    return s;
}

static int64_t state_bytes(const nd_run *run)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < nd_run_ranks(run); i++) {
        const nd_program *program = nd_rank_program(nd_run_rank(run, i));
        bytes += nd_checkpoint_rank_bytes(nd_run_model(run), &program->placement, &program->layout,
                                          nd_wide_elem(program->options.real));
    }
    return bytes;
}

/* The file is replaced at the end: it must be one of its kind, and the new one must fit beside it. */
static nd_status check_weights(const nd_run *run, const nd_save_target *target, nd_error *err)
{
    const nd_param_list *params = nd_run_params(run);
    nd_safetensors *file = NULL;
    struct stat info;
    char parent[ND_DISK_PATH_MAX];
    int64_t room = 0;
    uint64_t disk = 0;
    if (stat(target->weights, &info) == 0) {
        if (nd_safetensors_open(target->weights, &file, NULL) != ND_OK) {
            return nd_fail(err, ND_EINVAL,
                           "'%s' exists and is no safetensors file: it is not written over; name another",
                           target->weights);
        }
        nd_safetensors_close(file);
    }
    ND_TRY(nd_disk_parent(target->weights, parent, err));
    ND_TRY(nd_disk_probe(parent, err));
    ND_TRY(nd_disk_room(parent, &room, &disk, err));
    double bytes = (double)nd_param_first(params, params->count) * (double)nd_elem_bytes(target->weights_elem);
    if (bytes > (double)room) {
        return nd_fail(err, ND_EIO,
                       "the disk of '%s' has %.1f MiB free, and all weights in one file have %.1f MiB; make room or "
                       "name another place",
                       target->weights, (double)room / ND_MIB, bytes / ND_MIB);
    }
    return ND_OK;
}

nd_status nd_run_save_check(const nd_run *run, const nd_save_target *target, nd_error *err)
{
    int64_t bytes = state_bytes(run);
    ND_TRY(nd_checkpoint_check(target->directory, nd_run_model(run), nd_run_params(run), bytes, target->saves,
                               target->keep, err));
    return target->weights == NULL ? ND_OK : check_weights(run, target, err);
}

nd_status nd_run_save(const nd_run *run, const char *directory, int64_t keep, nd_error *err)
{
    const nd_program *program = nd_rank_program(nd_run_rank(run, 0));
    nd_checkpoint_writer *writer = NULL;
    const nd_checkpoint_info info = {.layout = program->layout,
                                     .chunks = program->chunks,
                                     .step = nd_run_steps_done(run),
                                     .settings = settings_of(run),
                                     .wide = nd_wide_elem(program->options.real)};
    ND_TRY(nd_run_usable(run, err));
    ND_TRY(nd_checkpoint_create(directory, nd_run_model(run), nd_run_params(run), &info, keep, &writer, err));
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

static nd_status resume(nd_run *run, const nd_checkpoint *checkpoint, nd_resumed *out, nd_error *err)
{
    const nd_checkpoint_info *info = nd_checkpoint_info_get(checkpoint);
    const nd_settings now = settings_of(run);
    nd_resumed resumed = {.step = info->step, .layout = info->layout};
    nd_error why = {0};
    ND_TRY(nd_settings_compare(&info->settings, &now, nd_checkpoint_path(checkpoint), resumed.changes,
                               &resumed.changes_count, err));
    nd_status status = load_ranks(run, checkpoint, &why);
    if (status != ND_OK) {
        nd_run_spoil(run);
        return nd_fail(err, status, "%.900s, after all of it had been read once", why.message);
    }
    nd_run_set_steps_done(run, info->step);
    if (out != NULL) {
        *out = resumed;
    }
    return ND_OK;
}

nd_status nd_run_resume(nd_run *run, const char *path, nd_resumed *out, nd_error *err)
{
    nd_checkpoint *checkpoint = NULL;
    nd_elem wide = nd_wide_elem(nd_rank_program(nd_run_rank(run, 0))->options.real);
    ND_TRY(nd_run_usable(run, err));
    ND_TRY(nd_checkpoint_open(path, nd_run_model(run), nd_run_params(run), wide, &checkpoint, err));
    nd_status status = resume(run, checkpoint, out, err);
    nd_checkpoint_close(checkpoint);
    return status;
}
