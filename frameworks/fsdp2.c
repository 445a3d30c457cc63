/* What Accelerate, Axolotl and torchtitan inherit from FSDP2 and from the tensor-parallel plans of transformers. */
#include <inttypes.h>

#include "frameworks/frameworks_internal.h"

bool nd_fsdp2_replicate_needs_shard(const char *name, const char *id, const nd_layout *layout, const char **rule,
                                    nd_refusal *refusal)
{
    int32_t replicate = nd_degree(layout, ND_AXIS_DP_REPLICATE);
    int32_t shard = nd_degree(layout, ND_AXIS_DP_SHARD);
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    if (replicate == 1 || shard > 1 || (tp == 1 && cp == 1)) {
        return true;
    }
    nd_refuse(rule, refusal, id,
              "%s refuses dp_replicate=%" PRId32 " with dp_shard=1 as soon as tp or cp is larger than 1 (tp=%" PRId32
              ", cp=%" PRId32 "); shard over dp as well",
              name, replicate, tp, cp);
    return nd_refuse_nearest(refusal, "dp_replicate=1,dp_shard=%" PRId32, replicate);
}

bool nd_transformers_tp_plan(const char *name, const char *plan_id, const char *heads_id, const nd_model_spec *model,
                             const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (tp == 1) {
        return true;
    }
    if (model->tp_plan == ND_TP_PLAN_NONE) {
        nd_refuse(
            rule, refusal, plan_id,
            "%s takes tensor parallelism from the model's plan in transformers, and %s models have none: tp=%" PRId32
            " cannot run",
            name, model->family, tp);
        return nd_refuse_nearest(refusal, "tp=1");
    }
    bool divides_attention = model->tp_plan == ND_TP_PLAN_FULL && model->attention == ND_ATTENTION_GQA;
    if (divides_attention && model->kv_heads % tp != 0) {
        nd_refuse(rule, refusal, heads_id,
                  "%s: tp=%" PRId32 " does not divide the %" PRId64
                  " key-value heads, and transformers' plan cannot copy them (fails in the first forward pass)",
                  name, tp, model->kv_heads);
        return nd_refuse_nearest_divisor(refusal, "tp", tp, model->kv_heads, model->kv_heads);
    }
    return true;
}

bool nd_fsdp2_sharding(const char *name, const char *id, const nd_layout *layout, const char **rule,
                       nd_refusal *refusal)
{
    int32_t shard = nd_degree(layout, ND_AXIS_DP_SHARD);
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    bool wide = shard > 1 || cp > 1;
    if (wide && layout->sharding == ND_SHARDING_NONE) {
        nd_refuse(rule, refusal, id,
                  "%s shards weights over dp_shard x cp whenever one of them is on (dp_shard=%" PRId32 ", cp=%" PRId32
                  "); sharding=none is for dp_replicate alone",
                  name, shard, cp);
        return nd_refuse_nearest(refusal, "sharding=zero3");
    }
    if (wide && layout->sharding == ND_SHARDING_ZERO1) {
        nd_refuse(rule, refusal, id,
                  "%s has no sharding=zero1: FSDP2 shards gradients and weights too, and only chooses whether gathered "
                  "weights stay (zero2) or not (zero3)",
                  name);
        return nd_refuse_nearest(refusal, "sharding=zero2");
    }
    return true;
}

bool nd_fsdp2_offload(const char *name, const char *id, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    if (layout->offload != ND_OFFLOAD_OPTIMIZER) {
        return true;
    }
    nd_refuse(
        rule, refusal, id,
        "%s cannot offload the optimizer alone: FSDP2 moves weights, gradients and optimizer to the host together",
        name);
    return nd_refuse_nearest(refusal, "offload=params");
}
