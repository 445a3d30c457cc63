#include <stdio.h>
#include <string.h>

#include "cli/calibrate_machine.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "core/csv.h"
#include "cost_model/calibrate.h"
#include "cost_model/measured_table.h"
#include "reports/calibration_report.h"

static const nd_option_id calibrate_options[] = {
    ND_OPTION_FROM_RUNS,     ND_OPTION_GPU,     ND_OPTION_STACK,         ND_OPTION_BARE_PRIORS,
    ND_OPTION_SKIP_LEFT_OUT, ND_OPTION_MACHINE, ND_OPTION_MACHINE_DTYPE, ND_OPTION_OUTPUT,
    ND_OPTION_JSON,          ND_OPTION_QUIET,   ND_OPTION_HELP,
};

static const nd_command_syntax calibrate_syntax = {
    .name = "calibrate",
    .summary = "Fit the constants of GPUs and software to measured runs: with standard errors, and what the runs\n"
               "cannot tell keeps its prior. Or measure this machine for `ndplan run`",
    .example = "ndplan calibrate --from-runs runs.csv --output mine.json",
    .usage = "ndplan calibrate --from-runs FILE.csv [options]\n"
             "       ndplan calibrate --machine [--dtype T] [--output FILE.json]",
    .options = calibrate_options,
    .options_count = sizeof calibrate_options / sizeof calibrate_options[0],
    .notes = "A run is a row with model, gpu, gpus, layout and step_time_s or tokens_per_s_per_gpu; `ndplan\n"
             "validate --help` lists the columns. --stack S fits only runs of that software. Use the result with\n"
             "--calibration FILE.\n"
             "--machine takes half a minute of training steps of small models on one and on all processors, and fits\n"
             "the time of every kind of instruction: keep the machine idle meanwhile. `ndplan run --calibration FILE`\n"
             "predicts with it.\n"
             "Exit status: 0 done, 2 usage or input error.",
};

static nd_status write_file(const char *path, const nd_calibration_result *result, nd_error *err)
{
    nd_output_file file;
    ND_TRY(nd_output_open(path, &file, err));
    nd_fitted_write(file.stream, &result->fitted, result->residuals, result->residuals_count);
    return nd_output_close(&file, ND_OK, err);
}

static nd_status report(const nd_options *options, const nd_calibration_result *result, nd_error *err)
{
    const char *path = options->value[ND_OPTION_OUTPUT];
    if (path != NULL) {
        ND_TRY(write_file(path, result, err));
    }
    if (nd_options_has(options, ND_OPTION_JSON)) {
        nd_fitted_write(stdout, &result->fitted, result->residuals, result->residuals_count);
        return ND_OK;
    }
    if (nd_options_has(options, ND_OPTION_QUIET)) {
        return ND_OK;
    }
    nd_report_style style = nd_command_style();
    ND_TRY(nd_report_calibration(stdout, result, &style, err));
    if (path != NULL) {
        printf("\nWritten to %s; use it with --calibration %s\n", path, path);
    }
    return ND_OK;
}

static nd_status run_calibrate(const nd_options *options, int *exit_status, nd_error *err)
{
    const char *path = options->value[ND_OPTION_FROM_RUNS];
    nd_csv *csv = NULL;
    nd_fitted shipped;
    nd_calibration_result result;
    if (nd_options_has(options, ND_OPTION_MACHINE)) {
        return nd_calibrate_machine(options, exit_status, err);
    }
    if (path == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--from-runs is missing: a CSV of measured runs; or --machine, which measures this one");
    }
    if (nd_options_has(options, ND_OPTION_MACHINE_DTYPE)) {
        return nd_fail(err, ND_EINVAL, "--dtype is what --machine computes in; it means nothing with --from-runs");
    }
    ND_TRY(nd_fitted_shipped(&shipped, err));
    ND_TRY(nd_csv_load(path, &csv, err));
    nd_calibrate_request request = {
        .csv = csv,
        .gpu = options->value[ND_OPTION_GPU],
        .stack = options->value[ND_OPTION_STACK],
        .skip_left_out = nd_options_has(options, ND_OPTION_SKIP_LEFT_OUT),
        .start = nd_options_has(options, ND_OPTION_BARE_PRIORS) ? NULL : &shipped,
    };
    nd_status status = nd_measured_check_table(csv, err);
    status = status == ND_OK ? nd_calibrate_from_runs(&request, &result, err) : status;
    nd_csv_free(csv);
    if (status != ND_OK) {
        return status;
    }
    status = report(options, &result, err);
    nd_calibration_result_free(&result);
    *exit_status = ND_EXIT_DONE;
    return status;
}

const nd_command nd_command_calibrate = {&calibrate_syntax, run_calibrate};
