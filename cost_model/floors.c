#include "cost_model/floors.h"

#include <assert.h>
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

/* Bytes of weights, gradients and optimizer, and of activations with the loss. */
typedef struct held {
    double states, activations;
} held;

typedef struct pipeline_load {
    int64_t kinds;
    int64_t layers[ND_LAYER_KINDS_MAX];
    held layer[ND_LAYER_KINDS_MAX]; /* activations of one micro-batch */
    held first, last;               /* beside their layers */
    double in_flight_first, in_flight_last;
    double room_first, room_last, room_sum; /* layers in a byte: 1 / (S + f A) of both ends, of all stages */
} pipeline_load;

/* What a share of states and one of activations count in one of the bounds. */
typedef struct measure {
    double states, activations;
} measure;

/* Embedding or head with what the stage holds whatever its layers are. */
static held end_of(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                   int64_t data_ranks, int32_t stage)
{
    const int64_t none[ND_LAYER_KINDS_MAX] = {0};
    nd_holdings holdings = nd_memory_hold(context, layout, prices, stage, none);
    nd_activations activations = nd_memory_activations(context, layout, prices, stage, none);
    return (held){least_states_bytes(context, layout, &holdings, data_ranks), activations.saved + activations.logits};
}

/* A layer of a stage between the ends. */
static held layer_of(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                     int64_t data_ranks, int64_t kind)
{
    int64_t one[ND_LAYER_KINDS_MAX] = {0};
    nd_layout deep = *layout;
    deep.size[ND_AXIS_PP] = 3;
    one[kind] = 1;
    nd_holdings holdings = nd_memory_hold(context, &deep, prices, 1, one);
    double saved = nd_memory_saved_per_layer(layout, prices, kind) * (1.0 + context->stack->fragmentation_frac);
    return (held){least_states_bytes(context, layout, &holdings, data_ranks), saved};
}

/* Room of the stages for layers of the mean kind. Which one is taken as the mean changes how close the bound is, not
 * that it is one. */
static void measure_room(const nd_layout *layout, int64_t layers, pipeline_load *load)
{
    held mean = {0.0, 0.0};
    for (int64_t kind = 0; kind < load->kinds; kind++) {
        double part = (double)load->layers[kind] / (double)layers;
        mean.states += part * load->layer[kind].states;
        mean.activations += part * load->layer[kind].activations;
    }
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    load->in_flight_first = nd_stage_in_flight(layout, 0);
    load->in_flight_last = nd_stage_in_flight(layout, last);
    load->room_first = 1.0 / (mean.states + load->in_flight_first * mean.activations);
    load->room_last = 1.0 / (mean.states + load->in_flight_last * mean.activations);
    load->room_sum = load->room_first + load->room_last;
    for (int32_t stage = 1; stage < last; stage++) {
        load->room_sum += 1.0 / (mean.states + nd_stage_in_flight(layout, stage) * mean.activations);
    }
}

static pipeline_load weigh(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           int64_t data_ranks)
{
    const nd_model_spec *model = context->model;
    pipeline_load load = {.kinds = model->layer_kinds_count};
    for (int64_t kind = 0; kind < load.kinds; kind++) {
        load.layers[kind] = model->layer_kinds[kind].layers;
        load.layer[kind] = layer_of(context, layout, prices, data_ranks, kind);
    }
    load.first = end_of(context, layout, prices, data_ranks, 0);
    load.last = end_of(context, layout, prices, data_ranks, layout->size[ND_AXIS_PP] - 1);
    measure_room(layout, model->layers, &load);
    return load;
}

static double measured(const measure *m, const held *bytes, double in_flight)
{
    return m->states * bytes->states + m->activations * in_flight * bytes->activations;
}

/* What the fullest stage holds at least: the mean over all stages, each weighed by its room. A kind's share of that is
 * least on the first or the last stage, since (a S + b f A) / (S' + f A') rises or falls with f all along. */
static double fullest_bytes(const pipeline_load *load, const measure *m)
{
    double sum = load->room_first * measured(m, &load->first, 1.0) + load->room_last * measured(m, &load->last, 1.0);
    for (int64_t kind = 0; kind < load->kinds; kind++) {
        double first = load->room_first * measured(m, &load->layer[kind], load->in_flight_first);
        double last = load->room_last * measured(m, &load->layer[kind], load->in_flight_last);
        sum += (double)load->layers[kind] * fmin(first, last);
    }
    return rounding_slack * sum / load->room_sum;
}

/* Whether nd_stage_candidates() misses no stage that could be the fullest of a balanced split: of unlike stages between
 * the ends it takes 14, and 15 have at least so many layers that the others would not get one each. */
static bool sees_balanced(const nd_model_spec *model, int32_t pp)
{
    /* of one kind 1 + 2 + ... + 15; of two kinds two stages can have one layer, three two, four three, ... */
    static const int64_t least_layers[ND_LAYER_KINDS_MAX] = {120, 45, 33, 27};
    enum { UNLIKE = 15 };
    static_assert(UNLIKE == ND_STAGE_CANDIDATES_MAX - 1, "stages between the ends, one more than are looked at");
    return pp <= ND_STAGE_CANDIDATES_MAX || model->layers < least_layers[model->layer_kinds_count - 1] + pp - UNLIKE;
}

/* The same of an even one, whose chunks are equal when there are several to a stage (else it is not legal). */
static bool sees_even(const nd_model_spec *model, int32_t pp)
{
    enum { EVERY_STAGE_UP_TO = 8 };
    return model->layer_kinds_count == 1 || pp <= EVERY_STAGE_UP_TO;
}

nd_memory_floor nd_memory_floor_any_split(const nd_cost_context *context, const nd_layout *layout,
                                          const nd_block_prices *prices, int64_t data_ranks)
{
    const nd_stack *stack = context->stack;
    const nd_calibration *calibration = context->calibration;
    nd_memory_floor floor = {0.0, 0.0, 0.0};
    int32_t pp = layout->size[ND_AXIS_PP];
    bool sees =
        sees_balanced(context->model, pp) && (layout->split == ND_SPLIT_BALANCED || sees_even(context->model, pp));
    if (pp == 1 || !sees || context->train->lora_rank > 0 || layout->offload == ND_OFFLOAD_ACTIVATIONS) {
        return floor;
    }
    pipeline_load load = weigh(context, layout, prices, data_ranks);
    double ratio = stack->reserved_ratio;
    double low = calibration->memory_low_frac;
    double high = calibration->memory_high_frac;
    measure peak = {ratio, ratio};
    measure peak_low = {ratio * low, ratio * low - stack->spread_low_frac};
    measure peak_high = {ratio * high, ratio * high + stack->spread_high_frac};
    floor.peak_bytes = fullest_bytes(&load, &peak) + stack->context_bytes;
    floor.peak_high_bytes = fullest_bytes(&load, &peak_high) + stack->context_bytes * high;
    if (peak_low.activations >= 0.0) { /* buffers, which are left out here, must not lower the low end */
        floor.peak_low_bytes = fullest_bytes(&load, &peak_low) + stack->context_bytes * low;
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
