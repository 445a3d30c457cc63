#include "cost_model/floors.h"

#include <math.h>

#include "cost_model/memory_internal.h"
#include "cost_model/price.h"
#include "cost_model/stages.h"

/* Floors and estimates add the same terms in another order, which may differ in the last digits. */
static const double rounding_slack = 1.0 - 1e-9;

/* Weights, gradients and optimizer of the first stage under the sharding that leaves least of them. Each shrinks as
 * more ranks share it. */
static double least_states_bytes(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *holdings,
                                 int64_t data_ranks)
{
    nd_layout widest = *layout;
    widest.size[ND_AXIS_DP_REPLICATE] = 1;
    widest.size[ND_AXIS_DP_SHARD] = (int32_t)data_ranks;
    double least = HUGE_VAL;
    for (int mode = 0; mode < ND_SHARDING_COUNT; mode++) {
        widest.sharding = (nd_sharding)mode;
        nd_states states = nd_memory_states(context, &widest, holdings);
        least = fmin(least, states.weights + states.grads + states.optimizer);
    }
    return least;
}

nd_memory_floor nd_memory_floor_of(const nd_cost_context *context, const nd_layout *layout,
                                   const nd_block_prices *prices, const nd_stage_split *split, int64_t data_ranks)
{
    const nd_stack *stack = context->stack;
    const nd_calibration *calibration = context->calibration;
    int64_t counts[ND_LAYER_KINDS_MAX];
    nd_stage_layers(context, split, 0, counts);
    nd_holdings holdings = nd_memory_hold(context, layout, prices, 0, counts);
    nd_activations activations = nd_memory_activations(context, layout, prices, 0, counts);
    double spread = activations.saved + activations.logits;
    double peak =
        rounding_slack * (least_states_bytes(context, layout, &holdings, data_ranks) + spread) * stack->reserved_ratio +
        stack->context_bytes;
    nd_memory_floor floor = {
        .peak_bytes = peak, .peak_high_bytes = peak * calibration->memory_high_frac + stack->spread_high_frac * spread};
    /* buffers, which are left out here, must not lower the low end */
    if (stack->reserved_ratio * calibration->memory_low_frac >= stack->spread_low_frac) {
        floor.peak_low_bytes = peak * calibration->memory_low_frac - stack->spread_low_frac * spread;
    }
    return floor;
}

double nd_work_floor_s(const nd_cost_context *context, const nd_block_prices *prices)
{
    const nd_model_spec *model = context->model;
    double work_s = nd_part_passes_s(&prices->embedding, 0.0) + nd_part_passes_s(&prices->head, 0.0);
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        work_s += (double)model->layer_kinds[kind].layers * nd_part_passes_s(&prices->layer[kind], 0.0);
    }
    return work_s;
}

double nd_rework_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices)
{
    const nd_model_spec *model = context->model;
    double rework_s = 0.0;
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        rework_s += (double)model->layer_kinds[kind].layers * nd_part_pass_s(&prices->layer[kind], ND_PASS_RECOMPUTE);
    }
    return nd_rerun_frac(layout) * rework_s;
}

double nd_unit_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices)
{
    double inner = (double)layout->size[ND_AXIS_TP] * (double)layout->size[ND_AXIS_CP];
    double passes = (double)context->train->global_batch_seqs * inner /
                    ((double)layout->micro_batch * (double)context->cluster->gpus);
    return rounding_slack * passes * nd_work_floor_s(context, prices);
}

double nd_filling_floor_s(const nd_cost_context *context, const nd_layout *layout, double work_s)
{
    double pp = (double)layout->size[ND_AXIS_PP];
    double m = (double)layout->grad_accum;
    double share_s = work_s / pp;
    double others_s = layout->schedule == ND_SCHEDULE_ZERO_BUBBLE ? 0.0 : (work_s - share_s) / (double)layout->vpp;
    double sends_s = 0.0;
    if (layout->size[ND_AXIS_PP] > 1) {
        double send_s = nd_stage_send_s(context, layout);
        double host_s = context->stack->send_host_s;
        sends_s = m * (double)layout->vpp * (2.0 * send_s * nd_stage_send_visible_frac(context) + 4.0 * host_s) +
                  2.0 * (pp - 1.0) * (send_s + host_s);
    }
    double stragglers = context->calibration->straggler_frac * log2(fmax(1.0, (double)context->cluster->nodes));
    return rounding_slack * (m * share_s + others_s + sends_s + context->stack->host_s) * (1.0 + stragglers);
}

double nd_pipeline_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *pipeline)
{
    nd_time_breakdown time;
    nd_time_without_data_parallel(context, layout, pipeline, &time);
    return rounding_slack * time.step_s;
}
