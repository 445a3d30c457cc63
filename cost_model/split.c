#include "cost_model/split.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "cost_model/price.h"
#include "cost_model/stages.h"

/* Loads that differ by less are the same: sums of the same prices in another order. */
static const double same_load = 1e-12;

static void split_evenly(int64_t layers, const nd_layout *layout, nd_stage_split *out)
{
    out->stages = layout->size[ND_AXIS_PP];
    out->chunks = out->stages * layout->vpp;
    out->balanced = false;
    out->base = layers / out->chunks;
    out->extra = layers % out->chunks;
    out->first_extra = (out->chunks - out->extra) / 2;
}

int64_t nd_split_start(const nd_stage_split *split, int64_t chunk)
{
    if (split->balanced) {
        return split->start[chunk];
    }
    int64_t extra_before = chunk - split->first_extra;
    if (extra_before < 0) {
        extra_before = 0;
    } else if (extra_before > split->extra) {
        extra_before = split->extra;
    }
    return chunk * split->base + extra_before;
}

bool nd_stage_split_same(const nd_stage_split *a, const nd_stage_split *b)
{
    if (a->stages != b->stages || a->chunks != b->chunks) {
        return false;
    }
    for (int32_t chunk = 0; chunk <= a->chunks; chunk++) {
        if (nd_split_start(a, chunk) != nd_split_start(b, chunk)) {
            return false;
        }
    }
    return true;
}

static void add_chunk(const nd_cost_context *context, const nd_stage_split *split, int64_t chunk,
                      int64_t counts[ND_LAYER_KINDS_MAX])
{
    int64_t first = nd_split_start(split, chunk);
    int64_t end = nd_split_start(split, chunk + 1);
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        counts[kind] += context->layers_before[kind][end] - context->layers_before[kind][first];
    }
}

void nd_chunk_layers(const nd_cost_context *context, const nd_stage_split *split, int64_t chunk,
                     int64_t counts[ND_LAYER_KINDS_MAX])
{
    memset(counts, 0, ND_LAYER_KINDS_MAX * sizeof counts[0]);
    add_chunk(context, split, chunk, counts);
}

void nd_stage_layers(const nd_cost_context *context, const nd_stage_split *split, int32_t stage,
                     int64_t counts[ND_LAYER_KINDS_MAX])
{
    memset(counts, 0, ND_LAYER_KINDS_MAX * sizeof counts[0]);
    for (int64_t chunk = stage; chunk < split->chunks; chunk += split->stages) {
        add_chunk(context, split, chunk, counts);
    }
}

int64_t nd_stage_layers_count(const nd_stage_split *split, int32_t stage)
{
    int64_t layers = 0;
    for (int64_t chunk = stage; chunk < split->chunks; chunk += split->stages) {
        layers += nd_split_start(split, chunk + 1) - nd_split_start(split, chunk);
    }
    return layers;
}

nd_stage_runs nd_stage_runs_of(const nd_stage_split *split)
{
    nd_stage_runs runs = {.count = 0};
    for (int32_t stage = 0; stage < split->stages; stage++) {
        int32_t layers = (int32_t)nd_stage_layers_count(split, stage);
        if (runs.count > 0 && runs.runs[runs.count - 1].layers == layers) {
            runs.runs[runs.count - 1].stages++;
        } else if (runs.count < ND_STAGE_RUNS_MAX) {
            runs.runs[runs.count].layers = layers;
            runs.runs[runs.count++].stages = 1;
        } else {
            runs.more = true;
            break;
        }
    }
    return runs;
}

/* What a stage takes, and how much of it it may take: seconds of both passes of one micro-batch, and bytes. */
typedef struct load {
    double s, bytes;
} load;

typedef struct division {
    const nd_cost_context *context;
    int64_t layers, kinds;
    int32_t stages, vpp;
    load layer[ND_LAYER_KINDS_MAX]; /* bytes of what does not depend on the stage */
    double saved_bytes[ND_LAYER_KINDS_MAX];
    load embedding, head;
    double in_flight[ND_MODEL_LAYERS_MAX]; /* of each stage: a layer keeps so many micro-batches' activations */
} division;

