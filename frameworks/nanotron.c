/* nanotron: src/nanotron/config, parallel/context.py. */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "nanotron 0.4";

static bool heads(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                  nd_refusal *refusal)
{
    (void)train;
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (model->heads % tp != 0) {
        nd_refuse(rule, refusal, "nanotron.tp-heads", "%s: tp=%" PRId32 " must divide the %" PRId64 " attention heads",
                  name, tp, model->heads);
        return nd_refuse_nearest_divisor(refusal, "tp", tp, model->heads, model->heads);
    }
    if (model->attention == ND_ATTENTION_GQA && model->kv_heads < tp) {
        nd_refuse(rule, refusal, "nanotron.kv-heads",
                  "%s needs at least as many key-value heads as tp: %" PRId64 " heads, tp=%" PRId32, name,
                  model->kv_heads, tp);
        return nd_refuse_nearest(refusal, "tp=%" PRId64, model->kv_heads);
    }
    return true;
}

/* The rank grid is checked as tp x pp x cp x dp but reshaped with ep in front. */
static bool experts(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->ep <= 1) {
        return true;
    }
    nd_refuse(rule, refusal, "nanotron.no-ep",
              "%s cannot start with ep=%" PRId32 ": its rank check leaves ep out and its rank grid does not", name,
              layout->ep);
    return nd_refuse_nearest(refusal, "ep=1");
}

static bool sharding(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t shard = nd_degree(layout, ND_AXIS_DP_SHARD);
    int32_t replicate = nd_degree(layout, ND_AXIS_DP_REPLICATE);
    if (layout->sharding > ND_SHARDING_ZERO1) {
        nd_refuse(rule, refusal, "nanotron.zero1",
                  "%s shards optimizer states only: every zero_stage above 0 is zero1, got %s", name,
                  nd_sharding_name(layout->sharding));
        return nd_refuse_nearest(refusal, "sharding=zero1");
    }
    if (shard > 1 && replicate > 1) {
        nd_refuse(rule, refusal, "nanotron.one-dp-axis",
                  "%s has one data-parallel axis, sharded or not: dp_replicate=%" PRId32 " with dp_shard=%" PRId32
                  " cannot be written",
                  name, replicate, shard);
        return nd_refuse_nearest(refusal, "dp_replicate=1,dp_shard=%" PRId64, (int64_t)replicate * shard);
    }
    return true;
}

static bool schedule(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (nd_degree(layout, ND_AXIS_PP) == 1 || (layout->vpp == 1 && layout->schedule == ND_SCHEDULE_1F1B)) {
        return true;
    }
    nd_refuse(rule, refusal, "nanotron.schedule",
              "%s has one chunk per stage, and of its two schedules (1f1b; afab, which is gpipe) 1f1b is planned: "
              "vpp=%" PRId32 ", %s",
              name, layout->vpp, nd_schedule_name(layout->schedule));
    return nd_refuse_nearest(refusal, "vpp=1,schedule=1f1b");
}

/* build_model() cuts at equal shares of get_block_compute_costs() and takes no cut from the config. */
static bool split(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                  nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->split == ND_SPLIT_EVEN) {
        return true;
    }
    nd_refuse(rule, refusal, "nanotron.split", "%s cuts the stages by a rule of its own and takes no split=%s", name,
              nd_split_name(layout->split));
    return nd_refuse_nearest(refusal, "split=even");
}

/* recompute_layer re-runs whole layers, all of them. */
static bool recompute(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                      const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->recompute != ND_RECOMPUTE_SELECTIVE && layout->recompute != ND_RECOMPUTE_EVERY) {
        return true;
    }
    nd_refuse(rule, refusal, "nanotron.recompute", "%s re-runs all layers (recompute_layer) or none, got recompute=%s",
              name, nd_recompute_name(layout->recompute));
    return nd_refuse_nearest(refusal, "recompute=none or recompute=full");
}

static bool context_parallel(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                             const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (nd_degree(layout, ND_AXIS_CP) == 1 || layout->cp_method != ND_CP_METHOD_ULYSSES) {
        return true;
    }
    nd_refuse(rule, refusal, "nanotron.cp-method", "%s has ring attention only, not cp_method=ulysses (cp=%" PRId32 ")",
              name, nd_degree(layout, ND_AXIS_CP));
    return nd_refuse_nearest(refusal, "cp_method=ring");
}

static const nd_framework_rule rules[] = {heads, experts, sharding, schedule, split, recompute, context_parallel, NULL};

static bool allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    return nd_framework_apply(rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_nanotron = {
    .name = "nanotron",
    .title = "Hugging Face nanotron",
    .version = "0.4",
    .stack = "megatron",
    .source = "huggingface/nanotron 0.4 at 2411b022 (2026-04-07): config/*.py, parallel/context.py, helpers.py",
    .allows = allows,
};
