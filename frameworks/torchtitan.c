/* torchtitan: the release with TOML configs and the later main branch, whose rules differ
 * (torchtitan/distributed/parallel_dims.py, fsdp.py, pipeline_parallel.py, trainer.py, models/common/decoder.py). */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char release[] = "torchtitan 0.2.2";
static const char main_branch[] = "torchtitan main";

static bool kv_heads(const char *name, const char *how, const nd_model_spec *model, const nd_layout *layout,
                     const char **rule, nd_refusal *refusal)
{
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    if (tp == 1 || model->attention != ND_ATTENTION_GQA || model->kv_heads % tp == 0) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.tp-kv-heads",
              "%s: tp=%" PRId32 " must divide the %" PRId64 " key-value heads (%s)", name, tp, model->kv_heads, how);
    return nd_refuse_nearest_divisor(refusal, "tp", tp, model->kv_heads, model->kv_heads);
}

static bool release_kv_heads(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                             const char **rule, nd_refusal *refusal)
{
    (void)train;
    return kv_heads(release, "fails in a reshape, #2574", model, layout, rule, refusal);
}

static bool main_kv_heads(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                          const char **rule, nd_refusal *refusal)
{
    (void)train;
    return kv_heads(main_branch, "ValueError", model, layout, rule, refusal);
}

static bool refuse_sequence(const char *name, const nd_layout *layout, const nd_train_spec *train, int64_t factor,
                            const char *product, const char **rule, nd_refusal *refusal)
{
    int64_t seq = train->seq_len_tokens;
    int64_t below = seq / factor * factor;
    nd_refuse(rule, refusal, "torchtitan.seq-divides",
              "%s needs a sequence that divides by %s = %" PRId64 " (tp=%" PRId32 ", cp=%" PRId32 "): %" PRId64
              " leaves %" PRId64,
              name, product, factor, nd_degree(layout, ND_AXIS_TP), nd_degree(layout, ND_AXIS_CP), seq, seq % factor);
    if (below == 0) {
        return nd_refuse_nearest(refusal, "--seq-len %" PRId64, factor);
    }
    return nd_refuse_nearest(refusal, "--seq-len %" PRId64 " or %" PRId64, below, below + factor);
}

/* The release keeps the factor 2 even without context parallelism. */
static bool release_sequence(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                             const char **rule, nd_refusal *refusal)
{
    (void)model;
    int64_t factor = INT64_C(2) * nd_degree(layout, ND_AXIS_TP) * nd_degree(layout, ND_AXIS_CP);
    return train->seq_len_tokens % factor == 0 ||
           refuse_sequence(release, layout, train, factor, "tp x 2 x cp", rule, refusal);
}

/* Main counts the tokens of a micro-batch instead. */
static bool main_sequence(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                          const char **rule, nd_refusal *refusal)
{
    (void)model;
    int32_t cp = nd_degree(layout, ND_AXIS_CP);
    int64_t factor = (layout->sequence_parallel ? nd_degree(layout, ND_AXIS_TP) : INT64_C(1)) *
                     (cp > 1 ? INT64_C(2) * cp : INT64_C(1));
    int64_t left = (train->seq_len_tokens % factor) * (layout->micro_batch % factor) % factor;
    return left == 0 || refuse_sequence(main_branch, layout, train, factor, "tp (with sp) x 2 cp", rule, refusal);
}

static bool release_ddp(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                        const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    int32_t replicate = nd_degree(layout, ND_AXIS_DP_REPLICATE);
    int32_t tp = nd_degree(layout, ND_AXIS_TP);
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    bool sharded = nd_degree(layout, ND_AXIS_DP_SHARD) > 1 || nd_degree(layout, ND_AXIS_CP) > 1;
    if (replicate == 1 || sharded || (tp == 1 && pp == 1)) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.ddp-alone",
              "%s runs DDP (dp_replicate=%" PRId32 " with dp_shard=1) only without other axes (tp=%" PRId32
              ", pp=%" PRId32 ")",
              release, replicate, tp, pp);
    return nd_refuse_nearest(refusal, "dp_replicate=1,dp_shard=%" PRId32, replicate);
}

static bool release_sp(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                       const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (nd_degree(layout, ND_AXIS_TP) == 1 || layout->sequence_parallel) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.tp-implies-sp", "%s always uses sequence parallelism with tp=%" PRId32,
              release, nd_degree(layout, ND_AXIS_TP));
    return nd_refuse_nearest(refusal, "sp=on");
}

static bool context_parallel(const char *name, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    if (nd_degree(layout, ND_AXIS_CP) == 1 || layout->cp_method != ND_CP_METHOD_ULYSSES) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.cp-method",
              "%s has torch's ring and all-gather context parallelism, not cp_method=ulysses (cp=%" PRId32 ")", name,
              nd_degree(layout, ND_AXIS_CP));
    return nd_refuse_nearest(refusal, "cp_method=allgather or cp_method=ring");
}

