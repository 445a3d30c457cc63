#include "planner/constraints.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "frameworks/refusal.h"
#include "planner/constraints_internal.h"

bool nd_nearest_degree(const nd_cost_context *context, const nd_layout *layout, const char *key, int64_t value,
                       int64_t divides, int64_t max, nd_degree_test legal, nd_refusal *refusal)
{
    if (refusal == NULL) {
        return false;
    }
    int64_t below = value - 1 < max ? value - 1 : max;
    while (below > 1 && ((divides > 0 && divides % below != 0) || !legal(context, layout, below))) {
        below--;
    }
    int64_t above = value + 1;
    while (above <= max && ((divides > 0 && divides % above != 0) || !legal(context, layout, above))) {
        above++;
    }
    bool has_below = below >= 1 && legal(context, layout, below);
    if (has_below && above <= max) {
        return nd_refuse_nearest(refusal, "%s=%" PRId64 " or %s=%" PRId64, key, below, key, above);
    }
    if (has_below || above <= max) {
        return nd_refuse_nearest(refusal, "%s=%" PRId64, key, has_below ? below : above);
    }
    return false;
}

/* Product of the mesh, capped: five degrees of 32 bits can overflow. */
static int64_t ranks_of(const nd_layout *layout)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (ranks > INT64_MAX / layout->size[axis]) {
            return INT64_MAX;
        }
        ranks *= layout->size[axis];
    }
    return ranks;
}

static bool check_positive(const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
        {"pp", layout->size[ND_AXIS_PP]},
        {"dp_replicate", layout->size[ND_AXIS_DP_REPLICATE]},
        {"dp_shard", layout->size[ND_AXIS_DP_SHARD]},
        {"cp", layout->size[ND_AXIS_CP]},
        {"tp", layout->size[ND_AXIS_TP]},
        {"ep", layout->ep},
        {"vpp", layout->vpp},
        {"micro_batch", layout->micro_batch},
        {"grad_accum", layout->grad_accum},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].value < 1) {
            nd_refuse(rule, refusal, "positive-counts", "%s must be at least 1, got %" PRId64, counts[i].key,
                      counts[i].value);
            return nd_refuse_nearest(refusal, "%s=1", counts[i].key);
        }
    }
    return true;
}

static bool in_range(int value, int count)
{
    return value >= 0 && value < count;
}

bool nd_rules_shape(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    if (!check_positive(layout, rule, refusal)) {
        return false;
    }
    bool known =
        in_range((int)layout->cp_method, ND_CP_METHOD_COUNT) && in_range((int)layout->schedule, ND_SCHEDULE_COUNT) &&
        in_range((int)layout->split, ND_SPLIT_COUNT) && in_range((int)layout->sharding, ND_SHARDING_COUNT) &&
        in_range((int)layout->recompute, ND_RECOMPUTE_COUNT) && in_range((int)layout->offload, ND_OFFLOAD_COUNT);
    if (!known) {
        return nd_refuse(rule, refusal, "known-modes",
                         "cp_method, schedule, split, sharding, recompute or offload is none of the known values");
    }
    int64_t ranks = ranks_of(layout);
    int64_t gpus = context->cluster->gpus;
    if (ranks == gpus) {
        return true;
    }
    nd_refuse(rule, refusal, "ranks-equal-gpus",
              "the layout has %" PRId64 " rank%s (pp %" PRId32 " x dp_replicate %" PRId32 " x dp_shard %" PRId32
              " x cp %" PRId32 " x tp %" PRId32 "), the cluster %" PRId64 " GPU%s",
              ranks, nd_text_plural(ranks), layout->size[ND_AXIS_PP], layout->size[ND_AXIS_DP_REPLICATE],
              layout->size[ND_AXIS_DP_SHARD], layout->size[ND_AXIS_CP], layout->size[ND_AXIS_TP], gpus,
              nd_text_plural(gpus));
    int64_t shard = layout->size[ND_AXIS_DP_SHARD];
    int64_t others = ranks == INT64_MAX ? 0 : ranks / shard;
    if (others > 0 && gpus % others == 0) {
        return nd_refuse_nearest(refusal, "dp_shard=%" PRId64, gpus / others);
    }
    return false;
}

static bool can_offload(const nd_stack *stack)
{
    static const char fsdp2[] = "torch-fsdp2"; /* compiled or not */
    return strncmp(stack->name, fsdp2, sizeof fsdp2 - 1) == 0 || strcmp(stack->name, "deepspeed") == 0 ||
           strcmp(stack->name, "ndplan") == 0;
}

bool nd_rules_memory_modes(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                           nd_refusal *refusal)
{
    const nd_stack *stack = context->stack;
    if (!nd_mask_has(stack->recomputes, (int)layout->recompute)) {
        nd_refuse(rule, refusal, "stack-recompute", "%s has no recompute=%s", stack->name,
                  nd_recompute_name(layout->recompute));
        return nd_refuse_nearest(
            refusal, "%s", nd_mask_has(stack->recomputes, ND_RECOMPUTE_FULL) ? "recompute=full" : "recompute=none");
    }
    int64_t layers = context->model->layers;
    bool every = layout->recompute == ND_RECOMPUTE_EVERY;
    if (every && (layout->recompute_every < 2 || layout->recompute_every > layers)) {
        nd_refuse(rule, refusal, "recompute-every", "recompute=every:%" PRId32 " must name 2 to %" PRId64 " layers",
                  layout->recompute_every, layers);
        if (layout->recompute_every < 2 || layers < 2) {
            return nd_refuse_nearest(refusal, "recompute=full");
        }
        return nd_refuse_nearest(refusal, "recompute=every:%" PRId64, layers);
    }
    bool moves_more = layout->offload == ND_OFFLOAD_PARAMS || layout->offload == ND_OFFLOAD_ACTIVATIONS;
    if (moves_more && !can_offload(stack)) {
        nd_refuse(rule, refusal, "stack-offload", "%s cannot keep %s in host memory", stack->name,
                  nd_offload_name(layout->offload));
        return nd_refuse_nearest(refusal, "offload=none or offload=optimizer");
    }
    return true;
}

bool nd_layout_allowed(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                       const char **rule, nd_refusal *refusal)
{
    return nd_rules_shape(context, layout, rule, refusal) && nd_rules_block(context, layout, rule, refusal) &&
           nd_rules_memory_modes(context, layout, rule, refusal) && nd_rules_pipeline(context, layout, rule, refusal) &&
           nd_rules_data(context, layout, rule, refusal) &&
           (framework == NULL || framework->allows(context->model, layout, context->train, rule, refusal));
}
