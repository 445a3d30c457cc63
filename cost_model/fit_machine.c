#include "cost_model/fit_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "cost_model/fit.h"

/** A timed instruction. */
typedef struct sample {
    nd_ins_op op;
    int32_t ranks; /* of the run */
    nd_ins_work work;
    double seconds;
} sample;

/** A timed step: what its instructions do not explain is gaps between them and members that come apart. */
typedef struct step_sample {
    int32_t ranks;
    double step_s, explained_s;
    double instructions, meetings; /* of the rank with most */
} step_sample;

struct nd_machine_fit {
    sample *samples;
    int64_t samples_count, samples_capacity;
    step_sample *steps;
    int64_t steps_count, steps_capacity;
};

nd_machine_fit *nd_machine_fit_create(void)
{
    return calloc(1, sizeof(nd_machine_fit));
}

void nd_machine_fit_free(nd_machine_fit *fit)
{
    if (fit != NULL) {
        free(fit->samples);
        free(fit->steps);
        free(fit);
    }
}

static bool grow(void **array, int64_t count, int64_t *capacity, size_t element_bytes)
{
    if (count < *capacity) {
        return true;
    }
    int64_t larger = 2 * *capacity + 256;
    void *moved = realloc(*array, (size_t)larger * element_bytes);
    if (moved != NULL) {
        *array = moved;
        *capacity = larger;
    }
    return moved != NULL;
}

typedef struct given_seconds {
    const double *const *seconds;
} given_seconds;

static double given(const void *user, const nd_program *program, const nd_ins *ins, int32_t members)
{
    const given_seconds *g = user;
    (void)members;
    /* what has no work has no constant: its time is part of the gaps */
    return nd_work_term_name(ins->op, 0)[0] != '\0' ? g->seconds[program->rank][ins - program->ins] : 0.0;
}

static nd_status add_step(nd_machine_fit *fit, const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                          const double *const seconds[], double step_s, nd_error *err)
{
    nd_program_time time;
    given_seconds g = {seconds};
    ND_TRY(nd_program_time_create(programs, ranks, kv_heads, ND_ISSUE_IN_ORDER, given, &g, &time, err));
    step_sample step = {.ranks = ranks, .step_s = step_s, .explained_s = time.step_s};
    nd_program_time_free(&time);
    for (int32_t i = 0; i < ranks; i++) {
        double meetings = 0.0;
        for (int32_t k = 0; k < programs[i]->ins_count; k++) {
            const nd_ins *ins = &programs[i]->ins[k];
            meetings +=
                nd_ins_is_collective(ins->op) && nd_members_of(&programs[i]->layout, kv_heads, ins->group, i).count > 1
                    ? 1.0
                    : 0.0;
        }
        step.instructions = fmax(step.instructions, (double)programs[i]->ins_count);
        step.meetings = fmax(step.meetings, meetings);
    }
    if (!grow((void **)&fit->steps, fit->steps_count, &fit->steps_capacity, sizeof step)) {
        return nd_fail(err, ND_ENOMEM, "out of memory for timed steps");
    }
    fit->steps[fit->steps_count++] = step;
    return ND_OK;
}

nd_status nd_machine_fit_add(nd_machine_fit *fit, const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                             const double *const seconds[], double step_s, nd_error *err)
{
    for (int32_t i = 0; i < ranks; i++) {
        for (int32_t k = 0; k < programs[i]->ins_count; k++) {
            const nd_ins *ins = &programs[i]->ins[k];
            if (nd_work_term_name(ins->op, 0)[0] == '\0' || !(seconds[i][k] >= 0.0)) {
                continue;
            }
            int32_t members =
                nd_ins_is_collective(ins->op) ? nd_members_of(&programs[i]->layout, kv_heads, ins->group, i).count : 1;
            if (!grow((void **)&fit->samples, fit->samples_count, &fit->samples_capacity, sizeof *fit->samples)) {
                return nd_fail(err, ND_ENOMEM, "out of memory for timed instructions");
            }
            fit->samples[fit->samples_count++] = (sample){.op = ins->op,
                                                          .ranks = ranks,
                                                          .work = nd_ins_work_of(programs[i], ins, members),
                                                          .seconds = seconds[i][k]};
        }
    }
    return add_step(fit, programs, ranks, kv_heads, seconds, step_s, err);
}

