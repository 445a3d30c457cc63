#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/task_input.h"
#include "core/text.h"
#include "reports/max_report.h"

static const nd_option_id max_options[] = {
    ND_OPTION_MODEL,       ND_OPTION_ASSUME_LLAMA, ND_OPTION_CLUSTER,
    ND_OPTION_OF,          ND_OPTION_LAYOUT,       ND_OPTION_PIN,
    ND_OPTION_SEQ_LEN,     ND_OPTION_GLOBAL_BATCH, ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_PRECISION,   ND_OPTION_OPTIMIZER,    ND_OPTION_LORA,
    ND_OPTION_ATTENTION,   ND_OPTION_FRAMEWORK,    ND_OPTION_STACK,
    ND_OPTION_CALIBRATION, ND_OPTION_ANCHOR,       ND_OPTION_THREADS,
    ND_OPTION_JSON,        ND_OPTION_VERBOSE,      ND_OPTION_QUIET,
    ND_OPTION_HELP,
};

static const nd_command_syntax max_syntax = {
    .name = "max",
    .summary = "Find the largest micro-batch, longest sequence, fewest GPUs: what fits",
    .example = "ndplan max --model llama-3.1-8b --cluster 8xh100 --of seq-len",
    .usage = "ndplan max --model M --cluster C [--of Q] [--layout L | --pin K=V,...] [options]",
    .options = max_options,
    .options_count = sizeof max_options / sizeof max_options[0],
    .notes = "With --layout the degrees stay and only the asked quantity varies (for gpus, the data-parallel degree\n"
             "follows); with --pin some of them stay; else every legal layout is searched at each value.\n"
             "Exit status: 0 each question has an answer, 1 nothing fits for one of them, 2 usage or input error,\n130 "
             "stopped by Ctrl-C.",
};

static const char *const batch_why =
    "one sequence for each GPU; for --of micro-batch and --of gpus it follows their values";

static const nd_layout_key asked_keys[ND_LIMIT_QUANTITY_COUNT] = {
    [ND_LIMIT_MICRO_BATCH] = ND_LAYOUT_KEY_MICRO_BATCH,
    [ND_LIMIT_SEQ_LEN] = ND_LAYOUT_KEY_COUNT,
    [ND_LIMIT_GPUS] = ND_LAYOUT_KEY_COUNT,
};

static const char *quantity_name(int value)
{
    return nd_limit_quantity_name((nd_limit_quantity)value);
}

/* Which questions are asked, and whether an option already answers one. */
static nd_status load_questions(const nd_options *options, bool asked[ND_LIMIT_QUANTITY_COUNT], nd_error *err)
{
    const char *text = options->value[ND_OPTION_OF];
    int only = ND_LIMIT_QUANTITY_COUNT;
    if (text != NULL) {
        ND_TRY(nd_text_choice(text, "--of", quantity_name, ND_LIMIT_QUANTITY_COUNT, &only, err));
    }
    for (int q = 0; q < ND_LIMIT_QUANTITY_COUNT; q++) {
        asked[q] = text == NULL || q == only;
    }
    if (only == ND_LIMIT_SEQ_LEN && nd_options_has(options, ND_OPTION_SEQ_LEN)) {
        return nd_fail(err, ND_EINVAL, "--of seq-len looks for the longest --seq-len; leave --seq-len out");
    }
    return ND_OK;
}

/* A pinned key that is asked for: refused when it is the only question, else not asked. */
static nd_status drop_answered(nd_inputs *inputs, const nd_task *task, bool only, bool asked[ND_LIMIT_QUANTITY_COUNT],
                               nd_error *err)
{
    for (int q = 0; q < ND_LIMIT_QUANTITY_COUNT && !task->whole_layout; q++) {
        nd_layout_key key = asked_keys[q];
        if (!asked[q] || key == ND_LAYOUT_KEY_COUNT || (task->pinned & nd_layout_key_bit(key)) == 0) {
            continue;
        }
        if (only) {
            return nd_fail(err, ND_EINVAL, "--pin fixes %s, which --of %s looks for; leave it out",
                           nd_layout_key_name(key), quantity_name(q));
        }
        nd_inputs_assume(inputs, "--pin", nd_layout_key_name(key), "given, so that --of %s is not asked",
                         quantity_name(q));
        asked[q] = false;
    }
    return ND_OK;
}

static nd_status find_limits(const nd_task *task, const bool asked[ND_LIMIT_QUANTITY_COUNT], nd_limit *limits,
                             nd_limit_view *views, int32_t *count, nd_error *err)
{
    typedef nd_status (*finder)(const nd_task *, nd_limit *, nd_error *);
    static const finder finders[ND_LIMIT_QUANTITY_COUNT] = {[ND_LIMIT_MICRO_BATCH] = nd_limit_micro_batch,
                                                            [ND_LIMIT_SEQ_LEN] = nd_limit_seq_len,
                                                            [ND_LIMIT_GPUS] = nd_limit_gpus};
    *count = 0;
    for (int q = 0; q < ND_LIMIT_QUANTITY_COUNT; q++) {
        if (asked[q]) {
            ND_TRY(finders[q](task, &limits[*count], err));
            ND_TRY(nd_limit_view_build(task, &limits[*count], &views[*count], err));
            (*count)++;
        }
    }
    return ND_OK;
}

static nd_status print_limits(const nd_options *options, const nd_inputs *inputs, const nd_limit_view *views,
                              int32_t count, nd_report_format format, nd_error *err)
{
    nd_report_context context = nd_inputs_report(options, inputs);
    if (format == ND_REPORT_JSON) {
        nd_json_limits(stdout, &context, views, count);
        return ND_OK;
    }
    return nd_report_limits(stdout, &context, views, count, err);
}

static nd_status run_max(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_task task;
    bool asked[ND_LIMIT_QUANTITY_COUNT];
    nd_report_format format = ND_REPORT_TEXT;
    int32_t count = 0;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(load_questions(options, asked, err));
    ND_TRY(nd_inputs_load(options, &inputs, err));
    nd_task_batch batch = {inputs.cluster.gpus, batch_why};
    ND_TRY(nd_task_input(options, &inputs, &batch, &task, err));
    ND_TRY(drop_answered(&inputs, &task, nd_options_has(options, ND_OPTION_OF), asked, err));
    nd_limit *limits = calloc(ND_LIMIT_QUANTITY_COUNT, sizeof *limits);
    nd_limit_view *views = calloc(ND_LIMIT_QUANTITY_COUNT, sizeof *views);
    nd_status status = limits != NULL && views != NULL ? find_limits(&task, asked, limits, views, &count, err)
                                                       : nd_fail(err, ND_ENOMEM, "out of memory for the limits");
    nd_progress_end();
    if (status == ND_OK) {
        *exit_status = ND_EXIT_DONE;
        for (int32_t i = 0; i < count; i++) {
            *exit_status = limits[i].has_sure || limits[i].has_possible ? *exit_status : ND_EXIT_NO;
        }
        status = print_limits(options, &inputs, views, count, format, err);
    }
    free(views);
    free(limits);
    return status;
}

const nd_command nd_command_max = {&max_syntax, run_max};
