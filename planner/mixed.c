#include "planner/mixed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "planner/mixed_internal.h"

const char *nd_mixed_way_name(nd_mixed_way way)
{
    static const char *const names[ND_MIXED_WAY_COUNT] = {
#define ND_MIXED_WAY_TEXT(name, text) [name] = (text),
        ND_MIXED_WAY_LIST(ND_MIXED_WAY_TEXT)
#undef ND_MIXED_WAY_TEXT
    };
    return (int)way >= 0 && way < ND_MIXED_WAY_COUNT ? names[way] : "unknown";
}

const char nd_mixed_interrupted[] = "interrupted before one was found";

bool nd_mixed_share_goes_on(void *data, double done_frac)
{
    nd_mixed_share *share = data;
    const nd_search_control *control = share->control;
    double frac = share->from_frac + done_frac * (share->to_frac - share->from_frac);
    share->stopped = share->stopped || (control->progress != NULL && !control->progress(control->data, frac));
    return !share->stopped;
}

/* What is left of the GPU's memory, as a part of it. */
static double spare_frac(const nd_mixed_group *group)
{
    return 1.0 - group->memory.peak_bytes / group->memory.capacity_bytes;
}

const nd_mixed_group *nd_mixed_fullest(const nd_mixed_option *option)
{
    const nd_mixed_group *fullest = &option->groups[0];
    for (int32_t g = 1; g < option->groups_count; g++) {
        fullest = spare_frac(&option->groups[g]) < spare_frac(fullest) ? &option->groups[g] : fullest;
    }
    return fullest;
}

static void take_best(const nd_mixed_input *input, const nd_cost_context *context, const nd_plan *plan, int32_t part,
                      nd_mixed_option *out)
{
    out->found = true;
    out->layout = plan->layout;
    out->time = plan->estimate.time;
    out->tokens_per_s = plan->estimate.tokens_per_s;
    out->gpus = context->cluster->gpus;
    out->idle_gpus = input->cluster->gpus - out->gpus;
    out->groups_count = 1;
    out->groups[0] = (nd_mixed_group){
        .part = part,
        .stages = plan->layout.size[ND_AXIS_PP],
        .layers = context->model->layers,
        .gpus = out->gpus,
        .memory = plan->estimate.memory,
    };
}

/* The best of an equal-node cluster. Pins that it cannot meet are a reason, not a failure: another way may meet them.
 */
