/* Enumeration of pipelines whose stages are placed by kind: grids, modes, orders of the parts and their stages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/constraints_internal.h"
#include "planner/mixed_internal.h"

enum {
    DIVISORS_MAX = 512,     /* of the global batch; further ones would leave no GPU for another axis */
    MICRO_BATCH_CAP = 64,   /* as in planner/search.h */
    GRID_RANKS_MAX = 65536, /* ranks of one stage; beyond the largest runs that are known */
};

/* One search. Loops as in planner/search.c: what prices depend on outside. */
typedef struct walk {
    const nd_mixed_input *input;
    const nd_search_options *options;
    nd_mixed_share *share;
    double done_frac; /* of the grids of tp and cp */
    nd_mixed_scene scene;
    nd_mixed_line orders[ND_MIXED_ORDERS_MAX]; /* groups and part only */
    int32_t orders_count;
    nd_mixed_option best[ND_MIXED_ORDERS_MAX]; /* of each order */
    int64_t divisors[DIVISORS_MAX];            /* of the global batch, ascending */
    int32_t divisors_count;
    int64_t widest; /* GPUs of the second largest part: no stage can be wider */
    nd_layout layout;
    nd_block_prices prices[ND_MIXED_PARTS_MAX];
    bool priced;
    nd_mixed_work work; /* of the current block, without adding up gradients */
    nd_mixed_room room;
    double shown_s; /* step of the last order that will be shown; HUGE_VAL while there are fewer */
    int64_t searched, unfit;
    const char *broken; /* first rule that a whole candidate broke */
} walk;

static const uint32_t block_keys = 1u << ND_LAYOUT_KEY_TP | 1u << ND_LAYOUT_KEY_CP | 1u << ND_LAYOUT_KEY_EP |
                                   1u << ND_LAYOUT_KEY_SP | 1u << ND_LAYOUT_KEY_CP_METHOD |
                                   1u << ND_LAYOUT_KEY_MICRO_BATCH | 1u << ND_LAYOUT_KEY_RECOMPUTE;
static const uint32_t all_keys = (1u << ND_LAYOUT_KEY_COUNT) - 1u;

static void add_orders(walk *w, nd_mixed_line *line, uint32_t used)
{
    if (line->groups >= 2) {
        w->orders[w->orders_count++] = *line;
    }
    for (int32_t part = 0; part < w->input->cluster->parts_count; part++) {
        if ((used >> part & 1u) == 0) {
            line->part[line->groups++] = part;
            add_orders(w, line, used | 1u << part);
            line->groups--;
        }
    }
}

static int64_t second_largest(const nd_mixed_cluster *cluster)
{
    int64_t largest = 0;
    int64_t second = 0;
    for (int32_t i = 0; i < cluster->parts_count; i++) {
        int64_t gpus = cluster->parts[i].gpus;
        second = gpus > largest ? largest : gpus > second ? gpus : second;
        largest = gpus > largest ? gpus : largest;
    }
    return second;
}

static nd_status prepare(walk *w, nd_error *err)
{
    const nd_mixed_cluster *cluster = w->input->cluster;
    nd_mixed_line line;
    memset(&line, 0, sizeof line);
    add_orders(w, &line, 0);
    w->scene.input = w->input;
    w->shown_s = HUGE_VAL;
    for (int32_t a = 0; a < cluster->parts_count; a++) {
        for (int32_t b = 0; b < cluster->parts_count; b++) {
            if (a != b) {
                ND_TRY(nd_mixed_cluster_between(cluster, a, b, &w->scene.between[a][b], err));
            }
        }
    }
    w->widest = second_largest(cluster);
    w->widest = w->widest < GRID_RANKS_MAX ? w->widest : GRID_RANKS_MAX;
    int64_t batch = w->input->parts[0]->train->global_batch_seqs;
    for (int64_t value = 1; value <= w->widest || value <= MICRO_BATCH_CAP; value++) {
        if (batch % value == 0 && w->divisors_count < DIVISORS_MAX) {
            w->divisors[w->divisors_count++] = value;
        }
    }
    w->layout = nd_layout_single();
    w->layout.split = ND_SPLIT_BALANCED; /* software must be told which layers a stage holds */
    if ((w->options->pinned >> ND_LAYOUT_KEY_OFFLOAD & 1u) != 0) {
        w->layout.offload = w->options->pin.offload;
    }
    return ND_OK;
}

/* Prices of the current block on every part, and what they come to where gradients are not added up. */
static void price(walk *w)
{
    if (w->priced) {
        return;
    }
    for (int32_t i = 0; i < w->input->cluster->parts_count; i++) {
        nd_price_blocks(w->input->parts[i], &w->layout, &w->prices[i]);
    }
    nd_layout once = w->layout;
    once.grad_accum = 1;
    w->work = nd_mixed_work_of(w->input, &once, w->prices);
    w->priced = true;
}

