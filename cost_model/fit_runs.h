/** Fitting constants of GPUs and of software stacks to measured training runs. docs/MODEL.md, "Fitting". */
#ifndef ND_COST_MODEL_FIT_RUNS_H
#define ND_COST_MODEL_FIT_RUNS_H

#include "cost_model/fit.h"
#include "cost_model/run_set.h"

ND_BEGIN_DECLS

/** One constant that the runs may move: `key` of a GPU's calibration or of a software stack. */
typedef struct nd_run_constant {
    bool of_stack;
    char owner[48]; /* calibration or stack name */
    char key[32];
    double prior;
    double prior_log_sd;
    double min, max;
} nd_run_constant;

typedef struct nd_run_fit {
    nd_run_constant constants[ND_FIT_PARAMETERS_MAX];
    int32_t constants_count;
    nd_fit_result result;
    int64_t rows; /* runs that took part */
} nd_run_fit;

/** Which runs take part in a fit, beside having a measured step, a grade other than C to Z (A, B or none) and no
 * contradiction. */
typedef struct nd_fit_selection {
    const char *without_source; /* leave this source out, or NULL */
    const char *gpu;            /* only this calibration, or NULL */
    const char *stack;          /* only this stack, or NULL */
    const nd_run_fit *near;     /* a fit whose answer is close, to begin there; or NULL */
} nd_fit_selection;

/** Relative scatter of one run: what even a perfect model is off by.
 * \param[in] hard  nd_measured_is_hard() */
double nd_run_scatter_log_sd(bool hard);

/** What a fit may set a constant to; false when `key` is no constant that runs can tell. */
bool nd_run_constant_bounds(bool of_stack, const char *key, double *min, double *max);

/** True when a fit may use the run. */
bool nd_run_is_usable(const nd_measured_run *run);

/** True when a fit with this selection uses the run. Runs on a GPU that borrows its constants take no part beside runs
 * on GPUs that have their own: they would push a relative's errors into the constants of their stack. */
bool nd_run_is_selected(const nd_run_set *set, const nd_run_entry *entry, const nd_fit_selection *selection);

/** Fit the constants of every calibration and stack that the selected runs use; the set's calibrations and its
 * entries' stacks are left at the fitted values. ND_EINVAL when no run is selected. */
nd_status nd_fit_runs(nd_run_set *set, const nd_fit_selection *selection, nd_run_fit *out, nd_error *err) ND_NODISCARD;

/** The same, and the robust weight of each selected run in the order of the set.
 * \param[out] weights  room for set->count numbers, or NULL */
nd_status nd_fit_runs_weighted(nd_run_set *set, const nd_fit_selection *selection, nd_run_fit *out, double *weights,
                               nd_error *err) ND_NODISCARD;

/** Set every constant of the table back to its prior, or to the values of a fit. */
void nd_run_fit_apply(nd_run_set *set, const nd_run_constant *constants, const double *values, int32_t count);

ND_END_DECLS

#endif
