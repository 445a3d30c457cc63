/** Constants fitted to measured runs, laid over the priors of calibrations/ and stacks/.
 *
 * The project ships one such table (fitted/runs.json, written by `ndplan calibrate --from-runs`); a user may have
 * another of his own machine. Constants belong to a GPU's calibration or to a software stack, never to a model or a
 * source.
 */
#ifndef ND_COST_MODEL_FITTED_H
#define ND_COST_MODEL_FITTED_H

#include <stdio.h>

#include "cost_model/fit_runs.h"

ND_BEGIN_DECLS

struct nd_fitted {
    char name[96];        /* file */
    char source[256];     /* which data, how many runs */
    char fingerprint[32]; /* of the data: "fnv1a64:..." */
    int64_t runs;
    nd_run_constant constants[ND_FIT_PARAMETERS_MAX];
    double value[ND_FIT_PARAMETERS_MAX];
    double log_sd[ND_FIT_PARAMETERS_MAX];
    bool identified[ND_FIT_PARAMETERS_MAX];
    double covariance[ND_FIT_PARAMETERS_MAX][ND_FIT_PARAMETERS_MAX]; /* of the logarithms */
    int32_t constants_count;
    double reduced_chi2, rcond;
    double form_log_sd, hard_form_log_sd; /* 0: not known from these runs */
};

/** The table that the project ships. */
nd_status nd_fitted_shipped(nd_fitted *out, nd_error *err) ND_NODISCARD;

/** A table from a file (`--calibration FILE`): ND_EIO, or ND_EPARSE with file, line and column; *out is untouched
 * then. */
nd_status nd_fitted_load(const char *path, nd_fitted *out, nd_error *err) ND_NODISCARD;

/** Identified constants that belong to this GPU's calibration or this stack. */
int32_t nd_fitted_count_for(const nd_fitted *fitted, const nd_calibration *calibration, const nd_stack *stack);

/** Lay the fitted values over a calibration and a stack (either may be NULL). */
void nd_fitted_apply(const nd_fitted *fitted, nd_calibration *calibration, nd_stack *stack);

/** How certain step times are with this calibration and stack; constants that the table lacks keep their priors. */
nd_time_uncertainty nd_fitted_uncertainty(const nd_fitted *fitted, const nd_calibration *calibration,
                                          const nd_stack *stack);

/** Residuals of a fit, for the file. */
typedef struct nd_fitted_residual {
    char id[40];
    double log_error;          /* log(predicted / measured) */
    double left_out_log_error; /* the same with the run's source left out of the fit; NAN when not done */
    double weight;             /* robust, 0..1 */
} nd_fitted_residual;

/** Write a table as JSON. */
void nd_fitted_write(FILE *out, const nd_fitted *fitted, const nd_fitted_residual *residuals, int64_t residuals_count);

ND_END_DECLS

#endif
