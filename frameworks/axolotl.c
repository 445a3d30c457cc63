/* Axolotl: Accelerate's mesh with an expert axis of its own and ring-flash-attention for context parallelism
 * (src/axolotl/utils/distributed.py, utils/schemas/validation.py, loaders/utils.py). */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "Axolotl 0.18";

static bool has_axis(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    if (pp > 1) {
        nd_refuse(rule, refusal, "axolotl.no-pp", "%s has no pipeline axis: pp=%" PRId32 " cannot run", name, pp);
        return nd_refuse_nearest(refusal, "pp=1");
    }
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    if (layout->ep > 1 && (tp > 1 || cp > 1)) {
        nd_refuse(rule, refusal, "axolotl.ep-alone",
                  "%s does not combine ep=%" PRId32 " with tp or cp (tp=%" PRId32 ", cp=%" PRId32 ")", name, layout->ep,
                  tp, cp);
        return nd_refuse_nearest(refusal, "ep=1 or tp=1,cp=1");
    }
    /* The expert axis is cut out of the data-parallel ranks, outermost. */
    int32_t shard = nd_degree(layout, ND_AXIS_DP_SHARD);
    if (layout->ep > 1 && shard % layout->ep != 0) {
        nd_refuse(rule, refusal, "axolotl.ep-divides-dp",
                  "%s divides the data-parallel ranks by ep: ep=%" PRId32 " does not divide dp_shard=%" PRId32, name,
                  layout->ep, shard);
        return nd_refuse_nearest_divisor(refusal, "ep", layout->ep, shard, shard);
    }
    return true;
}

static bool replicas_shard(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                           const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return nd_fsdp2_replicate_needs_shard(name, "axolotl.replicate-needs-shard", layout, rule, refusal);
}

static bool context_parallel(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                             const char **rule, nd_refusal *refusal)
{
    (void)model;
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    if (cp == 1) {
        return true;
    }
    if (layout->cp_method == ND_CP_METHOD_ULYSSES) {
        nd_refuse(rule, refusal, "axolotl.cp-method",
                  "%s runs context parallelism by ring-flash-attention: cp_method=ulysses is not available (cp=%" PRId32
                  ")",
                  name, cp);
        return nd_refuse_nearest(refusal, "cp_method=ring or cp_method=allgather");
    }
    if (train->attention == ND_ATTENTION_MATH) {
        nd_refuse(rule, refusal, "axolotl.cp-attention",
                  "%s needs attn_implementation flash_attention_2 or _3 for cp=%" PRId32 ", got attention %s", name, cp,
                  nd_attention_name(train->attention));
        return nd_refuse_nearest(refusal, "--attention flash2 or cp=1");
    }
    return true;
}

static bool sharding(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return nd_fsdp2_sharding(name, "axolotl.sharding", layout, rule, refusal);
}

static bool tensor_parallel(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            const char **rule, nd_refusal *refusal)
{
    (void)train;
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (tp > 1 && model->tied_embeddings) {
        nd_refuse(rule, refusal, "axolotl.tp-tied",
                  "%s refuses tp=%" PRId32 " for models with tied embeddings, as %s has", name, tp, model->name);
        return nd_refuse_nearest(refusal, "tp=1");
    }
    if (tp > 1 && layout->sequence_parallel) {
        nd_refuse(rule, refusal, "axolotl.no-sp",
                  "%s has no sequence parallelism beside tp=%" PRId32 ": norms and residual are whole on every tp rank",
                  name, tp);
        return nd_refuse_nearest(refusal, "sp=off");
    }
    return nd_transformers_tp_plan(name, "axolotl.tp-plan", "axolotl.tp-kv-heads", model, layout, rule, refusal);
}

/* gradient_checkpointing is on, off, or selective by operation; no every-k-th layer. */
static bool recompute(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                      const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->recompute != ND_RECOMPUTE_EVERY) {
        return true;
    }
    nd_refuse(rule, refusal, "axolotl.recompute",
              "%s checkpoints all layers, none, or by operation: recompute=every:%" PRId32 " cannot be asked for", name,
              layout->recompute_every);
    return nd_refuse_nearest(refusal, "recompute=selective or recompute=full");
}

static bool offload(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->offload == ND_OFFLOAD_ACTIVATIONS && layout->recompute == ND_RECOMPUTE_NONE) {
        nd_refuse(rule, refusal, "axolotl.offload", "%s offloads activations only with gradient_checkpointing on",
                  name);
        return nd_refuse_nearest(refusal, "recompute=full");
    }
    return nd_fsdp2_offload(name, "axolotl.offload", layout, rule, refusal);
}

static const nd_framework_rule rules[] = {
    has_axis, replicas_shard, context_parallel, sharding, tensor_parallel, recompute, offload, NULL,
};

static bool allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    return nd_framework_apply(rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_axolotl = {
    .name = "axolotl",
    .title = "Axolotl (ND-parallel, FSDP2)",
    .version = "0.18",
    .stack = "torch-fsdp2",
    .source =
        "axolotl-ai-cloud/axolotl 0.18.0 at 067b021c (2026-07-24): utils/distributed.py, utils/schemas/validation.py, "
        "loaders/utils.py, docs/nd_parallelism.qmd",
    .allows = allows,
};