/* Slower pipelines of order `o` are of no interest. */
static double limit_of(const walk *w, int32_t o)
{
    return w->best[o].found ? fmin(w->best[o].time.step_s, w->shown_s) : w->shown_s;
}

/* The ND_MIXED_ORDERS_SHOWN-th best order. */
static void update_shown(walk *w)
{
    double fastest[ND_MIXED_ORDERS_SHOWN];
    for (int32_t i = 0; i < ND_MIXED_ORDERS_SHOWN; i++) {
        fastest[i] = HUGE_VAL;
    }
    for (int32_t o = 0; o < w->orders_count; o++) {
        double step_s = w->best[o].found ? w->best[o].time.step_s : HUGE_VAL;
        for (int32_t i = 0; i < ND_MIXED_ORDERS_SHOWN; i++) {
            double slower_s = fmax(step_s, fastest[i]);
            fastest[i] = fmin(step_s, fastest[i]);
            step_s = slower_s;
        }
    }
    w->shown_s = fastest[ND_MIXED_ORDERS_SHOWN - 1];
}

/* The least that a step can take, the stragglers of all its nodes included. */
static double least_s(const walk *w, const nd_mixed_line *line, const nd_mixed_work *work)
{
    double micro_batches = (double)w->layout.grad_accum;
    return nd_mixed_least_s(work, line, micro_batches) *
           nd_mixed_straggling(w->input, line, nd_layout_ranks(&w->layout) / w->layout.size[ND_AXIS_PP]);
}

static bool has_room(const walk *w, const nd_mixed_line *line)
{
    int64_t room = 0;
    for (int32_t g = 0; g < line->groups; g++) {
        room += (int64_t)line->stages[g] * w->room.layers[line->part[g]];
    }
    return room >= w->input->parts[0]->model->layers;
}

/* One complete pipeline of order `o`. */
static void visit(walk *w, int32_t o, nd_mixed_line *line, const nd_mixed_work *work)
{
    const nd_cost_context *any = w->input->parts[0];
    const nd_framework *framework = w->input->framework;
    nd_mixed_option *best = &w->best[o];
    double limit_s = limit_of(w, o);
    const char *rule = NULL;
    bool unfit = false;
    w->searched++;
    w->layout.size[ND_AXIS_PP] = line->total;
    if (least_s(w, line, work) >= limit_s || !nd_mixed_admits(w->options, &w->layout, all_keys)) {
        return;
    }
    if (!has_room(w, line)) {
        w->unfit++;
        return;
    }
    if (!nd_rules_pipeline(any, &w->layout, &rule, NULL) || !nd_rules_data(any, &w->layout, &rule, NULL) ||
        (framework != NULL && !framework->allows(any->model, &w->layout, any->train, &rule, NULL))) {
        w->broken = w->broken == NULL ? rule : w->broken;
        return;
    }
    if (nd_mixed_price_line(&w->scene, &w->layout, w->prices, work, &w->room, line, limit_s, &unfit, best)) {
        update_shown(w);
    }
    w->unfit += unfit;
}

/* How many stages group `g` may have, most and least. A part of which half would idle is better cut into a wider grid,
 * so fewer than half of the stages that it could hold are not tried, unless they are few. */
static int64_t most_stages(const walk *w, const nd_mixed_line *line, int32_t g, int64_t grid)
{
    return w->input->cluster->parts[line->part[g]].gpus / grid;
}

static int64_t least_stages(int64_t most)
{
    int64_t few = 4;
    return most <= few ? 1 : (most + 1) / 2;
}

/* The next smaller numbers of stages, the last group fastest; false after the last ones. */
static bool step_down(nd_mixed_line *line, const int64_t *most)
{
    for (int32_t g = line->groups - 1; g >= 0; g--) {
        if (line->stages[g] > least_stages(most[g])) {
            line->stages[g]--;
            return true;
        }
        line->stages[g] = (int32_t)most[g];
    }
    return false;
}

/* Every number of stages of every group, most first. */
static void walk_stages(walk *w, int32_t o, int64_t grid, const nd_mixed_work *work)
{
    nd_mixed_line line = w->orders[o];
    int64_t most[ND_MIXED_PARTS_MAX] = {0};
    int64_t shallowest = 0;
    int64_t deepest = w->input->parts[0]->model->layers;
    deepest = deepest < ND_MIXED_STAGES_MAX ? deepest : ND_MIXED_STAGES_MAX;
    for (int32_t g = 0; g < line.groups; g++) {
        most[g] = most_stages(w, &line, g, grid);
        most[g] = most[g] < 2 * deepest ? most[g] : 2 * deepest; /* more than half of these is too deep already */
        line.stages[g] = (int32_t)most[g];
        shallowest += least_stages(most[g]);
    }
    for (bool more = shallowest <= deepest; more; more = step_down(&line, most)) {
        int64_t total = 0;
        for (int32_t g = 0; g < line.groups; g++) {
            total += line.stages[g];
        }
        if (total <= deepest) {
            nd_mixed_line_finish(&line);
            visit(w, o, &line, work);
        }
    }
}

