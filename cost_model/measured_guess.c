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

enum { VPP_MAX = 12 }; /* chunks per stage in published recipes: up to 12, on pipelines of 4 and more */

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

/* The best layout so far of those that a row leaves open. */
typedef struct choice {
    nd_layout layout;
    double step_s; /* < 0: none yet */
} choice;

static nd_status consider(nd_measured_run *run, const nd_calibration *calibration, choice *best, nd_error *err)
{
    nd_estimate estimate;
    ND_TRY(predict_guess(run, calibration, &estimate, err));
    bool fits = estimate.memory.peak_bytes <= estimate.memory.capacity_bytes;
    if (best->step_s < 0.0 || (fits && estimate.time.step_s < best->step_s)) {
        best->layout = run->layout;
        best->step_s = estimate.time.step_s;
    }
    return ND_OK;
}

/* Chunks per stage that divide the layers, up to the most that recipes use. */
static nd_status consider_interleaving(nd_measured_run *run, const nd_calibration *calibration, choice *best,
                                       nd_error *err)
{
    int64_t pp = run->layout.size[ND_AXIS_PP];
    bool open = is_assumed(run, ND_ASSUMED_INTERLEAVING) && run->layout.grad_accum % pp == 0;
    for (int32_t vpp = 1; vpp <= (open ? VPP_MAX : 1); vpp++) {
        if (open && run->model.layers % (pp * vpp) != 0) {
            continue;
        }
        if (open) {
            run->layout.vpp = vpp;
            run->layout.schedule = vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B;
        }
        ND_TRY(consider(run, calibration, best, err));
    }
    return ND_OK;
}

nd_status nd_measured_complete(nd_measured_run *run, const nd_calibration *calibration, nd_error *err)
{
    bool open_batch = is_assumed(run, ND_ASSUMED_MICRO_BATCH);
    choice best = {.step_s = -1.0};
    if (!open_batch && !is_assumed(run, ND_ASSUMED_RECOMPUTE) && !is_assumed(run, ND_ASSUMED_INTERLEAVING)) {
        return ND_OK;
    }
    int64_t local = run->layout.grad_accum; /* micro_batch is 1 so far when it is open */
    for (int64_t size = 1; size <= (open_batch ? local : 1) && local % size == 0; size *= 2) {
        if (open_batch) {
            run->layout.micro_batch = (int32_t)size;
            run->layout.grad_accum = local / size;
        }
        ND_TRY(consider_interleaving(run, calibration, &best, err));
    }
    run->layout = best.layout;
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
