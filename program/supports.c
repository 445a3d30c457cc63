/* Which layouts of which models can be built into programs. */
#include <inttypes.h>

#include "program/program.h"

static nd_status check_divides(const char *what, int64_t value, const char *key, int64_t degree, nd_error *err)
{
    if (value % degree != 0) {
        return nd_fail(err, ND_EINVAL, "%s=%" PRId64 " does not divide %s %" PRId64, key, degree, what, value);
    }
    return ND_OK;
}

static nd_status check_tp(const nd_model_spec *model, const nd_layout *layout, nd_error *err)
{
    int64_t tp = layout->size[ND_AXIS_TP];
    ND_TRY(check_divides("the attention heads", model->heads, "tp", tp, err));
    bool kv = model->attention == ND_ATTENTION_MLA || model->kv_heads % tp == 0 || tp % model->kv_heads == 0;
    if (!kv) {
        return nd_fail(err, ND_EINVAL,
                       "of tp=%" PRId64 " and the %" PRId64 " key-value heads one must divide the other", tp,
                       model->kv_heads);
    }
    ND_TRY(check_divides("the feed-forward width", model->ffn_hidden, "tp", tp, err));
    if (model->experts == 0) {
        return ND_OK;
    }
    ND_TRY(check_divides("the shared experts' width", model->shared_ffn_hidden, "tp", tp, err));
    return layout->ep > 1 ? ND_OK : check_divides("the experts' width", model->moe_ffn_hidden, "tp", tp, err);
}

static nd_status check_ep(const nd_model_spec *model, const nd_layout *layout, nd_error *err)
{
    if (layout->ep == 1) {
        return ND_OK;
    }
    if (model->experts == 0) {
        return nd_fail(err, ND_EINVAL, "ep=%d needs experts, and %s has none", layout->ep, model->name);
    }
    int64_t ranks = (int64_t)layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] * layout->size[ND_AXIS_TP];
    ND_TRY(check_divides("dp_shard x cp x tp =", ranks, "ep", layout->ep, err));
    return check_divides("the experts", model->experts, "ep", layout->ep, err);
}

static nd_status check_sequence(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                                nd_error *err)
{
    int64_t seq = train->seq_len_tokens;
    int64_t cp = layout->size[ND_AXIS_CP];
    int64_t tp = layout->size[ND_AXIS_TP];
    bool ulysses = layout->cp_method == ND_CP_METHOD_ULYSSES;
    if (cp > 1) {
        ND_TRY(check_divides("the sequence of", seq, ulysses ? "cp" : "2 x cp", ulysses ? cp : 2 * cp, err));
    }
    if (layout->sequence_parallel && tp > 1) {
        ND_TRY(check_divides("the tokens of a cp rank,", seq / cp, "tp", tp, err));
    }
    if (layout->ep > 1 && seq / cp % tp != 0) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "with ep=%d every tp rank sends a slice of the tokens to the experts, and tp=%" PRId64
                       " does not divide the %" PRId64 " of a cp rank: ep=1 runs, or a sequence that divides",
                       layout->ep, tp, seq / cp);
    }
    if (model->learned_positions > 0 && seq > model->learned_positions) {
        return nd_fail(err, ND_EINVAL, "%s has %" PRId64 " learned positions; the sequence has %" PRId64, model->name,
                       model->learned_positions, seq);
    }
    if (cp == 1 || !ulysses) {
        return ND_OK;
    }
    int64_t heads = model->heads / tp;
    int64_t kv_heads = model->attention == ND_ATTENTION_MLA ? heads : model->kv_heads / tp;
    kv_heads = kv_heads > 0 ? kv_heads : 1;
    ND_TRY(check_divides("the heads of a tp rank,", heads, "cp", cp, err));
    if (kv_heads % cp != 0 && cp % kv_heads != 0) {
        return nd_fail(err, ND_EINVAL,
                       "of cp=%" PRId64 " (ulysses) and the %" PRId64 " key-value heads of a tp rank one must divide "
                       "the other",
                       cp, kv_heads);
    }
    return ND_OK;
}

static nd_status check_pipeline(const nd_model_spec *model, const nd_layout *layout, nd_error *err)
{
    int64_t pp = layout->size[ND_AXIS_PP];
    int64_t chunks = pp * layout->vpp;
    if (chunks > model->layers) {
        return nd_fail(err, ND_EINVAL, "pp=%" PRId64 " x vpp=%d chunks need a layer each, and %s has %" PRId64, pp,
                       layout->vpp, model->name, model->layers);
    }
    bool interleaved = layout->schedule == ND_SCHEDULE_INTERLEAVED;
    if (interleaved != (layout->vpp > 1)) {
        return nd_fail(err, ND_EINVAL, "vpp > 1 and schedule=interleaved go together: got vpp=%d, schedule=%s",
                       layout->vpp, nd_schedule_name(layout->schedule));
    }
    if (interleaved && pp == 1) {
        return nd_fail(err, ND_EINVAL, "vpp=%d interleaves pipeline stages, and pp is 1", layout->vpp);
    }
    if (interleaved && layout->grad_accum % pp != 0) {
        return nd_fail(err, ND_EINVAL,
                       "the interleaved schedule sends micro-batches in groups of pp=%" PRId64
                       ", which do not divide the %" PRId64 " of a step",
                       pp, layout->grad_accum);
    }
    return ND_OK;
}

static nd_status check_batch(const nd_layout *layout, const nd_train_spec *train, nd_error *err)
{
    int64_t batch = nd_layout_global_batch_seqs(layout);
    if (batch != train->global_batch_seqs) {
        return nd_fail(err, ND_EINVAL,
                       "micro_batch %d x grad_accum %" PRId64 " x %" PRId64 " data ranks = %" PRId64
                       " sequences, and the global batch has %" PRId64,
                       layout->micro_batch, layout->grad_accum, nd_layout_data_ranks(layout), batch,
                       train->global_batch_seqs);
    }
    if (layout->grad_accum > INT32_MAX) {
        return nd_fail(err, ND_EINVAL, "%" PRId64 " micro-batches are too many for a program", layout->grad_accum);
    }
    if (layout->sharding == ND_SHARDING_NONE && layout->size[ND_AXIS_DP_SHARD] > 1) {
        return nd_fail(err, ND_EINVAL, "dp_shard=%d must shard something, and sharding is none",
                       layout->size[ND_AXIS_DP_SHARD]);
    }
    return ND_OK;
}

static nd_status check_training(const nd_layout *layout, const nd_train_spec *train, nd_error *err)
{
    if (train->lora_rank > 0) {
        return nd_fail(err, ND_EUNSUPPORTED, "a program trains all weights: LoRA is estimated but not executed");
    }
    if (train->optimizer != ND_OPTIMIZER_ADAMW) {
        return nd_fail(err, ND_EUNSUPPORTED, "optimizer %s is estimated but not executed; adamw is",
                       nd_optimizer_name(train->optimizer));
    }
    if (layout->offload != ND_OFFLOAD_NONE) {
        return nd_fail(err, ND_EUNSUPPORTED, "offload=%s is estimated but not executed; offload=none is",
                       nd_offload_name(layout->offload));
    }
    return ND_OK;
}

nd_status nd_program_supports(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              nd_error *err)
{
    ND_TRY(check_training(layout, train, err));
    ND_TRY(check_pipeline(model, layout, err));
    ND_TRY(check_batch(layout, train, err));
    ND_TRY(check_tp(model, layout, err));
    ND_TRY(check_ep(model, layout, err));
    return check_sequence(model, layout, train, err);
}
