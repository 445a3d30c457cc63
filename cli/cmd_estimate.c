#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/layout_input.h"
#include "cli/output_file.h"
#include "cli/run_input.h"
#include "core/text.h"
#include "cost_model/split.h"
#include "planner/constraints.h"
#include "reports/csv_report.h"
#include "reports/estimate_report.h"
#include "reports/json_report.h"
#include "reports/program_report.h"
#include "reports/trace.h"

static const nd_option_id estimate_options[] = {
    ND_OPTION_MODEL,
    ND_OPTION_ASSUME_LLAMA,
    ND_OPTION_CLUSTER,
    ND_OPTION_LAYOUT,
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
    ND_OPTION_TRACE,
    ND_OPTION_PROGRAM,
    ND_OPTION_RANK,
    ND_OPTION_PROGRAM_VERBOSE,
    ND_OPTION_TOKENS,
    ND_OPTION_PRICE,
    ND_OPTION_MTBF_HOURS,
    ND_OPTION_CHECKPOINT_INTERVAL,
    ND_OPTION_STORAGE,
    ND_OPTION_JSON,
    ND_OPTION_CSV,
    ND_OPTION_QUIET,
    ND_OPTION_HELP,
};

static const nd_command_syntax estimate_syntax = {
    .name = "estimate",
    .summary = "Price one layout: memory by term and phase, time by term, every collective, and where each number "
               "comes\nfrom",
    .example = "ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 \\\n"
               "    --layout dp_replicate=2,dp_shard=2,cp=2,tp=2,micro_batch=1,recompute=full",
    .usage = "ndplan estimate --model M --cluster C --layout L [options]",
    .options = estimate_options,
    .options_count = sizeof estimate_options / sizeof estimate_options[0],
    .notes = "Keys of a layout: dp_replicate dp_shard cp tp pp ep vpp (degrees; 1 when left out), micro_batch,\n"
             "grad_accum, sharding=none|zero1|zero2|zero3, recompute=none|selective|full|every:K, sp=on|off,\n"
             "cp_method=ring|allgather|ulysses, schedule=1f1b|interleaved|zero_bubble|gpipe,\n"
             "split=even|balanced, offload=none|optimizer|params|activations.\n"
             "Exit status: 0 fits or borderline, 1 illegal or does not fit, 2 usage or input error.",
};

static nd_status write_trace(const char *path, const nd_cost_context *cost, const nd_layout *layout, nd_error *err)
{
    nd_output_file file;
    nd_error inner;
    if (nd_output_open(path, &file, &inner) != ND_OK) {
        return nd_fail(err, ND_EIO, "--trace: %.900s", inner.message);
    }
    nd_status status = nd_trace_step(file.stream, cost, layout, &inner);
    status = nd_output_close(&file, status, &inner);
    return status == ND_OK ? ND_OK : nd_fail(err, status, "--trace: %.900s", inner.message);
}

static nd_status print_legal(const nd_report_context *context, const nd_estimate_view *view, nd_report_format format,
                             nd_error *err)
{
    nd_plan plan = {view->layout, view->estimate};
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_estimate(stdout, context, view);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_plans_run(stdout, context, &plan, 1);
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_estimate(stdout, context, view, err);
}

static void print_illegal(const nd_report_context *context, const nd_layout *layout, const nd_refusal *refusal,
                          nd_report_format format)
{
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_illegal(stdout, context, layout, refusal);
        return;
    case ND_REPORT_CSV:
        nd_csv_plans(stdout, NULL, 0);
        fprintf(stderr, "ndplan: not legal (%s): %s\n", refusal->rule, refusal->message);
        return;
    case ND_REPORT_TEXT:
        break;
    }
    nd_report_illegal(stdout, context, layout, refusal);
}

/* Compute types of the program: bf16 stands for every 16-bit training. */
static nd_elem program_elem(nd_dtype precision)
{
    return precision == ND_DTYPE_FP32 ? ND_ELEM_F32 : ND_ELEM_BF16;
}

