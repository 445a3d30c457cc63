#include <stdio.h>

#include "cli/command.h"
#include "cli/execution.h"
#include "reports/execution_report.h"

static const nd_option_id run_options[] = {
    ND_OPTION_MODEL,
    ND_OPTION_ASSUME_LLAMA,
    ND_OPTION_LAYOUT,
    ND_OPTION_RANKS,
    ND_OPTION_SEQ_LEN,
    ND_OPTION_GLOBAL_BATCH,
    ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_RUN_STEPS,
    ND_OPTION_BACKEND,
    ND_OPTION_DTYPE,
    ND_OPTION_DATA,
    ND_OPTION_SEED,
    ND_OPTION_LR,
    ND_OPTION_WARMUP,
    ND_OPTION_CLIP,
    ND_OPTION_MASKED_FRAC,
    ND_OPTION_OPTIMIZER,
    ND_OPTION_LORA,
    ND_OPTION_SAVE,
    ND_OPTION_SAVE_EVERY,
    ND_OPTION_KEEP,
    ND_OPTION_RESUME,
    ND_OPTION_SAVE_WEIGHTS,
    ND_OPTION_VERIFY,
    ND_OPTION_CHECK_NAN,
    ND_OPTION_RUN_CALIBRATION,
    ND_OPTION_PROFILE,
    ND_OPTION_RUN_TRACE,
    ND_OPTION_JSON,
    ND_OPTION_RUN_VERBOSE,
    ND_OPTION_QUIET,
    ND_OPTION_HELP,
};

static const nd_command_syntax run_syntax = {
    .name = "run",
    .summary = "Execute a layout: real training steps, one thread a rank, measured beside what the program says",
    .example = "ndplan run --model my_model/config.json --layout dp_shard=2,tp=2 --verify",
    .usage = "ndplan run --model M [--layout L] [options]",
    .options = run_options,
    .options_count = sizeof run_options / sizeof run_options[0],
    .notes =
        "Keys of a layout: as `ndplan estimate --help` lists them. All weights train, with adamw: a LoRA or another\n"
        "optimizer is estimated but not executed.\n"
        "Exit status: 0 done, 1 --verify or another comparison found a difference, 2 usage or input error,\n"
        "3 a rank failed, 130 stopped by Ctrl-C.",
};

static bool as_expected(const nd_execution_view *view)
{
    return view->memory_equal && view->traffic_equal && (!view->verify.done || view->verify.passed);
}

static nd_status run_run(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_execution_input input;
    nd_execution_view view;
    nd_report_format format = ND_REPORT_TEXT;
    bool failed = false;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(nd_execution_input_load(options, &input, err));
    nd_status status = nd_execution_run(&input, &view, &failed, err);
    if (status != ND_OK) {
        *exit_status = failed ? ND_EXIT_FAILED : ND_EXIT_USAGE;
        return status;
    }
    nd_report_style style = nd_command_style();
    if (format == ND_REPORT_JSON) {
        nd_json_execution(stdout, &view);
    } else {
        status = nd_report_execution(stdout, &style, &view, nd_options_has(options, ND_OPTION_QUIET), err);
    }
    *exit_status = view.interrupted ? ND_EXIT_INTERRUPTED : as_expected(&view) ? ND_EXIT_DONE : ND_EXIT_NO;
    if (view.interrupted) {
        fprintf(stderr, "ndplan: interrupted: %lld of %lld steps are shown\n", (long long)view.steps_count,
                (long long)view.steps_asked);
    }
    nd_execution_free(&view);
    return status;
}

const nd_command nd_command_run = {&run_syntax, run_run};
