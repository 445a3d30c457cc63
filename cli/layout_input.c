#include "cli/layout_input.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/text.h"
#include "planner/constraints.h"
#include "program/program.h"

static bool given(uint32_t keys, nd_layout_key key)
{
    return (keys >> key & 1u) != 0;
}

static nd_status parse_text(const char *option, const char *text, nd_layout *layout, uint32_t *keys, nd_error *err)
{
    nd_error inner;
    nd_status status = nd_layout_parse(text, layout, keys, &inner);
    return status == ND_OK ? ND_OK : nd_fail(err, status, "%s: %.900s", option, inner.message);
}

static nd_status parse(const char *option, const char *text, const nd_cluster_spec *cluster, nd_layout *layout,
                       uint32_t *keys, nd_error *err)
{
    ND_TRY(parse_text(option, text, layout, keys, err));
    int64_t ranks = nd_layout_ranks(layout);
    if (ranks != cluster->gpus) {
        return nd_fail(err, ND_EINVAL,
                       "%s uses %" PRId64 " GPU%s (pp x dp_replicate x dp_shard x cp x tp = %d x %d x %d x %d x "
                       "%d) and cluster %s has %" PRId64 "; change a degree or the cluster",
                       option, ranks, ranks == 1 ? "" : "s", (int)layout->size[ND_AXIS_PP],
                       (int)layout->size[ND_AXIS_DP_REPLICATE], (int)layout->size[ND_AXIS_DP_SHARD],
                       (int)layout->size[ND_AXIS_CP], (int)layout->size[ND_AXIS_TP], cluster->name, cluster->gpus);
    }
    return ND_OK;
}

static void default_batch(nd_inputs *inputs, const nd_layout *layout)
{
    int64_t once = layout->micro_batch * nd_layout_data_ranks(layout);
    int64_t gpus = inputs->cluster.gpus;
    bool divides = gpus % once == 0;
    nd_inputs_default_batch(inputs, divides ? gpus : once * layout->size[ND_AXIS_PP],
                            divides ? "one sequence for each GPU, as `ndplan suggest` assumes"
                                    : "one micro-batch for each data rank and pipeline stage");
}