static nd_status search_equal(const nd_mixed_input *input, const nd_cost_context *context, int32_t part,
                              nd_mixed_share *share, nd_mixed_option *out, nd_mixed_plan *counters, nd_error *err)
{
    nd_search_options options = *input->options;
    nd_plan_list list;
    nd_error inner;
    memset(&list, 0, sizeof list);
    options.top = 1;
    options.objective = ND_OBJECTIVE_THROUGHPUT;
    options.include_unfit = false;
    options.plans_only = true;
    options.control.progress = nd_mixed_share_goes_on;
    options.control.data = share;
    nd_status status = nd_search(context, input->framework, &options, &list, &inner);
    if (status == ND_EINVAL) {
        (void)snprintf(out->why_not, sizeof out->why_not, "%.250s", inner.message);
        return ND_OK;
    }
    if (status != ND_OK) {
        return nd_fail(err, status, "%s", inner.message);
    }
    counters->searched += list.searched;
    if (list.count == 0 && list.interrupted) {
        (void)snprintf(out->why_not, sizeof out->why_not, "%s", nd_mixed_interrupted);
    } else if (list.count > 0) {
        take_best(input, context, &list.plans[0], part, out);
        out->mfu_frac = list.plans[0].estimate.mfu_frac;
    } else if (list.has_closest) {
        (void)snprintf(out->why_not, sizeof out->why_not, "nothing fits in the %.1f GiB of a GPU",
                       list.closest.estimate.memory.capacity_bytes / (1024.0 * 1024.0 * 1024.0));
    } else {
        (void)snprintf(out->why_not, sizeof out->why_not, "no layout of %lld GPU%s is legal%s%.120s",
                       (long long)context->cluster->gpus, nd_text_plural(context->cluster->gpus),
                       list.rejections_count > 0 ? ": " : "",
                       list.rejections_count > 0 ? list.rejections[0].message : "");
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

/* MFU against what the GPUs in use could do, not against the slowest of them. */
static double real_mfu(const nd_mixed_input *input, const nd_cluster_spec *slowest, double tokens_per_s)
{
    double peak_flops_per_s = 0.0;
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        const nd_cluster_spec *part = &input->cluster->parts[i];
        double gpus = (double)(part->nodes * slowest->gpus_per_node);
        peak_flops_per_s += gpus * part->gpu.peak_flops_per_s[input->parts[i]->train->precision];
    }
    return input->parts[0]->flops_per_token * tokens_per_s / peak_flops_per_s;
}

static nd_status search_slowest(const nd_mixed_input *input, nd_mixed_share *share, nd_mixed_option *out,
                                nd_mixed_plan *counters, nd_error *err)
{
    nd_cluster_spec cluster;
    nd_calibration calibration;
    nd_train_spec train;
    nd_time_uncertainty uncertainty;
    nd_cost_context context;
    nd_error inner;
    if (nd_mixed_cluster_slowest(input->cluster, &cluster, NULL, &inner) != ND_OK) {
        (void)snprintf(out->why_not, sizeof out->why_not, "%.250s", inner.message);
        return ND_OK;
    }
    nd_mixed_slowest_constants(input, &cluster, &calibration, &train, &uncertainty);
    ND_TRY(nd_cost_context_init(input->parts[0]->model, &cluster, &train, input->parts[0]->stack, &calibration,
                                &context, err));
    context.uncertainty = uncertainty;
    ND_TRY(search_equal(input, &context, -1, share, out, counters, err));
    if (out->found) {
        out->mfu_frac = real_mfu(input, &cluster, out->tokens_per_s);
    }
    return ND_OK;
}

/* Expected to need more memory than there is: such an answer comes after all others, as in nd_search(). */
static bool overflows(const nd_mixed_option *option)
{
    const nd_mixed_group *fullest = nd_mixed_fullest(option);
    return fullest->memory.peak_bytes > fullest->memory.capacity_bytes;
}

/* The fastest; of equals the earlier one, which is the simpler one. */
static int32_t choose(const nd_mixed_plan *plan)
{
    int32_t best = -1;
    for (int32_t i = 0; i < plan->count; i++) {
        const nd_mixed_option *option = &plan->options[i];
        if (!option->found) {
            continue;
        }
        const nd_mixed_option *so_far = best >= 0 ? &plan->options[best] : NULL;
        bool better = so_far == NULL ||
                      (overflows(option) == overflows(so_far) ? option->time.step_s < so_far->time.step_s * (1.0 - 1e-9)
                                                              : !overflows(option));
        best = better ? i : best;
    }
    return best;
}

static nd_mixed_option *add_option(nd_mixed_plan *plan, nd_mixed_way way)
{
    nd_mixed_option *option = &plan->options[plan->count++];
    option->way = way;
    return option;
}

/* Fill a plan that is all zero. */
static nd_status search_all(const nd_mixed_input *input, nd_mixed_plan *plan, nd_error *err)
{
    double start_s = nd_monotonic_s();
    /* equal nodes, whose searches have bounds and threads, take half of the bar */
    double step_frac = 0.5 / (double)(input->cluster->parts_count + 1);
    nd_mixed_share share = {.control = &input->options->control, .to_frac = step_frac};
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        nd_mixed_option *alone = add_option(plan, ND_MIXED_ALONE);
        ND_TRY(search_equal(input, input->parts[i], i, &share, alone, plan, err));
        share.from_frac = share.to_frac;
        share.to_frac += step_frac;
        alone->groups[0].part = i; /* said in reports even when nothing was found */
    }
    ND_TRY(search_slowest(input, &share, add_option(plan, ND_MIXED_SLOWEST), plan, err));
    share.from_frac = share.to_frac;
    share.to_frac = 1.0;
    int32_t count = 0;
    nd_mixed_option *stages = add_option(plan, ND_MIXED_STAGES);
    ND_TRY(nd_mixed_search_stages(input, &share, stages, &count, plan, stages->why_not, sizeof stages->why_not, err));
    plan->interrupted = share.stopped;
    plan->count += count > 1 ? count - 1 : 0;
    plan->best = choose(plan);
    plan->elapsed_s = nd_monotonic_s() - start_s;
    return ND_OK;
}

nd_status nd_mixed_search(const nd_mixed_input *input, nd_mixed_plan *out, nd_error *err)
{
    nd_mixed_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the ways to use a mixed cluster");
    }
    nd_status status = search_all(input, plan, err);
    if (status == ND_OK && plan->searched == 0) {
        status = nd_fail(err, ND_EINVAL, "%s", plan->options[input->cluster->parts_count].why_not);
    }
    if (status == ND_OK) {
        *out = *plan;
    }
    free(plan);
    return status;
}
