#include "cli/execution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/execution_saves.h"
#include "cli/execution_time.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "core/pool.h"
#include "core/stats.h"
#include "program/replay.h"
#include "program/traffic.h"

enum { TRAFFIC_MAX = ND_MEMBERS_COUNT * 16 }; /* 16: more operations than there are that communicate */
_Static_assert(ND_INS_COUNT - ND_INS_ALL_REDUCE <= 16, "rows of the traffic table");

/** A list of steps that grows by the observer. */
typedef struct recorder {
    nd_execution_step *steps;
    int64_t count;
    const nd_execution_input *saves; /* where it goes on from and saves to; NULL: neither */
    nd_resumed resumed;
} recorder;

static bool record(void *user, const nd_run_step *step)
{
    recorder *r = user;
    r->steps[r->count++] = (nd_execution_step){
        .step = step->step, .loss = step->loss, .grad_norm = step->grad_norm, .lr = step->lr, .seconds = step->seconds};
    return nd_progress_step(step->step, step->loss, step->grad_norm, step->seconds);
}

static nd_status new_recorder(int64_t steps, recorder *out, nd_error *err)
{
    *out = (recorder){.steps = calloc((size_t)steps, sizeof *out->steps)};
    return out->steps != NULL ? ND_OK : nd_fail(err, ND_ENOMEM, "out of memory for %lld steps", (long long)steps);
}

static nd_status median_seconds(const nd_execution_view *view, double *out, nd_error *err)
{
    size_t count = (size_t)view->steps_count;
    double *seconds = malloc(count * sizeof *seconds);
    if (seconds == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the times of the steps");
    }
    for (size_t i = 0; i < count; i++) {
        seconds[i] = view->steps[i].seconds;
    }
    *out = nd_median(seconds, view->steps_count);
    free(seconds);
    return ND_OK;
}

static nd_status gather_memory(const nd_run *run, nd_execution_view *view, nd_error *err)
{
    view->ranks = calloc((size_t)view->ranks_count, sizeof *view->ranks);
    if (view->ranks == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the report on %d ranks", view->ranks_count);
    }
    view->memory_equal = true;
    for (int32_t i = 0; i < view->ranks_count; i++) {
        nd_rank_measured measured = nd_rank_measured_get(nd_run_rank(run, i));
        nd_replay replay = nd_program_replay(nd_rank_program(nd_run_rank(run, i)));
        nd_execution_rank *rank = &view->ranks[i];
        rank->replayed_bytes = replay.peak_bytes;
        rank->peak_bytes = measured.peak_bytes;
        bool equal = rank->replayed_bytes == rank->peak_bytes;
        for (int c = 0; c < ND_MEMORY_CLASS_COUNT; c++) {
            rank->replayed_class_bytes[c] = replay.class_peak_bytes[c];
            rank->peak_class_bytes[c] = measured.peak_class_bytes[c];
            equal = equal && rank->replayed_class_bytes[c] == rank->peak_class_bytes[c];
        }
        view->memory_equal = view->memory_equal && equal;
    }
    return ND_OK;
}

/** One kind of call of one rank. */
typedef struct traffic_of {
    nd_members_kind group;
    nd_ins_op op;
    const nd_program *program;
    int64_t kv_heads, steps;
} traffic_of;

static void name_group(const traffic_of *of, nd_execution_traffic *row)
{
    if (of->op == ND_INS_SEND || of->op == ND_INS_SEND_WAIT || of->op == ND_INS_RECV) {
        row->group = nd_axis_name(ND_AXIS_PP);
        row->group_ranks = of->program->layout.size[ND_AXIS_PP];
        return;
    }
    row->group = nd_members_name(of->group);
    row->group_ranks = nd_members_of(&of->program->layout, of->kv_heads, of->group, of->program->rank).count;
}

