/* Layouts that no framework can run: a row that claims one is not predicted. */
#include "cost_model/measured_internal.h"

static nd_status check_tensor_parallel(const nd_measured_run *run, nd_error *err)
{
    int64_t tp = run->layout.size[ND_AXIS_TP];
    bool heads_known = (run->assumed >> ND_ASSUMED_SHAPE & 1u) == 0;
    if (tp > 1 && heads_known && run->model.heads % tp != 0) {
        return nd_fail(err, ND_EUNSUPPORTED, "tp=%lld does not divide the %lld heads", (long long)tp,
                       (long long)run->model.heads);
    }
    return ND_OK;
}

/* Megatron may count embedding and loss as layers of the split. */
static const int64_t pipeline_ends = 2;

static nd_status check_pipeline(const nd_measured_run *run, nd_error *err)
{
    int64_t chunks = (int64_t)run->layout.size[ND_AXIS_PP] * run->layout.vpp;
    if (chunks > run->model.layers + pipeline_ends) {
        return nd_fail(err, ND_EUNSUPPORTED, "pp x vpp = %lld chunks are more than the %lld layers", (long long)chunks,
                       (long long)run->model.layers);
    }
    return ND_OK;
}

static nd_status check_experts(const nd_measured_run *run, nd_error *err)
{
    const nd_layout *l = &run->layout;
    int64_t ranks =
        (int64_t)l->size[ND_AXIS_DP_REPLICATE] * l->size[ND_AXIS_DP_SHARD] * l->size[ND_AXIS_CP] * l->size[ND_AXIS_TP];
    if (l->ep > 1 && (run->model.experts % l->ep != 0 || ranks % l->ep != 0)) {
        return nd_fail(err, ND_EUNSUPPORTED, "ep=%d does not divide the %lld experts and the %lld ranks of a stage",
                       (int)l->ep, (long long)run->model.experts, (long long)ranks);
    }
    return ND_OK;
}

nd_status nd_measured_layout_check(const nd_measured_run *run, nd_error *err)
{
    int64_t cp = run->layout.size[ND_AXIS_CP];
    ND_TRY(check_tensor_parallel(run, err));
    ND_TRY(check_pipeline(run, err));
    ND_TRY(check_experts(run, err));
    if (run->train.seq_len_tokens < 2 * cp && cp > 1) {
        return nd_fail(err, ND_EUNSUPPORTED, "sequences of %lld tokens are too short for cp=%lld",
                       (long long)run->train.seq_len_tokens, (long long)cp);
    }
    return ND_OK;
}
