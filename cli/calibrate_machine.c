#include "cli/calibrate_machine.h"

#include <time.h>

#include "cli/command.h"
#include "cli/execution_input.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "core/pool.h"
#include "cost_model/fit_machine.h"
#include "executor/measure.h"
#include "reports/machine_report.h"

/* Of the half minute that users are asked for; building programs and fitting take the rest. */
static const double budget_s = 18.0;

/** What is being measured. */
typedef struct calibration {
    nd_machine_fit *fit;
    int32_t type, types; /* which of how many compute types */
} calibration;

static nd_status add(void *user, const nd_measured_step *step, nd_error *err)
{
    const calibration *c = user;
    return nd_machine_fit_add(c->fit, step->programs, step->ranks, step->kv_heads, step->seconds, step->step_s, err);
}

static bool progress(void *user, double done_frac)
{
    const calibration *c = user;
    double frac = done_frac < 1.0 ? done_frac : 1.0;
    return nd_progress_measuring(((double)c->type + frac) / (double)c->types);
}

static nd_status measure(nd_elem real, int32_t type, int32_t types, nd_machine *machine, nd_error *err)
{
    calibration c = {.fit = nd_machine_fit_create(), .type = type, .types = types};
    nd_measure_options options = {
        .real = real, .budget_s = budget_s / (double)types, .processors = machine->processors};
    if (c.fit == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory to measure this machine");
    }
    nd_status status = nd_measure_machine(&options, progress, add, &c, err);
    if (status == ND_OK) {
        status = nd_machine_fit_solve(c.fit, real, machine, err);
    }
    nd_machine_fit_free(c.fit);
    return status;
}

static nd_status measure_types(const nd_options *options, nd_machine *machine, nd_error *err)
{
    static const nd_elem all[] = {ND_ELEM_F32, ND_ELEM_F64, ND_ELEM_BF16};
    const char *text = options->value[ND_OPTION_MACHINE_DTYPE];
    nd_elem chosen = ND_ELEM_F32;
    if (text != NULL) {
        ND_TRY(nd_input_dtype(text, &chosen, err));
        return measure(chosen, 0, 1, machine, err);
    }
    for (int32_t i = 0; i < 3; i++) {
        ND_TRY(measure(all[i], i, 3, machine, err));
    }
    return ND_OK;
}

static nd_status write_machine(nd_output_file *file, const nd_machine *machine, nd_status status, nd_error *err)
{
    if (status == ND_OK) {
        nd_machine_write(file->stream, machine);
    }
    nd_error inner;
    nd_status closed = nd_output_close(file, status, &inner);
    return status == ND_OK && closed != ND_OK ? nd_fail(err, closed, "--output: %.900s", inner.message) : status;
}

static nd_status report(const nd_options *options, const nd_machine *machine, nd_error *err)
{
    const char *path = options->value[ND_OPTION_OUTPUT];
    if (nd_options_has(options, ND_OPTION_JSON)) {
        nd_machine_write(stdout, machine);
        return ND_OK;
    }
    if (nd_options_has(options, ND_OPTION_QUIET)) {
        return ND_OK;
    }
    nd_report_style style = nd_command_style();
    ND_TRY(nd_report_machine(stdout, &style, machine, err));
    if (path != NULL) {
        printf("\nWritten to %s; use it with ndplan run --calibration %s\n", path, path);
    } else {
        printf("\nNot kept: --output FILE.json writes it, for ndplan run --calibration FILE.json\n");
    }
    return ND_OK;
}

static void describe(nd_machine *machine)
{
    time_t now = time(NULL);
    struct tm day;
    *machine = (nd_machine){.processors = nd_pool_processors()};
    nd_processor_name(machine->processor, sizeof machine->processor);
    if (gmtime_r(&now, &day) != NULL) {
        (void)strftime(machine->date, sizeof machine->date, "%Y-%m-%d", &day);
    }
}

nd_status nd_calibrate_machine(const nd_options *options, int *exit_status, nd_error *err)
{
    static const nd_option_id of_runs[] = {ND_OPTION_FROM_RUNS, ND_OPTION_GPU, ND_OPTION_STACK, ND_OPTION_BARE_PRIORS,
                                           ND_OPTION_SKIP_LEFT_OUT};
    const char *path = options->value[ND_OPTION_OUTPUT];
    nd_output_file file;
    nd_machine machine;
    for (size_t i = 0; i < sizeof of_runs / sizeof of_runs[0]; i++) {
        if (nd_options_has(options, of_runs[i])) {
            return nd_fail(err, ND_EINVAL, "--machine measures, and %s is about runs of others: leave out one",
                           nd_option_name(of_runs[i]));
        }
    }
    describe(&machine);
    if (path != NULL) {
        ND_TRY(nd_output_open(path, &file, err));
    }
    nd_progress_start_measuring();
    nd_status status = measure_types(options, &machine, err);
    nd_progress_end();
    if (path != NULL) {
        status = write_machine(&file, &machine, status, err);
    }
    if (status == ND_EINTERRUPTED) {
        fprintf(stderr, "ndplan: interrupted: nothing was written\n");
        *exit_status = ND_EXIT_INTERRUPTED;
        return ND_OK;
    }
    *exit_status = ND_EXIT_DONE;
    return status == ND_OK ? report(options, &machine, err) : status;
}
