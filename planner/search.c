#include "planner/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/units.h"
#include "cost_model/price.h"
#include "cost_model/time.h"
#include "planner/constraints_internal.h"
#include "planner/ranking_internal.h"
#include "planner/rejections_internal.h"
#include "planner/search_space_internal.h"

static const char memory_rule[] = "memory";
/* The same sum in another order may differ in its last digits. */
static const double rounding_slack = 1.0 - 1e-9;

/* One search. The loops run from what prices depend on (tp, cp, ep and their modes, micro-batch, recompute) to what
 * they do not (pp, data parallelism, sharding), so that prices are computed once per outer combination. */
typedef struct walk {
    const nd_cost_context *context;
    const nd_framework *framework;
    const nd_search_options *options;
    nd_search_space space;
    nd_layout layout;
    nd_block_prices prices;
    bool priced;        /* prices are those of the current outer combination */
    double work_s;      /* their least seconds of one micro-batch over all stages together */
    const char *broken; /* rule that everything at this loop level breaks, or NULL */
    nd_ranking meshes, all;
    nd_ranked safe; /* the best layout that surely fits */
    bool has_safe;
    nd_rejections rejections;
    int64_t searched, evaluated, fitting, unfit;
    nd_layout closest; /* of all legal layouts, the one of least peak memory */
    double closest_peak_bytes;
} walk;

nd_search_options nd_search_options_default(void)
{
    nd_search_options options;
    memset(&options, 0, sizeof options);
    options.top = 10;
    options.pin = nd_layout_single();
    options.max = nd_layout_single();
    return options;
}

/* The message is that of the first layout that breaks the rule; it is written once. */
static void reject(walk *w, const char *rule)
{
    bool is_new = false;
    nd_rejection *entry = nd_rejections_entry(&w->rejections, rule, &is_new);
    entry->count++;
    if (is_new) {
        nd_refusal refusal;
        memset(&refusal, 0, sizeof refusal);
        (void)nd_layout_allowed(w->context, w->framework, &w->layout, NULL, &refusal);
        memcpy(entry->message, refusal.message, sizeof entry->message);
        memcpy(entry->nearest, refusal.nearest, sizeof entry->nearest);
    }
}

static double both_passes_s(const nd_part_price *price)
{
    return nd_part_pass_s(price, ND_PASS_FORWARD) + nd_part_pass_s(price, ND_PASS_BACKWARD);
}

/* Forward and backward of one micro-batch through the whole model; what else a step costs only adds to it. */
static double least_work_s(const nd_model_spec *model, const nd_layout *layout, const nd_block_prices *prices)
{
    double work_s = both_passes_s(&prices->embedding) + both_passes_s(&prices->head);
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        double layer_s = both_passes_s(&prices->layer[kind]);
        if (layout->recompute == ND_RECOMPUTE_FULL) {
            layer_s += nd_part_pass_s(&prices->layer[kind], ND_PASS_RECOMPUTE);
        }
        work_s += (double)model->layer_kinds[kind].layers * layer_s;
    }
    return work_s;
}

static void price(walk *w)
{
    if (!w->priced) {
        nd_price_blocks(w->context, &w->layout, &w->prices);
        w->work_s = least_work_s(w->context->model, &w->layout, &w->prices);
        w->priced = true;
    }
}

/* The busiest of pp stages does at least its share of every micro-batch. */
static double least_step_s(const walk *w)
{
    double share_s = w->work_s / (double)w->layout.size[ND_AXIS_PP];
    return rounding_slack * (double)w->layout.grad_accum * share_s;
}

/* Least memory; among equals within 2 % the layout that uses fewer axes, since every axis looks like advice. */
static void note_closest(walk *w, double peak_bytes)
{
    int simpler = nd_axes_in_use(&w->closest) - nd_axes_in_use(&w->layout);
    bool first = w->fitting + w->unfit == 0;
    if (first || peak_bytes < 0.98 * w->closest_peak_bytes ||
        (simpler >= 0 && peak_bytes < (simpler > 0 ? 1.02 : 1.0) * w->closest_peak_bytes)) {
        w->closest_peak_bytes = peak_bytes;
        w->closest = w->layout;
    }
}

