#include "planner/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/pareto.h"

enum { EVERY_NODE_COUNT_TO = 8 };

/* What is left out of a bound, in rounding and in parts of the model too small to count. */
static const double bound_slack = 0.999;

typedef struct scale_search {
    const nd_cost_context *whole;
    const nd_framework *framework;
    const nd_scale_options *options;
    nd_cluster_spec cluster; /* of the size in work */
    nd_cost_context context; /* on that cluster */
    nd_plan *pool;           /* candidates of all sizes so far */
    int32_t pool_count, pool_capacity;
    nd_scale_list out;
    int32_t searches;
    bool is_followed; /* a larger size will surely be searched: only that one's rejections are told */
    bool done;
} scale_search;

/* 1, 2, ..., 8, then 12, 16, 24, 32, ...: never more than half again. */
static int64_t next_nodes(int64_t nodes)
{
    if (nodes < EVERY_NODE_COUNT_TO) {
        return nodes + 1;
    }
    bool power_of_two = (nodes & (nodes - 1)) == 0;
    return power_of_two ? nodes / 2 * 3 : nodes / 3 * 4;
}

int32_t nd_scale_sizes(const nd_cluster_spec *cluster, bool whole_nodes, int64_t out[ND_SCALE_SIZES_MAX])
{
    int32_t count = 0;
    for (int64_t gpus = 1; !whole_nodes && gpus < cluster->gpus_per_node; gpus *= 2) {
        out[count++] = gpus;
    }
    for (int64_t nodes = 1; nodes < cluster->nodes; nodes = next_nodes(nodes)) {
        out[count++] = nodes * cluster->gpus_per_node;
    }
    out[count++] = cluster->gpus;
    return count;
}

nd_status nd_scale_cluster(const nd_cluster_spec *cluster, int64_t gpus, nd_cluster_spec *out, nd_error *err)
{
    if (gpus < cluster->gpus_per_node) {
        return nd_cluster_part_of_node(cluster, gpus, out, err);
    }
    return nd_cluster_resize(cluster, gpus / cluster->gpus_per_node, out, err);
}

int64_t nd_scale_least_gpus(const nd_cost_context *context, const nd_search_options *options)
{
    bool offload = (options->pinned >> ND_LAYOUT_KEY_OFFLOAD & 1u) != 0 && options->pin.offload != ND_OFFLOAD_NONE;
    if (offload || options->include_unfit || context->train->lora_rank > 0) {
        return 1;
    }
    /* a layout is refused when even the low end of its peak is above the capacity */
    double least_bytes = bound_slack * context->calibration->memory_low_frac * nd_saved_bytes(context);
    double gpus = ceil(least_bytes / (double)context->cluster->gpu.memory_bytes);
    return gpus > 1.0 ? (int64_t)gpus : 1;
}

double nd_scale_least_usd_per_million_tokens(const nd_cost_context *context, const nd_run_spec *run, int64_t gpus)
{
    double peak = context->cluster->gpu.peak_flops_per_s[context->train->precision];
    double flops = fmin(context->flops_per_token, context->flops_per_token_causal);
    double nodes = ceil((double)gpus / (double)context->cluster->gpus_per_node);
    double storage =
        run->storage_bytes_per_s > 0.0 ? run->storage_bytes_per_s : nodes * run->storage_per_node_bytes_per_s;
    double stored_s = nd_saved_bytes(context) / storage;
    double failures_per_s = run->failures_per_gpu_hour * (double)gpus / 3600.0;
    nd_failure_costs costs = {.mtbf_s = failures_per_s > 0.0 ? 1.0 / failures_per_s : HUGE_VAL,
                              .blocking_s = stored_s,
                              .restart_s = run->restart_s + stored_s};
    double interval_s = run->checkpoint_interval_s > 0.0 ? run->checkpoint_interval_s : nd_best_interval_s(&costs, 0.0);
    double gpu_s_per_token = flops / peak / nd_goodput_frac(&costs, interval_s);
    return bound_slack * run->price_usd_per_gpu_hour / 3600.0 * gpu_s_per_token * 1e6;
}

static double usd_of(const scale_search *s, const nd_plan *plan)
{
    nd_run_cost cost;
    nd_run_cost_of(s->whole, &plan->layout, &plan->estimate, s->options->run, &cost);
    return cost.usd_per_million_tokens;
}

