/* Megatron-LM: megatron/training/arguments.py, core/parallel_state.py, core/transformer/transformer_config.py. */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "Megatron-LM 0.20";

static bool heads(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                  nd_refusal *refusal)
{
    (void)train;
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (model->heads % tp != 0) {
        nd_refuse(rule, refusal, "megatron.tp-heads", "%s: tp=%" PRId32 " must divide the %" PRId64 " attention heads",
                  name, tp, model->heads);
        return nd_refuse_nearest_divisor(refusal, "tp", tp, model->heads, model->heads);
    }
    bool groups = model->kv_heads % tp == 0 || tp % model->kv_heads == 0;
    if (model->attention == ND_ATTENTION_GQA && !groups) {
        nd_refuse(rule, refusal, "megatron.query-groups",
                  "%s: of tp=%" PRId32 " and the %" PRId64 " query groups one must divide the other", name, tp,
                  model->kv_heads);
        return nd_refuse_nearest_divisor(refusal, "tp", tp, model->kv_heads, model->kv_heads);
    }
    return true;
}

static bool layers(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    /* --pipeline-model-parallel-layout writes out what each stage and chunk holds, in any numbers */
    if (model->layers % pp == 0 || layout->split == ND_SPLIT_BALANCED) {
        return true;
    }
    nd_refuse(rule, refusal, "megatron.layers-pp",
              "%s: pp=%" PRId32 " must divide the %" PRId64 " layers (unless split=balanced writes the stages out)",
              name, pp, model->layers);
    return nd_refuse_nearest_divisor(refusal, "pp", pp, model->layers, model->layers);
}

static bool sequence(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                     nd_refusal *refusal)
{
    (void)model;
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    int64_t factor = INT64_C(2) * cp;
    int64_t seq = train->seq_len_tokens;
    if (cp == 1 || seq % factor == 0) {
        return true;
    }
    nd_refuse(rule, refusal, "megatron.seq-cp",
              "%s: the sequence of %" PRId64 " tokens must divide by 2 x cp = %" PRId64, name, seq, factor);
    return nd_refuse_nearest(refusal, "--seq-len %" PRId64 " or cp=1", (seq / factor + 1) * factor);
}

static bool experts(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)train;
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (layout->ep > 1 && model->experts % layout->ep != 0) {
        nd_refuse(rule, refusal, "megatron.ep-experts", "%s: ep=%" PRId32 " must divide the %" PRId64 " experts", name,
                  layout->ep, model->experts);
        return nd_refuse_nearest_divisor(refusal, "ep", layout->ep, model->experts, model->experts);
    }
    if (layout->ep > 1 && tp > 1 && !layout->sequence_parallel) {
        nd_refuse(rule, refusal, "megatron.ep-needs-sp",
                  "%s trains ep=%" PRId32 " with tp=%" PRId32 " only with sequence parallelism", name, layout->ep, tp);
        return nd_refuse_nearest(refusal, "sp=on");
    }
    return true;
}

/* CPU activation offload excludes pipelines and recompute. */
static bool offload(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    if (layout->offload != ND_OFFLOAD_ACTIVATIONS || (pp == 1 && layout->recompute == ND_RECOMPUTE_NONE)) {
        return true;
    }
    nd_refuse(rule, refusal, "megatron.offload",
              "%s offloads activations only without pipeline and recompute (pp=%" PRId32 ", recompute=%s)", name, pp,
              nd_recompute_name(layout->recompute));
    return nd_refuse_nearest(refusal, "offload=none or pp=1,recompute=none");
}

static const nd_framework_rule rules[] = {heads, layers, sequence, experts, offload, NULL};

static bool allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal)
{
    return nd_framework_apply(rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_megatron = {
    .name = "megatron",
    .title = "NVIDIA Megatron-LM (core)",
    .version = "0.20",
    .stack = "megatron",
    .source = "NVIDIA/Megatron-LM core 0.20.0 at d98e8a64 (2026-08-22): training/arguments.py, core/parallel_state.py, "
              "core/transformer/transformer_config.py",
    .allows = allows,
};
