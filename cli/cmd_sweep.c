#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/plot_file.h"
#include "cli/progress.h"
#include "cli/sweep_input.h"
#include "cli/task_input.h"
#include "reports/sweep_report.h"

static const nd_option_id sweep_options[] = {
    ND_OPTION_MODEL,
    ND_OPTION_ASSUME_LLAMA,
    ND_OPTION_CLUSTER,
    ND_OPTION_OVER,
    ND_OPTION_FROM,
    ND_OPTION_TO,
    ND_OPTION_STEPS,
    ND_OPTION_VALUES,
    ND_OPTION_LAYOUT,
    ND_OPTION_PIN,
    ND_OPTION_SEQ_LEN,
    ND_OPTION_GLOBAL_BATCH,
    ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_PRECISION,
    ND_OPTION_OPTIMIZER,
    ND_OPTION_LORA,
    ND_OPTION_ATTENTION,
    ND_OPTION_FRAMEWORK,
    ND_OPTION_STACK,
    ND_OPTION_CALIBRATION,
    ND_OPTION_ANCHOR,
    ND_OPTION_PLOT_SWEEP,
    ND_OPTION_THREADS,
    ND_OPTION_JSON,
    ND_OPTION_CSV,
    ND_OPTION_VERBOSE,
    ND_OPTION_QUIET,
    ND_OPTION_HELP,
};

static const nd_command_syntax sweep_syntax = {
    .name = "sweep",
    .summary =
        "Vary one quantity and show the best layout at each value: GPUs, sequence, batch, NICs or\nNVLink domain",
    .example = "ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over gpus --from 8 --to 128",
    .usage = "ndplan sweep --model M --cluster C --over Q [--from A --to B [--steps N] | --values A,B,C] [options]",
    .options = sweep_options,
    .options_count = sizeof sweep_options / sizeof sweep_options[0],
    .notes = "nic is the rate of all NICs of one node together: 400Gb/s, 50GB/s, or plain Gb/s.\n"
             "--layout keeps one layout (over gpus its data-parallel degree follows); --pin keeps some of its keys.\n"
             "Exit status: 0 something fits, 1 nothing fits at any value, 2 usage or input error, 130\n"
             "stopped by Ctrl-C (the values that are done are shown).",
};

static const char *const batch_why = "one sequence for each GPU";
static const char *const gpus_batch_why =
    "one sequence for each GPU of the last value; the same at every value, so that "
    "they compare";

static bool anything_fits(const nd_sweep_view *view)
{
    for (int32_t i = 0; i < view->count; i++) {
        if (view->points[i].point.fits) {
            return true;
        }
    }
    return false;
}

typedef struct picture {
    const nd_report_context *context;
    const nd_sweep_view *view;
} picture;

static nd_status draw(FILE *out, const void *view, nd_error *err)
{
    const picture *p = view;
    return nd_plot_sweep(out, p->context, p->view, err);
}

static nd_status write_plot(const nd_options *options, const nd_report_context *context, const nd_sweep_view *view,
                            nd_error *err)
{
    const char *path = options->value[ND_OPTION_PLOT_SWEEP];
    if (path == NULL) {
        return ND_OK;
    }
    if (!anything_fits(view)) {
        fprintf(stderr, "ndplan: nothing fits, so that there is nothing to draw: %s is not written\n", path);
        return ND_OK;
    }
    return nd_plot_file_write(path, draw, &(picture){context, view}, err);
}

static nd_status print_sweep(const nd_options *options, const nd_inputs *inputs, const nd_sweep_view *view,
                             nd_report_format format, nd_error *err)
{
    nd_report_context context = nd_inputs_report(options, inputs);
    ND_TRY(write_plot(options, &context, view, err));
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_sweep(stdout, &context, view);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_sweep(stdout, view);
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_sweep(stdout, &context, view, err);
}

static nd_status load_sweep(const nd_options *options, nd_inputs *inputs, nd_task *task, nd_sweep_view *view,
                            double *values, nd_error *err)
{
    nd_options with_first = *options;
    char seq_len[32];
    ND_TRY(nd_sweep_input_quantity(options, &view->quantity, err));
    if (view->quantity == ND_SWEEP_SEQ_LEN) { /* the first value stands for it in all that does not vary */
        ND_TRY(nd_sweep_input_values(options, NULL, view->quantity, values, &view->count, err));
        (void)snprintf(seq_len, sizeof seq_len, "%.0f", values[0]);
        with_first.value[ND_OPTION_SEQ_LEN] = seq_len;
    }
    ND_TRY(nd_inputs_load(&with_first, inputs, err));
    if (view->quantity != ND_SWEEP_SEQ_LEN) {
        ND_TRY(nd_sweep_input_values(options, &inputs->cluster, view->quantity, values, &view->count, err));
    }
    if (view->quantity == ND_SWEEP_GLOBAL_BATCH && !nd_options_has(options, ND_OPTION_LAYOUT)) {
        inputs->train.global_batch_seqs = llround(values[0]);
        inputs->global_batch_given = true;
    }
    nd_task_batch batch = {inputs->cluster.gpus, batch_why};
    if (view->quantity == ND_SWEEP_GPUS) {
        batch = (nd_task_batch){llround(values[view->count - 1]), gpus_batch_why};
    }
    ND_TRY(nd_task_input(&with_first, inputs, &batch, task, err));
    return nd_sweep_input_check(options, task, view->quantity, values, view->count, err);
}

/* The last point that was begun when a sweep stopped is not finished; those after it have no value. */
static int32_t count_finished(const nd_sweep_view *view)
{
    int32_t begun = 0;
    while (begun < view->count && view->points[begun].value > 0.0) {
        begun++;
    }
    return begun > 0 ? begun - 1 : 0;
}

static nd_status run_sweep(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_task task;
    double values[ND_SWEEP_POINTS_MAX];
    nd_sweep_view view = {.count = 0};
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(nd_plot_path_check(options->value[ND_OPTION_PLOT_SWEEP], err));
    ND_TRY(load_sweep(options, &inputs, &task, &view, values, err));
    nd_sweep_point *points = calloc((size_t)view.count, sizeof *points);
    if (points == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %d points", (int)view.count);
    }
    view.points = points;
    nd_status status = nd_sweep_run(&task, view.quantity, values, view.count, points, err);
    nd_progress_end();
    if (status == ND_EINTERRUPTED) {
        view.count = count_finished(&view);
        fprintf(stderr, "ndplan: interrupted: %d point%s shown\n", (int)view.count, view.count == 1 ? " is" : "s are");
        status = view.count > 0 ? print_sweep(options, &inputs, &view, format, err) : ND_OK;
        *exit_status = ND_EXIT_INTERRUPTED;
    } else if (status == ND_OK) {
        *exit_status = anything_fits(&view) ? ND_EXIT_DONE : ND_EXIT_NO;
        status = print_sweep(options, &inputs, &view, format, err);
    }
    free(points);
    return status;
}

const nd_command nd_command_sweep = {&sweep_syntax, run_sweep};
