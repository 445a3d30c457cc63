#include "cost_model/data_parallel.h"

#include <math.h>

#include "cost_model/price.h"
#include "cost_model/stages.h"

/* Gradient buckets close late and the last one has nothing to hide behind: the part of a pass that can hide traffic. */
static const double hideable_frac = 0.9;
/* The network presses at least this much on the kernels that it runs beside (see C6 of docs/MODEL.md). */
static const double throttle_floor = 0.3;

double nd_dp_gather_bytes(const nd_cost_context *context)
{
    double compute_bytes = (double)nd_dtype_compute_bytes(context->train->precision);
    if (context->train->lora_rank > 0 && context->train->base_bits < 16) {
        return (double)context->train->base_bits / 8.0;
    }
    return compute_bytes;
}

double nd_dp_reduce_bytes(const nd_cost_context *context)
{
    return context->stack->grad_reduce_bytes;
}

static double group_s(const nd_cost_context *context, const nd_layout *layout, nd_group_kind kind,
                      nd_collective collective, double bytes)
{
    if (bytes <= 0.0) {
        return 0.0;
    }
    nd_group_placement place =
        nd_group_place_for(context->cluster, context->calibration, nd_mesh_group(layout, kind), collective);
    return nd_collective_s(&place, collective, bytes);
}