/** The problem of one operation. */
typedef struct op_problem {
    const sample **rows;
    int64_t count;
    int32_t terms[ND_WORK_TERMS]; /* of each parameter; the last parameter is `crowd` */
    int32_t terms_count;
    int32_t processors;
} op_problem;

static double crowded_frac(const op_problem *p, const sample *row)
{
    return p->processors > 1 ? (double)(row->ranks - 1) / (double)(p->processors - 1) : 0.0;
}

static void model(const double *values, double *predicted, void *user)
{
    const op_problem *p = user;
    for (int64_t i = 0; i < p->count; i++) {
        double seconds = 0.0;
        for (int32_t k = 0; k < p->terms_count; k++) {
            seconds += values[k] * p->rows[i]->work.term[p->terms[k]];
        }
        predicted[i] = seconds * (1.0 + (values[p->terms_count] - 1.0) * crowded_frac(p, p->rows[i]));
    }
}

static const double prior_log_sd = 3.0; /* nothing is known but the order of magnitude */
static const double prior_range = 1e5;  /* of the lower bound */
static const double above_least = 3.0;  /* of the upper bound: the least row was a lucky one */
static const double crowd_log_sd = 0.3; /* shared caches and clock: rarely above 1.5 */
static const double noise_frac = 0.05;  /* of a median over the rounds */
static const double clock_s = 50e-9;    /* reading the clock twice */
static const double small_frac = 0.03;  /* of the time: a term that the measurements do not show */

/* Terms that rows have at all: "member" does not exist among pairs. */
static void choose_terms(op_problem *p, nd_ins_op op)
{
    p->terms_count = 0;
    for (int32_t k = 0; k < ND_WORK_TERMS; k++) {
        bool used = false;
        for (int64_t i = 0; i < p->count && !used; i++) {
            used = p->rows[i]->work.term[k] > 0.0;
        }
        if (used && nd_work_term_name(op, k)[0] != '\0') {
            p->terms[p->terms_count++] = k;
        }
    }
}

/* No row took less than any one of its terms: that bounds each constant. Where nothing else is known the main term
 * takes all the time. */
static void set_parameters(const op_problem *p, nd_ins_op op, nd_fit_parameter *parameters)
{
    int32_t main_term = p->terms_count > 1 ? 1 : 0; /* "call" is the first */
    for (int32_t k = 0; k < p->terms_count; k++) {
        double most = (double)INFINITY;
        for (int64_t i = 0; i < p->count; i++) {
            double work = p->rows[i]->work.term[p->terms[k]];
            most = work > 0.0 ? fmin(most, p->rows[i]->seconds / work) : most;
        }
        double prior = most * (k == main_term ? 1.0 : small_frac);
        parameters[k] = (nd_fit_parameter){nd_work_term_name(op, p->terms[k]), prior, prior_log_sd, most / prior_range,
                                           most * above_least};
    }
    parameters[p->terms_count] = (nd_fit_parameter){"crowd", 1.0, crowd_log_sd, 0.8, 8.0};
}