static nd_status keep(scale_search *s, const nd_plan *plans, int32_t count, nd_error *err)
{
    if (s->pool_count + count > s->pool_capacity) {
        int32_t capacity = 2 * (s->pool_count + count);
        nd_plan *pool = realloc(s->pool, (size_t)capacity * sizeof *pool);
        if (pool == NULL) {
            return nd_fail(err, ND_ENOMEM, "out of memory for %d plans", (int)capacity);
        }
        s->pool = pool;
        s->pool_capacity = capacity;
    }
    if (count > 0) {
        memcpy(s->pool + s->pool_count, plans, (size_t)count * sizeof *plans);
    }
    s->pool_count += count;
    return ND_OK;
}

static bool surely_fits(const nd_plan *plan)
{
    return plan->estimate.memory.verdict == ND_VERDICT_FITS;
}

/* The first that surely fits, else the first. */
static const nd_plan *first_sure(const nd_plan_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (surely_fits(&list->plans[i])) {
            return &list->plans[i];
        }
    }
    return list->plans;
}

/* One layout of each size: with one price an hour, its fastest is its cheapest. */
static nd_status take_fastest(scale_search *s, const nd_plan_list *list, nd_error *err)
{
    return list->count > 0 ? keep(s, first_sure(list), 1, err) : ND_OK;
}

/* What surely fits first, in its order; the search has put what will rather not fit last. */
static nd_status take_smallest(scale_search *s, const nd_plan_list *list, nd_error *err)
{
    if (list->count == 0 || !surely_fits(first_sure(list))) {
        bool may_fit = list->count > 0 && list->plans[0].estimate.memory.verdict == ND_VERDICT_BORDERLINE;
        return may_fit && s->pool_count == 0 ? keep(s, list->plans, 1, err) : ND_OK;
    }
    nd_plan below = {0};
    bool has_below = s->pool_count > 0;
    if (has_below) {
        below = s->pool[0];
    }
    s->pool_count = 0;
    s->done = true;
    ND_TRY(keep(s, first_sure(list), 1, err));
    if (has_below) {
        ND_TRY(keep(s, &below, 1, err));
    }
    const nd_plan *answer = first_sure(list);
    for (int32_t i = 0; i < list->count; i++) {
        if (&list->plans[i] != answer) {
            ND_TRY(keep(s, &list->plans[i], 1, err));
        }
    }
    return ND_OK;
}

static nd_status take(scale_search *s, const nd_plan_list *list, nd_error *err)
{
    switch (s->options->goal) {
    case ND_SCALE_COST:
        return take_fastest(s, list, err);
    case ND_SCALE_GPUS:
        return take_smallest(s, list, err);
    case ND_SCALE_PARETO:
        break;
    }
    return keep(s, list->plans, list->count, err);
}

/* Sums of the counts; words and the closest layout are those of this search, the largest so far. A second search of the
 * same size sees the same layouts again. */
static void add_counts(nd_plan_list *sum, const nd_plan_list *list, bool again)
{
    sum->evaluated += list->evaluated;
    sum->elapsed_s += list->elapsed_s;
    if (again) {
        return;
    }
    sum->searched += list->searched;
    sum->interrupted = sum->interrupted || list->interrupted;
    sum->fitting += list->fitting;
    memcpy(sum->rejections, list->rejections, sizeof sum->rejections);
    sum->rejections_count = list->rejections_count;
    sum->closest = list->closest;
    sum->has_closest = sum->fitting == 0 && list->has_closest;
}

static nd_status search_once(scale_search *s, nd_objective objective, int32_t top, nd_scale_size *size, nd_error *err)
{
    nd_search_options search = s->options->search;
    nd_plan_list list;
    search.objective = objective;
    search.top = top;
    search.front = s->options->goal == ND_SCALE_PARETO;
    search.plans_only = !search.front && (size->searched || s->is_followed);
    ND_TRY(nd_search(&s->context, s->framework, &search, &list, err));
    nd_status status = take(s, &list, err);
    add_counts(&s->out.plans, &list, size->searched);
    s->searches++;
    size->searched = true;
    size->fitting = list.fitting;
    nd_plan_list_free(&list);
    return status;
}

static nd_status search_size(scale_search *s, nd_scale_size *size, nd_error *err)
{
    int32_t top = s->options->search.top;
    ND_TRY(nd_scale_cluster(s->whole->cluster, size->gpus, &s->cluster, err));
    s->context = *s->whole;
    s->context.cluster = &s->cluster;
    switch (s->options->goal) {
    case ND_SCALE_COST:
        return search_once(s, ND_OBJECTIVE_THROUGHPUT, 2, size, err); /* a list of two holds what surely fits */
    case ND_SCALE_GPUS:
        return search_once(s, ND_OBJECTIVE_THROUGHPUT, top > 2 ? top : 2, size, err);
    case ND_SCALE_PARETO:
        break;
    }
    return search_once(s, ND_OBJECTIVE_THROUGHPUT, top, size, err);
}