/* Even with every GPU at work the order cannot beat its best. */
static bool hopeless(const walk *w, int32_t o, int64_t grid, const nd_mixed_work *work)
{
    nd_mixed_line line = w->orders[o];
    for (int32_t g = 0; g < line.groups; g++) {
        int64_t stages = most_stages(w, &line, g, grid);
        if (stages == 0) {
            return true;
        }
        line.stages[g] = (int32_t)stages;
    }
    return w->best[o].found && nd_mixed_least_s(work, &line, (double)w->layout.grad_accum) >= w->best[o].time.step_s;
}

static bool all_hopeless(const walk *w, int64_t grid)
{
    for (int32_t o = 0; o < w->orders_count; o++) {
        if (!hopeless(w, o, grid, &w->work)) {
            return false;
        }
    }
    return true;
}

static void walk_orders(walk *w, int64_t grid)
{
    nd_mixed_work work = nd_mixed_work_of(w->input, &w->layout, w->prices);
    bool has_rooms = false;
    for (int32_t o = 0; o < w->orders_count && nd_mixed_share_goes_on(w->share, w->done_frac); o++) {
        if (hopeless(w, o, grid, &work)) {
            continue;
        }
        if (!has_rooms) {
            nd_mixed_room_of(w->input, &w->layout, w->prices, &w->room);
            has_rooms = true;
        }
        walk_stages(w, o, grid, &work);
    }
}

/* Sharding of the modes that the stack has, as nd_search() tries them. */
static void walk_shardings(walk *w, int64_t grid)
{
    int32_t shard = w->layout.size[ND_AXIS_DP_SHARD];
    bool wide = shard > 1 || w->layout.size[ND_AXIS_CP] > 1;
    for (int mode = shard > 1 ? ND_SHARDING_ZERO1 : ND_SHARDING_NONE; mode < ND_SHARDING_COUNT; mode++) {
        if (wide ? nd_mask_has(w->input->parts[0]->stack->shardings, mode) : mode == ND_SHARDING_NONE) {
            w->layout.sharding = (nd_sharding)mode;
            walk_orders(w, grid);
        }
    }
}

static void walk_data(walk *w)
{
    int64_t inner = (int64_t)w->layout.size[ND_AXIS_TP] * w->layout.size[ND_AXIS_CP];
    int64_t batch = w->input->parts[0]->train->global_batch_seqs;
    for (int32_t d = 0; d < w->divisors_count && w->divisors[d] * inner <= w->widest; d++) {
        int64_t ranks = w->divisors[d];
        if (batch % (ranks * w->layout.micro_batch) != 0) {
            continue;
        }
        w->layout.grad_accum = batch / (ranks * w->layout.micro_batch);
        price(w);
        if (all_hopeless(w, inner * ranks)) {
            continue;
        }
        for (int32_t s = 0; s <= d; s++) {
            int64_t shard = w->divisors[s];
            if (ranks % shard == 0 && inner * shard % w->layout.ep == 0) {
                w->layout.size[ND_AXIS_DP_SHARD] = (int32_t)shard;
                w->layout.size[ND_AXIS_DP_REPLICATE] = (int32_t)(ranks / shard);
                walk_shardings(w, inner * ranks);
            }
        }
    }
}

/* Micro-batch and recompute. */
static void walk_memory_modes(walk *w)
{
    static const struct {
        nd_recompute mode;
        int32_t every;
    } recomputes[] = {
        {ND_RECOMPUTE_NONE, 1}, {ND_RECOMPUTE_SELECTIVE, 1}, {ND_RECOMPUTE_FULL, 1}, {ND_RECOMPUTE_EVERY, 2}};
    bool pinned = (w->options->pinned >> ND_LAYOUT_KEY_RECOMPUTE & 1u) != 0;
    size_t count = pinned ? 1 : sizeof recomputes / sizeof recomputes[0];
    for (int32_t d = 0; d < w->divisors_count && w->divisors[d] <= MICRO_BATCH_CAP; d++) {
        for (size_t r = 0; r < count && nd_mixed_share_goes_on(w->share, w->done_frac); r++) {
            w->layout.micro_batch = (int32_t)w->divisors[d];
            w->layout.recompute = pinned ? w->options->pin.recompute : recomputes[r].mode;
            w->layout.recompute_every = pinned ? w->options->pin.recompute_every : recomputes[r].every;
            w->priced = false;
            if (nd_mixed_admits(w->options, &w->layout, block_keys) &&
                nd_rules_memory_modes(w->input->parts[0], &w->layout, NULL, NULL)) {
                walk_data(w);
            }
        }
    }
}

