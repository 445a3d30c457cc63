#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "planner/constraints.h"
#include "reports/csv_report.h"
#include "reports/estimate_report.h"
#include "reports/json_report.h"

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
             "cp_method=ring|allgather|ulysses, schedule=1f1b|interleaved|zero_bubble,\n"
             "offload=none|optimizer|params|activations.\n"
             "Exit status: 0 fits or borderline, 1 illegal or does not fit, 2 usage or input error.",
};

static bool given(uint32_t keys, nd_layout_key key)
{
    return (keys >> key & 1u) != 0;
}

static nd_status load_layout(const nd_options *options, const nd_cluster_spec *cluster, nd_layout *layout,
                             uint32_t *keys, nd_error *err)
{
    const char *text = options->value[ND_OPTION_LAYOUT];
    if (text == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--layout is missing: for example dp_shard=%" PRId64
                       ",micro_batch=1,recompute=full; `ndplan suggest` finds good ones",
                       cluster->gpus);
    }
    nd_error inner;
    nd_status status = nd_layout_parse(text, layout, keys, &inner);
    if (status != ND_OK) {
        return nd_fail(err, status, "--layout: %.900s", inner.message);
    }
    int64_t ranks = nd_layout_ranks(layout);
    if (ranks != cluster->gpus) {
        return nd_fail(err, ND_EINVAL,
                       "--layout uses %" PRId64 " GPU%s (pp x dp_replicate x dp_shard x cp x tp = %d x %d x %d x %d x "
                       "%d) and cluster %s has %" PRId64 "; change a degree or the cluster",
                       ranks, ranks == 1 ? "" : "s", (int)layout->size[ND_AXIS_PP],
                       (int)layout->size[ND_AXIS_DP_REPLICATE], (int)layout->size[ND_AXIS_DP_SHARD],
                       (int)layout->size[ND_AXIS_CP], (int)layout->size[ND_AXIS_TP], cluster->name, cluster->gpus);
    }
    return ND_OK;
}

/* Batch and accumulation: the one that is missing follows from the other. */
static nd_status settle_batch(nd_inputs *inputs, nd_layout *layout, uint32_t keys, nd_error *err)
{
    int64_t once = layout->micro_batch * nd_layout_data_ranks(layout); /* sequences without accumulation */
    int64_t gpus = inputs->cluster.gpus;
    if (given(keys, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        if (layout->grad_accum > (INT64_C(1) << 40) / once) {
            return nd_fail(err, ND_EINVAL, "--layout: grad_accum=%" PRId64 " makes a batch of more than 2^40 sequences",
                           layout->grad_accum);
        }
        int64_t batch = nd_layout_global_batch_seqs(layout);
        if (inputs->global_batch_given && inputs->train.global_batch_seqs != batch) {
            return nd_fail(err, ND_EINVAL,
                           "--layout makes a batch of %" PRId64 " sequences (micro_batch %d x grad_accum %" PRId64
                           " x %" PRId64 " data ranks) and --global-batch says %" PRId64 "; leave one of them out",
                           batch, (int)layout->micro_batch, layout->grad_accum, nd_layout_data_ranks(layout),
                           inputs->train.global_batch_seqs);
        }
        inputs->train.global_batch_seqs = batch;
        return ND_OK;
    }
    if (!inputs->global_batch_given) {
        bool divides = gpus % once == 0;
        nd_inputs_default_batch(inputs, divides ? gpus : once * layout->size[ND_AXIS_PP],
                                divides ? "one sequence for each GPU, as `ndplan suggest` assumes"
                                        : "one micro-batch for each data rank and pipeline stage");
    }
    int64_t batch = inputs->train.global_batch_seqs;
    if (batch % once != 0) {
        int64_t below = batch / once * once;
        return nd_fail(err, ND_EINVAL,
                       "--global-batch %" PRId64 " is no multiple of %" PRId64 " (micro_batch %d x %" PRId64
                       " data ranks); nearest: %" PRId64 " or %" PRId64,
                       batch, once, (int)layout->micro_batch, nd_layout_data_ranks(layout), below > 0 ? below : once,
                       below > 0 ? below + once : 2 * once);
    }
    layout->grad_accum = batch / once;
    return ND_OK;
}

/* What the layout leaves open follows from the stack. */
static void settle_layout(nd_inputs *inputs, nd_layout *layout, uint32_t keys)
{
    const nd_stack *stack = &inputs->stack;
    if (!given(keys, ND_LAYOUT_KEY_SHARDING) && layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] > 1) {
        layout->sharding = stack->default_sharding;
        char value[32];
        (void)snprintf(value, sizeof value, "sharding=%s", nd_sharding_name(layout->sharding));
        nd_inputs_assume(inputs, "--layout", value, "what stack %s does", stack->name);
    }
    if (!given(keys, ND_LAYOUT_KEY_SCHEDULE) && layout->vpp > 1) {
        layout->schedule = ND_SCHEDULE_INTERLEAVED;
    }
    if (!given(keys, ND_LAYOUT_KEY_SP) && layout->size[ND_AXIS_TP] > 1) {
        layout->sequence_parallel = true;
    }
}

