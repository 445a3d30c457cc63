#include "planner/point.h"

#include <stdio.h>
#include <string.h>

#include "planner/ranking_internal.h"

/* The first plan and, when that is borderline, the best that surely fits: a list of two holds both. */
enum { TOP = 2 };

nd_status nd_point_context(const nd_task *task, const nd_point *point, nd_cost_context *out, nd_error *err)
{
    const nd_cost_context *base = task->context;
    return nd_cost_context_like(base, &point->cluster, &point->train, base->stack, out, err);
}

/* Plans are there, but none is expected to fit: the one that needs least says by how much. */
static nd_status find_smallest(const nd_cost_context *context, const nd_task *task, const nd_search_options *options,
                               nd_point *out, nd_error *err)
{
    nd_search_options smallest = *options;
    nd_plan_list list = {0};
    smallest.objective = ND_OBJECTIVE_MEMORY;
    smallest.top = 1;
    smallest.until_sure = false;
    ND_TRY(nd_search(context, task->framework, &smallest, &list, err));
    out->has_closest = list.count > 0;
    if (list.count > 0) {
        out->closest = list.plans[0];
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

static void take_plans(const nd_plan_list *list, nd_point *out)
{
    out->fits = list->fitting > 0 && list->count > 0;
    if (out->fits) {
        out->best = list->plans[0];
        out->fits_likely = nd_memory_doubt(&out->best.estimate.memory) == 0;
    }
    for (int32_t i = 0; i < list->count && !out->fits_surely; i++) {
        if (list->plans[i].estimate.memory.verdict == ND_VERDICT_FITS) {
            out->sure = list->plans[i];
            out->fits_surely = true;
        }
    }
    out->has_closest = list->has_closest;
    if (list->has_closest) {
        out->closest = list->closest;
    } else if (!out->fits && list->rejections_count > 0) {
        const nd_rejection *first = &list->rejections[0];
        (void)snprintf(out->reason, sizeof out->reason, "%s: %s", first->rule, first->message);
    }
}

static nd_status search_point(const nd_task *task, int64_t value, const nd_cluster_spec *cluster,
                              const nd_train_spec *train, uint32_t pinned, const nd_layout *pin, bool until_sure,
                              bool any_closest, nd_point *out, nd_error *err)
{
    nd_cost_context context;
    nd_search_options options = nd_search_options_default();
    nd_plan_list list = {0};
    nd_error inner;
    memset(out, 0, sizeof *out);
    out->value = value;
    out->cluster = *cluster;
    out->train = *train;
    ND_TRY(nd_point_context(task, out, &context, err));
    options.top = TOP;
    options.pinned = pinned;
    options.pin = *pin;
    options.plans_only = true;
    options.until_sure = until_sure;
    options.any_closest = any_closest;
    options.control = task->control;
    nd_status status = nd_search(&context, task->framework, &options, &list, &inner);
    if (status == ND_EINVAL) {
        out->contradictory = true;
        (void)snprintf(out->reason, sizeof out->reason, "%.500s", inner.message);
        return ND_OK;
    }
    if (status != ND_OK) {
        return nd_fail(err, status, "%s", inner.message);
    }
    bool interrupted = list.interrupted;
    take_plans(&list, out);
    nd_plan_list_free(&list);
    if (!interrupted && out->fits && !out->fits_likely) {
        ND_TRY(find_smallest(&context, task, &options, out, err));
    }
    return interrupted ? nd_fail(err, ND_EINTERRUPTED, "interrupted") : ND_OK;
}

nd_status nd_point_search(const nd_task *task, int64_t value, const nd_cluster_spec *cluster,
                          const nd_train_spec *train, uint32_t pinned, const nd_layout *pin, nd_point *out,
                          nd_error *err)
{
    return search_point(task, value, cluster, train, pinned, pin, false, false, out, err);
}

nd_status nd_point_ask(const nd_task *task, int64_t value, const nd_cluster_spec *cluster, const nd_train_spec *train,
                       uint32_t pinned, const nd_layout *pin, bool any_closest, nd_point *out, nd_error *err)
{
    return search_point(task, value, cluster, train, pinned, pin, true, any_closest, out, err);
}

int64_t nd_task_batch_seqs(const nd_task *task, int64_t gpus, int64_t micro_batch)
{
    if ((task->pinned & nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM)) == 0 || !task->whole_layout) {
        return gpus * micro_batch;
    }
    const nd_layout *layout = &task->pin;
    int64_t inside = (int64_t)layout->size[ND_AXIS_PP] * layout->size[ND_AXIS_CP] * layout->size[ND_AXIS_TP];
    int64_t data_ranks = gpus / inside > 0 ? gpus / inside : 1;
    return data_ranks * micro_batch * layout->grad_accum;
}

uint32_t nd_task_pinned_at_any_gpus(const nd_task *task)
{
    bool sharded = task->pin.sharding != ND_SHARDING_NONE;
    if (!task->whole_layout) {
        return task->pinned;
    }
    return task->pinned & ~nd_layout_key_bit(sharded ? ND_LAYOUT_KEY_DP_SHARD : ND_LAYOUT_KEY_DP_REPLICATE) &
           ~nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM);
}