/* Sharded gradients: reduce-scatter inside the shard group, then all-reduce of the shards across replicas. */
static void price_sharded(const nd_cost_context *context, const nd_layout *layout, double dense, double expert,
                          double trained_dense, double trained_expert, nd_dp_unit *unit)
{
    double gather = nd_dp_gather_bytes(context);
    double reduce = nd_dp_reduce_bytes(context);
    double shard = (double)nd_layout_shard_ranks(layout);
    double expert_shard = (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks;
    unit->gather_s = group_s(context, layout, ND_GROUP_SHARD, ND_ALL_GATHER, gather * dense);
    unit->reduce_s = group_s(context, layout, ND_GROUP_SHARD, ND_REDUCE_SCATTER, reduce * trained_dense);
    unit->expert_gather_s = group_s(context, layout, ND_GROUP_EXPERT_SHARD, ND_ALL_GATHER, gather * expert);
    unit->expert_reduce_s = group_s(context, layout, ND_GROUP_EXPERT_SHARD, ND_REDUCE_SCATTER, reduce * trained_expert);
    if (layout->size[ND_AXIS_DP_REPLICATE] > 1) {
        unit->replicate_s = group_s(context, layout, ND_GROUP_REPLICATE, ND_ALL_REDUCE,
                                    reduce * (trained_dense / shard + trained_expert / expert_shard));
    }
}

nd_dp_unit nd_dp_price(const nd_cost_context *context, const nd_layout *layout, double dense, double expert,
                       double trained_dense, double trained_expert)
{
    nd_dp_unit unit = {0};
    if (layout->sharding == ND_SHARDING_NONE) {
        double reduce = nd_dp_reduce_bytes(context);
        unit.reduce_s = group_s(context, layout, ND_GROUP_GRAD, ND_ALL_REDUCE, reduce * trained_dense);
        unit.expert_reduce_s = group_s(context, layout, ND_GROUP_EXPERT_GRAD, ND_ALL_REDUCE, reduce * trained_expert);
        return unit;
    }
    price_sharded(context, layout, dense, expert, trained_dense, trained_expert, &unit);
    return unit;
}

/* A collective throttled by the network moves fewer bytes a second through SMs and HBM. */
static double throttle(const nd_cost_context *context, const nd_layout *layout, nd_group_kind kind)
{
    nd_group group = nd_mesh_group(layout, kind);
    nd_group_placement place = nd_group_place_for(context->cluster, context->calibration, group, ND_ALL_GATHER);
    double full =
        context->cluster->tiers[0].bytes_per_s * context->calibration->collective[ND_ALL_GATHER].efficiency8_frac;
    if (group.ranks <= 1 || full <= 0.0) {
        return 1.0;
    }
    return fmin(1.0, fmax(throttle_floor, nd_collective_rate(&place, ND_ALL_GATHER) / full));
}

/* How hard each part of the traffic presses; prepared once per layout. */
typedef struct pressure {
    double shard, expert, replicate;
} pressure;

static pressure press(const nd_cost_context *context, const nd_layout *layout)
{
    bool whole = layout->sharding == ND_SHARDING_NONE;
    bool experts = context->model->experts > 0;
    pressure p = {1.0, 1.0, 1.0};
    p.shard = throttle(context, layout, whole ? ND_GROUP_GRAD : ND_GROUP_SHARD);
    if (experts) {
        p.expert = throttle(context, layout, whole ? ND_GROUP_EXPERT_GRAD : ND_GROUP_EXPERT_SHARD);
    }
    if (!whole && layout->size[ND_AXIS_DP_REPLICATE] > 1) {
        p.replicate = throttle(context, layout, ND_GROUP_REPLICATE);
    }
    return p;
}

/* Seconds of hidden traffic of which `gather` and `reduce` are the parts, in proportion to the whole. */
static void add_hidden(const pressure *p, const nd_dp_unit *unit, double gathers, double reductions, double hidden,
                       nd_dp_cost *cost)
{
    double dense = gathers * unit->gather_s + reductions * unit->reduce_s;
    double expert = gathers * unit->expert_gather_s + reductions * unit->expert_reduce_s;
    double replicate = reductions * unit->replicate_s;
    double total = dense + expert + replicate;
    if (total <= 0.0) {
        return;
    }
    cost->hidden_s += hidden;
    cost->pressure_s += hidden * (p->shard * dense + p->expert * expert + p->replicate * replicate) / total;
}

/* Seconds that one unit takes in the backward pass, re-run forward included. */
static double backward_s(const nd_layout *layout, const nd_part_price *price)
{
    double frac = nd_rerun_frac(layout);
    return nd_part_compute_s(price, ND_PASS_BACKWARD) + frac * nd_part_compute_s(price, ND_PASS_RECOMPUTE);
}

/* FSDP2 averages across replicas in every micro-batch that reduces; other stacks add up their shards and do it once.
 * The number by which a per-reduction cost is to be divided. */
static double replica_passes(const nd_cost_context *context, double reductions)
{
    return context->stack->fsdp ? 1.0 : reductions;
}

static const nd_dp_pass no_pass = {0.0, 0.0};

/* `times` units of traffic of which a cover hides as much as it is long. */
static nd_dp_pass pass_of(double times, double traffic_s, double cover_s)
{
    double hidden_s = fmin(traffic_s, cover_s);
    return (nd_dp_pass){times * (traffic_s - hidden_s), times * hidden_s};
}

static void add_pass(nd_dp_pass *sum, nd_dp_pass more)
{
    sum->exposed_s += more.exposed_s;
    sum->hidden_s += more.hidden_s;
}

/* Layer by layer: the next unit is gathered while this one computes, the last one's gradient is reduced meanwhile. */
static void add_fsdp_layer(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           const pressure *p, int64_t kind, double layers, nd_dp_cost *cost)
{
    bool lora = context->train->lora_rank > 0;
    bool reshards = layout->sharding == ND_SHARDING_ZERO3;
    double dense = prices->params_dense[kind];
    double expert = prices->params_expert[kind];
    nd_dp_unit unit =
        nd_dp_price(context, layout, dense, expert, lora ? prices->params_lora[kind] : dense, lora ? 0.0 : expert);
    double forward = nd_part_compute_s(&prices->layer[kind], ND_PASS_FORWARD);
    double backward = backward_s(layout, &prices->layer[kind]);
    double micro_batches = (double)layout->grad_accum;
    double forwards = reshards ? micro_batches : 1.0; /* forward passes that gather */
    double reductions = nd_reduces_once(context, layout) ? 1.0 : micro_batches;
    double plain = micro_batches - reductions; /* backward passes that gather but do not reduce */
    unit.replicate_s /= replica_passes(context, reductions);
    double gather = unit.gather_s + unit.expert_gather_s;
    double back_gather = reshards ? gather : 0.0;
    double back_traffic = back_gather + unit.reduce_s + unit.expert_reduce_s + unit.replicate_s;
    double hidden = forwards * fmin(gather, forward) + plain * fmin(back_gather, backward) +
                    reductions * fmin(back_traffic, backward);
    double total = forwards * gather + plain * back_gather + reductions * back_traffic;
    cost->exposed_s += layers * (total - hidden);
    nd_dp_pass gathers = pass_of(layers, gather, forward);
    nd_dp_pass reduces = pass_of(layers, back_traffic, backward);
    add_pass(&cost->first_forward, gathers);
    add_pass(&cost->forward, reshards ? gathers : no_pass);
    add_pass(&cost->backward, reductions > 1.0 ? reduces : pass_of(layers, back_gather, backward));
    add_pass(&cost->last_backward, reduces);
    add_hidden(p, &unit, forwards + (reshards ? micro_batches : 0.0), reductions, layers * hidden, cost);
}

/* The first gather and the last reduction of a pass have no neighbour to hide behind; embedding and head are units of
 * their own at the ends. */
static void add_fsdp_ends(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                          int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX], nd_dp_cost *cost)
{
    bool lora = context->train->lora_rank > 0;
    double micro_batches = (double)layout->grad_accum;
    double gathers = layout->sharding == ND_SHARDING_ZERO3 ? micro_batches : 1.0;
    double reductions = nd_reduces_once(context, layout) ? 1.0 : micro_batches;
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    int64_t kind = 0;
    while (kind + 1 < context->model->layer_kinds_count && counts[kind] == 0) {
        kind++;
    }
    double end = fmax(stage == 0 ? prices->params_embedding : 0.0,
                      stage == last ? fmax(prices->params_head, prices->params_embedding) : 0.0);
    double dense = prices->params_dense[kind] + end;
    double expert = prices->params_expert[kind];
    nd_dp_unit unit =
        nd_dp_price(context, layout, dense, expert, lora ? prices->params_lora[kind] : dense, lora ? 0.0 : expert);
    unit.replicate_s /= replica_passes(context, reductions);
    double gather = unit.gather_s + unit.expert_gather_s;
    double reduce = unit.reduce_s + unit.expert_reduce_s + unit.replicate_s;
    cost->exposed_s += gathers * gather + reductions * reduce;
    add_pass(&cost->first_forward, pass_of(1.0, gather, 0.0));
    add_pass(&cost->forward, gathers > 1.0 ? pass_of(1.0, gather, 0.0) : no_pass);
    add_pass(&cost->backward, reductions > 1.0 ? pass_of(1.0, reduce, 0.0) : no_pass);
    add_pass(&cost->last_backward, pass_of(1.0, reduce, 0.0));
}