static nd_status solve_op(op_problem *p, nd_ins_op op, double *scratch, nd_op_rate *out, nd_error *err)
{
    nd_fit_parameter parameters[ND_WORK_TERMS + 1];
    nd_fit_result result;
    double *measured = scratch;
    double *log_sd = scratch + p->count;
    double *errors = scratch + 2 * p->count;
    choose_terms(p, op);
    set_parameters(p, op, parameters);
    for (int64_t i = 0; i < p->count; i++) {
        measured[i] = p->rows[i]->seconds;
        log_sd[i] = noise_frac + clock_s / measured[i];
    }
    nd_fit_problem problem = {.parameters = parameters,
                              .parameters_count = p->terms_count + 1,
                              .measured = measured,
                              .log_sd = log_sd,
                              .measured_count = p->count,
                              .model = model,
                              .user = p};
    ND_TRY(nd_fit(&problem, &result, errors, NULL, err));
    *out = (nd_op_rate){.crowd = result.value[p->terms_count], .rows = p->count};
    for (int32_t k = 0; k < p->terms_count; k++) {
        out->term_s[p->terms[k]] = result.value[k];
    }
    for (int64_t i = 0; i < p->count; i++) {
        errors[i] = fabs(expm1(errors[i]));
    }
    out->error_frac = nd_median(errors, p->count);
    return ND_OK;
}

/* What is left of steps of one rank is gaps; of several, members that come apart. Where ranks take turns on processors
 * steps are longer for another reason. */
static void solve_steps(const nd_machine_fit *fit, int32_t processors, double *scratch, nd_compute_rates *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < fit->steps_count; i++) {
        const step_sample *s = &fit->steps[i];
        if (s->meetings <= 0.0) {
            scratch[count++] = (s->step_s - s->explained_s) / s->instructions;
        }
    }
    out->gap_s = count > 0 ? fmax(nd_median(scratch, count), 0.0) : 0.0;
    count = 0;
    for (int64_t i = 0; i < fit->steps_count; i++) {
        const step_sample *s = &fit->steps[i];
        if (s->meetings > 0.0 && s->ranks <= processors) {
            scratch[count++] = (s->step_s - s->explained_s - out->gap_s * s->instructions) / s->meetings;
        }
    }
    out->skew_s = count > 0 ? fmax(nd_median(scratch, count), 0.0) : 0.0;
}

/* Those that took time; \return how many there are with the others */
static int64_t take_rows(const nd_machine_fit *fit, int op, op_problem *p)
{
    int64_t seen = 0;
    p->count = 0;
    for (int64_t i = 0; i < fit->samples_count; i++) {
        const sample *row = &fit->samples[i];
        if ((int)row->op == op) {
            seen++;
        }
        if ((int)row->op == op && row->seconds > 0.0) {
            p->rows[p->count++] = row;
        }
    }
    return seen;
}

static nd_status solve(nd_machine_fit *fit, op_problem *p, double *scratch, nd_compute_rates *out, nd_error *err)
{
    for (int op = 0; op < ND_INS_COUNT; op++) {
        int64_t seen = take_rows(fit, op, p);
        if (seen > 0) { /* too short for the clock, as waiting for a message taken long ago: known to cost nothing */
            out->op[op] = (nd_op_rate){.crowd = 1.0, .rows = seen};
        }
        if (p->count > 0) {
            ND_TRY(solve_op(p, (nd_ins_op)op, scratch, &out->op[op], err));
        }
    }
    solve_steps(fit, p->processors, scratch, out);
    out->measured = true;
    return ND_OK;
}

nd_status nd_machine_fit_solve(nd_machine_fit *fit, nd_elem real, nd_machine *machine, nd_error *err)
{
    if (fit->samples_count == 0) {
        return nd_fail(err, ND_EINVAL, "nothing was measured");
    }
    nd_compute_rates rates = {0};
    op_problem p = {.processors = machine->processors};
    p.rows = calloc((size_t)fit->samples_count, sizeof(const sample *));
    double *scratch = calloc((size_t)(3 * fit->samples_count + fit->steps_count), sizeof *scratch);
    nd_status status = p.rows == NULL || scratch == NULL ? nd_fail(err, ND_ENOMEM, "out of memory to fit constants")
                                                         : solve(fit, &p, scratch, &rates, err);
    free(p.rows);
    free(scratch);
    if (status == ND_OK) {
        machine->rates[real] = rates;
    }
    return status;
}
