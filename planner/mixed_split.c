/* How the layers are divided over stages of different speed. docs/MODEL.md, "Mixed clusters". */
#include <math.h>
#include <string.h>

#include "cost_model/stage_work.h"
#include "planner/mixed_internal.h"

/* The pace is found to this part of itself, far below what the model knows. */
static const double pace_precision = 1e-7;
static const double pace_slack = 1.0 + 1e-9; /* the same sum in another order may differ in its last digits */

/* Layers that take w on the first part take at least a w on part i, with a the least ratio of any kind of layer: a
 * bound with all layers at that ratio holds for every division. */
void nd_mixed_work_finish(const nd_model_spec *model, int32_t parts, nd_mixed_work *work)
{
    for (int32_t i = 0; i < parts; i++) {
        double ratio = HUGE_VAL;
        work->all_layers_s[i] = 0.0;
        for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
            work->all_layers_s[i] += (double)model->layer_kinds[kind].layers * work->layer_s[i][kind];
            ratio = fmin(ratio, work->layer_s[i][kind] / work->layer_s[0][kind]);
        }
        work->least_layers_s[i] = ratio * work->all_layers_s[0];
    }
}

nd_mixed_work nd_mixed_work_of(const nd_mixed_input *input, const nd_layout *layout, const nd_block_prices *prices)
{
    nd_mixed_work work;
    memset(&work, 0, sizeof work);
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        const nd_cost_context *part = input->parts[i];
        int64_t counts[ND_LAYER_KINDS_MAX] = {0};
        nd_stage_work one = nd_stage_work_of(part, layout, &prices[i], counts, true, false);
        work.embedding_s[i] = nd_stage_work_s(&one);
        one = nd_stage_work_of(part, layout, &prices[i], counts, false, true);
        work.head_s[i] = nd_stage_work_s(&one);
        for (int64_t kind = 0; kind < part->model->layer_kinds_count; kind++) {
            memset(counts, 0, sizeof counts);
            counts[kind] = 1;
            one = nd_stage_work_of(part, layout, &prices[i], counts, false, false);
            work.layer_s[i][kind] = nd_stage_work_s(&one);
        }
    }
    nd_mixed_work_finish(input->parts[0]->model, input->cluster->parts_count, &work);
    return work;
}

void nd_mixed_line_finish(nd_mixed_line *line)
{
    line->total = 0;
    for (int32_t g = 0; g < line->groups; g++) {
        for (int32_t s = 0; s < line->stages[g]; s++) {
            line->part_of[line->total++] = line->part[g];
        }
    }
}

double nd_mixed_least_s(const nd_mixed_work *work, const nd_mixed_line *line, double micro_batches)
{
    int32_t fastest[ND_MIXED_PARTS_MAX]; /* groups, fastest kind first */
    for (int32_t g = 0; g < line->groups; g++) {
        int32_t slot = g;
        double all_s = work->least_layers_s[line->part[g]];
        for (; slot > 0 && all_s < work->least_layers_s[line->part[fastest[slot - 1]]]; slot--) {
            fastest[slot] = fastest[slot - 1];
        }
        fastest[slot] = g;
    }
    double models_per_s = 0.0;
    double stages = 0.0;
    double least_s = HUGE_VAL;
    for (int32_t i = 0; i < line->groups; i++) {
        models_per_s += (double)line->stages[fastest[i]] / work->least_layers_s[line->part[fastest[i]]];
        stages += (double)line->stages[fastest[i]];
        least_s = fmin(least_s, (micro_batches - 1.0 + stages) / models_per_s);
    }
    return least_s;
}

typedef struct filling {
    const nd_model_spec *model;
    const nd_mixed_work *work;
    const nd_mixed_line *line;
    const int32_t *most;
    bool from_the_end; /* the last stage takes its layers first */
} filling;

static double ends_s(const filling *f, int32_t stage)
{
    int32_t part = f->line->part_of[stage];
    return (stage == 0 ? f->work->embedding_s[part] : 0.0) +
           (stage == f->line->total - 1 ? f->work->head_s[part] : 0.0);
}

/* Layers that `stage` takes of those that begin (or end) at `next` within `budget_s`.
 * \param[out] needed_s  the budget for one more, where that is what it lacks; else HUGE_VAL */
static int64_t take_layers(const filling *f, int32_t part, int64_t next, int64_t limit, double budget_s,
                           double *needed_s)
{
    const double *layer_s = f->work->layer_s[part];
    *needed_s = HUGE_VAL;
    if (f->model->layer_kinds_count == 1) {
        double fit = floor(budget_s / layer_s[0]);
        if (fit < (double)limit) {
            *needed_s = (fmax(fit, 0.0) + 1.0) * layer_s[0];
            return fit < 0.0 ? 0 : (int64_t)fit;
        }
        return limit;
    }
    int64_t taken = 0;
    for (double used_s = 0.0; taken < limit; taken++) {
        int64_t layer = f->from_the_end ? next - 1 - taken : next + taken;
        used_s += layer_s[f->model->kind_of_layer[layer]];
        if (used_s > budget_s) {
            *needed_s = used_s;
            break;
        }
    }
    return taken;
}