static void weigh(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices, division *out)
{
    double bytes = context->stack->weight_bytes + context->stack->grad_bytes; /* of a parameter, before sharding */
    out->context = context;
    out->layers = context->model->layers;
    out->kinds = context->model->layer_kinds_count;
    out->stages = layout->size[ND_AXIS_PP];
    out->vpp = layout->vpp;
    out->embedding = (load){nd_part_passes_s(&prices->embedding, 0.0), bytes * prices->params_embedding};
    out->head = (load){nd_part_passes_s(&prices->head, 0.0), bytes * prices->params_head};
    for (int64_t kind = 0; kind < out->kinds; kind++) {
        out->layer[kind].s = nd_part_passes_s(&prices->layer[kind], nd_rerun_frac(layout));
        out->layer[kind].bytes = bytes * (prices->params_dense[kind] + prices->params_expert[kind]);
        out->saved_bytes[kind] = prices->saved_bytes[kind];
    }
    nd_layout full = nd_layout_single(); /* a pipeline of these stages with more micro-batches than it can hold */
    full.size[ND_AXIS_PP] = out->stages;
    full.vpp = out->vpp;
    full.grad_accum = INT32_MAX;
    for (int32_t stage = 0; stage < out->stages; stage++) {
        out->in_flight[stage] = nd_stage_in_flight(&full, stage);
    }
}

/* One layer of each kind on a stage. */
static void layer_loads(const division *d, int32_t stage, load out[ND_LAYER_KINDS_MAX])
{
    for (int64_t kind = 0; kind < d->kinds; kind++) {
        out[kind] = (load){d->layer[kind].s, d->layer[kind].bytes + d->in_flight[stage] * d->saved_bytes[kind]};
    }
}

static load ends_load(const division *d, int32_t stage)
{
    load ends = {0.0, 0.0};
    if (stage == 0) {
        ends = d->embedding;
    }
    if (stage == d->stages - 1) {
        ends.s += d->head.s;
        ends.bytes += d->head.bytes;
    }
    return ends;
}

/* What a stage has taken so far; its chunks are filled from the last to the first. */
typedef struct taken {
    load sum; /* of its layers */
    int32_t chunks;
} taken;

static double share_of(double sum, double per_share, double end)
{
    return sum * per_share + end;
}

/* Take layers before `end` into a chunk of `stage` as long as the stage's budget lets it: of the k-th chunk from the
 * end k / vpp of the budget may be gone. A chunk's first layer is its right as long as the whole budget lasts, and
 * earlier chunks need a layer each, so that none before `first_free` is there to take.
 * \param[in,out] next lowered to the budget that would have let it, where it did not
 * \return the chunk's first layer; `end` when it got none */
static int64_t fill_chunk(const division *d, int32_t stage, load budget, int64_t end, int64_t first_free, taken *t,
                          load *next)
{
    const uint8_t *kinds = d->context->model->kind_of_layer;
    load layers[ND_LAYER_KINDS_MAX];
    load ends = ends_load(d, stage);
    load sum = t->sum;
    double per_share = 1.0;
    int64_t first = end;
    layer_loads(d, stage, layers);
    for (; first > first_free; first--) {
        const load *more = &layers[kinds[first - 1]];
        load with = {sum.s + more->s, sum.bytes + more->bytes};
        double needed_s = share_of(with.s, per_share, ends.s);
        double needed_bytes = share_of(with.bytes, per_share, ends.bytes);
        if (needed_s > budget.s) {
            next->s = fmin(next->s, needed_s);
            break;
        }
        if (needed_bytes > budget.bytes) {
            next->bytes = fmin(next->bytes, needed_bytes);
            break;
        }
        sum = with;
        per_share = (double)d->vpp / (double)(t->chunks + 1);
    }
    t->sum = sum;
    t->chunks++;
    return first;
}

/* Fill chunks from the last layer to the first, each as far as its stage's budget goes, so that what is missing to full
 * stages is missing at the front, where most micro-batches are in flight. False when layers are left over or a stage
 * cannot hold what it must. Taking all that one can is never wrong: less of a stage's layers always fits, too.
 * \param[out] start first layer of each chunk; written even when false
 * \param[out] next  no budget below this one changes anything */
static bool fill(const division *d, load budget, int32_t *start, load *next)
{
    taken stages[ND_MODEL_LAYERS_MAX];
    memset(stages, 0, (size_t)d->stages * sizeof stages[0]);
    int32_t chunks = d->stages * d->vpp;
    int64_t end = d->layers;
    *next = (load){(double)INFINITY, (double)INFINITY};
    start[chunks] = (int32_t)end;
    for (int32_t chunk = chunks - 1; chunk >= 0; chunk--) {
        int32_t stage = chunk % d->stages;
        int64_t first = fill_chunk(d, stage, budget, end, chunk, &stages[stage], next);
        if (first == end) {
            return false;
        }
        start[chunk] = (int32_t)first;
        end = first;
    }
    return end == 0;
}

