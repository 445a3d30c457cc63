/* The communication table of `ndplan estimate`: every collective of one step of the busiest rank. */
#include <math.h>
#include <string.h>

#include "cost_model/collectives.h"
#include "cost_model/data_parallel.h"
#include "cost_model/estimate.h"
#include "cost_model/stages.h"
#include "cost_model/time.h"

typedef struct table {
    const nd_cost_context *context;
    const nd_layout *layout;
    nd_comm_breakdown *out;
} table;

static nd_comm_line *find_line(const table *t, const char *name, nd_collective collective, nd_group_kind group,
                               double bytes)
{
    for (int32_t i = 0; i < t->out->count; i++) {
        nd_comm_line *line = &t->out->lines[i];
        if (strcmp(line->name, name) == 0 && line->collective == collective && line->group_kind == group &&
            line->bytes == bytes) {
            return line;
        }
    }
    return NULL;
}

/* Add `calls` of a collective; equal ones share a line. */
static void add_calls(const table *t, const char *name, nd_collective collective, nd_group_kind kind, double bytes,
                      double calls, double exposed_frac)
{
    nd_group group = nd_mesh_group(t->layout, kind);
    if (group.ranks <= 1 || calls <= 0.0 || bytes <= 0.0) {
        return;
    }
    nd_comm_line *line = find_line(t, name, collective, kind, bytes);
    if (line == NULL) {
        if (t->out->count == ND_COMM_LINES_MAX) {
            return; /* more distinct collectives than any layout of today has */
        }
        nd_group placed = kind == ND_GROUP_PP ? (nd_group){2, group.stride} : group;
        nd_group_placement place = nd_group_place(t->context->cluster, t->context->calibration, placed);
        line = &t->out->lines[t->out->count++];
        *line =
            (nd_comm_line){.name = name, .collective = collective, .group_kind = kind, .group = group, .bytes = bytes};
        line->call_s = nd_collective_s(&place, collective, bytes);
        line->link = nd_tier_kind_name(t->context->cluster->tiers[place.top_tier].kind);
    }
    line->calls_per_step += calls;
    line->total_s = line->calls_per_step * line->call_s;
    line->exposed_s += calls * line->call_s * exposed_frac;
}

/* The rate at which the hidden part would be all of it: traffic over the time that covers it today. */
static void find_needed_rates(nd_comm_breakdown *out)
{
    for (int32_t i = 0; i < out->count; i++) {
        nd_comm_line *line = &out->lines[i];
        double hidden = line->total_s - line->exposed_s;
        /* what is all exposed differs from its total by rounding only */
        if (line->exposed_s > 0.0 && hidden > 1e-9 * line->total_s) {
            double moved =
                line->calls_per_step * line->bytes * nd_collective_factor(line->collective, line->group.ranks);
            line->needed_bytes_per_s = moved / hidden;
        }
    }
}

static void add_part(const table *t, nd_part_kind part, int32_t kind, nd_pass pass, double times,
                     double ring_exposed_frac)
{
    const nd_cost_context *context = t->context;
    nd_op_list list;
    nd_block_ops(context->model, t->layout, context->train, &context->stack->style, part, kind, pass, &list);
    for (int32_t i = 0; i < list.count; i++) {
        const nd_op *op = &list.ops[i];
        if (op->kind != ND_OP_COLLECTIVE) {
            continue;
        }
        double exposed = 1.0 - op->overlap_frac;
        if (op->group == ND_GROUP_TP) {
            exposed *= 1.0 - context->stack->tp_overlap_frac;
        } else if (op->hidden_behind_attention) {
            exposed = ring_exposed_frac;
        }
        add_calls(t, op->name, op->collective, op->group, op->bytes, times * (double)op->repeats, exposed);
    }
}

static double ring_exposed_frac(const nd_part_price *price)
{
    double exposed = 0.0;
    double total = 0.0;
    for (int pass = 0; pass < ND_PASS_COUNT; pass++) {
        exposed += price->exposed_cp_s[pass];
        total += price->exposed_cp_s[pass] + price->hidden_s[pass];
    }
    return total > 0.0 ? exposed / total : 0.0;
}