/* The layers of each chunk, as the estimate has them. */
static nd_chunk_map split_chunks(const nd_cost_context *context, const nd_layout *layout)
{
    nd_block_prices prices;
    nd_stage_split split;
    nd_price_blocks(context, layout, &prices);
    nd_split_stages(context, layout, &prices, &split);
    return nd_stage_split_chunks(&split);
}

static nd_status print_program(const nd_options *options, const nd_report_context *context, const nd_inputs *inputs,
                               const nd_layout *layout, nd_error *err)
{
    nd_program_options program_options = nd_program_options_default();
    nd_program *program = NULL;
    int64_t rank = 0;
    const char *text = options->value[ND_OPTION_RANK];
    int64_t ranks = nd_layout_ranks(layout);
    if (text != NULL) {
        ND_TRY(nd_text_int(text, "--rank", 0, ranks - 1, &rank, err));
    }
    program_options.chunks = split_chunks(&inputs->cost, layout);
    program_options.real = program_elem(inputs->train.precision);
    ND_TRY(nd_program_create(&inputs->model, layout, &inputs->train, &program_options, rank, &program, err));
    bool all = nd_options_has(options, ND_OPTION_PROGRAM_VERBOSE);
    nd_status status = nd_report_program(stdout, &context->style, program, inputs->model.kv_heads,
                                         all ? INT32_MAX : ND_PROGRAM_LINES_DEFAULT, err);
    nd_program_free(program);
    return status;
}

static nd_status run_estimate(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_layout layout = nd_layout_single();
    uint32_t keys = 0;
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(nd_inputs_load(options, &inputs, err));
    const char *text = options->value[ND_OPTION_LAYOUT];
    if (text == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--layout is missing: for example dp_shard=%" PRId64
                       ",micro_batch=1,recompute=full; `ndplan suggest` finds good ones",
                       inputs.cluster.gpus);
    }
    ND_TRY(nd_layout_input(&inputs, text, &layout, &keys, err));
    ND_TRY(nd_inputs_finish(&inputs, err));
    nd_layout_input_sequence_parallel(&inputs, &layout, keys);
    nd_run_spec run;
    bool has_run = false;
    ND_TRY(nd_run_input_load(options, &inputs, false, &run, &has_run, err));
    ND_TRY(nd_inputs_anchor(options, &inputs, &layout, err));

    nd_report_context context = nd_inputs_report(options, &inputs);
    context.run = has_run ? &run : NULL;
    nd_refusal refusal = {0};
    /* a user who named a framework wants its rule rather than what its stack cannot do */
    bool allowed =
        inputs.framework == NULL || inputs.framework->allows(&inputs.model, &layout, &inputs.train, NULL, &refusal);
    if (!allowed || !nd_layout_allowed(&inputs.cost, inputs.framework, &layout, NULL, &refusal)) {
        print_illegal(&context, &layout, &refusal, format);
        *exit_status = ND_EXIT_NO;
        return ND_OK;
    }
    if (nd_options_has(options, ND_OPTION_PROGRAM)) {
        return print_program(options, &context, &inputs, &layout, err);
    }
    const char *trace = options->value[ND_OPTION_TRACE];
    if (trace != NULL) {
        ND_TRY(write_trace(trace, &inputs.cost, &layout, err));
    }
    nd_estimate_view view;
    nd_estimate_view_build(&inputs.cost, inputs.framework, &layout, &view);
    ND_TRY(nd_run_input_check(&inputs, &run, &(nd_plan){layout, view.estimate}, err));
    *exit_status = view.estimate.memory.verdict == ND_VERDICT_NO ? ND_EXIT_NO : ND_EXIT_DONE;
    return print_legal(&context, &view, format, err);
}

const nd_command nd_command_estimate = {&estimate_syntax, run_estimate};