/* Batch and accumulation: the one that is missing follows from the other. */
static nd_status settle_batch(nd_inputs *inputs, nd_layout *layout, uint32_t keys, nd_error *err)
{
    int64_t once = layout->micro_batch * nd_layout_data_ranks(layout); /* sequences without accumulation */
    if (given(keys, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        if (layout->grad_accum > (INT64_C(1) << 40) / once) {
            return nd_fail(err, ND_EINVAL, "--layout: grad_accum=%" PRId64 " makes a batch of more than 2^40 sequences",
                           layout->grad_accum);
        }
        int64_t batch = nd_layout_global_batch_seqs(layout);
        if (inputs->global_batch_given && inputs->train.global_batch_seqs != batch) {
            return nd_fail(err, ND_EINVAL,
                           "--layout makes a batch of %" PRId64 " sequence%s (micro_batch %d x grad_accum %" PRId64
                           " x %" PRId64 " data ranks) and --global-batch says %" PRId64 "; leave one of them out",
                           batch, nd_text_plural(batch), (int)layout->micro_batch, layout->grad_accum,
                           nd_layout_data_ranks(layout), inputs->train.global_batch_seqs);
        }
        inputs->train.global_batch_seqs = batch;
        return ND_OK;
    }
    if (!inputs->global_batch_given) {
        default_batch(inputs, layout);
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
static void settle_layout(nd_inputs *inputs, const char *option, nd_layout *layout, uint32_t keys)
{
    const nd_stack *stack = &inputs->stack;
    if (!given(keys, ND_LAYOUT_KEY_SHARDING) && layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] > 1) {
        layout->sharding = stack->default_sharding;
        char value[32];
        (void)snprintf(value, sizeof value, "sharding=%s", nd_sharding_name(layout->sharding));
        nd_inputs_assume(inputs, option, value, "what stack %s does", stack->name);
    }
    if (!given(keys, ND_LAYOUT_KEY_SCHEDULE) && layout->vpp > 1) {
        layout->schedule = ND_SCHEDULE_INTERLEAVED;
    }
    if (!given(keys, ND_LAYOUT_KEY_SP) && layout->size[ND_AXIS_TP] > 1) {
        layout->sequence_parallel = true;
    }
}

/* Sequence parallelism goes with tp where `context` allows it. */
static void settle_sequence_parallel(nd_inputs *inputs, const nd_cost_context *context, const char *option,
                                     nd_layout *layout, uint32_t keys)
{
    if (given(keys, ND_LAYOUT_KEY_SP) || layout->size[ND_AXIS_TP] == 1) {
        return;
    }
    nd_layout without = *layout;
    without.sequence_parallel = false;
    if (!nd_layout_allowed(context, inputs->framework, layout, NULL, NULL) &&
        nd_layout_allowed(context, inputs->framework, &without, NULL, NULL)) {
        *layout = without;
    }
    nd_inputs_assume(inputs, option, layout->sequence_parallel ? "sp=on" : "sp=off",
                     layout->sequence_parallel ? "sequence parallelism goes with tp"
                                               : "this software has no sequence parallelism");
}

void nd_layout_input_sequence_parallel(nd_inputs *inputs, nd_layout *layout, uint32_t keys)
{
    settle_sequence_parallel(inputs, &inputs->cost, "--layout", layout, keys);
}

nd_status nd_layout_input(nd_inputs *inputs, const char *text, nd_layout *layout, uint32_t *keys, nd_error *err)
{
    *layout = nd_layout_single();
    *keys = 0;
    ND_TRY(parse("--layout", text, &inputs->cluster, layout, keys, err));
    ND_TRY(settle_batch(inputs, layout, *keys, err));
    settle_layout(inputs, "--layout", layout, *keys);
    return ND_OK;
}

nd_status nd_layout_input_any(nd_inputs *inputs, const char *text, nd_layout *layout, uint32_t *keys, nd_error *err)
{
    *layout = nd_layout_single();
    *keys = 0;
    ND_TRY(parse_text("--layout", text, layout, keys, err));
    bool accum_given = given(*keys, ND_LAYOUT_KEY_GRAD_ACCUM);
    if (!inputs->global_batch_given && accum_given) {
        inputs->train.global_batch_seqs = nd_layout_global_batch_seqs(layout);
    } else if (!inputs->global_batch_given) {
        default_batch(inputs, layout);
    }
    if (!accum_given) {
        int64_t accum = inputs->train.global_batch_seqs / (layout->micro_batch * nd_layout_data_ranks(layout));
        layout->grad_accum = accum > 0 ? accum : 1;
    }
    settle_layout(inputs, "--layout", layout, *keys);
    return ND_OK;
}

/* The batch of a measured layout: its own when it has an accumulation, else the task's. */
static nd_status settle_measured_batch(const nd_train_spec *train, const char *option, nd_layout *layout, uint32_t keys,
                                       nd_error *err)
{
    int64_t once = layout->micro_batch * nd_layout_data_ranks(layout);
    if (given(keys, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        return layout->grad_accum <= (INT64_C(1) << 40) / once
                   ? ND_OK
                   : nd_fail(err, ND_EINVAL, "%s: grad_accum=%" PRId64 " makes a batch of more than 2^40 sequences",
                             option, layout->grad_accum);
    }
    if (train->global_batch_seqs % once != 0) {
        return nd_fail(err, ND_EINVAL,
                       "%s: the global batch of %" PRId64 " sequence%s is no multiple of %" PRId64 " (micro_batch %d x "
                       "%" PRId64 " data ranks); add the grad_accum that was measured",
                       option, train->global_batch_seqs, nd_text_plural(train->global_batch_seqs), once,
                       (int)layout->micro_batch, nd_layout_data_ranks(layout));
    }
    layout->grad_accum = train->global_batch_seqs / once;
    return ND_OK;
}

/* What a measured layout did is not known where it is not said; a wrong guess would scale every plan. */
static void assume_unsaid(nd_inputs *inputs, const char *option, const nd_layout *layout, uint32_t keys)
{
    if (!given(keys, ND_LAYOUT_KEY_MICRO_BATCH)) {
        nd_inputs_assume(inputs, option, "micro_batch=1", "the measured layout does not say");
    }
    if (!given(keys, ND_LAYOUT_KEY_RECOMPUTE)) {
        char value[32];
        (void)snprintf(value, sizeof value, "recompute=%s", nd_recompute_name(layout->recompute));
        nd_inputs_assume(inputs, option, value,
                         "the measured layout does not say; recompute=full where checkpointing was on");
    }
}

/* A second layout beside the task's: what it leaves open is settled like that of the first, but its batch is its own.
 * \param[in] told  whether what it does not say matters enough to be recorded */
static nd_status settle_other(nd_inputs *inputs, const char *option, const char *text, bool told, nd_layout *layout,
                              nd_refusal *refusal, bool *legal, nd_error *err)
{
    uint32_t keys = 0;
    *layout = nd_layout_single();
    ND_TRY(parse(option, text, &inputs->cluster, layout, &keys, err));
    ND_TRY(settle_measured_batch(&inputs->train, option, layout, keys, err));
    if (told) {
        assume_unsaid(inputs, option, layout, keys);
    }
    settle_layout(inputs, option, layout, keys);
    nd_train_spec train = inputs->train; /* of the other run, whose batch may be another than the task's */
    nd_cost_context context = inputs->cost;
    train.global_batch_seqs = nd_layout_global_batch_seqs(layout);
    context.train = &train;
    settle_sequence_parallel(inputs, &context, option, layout, keys);
    *legal = nd_layout_allowed(&context, inputs->framework, layout, NULL, refusal);
    return ND_OK;
}

nd_status nd_layout_input_measured(nd_inputs *inputs, const char *option, const char *text, nd_layout *layout,
                                   nd_error *err)
{
    nd_refusal refusal = {0};
    bool legal = false;
    ND_TRY(settle_other(inputs, option, text, true, layout, &refusal, &legal, err));
    if (!legal) {
        return nd_fail(err, ND_EINVAL, "%s: a layout that is not legal (%s) was not measured: %s%s%s", option,
                       refusal.rule, refusal.message, refusal.nearest[0] != '\0' ? "; nearest legal: " : "",
                       refusal.nearest);
    }
    return ND_OK;
}

nd_status nd_layout_input_against(nd_inputs *inputs, const char *option, const char *text, nd_layout *layout,
                                  nd_error *err)
{
    nd_refusal refusal = {0};
    bool legal = false;
    ND_TRY(settle_other(inputs, option, text, false, layout, &refusal, &legal, err));
    if (!legal) {
        return nd_fail(err, ND_EINVAL, "%s: a layout that is not legal (%s) has no step to compare with: %s%s%s",
                       option, refusal.rule, refusal.message, refusal.nearest[0] != '\0' ? "; nearest legal: " : "",
                       refusal.nearest);
    }
    return ND_OK;
}

/* With a pipeline as many micro-batches as stages: the fewest that keep all of them busy. */
static void default_executed_batch(nd_inputs *inputs, const nd_layout *layout)
{
    bool pipeline = layout->size[ND_AXIS_PP] > 1;
    nd_inputs_default_batch(
        inputs, layout->micro_batch * nd_layout_data_ranks(layout) * (int64_t)layout->size[ND_AXIS_PP],
        pipeline ? "one micro-batch for each data rank and pipeline stage" : "one micro-batch for each data rank");
    inputs->global_batch_given = true; /* settled: the layout's accumulation follows from it */
}

/* As nd_layout_input_sequence_parallel(), by what a program can do. */
static void settle_executed_sp(nd_inputs *inputs, nd_layout *layout, uint32_t keys)
{
    if (given(keys, ND_LAYOUT_KEY_SP) || layout->size[ND_AXIS_TP] == 1) {
        return;
    }
    nd_layout without = *layout;
    without.sequence_parallel = false;
    if (nd_program_supports(&inputs->model, layout, &inputs->train, NULL) != ND_OK &&
        nd_program_supports(&inputs->model, &without, &inputs->train, NULL) == ND_OK) {
        *layout = without;
    }
    nd_inputs_assume(inputs, "--layout", layout->sequence_parallel ? "sp=on" : "sp=off",
                     layout->sequence_parallel ? "sequence parallelism goes with tp"
                                               : "the tokens of a rank do not divide by tp");
}

nd_status nd_layout_input_executed(nd_inputs *inputs, const char *text, nd_layout *layout, nd_error *err)
{
    uint32_t keys = 0;
    *layout = nd_layout_single();
    ND_TRY(parse_text("--layout", text, layout, &keys, err));
    if (!inputs->global_batch_given && !given(keys, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        default_executed_batch(inputs, layout);
    }
    ND_TRY(settle_batch(inputs, layout, keys, err));
    ND_TRY(nd_train_spec_check(&inputs->train, err));
    settle_layout(inputs, "--layout", layout, keys);
    settle_executed_sp(inputs, layout, keys);
    return nd_program_supports(&inputs->model, layout, &inputs->train, err);
}
