#include "cost_model/anchor.h"

#include <math.h>

static const double factor_max = 8.0;
static const double step_tolerance = 1e-6;

/* Runs of SimuMax and of DGX Cloud, each scaled by another one of its source and class: the width that covers 80 % of
 * them. These are what an anchor is for, one machine and one stack with other layouts and sizes. In sources that mix
 * machines, models and releases an anchor says little (docs/ACCURACY.md). */
static const double anchored_form_log_sd = 0.055;
static const double anchored_hard_form_log_sd = 0.10;

static void slow_down(const nd_calibration *calibration, const nd_stack *stack, double factor,
                      nd_calibration *slower_calibration, nd_stack *slower_stack)
{
    slower_stack->gemm_frac = stack->gemm_frac / factor;
    slower_stack->attention_frac = stack->attention_frac / factor;
    slower_stack->launch_s = stack->launch_s * factor;
    slower_calibration->hbm_frac = calibration->hbm_frac / factor;
}

/* Whatever the factor, the anchored layout takes its step: constants that it rests on are no longer uncertain, the
 * links and the form of the model are. */
static void narrow(nd_time_uncertainty *uncertainty)
{
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        for (int j = 0; j < ND_TIME_FACTOR_COUNT; j++) {
            bool stays = i == ND_FACTOR_LINKS || i == ND_FACTOR_CONTENTION;
            uncertainty->covariance[i][j] = stays && i == j ? uncertainty->covariance[i][j] : 0.0;
        }
    }
    uncertainty->form_log_sd = fmin(uncertainty->form_log_sd, anchored_form_log_sd);
    uncertainty->hard_form_log_sd = fmin(uncertainty->hard_form_log_sd, anchored_hard_form_log_sd);
}

nd_status nd_anchor(nd_cost_context *context, nd_calibration *calibration, nd_stack *stack, const nd_layout *layout,
                    double step_s, double *factor, nd_error *err)
{
    const nd_calibration before = *calibration;
    const nd_stack stack_before = *stack;
    double low = 1.0 / factor_max;
    double high = factor_max;
    nd_estimate estimate;
    double middle = 1.0;
    if (!(step_s > 0.0) || !isfinite(step_s)) {
        return nd_fail(err, ND_EINVAL, "a measured step must be a positive time, got %g s", step_s);
    }
    for (int i = 0; i < 60; i++) {
        slow_down(&before, &stack_before, middle, calibration, stack);
        nd_estimate_layout(context, layout, &estimate);
        if (fabs(estimate.time.step_s / step_s - 1.0) < step_tolerance) {
            break;
        }
        if (estimate.time.step_s < step_s) {
            low = middle;
        } else {
            high = middle;
        }
        middle = sqrt(low * high);
    }
    if (fabs(estimate.time.step_s / step_s - 1.0) > 1e-3) {
        *calibration = before;
        *stack = stack_before;
        nd_estimate_layout(context, layout, &estimate);
        return nd_fail(
            err, ND_EINVAL,
            "a step of %.4g s is out of reach: the layout is predicted to take %.4g s, and no machine 1/8 to 8 "
            "times as slow gives yours; check the step, the layout and the cluster",
            step_s, estimate.time.step_s);
    }
    narrow(&context->uncertainty);
    if (factor != NULL) {
        *factor = middle;
    }
    return ND_OK;
}