/* ep, sequence parallelism and the method of cp. */
static void walk_blocks(walk *w)
{
    const nd_cost_context *any = w->input->parts[0];
    int64_t experts = any->model->experts > 0 ? any->model->experts : 1;
    for (int method = 0; method < (w->layout.size[ND_AXIS_CP] > 1 ? ND_CP_METHOD_COUNT : 1); method++) {
        for (int sp = w->layout.size[ND_AXIS_TP] > 1; sp >= 0; sp--) {
            for (int64_t ep = 1; ep <= experts && ep <= w->widest; ep++) {
                w->layout.cp_method = (nd_cp_method)method;
                w->layout.sequence_parallel = sp > 0;
                w->layout.ep = (int32_t)ep;
                if (experts % ep == 0 && nd_rules_block(any, &w->layout, NULL, NULL)) {
                    walk_memory_modes(w);
                }
            }
        }
    }
}

/* Degrees of tp and cp divide the GPUs of a part: others would leave some of every node idle. */
static bool divides_a_part(const walk *w, int64_t degree)
{
    for (int32_t i = 0; i < w->input->cluster->parts_count; i++) {
        if (w->input->cluster->parts[i].gpus % degree == 0) {
            return true;
        }
    }
    return false;
}

static void walk_grid(walk *w, int64_t tp, int64_t cp)
{
    w->layout.size[ND_AXIS_TP] = (int32_t)tp;
    w->layout.size[ND_AXIS_CP] = (int32_t)cp;
    walk_blocks(w);
}

/* Every tp and cp. \param[in] walks  false: only count them */
static int64_t walk_grids(walk *w, int64_t all, bool walks)
{
    const nd_cost_context *any = w->input->parts[0];
    int64_t count = 0;
    for (int64_t tp = 1; tp <= w->widest && tp <= any->model->heads; tp++) {
        for (int64_t cp = 1; tp * cp <= w->widest && cp <= any->train->seq_len_tokens; cp++) {
            if (!divides_a_part(w, tp) || !divides_a_part(w, cp)) {
                continue;
            }
            if (walks) {
                w->done_frac = (double)count / (double)all;
                walk_grid(w, tp, cp);
            }
            count++;
        }
    }
    return count;
}

static void walk_all(walk *w)
{
    (void)walk_grids(w, walk_grids(w, 0, false), true);
}

static int by_step(const void *a, const void *b)
{
    const nd_mixed_option *first = a;
    const nd_mixed_option *second = b;
    if (first->found != second->found) {
        return first->found ? -1 : 1;
    }
    return (first->time.step_s > second->time.step_s) - (first->time.step_s < second->time.step_s);
}

/* Why there is no pipeline at all. */
static void explain(const walk *w, char *why, size_t why_bytes)
{
    nd_layout two = nd_layout_single();
    nd_refusal refusal;
    memset(&refusal, 0, sizeof refusal);
    two.size[ND_AXIS_PP] = 2;
    two.split = ND_SPLIT_BALANCED;
    if (!nd_rules_pipeline(w->input->parts[0], &two, NULL, &refusal)) {
        (void)snprintf(why, why_bytes, "%s", refusal.message);
    } else if (w->unfit > 0) {
        (void)snprintf(why, why_bytes, "no division of the layers fits: %lld pipelines need more memory",
                       (long long)w->unfit);
    } else if (w->broken != NULL) {
        (void)snprintf(why, why_bytes, "every pipeline breaks a rule, the first one %s", w->broken);
    } else {
        (void)snprintf(why, why_bytes, "no pipeline meets the pins, the batch and the sizes of the parts");
    }
}

nd_status nd_mixed_search_stages(const nd_mixed_input *input, nd_mixed_share *share, nd_mixed_option *options,
                                 int32_t *count, nd_mixed_plan *counters, char *why, size_t why_bytes, nd_error *err)
{
    walk *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the search over kinds of GPU");
    }
    w->input = input;
    w->options = input->options;
    w->share = share;
    nd_status status = prepare(w, err);
    if (status == ND_OK) {
        walk_all(w);
        qsort(w->best, (size_t)w->orders_count, sizeof w->best[0], by_step);
        *count = 0;
        while (*count < ND_MIXED_ORDERS_SHOWN && *count < w->orders_count && w->best[*count].found) {
            options[*count] = w->best[*count];
            (*count)++;
        }
        counters->searched += w->searched;
        counters->stages_unfit = w->unfit;
        if (*count == 0 && share->stopped) {
            (void)snprintf(why, why_bytes, "%s", nd_mixed_interrupted);
        } else if (*count == 0) {
            explain(w, why, why_bytes);
        }
    }
    free(w);
    return status;
}
