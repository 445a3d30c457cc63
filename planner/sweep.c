#include "planner/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/fixes_internal.h"

const char *nd_sweep_quantity_name(nd_sweep_quantity quantity)
{
    static const char *const names[ND_SWEEP_QUANTITY_COUNT] = {
#define SWEEP_NAME(name, text) [name] = (text),
        ND_SWEEP_LIST(SWEEP_NAME)
#undef SWEEP_NAME
    };
    return names[quantity];
}

/* A batch in tokens stays what it is: longer sequences are fewer. */
static nd_status set_seq_len(const nd_task *task, int64_t tokens, nd_train_spec *train, nd_error *err)
{
    train->seq_len_tokens = tokens;
    if (task->batch_tokens == 0) {
        return ND_OK;
    }
    if (task->batch_tokens % tokens != 0) {
        return nd_fail(err, ND_EINVAL,
                       "a batch of %" PRId64 " tokens is no whole number of sequences of %" PRId64
                       " tokens; leave that length out, or give --global-batch",
                       task->batch_tokens, tokens);
    }
    train->global_batch_seqs = task->batch_tokens / tokens;
    return ND_OK;
}

nd_status nd_sweep_inputs(const nd_task *task, nd_sweep_quantity quantity, double value, nd_cluster_spec *cluster,
                          nd_train_spec *train, nd_error *err)
{
    const nd_cluster_spec *base = task->context->cluster;
    int64_t whole = llround(value);
    *cluster = *base;
    *train = *task->context->train;
    switch (quantity) {
    case ND_SWEEP_GPUS:
        return nd_cluster_resize_gpus(base, whole, cluster, err);
    case ND_SWEEP_SEQ_LEN:
        ND_TRY(set_seq_len(task, whole, train, err));
        break;
    case ND_SWEEP_GLOBAL_BATCH:
        train->global_batch_seqs = whole;
        break;
    case ND_SWEEP_NIC:
        return nd_cluster_with_nics(base, value, cluster, err);
    case ND_SWEEP_NVLINK_DOMAIN:
        return nd_cluster_with_link_domain(base, whole, cluster, err);
    case ND_SWEEP_QUANTITY_COUNT:
        break;
    }
    return nd_train_spec_check(train, err);
}

/* In which keys `now` differs from `before`; empty when only in what follows the quantity by itself. */
static void note_changes(nd_sweep_quantity quantity, const nd_layout *before, const nd_layout *now, nd_sweep_point *out)
{
    nd_layout follows = *before;
    follows.grad_accum = now->grad_accum;
    nd_layout alike = follows;
    if (quantity == ND_SWEEP_GPUS) {
        alike.size[ND_AXIS_DP_SHARD] = now->size[ND_AXIS_DP_SHARD];
        alike.size[ND_AXIS_DP_REPLICATE] = now->size[ND_AXIS_DP_REPLICATE];
    }
    nd_fix_layout_keys(&alike, now, out->changes);
    out->changed = out->changes[0] != '\0';
    if (out->changed) {
        nd_fix_layout_keys(&follows, now, out->changes);
    }
}

static nd_status add_needs(const nd_task *task, nd_sweep_point *out, nd_error *err)
{
    nd_cost_context context;
    ND_TRY(nd_point_context(task, &out->point, &context, err));
    out->needs_count = nd_bandwidth_needs(&context, &out->point.best.layout, out->needs);
    return ND_OK;
}

/* Pins that contradict each other or every value are an error of the user, not a finding. */
static nd_status check_pins(const nd_sweep_point *points, int32_t count, nd_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        if (!points[i].point.contradictory) {
            return ND_OK;
        }
    }
    return nd_fail(err, ND_EINVAL, "%s", points[0].point.reason);
}

nd_status nd_sweep_run(const nd_task *task, nd_sweep_quantity quantity, const double *values, int32_t count,
                       nd_sweep_point *out, nd_error *err)
{
    const nd_sweep_point *first = NULL;
    const nd_sweep_point *before = NULL;
    uint32_t pinned = task->whole_layout ? task->pinned & ~nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM) : task->pinned;
    if (quantity == ND_SWEEP_GPUS) {
        pinned = nd_task_pinned_at_any_gpus(task);
    }
    for (int32_t i = 0; i < count; i++) {
        nd_cluster_spec cluster;
        nd_train_spec train;
        ND_TRY(nd_sweep_inputs(task, quantity, values[i], &cluster, &train, err));
    }
    for (int32_t i = 0; i < count; i++) {
        nd_sweep_point *now = &out[i];
        nd_cluster_spec cluster;
        nd_train_spec train;
        memset(now, 0, sizeof *now);
        now->value = values[i];
        ND_TRY(nd_sweep_inputs(task, quantity, values[i], &cluster, &train, err));
        ND_TRY(nd_point_search(task, llround(values[i]), &cluster, &train, pinned, &task->pin, &now->point, err));
        if (!now->point.fits) {
            continue;
        }
        first = first != NULL ? first : now;
        if (before != NULL) {
            note_changes(quantity, &before->point.best.layout, &now->point.best.layout, now);
        }
        now->efficiency_frac =
            now->point.best.estimate.tokens_per_s_per_gpu / first->point.best.estimate.tokens_per_s_per_gpu;
        ND_TRY(add_needs(task, now, err));
        before = now;
    }
    return check_pins(out, count, err);
}
