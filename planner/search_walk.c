/* The inner loops of a search: recompute, pp with its chunks and schedule, data parallelism and sharding. */
#include <math.h>

#include "cost_model/floors.h"
#include "planner/constraints_internal.h"
#include "planner/search_internal.h"

const char nd_rule_memory[] = "memory";
const char nd_rule_slower[] = "slower";
const char nd_rule_same_split[] = "same-split";

/* One unit being walked. */
typedef struct walk {
    const nd_search_scene *scene;
    const nd_search_unit *unit;
    nd_board *board;
    nd_layout layout;
    nd_block_prices prices;
    double work_s;  /* least seconds of one micro-batch through all stages */
    nd_bound bound; /* of the branch at hand */
    /* of the pipeline at hand, whatever its data parallelism */
    nd_stage_split split;
    bool divided;             /* `split` is that of the current recompute, pp, vpp and split: schedules share it */
    bool repeats;             /* it is that of split=even */
    nd_pipeline pipelines[2]; /* [nd_stage_accumulates()] */
    bool piped[2];
} walk;

/* Rejects everything below the pipeline of the layout; the first such layout stands for all. */
static void reject_pipeline(walk *w, const char *rule)
{
    nd_layout first = w->layout;
    int64_t count = nd_count_below_pipeline(&w->scene->space, w->layout, &first);
    if (count > 0) {
        nd_rejections_count(&w->board->rejections, rule, count, w->unit->order, &first);
    }
}

static bool is_closed(const walk *w)
{
    return !w->scene->options->exhaustive &&
           (nd_board_is_closed(w->scene->known, &w->bound) || nd_board_is_closed(w->board, &w->bound));
}

static bool nothing_fits_yet(const walk *w)
{
    return w->scene->known->fitting == 0 && w->board->fitting == 0;
}

/* Something surely fits, and nothing else was asked. */
static bool is_answered(const walk *w)
{
    return w->scene->options->until_sure && w->board->has_safe;
}

static const nd_pipeline *pipeline_of(walk *w)
{
    bool accumulates = nd_stage_accumulates(w->scene->context, &w->layout);
    if (!w->piped[accumulates]) {
        nd_price_pipeline_split(w->scene->context, &w->layout, &w->prices, &w->split, &w->pipelines[accumulates]);
        w->piped[accumulates] = true;
    }
    return &w->pipelines[accumulates];
}

/* A legal layout: memory first; time only when it fits (or is wanted all the same) and could be among the best. */
static void consider(walk *w)
{
    const nd_cost_context *context = w->scene->context;
    nd_memory_breakdown memory;
    nd_time_breakdown time;
    nd_estimate_memory_split(context, &w->layout, &w->prices, &w->split, &memory);
    nd_ranked ranked = {w->layout, w->bound.step_s, memory.peak_bytes, memory.capacity_bytes, memory.verdict};
    bool unfit = memory.verdict == ND_VERDICT_NO;
    if (nothing_fits_yet(w)) {
        nd_board_note_memory(w->board, &ranked);
    }
    w->board->unfit += unfit;
    w->board->fitting += !unfit;
    if (unfit && !w->scene->options->include_unfit) {
        return;
    }
    if (!nd_board_would_take(w->scene->known, &ranked) || !nd_board_would_take(w->board, &ranked)) {
        return;
    }
    nd_estimate_time_piped(context, &w->layout, &w->prices, pipeline_of(w), &time);
    w->board->evaluated++;
    ranked.step_s = time.step_s;
    nd_board_add(w->board, &ranked);
}

/* One complete layout. */
static void visit(walk *w)
{
    const nd_search_scene *scene = w->scene;
    const char *rule = NULL;
    if (nd_rules_data(scene->context, &w->layout, &rule, NULL) &&
        (scene->framework == NULL ||
         scene->framework->allows(scene->context->model, &w->layout, scene->context->train, &rule, NULL))) {
        consider(w);
    } else {
        nd_rejections_count(&w->board->rejections, rule, 1, w->unit->order, &w->layout);
    }
}

/* dp_replicate, dp_shard, sharding: `ranks` are left for data parallelism. */
static void walk_data(walk *w, int32_t ranks)
{
    const nd_search_space *space = &w->scene->space;
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t shard = space->divisors[i];
        if (!nd_space_has_data_split(space, &w->layout, ranks, shard)) {
            continue;
        }
        nd_sharding shardings[ND_SHARDING_COUNT];
        int32_t count = nd_space_shardings(space, shard, w->layout.size[ND_AXIS_CP], shardings);
        w->layout.size[ND_AXIS_DP_SHARD] = shard;
        w->layout.size[ND_AXIS_DP_REPLICATE] = ranks / shard;
        for (int32_t s = 0; s < count; s++) {
            w->layout.sharding = shardings[s];
            visit(w);
        }
    }
}