/* Add what one rank said and counted. Totals of all steps until finish_row(). */
static void add_to_row(const traffic_of *of, const nd_traffic_count *said, const nd_comm_count *counted,
                       nd_execution_traffic *row)
{
    bool routed = nd_traffic_is_routed(of->op);
    row->program_calls += said->calls;
    row->program_bytes += said->bytes;
    row->calls += counted->calls;
    row->bytes += counted->bytes;
    row->seconds += counted->seconds;
    row->wait_s += counted->wait_s;
    row->equal = row->equal && said->calls * of->steps == counted->calls &&
                 (routed || said->bytes * of->steps == counted->bytes);
    if (said->calls > 0) {
        name_group(of, row);
    }
}

/* Counted figures of one step. */
static void finish_row(int64_t steps, nd_execution_traffic *row)
{
    row->equal = row->equal && row->program_bytes * steps == row->bytes;
    row->calls /= steps;
    row->bytes /= steps;
    row->seconds /= (double)steps;
    row->wait_s /= (double)steps;
}

static void gather_row(const nd_run *run, const nd_traffic *said, traffic_of *of, nd_execution_view *view)
{
    nd_execution_traffic row = {.op = of->op, .group = nd_members_name(of->group), .equal = true};
    int64_t used = 0;
    for (int32_t i = 0; i < view->ranks_count; i++) {
        const nd_comm_count *counted = &nd_run_counters(run, i)->count[of->group][of->op];
        of->program = nd_rank_program(nd_run_rank(run, i));
        add_to_row(of, &said[i].count[of->group][of->op], counted, &row);
        used += said[i].count[of->group][of->op].calls + counted->calls;
    }
    if (used > 0) {
        finish_row(of->steps, &row);
        view->traffic_equal = view->traffic_equal && row.equal;
        view->traffic[view->traffic_count++] = row;
    }
}

static nd_status gather_traffic(const nd_run *run, nd_execution_view *view, nd_error *err)
{
    nd_traffic *said = calloc((size_t)view->ranks_count, sizeof *said);
    view->traffic = calloc(TRAFFIC_MAX, sizeof *view->traffic);
    if (said == NULL || view->traffic == NULL) {
        free(said);
        return nd_fail(err, ND_ENOMEM, "out of memory for the report on %d ranks", view->ranks_count);
    }
    for (int32_t i = 0; i < view->ranks_count; i++) {
        nd_program_traffic(nd_rank_program(nd_run_rank(run, i)), view->model->kv_heads, &said[i]);
    }
    traffic_of of = {.kv_heads = view->model->kv_heads, .steps = view->steps_count};
    view->traffic_equal = true;
    for (int group = 0; group < ND_MEMBERS_COUNT; group++) {
        for (int op = ND_INS_ALL_REDUCE; op < ND_INS_COUNT; op++) {
            of.group = (nd_members_kind)group;
            of.op = (nd_ins_op)op;
            gather_row(run, said, &of, view);
        }
    }
    free(said);
    return ND_OK;
}

static nd_status gather(const nd_run *run, nd_execution_view *view, nd_error *err)
{
    double tokens = (double)view->train->global_batch_seqs * (double)view->train->seq_len_tokens;
    ND_TRY(median_seconds(view, &view->step_s, err));
    view->tokens_per_s = tokens / view->step_s;
    ND_TRY(gather_memory(run, view, err));
    return gather_traffic(run, view, err);
}

/* Create a run and take its steps; *run is there on success only. */
static nd_status take_steps(const nd_execution_input *input, const nd_layout *layout, int64_t steps, recorder *r,
                            nd_run **run, bool *failed, nd_error *err)
{
    nd_run_options options = input->run;
    if (layout->size[ND_AXIS_PP] == 1) {
        options.program.chunks.chunks = 0; /* they are the chunks of the pipeline that this is compared with */
    }
    nd_status status = nd_run_create(&input->inputs.model, layout, &input->inputs.train, &options, run, err);
    if (status != ND_OK) {
        *failed = status == ND_ENOMEM;
        return status;
    }
    status = r->saves != NULL ? nd_execution_begin(r->saves, *run, &r->resumed, err) : ND_OK;
    if (status == ND_OK) {
        status = r->saves != NULL ? nd_execution_take(r->saves, *run, record, r, err)
                                  : nd_run_steps(*run, steps, record, r, err);
        *failed = status != ND_OK;
    }
    if (status != ND_OK) {
        nd_run_free(*run);
        *run = NULL;
    }
    return status;
}