/* Sequence parallelism is the default with tp where it is possible at all. */
static void settle_sequence_parallel(nd_inputs *inputs, nd_layout *layout, uint32_t keys)
{
    if (given(keys, ND_LAYOUT_KEY_SP) || layout->size[ND_AXIS_TP] == 1) {
        return;
    }
    nd_layout without = *layout;
    without.sequence_parallel = false;
    if (!nd_layout_allowed(&inputs->cost, inputs->framework, layout, NULL, NULL) &&
        nd_layout_allowed(&inputs->cost, inputs->framework, &without, NULL, NULL)) {
        *layout = without;
    }
    nd_inputs_assume(inputs, "--layout", layout->sequence_parallel ? "sp=on" : "sp=off",
                     layout->sequence_parallel ? "sequence parallelism goes with tp"
                                               : "this software has no sequence parallelism");
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
        nd_csv_plans(stdout, &plan, 1);
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

static nd_status run_estimate(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_layout layout = nd_layout_single();
    uint32_t keys = 0;
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(nd_inputs_load(options, &inputs, err));
    ND_TRY(load_layout(options, &inputs.cluster, &layout, &keys, err));
    ND_TRY(settle_batch(&inputs, &layout, keys, err));
    settle_layout(&inputs, &layout, keys);
    ND_TRY(nd_inputs_finish(&inputs, err));
    settle_sequence_parallel(&inputs, &layout, keys);

    nd_report_context context = {
        .cost = &inputs.cost,
        .framework = inputs.framework,
        .assumptions = inputs.assumptions,
        .assumptions_count = inputs.assumptions_count,
        .style = nd_command_style(),
        .quiet = nd_options_has(options, ND_OPTION_QUIET),
    };
    nd_refusal refusal = {0};
    /* a user who named a framework wants its rule rather than what its stack cannot do */
    bool allowed =
        inputs.framework == NULL || inputs.framework->allows(&inputs.model, &layout, &inputs.train, NULL, &refusal);
    if (!allowed || !nd_layout_allowed(&inputs.cost, inputs.framework, &layout, NULL, &refusal)) {
        print_illegal(&context, &layout, &refusal, format);
        *exit_status = ND_EXIT_NO;
        return ND_OK;
    }
    nd_estimate_view view;
    nd_estimate_view_build(&inputs.cost, inputs.framework, &layout, &view);
    *exit_status = view.estimate.memory.verdict == ND_VERDICT_NO ? ND_EXIT_NO : ND_EXIT_DONE;
    return print_legal(&context, &view, format, err);
}

const nd_command nd_command_estimate = {&estimate_syntax, run_estimate};
