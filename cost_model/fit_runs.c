#include "cost_model/fit_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative scatter of one run: the same configuration differs by about 5 % between releases of one stack (dense), and
 * by 15 % for mixtures of experts (65 configurations of NVIDIA-NeMo/Megatron-Bridge). */
static const double dense_log_sd = 0.05;
static const double hard_log_sd = 0.12;
/* Runs of one source share their unknowns: beyond this many, more runs add less than their number says. */
static const double independent_runs = 8.0;

/* How far training runs may move a constant from what micro-benchmarks, data sheets or counting say. */
typedef struct adjustable {
    bool of_stack;
    const char *key;
    double prior_log_sd, min, max;
} adjustable;

static const adjustable adjustables[] = {
    {false, "gemm_frac", 0.06, 0.2, 1.0},   {false, "attention_frac", 0.15, 0.1, 0.95},
    {false, "flash2_frac", 0.10, 0.1, 1.1}, {false, "flash1_frac", 0.15, 0.05, 1.1},
    {false, "hbm_frac", 0.15, 0.3, 0.98},   {false, "contention_frac", 0.5, 0.05, 1.5},
    {false, "fp8_frac", 0.15, 0.3, 1.2},    {false, "grouped_frac", 0.2, 0.2, 1.2},
    {false, "link_frac", 0.10, 0.3, 1.05},  {false, "network_frac", 0.10, 0.3, 1.05},
    {true, "gemm_frac", 0.12, 0.5, 1.4},    {true, "launch_s", 0.7, 1e-7, 2e-4},
};
enum { ADJUSTABLE_COUNT = sizeof adjustables / sizeof adjustables[0] };

bool nd_run_constant_bounds(bool of_stack, const char *key, double *min, double *max)
{
    for (int32_t i = 0; i < ADJUSTABLE_COUNT; i++) {
        if (adjustables[i].of_stack == of_stack && strcmp(adjustables[i].key, key) == 0) {
            *min = adjustables[i].min;
            *max = adjustables[i].max;
            return true;
        }
    }
    return false;
}

/* The last two predictions of a run and the constants that they were made with: a finite difference changes one
 * constant at a time, and most runs do not depend on it. */
enum { CACHE_WAYS = 2, KEYS_MAX = ADJUSTABLE_COUNT };
typedef struct cached {
    double values[KEYS_MAX];
    double step_s;
} cached;

typedef struct run_state {
    int64_t entry;
    int32_t constants[KEYS_MAX]; /* that this run depends on */
    int32_t constants_count;
    cached cache[CACHE_WAYS];
    int32_t filled, next;
} run_state;

typedef struct run_problem {
    nd_run_set *set;
    const nd_run_constant *constants;
    int32_t constants_count;
    run_state *states;
    int64_t count;
} run_problem;

double nd_run_scatter_log_sd(bool hard)
{
    return hard ? hard_log_sd : dense_log_sd;
}

bool nd_run_is_usable(const nd_measured_run *run)
{
    return run->step_s > 0.0 && !run->contradictory && run->grade < 'C';
}

bool nd_run_is_selected(const nd_run_set *set, const nd_run_entry *entry, const nd_fit_selection *selection)
{
    const nd_measured_run *run = &entry->run;
    if (!nd_run_is_usable(run) || (set->calibrations[entry->calibration].borrowed && set->some_own)) {
        return false;
    }
    if (selection->without_source != NULL && strcmp(selection->without_source, run->source) == 0) {
        return false;
    }
    if (selection->gpu != NULL && strcmp(selection->gpu, set->calibrations[entry->calibration].gpu) != 0) {
        return false;
    }
    return selection->stack == NULL || strcmp(selection->stack, run->stack.name) == 0;
}

static double *constant_of(nd_run_set *set, nd_run_entry *entry, const nd_run_constant *constant)
{
    if (constant->of_stack) {
        bool mine = strcmp(entry->run.stack.name, constant->owner) == 0;
        return mine ? nd_stack_constant(&entry->run.stack, constant->key) : NULL;
    }
    nd_calibration *calibration = &set->calibrations[entry->calibration];
    return strcmp(calibration->gpu, constant->owner) == 0 ? nd_calibration_constant(calibration, constant->key) : NULL;
}

