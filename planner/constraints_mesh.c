/* Rules of what happens between layers and samples: pipeline stages, data parallelism, sharding and the batch. */
#include <inttypes.h>
#include <string.h>

#include "core/text.h"
#include "frameworks/refusal.h"
#include "planner/constraints_internal.h"

static bool legal_vpp(const nd_cost_context *context, const nd_layout *layout, int64_t vpp)
{
    return context->model->layers % (layout->size[ND_AXIS_PP] * vpp) == 0;
}

static bool check_pp(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    int64_t layers = context->model->layers;
    int32_t pp = layout->size[ND_AXIS_PP];
    if (pp > 1 && !context->stack->axis[ND_AXIS_PP]) {
        nd_refuse(rule, refusal, "stack-pp", "%s has no pipeline parallelism: pp=%" PRId32, context->stack->name, pp);
        return nd_refuse_nearest(refusal, "pp=1");
    }
    if (pp > layers) {
        nd_refuse(rule, refusal, "pp-within-layers", "pp=%" PRId32 " stages need a layer each, and %s has %" PRId64, pp,
                  context->model->name, layers);
        int64_t nearest = layers;
        while (nearest > 1 && context->cluster->gpus % nearest != 0) {
            nearest--;
        }
        return nd_refuse_nearest(refusal, "pp=%" PRId64, nearest);
    }
    return true;
}

static bool check_vpp(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    int64_t layers = context->model->layers;
    int32_t pp = layout->size[ND_AXIS_PP];
    if (layout->vpp == 1) {
        return true;
    }
    if (pp == 1) {
        nd_refuse(rule, refusal, "vpp-needs-pp", "vpp=%" PRId32 " interleaves pipeline stages, and pp is 1",
                  layout->vpp);
        return nd_refuse_nearest(refusal, "vpp=1 or pp=2");
    }
    int64_t chunks = (int64_t)pp * layout->vpp;
    if (layout->split == ND_SPLIT_BALANCED) {
        if (chunks <= layers) {
            return true;
        }
        nd_refuse(rule, refusal, "vpp-within-layers",
                  "pp=%" PRId32 " x vpp=%" PRId32 " = %" PRId64 " chunks need a layer each, and %s has %" PRId64, pp,
                  layout->vpp, chunks, context->model->name, layers);
        return nd_refuse_nearest(refusal, "vpp=%" PRId64, layers / pp);
    }
    if (layers % chunks != 0) {
        nd_refuse(rule, refusal, "vpp-divides-layers",
                  "pp=%" PRId32 " x vpp=%" PRId32 " = %" PRId64 " equal chunks do not divide the %" PRId64
                  " layers of %s",
                  pp, layout->vpp, chunks, layers, context->model->name);
        if (layers % pp != 0) {
            return nd_refuse_nearest(refusal, "vpp=1");
        }
        return nd_nearest_degree(context, layout, "vpp", layout->vpp, 0, layers / pp, legal_vpp, refusal);
    }
    return true;
}

static bool check_schedule(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                           nd_refusal *refusal)
{
    int32_t pp = layout->size[ND_AXIS_PP];
    bool interleaved = layout->schedule == ND_SCHEDULE_INTERLEAVED;
    if (layout->schedule == ND_SCHEDULE_ZERO_BUBBLE && pp == 1) {
        nd_refuse(rule, refusal, "zero-bubble-needs-pp", "schedule=zero_bubble fills a pipeline's bubble, and pp is 1");
        return nd_refuse_nearest(refusal, "schedule=1f1b or pp=2");
    }
    if (layout->schedule == ND_SCHEDULE_GPIPE && pp == 1) {
        nd_refuse(rule, refusal, "gpipe-needs-pp", "schedule=gpipe orders the passes of a pipeline, and pp is 1");
        return nd_refuse_nearest(refusal, "schedule=1f1b or pp=2");
    }
    if (interleaved != (layout->vpp > 1)) {
        nd_refuse(rule, refusal, "interleaved-is-vpp",
                  "vpp > 1 and schedule=interleaved go together: got vpp=%" PRId32 ", schedule=%s", layout->vpp,
                  nd_schedule_name(layout->schedule));
        return nd_refuse_nearest(refusal, "%s",
                                 interleaved ? "schedule=1f1b or vpp=2" : "schedule=interleaved or vpp=1");
    }
    if (pp > 1 && !nd_mask_has(context->stack->schedules, (int)layout->schedule)) {
        nd_refuse(rule, refusal, "stack-schedule", "%s has no schedule=%s", context->stack->name,
                  nd_schedule_name(layout->schedule));
        return nd_refuse_nearest(refusal, "schedule=1f1b");
    }
    return true;
}