static bool is_safest(const walk *w, const nd_ranked *ranked)
{
    return ranked->verdict == ND_VERDICT_FITS &&
           (!w->has_safe || nd_ranked_compare(w->options->objective, ranked, &w->safe) < 0);
}

/* A legal layout: memory first; time only when it fits (or is wanted all the same) and could be among the best. */
static void consider(walk *w)
{
    nd_memory_breakdown memory;
    nd_time_breakdown time;
    price(w);
    nd_estimate_memory(w->context, &w->layout, &w->prices, &memory);
    note_closest(w, memory.peak_bytes);
    bool unfit = memory.verdict == ND_VERDICT_NO;
    w->unfit += unfit;
    w->fitting += !unfit;
    if (unfit && !w->options->include_unfit) {
        return;
    }
    nd_ranked ranked = {w->layout, least_step_s(w), memory.peak_bytes, memory.capacity_bytes, memory.verdict};
    if (!nd_ranking_would_take(&w->meshes, &ranked) && !nd_ranking_would_take(&w->all, &ranked) &&
        !is_safest(w, &ranked)) {
        return;
    }
    nd_estimate_time(w->context, &w->layout, &w->prices, &time);
    w->evaluated++;
    ranked.step_s = time.step_s;
    nd_ranking_add(&w->meshes, &ranked);
    nd_ranking_add(&w->all, &ranked);
    if (is_safest(w, &ranked)) {
        w->safe = ranked;
        w->has_safe = true;
    }
}

/* One complete layout. */
static void visit(walk *w)
{
    const char *rule = w->broken;
    w->searched++;
    if (rule == NULL && nd_rules_data(w->context, &w->layout, &rule, NULL) &&
        (w->framework == NULL || w->framework->allows(w->context->model, &w->layout, w->context->train, &rule, NULL))) {
        consider(w);
    } else {
        reject(w, rule);
    }
}

/* dp_replicate, dp_shard, sharding: `ranks` are left for data parallelism. */
static void walk_data(walk *w, int32_t micro_batch_index, int32_t ranks)
{
    const nd_search_space *space = &w->space;
    int32_t cp = w->layout.size[ND_AXIS_CP];
    int64_t inner = (int64_t)cp * w->layout.size[ND_AXIS_TP];
    if (!nd_space_has_micro_batch(space, micro_batch_index, ranks, &w->layout.grad_accum)) {
        return;
    }
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t shard = space->divisors[i];
        bool cuts = ranks % shard == 0 && inner * shard % w->layout.ep == 0;
        if (!cuts || !nd_space_has_degree(space, ND_LAYOUT_KEY_DP_SHARD, shard) ||
            !nd_space_has_degree(space, ND_LAYOUT_KEY_DP_REPLICATE, ranks / shard)) {
            continue;
        }
        w->layout.size[ND_AXIS_DP_SHARD] = shard;
        w->layout.size[ND_AXIS_DP_REPLICATE] = ranks / shard;
        nd_sharding shardings[ND_SHARDING_COUNT];
        int32_t count = nd_space_shardings(space, shard, cp, shardings);
        for (int32_t s = 0; s < count; s++) {
            w->layout.sharding = shardings[s];
            visit(w);
        }
    }
}

/* vpp and schedule of one pp. */
static void walk_schedules(walk *w, int32_t micro_batch_index, int32_t data_ranks)
{
    int32_t chunks[ND_VPP_CAP];
    int32_t pp = w->layout.size[ND_AXIS_PP];
    int32_t chunks_count = nd_space_chunks(&w->space, pp, chunks);
    const char *above = w->broken;
    for (int32_t i = 0; i < chunks_count; i++) {
        nd_schedule schedules[ND_SCHEDULE_COUNT];
        int32_t count = nd_space_schedules(&w->space, pp, chunks[i], schedules);
        for (int32_t s = 0; s < count; s++) {
            w->layout.vpp = chunks[i];
            w->layout.schedule = schedules[s];
            if (above == NULL) {
                (void)nd_rules_pipeline(w->context, &w->layout, &w->broken, NULL);
            }
            walk_data(w, micro_batch_index, data_ranks);
            w->broken = above;
        }
    }
}