static nd_status read_params(const nd_run *run, double **out, nd_error *err)
{
    size_t count = (size_t)nd_param_first(nd_run_params(run), nd_run_params(run)->count);
    *out = calloc(count, sizeof **out);
    if (*out == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory to compare %zu parameters", count);
    }
    nd_run_read_params(run, *out);
    return ND_OK;
}

/* The larger one; NaN is the largest of all. */
static double worse(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

/* fp64: loss and parameters as docs/CLI.md promises; the gradient norm is more sensitive. Its bound in fp64 and all
 * bounds of fp32 and bf16 are an own assumption: at least twice the largest differences seen between right layouts of
 * the seven models of tests/executor/data, 10 steps with a learning rate up to 0.01. */
static void set_bounds(const nd_execution_view *view, nd_execution_verify *verify)
{
    /* Adam moves a weight by about the learning rate whatever the size of its gradient, so where a gradient is all
     * rounding two layouts may part by twice that in every step. */
    double apart = 0.0;
    for (int64_t i = 0; i < view->steps_count; i++) {
        apart += 2.0 * view->steps[i].lr;
    }
    if (view->real == ND_ELEM_F64) {
        verify->loss_bound = 1e-12;
        verify->grad_norm_bound = 1e-9;
        verify->param_bound = 1e-11;
        verify->why = "fp64: layouts add up in another order and differ by rounding alone, which many steps or a high "
                      "learning rate let grow.";
        return;
    }
    bool bf16 = view->real == ND_ELEM_BF16;
    verify->loss_bound = bf16 ? 0.3 : 1e-3;
    verify->grad_norm_bound = bf16 ? 1.6 : 0.05;
    verify->param_bound = apart;
    verify->why = bf16
                      ? "bf16 rounds to 8 bits, and Adam turns the sign of a tiny gradient into a step of the learning "
                        "rate: small mistakes are hidden. --dtype fp64 finds them."
                      : "fp32: Adam turns the sign of a gradient that is all rounding into a step of the learning "
                        "rate: small mistakes are hidden. --dtype fp64 finds them.";
}

static void compare_steps(const nd_execution_view *view, const recorder *one, nd_execution_verify *verify)
{
    for (int64_t i = 0; i < view->steps_count; i++) {
        const nd_execution_step *a = &view->steps[i];
        const nd_execution_step *b = &one->steps[i];
        double norm = fabs(a->grad_norm - b->grad_norm);
        verify->loss_abs = worse(fabs(a->loss - b->loss), verify->loss_abs);
        verify->grad_norm_rel = worse(norm > 0.0 ? norm / fabs(b->grad_norm) : norm, verify->grad_norm_rel);
    }
}

static void compare_params(const nd_param_list *params, const double *layout, const double *one,
                           nd_execution_verify *verify)
{
    int64_t at = 0;
    int32_t worst = 0;
    for (int32_t p = 0; p < params->count; p++) {
        int64_t elements = params->params[p].rows * params->params[p].cols;
        for (int64_t i = 0; i < elements; i++) {
            double difference = fabs(layout[at + i] - one[at + i]);
            if (difference != verify->param_abs && worse(difference, verify->param_abs) == difference) {
                worst = p;
            }
            verify->param_abs = worse(difference, verify->param_abs);
        }
        at += elements;
    }
    memcpy(verify->worst_param, params->params[worst].name, sizeof verify->worst_param);
}

static nd_status compare(const nd_execution_view *view, const recorder *one, const nd_run *run, const double *params,
                         nd_execution_verify *verify, nd_error *err)
{
    double *reference = NULL;
    ND_TRY(read_params(run, &reference, err));
    set_bounds(view, verify);
    compare_steps(view, one, verify);
    compare_params(nd_run_params(run), params, reference, verify);
    free(reference);
    verify->passed = verify->loss_abs <= verify->loss_bound && verify->grad_norm_rel <= verify->grad_norm_bound &&
                     verify->param_abs <= verify->param_bound;
    verify->done = true;
    return ND_OK;
}

/* The same steps on one rank, one sequence at a time. */
static nd_status verify_run(const nd_execution_input *input, const double *params, nd_execution_view *view,
                            bool *failed, nd_error *err)
{
    nd_layout layout = nd_layout_single();
    nd_run *run = NULL;
    recorder one;
    layout.grad_accum = input->inputs.train.global_batch_seqs;
    ND_TRY(new_recorder(view->steps_count, &one, err));
    double tokens = (double)view->train->global_batch_seqs * (double)view->train->seq_len_tokens;
    nd_progress_start_run("one rank, step", view->steps_count, tokens, input->lines);
    nd_status status = take_steps(input, &layout, view->steps_count, &one, &run, failed, err);
    if (status == ND_OK && nd_run_steps_done(run) == view->steps_count) {
        status = compare(view, &one, run, params, &view->verify, err);
    }
    view->interrupted = nd_progress_interrupted();
    nd_run_free(run);
    free(one.steps);
    return status;
}

static nd_status run_and_gather(const nd_execution_input *input, FILE *trace, nd_execution_view *view, double **params,
                                bool *failed, nd_error *err)
{
    nd_run *run = NULL;
    recorder r = {.steps = view->steps, .saves = input};
    nd_progress_start_run("step", input->steps,
                          (double)view->train->global_batch_seqs * (double)view->train->seq_len_tokens, input->lines);
    ND_TRY(take_steps(input, &input->layout, input->steps, &r, &run, failed, err));
    view->steps_count = r.count;
    view->interrupted = r.count < input->steps;
    nd_execution_note_resumed(&r.resumed, view);
    nd_status status = gather(run, view, err);
    if (status == ND_OK) {
        status = nd_execution_time_gather(input, run, trace, view, err);
    }
    if (status == ND_OK) {
        status = nd_execution_save(input, run, failed, err);
    }
    if (status == ND_OK && input->verify && !view->interrupted) {
        status = read_params(run, params, err);
    }
    nd_run_free(run);
    return status;
}

/* The trace's file is there, under another name, before the first step: nobody runs for an hour into a typing error. */
static nd_status run_with_trace(const nd_execution_input *input, nd_execution_view *view, double **params, bool *failed,
                                nd_error *err)
{
    nd_output_file file;
    nd_error inner;
    if (input->trace == NULL) {
        return run_and_gather(input, NULL, view, params, failed, err);
    }
    if (nd_output_open(input->trace, &file, &inner) != ND_OK) {
        return nd_fail(err, ND_EIO, "--trace: %.900s", inner.message);
    }
    nd_status status = run_and_gather(input, file.stream, view, params, failed, err);
    nd_status closed = nd_output_close(&file, status, &inner);
    return status == ND_OK && closed != ND_OK ? nd_fail(err, closed, "--trace: %.900s", inner.message) : status;
}

nd_status nd_execution_run(const nd_execution_input *input, nd_execution_view *view, bool *failed, nd_error *err)
{
    double *params = NULL;
    recorder r;
    *failed = false;
    ND_TRY(new_recorder(input->steps, &r, err));
    *view = (nd_execution_view){.model = &input->inputs.model,
                                .layout = &input->layout,
                                .train = &input->inputs.train,
                                .assumptions = input->inputs.assumptions,
                                .assumptions_count = input->inputs.assumptions_count,
                                .backend = input->run.backend->name,
                                .data = input->run.data.path,
                                .seed = (int64_t)input->run.data.seed,
                                .real = input->run.program.real,
                                .resume = input->resume,
                                .ranks_count = (int32_t)nd_layout_ranks(&input->layout),
                                .processors = nd_pool_processors(),
                                .steps_asked = input->steps,
                                .steps = r.steps,
                                .verify = {.asked = input->verify}};
    nd_status status = run_with_trace(input, view, &params, failed, err);
    if (status == ND_OK && params != NULL) {
        status = verify_run(input, params, view, failed, err);
    }
    nd_progress_end();
    free(params);
    if (status != ND_OK) {
        nd_execution_free(view);
    }
    return status;
}

void nd_execution_free(nd_execution_view *view)
{
    free(view->steps);
    free(view->ranks);
    free(view->traffic);
    free(view->time.ops);
}
