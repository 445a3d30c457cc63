/* Hugging Face Accelerate's ND-parallel: src/accelerate/parallelism_config.py, accelerator.py, utils/fsdp_utils.py. */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "Accelerate 1.15";

static bool has_axis(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    if (pp > 1) {
        nd_refuse(rule, refusal, "accelerate.no-pp", "%s has no pipeline axis: pp=%" PRId32 " cannot run", name, pp);
        return nd_refuse_nearest(refusal, "pp=1");
    }
    if (layout->ep > 1) {
        nd_refuse(rule, refusal, "accelerate.no-ep", "%s has no expert axis: ep=%" PRId32 " cannot run", name,
                  layout->ep);
        return nd_refuse_nearest(refusal, "ep=1");
    }
    return true;
}

static bool replicas_shard(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                           const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return nd_fsdp2_replicate_needs_shard(name, "accelerate.replicate-needs-shard", layout, rule, refusal);
}

/* `allgather` and `alltoall` (the ring) are torch's; Ulysses needs the DeepSpeed backend, which knows no cp mesh. */
static bool cp_method(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                      const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (nd_degree(layout, ND_AXIS_CP) == 1 || layout->cp_method != ND_CP_METHOD_ULYSSES) {
        return true;
    }
    nd_refuse(rule, refusal, "accelerate.cp-method",
              "%s runs cp_method=ulysses only through DeepSpeed (sp_size), not with FSDP2 (cp=%" PRId32 ")", name,
              nd_degree(layout, ND_AXIS_CP));
    return nd_refuse_nearest(refusal, "cp_method=allgather or cp_method=ring");
}

static bool sharding(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t shard = nd_degree(layout, ND_AXIS_DP_SHARD);
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    bool others = nd_layout_ranks(layout) > 1;
    if (shard == 1 && cp == 1 && others && layout->sharding != ND_SHARDING_NONE) {
        nd_refuse(rule, refusal, "accelerate.fsdp-needs-shard-mesh",
                  "%s looks for a shard mesh that exists only when dp_shard or cp is larger than 1 (KeyError "
                  "dp_shard_cp): sharding=%s with tp=%" PRId32 ", dp_replicate=%" PRId32 " cannot start",
                  name, nd_sharding_name(layout->sharding), nd_degree(layout, ND_AXIS_TP),
                  nd_degree(layout, ND_AXIS_DP_REPLICATE));
        return nd_refuse_nearest(refusal, "sharding=none");
    }
    return nd_fsdp2_sharding(name, "accelerate.sharding", layout, rule, refusal);
}

static bool tp_plan(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)train;
    return nd_transformers_tp_plan(name, "accelerate.tp-plan", "accelerate.tp-kv-heads", model, layout, rule, refusal);
}

/* The plan leaves what it does not name replicated on tp, the residual and its norms among them. */
static bool sequence_parallel(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (!layout->sequence_parallel || nd_degree(layout, ND_AXIS_TP) == 1) {
        return true;
    }
    nd_refuse(rule, refusal, "accelerate.no-sp",
              "%s has no sequence parallelism beside tp=%" PRId32 ": norms and residual are whole on every tp rank",
              name, nd_degree(layout, ND_AXIS_TP));
    return nd_refuse_nearest(refusal, "sp=off");
}

/* activation_checkpointing wraps every decoder layer. */
static bool recompute(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                      const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->recompute != ND_RECOMPUTE_SELECTIVE && layout->recompute != ND_RECOMPUTE_EVERY) {
        return true;
    }
    nd_refuse(rule, refusal, "accelerate.recompute",
              "%s wraps every decoder layer (activation_checkpointing) or none: recompute=%s cannot be asked for", name,
              nd_recompute_name(layout->recompute));
    return nd_refuse_nearest(refusal, "recompute=none or recompute=full");
}

static bool offload(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->offload == ND_OFFLOAD_ACTIVATIONS) {
        nd_refuse(rule, refusal, "accelerate.offload-activations",
                  "%s has no option that moves activations to the host: cpu_offload of its FSDP plugin is for weights, "
                  "gradients and optimizer",
                  name);
        return nd_refuse_nearest(refusal, "offload=none,recompute=full");
    }
    return nd_fsdp2_offload(name, "accelerate.offload", layout, rule, refusal);
}

static const nd_framework_rule rules[] = {
    has_axis, replicas_shard, cp_method, sharding, tp_plan, sequence_parallel, recompute, offload, NULL,
};

static bool allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    return nd_framework_apply(rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_accelerate = {
    .name = "accelerate",
    .title = "Hugging Face Accelerate (ND-parallel, FSDP2)",
    .version = "1.15",
    .stack = "torch-fsdp2",
    .source = "huggingface/accelerate 1.15.0.dev0 at 16cb6eb8 (2026-07-24): parallelism_config.py, accelerator.py, "
              "utils/fsdp_utils.py; issues #3798, #4180",
    .allows = allows,
};
