/* One pipeline whose stages are placed by kind of GPU: its layers, the memory of its stages, its step. */
#include <math.h>
#include <string.h>

#include "cost_model/collectives.h"
#include "cost_model/stages.h"
#include "cost_model/time.h"
#include "planner/mixed_internal.h"

/* One candidate while it is priced. */
typedef struct candidate {
    const nd_mixed_scene *scene;
    const nd_layout *layout;
    const nd_block_prices *prices; /* of each part */
    const nd_mixed_line *line;
    int32_t layers[ND_MIXED_STAGES_MAX];
    int64_t counts[ND_MIXED_STAGES_MAX][ND_LAYER_KINDS_MAX];
    double stage_s[ND_MIXED_STAGES_MAX]; /* one micro-batch, forward and backward */
    double send_s[ND_MIXED_STAGES_MAX];  /* from this stage to the next */
    double sum_s;
    int32_t busiest;
} candidate;

static const nd_cost_context *part_of(const candidate *c, int32_t stage)
{
    return c->scene->input->parts[c->line->part_of[stage]];
}

static const nd_block_prices *prices_of(const candidate *c, int32_t stage)
{
    return &c->prices[c->line->part_of[stage]];
}

/* Layer kinds of each stage, and what they take. */
static void count_layers(candidate *c, const nd_mixed_work *work)
{
    const nd_cost_context *any = c->scene->input->parts[0];
    int64_t next = 0;
    c->sum_s = 0.0;
    c->busiest = 0;
    for (int32_t s = 0; s < c->line->total; s++) {
        int32_t part = c->line->part_of[s];
        c->stage_s[s] = (s == 0 ? work->embedding_s[part] : 0.0) + (s == c->line->total - 1 ? work->head_s[part] : 0.0);
        int64_t end = next + c->layers[s];
        for (int64_t kind = 0; kind < any->model->layer_kinds_count; kind++) {
            c->counts[s][kind] = any->layers_before[kind][end] - any->layers_before[kind][next];
            c->stage_s[s] += (double)c->counts[s][kind] * work->layer_s[part][kind];
        }
        next = end;
        c->sum_s += c->stage_s[s];
        c->busiest = c->stage_s[s] > c->stage_s[c->busiest] ? s : c->busiest;
    }
}

static double least_step_s(const candidate *c)
{
    return ((double)c->layout->grad_accum - 1.0) * c->stage_s[c->busiest] + c->sum_s;
}

static bool stage_fits(const candidate *c, int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX])
{
    nd_memory_breakdown memory;
    nd_estimate_stage_memory(part_of(c, stage), c->layout, prices_of(c, stage), stage, counts, &memory);
    return memory.peak_bytes <= memory.capacity_bytes;
}

static bool all_fit(const candidate *c)
{
    for (int32_t s = 0; s < c->line->total; s++) {
        if (!stage_fits(c, s, c->counts[s])) {
            return false;
        }
    }
    return true;
}

/* The layer kind that weighs most in a rank's memory. */
static int64_t heaviest_kind(const nd_model_spec *model, const nd_block_prices *prices)
{
    int64_t heaviest = 0;
    double most = -1.0;
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        double params = prices->params_dense[kind] + prices->params_expert[kind];
        heaviest = params > most ? kind : heaviest;
        most = fmax(most, params);
    }
    return heaviest;
}