/* pp and everything inside it: `ranks` are left after tp and cp. */
static void walk_pipelines(walk *w, int32_t micro_batch_index, int32_t ranks)
{
    const nd_search_space *space = &w->space;
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t pp = space->divisors[i];
        if (ranks % pp == 0 && nd_space_has_degree(space, ND_LAYOUT_KEY_PP, pp)) {
            w->layout.size[ND_AXIS_PP] = pp;
            walk_schedules(w, micro_batch_index, ranks / pp);
        }
    }
}

/* Micro-batch and recompute: the last that prices depend on. */
static void walk_micro_batches(walk *w, int32_t ranks)
{
    const nd_search_space *space = &w->space;
    const char *above = w->broken;
    for (int32_t i = 0; i < space->micro_batches_count; i++) {
        for (int32_t r = 0; r < space->recomputes_count; r++) {
            w->layout.micro_batch = space->micro_batches[i];
            w->layout.recompute = space->recomputes[r].mode;
            w->layout.recompute_every = space->recomputes[r].every;
            w->priced = false;
            if (above == NULL) {
                (void)nd_rules_memory_modes(w->context, &w->layout, &w->broken, NULL);
            }
            walk_pipelines(w, i, ranks);
            w->broken = above;
        }
    }
}

/* ep and the modes of tp and cp. */
static void walk_blocks(walk *w, int32_t ranks)
{
    const nd_search_space *space = &w->space;
    nd_cp_method methods[ND_CP_METHOD_COUNT];
    bool sequence_parallel[2];
    int32_t degrees[ND_DIVISORS_MAX];
    int32_t methods_count = nd_space_cp_methods(space, w->layout.size[ND_AXIS_CP], methods);
    int32_t sp_count = nd_space_sequence_parallel(space, w->layout.size[ND_AXIS_TP], sequence_parallel);
    int32_t degrees_count = nd_space_expert_degrees(space, degrees);
    for (int32_t m = 0; m < methods_count; m++) {
        for (int32_t s = 0; s < sp_count; s++) {
            for (int32_t e = 0; e < degrees_count; e++) {
                w->layout.cp_method = methods[m];
                w->layout.sequence_parallel = sequence_parallel[s];
                w->layout.ep = degrees[e];
                w->broken = NULL;
                (void)nd_rules_block(w->context, &w->layout, &w->broken, NULL);
                walk_micro_batches(w, ranks);
            }
        }
    }
}

static void walk_all(walk *w)
{
    const nd_search_space *space = &w->space;
    int32_t gpus = (int32_t)w->context->cluster->gpus;
    for (int32_t t = 0; t < space->divisors_count; t++) {
        int32_t tp = space->divisors[t];
        if (!nd_space_has_degree(space, ND_LAYOUT_KEY_TP, tp)) {
            continue;
        }
        for (int32_t c = 0; c < space->divisors_count; c++) {
            int32_t cp = space->divisors[c];
            if (gpus / tp % cp == 0 && nd_space_has_degree(space, ND_LAYOUT_KEY_CP, cp)) {
                w->layout.size[ND_AXIS_TP] = tp;
                w->layout.size[ND_AXIS_CP] = cp;
                walk_blocks(w, gpus / tp / cp);
            }
        }
    }
}

/* What did not fit counts as one more rejection; its words are those of the layout that comes nearest. */
static void reject_unfit(walk *w, const nd_memory_breakdown *closest)
{
    bool is_new = false;
    if (w->unfit == 0) {
        return;
    }
    nd_rejection *entry = nd_rejections_entry(&w->rejections, memory_rule, &is_new);
    entry->count += w->unfit;
    if (w->fitting > 0) {
        (void)snprintf(entry->message, sizeof entry->message,
                       "needs more than the %.1f GiB of a GPU, even at the low end of its interval",
                       closest->capacity_bytes / ND_GIB);
        return;
    }
    (void)snprintf(entry->message, sizeof entry->message,
                   "needs more than the %.1f GiB of a GPU: even the smallest legal layout needs %.1f GiB (%.1f to "
                   "%.1f) in the %s phase",
                   closest->capacity_bytes / ND_GIB, closest->peak_bytes / ND_GIB, closest->peak_low_bytes / ND_GIB,
                   closest->peak_high_bytes / ND_GIB, nd_phase_name(closest->phase));
    if (nd_layout_format(&w->closest, entry->nearest, sizeof entry->nearest) >= sizeof entry->nearest) {
        *strrchr(entry->nearest, ',') = '\0'; /* no half a key at the end */
    }
}