static bool release_cp(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                       const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return context_parallel(release, layout, rule, refusal);
}

static bool main_cp(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return context_parallel(main_branch, layout, rule, refusal);
}

static bool release_sharding(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                             const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return nd_fsdp2_sharding(release, "torchtitan.sharding", layout, rule, refusal) &&
           nd_fsdp2_offload(release, "torchtitan.offload", layout, rule, refusal);
}

static bool main_sharding(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                          const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    return nd_fsdp2_sharding(main_branch, "torchtitan.sharding", layout, rule, refusal) &&
           nd_fsdp2_offload(main_branch, "torchtitan.offload", layout, rule, refusal);
}

static bool expert_parallel(const char *name, const nd_model_spec *model, const nd_layout *layout, const char **rule,
                            nd_refusal *refusal)
{
    if (layout->ep <= 1) {
        return true;
    }
    int64_t ranks =
        (int64_t)nd_degree(layout, ND_AXIS_DP_SHARD) * nd_degree(layout, ND_AXIS_CP) * nd_degree(layout, ND_AXIS_TP);
    if (ranks % layout->ep != 0) {
        nd_refuse(rule, refusal, "torchtitan.ep-divides-mesh",
                  "%s: ep=%" PRId32 " must divide dp_shard x cp x tp = %" PRId64, name, layout->ep, ranks);
        return nd_refuse_nearest_divisor(refusal, "ep", layout->ep, ranks, ranks);
    }
    if (model->experts % layout->ep != 0) {
        nd_refuse(rule, refusal, "torchtitan.ep-divides-experts",
                  "%s: ep=%" PRId32 " must divide the %" PRId64 " experts", name, layout->ep, model->experts);
        return nd_refuse_nearest_divisor(refusal, "ep", layout->ep, model->experts, model->experts);
    }
    return true;
}

static bool release_ep(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                       const char **rule, nd_refusal *refusal)
{
    (void)train;
    return expert_parallel(release, model, layout, rule, refusal);
}

static bool main_ep(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                    nd_refusal *refusal)
{
    (void)train;
    return expert_parallel(main_branch, model, layout, rule, refusal);
}

static bool main_tied(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                      const char **rule, nd_refusal *refusal)
{
    (void)train;
    int32_t pp = nd_degree(layout, ND_AXIS_PP);
    if (pp == 1 || !model->tied_embeddings) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.pp-tied",
              "%s refuses pp=%" PRId32 " for models with tied embeddings, as %s has (NotImplementedError)", main_branch,
              pp, model->name);
    return nd_refuse_nearest(refusal, "pp=1");
}

/* The release checkpoints every n-th layer; main only whole layers or single operations. */
static bool main_recompute(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                           const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    if (layout->recompute != ND_RECOMPUTE_EVERY) {
        return true;
    }
    nd_refuse(rule, refusal, "torchtitan.recompute",
              "%s dropped checkpointing of every n-th layer: recompute=every:%" PRId32 " cannot be asked for",
              main_branch, layout->recompute_every);
    return nd_refuse_nearest(refusal, "recompute=selective or recompute=full");
}

static const nd_framework_rule release_rules[] = {
    release_kv_heads, release_ddp, release_sequence, release_sp, release_cp, release_sharding, release_ep, NULL,
};

static const nd_framework_rule main_rules[] = {
    main_kv_heads, main_sequence, main_cp, main_sharding, main_ep, main_tied, main_recompute, NULL,
};

static bool release_allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                           const char **rule, nd_refusal *refusal)
{
    return nd_framework_apply(release_rules, model, layout, train, rule, refusal);
}

static bool main_allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                        const char **rule, nd_refusal *refusal)
{
    return nd_framework_apply(main_rules, model, layout, train, rule, refusal);
}

const nd_framework nd_framework_torchtitan = {
    .name = "torchtitan",
    .title = "torchtitan, release",
    .version = "0.2.2",
    .stack = "torch-fsdp2-compile",
    .source = "pytorch/torchtitan tag v0.2.2 (2026-02-20): distributed/parallel_dims.py, train.py; issues #2574, #2577",
    .allows = release_allows,
};

const nd_framework nd_framework_torchtitan_main = {
    .name = "torchtitan",
    .title = "torchtitan, main branch",
    .version = "main",
    .stack = "torch-fsdp2-compile",
    .source =
        "pytorch/torchtitan main at b5bcd76c (2026-08-21): distributed/parallel_dims.py, models/common/decoder.py, "
        "trainer.py; pull request #4258",
    .allows = main_allows,
};