static bool check_split(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    if (layout->split == ND_SPLIT_EVEN) {
        return true;
    }
    if (layout->size[ND_AXIS_PP] == 1) {
        nd_refuse(rule, refusal, "split-needs-pp", "split=%s divides layers over pipeline stages, and pp is 1",
                  nd_split_name(layout->split));
        return nd_refuse_nearest(refusal, "split=even or pp=2");
    }
    if (!nd_mask_has(context->stack->splits, (int)layout->split)) {
        nd_refuse(rule, refusal, "stack-split", "%s cannot be told which layers a stage holds: no split=%s",
                  context->stack->name, nd_split_name(layout->split));
        return nd_refuse_nearest(refusal, "split=even");
    }
    return true;
}

bool nd_rules_pipeline(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    return check_pp(context, layout, rule, refusal) && check_vpp(context, layout, rule, refusal) &&
           check_schedule(context, layout, rule, refusal) && check_split(context, layout, rule, refusal);
}

static int64_t expert_ranks(const nd_layout *layout)
{
    return (int64_t)layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] * layout->size[ND_AXIS_TP];
}

static bool legal_ep_cut(const nd_cost_context *context, const nd_layout *layout, int64_t ep)
{
    return expert_ranks(layout) % ep == 0 && context->model->experts % ep == 0;
}

static bool check_axes(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    const nd_axis axes[] = {ND_AXIS_DP_REPLICATE, ND_AXIS_DP_SHARD};
    static const char *const ids[] = {"stack-dp-replicate", "stack-dp-shard"};
    for (int i = 0; i < 2; i++) {
        if (layout->size[axes[i]] > 1 && !context->stack->axis[axes[i]]) {
            nd_refuse(rule, refusal, ids[i], "%s cannot use %s=%" PRId32, context->stack->name, nd_axis_name(axes[i]),
                      layout->size[axes[i]]);
            return nd_refuse_nearest(refusal, "%s=1", nd_axis_name(axes[i]));
        }
    }
    if (layout->ep > 1 && expert_ranks(layout) % layout->ep != 0) {
        nd_refuse(rule, refusal, "ep-divides-mesh",
                  "ep=%" PRId32 " re-cuts dp_shard %" PRId32 " x cp %" PRId32 " x tp %" PRId32 " = %" PRId64
                  " ranks, which it does not divide",
                  layout->ep, layout->size[ND_AXIS_DP_SHARD], layout->size[ND_AXIS_CP], layout->size[ND_AXIS_TP],
                  expert_ranks(layout));
        return nd_nearest_degree(context, layout, "ep", layout->ep, 0, context->model->experts, legal_ep_cut, refusal);
    }
    return true;
}