/* The largest loads of any stage. */
static load largest_load(const division *d, const int32_t *start)
{
    const uint8_t *kinds = d->context->model->kind_of_layer;
    load largest = {0.0, 0.0};
    for (int32_t stage = 0; stage < d->stages; stage++) {
        load layers[ND_LAYER_KINDS_MAX];
        load sum = ends_load(d, stage);
        layer_loads(d, stage, layers);
        for (int32_t chunk = stage; chunk < d->stages * d->vpp; chunk += d->stages) {
            for (int32_t layer = start[chunk]; layer < start[chunk + 1]; layer++) {
                sum.s += layers[kinds[layer]].s;
                sum.bytes += layers[kinds[layer]].bytes;
            }
        }
        largest.s = fmax(largest.s, sum.s);
        largest.bytes = fmax(largest.bytes, sum.bytes);
    }
    return largest;
}

/* No partition leaves the fullest stage less than the mean of all. */
static double least_of_fullest(const division *d, bool bytes)
{
    load sum = ends_load(d, 0);
    load last = ends_load(d, d->stages - 1);
    sum.s += last.s;
    sum.bytes += last.bytes;
    for (int64_t layer = 0; layer < d->layers; layer++) {
        int64_t kind = d->context->model->kind_of_layer[layer];
        sum.s += d->layer[kind].s;
        sum.bytes += d->layer[kind].bytes + d->saved_bytes[kind];
    }
    return (1.0 - 1e-9) * (bytes ? sum.bytes : sum.s) / (double)d->stages; /* sums in another order differ */
}

/* Lower one side of a budget as far as it can be kept, by bisection: what can be kept becomes what the filling makes of
 * it, what cannot the next budget at which the filling differs.
 * \param[in,out] best the partition that keeps the budget; stays when none keeps a lower one */
static void tighten(const division *d, load *budget, double *side, int32_t *best)
{
    bool bytes = side == &budget->bytes;
    int32_t start[ND_MODEL_LAYERS_MAX + 1];
    double impossible = least_of_fullest(d, bytes);
    double possible = *side;
    while (possible - impossible > same_load * possible) {
        load next;
        *side = impossible + (possible - impossible) / 2.0;
        if (fill(d, *budget, start, &next)) {
            load largest = largest_load(d, start);
            possible = fmin(*side, bytes ? largest.bytes : largest.s);
            memcpy(best, start, (size_t)(d->stages * d->vpp + 1) * sizeof best[0]);
        } else {
            impossible = fmax(*side, (bytes ? next.bytes : next.s) * (1.0 - same_load / 2.0));
        }
    }
    *side = possible * (1.0 + same_load);
}

/* Chunks of one stage as equal as its layers allow, where that keeps the budget: stages that meet in a round of
 * interleaved chunks wait for the longest. The embedding makes the first chunk longer, the head the last. */
static void even_out(const division *d, load budget, int32_t *start)
{
    int32_t counts[ND_MODEL_LAYERS_MAX] = {0};
    int32_t even[ND_MODEL_LAYERS_MAX + 1];
    int32_t chunks = d->stages * d->vpp;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        counts[chunk % d->stages] += start[chunk + 1] - start[chunk];
    }
    even[0] = 0;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        int32_t stage = chunk % d->stages;
        int32_t rounding = stage == 0 ? 0 : d->vpp - 1; /* up: extra layers in the earlier chunks */
        int32_t before = (counts[stage] * (chunk / d->stages) + rounding) / d->vpp;
        even[chunk + 1] = even[chunk] + (counts[stage] * (chunk / d->stages + 1) + rounding) / d->vpp - before;
    }
    load largest = largest_load(d, even);
    if (largest.s <= budget.s && largest.bytes <= budget.bytes) {
        memcpy(start, even, (size_t)(chunks + 1) * sizeof start[0]);
    }
}

void nd_split_stages(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                     nd_stage_split *out)
{
    split_evenly(context->model->layers, layout, out);
    if (layout->split == ND_SPLIT_EVEN || layout->size[ND_AXIS_PP] == 1) {
        return;
    }
    assert(out->chunks <= context->model->layers);
    division d;
    weigh(context, layout, prices, &d);
    for (int32_t chunk = 0; chunk <= out->chunks; chunk++) {
        out->start[chunk] = (int32_t)nd_split_start(out, chunk);
    }
    out->balanced = true;
    load budget = {largest_load(&d, out->start).s, (double)INFINITY};
    tighten(&d, &budget, &budget.s, out->start);
    budget.bytes = largest_load(&d, out->start).bytes;
    tighten(&d, &budget, &budget.bytes, out->start);
    if (d.vpp > 1) {
        even_out(&d, budget, out->start);
    }
}
