/** Robust least squares for constants of the cost model (GSL's gsl_multifit_nlinear; this is its only owner).
 *
 * Minimises sum_i w_i (log(predicted_i / measured_i) / log_sd_i)^2 + sum_j ((log theta_j - log prior_j) / prior_sd_j)^2
 * over log theta. Log residuals make every error relative, log parameters keep constants positive. The weights w_i
 * are Huber's, re-computed from the residuals until they settle, so that a few contradictory rows do not bend the fit.
 * A parameter whose posterior is hardly narrower than its prior is set back to the prior and reported as not
 * identified: the data say nothing about it. docs/MODEL.md, "Fitting".
 */
#ifndef ND_COST_MODEL_FIT_H
#define ND_COST_MODEL_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_FIT_PARAMETERS_MAX = 96 };

typedef struct nd_fit_parameter {
    const char *name;    /* for messages and reports; borrowed */
    double prior;        /* > 0 */
    double prior_log_sd; /* > 0: 0.1 is "known to about 10 %" */
    double min, max;     /* 0 < min <= prior <= max: the model is never asked outside */
} nd_fit_parameter;

/** Predict every measured value with the given parameters.
 * \param[in]  values    one per parameter, inside its bounds
 * \param[out] predicted one per measurement; must be positive and finite */
typedef void (*nd_fit_model)(const double *values, double *predicted, void *user);

typedef struct nd_fit_problem {
    const nd_fit_parameter *parameters; /* 1..ND_FIT_PARAMETERS_MAX */
    int32_t parameters_count;
    const double *measured; /* > 0 */
    const double *log_sd;   /* > 0: relative uncertainty of each measurement, including what balances the sources */
    int64_t measured_count; /* >= 1 */
    const double *start;    /* parameters_count values where the descent begins; NULL: at the priors */
    nd_fit_model model;
    void *user;
    double not_identified_ratio; /* posterior / prior width above which the prior is kept; 0: 0.8 */
} nd_fit_problem;

typedef struct nd_fit_result {
    double value[ND_FIT_PARAMETERS_MAX];
    double log_sd[ND_FIT_PARAMETERS_MAX]; /* posterior; the prior's where it was kept */
    bool identified[ND_FIT_PARAMETERS_MAX];
    /* covariance of the logarithms; prior_log_sd^2 on the diagonal of those kept */
    double covariance[ND_FIT_PARAMETERS_MAX][ND_FIT_PARAMETERS_MAX];
    double reduced_chi2; /* of the measurements, robust weights applied */
    double rcond;        /* reciprocal condition number of the Jacobian, 0..1 */
    int32_t rounds;      /* of re-weighting */
    double median_abs_log_error;
} nd_fit_result;

/** Fit. ND_EINVAL for a malformed problem or a model that predicts something not positive and finite (outputs
 * untouched), ND_ENOMEM.
 * \param[out] log_errors  measured_count residuals log(predicted / measured) of the result, or NULL
 * \param[out] weights     measured_count robust weights in (0, 1], or NULL */
nd_status nd_fit(const nd_fit_problem *problem, nd_fit_result *out, double *log_errors, double *weights,
                 nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
