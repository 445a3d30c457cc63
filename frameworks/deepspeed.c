/* DeepSpeed: runtime/config.py, runtime/zero/config.py, runtime/zero/mics_utils.py, sequence_parallel/ulysses_sp.py. */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "DeepSpeed 0.19";

/* Its pipeline engine needs a model written as a list of layers; Hugging Face models do not come as one. */
static bool pipeline(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    if (pp == 1) {
        return true;
    }
    nd_refuse(rule, refusal, "deepspeed.no-pp",
              "%s runs a pipeline only for models rewritten as a PipelineModule: pp=%" PRId32 " is not offered", name,
              pp);
    return nd_refuse_nearest(refusal, "pp=1");
}

static bool ulysses(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)train;
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    if (cp == 1) {
        return true;
    }
    if (layout->cp_method != ND_CP_METHOD_ULYSSES) {
        nd_refuse(rule, refusal, "deepspeed.cp-method",
                  "%s divides sequences by Ulysses only: cp=%" PRId32 " with cp_method=%s cannot run", name, cp,
                  nd_cp_method_name(layout->cp_method));
        return nd_refuse_nearest(refusal, "cp_method=ulysses");
    }
    if (model->heads % cp != 0) {
        nd_refuse(rule, refusal, "deepspeed.ulysses-heads", "%s: cp=%" PRId32 " must divide the %" PRId64 " heads",
                  name, cp, model->heads);
        return nd_refuse_nearest_divisor(refusal, "cp", cp, model->heads, model->heads);
    }
    if (model->kv_heads % cp != 0 && cp % model->kv_heads != 0) {
        nd_refuse(rule, refusal, "deepspeed.ulysses-kv-heads",
                  "%s: of cp=%" PRId32 " and the %" PRId64 " key-value heads one must divide the other", name, cp,
                  model->kv_heads);
        return nd_refuse_nearest_divisor(refusal, "cp", cp, model->kv_heads, model->kv_heads);
    }
    return true;
}

/* ZeRO shards over all data-parallel ranks (and the sequence-parallel ones); copies of a shard group exist only as
 * MiCS, which is stage 3. */
static bool replicas(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t replicate = nd_degree(layout, ND_AXIS_DP_REPLICATE);
    bool wide = nd_layout_shard_ranks(layout) > 1;
    if (replicate == 1 || !wide || layout->sharding == ND_SHARDING_ZERO3) {
        return true;
    }
    nd_refuse(rule, refusal, "deepspeed.mics-zero3",
              "%s keeps dp_replicate=%" PRId32
              " copies of a shard group only with stage 3 (MiCS); sharding=%s divides over all data-parallel ranks",
              name, replicate, nd_sharding_name(layout->sharding));
    return nd_refuse_nearest(refusal, "dp_replicate=1 or sharding=zero3");
}

static bool experts(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    int32_t replicate = nd_degree(layout, ND_AXIS_DP_REPLICATE);
    if (layout->ep <= 1 || layout->sharding != ND_SHARDING_ZERO3 || (tp == 1 && cp == 1 && replicate == 1)) {
        return true;
    }
    nd_refuse(rule, refusal, "deepspeed.autoep-zero3",
              "%s combines ep=%" PRId32 " and stage 3 with no other axis (tp=%" PRId32 ", cp=%" PRId32
              ", dp_replicate=%" PRId32 ")",
              name, layout->ep, tp, cp, replicate);
    return nd_refuse_nearest(refusal, "sharding=zero2 or ep=1");
}

/* AutoTP splits the linear layers; the residual stays whole. */
static bool sequence_parallel(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (!layout->sequence_parallel || nd_degree(layout, ND_AXIS_TP) == 1) {
        return true;
    }
    nd_refuse(rule, refusal, "deepspeed.no-sp",
              "%s AutoTP has no sequence parallelism of its own (tp=%" PRId32 "); Ulysses is cp", name,
              nd_degree(layout, ND_AXIS_TP));
    return nd_refuse_nearest(refusal, "sp=off");
}

static bool offload(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->offload != ND_OFFLOAD_PARAMS || layout->sharding == ND_SHARDING_ZERO3) {
        return true;
    }
    nd_refuse(rule, refusal, "deepspeed.offload-param", "%s offloads weights only with stage 3, got sharding=%s", name,
              nd_sharding_name(layout->sharding));
    return nd_refuse_nearest(refusal, "sharding=zero3 or offload=optimizer");
}

static const nd_framework_rule rules[] = {pipeline, ulysses, replicas, experts, sequence_parallel, offload, NULL};

static bool allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    return nd_framework_apply(rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_deepspeed = {
    .name = "deepspeed",
    .title = "DeepSpeed (ZeRO, Ulysses, AutoTP)",
    .version = "0.19",
    .stack = "deepspeed",
    .source = "deepspeedai/DeepSpeed 0.19.6 at edaa7221 (2026-08-22): runtime/config.py, runtime/zero/config.py, "
              "runtime/zero/mics_utils.py, sequence_parallel/ulysses_sp.py",
    .allows = allows,
};