/* Estimates are computed again for the few plans that are returned: the walk keeps only what it ranks by. */
static int32_t collect_plans(walk *w, nd_ranked *chosen, nd_plan *plans)
{
    int32_t count = nd_ranking_choose(&w->meshes, &w->all, w->has_safe ? &w->safe : NULL, w->options->top, chosen);
    for (int32_t i = 0; i < count; i++) {
        plans[i].layout = chosen[i].layout;
        nd_estimate_layout(w->context, &chosen[i].layout, &plans[i].estimate);
    }
    return count;
}

static void fill_list(walk *w, nd_ranked *chosen, nd_plan_list *list)
{
    list->count = collect_plans(w, chosen, list->plans);
    list->searched = w->searched;
    list->evaluated = w->evaluated;
    list->fitting = w->fitting;
    if (w->fitting + w->unfit > 0) {
        list->closest.layout = w->closest;
        nd_estimate_layout(w->context, &w->closest, &list->closest.estimate);
        reject_unfit(w, &list->closest.estimate.memory);
    }
    list->has_closest = w->fitting == 0 && w->unfit > 0;
    nd_rejections_sort(&w->rejections);
    memcpy(list->rejections, w->rejections.entries, sizeof list->rejections);
    list->rejections_count = w->rejections.count;
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void start_walk(walk *w, nd_ranked *entries)
{
    const nd_search_options *options = w->options;
    int32_t top = options->top;
    nd_search_space_init(w->context, options, &w->space);
    w->layout = nd_layout_single();
    if ((options->pinned >> ND_LAYOUT_KEY_OFFLOAD & 1u) != 0) {
        w->layout.offload = options->pin.offload; /* never searched: it trades time for memory on the user's word */
    }
    w->meshes = (nd_ranking){options->objective, ND_RANKING_MESH_AND_VERDICT, entries, 3 * top, 0};
    w->all = (nd_ranking){options->objective, ND_RANKING_EVERY_LAYOUT, entries + (size_t)3 * (size_t)top, top, 0};
}

nd_status nd_search(const nd_cost_context *context, const nd_framework *framework, const nd_search_options *options,
                    nd_plan_list *out, nd_error *err)
{
    double start_s = seconds_now();
    nd_status status = ND_OK;
    ND_TRY(nd_search_options_check(context, options, err));
    size_t top = (size_t)options->top;
    walk *w = calloc(1, sizeof *w);
    nd_ranked *entries = calloc(5 * top, sizeof *entries); /* meshes (3 verdicts each), all, chosen */
    nd_plan_list *list = calloc(1, sizeof *list);
    nd_plan *plans = calloc(top, sizeof *plans);
    if (w == NULL || entries == NULL || list == NULL || plans == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a list of %" PRId32 " plans", options->top);
        goto cleanup;
    }
    w->context = context;
    w->framework = framework;
    w->options = options;
    start_walk(w, entries);
    walk_all(w);
    if (w->searched == 0) {
        char keys[256];
        nd_search_options_text(options, keys, sizeof keys);
        status = nd_fail(err, ND_EINVAL, "no mesh of %" PRId64 " GPUs has %s; free or raise one of these",
                         context->cluster->gpus, keys);
        goto cleanup;
    }
    list->plans = plans;
    fill_list(w, entries + 4 * top, list);
    list->elapsed_s = seconds_now() - start_s;
    *out = *list;
    plans = NULL;
cleanup:
    free(plans);
    free(list);
    free(entries);
    free(w);
    return status;
}
