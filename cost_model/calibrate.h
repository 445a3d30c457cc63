/** From a table of measured runs to fitted constants with their errors. docs/MODEL.md, "Fitting". */
#ifndef ND_COST_MODEL_CALIBRATE_H
#define ND_COST_MODEL_CALIBRATE_H

#include "cost_model/fitted.h"

ND_BEGIN_DECLS

typedef struct nd_calibrate_request {
    const nd_csv *csv;      /* columns of measured_run.h */
    const char *gpu;        /* only runs of this GPU's calibration, or NULL */
    const char *stack;      /* only runs of this stack, or NULL */
    bool skip_left_out;     /* do not leave sources out: minutes less, and the form's error stays unknown */
    const nd_fitted *start; /* where priors come from: fitted before, or NULL for those of micro-benchmarks alone */
} nd_calibrate_request;

typedef struct nd_calibration_result {
    nd_fitted fitted;
    nd_fitted_residual *residuals; /* owned: one per usable run */
    int64_t residuals_count;
    int64_t sources; /* left out one by one to see the error of the model's form; 0 when there are fewer than three */
} nd_calibration_result;

/** Fit. The form's error comes from runs of sources that the fit did not see: as wide as makes 80 % intervals hold for
 * 80 % of them, sources weighted equally. ND_EINVAL when no run is usable. */
nd_status nd_calibrate_from_runs(const nd_calibrate_request *request, nd_calibration_result *out,
                                 nd_error *err) ND_NODISCARD;

void nd_calibration_result_free(nd_calibration_result *result);

ND_END_DECLS

#endif