static void add_model_parts(const table *t, const nd_block_prices *prices, int32_t stage,
                            const int64_t counts[ND_LAYER_KINDS_MAX])
{
    double m = (double)t->layout->grad_accum;
    double rerun = nd_rerun_frac(t->layout);
    for (int32_t kind = 0; kind < (int32_t)t->context->model->layer_kinds_count; kind++) {
        double times = m * (double)counts[kind];
        double ring = ring_exposed_frac(&prices->layer[kind]);
        if (counts[kind] > 0) {
            add_part(t, ND_PART_LAYER, kind, ND_PASS_FORWARD, times, ring);
            add_part(t, ND_PART_LAYER, kind, ND_PASS_BACKWARD, times, ring);
            add_part(t, ND_PART_LAYER, kind, ND_PASS_RECOMPUTE, times * rerun, ring);
        }
    }
    if (stage == 0) {
        add_part(t, ND_PART_EMBEDDING, 0, ND_PASS_FORWARD, m, 0.0);
    }
    if (stage == t->layout->size[ND_AXIS_PP] - 1) {
        add_part(t, ND_PART_HEAD, 0, ND_PASS_FORWARD, m, 0.0);
        add_part(t, ND_PART_HEAD, 0, ND_PASS_BACKWARD, m, 0.0);
    }
}

/* Parameters that are gathered and reduced together, and those of them that train. */
typedef struct param_unit {
    double dense, expert;
    double trained, trained_expert;
} param_unit;

/* What the lines of a unit are called. */
typedef struct unit_names {
    const char *gather, *scatter, *reduce, *replicas;
} unit_names;

static const unit_names layer_names = {"weight all-gather", "gradient reduce-scatter", "gradient all-reduce",
                                       "gradient all-reduce (replicas)"};
static const unit_names end_names = {"weight all-gather (ends)", "gradient reduce-scatter (ends)",
                                     "gradient all-reduce (ends)", "gradient all-reduce (replicas, ends)"};

static param_unit unit_of(const table *t, double dense, double expert, double lora_params)
{
    bool lora = t->context->train->lora_rank > 0;
    return (param_unit){dense, expert, lora ? lora_params : dense, lora ? 0.0 : expert};
}

/* `once`: how many such units there are, the calls of what happens once a step. All of it counts as exposed at first.
 */
