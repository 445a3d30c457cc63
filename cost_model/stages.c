#include "cost_model/stages.h"

#include <string.h>

/* Share of a pipeline transfer that stays visible when sends overlap compute. */
static const double overlapped_send_frac = 0.3;

/* First layer of chunk `chunk` of `chunks`. The remainder goes to the chunks in the middle. */
static int64_t chunk_start(int64_t layers, int64_t chunks, int64_t chunk)
{
    int64_t base = layers / chunks;
    int64_t extra = layers % chunks;
    int64_t first_extra = (chunks - extra) / 2;
    int64_t extra_before = chunk - first_extra;
    if (extra_before < 0) {
        extra_before = 0;
    } else if (extra_before > extra) {
        extra_before = extra;
    }
    return chunk * base + extra_before;
}

void nd_stage_layers(const nd_cost_context *context, const nd_layout *layout, int32_t stage,
                     int64_t counts[ND_LAYER_KINDS_MAX])
{
    const nd_model_spec *model = context->model;
    int64_t pp = layout->size[ND_AXIS_PP];
    int64_t chunks = pp * layout->vpp;
    memset(counts, 0, ND_LAYER_KINDS_MAX * sizeof counts[0]);
    for (int64_t chunk = stage; chunk < chunks; chunk += pp) {
        int64_t first = chunk_start(model->layers, chunks, chunk);
        int64_t end = chunk_start(model->layers, chunks, chunk + 1);
        for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
            counts[kind] += context->layers_before[kind][end] - context->layers_before[kind][first];
        }
    }
}

double nd_stage_in_flight(const nd_layout *layout, int32_t stage)
{
    double pp = (double)layout->size[ND_AXIS_PP];
    double micro_batches = (double)layout->grad_accum;
    if (layout->size[ND_AXIS_PP] == 1) {
        return 1.0;
    }
    double warm = pp - (double)stage;
    if (layout->vpp > 1) {
        /* interleaved 1F1B: 2 (pp - stage - 1) + (vpp - 1) pp warm-up chunks and the one in work */
        double vpp = (double)layout->vpp;
        warm = (2.0 * (pp - (double)stage - 1.0) + (vpp - 1.0) * pp + 1.0) / vpp;
    }
    return warm < micro_batches ? warm : micro_batches;
}

double nd_recomputed_frac(const nd_layout *layout)
{
    switch (layout->recompute) {
    case ND_RECOMPUTE_FULL:
        return 1.0;
    case ND_RECOMPUTE_EVERY:
        return 1.0 / (double)layout->recompute_every;
    case ND_RECOMPUTE_NONE:
    case ND_RECOMPUTE_SELECTIVE:
    case ND_RECOMPUTE_COUNT:
        break;
    }
    return 0.0;
}

double nd_rerun_frac(const nd_layout *layout)
{
    return layout->recompute == ND_RECOMPUTE_SELECTIVE ? 1.0 : nd_recomputed_frac(layout);
}

double nd_stage_send_bytes(const nd_cost_context *context, const nd_layout *layout)
{
    double split = layout->sequence_parallel ? (double)layout->size[ND_AXIS_TP] : 1.0;
    return nd_block_tokens(layout, context->train) * (double)context->model->hidden *
           (double)nd_dtype_compute_bytes(context->train->precision) / split;
}

double nd_stage_send_visible_frac(const nd_cost_context *context)
{
    return context->stack->overlaps_pp ? overlapped_send_frac : 1.0;
}

bool nd_reduces_once(const nd_cost_context *context, const nd_layout *layout)
{
    return context->stack->fsdp && layout->sharding >= ND_SHARDING_ZERO2 && layout->size[ND_AXIS_PP] > 1 &&
           layout->grad_accum > 1;
}

/* Add `stage` unless it is there or no stage of the pipeline. */
static int32_t add_stage(int32_t stages[8], int32_t count, int32_t pp, int32_t stage)
{
    for (int32_t i = 0; i < count; i++) {
        if (stages[i] == stage) {
            return count;
        }
    }
    if (stage >= pp) {
        return count;
    }
    stages[count] = stage;
    return count + 1;
}

static int32_t first_stage_with_extra_layer(const nd_cost_context *context, int32_t pp)
{
    int64_t extra = context->model->layers % pp;
    return extra == 0 ? 0 : (int32_t)((pp - extra) / 2);
}

int32_t nd_stage_candidates(const nd_cost_context *context, const nd_layout *layout, int32_t stages[8])
{
    int32_t pp = layout->size[ND_AXIS_PP];
    int32_t count = 0;
    if (context->model->layer_kinds_count == 1) {
        const int32_t picks[] = {0, 1, first_stage_with_extra_layer(context, pp), pp - 1};
        for (size_t i = 0; i < sizeof picks / sizeof picks[0]; i++) {
            count = add_stage(stages, count, pp, picks[i]);
        }
        return count;
    }
    const int32_t picks[] = {0, 1, 2, pp / 4, pp / 2, 3 * pp / 4, pp - 2, pp - 1};
    for (int32_t i = 0; i < 8; i++) {
        stages[i] = pp <= 8 ? i : picks[i];
    }
    return pp <= 8 ? pp : 8;
}