void nd_run_fit_apply(nd_run_set *set, const nd_run_constant *constants, const double *values, int32_t count)
{
    for (int64_t i = 0; i < set->count; i++) {
        for (int32_t j = 0; j < count; j++) {
            double *place = constant_of(set, &set->entries[i], &constants[j]);
            if (place != NULL) {
                *place = values[j];
            }
        }
    }
}

/* Add the constants of one run's GPU and stack that are not in the table yet. */
static nd_status add_constants(nd_run_set *set, nd_run_entry *entry, nd_run_fit *fit, nd_error *err)
{
    for (int32_t i = 0; i < ADJUSTABLE_COUNT; i++) {
        const adjustable *a = &adjustables[i];
        const char *owner = a->of_stack ? entry->run.stack.name : set->calibrations[entry->calibration].gpu;
        bool known = false;
        for (int32_t j = 0; j < fit->constants_count && !known; j++) {
            const nd_run_constant *c = &fit->constants[j];
            known = c->of_stack == a->of_stack && strcmp(c->owner, owner) == 0 && strcmp(c->key, a->key) == 0;
        }
        if (known) {
            continue;
        }
        if (fit->constants_count == ND_FIT_PARAMETERS_MAX) {
            return nd_fail(err, ND_EINVAL, "more than %d constants; choose runs of fewer GPU types and stacks",
                           (int)ND_FIT_PARAMETERS_MAX);
        }
        nd_run_constant *c = &fit->constants[fit->constants_count];
        *c = (nd_run_constant){.of_stack = a->of_stack, .prior_log_sd = a->prior_log_sd, .min = a->min, .max = a->max};
        (void)snprintf(c->owner, sizeof c->owner, "%s", owner);
        (void)snprintf(c->key, sizeof c->key, "%s", a->key);
        const double *place = constant_of(set, entry, c);
        if (place == NULL || *place <= 0.0) {
            continue;
        }
        c->prior = fmin(fmax(*place, c->min), c->max);
        fit->constants_count++;
    }
    return ND_OK;
}

static void remember_dependencies(run_problem *p, run_state *state)
{
    nd_run_entry *entry = &p->set->entries[state->entry];
    for (int32_t j = 0; j < p->constants_count && state->constants_count < KEYS_MAX; j++) {
        if (constant_of(p->set, entry, &p->constants[j]) != NULL) {
            state->constants[state->constants_count++] = j;
        }
    }
}

static const cached *look_up(const run_state *state, const double *values)
{
    for (int32_t way = 0; way < state->filled; way++) {
        bool same = true;
        for (int32_t k = 0; k < state->constants_count && same; k++) {
            same = state->cache[way].values[k] == values[state->constants[k]];
        }
        if (same) {
            return &state->cache[way];
        }
    }
    return NULL;
}

static double predict_run(run_problem *p, run_state *state, const double *values)
{
    const cached *hit = look_up(state, values);
    if (hit != NULL) {
        return hit->step_s;
    }
    nd_run_entry *entry = &p->set->entries[state->entry];
    cached *place = &state->cache[state->next];
    for (int32_t k = 0; k < state->constants_count; k++) {
        int32_t j = state->constants[k];
        place->values[k] = values[j];
        *constant_of(p->set, entry, &p->constants[j]) = values[j];
    }
    place->step_s = nd_run_set_step_s(p->set, state->entry);
    state->filled = state->filled < CACHE_WAYS ? state->filled + 1 : CACHE_WAYS;
    state->next = (state->next + 1) % CACHE_WAYS;
    return place->step_s;
}

static void predict_all(const double *values, double *predicted, void *user)
{
    run_problem *p = user;
    for (int64_t i = 0; i < p->count; i++) {
        predicted[i] = predict_run(p, &p->states[i], values);
    }
}

/* Selected runs of one source and in all; tables come sorted by source, so the last answer is mostly the next one too.
 */
typedef struct crowd {
    const char *source;
    double rows, all;
} crowd;

static void count_crowd(const nd_run_set *set, const nd_fit_selection *selection, const char *source, crowd *out)
{
    if (out->source != NULL && strcmp(out->source, source) == 0) {
        return;
    }
    *out = (crowd){.source = source};
    for (int64_t i = 0; i < set->count; i++) {
        const nd_run_entry *entry = &set->entries[i];
        if (nd_run_is_selected(set, entry, selection)) {
            out->all += 1.0;
            out->rows += strcmp(entry->run.source, source) == 0 ? 1.0 : 0.0;
        }
    }
}

