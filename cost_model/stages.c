#include "cost_model/stages.h"

#include <string.h>

/* Share of a pipeline transfer that stays visible when sends overlap compute. */
static const double overlapped_send_frac = 0.3;

double nd_stage_in_flight(const nd_layout *layout, int32_t stage)
{
    double pp = (double)layout->size[ND_AXIS_PP];
    double micro_batches = (double)layout->grad_accum;
    if (layout->size[ND_AXIS_PP] == 1) {
        return 1.0;
    }
    if (layout->schedule == ND_SCHEDULE_GPIPE) {
        return micro_batches;
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
static int32_t add_stage(int32_t stages[ND_STAGE_CANDIDATES_MAX], int32_t count, int32_t pp, int32_t stage)
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

/* Of stages with the same layers the first has most in flight; the ends hold more. */
static int32_t unlike_stages(const nd_cost_context *context, const nd_stage_split *split,
                             int32_t stages[ND_STAGE_CANDIDATES_MAX])
{
    int64_t seen[ND_STAGE_CANDIDATES_MAX][ND_LAYER_KINDS_MAX];
    int32_t count = 0;
    stages[count++] = 0;
    for (int32_t stage = 1; stage < split->stages - 1 && count < ND_STAGE_CANDIDATES_MAX - 1; stage++) {
        nd_stage_layers(context, split, stage, seen[count]);
        int32_t i = 1;
        while (i < count && memcmp(seen[i], seen[count], sizeof seen[0]) != 0) {
            i++;
        }
        if (i == count) {
            stages[count++] = stage;
        }
    }
    stages[count++] = split->stages - 1;
    return count;
}

int32_t nd_stage_candidates(const nd_cost_context *context, const nd_stage_split *split,
                            int32_t stages[ND_STAGE_CANDIDATES_MAX])
{
    int32_t pp = split->stages;
    if (split->balanced && pp > 1) {
        return unlike_stages(context, split, stages);
    }
    if (context->model->layer_kinds_count == 1) {
        int32_t count = 0;
        int64_t extra = context->model->layers % pp;
        int32_t with_extra_layer = extra == 0 ? 0 : (int32_t)((pp - extra) / 2);
        const int32_t picks[] = {0, 1, with_extra_layer, pp - 1};
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
