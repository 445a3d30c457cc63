#include "cli/execution_time.h"

#include <stdlib.h>
#include <string.h>

#include "executor/measure.h"
#include "reports/program_trace.h"

/** The programs of a run, and the clock of every instruction in its last step. */
typedef struct ranks_of {
    const nd_program **programs;
    const double **start_s, **end_s;
    int32_t count;
} ranks_of;

static void free_ranks(ranks_of *ranks)
{
    free(ranks->programs);
    free(ranks->start_s);
    free(ranks->end_s);
}

static nd_status list_ranks(const nd_run *run, ranks_of *out, nd_error *err)
{
    size_t count = (size_t)nd_run_ranks(run);
    *out = (ranks_of){.programs = calloc(count, sizeof(const nd_program *)),
                      .start_s = calloc(count, sizeof(const double *)),
                      .end_s = calloc(count, sizeof(const double *)),
                      .count = (int32_t)count};
    if (out->programs == NULL || out->start_s == NULL || out->end_s == NULL) {
        free_ranks(out);
        return nd_fail(err, ND_ENOMEM, "out of memory for the times of %zu ranks", count);
    }
    for (int32_t i = 0; i < out->count; i++) {
        nd_rank_measured measured = nd_rank_measured_get(nd_run_rank(run, i));
        out->programs[i] = nd_rank_program(nd_run_rank(run, i));
        out->start_s[i] = measured.start_s;
        out->end_s[i] = measured.end_s;
    }
    return ND_OK;
}

/* Adds a step to the list, one entry an operation. */
static void add_ops(const ranks_of *ranks, const nd_program_time *time, bool predicted, nd_execution_time *out)
{
    for (int32_t i = 0; i < ranks->count; i++) {
        for (int32_t k = 0; k < ranks->programs[i]->ins_count; k++) {
            nd_execution_op *op = &out->ops[ranks->programs[i]->ins[k].op];
            double seconds = time->rank[i].end_s[k] - time->rank[i].begin_s[k];
            *(predicted ? &op->predicted_s : &op->measured_s) += seconds;
            op->calls += predicted ? 0 : 1;
        }
        *(predicted ? &out->predicted_wait_s : &out->measured_wait_s) += time->rank[i].wait_s;
    }
}

/* What is predicted does not change from run to run: rows stay where they were. */
static int by_time(const void *a, const void *b)
{
    const nd_execution_op *x = a;
    const nd_execution_op *y = b;
    if (x->predicted_s != y->predicted_s) {
        return x->predicted_s < y->predicted_s ? 1 : -1;
    }
    return (x->measured_s < y->measured_s) - (x->measured_s > y->measured_s);
}

static nd_status profile(const ranks_of *ranks, const nd_program_time *measured, const nd_program_time *predicted,
                         nd_execution_time *out, nd_error *err)
{
    out->ops = calloc(ND_INS_COUNT, sizeof *out->ops);
    if (out->ops == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the profile");
    }
    for (int op = 0; op < ND_INS_COUNT; op++) {
        out->ops[op].op = (nd_ins_op)op;
    }
    add_ops(ranks, measured, false, out);
    if (out->machine != NULL) {
        add_ops(ranks, predicted, true, out);
    }
    for (int op = 0; op < ND_INS_COUNT; op++) {
        bool works = nd_work_term_name((nd_ins_op)op, 0)[0] != '\0'; /* not places in memory and waits of streams */
        if (works && out->ops[op].calls > 0) {
            out->ops[out->ops_count++] = out->ops[op];
        }
    }
    qsort(out->ops, (size_t)out->ops_count, sizeof *out->ops, by_time);
    out->profiled = true;
    return ND_OK;
}

static nd_status predict(const nd_execution_input *input, const ranks_of *ranks, nd_program_time *predicted,
                         nd_execution_time *out, nd_error *err)
{
    char processor[sizeof input->machine.processor];
    if (!input->has_machine) {
        return ND_OK;
    }
    ND_TRY(
        nd_machine_time(&input->machine, ranks->programs, ranks->count, input->inputs.model.kv_heads, predicted, err));
    nd_processor_name(processor, sizeof processor);
    out->machine = &input->machine;
    out->predicted_s = predicted->step_s;
    out->other_processor = strcmp(processor, input->machine.processor) != 0;
    for (int32_t i = 0; i < ranks->count && out->lacks == ND_INS_COUNT; i++) {
        out->lacks = nd_machine_lacks(&input->machine, ranks->programs[i]);
    }
    return ND_OK;
}

static nd_status gather(const nd_execution_input *input, const ranks_of *ranks, FILE *trace, nd_execution_view *view,
                        nd_program_time *measured, nd_program_time *predicted, nd_error *err)
{
    char layout[512];
    ND_TRY(predict(input, ranks, predicted, &view->time, err));
    if (!input->run.profile) {
        return ND_OK;
    }
    ND_TRY(nd_program_time_measured(ranks->programs, ranks->count, input->inputs.model.kv_heads, ranks->start_s,
                                    ranks->end_s, measured, err));
    if (trace != NULL) {
        (void)nd_layout_format(view->layout, layout, sizeof layout);
        nd_trace_program(trace, &(nd_program_trace){.programs = ranks->programs,
                                                    .ranks = ranks->count,
                                                    .measured = measured,
                                                    .predicted = input->has_machine ? predicted : NULL,
                                                    .model = view->model->name,
                                                    .layout = layout});
    }
    return input->profile ? profile(ranks, measured, predicted, &view->time, err) : ND_OK;
}

nd_status nd_execution_time_gather(const nd_execution_input *input, const nd_run *run, FILE *trace,
                                   nd_execution_view *view, nd_error *err)
{
    ranks_of ranks;
    nd_program_time measured = {0};
    nd_program_time predicted = {0};
    view->time = (nd_execution_time){.lacks = ND_INS_COUNT};
    ND_TRY(list_ranks(run, &ranks, err));
    nd_status status = gather(input, &ranks, trace, view, &measured, &predicted, err);
    nd_program_time_free(&measured);
    nd_program_time_free(&predicted);
    free_ranks(&ranks);
    return status;
}