static double scatter_of(const nd_measured_run *run, const crowd *c)
{
    /* alone, a source's shared unknowns are just what is asked for */
    double crowded = c->rows < c->all ? fmax(1.0, c->rows / independent_runs) : 1.0;
    return nd_run_scatter_log_sd(nd_measured_is_hard(run)) * sqrt(crowded);
}

static nd_status collect(nd_run_set *set, const nd_fit_selection *selection, run_problem *p, double *measured,
                         double *log_sd, nd_run_fit *fit, nd_error *err)
{
    crowd c = {NULL, 0.0, 0.0};
    for (int64_t i = 0; i < set->count; i++) {
        if (!nd_run_is_selected(set, &set->entries[i], selection)) {
            continue;
        }
        ND_TRY(add_constants(set, &set->entries[i], fit, err));
        measured[p->count] = set->entries[i].run.step_s;
        count_crowd(set, selection, set->entries[i].run.source, &c);
        log_sd[p->count] = scatter_of(&set->entries[i].run, &c);
        p->states[p->count].entry = i;
        p->count++;
    }
    if (p->count == 0) {
        return nd_fail(err, ND_EINVAL,
                       "no run to fit: none has a measured step, a grade other than C, and the GPU and "
                       "stack asked for");
    }
    p->constants = fit->constants;
    p->constants_count = fit->constants_count;
    for (int64_t i = 0; i < p->count; i++) {
        remember_dependencies(p, &p->states[i]);
    }
    return ND_OK;
}

/* Where a fit that is near put a constant; its prior when that fit did not have it. */
static double start_of(const nd_run_constant *constant, const nd_run_fit *near)
{
    for (int32_t i = 0; near != NULL && i < near->constants_count; i++) {
        const nd_run_constant *other = &near->constants[i];
        if (other->of_stack == constant->of_stack && strcmp(other->owner, constant->owner) == 0 &&
            strcmp(other->key, constant->key) == 0) {
            return near->result.value[i];
        }
    }
    return constant->prior;
}

static nd_status solve(run_problem *p, const nd_run_fit *near, const double *measured, const double *log_sd,
                       nd_run_fit *fit, double *weights, nd_error *err)
{
    nd_fit_parameter parameters[ND_FIT_PARAMETERS_MAX];
    double start[ND_FIT_PARAMETERS_MAX];
    for (int32_t j = 0; j < fit->constants_count; j++) {
        const nd_run_constant *c = &fit->constants[j];
        start[j] = start_of(c, near);
        parameters[j] = (nd_fit_parameter){c->key, c->prior, c->prior_log_sd, c->min, c->max};
    }
    nd_fit_problem problem = {
        .parameters = parameters,
        .parameters_count = fit->constants_count,
        .measured = measured,
        .log_sd = log_sd,
        .measured_count = p->count,
        .start = start,
        .model = predict_all,
        .user = p,
    };
    return nd_fit(&problem, &fit->result, NULL, weights, err);
}

nd_status nd_fit_runs(nd_run_set *set, const nd_fit_selection *selection, nd_run_fit *out, nd_error *err)
{
    return nd_fit_runs_weighted(set, selection, out, NULL, err);
}

nd_status nd_fit_runs_weighted(nd_run_set *set, const nd_fit_selection *selection, nd_run_fit *out, double *weights,
                               nd_error *err)
{
    size_t rows = (size_t)set->count + 1;
    nd_run_fit fit;
    memset(&fit, 0, sizeof fit);
    run_problem p = {.set = set, .states = calloc(rows, sizeof(run_state))};
    double *measured = calloc(rows, sizeof *measured);
    double *log_sd = calloc(rows, sizeof *log_sd);
    nd_status status = ND_OK;
    if (p.states == NULL || measured == NULL || log_sd == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a fit of %lld runs", (long long)set->count);
    }
    status = status == ND_OK ? collect(set, selection, &p, measured, log_sd, &fit, err) : status;
    status = status == ND_OK ? solve(&p, selection->near, measured, log_sd, &fit, weights, err) : status;
    if (status == ND_OK) {
        nd_run_fit_apply(set, fit.constants, fit.result.value, fit.constants_count);
        fit.rows = p.count;
        *out = fit;
    }
    free(p.states);
    free(measured);
    free(log_sd);
    return status;
}