/* Whole gradients once a step (ZeRO-2 sums into shards every micro-batch), behind the last backward pass and the next
 * forward pass; interleaved stages finish chunk by chunk, so only the last chunk's work is left to hide behind. */
static void add_whole(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                      const pressure *p, int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX], nd_dp_cost *cost)
{
    bool lora = context->train->lora_rank > 0;
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    double dense = (stage == 0 ? prices->params_embedding : 0.0) + (stage == last ? prices->params_head : 0.0);
    double expert = 0.0;
    double trained = 0.0;
    double forward = 0.0;
    double backward = 0.0;
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        double layers = (double)counts[kind];
        dense += layers * prices->params_dense[kind];
        expert += layers * prices->params_expert[kind];
        trained += layers * prices->params_lora[kind];
        forward += layers * nd_part_compute_s(&prices->layer[kind], ND_PASS_FORWARD);
        backward += layers * backward_s(layout, &prices->layer[kind]);
    }
    nd_dp_unit unit = nd_dp_price(context, layout, dense, expert, lora ? trained : dense, lora ? 0.0 : expert);
    bool gathers_weights = layout->sharding == ND_SHARDING_ZERO1 || layout->sharding == ND_SHARDING_ZERO2;
    double reductions = layout->sharding == ND_SHARDING_ZERO2 ? (double)layout->grad_accum : 1.0;
    double reduce = unit.reduce_s + unit.expert_reduce_s + unit.replicate_s / reductions;
    double gather = gathers_weights ? unit.gather_s + unit.expert_gather_s : 0.0;
    double cover = context->stack->overlaps_dp ? hideable_frac / (double)layout->vpp : 0.0;
    double hidden = reductions * fmin(reduce, cover * backward) + fmin(gather, cover * forward);
    cost->exposed_s += reductions * reduce + gather - hidden;
    nd_dp_pass reduces = pass_of(1.0, reduce, cover * backward);
    add_pass(&cost->first_forward, pass_of(1.0, gather, cover * forward));
    add_pass(&cost->backward, reductions > 1.0 ? reduces : no_pass);
    add_pass(&cost->last_backward, reduces);
    unit.replicate_s /= reductions;
    add_hidden(p, &unit, gathers_weights ? 1.0 : 0.0, reductions, hidden, cost);
}

bool nd_dp_by_layer(const nd_cost_context *context, const nd_layout *layout)
{
    return layout->sharding == ND_SHARDING_ZERO3 || (context->stack->fsdp && layout->sharding == ND_SHARDING_ZERO2);
}

nd_dp_cost nd_dp_cost_of_stage(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                               int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX])
{
    nd_dp_cost cost = {.exposed_s = 0.0};
    nd_group_kind widest = layout->sharding == ND_SHARDING_NONE ? ND_GROUP_GRAD : ND_GROUP_SHARD;
    if (nd_mesh_group(layout, widest).ranks <= 1 && layout->size[ND_AXIS_DP_REPLICATE] <= 1) {
        return cost;
    }
    pressure p = press(context, layout);
    if (nd_dp_by_layer(context, layout)) {
        for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
            if (counts[kind] > 0) {
                add_fsdp_layer(context, layout, prices, &p, kind, (double)counts[kind], &cost);
            }
        }
        add_fsdp_ends(context, layout, prices, stage, counts, &cost);
    } else {
        add_whole(context, layout, prices, &p, stage, counts, &cost);
    }
    return cost;
}