static bool check_sharding(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                           nd_refusal *refusal)
{
    const nd_stack *stack = context->stack;
    int32_t shard = layout->size[ND_AXIS_DP_SHARD];
    int32_t pp = layout->size[ND_AXIS_PP];
    bool wide = shard > 1 || layout->size[ND_AXIS_CP] > 1;
    if (layout->sharding == ND_SHARDING_NONE && shard > 1) {
        nd_refuse(rule, refusal, "sharding-none", "dp_shard=%" PRId32 " must shard something, and sharding is none",
                  shard);
        return nd_refuse_nearest(refusal, "sharding=%s or dp_replicate for dp_shard",
                                 nd_sharding_name(stack->default_sharding));
    }
    if (wide && !nd_mask_has(stack->shardings, (int)layout->sharding)) {
        nd_refuse(rule, refusal, "stack-sharding", "%s has no sharding=%s", stack->name,
                  nd_sharding_name(layout->sharding));
        return nd_refuse_nearest(refusal, "sharding=%s", nd_sharding_name(stack->default_sharding));
    }
    /* DeepSpeed's pipeline engine accumulates whole gradients and refuses stages 2 and 3. */
    if (wide && pp > 1 && layout->sharding >= ND_SHARDING_ZERO2 && strcmp(stack->name, "deepspeed") == 0) {
        nd_refuse(rule, refusal, "pp-sharding", "deepspeed runs pp=%" PRId32 " with sharding up to zero1, got %s", pp,
                  nd_sharding_name(layout->sharding));
        return nd_refuse_nearest(refusal, "sharding=zero1 or pp=1");
    }
    return true;
}

/* Sequences that one accumulation step of all data ranks takes, capped instead of overflowing. */
static int64_t batch_unit(const nd_layout *layout)
{
    int64_t ranks = nd_layout_data_ranks(layout);
    return ranks > INT64_MAX / layout->micro_batch ? INT64_MAX : ranks * layout->micro_batch;
}

static bool refuse_batch(const nd_layout *layout, int64_t global, const char **rule, nd_refusal *refusal)
{
    int64_t unit = batch_unit(layout);
    int64_t accum = layout->grad_accum;
    int64_t below = global / unit * unit;
    if (below == global) {
        nd_refuse(rule, refusal, "global-batch",
                  "micro_batch %" PRId32 " x grad_accum %" PRId64 " x %" PRId64
                  " data ranks is not the global batch of %" PRId64,
                  layout->micro_batch, accum, nd_layout_data_ranks(layout), global);
        return nd_refuse_nearest(refusal, "grad_accum=%" PRId64, global / unit);
    }
    nd_refuse(rule, refusal, "global-batch",
              "a global batch of %" PRId64 " sequence%s is no multiple of micro_batch %" PRId32
              " x dp_replicate %" PRId32 " x dp_shard %" PRId32 " = %" PRId64,
              global, nd_text_plural(global), layout->micro_batch, layout->size[ND_AXIS_DP_REPLICATE],
              layout->size[ND_AXIS_DP_SHARD], unit);
    if (unit > INT64_MAX / 2 || below > INT64_MAX - unit) {
        return nd_refuse_nearest(refusal, "micro_batch=1");
    }
    if (below == 0) {
        return nd_refuse_nearest(refusal, "--global-batch %" PRId64, unit);
    }
    return nd_refuse_nearest(refusal, "--global-batch %" PRId64 " or %" PRId64, below, below + unit);
}

static bool check_batch(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    int64_t global = context->train->global_batch_seqs;
    int64_t unit = batch_unit(layout);
    if (global % unit != 0 || global / unit != layout->grad_accum) {
        return refuse_batch(layout, global, rule, refusal);
    }
    int32_t pp = layout->size[ND_AXIS_PP];
    if (layout->schedule == ND_SCHEDULE_INTERLEAVED && layout->grad_accum % pp != 0) {
        nd_refuse(rule, refusal, "interleaved-accum",
                  "the interleaved schedule sends micro-batches in groups of pp=%" PRId32 ", which do not divide the "
                  "%" PRId64 " of a step",
                  pp, layout->grad_accum);
        return nd_refuse_nearest(refusal, "vpp=1");
    }
    return true;
}

bool nd_rules_data(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    return check_axes(context, layout, rule, refusal) && check_sharding(context, layout, rule, refusal) &&
           check_batch(context, layout, rule, refusal);
}