/* How many layers of the heaviest kind fit on a stage. */
static int32_t layers_that_fit(const nd_cost_context *part, const nd_layout *layout, const nd_block_prices *prices,
                               int32_t stage)
{
    int64_t kind = heaviest_kind(part->model, prices);
    int64_t fits = 0;
    int64_t fails = part->model->layers + 1;
    while (fits + 1 < fails) {
        int64_t counts[ND_LAYER_KINDS_MAX] = {0};
        int64_t middle = (fits + fails) / 2;
        nd_memory_breakdown memory;
        counts[kind] = middle;
        nd_estimate_stage_memory(part, layout, prices, stage, counts, &memory);
        if (memory.peak_bytes <= memory.capacity_bytes) {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    return (int32_t)fits;
}

void nd_mixed_room_of(const nd_mixed_input *input, const nd_layout *layout, const nd_block_prices *prices,
                      nd_mixed_room *out)
{
    nd_layout least = *layout;
    least.size[ND_AXIS_PP] = 3; /* its middle stage has no end */
    least.grad_accum = 1;       /* and then one micro-batch in flight */
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        out->layers[i] = layers_that_fit(input->parts[i], &least, &prices[i], 1);
    }
    memset(out->inner, -1, sizeof out->inner);
}

static bool is_end(const candidate *c, int32_t stage)
{
    return stage == 0 || stage == c->line->total - 1;
}

/* Layers that fit on a stage between the ends. How deep the pipeline is matters by the micro-batches in flight only, so
 * that one look serves for all pipelines. */
static int32_t inner_room(const candidate *c, int32_t stage, nd_mixed_room *room)
{
    int32_t part = c->line->part_of[stage];
    int32_t in_flight = c->line->total - stage;
    bool all = c->layout->grad_accum <= in_flight;
    in_flight = all ? (int32_t)c->layout->grad_accum : in_flight;
    int32_t *layers = &room->inner[part][in_flight];
    if (*layers < 0) {
        nd_layout layout = *c->layout;
        layout.size[ND_AXIS_PP] = in_flight + (all ? 2 : 1); /* of which the second stage is looked at */
        *layers = layers_that_fit(part_of(c, stage), &layout, prices_of(c, stage), 1);
    }
    return *layers;
}

/* How many layers fit on each stage; false when they are too few. The ends, which are looked at anew each time, come
 * last. */
static bool limit_layers(const candidate *c, nd_mixed_room *room, int32_t most[ND_MIXED_STAGES_MAX])
{
    int64_t needed = c->scene->input->parts[0]->model->layers;
    int64_t bound = 0;
    for (int32_t s = 0; s < c->line->total; s++) {
        most[s] = is_end(c, s) ? room->layers[c->line->part_of[s]] : inner_room(c, s, room);
        bound += most[s];
        if (most[s] == 0) {
            return false;
        }
    }
    for (int32_t s = 0; s < c->line->total && bound >= needed; s += c->line->total - 1) {
        int32_t fits = layers_that_fit(part_of(c, s), c->layout, prices_of(c, s), s);
        bound += fits - most[s];
        most[s] = fits;
        if (fits == 0) {
            return false;
        }
    }
    return bound >= needed;
}

/* No stage of a pipeline that takes less than `limit_s` takes longer than this: the step is at least (m - 1) of it and
 * the sum of all stages, which is no less than the model on the fastest kind. */
static double longest_stage_s(const candidate *c, const nd_mixed_work *work, double limit_s)
{
    double micro_batches = (double)c->layout->grad_accum;
    double fastest_s = work->least_layers_s[c->line->part[0]];
    double slowest_s = 0.0;
    for (int32_t g = 0; g < c->line->groups; g++) {
        int32_t part = c->line->part[g];
        fastest_s = fmin(fastest_s, work->least_layers_s[part]);
        slowest_s = fmax(slowest_s, work->all_layers_s[part] + work->embedding_s[part] + work->head_s[part]);
    }
    double longest_s = fmin(slowest_s, limit_s / micro_batches);
    return micro_batches > 1.0 ? fmin(longest_s, (limit_s - fastest_s) / (micro_batches - 1.0)) : longest_s;
}

/* The fastest division, or the fastest of those that fit. */
static bool divide(candidate *c, const nd_mixed_work *work, nd_mixed_room *room, double limit_s, bool *unfit)
{
    const nd_model_spec *model = c->scene->input->parts[0]->model;
    int32_t most[ND_MIXED_STAGES_MAX] = {0};
    double longest_s = longest_stage_s(c, work, limit_s);
    if (!nd_mixed_divide(model, work, c->line, NULL, longest_s, c->layers)) {
        return false;
    }
    count_layers(c, work);
    if (least_step_s(c) >= limit_s) {
        return false;
    }
    /* counted in the heaviest kind, the room may be too small for what fits all the same */
    bool exact_room = model->layer_kinds_count == 1;
    *unfit = true;
    if (exact_room && !limit_layers(c, room, most)) {
        return false;
    }
    if (all_fit(c)) {
        *unfit = false;
        return true;
    }
    if ((!exact_room && !limit_layers(c, room, most)) ||
        !nd_mixed_divide(model, work, c->line, most, longest_s, c->layers)) {
        return false;
    }
    count_layers(c, work);
    *unfit = !all_fit(c);
    return !*unfit && least_step_s(c) < limit_s;
}

/* Between stages of one kind as in any cluster; between kinds over the network that joins them, priced with the
 * constants of either side and the slower one taken. */
static double transfer_s(const candidate *c, int32_t from)
{
    const nd_cost_context *a = part_of(c, from);
    const nd_cost_context *b = part_of(c, from + 1);
    double bytes = nd_stage_send_bytes(a, c->layout);
    if (a == b) {
        nd_group group = {.ranks = 2, .stride = nd_mesh_group(c->layout, ND_GROUP_PP).stride};
        nd_group_placement place = nd_group_place_for(a->cluster, a->calibration, group, ND_SEND_RECV);
        return nd_collective_s(&place, ND_SEND_RECV, bytes);
    }
    const nd_cluster_spec *joint = &c->scene->between[c->line->part_of[from]][c->line->part_of[from + 1]];
    nd_group group = {.ranks = 2, .stride = joint->gpus_per_node};
    nd_group_placement first = nd_group_place_for(joint, a->calibration, group, ND_SEND_RECV);
    nd_group_placement second = nd_group_place_for(joint, b->calibration, group, ND_SEND_RECV);
    return fmax(nd_collective_s(&first, ND_SEND_RECV, bytes), nd_collective_s(&second, ND_SEND_RECV, bytes));
}

/* Filling and draining cross every boundary once in each direction. */
static double price_transfers(candidate *c)
{
    double waits_s = 0.0;
    for (int32_t s = 0; s + 1 < c->line->total; s++) {
        bool as_before =
            s > 0 && c->line->part_of[s + 1] == c->line->part_of[s] && c->line->part_of[s - 1] == c->line->part_of[s];
        c->send_s[s] = as_before ? c->send_s[s - 1] : transfer_s(c, s);
        waits_s += 2.0 * (c->send_s[s] + part_of(c, s)->stack->send_host_s);
    }
    return waits_s;
}

/* The step as stage `s` sees it: its own work, and all the time in which it waits for the slowest. */
static nd_time_breakdown step_of(const candidate *c, int32_t s, double waits_s)
{
    const nd_cost_context *part = part_of(c, s);
    nd_pipeline pipeline;
    nd_time_breakdown time;
    double micro_batches = (double)c->layout->grad_accum;
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.busiest =
        nd_stage_work_of(part, c->layout, prices_of(c, s), c->counts[s], s == 0, s == c->line->total - 1);
    pipeline.busiest_stage = s;
    memcpy(pipeline.counts, c->counts[s], sizeof pipeline.counts);
    pipeline.sum_s = c->sum_s;
    pipeline.send_s = fmax(s > 0 ? c->send_s[s - 1] : 0.0, s + 1 < c->line->total ? c->send_s[s] : 0.0);
    pipeline.send_host_s = part->stack->send_host_s;
    pipeline.bubble_s =
        (micro_batches - 1.0) * (c->stage_s[c->busiest] - c->stage_s[s]) + c->sum_s - c->stage_s[s] + waits_s;
    nd_estimate_time_piped(part, c->layout, prices_of(c, s), &pipeline, &time);
    return time;
}

double nd_mixed_straggling(const nd_mixed_input *input, const nd_mixed_line *line, int64_t grid)
{
    int64_t nodes = 0;
    double frac = 0.0;
    for (int32_t g = 0; g < line->groups; g++) {
        const nd_cost_context *part = input->parts[line->part[g]];
        int64_t per_node = part->cluster->gpus_per_node;
        nodes += (grid * line->stages[g] + per_node - 1) / per_node;
        frac = fmax(frac, part->calibration->straggler_frac);
    }
    return 1.0 + frac * log2(fmax(1.0, (double)nodes));
}

/* Stragglers of one kind's nodes were counted; all nodes in use wait for each other. */
static void recount_stragglers(const candidate *c, int64_t grid, nd_time_breakdown *time)
{
    double others_s = time->step_s - time->straggler_s;
    double step_s = others_s * nd_mixed_straggling(c->scene->input, c->line, grid);
    double ratio = step_s / time->step_s;
    time->other_s += step_s - time->step_s;
    time->straggler_s += step_s - time->step_s;
    time->step_s = step_s;
    time->step_low_s *= ratio;
    time->step_high_s *= ratio;
}

static int32_t busiest_of(const candidate *c, int32_t first, int32_t end)
{
    int32_t busiest = first;
    for (int32_t s = first; s < end; s++) {
        busiest = c->stage_s[s] > c->stage_s[busiest] ? s : busiest;
    }
    return busiest;
}

/* Stages, GPUs and the fullest stage of one group. */
static void describe_group(const candidate *c, int32_t g, int32_t first, int64_t grid, nd_mixed_group *out)
{
    int32_t end = first + c->line->stages[g];
    memset(out, 0, sizeof *out);
    out->part = c->line->part[g];
    out->stages = c->line->stages[g];
    out->gpus = grid * c->line->stages[g];
    out->slowest_stage_s = c->stage_s[busiest_of(c, first, end)];
    for (int32_t s = first; s < end; s++) {
        nd_memory_breakdown memory;
        nd_estimate_stage_memory(part_of(c, s), c->layout, prices_of(c, s), s, c->counts[s], &memory);
        out->layers += c->layers[s];
        if (memory.peak_bytes > out->memory.peak_bytes) {
            out->memory = memory;
        }
    }
}

/* The step of the group that is done last, since gradients and weights of the kinds travel at different speed. */
static nd_time_breakdown longest_step(candidate *c)
{
    nd_time_breakdown longest;
    double waits_s = price_transfers(c);
    int32_t first = 0;
    memset(&longest, 0, sizeof longest);
    for (int32_t g = 0; g < c->line->groups; g++) {
        int32_t end = first + c->line->stages[g];
        nd_time_breakdown time = step_of(c, busiest_of(c, first, end), waits_s);
        if (time.step_s > longest.step_s) {
            longest = time;
        }
        first = end;
    }
    return longest;
}

/* Model FLOPs against what all GPUs in use could do. */
static double mfu_of(const nd_mixed_input *input, const nd_mixed_option *option)
{
    const nd_cost_context *any = input->parts[0];
    double peak_flops_per_s = 0.0;
    for (int32_t g = 0; g < option->groups_count; g++) {
        const nd_cost_context *part = input->parts[option->groups[g].part];
        peak_flops_per_s +=
            (double)option->groups[g].gpus * part->cluster->gpu.peak_flops_per_s[part->train->precision];
    }
    return any->flops_per_token * option->tokens_per_s / peak_flops_per_s;
}

bool nd_mixed_price_line(const nd_mixed_scene *scene, const nd_layout *layout, const nd_block_prices *prices,
                         const nd_mixed_work *work, nd_mixed_room *room, const nd_mixed_line *line, double limit_s,
                         bool *unfit, nd_mixed_option *out)
{
    candidate c = {.scene = scene, .layout = layout, .prices = prices, .line = line};
    *unfit = false;
    int64_t grid = nd_layout_ranks(layout) / line->total;
    if (!divide(&c, work, room, limit_s / nd_mixed_straggling(scene->input, line, grid), unfit)) {
        return false;
    }
    nd_time_breakdown time = longest_step(&c);
    recount_stragglers(&c, grid, &time);
    if (time.step_s >= limit_s) {
        return false;
    }
    nd_mixed_option option;
    memset(&option, 0, sizeof option);
    option.way = ND_MIXED_STAGES;
    option.found = true;
    option.layout = *layout;
    option.time = time;
    option.groups_count = line->groups;
    int32_t first = 0;
    for (int32_t g = 0; g < line->groups; g++) {
        describe_group(&c, g, first, grid, &option.groups[g]);
        option.gpus += option.groups[g].gpus;
        first += line->stages[g];
    }
    option.idle_gpus = scene->input->cluster->gpus - option.gpus;
    memcpy(option.stage_layers, c.layers, sizeof option.stage_layers);
    const nd_train_spec *train = scene->input->parts[0]->train;
    option.tokens_per_s = (double)nd_layout_global_batch_seqs(layout) * (double)train->seq_len_tokens / time.step_s;
    option.mfu_frac = mfu_of(scene->input, &option);
    *out = option;
    return true;
}