/* Each stage takes as many layers as its pace allows and the others leave it.
 * \param[out] next_s  no pace below this one changes anything */
static bool fill(const filling *f, double pace_s, int32_t layers[ND_MIXED_STAGES_MAX], double *next_s)
{
    *next_s = HUGE_VAL;
    int32_t total = f->line->total;
    int64_t left = f->model->layers;
    for (int32_t i = 0; i < total; i++) {
        int32_t stage = f->from_the_end ? total - 1 - i : i;
        int64_t next = f->from_the_end ? left : f->model->layers - left;
        int64_t limit = left - (total - 1 - i);
        if (f->most != NULL && f->most[stage] < limit) {
            limit = f->most[stage];
        }
        double end_s = ends_s(f, stage);
        double needed_s = HUGE_VAL;
        double budget_s = pace_s * pace_slack - end_s;
        int64_t taken = limit > 0 ? take_layers(f, f->line->part_of[stage], next, limit, budget_s, &needed_s) : 0;
        *next_s = fmin(*next_s, (needed_s + end_s) / pace_slack);
        if (taken < 1) {
            return false;
        }
        layers[stage] = (int32_t)taken;
        left -= taken;
    }
    return left == 0;
}

/* Seconds of the slowest stage, and of all stages together. */
static double slowest_s(const filling *f, const int32_t layers[ND_MIXED_STAGES_MAX], double *sum_s)
{
    double slowest = 0.0;
    int64_t next = 0;
    *sum_s = 0.0;
    for (int32_t stage = 0; stage < f->line->total; stage++) {
        double stage_s = ends_s(f, stage);
        for (int32_t i = 0; i < layers[stage]; i++) {
            stage_s += f->work->layer_s[f->line->part_of[stage]][f->model->kind_of_layer[next++]];
        }
        slowest = fmax(slowest, stage_s);
        *sum_s += stage_s;
    }
    return slowest;
}

/* Moving single layers between the stages of one kind until they differ by one evens out their memory; it stays only
 * where no stage becomes slower than the pace. */
static void even_out(const filling *f, double pace_s, int32_t layers[ND_MIXED_STAGES_MAX])
{
    int32_t evened[ND_MIXED_STAGES_MAX];
    memcpy(evened, layers, (size_t)f->line->total * sizeof layers[0]);
    int32_t first = 0;
    for (int32_t g = 0; g < f->line->groups; g++) {
        int32_t end = first + f->line->stages[g];
        for (bool moved = true; moved;) {
            int32_t low = first;
            int32_t high = first;
            for (int32_t s = first; s < end; s++) {
                low = evened[s] < evened[low] ? s : low;
                high = evened[s] > evened[high] ? s : high;
            }
            moved = evened[high] > evened[low] + 1 && (f->most == NULL || evened[low] < f->most[low]);
            evened[high] -= moved;
            evened[low] += moved;
        }
        first = end;
    }
    double sum_s = 0.0;
    if (slowest_s(f, evened, &sum_s) <= pace_s * pace_slack) {
        memcpy(layers, evened, (size_t)f->line->total * sizeof layers[0]);
    }
}

/* With all layers spread without remainder no stage is slower than this. */
static double least_pace_s(const nd_mixed_work *work, const nd_mixed_line *line)
{
    double models_per_s = 0.0;
    for (int32_t g = 0; g < line->groups; g++) {
        models_per_s += (double)line->stages[g] / work->least_layers_s[line->part[g]];
    }
    return 1.0 / models_per_s;
}

bool nd_mixed_divide(const nd_model_spec *model, const nd_mixed_work *work, const nd_mixed_line *line,
                     const int32_t *most, double pace_s, int32_t layers[ND_MIXED_STAGES_MAX])
{
    filling f = {model, work, line, most, true};
    int32_t other[ND_MIXED_STAGES_MAX];
    double sum_s = 0.0;
    double other_sum_s = 0.0;
    double next_s = 0.0;
    if (line->total > model->layers || !fill(&f, pace_s, layers, &next_s)) {
        return false;
    }
    double low_s = least_pace_s(work, line);
    double high_s = slowest_s(&f, layers, &sum_s);
    while (high_s - low_s > pace_precision * high_s) {
        double middle_s = (low_s + high_s) / 2.0;
        if (fill(&f, middle_s, other, &next_s)) {
            memcpy(layers, other, (size_t)line->total * sizeof layers[0]);
            high_s = fmin(middle_s, slowest_s(&f, layers, &sum_s));
        } else { /* less than the precision below the next pace, so that it is tried itself */
            low_s = fmax(middle_s, next_s * (1.0 - pace_precision / 2.0));
        }
    }
    f.from_the_end = false;
    if (fill(&f, high_s, other, &next_s)) {
        (void)slowest_s(&f, other, &other_sum_s);
        if (other_sum_s < sum_s) {
            memcpy(layers, other, (size_t)line->total * sizeof layers[0]);
        }
    }
    even_out(&f, high_s, layers);
    return true;
}
