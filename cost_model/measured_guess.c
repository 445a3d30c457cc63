/* What a measured row leaves open: predicted the way a user would choose it. */
#include "cost_model/measured_run.h"

static const nd_recompute lightest_first[] = {ND_RECOMPUTE_NONE, ND_RECOMPUTE_SELECTIVE, ND_RECOMPUTE_FULL};

static bool is_assumed(const nd_measured_run *run, nd_run_assumption assumption)
{
    return (run->assumed >> assumption & 1u) != 0;
}

/* Frameworks recompute nothing unless told to. So a run that does not say recomputes nothing, unless its predicted
 * memory exceeds the device by more than the prediction's error can explain (90th percentile of memory errors, rounded
 * up). */
static const double sure_overflow = 1.25;

/* The first recompute mode that may have fitted, else full. */
static nd_status choose_recompute(nd_measured_run *run, const nd_calibration *calibration, nd_estimate *out,
                                  nd_error *err)
{
    size_t last = sizeof lightest_first / sizeof lightest_first[0] - 1;
    for (size_t i = 0; i <= last; i++) {
        run->layout.recompute = lightest_first[i];
        ND_TRY(nd_measured_predict(run, calibration, out, err));
        if (out->memory.peak_bytes <= sure_overflow * out->memory.capacity_bytes || i == last) {
            return ND_OK;
        }
    }
    return ND_OK;
}

static nd_status predict_guess(nd_measured_run *run, const nd_calibration *calibration, nd_estimate *out, nd_error *err)
{
    return is_assumed(run, ND_ASSUMED_RECOMPUTE) ? choose_recompute(run, calibration, out, err)
                                                 : nd_measured_predict(run, calibration, out, err);
}

nd_status nd_measured_complete(nd_measured_run *run, const nd_calibration *calibration, nd_error *err)
{
    nd_estimate estimate;
    if (!is_assumed(run, ND_ASSUMED_MICRO_BATCH)) {
        return is_assumed(run, ND_ASSUMED_RECOMPUTE) ? predict_guess(run, calibration, &estimate, err) : ND_OK;
    }
    nd_layout best = run->layout;
    double best_s = -1.0;
    int64_t local = run->layout.grad_accum; /* micro_batch is 1 so far */
    for (int64_t size = 1; size <= local && local % size == 0; size *= 2) {
        run->layout.micro_batch = (int32_t)size;
        run->layout.grad_accum = local / size;
        ND_TRY(predict_guess(run, calibration, &estimate, err));
        bool fits = estimate.memory.peak_bytes <= estimate.memory.capacity_bytes;
        if (best_s < 0.0 || (fits && estimate.time.step_s < best_s)) {
            best = run->layout;
            best_s = estimate.time.step_s;
        }
    }
    run->layout = best;
    return ND_OK;
}

nd_status nd_measured_predict(const nd_measured_run *run, const nd_calibration *calibration, nd_estimate *out,
                              nd_error *err)
{
    nd_cost_context context;
    ND_TRY(nd_cost_context_init(&run->model, &run->cluster, &run->train, &run->stack, calibration, &context, err));
    nd_estimate_layout(&context, &run->layout, out);
    return ND_OK;
}
