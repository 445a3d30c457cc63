/* The parameters of a run, put together from the shards of all ranks. */
#include <stdlib.h>

#include "executor/run.h"

int64_t nd_param_first(const nd_param_list *params, int32_t param)
{
    int64_t first = 0;
    for (int32_t i = 0; i < param; i++) {
        first += params->params[i].rows * params->params[i].cols;
    }
    return first;
}

/** Where the runs of a shard go when parameters are put together. */
typedef struct collect {
    nd_rank *rank;
    nd_ref from; /* element `first` of the flat unit */
    int64_t first;
    const int64_t *param_first;
    double *out;
} collect;

static void collect_run(void *user, const nd_piece *piece, int64_t flat, int64_t row, int64_t col, int64_t elements)
{
    const collect *c = user;
    if (!piece->primary) {
        return;
    }
    const nd_param *param = &nd_rank_program(c->rank)->params.params[piece->param];
    double *to = c->out + c->param_first[piece->param] + row * param->cols + col;
    nd_rank_read(c->rank, (nd_ref){c->from.buffer, c->from.offset + flat - c->first}, elements, to);
}

static void collect_rank(const nd_run *run, int32_t index, const int64_t *param_first, double *out)
{
    const nd_program *program = nd_rank_program(nd_run_rank(run, index));
    for (int32_t i = 0; i < program->placement.units_count; i++) {
        const nd_unit *unit = &program->placement.units[i];
        int64_t first = unit->shard_index * unit->shard_elements;
        collect c = {.rank = nd_run_rank(run, index),
                     .from = program->states[i].master,
                     .first = first,
                     .param_first = param_first,
                     .out = out};
        nd_placement_runs(&program->placement, unit, first, unit->shard_elements, collect_run, &c);
    }
}

void nd_run_read_params(const nd_run *run, double *out)
{
    const nd_param_list *params = nd_run_params(run);
    int64_t *param_first = malloc((size_t)params->count * sizeof *param_first);
    if (param_first == NULL) {
        return;
    }
    int64_t first = 0;
    for (int32_t i = 0; i < params->count; i++) {
        param_first[i] = first;
        first += params->params[i].rows * params->params[i].cols;
    }
    for (int32_t i = 0; i < nd_run_ranks(run); i++) {
        collect_rank(run, i, param_first, out);
    }
    free(param_first);
}