/* The step of this pipeline whatever its data parallelism: sharding decides whether gradients accumulate in a pass of
 * their own. */
static double pipeline_floor_s(walk *w)
{
    const nd_cost_context *context = w->scene->context;
    w->layout.sharding = ND_SHARDING_ZERO3;
    double whole_s = nd_pipeline_floor_s(context, &w->layout, pipeline_of(w));
    w->layout.sharding = ND_SHARDING_NONE;
    return fmin(whole_s, nd_pipeline_floor_s(context, &w->layout, pipeline_of(w)));
}

static void take_memory(walk *w, nd_memory_floor floor)
{
    w->bound.peak_bytes = floor.peak_bytes;
    w->bound.peak_low_bytes = floor.peak_low_bytes;
    w->bound.peak_high_bytes = floor.peak_high_bytes;
}

/* Where nothing fits, a legal layout is known that can stand for the closest. */
static bool knows_any_closest(const walk *w)
{
    return w->scene->options->any_closest &&
           (nd_board_closest(w->scene->known) != NULL || nd_board_closest(w->board) != NULL);
}

/* Nothing below fits, and it does not matter by how much; or nothing is expected to, and it is known that something
 * may. */
static bool is_too_large(const walk *w)
{
    const nd_search_options *options = w->scene->options;
    if (options->include_unfit || options->exhaustive) {
        return false;
    }
    if (options->until_sure && !nothing_fits_yet(w) && w->bound.peak_bytes > w->bound.capacity_bytes) {
        return true;
    }
    return w->bound.peak_low_bytes > w->bound.capacity_bytes &&
           (!nothing_fits_yet(w) || knows_any_closest(w) ||
            (!nd_board_may_be_closest(w->scene->known, w->bound.peak_bytes) ||
             !nd_board_may_be_closest(w->board, w->bound.peak_bytes)));
}

/* The same whatever the layers of its stages are, so that they need not be divided. */
static bool is_too_large_anyhow(walk *w, int32_t data_ranks)
{
    if (!w->scene->options->plans_only) {
        return false;
    }
    w->layout.size[ND_AXIS_DP_REPLICATE] = 1;
    w->layout.size[ND_AXIS_DP_SHARD] = data_ranks;
    take_memory(w, nd_memory_floor_any_split(w->scene->context, &w->layout, &w->prices, data_ranks));
    return is_too_large(w);
}

/* The same for every vpp and schedule. */
static bool is_too_deep(walk *w, int32_t data_ranks)
{
    w->layout.vpp = 1;
    w->layout.split = ND_SPLIT_EVEN;
    return is_too_large_anyhow(w, data_ranks);
}

/* The layers of each stage; w->repeats when balanced stages are the even ones: the same layout again. */
static void divide_layers(walk *w)
{
    const nd_cost_context *context = w->scene->context;
    nd_split_stages(context, &w->layout, &w->prices, &w->split);
    w->divided = true;
    w->repeats = false;
    bool has_even = nd_space_has_even(&w->scene->space, w->layout.size[ND_AXIS_PP], w->layout.vpp);
    if (w->layout.split == ND_SPLIT_EVEN || !has_even || w->scene->options->pinned >> ND_LAYOUT_KEY_SPLIT & 1u) {
        return;
    }
    nd_stage_split even;
    nd_layout layout = w->layout;
    layout.split = ND_SPLIT_EVEN;
    nd_split_stages(context, &layout, &w->prices, &even);
    w->repeats = nd_stage_split_same(&even, &w->split);
}