/* Enough plans are cheaper than anything of this size can be. */
static bool too_dear(const scale_search *s, int64_t gpus)
{
    if (s->options->goal != ND_SCALE_COST || s->pool_count < s->options->search.top) {
        return false;
    }
    int32_t cheaper = 0;
    double least_usd = nd_scale_least_usd_per_million_tokens(s->whole, s->options->run, gpus);
    for (int32_t i = 0; i < s->pool_count; i++) {
        cheaper += surely_fits(&s->pool[i]) && usd_of(s, &s->pool[i]) < least_usd;
    }
    return cheaper >= s->options->search.top;
}

/* Whether the last of `more` sizes after this one will surely be searched: pins admit it, the goal is not reached
 * before, and the list is not full before, so that nothing is too dear. */
static bool is_followed(const scale_search *s, int32_t more)
{
    const nd_scale_options *options = s->options;
    bool never_full = options->goal == ND_SCALE_PARETO || s->pool_count + more < options->search.top;
    return more > 0 && options->goal != ND_SCALE_GPUS && never_full && options->search.pinned == 0 &&
           options->search.limited == 0;
}

static bool is_better(const scale_search *s, const nd_plan *a, const nd_plan *b)
{
    if (surely_fits(a) != surely_fits(b)) {
        return surely_fits(a);
    }
    return usd_of(s, a) < usd_of(s, b);
}

/* By insertion: there are few entries, one of each size. */
static void sort_by_cost(scale_search *s)
{
    for (int32_t i = 1; i < s->pool_count; i++) {
        nd_plan plan = s->pool[i];
        int32_t at = i;
        for (; at > 0 && is_better(s, &plan, &s->pool[at - 1]); at--) {
            s->pool[at] = s->pool[at - 1];
        }
        s->pool[at] = plan;
    }
}

static nd_status finish(scale_search *s, nd_error *err)
{
    int32_t top = s->options->search.top;
    if (s->options->goal == ND_SCALE_COST) {
        sort_by_cost(s);
    } else if (s->options->goal == ND_SCALE_PARETO) {
        ND_TRY(nd_pareto_front(s->pool, &s->pool_count, top, &s->out.coarseness_frac, err));
    }
    s->out.plans.plans = s->pool;
    s->out.plans.count = s->pool_count < top ? s->pool_count : top;
    s->pool = NULL;
    return ND_OK;
}

/* All sizes in order; the whole cluster also when a bound is against it and nothing else was searched: somebody must
 * say what comes nearest. A size that the user's pins do not allow is no failure unless all are. */
static nd_status search_all(scale_search *s, nd_error *err)
{
    nd_error why;
    nd_status failure = ND_OK;
    int64_t sizes[ND_SCALE_SIZES_MAX];
    bool rented_whole = s->options->goal == ND_SCALE_COST && s->whole->cluster->base_name[0] != '\0';
    int32_t count = nd_scale_sizes(s->whole->cluster, rented_whole, sizes);
    int64_t least = nd_scale_least_gpus(s->whole, &s->options->search);
    for (int32_t i = 0; i < count && !s->done && !s->out.plans.interrupted; i++) {
        nd_scale_size *size = &s->out.sizes[s->out.sizes_count++];
        *size = (nd_scale_size){.gpus = sizes[i]};
        bool last_chance = i == count - 1 && s->searches == 0;
        if (!last_chance && (sizes[i] < least || too_dear(s, sizes[i]))) {
            continue;
        }
        s->is_followed = is_followed(s, count - 1 - i);
        nd_status status = search_size(s, size, &why);
        if (status == ND_EINVAL) {
            failure = status;
        } else if (status != ND_OK) {
            return nd_fail(err, status, "%s", why.message);
        }
    }
    return s->searches == 0 ? nd_fail(err, failure, "%s", why.message) : ND_OK;
}

nd_status nd_scale_search(const nd_cost_context *context, const nd_framework *framework,
                          const nd_scale_options *options, nd_scale_list *out, nd_error *err)
{
    scale_search *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a search over sizes");
    }
    s->whole = context;
    s->framework = framework;
    s->options = options;
    nd_status status = search_all(s, err);
    if (status == ND_OK) {
        status = finish(s, err);
    }
    if (status == ND_OK) {
        *out = s->out;
    }
    free(s->pool);
    free(s);
    return status;
}