static void add_unit(const table *t, const unit_names *names, const param_unit *unit, double gathers, double reductions,
                     double once)
{
    const nd_layout *layout = t->layout;
    double gather_bytes = nd_dp_gather_bytes(t->context);
    double reduce_bytes = nd_dp_reduce_bytes(t->context);
    if (layout->sharding == ND_SHARDING_NONE) {
        add_calls(t, names->reduce, ND_ALL_REDUCE, ND_GROUP_GRAD, reduce_bytes * unit->trained, reductions, 1.0);
        add_calls(t, "expert gradient all-reduce", ND_ALL_REDUCE, ND_GROUP_EXPERT_GRAD,
                  reduce_bytes * unit->trained_expert, reductions, 1.0);
        return;
    }
    double shard = (double)nd_layout_shard_ranks(layout);
    double expert_shard = (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks;
    add_calls(t, names->gather, ND_ALL_GATHER, ND_GROUP_SHARD, gather_bytes * unit->dense, gathers, 1.0);
    add_calls(t, names->scatter, ND_REDUCE_SCATTER, ND_GROUP_SHARD, reduce_bytes * unit->trained, reductions, 1.0);
    add_calls(t, "expert all-gather", ND_ALL_GATHER, ND_GROUP_EXPERT_SHARD, gather_bytes * unit->expert, gathers, 1.0);
    add_calls(t, "expert reduce-scatter", ND_REDUCE_SCATTER, ND_GROUP_EXPERT_SHARD, reduce_bytes * unit->trained_expert,
              reductions, 1.0);
    add_calls(t, names->replicas, ND_ALL_REDUCE, ND_GROUP_REPLICATE,
              reduce_bytes * (unit->trained / shard + unit->trained_expert / expert_shard),
              t->context->stack->fsdp ? reductions : once, 1.0);
}

/* FSDP: one unit per layer, and the embedding and head at the ends. */
static void add_units_by_layer(const table *t, const nd_block_prices *prices, double ends,
                               const int64_t counts[ND_LAYER_KINDS_MAX])
{
    const nd_layout *layout = t->layout;
    bool reshards = layout->sharding == ND_SHARDING_ZERO3;
    double m = (double)layout->grad_accum;
    double reductions = nd_reduces_once(t->context, layout) ? 1.0 : m;
    param_unit end = unit_of(t, ends, 0.0, 0.0);
    for (int64_t kind = 0; kind < t->context->model->layer_kinds_count; kind++) {
        double layers = (double)counts[kind];
        param_unit unit =
            unit_of(t, prices->params_dense[kind], prices->params_expert[kind], prices->params_lora[kind]);
        add_unit(t, &layer_names, &unit, layers * (reshards ? 2.0 * m : 1.0), layers * reductions, layers);
    }
    add_unit(t, &end_names, &end, reshards ? m : 1.0, reductions, 1.0);
}

/* Everything of the rank in one unit. */
static void add_whole(const table *t, const nd_block_prices *prices, double ends,
                      const int64_t counts[ND_LAYER_KINDS_MAX])
{
    double dense = ends;
    double expert = 0.0;
    double lora_params = 0.0;
    for (int64_t kind = 0; kind < t->context->model->layer_kinds_count; kind++) {
        double layers = (double)counts[kind];
        dense += layers * prices->params_dense[kind];
        expert += layers * prices->params_expert[kind];
        lora_params += layers * prices->params_lora[kind];
    }
    param_unit unit = unit_of(t, dense, expert, lora_params);
    double reductions = t->layout->sharding == ND_SHARDING_ZERO2 ? (double)t->layout->grad_accum : 1.0;
    add_unit(t, &layer_names, &unit, 1.0, reductions, 1.0);
}

/* Exposed time of the lines from `first` on becomes what the step time says. */
static void scale_exposed(const table *t, int32_t first, double exposed_s)
{
    double sum = 0.0;
    for (int32_t i = first; i < t->out->count; i++) {
        sum += t->out->lines[i].exposed_s;
    }
    for (int32_t i = first; i < t->out->count && sum > 0.0; i++) {
        t->out->lines[i].exposed_s *= fmin(1.0, exposed_s / sum);
    }
}

static void add_data_parallel(const table *t, const nd_block_prices *prices, int32_t stage,
                              const int64_t counts[ND_LAYER_KINDS_MAX])
{
    const nd_layout *layout = t->layout;
    int32_t first = t->out->count;
    double ends = (stage == 0 ? prices->params_embedding : 0.0) +
                  (stage == layout->size[ND_AXIS_PP] - 1 ? prices->params_head : 0.0);
    if (nd_dp_by_layer(t->context, layout)) {
        add_units_by_layer(t, prices, ends, counts);
    } else {
        add_whole(t, prices, ends, counts);
    }
    scale_exposed(t, first, nd_dp_cost_of_stage(t->context, layout, prices, stage, counts).exposed_s);
}

static void add_pipeline(const table *t)
{
    double calls = 2.0 * (double)t->layout->grad_accum * (double)t->layout->vpp;
    add_calls(t, "pipeline send", ND_SEND_RECV, ND_GROUP_PP, nd_stage_send_bytes(t->context, t->layout), calls,
              nd_stage_send_visible_frac(t->context));
}

void nd_estimate_comm(const nd_cost_context *context, const nd_layout *layout, nd_comm_breakdown *out)
{
    nd_block_prices prices;
    int64_t counts[ND_LAYER_KINDS_MAX];
    table t = {context, layout, out};
    int32_t stage = layout->size[ND_AXIS_PP] - 1; /* the head makes the last stage the busiest as a rule */
    memset(out, 0, sizeof *out);
    nd_price_blocks(context, layout, &prices);
    nd_stage_split split;
    nd_split_stages(context, layout, &prices, &split);
    if (split.balanced) { /* the last stage has as much less as the head weighs */
        nd_pipeline pipeline;
        nd_price_pipeline_split(context, layout, &prices, &split, &pipeline);
        stage = pipeline.busiest_stage;
    }
    nd_stage_layers(context, &split, stage, counts);
    add_model_parts(&t, &prices, stage, counts);
    add_data_parallel(&t, &prices, stage, counts);
    add_pipeline(&t);
    find_needed_rates(out);
}