/* One pp with its vpp, split and schedule: bounds from the cheapest to the closest, then its layouts. */
static void walk_pipeline(walk *w, int32_t data_ranks)
{
    const nd_cost_context *context = w->scene->context;
    const char *broken = NULL;
    /* how far apart neighbouring stages are follows from the data ranks, however they are divided */
    w->layout.size[ND_AXIS_DP_REPLICATE] = 1;
    w->layout.size[ND_AXIS_DP_SHARD] = data_ranks;
    if (!nd_rules_pipeline(context, &w->layout, &broken, NULL)) {
        reject_pipeline(w, broken);
        return;
    }
    w->bound = (nd_bound){.step_s = nd_filling_floor_s(context, &w->layout, w->work_s),
                          .capacity_bytes = (double)context->cluster->gpu.memory_bytes};
    if (is_closed(w)) {
        reject_pipeline(w, nd_rule_slower);
        return;
    }
    if (w->layout.split == ND_SPLIT_BALANCED && !w->divided && is_too_large_anyhow(w, data_ranks)) {
        w->board->unfit += nd_count_below_pipeline(&w->scene->space, w->layout, NULL);
        return;
    }
    if (!w->divided) {
        divide_layers(w);
    }
    if (w->repeats) {
        reject_pipeline(w, nd_rule_same_split);
        return;
    }
    w->piped[0] = false;
    w->piped[1] = false;
    take_memory(w, nd_memory_floor_of(context, &w->layout, &w->prices, &w->split, data_ranks));
    bool too_large = is_too_large(w);
    if (!too_large || !w->scene->options->plans_only) { /* else it does not matter whether it is slower, too */
        w->bound.step_s = pipeline_floor_s(w);
    }
    if (is_closed(w)) {
        reject_pipeline(w, nd_rule_slower);
    } else if (too_large) {
        w->board->unfit += nd_count_below_pipeline(&w->scene->space, w->layout, NULL);
    } else {
        walk_data(w, data_ranks);
    }
}

static void walk_pipelines(walk *w)
{
    const nd_search_space *space = &w->scene->space;
    int64_t inner = (int64_t)w->layout.size[ND_AXIS_CP] * w->layout.size[ND_AXIS_TP];
    int32_t ranks = (int32_t)(w->scene->context->cluster->gpus / inner);
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t pp = space->divisors[i];
        if (ranks % pp != 0 || space->pipelines_count[i] == 0 ||
            !nd_space_has_micro_batch(space, w->unit->micro_batch_index, ranks / pp, &w->layout.grad_accum)) {
            continue;
        }
        nd_pipeline_choice choices[ND_PIPELINES_MAX];
        int32_t count = nd_space_pipelines(space, pp, choices);
        w->layout.size[ND_AXIS_PP] = pp;
        w->bound = (nd_bound){.capacity_bytes = (double)w->scene->context->cluster->gpu.memory_bytes};
        if (is_too_deep(w, ranks / pp)) {
            w->board->unfit += space->pipelines_count[i] * nd_count_below_pipeline(space, w->layout, NULL);
            continue;
        }
        w->divided = false;
        for (int32_t c = 0; c < count && !is_answered(w); c++) {
            bool same_layers = c > 0 && choices[c].vpp == w->layout.vpp && choices[c].split == w->layout.split;
            w->divided = w->divided && same_layers;
            w->layout.vpp = choices[c].vpp;
            w->layout.split = choices[c].split;
            w->layout.schedule = choices[c].schedule;
            walk_pipeline(w, ranks / pp);
        }
    }
}

/* Everything of the unit under one recompute mode is forbidden. */
static void reject_recompute(walk *w, const char *rule)
{
    nd_layout first = w->layout;
    int64_t count = nd_count_below_unit(&w->scene->space, w->unit->micro_batch_index, w->layout, &first);
    nd_rejections_count(&w->board->rejections, rule, count, w->unit->order, &first);
}

void nd_search_walk(const nd_search_scene *scene, const nd_search_unit *unit, nd_board *board)
{
    const nd_search_space *space = &scene->space;
    walk w = {.scene = scene, .unit = unit, .board = board, .layout = unit->layout};
    w.layout.recompute = ND_RECOMPUTE_NONE;
    nd_price_blocks(scene->context, &w.layout, &w.prices);
    double work_s = nd_work_floor_s(scene->context, &w.prices);
    for (int32_t r = 0; r < space->recomputes_count && !is_answered(&w); r++) {
        const char *broken = NULL;
        w.layout.recompute = space->recomputes[r].mode;
        w.layout.recompute_every = space->recomputes[r].every;
        if (!nd_rules_memory_modes(scene->context, &w.layout, &broken, NULL)) {
            reject_recompute(&w, broken);
            continue;
        }
        nd_price_recompute(scene->context, &w.layout, &w.prices);
        w.work_s = work_s + nd_rework_floor_s(scene->context, &w.layout, &w.prices);
        walk_pipelines(&w);
    }
}
