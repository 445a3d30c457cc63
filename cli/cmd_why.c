#include <inttypes.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/layout_input.h"
#include "reports/why_report.h"

static const nd_option_id why_options[] = {
    ND_OPTION_MODEL,     ND_OPTION_ASSUME_LLAMA, ND_OPTION_CLUSTER,      ND_OPTION_LAYOUT,
    ND_OPTION_AGAINST,   ND_OPTION_SEQ_LEN,      ND_OPTION_GLOBAL_BATCH, ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_PRECISION, ND_OPTION_OPTIMIZER,    ND_OPTION_LORA,         ND_OPTION_ATTENTION,
    ND_OPTION_FRAMEWORK, ND_OPTION_STACK,        ND_OPTION_CALIBRATION,  ND_OPTION_ANCHOR,
    ND_OPTION_JSON,      ND_OPTION_VERBOSE,      ND_OPTION_QUIET,        ND_OPTION_HELP,
};

static const nd_command_syntax why_syntax = {
    .name = "why",
    .summary = "Say why a layout is illegal, does not fit, or is not the first: the rule, the memory or the\ntime "
               "behind it, with numbers, and what to change",
    .example = "ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 \\\n"
               "    --layout dp_shard=2,tp=8,micro_batch=1",
    .usage = "ndplan why --model M --cluster C --layout L [--against L] [options]",
    .options = why_options,
    .options_count = sizeof why_options / sizeof why_options[0],
    .notes = "The keys of a layout are those of `ndplan estimate`. --against compares with that layout, term by\n"
             "term, instead of with the best that a search finds; -v adds which degree divides which term of\n"
             "memory, and all terms of the comparison.\n"
             "Exit status: 0 legal and fits (or borderline), 1 not legal or does not fit, 2 usage or input error.",
};

static nd_status load_layouts(const nd_options *options, nd_inputs *inputs, nd_layout *layout, uint32_t *keys,
                              nd_error *err)
{
    const char *text = options->value[ND_OPTION_LAYOUT];
    ND_TRY(nd_inputs_load(options, inputs, err));
    if (text == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--layout is missing: the layout to ask about, for example dp_shard=%" PRId64
                       ",micro_batch=1; `ndplan suggest` finds good ones",
                       inputs->cluster.gpus);
    }
    ND_TRY(nd_layout_input_any(inputs, text, layout, keys, err));
    ND_TRY(nd_inputs_finish(inputs, err));
    nd_layout_input_sequence_parallel(inputs, layout, *keys);
    return nd_inputs_anchor(options, inputs, layout, err);
}

static nd_status answer(const nd_options *options, nd_inputs *inputs, const nd_layout *layout, uint32_t keys,
                        nd_why *why, nd_error *err)
{
    const char *text = options->value[ND_OPTION_AGAINST];
    if (text == NULL) {
        return nd_why_layout(&inputs->cost, inputs->framework, layout, keys, NULL, why, err);
    }
    nd_layout other;
    ND_TRY(nd_layout_input_against(inputs, "--against", text, &other, err));
    nd_train_spec train = inputs->train;
    nd_cost_context context = inputs->cost;
    train.global_batch_seqs = nd_layout_global_batch_seqs(&other);
    context.train = &train;
    nd_why_against against = {&context, &other};
    return nd_why_layout(&inputs->cost, inputs->framework, layout, keys, &against, why, err);
}

static nd_status print_why(const nd_options *options, const nd_inputs *inputs, const nd_why *why,
                           nd_report_format format, nd_error *err)
{
    nd_report_context context = nd_inputs_report(options, inputs);
    if (format == ND_REPORT_JSON) {
        nd_json_why(stdout, &context, why);
        return ND_OK;
    }
    return nd_report_why(stdout, &context, why, err);
}

static nd_status run_why(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_layout layout = nd_layout_single();
    uint32_t keys = 0;
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(load_layouts(options, &inputs, &layout, &keys, err));
    nd_why *why = malloc(sizeof *why); /* with its comparison too large for the stack to be sure of it */
    if (why == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while looking at the layout");
    }
    nd_status status = answer(options, &inputs, &layout, keys, why, err);
    if (status == ND_OK) {
        bool no = why->answer == ND_WHY_ILLEGAL || why->answer == ND_WHY_UNFIT || why->answer == ND_WHY_HOST_UNFIT;
        *exit_status = no ? ND_EXIT_NO : ND_EXIT_DONE;
        status = print_why(options, &inputs, why, format, err);
    }
    free(why);
    return status;
}

const nd_command nd_command_why = {&why_syntax, run_why};
