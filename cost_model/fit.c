#include "cost_model/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"

enum { ROUNDS_MAX = 10, ROUNDS_WHILE_DROPPING = 2, ITERATIONS_MAX = 25 };

static const double huber_k = 1.345; /* 95 % efficiency for normal errors (Huber) */
static const double weights_settled = 1e-3;
static const double derivative_step = 1e-4; /* of a logarithm: small against every effect, large against rounding */
static const double says_nothing = 0.90;    /* narrowed by a tenth or less: of several such, none needs to stay */
static const double default_not_identified = 0.8; /* own choice, docs/MODEL.md "Fitting" */
static const double scale_of_mad = 1.4826;        /* median absolute deviation to standard deviation, normal errors */

typedef struct fit {
    const nd_fit_problem *problem;
    int32_t active[ND_FIT_PARAMETERS_MAX]; /* parameters in the fit; the others stay at their prior */
    int32_t active_count;
    double start[ND_FIT_PARAMETERS_MAX]; /* where the descent begins: the priors, then the last answer */
    double *predicted;                   /* measured_count */
    double *weights;                     /* measured_count */
    double *errors;                      /* measured_count, log(predicted / measured) */
    bool pinned[ND_FIT_PARAMETERS_MAX];  /* by active index: held at the bound that the data push it against */
    int32_t rounds_max;                  /* of re-weighting: few while it is open which constants stay */
    bool broken;                         /* the model predicted something impossible */
} fit;

static const nd_fit_parameter *active_parameter(const fit *f, int32_t i)
{
    return &f->problem->parameters[f->active[i]];
}

static double clamp_log(const nd_fit_parameter *parameter, double x)
{
    return fmin(fmax(x, log(parameter->min)), log(parameter->max));
}

static void values_at(const fit *f, const gsl_vector *x, double *values)
{
    const nd_fit_problem *p = f->problem;
    for (int32_t i = 0; i < p->parameters_count; i++) {
        values[i] = p->parameters[i].prior;
    }
    for (int32_t i = 0; i < f->active_count; i++) {
        const nd_fit_parameter *parameter = active_parameter(f, i);
        double value = exp(gsl_vector_get(x, (size_t)i));
        values[f->active[i]] = fmin(fmax(value, parameter->min), parameter->max);
    }
}

static bool predict(fit *f, const double *values)
{
    const nd_fit_problem *p = f->problem;
    p->model(values, f->predicted, p->user);
    for (int64_t i = 0; i < p->measured_count; i++) {
        if (!isfinite(f->predicted[i]) || f->predicted[i] <= 0.0) {
            f->broken = true;
            return false;
        }
        f->errors[i] = log(f->predicted[i]) - log(p->measured[i]);
    }
    return true;
}

/* Rows of the residual vector: the measurements, then the priors. A pinned parameter is drawn to its bound. */
static int residuals(const gsl_vector *x, void *user, gsl_vector *out)
{
    fit *f = user;
    const nd_fit_problem *p = f->problem;
    double values[ND_FIT_PARAMETERS_MAX];
    values_at(f, x, values);
    if (!predict(f, values)) {
        return GSL_EBADFUNC;
    }
    for (int64_t i = 0; i < p->measured_count; i++) {
        gsl_vector_set(out, (size_t)i, sqrt(f->weights[i]) * f->errors[i] / p->log_sd[i]);
    }
    for (int32_t i = 0; i < f->active_count; i++) {
        const nd_fit_parameter *parameter = active_parameter(f, i);
        double at = gsl_vector_get(x, (size_t)i);
        double centre = f->pinned[i] ? clamp_log(parameter, at) : log(parameter->prior);
        gsl_vector_set(out, (size_t)(p->measured_count + i), (at - centre) / parameter->prior_log_sd);
    }
    return GSL_SUCCESS;
}

/* Column `i` of the measurements' rows, which hold the errors at `values`: a step that stays inside the bounds. */
static bool difference(fit *f, const double *values, int32_t i, gsl_matrix *out)
{
    const nd_fit_problem *p = f->problem;
    const nd_fit_parameter *parameter = active_parameter(f, i);
    double moved[ND_FIT_PARAMETERS_MAX];
    double at = log(values[f->active[i]]);
    double to = clamp_log(parameter, at + derivative_step);
    to = to > at + 0.5 * derivative_step ? to : clamp_log(parameter, at - derivative_step);
    double step = f->pinned[i] ? 0.0 : to - at;
    memcpy(moved, values, sizeof moved);
    moved[f->active[i]] = exp(to);
    if (step != 0.0 && !predict(f, moved)) {
        return false;
    }
    for (int64_t row = 0; row < p->measured_count; row++) {
        double slope = step == 0.0 ? 0.0 : (f->errors[row] - gsl_matrix_get(out, (size_t)row, (size_t)i)) / step;
        gsl_matrix_set(out, (size_t)row, (size_t)i, sqrt(f->weights[row]) * slope / p->log_sd[row]);
    }
    return true;
}

/* GSL's own differences step by a share of x: nothing at all where a constant is 1 and its logarithm 0. */
static int jacobian(const gsl_vector *x, void *user, gsl_matrix *out)
{
    fit *f = user;
    double values[ND_FIT_PARAMETERS_MAX] = {0};
    values_at(f, x, values);
    if (!predict(f, values)) {
        return GSL_EBADFUNC;
    }
    gsl_matrix_set_zero(out);
    for (int32_t i = 0; i < f->active_count; i++) {
        for (int64_t row = 0; row < f->problem->measured_count; row++) {
            gsl_matrix_set(out, (size_t)row, (size_t)i, f->errors[row]);
        }
        gsl_matrix_set(out, (size_t)(f->problem->measured_count + i), (size_t)i,
                       1.0 / active_parameter(f, i)->prior_log_sd);
    }
    for (int32_t i = 0; i < f->active_count; i++) {
        if (!difference(f, values, i, out)) {
            return GSL_EBADFUNC;
        }
    }
    return GSL_SUCCESS;
}

/* Huber's weights from the current errors; the largest change. */
static double reweight(fit *f, double *scratch)
{
    const nd_fit_problem *p = f->problem;
    double change = 0.0;
    for (int64_t i = 0; i < p->measured_count; i++) {
        scratch[i] = fabs(f->errors[i] / p->log_sd[i]);
    }
    /* the scale never falls below the stated uncertainty: good rows are not punished for being better than that */
    double scale = fmax(1.0, scale_of_mad * nd_median(scratch, p->measured_count));
    for (int64_t i = 0; i < p->measured_count; i++) {
        double weight = 1.0 / fmax(1.0, fabs(f->errors[i] / p->log_sd[i]) / (huber_k * scale));
        change = fmax(change, fabs(weight - f->weights[i]));
        f->weights[i] = weight;
    }
    return change;
}

static nd_status broken_model(nd_error *err)
{
    return nd_fail(err, ND_EINVAL, "the model predicts something that is not positive and finite; check the rows");
}

/* One weighted solution from `start`, which it replaces, with the pinned parameters held. */
static nd_status descend(fit *f, gsl_multifit_nlinear_workspace *workspace, gsl_vector *start, nd_error *err)
{
    size_t rows = (size_t)(f->problem->measured_count + f->active_count);
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals, .df = jacobian, .fvv = NULL, .n = rows, .p = (size_t)f->active_count, .params = f};
    int info = 0;
    if (gsl_multifit_nlinear_init(start, &fdf, workspace) != GSL_SUCCESS || f->broken) {
        return broken_model(err);
    }
    /* no progress is an answer too: kinks of the model end the descent at the best point found */
    (void)gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-4, 1e-6, 1e-6, NULL, NULL, &info, workspace);
    if (f->broken) {
        return broken_model(err);
    }
    gsl_vector_memcpy(start, gsl_multifit_nlinear_position(workspace));
    (void)residuals(start, f,
                    gsl_multifit_nlinear_residual(workspace)); /* errors of the answer, not of the last trial */
    return f->broken ? broken_model(err) : ND_OK;
}

/* Pin what left its bounds and bring it back to them; whether there was anything to pin. Outside, the model does not
 * change, so that the descent there would stop too early for the others. */
static bool pin_outside(fit *f, gsl_vector *x)
{
    bool any = false;
    for (int32_t i = 0; i < f->active_count; i++) {
        double at = gsl_vector_get(x, (size_t)i);
        double inside = clamp_log(active_parameter(f, i), at);
        if (!f->pinned[i] && at != inside) {
            f->pinned[i] = true;
            any = true;
        }
        gsl_vector_set(x, (size_t)i, inside);
    }
    return any;
}

/* One weighted solution inside the bounds from `x`, which it replaces. */
static nd_status solve(fit *f, gsl_multifit_nlinear_workspace *workspace, gsl_vector *x, nd_error *err)
{
    do {
        ND_TRY(descend(f, workspace, x, err));
    } while (pin_outside(f, x));
    return ND_OK;
}

static nd_status solve_robustly(fit *f, gsl_multifit_nlinear_workspace *workspace, gsl_vector *x, nd_fit_result *out,
                                nd_error *err)
{
    double *scratch = malloc((size_t)f->problem->measured_count * sizeof *scratch);
    nd_status status = scratch == NULL ? nd_fail(err, ND_ENOMEM, "out of memory for the fit") : ND_OK;
    for (out->rounds = 0; status == ND_OK && out->rounds < f->rounds_max; out->rounds++) {
        if (out->rounds <= 1) { /* later the weights hardly move any more, and what stands at a bound stays there */
            memset(f->pinned, 0, sizeof f->pinned);
        }
        status = solve(f, workspace, x, err);
        if (status == ND_OK && reweight(f, scratch) < weights_settled) {
            break;
        }
    }
    free(scratch);
    return status;
}

static void record_scatter(const fit *f, nd_fit_result *out)
{
    const nd_fit_problem *p = f->problem;
    double sum = 0.0;
    double total = 0.0;
    for (int64_t i = 0; i < p->measured_count; i++) {
        double z = f->errors[i] / p->log_sd[i];
        sum += f->weights[i] * z * z;
        total += f->weights[i];
    }
    double freedom = total - (double)f->active_count;
    out->reduced_chi2 = freedom > 0.0 ? sum / freedom : 1.0;
}

/* From the Jacobian at the answer, pinned parameters included. Measurements that scatter more than they claim to
 * count for less; the priors claim what they claim. */
static nd_status find_covariance(fit *f, const gsl_vector *x, gsl_multifit_nlinear_workspace *workspace,
                                 gsl_matrix *covariance, nd_fit_result *out, nd_error *err)
{
    gsl_matrix *j = gsl_multifit_nlinear_jac(workspace);
    (void)gsl_multifit_nlinear_rcond(&out->rcond, workspace);
    memset(f->pinned, 0, sizeof f->pinned);
    if (jacobian(x, f, j) != GSL_SUCCESS || !predict(f, out->value)) { /* the errors are those of the answer again */
        return broken_model(err);
    }
    gsl_matrix_view rows = gsl_matrix_submatrix(j, 0, 0, (size_t)f->problem->measured_count, j->size2);
    gsl_matrix_scale(&rows.matrix, 1.0 / sqrt(fmax(1.0, out->reduced_chi2)));
    (void)gsl_multifit_nlinear_covar(j, 0.0, covariance); /* the priors' rows make it regular */
    return ND_OK;
}

static nd_status record_answer(fit *f, const gsl_vector *x, gsl_multifit_nlinear_workspace *workspace,
                               gsl_matrix *covariance, nd_fit_result *out, nd_error *err)
{
    values_at(f, x, out->value);
    record_scatter(f, out);
    ND_TRY(find_covariance(f, x, workspace, covariance, out, err));
    memset(out->covariance, 0, sizeof out->covariance);
    for (int32_t i = 0; i < f->problem->parameters_count; i++) {
        double sd = f->problem->parameters[i].prior_log_sd;
        out->identified[i] = false;
        out->log_sd[i] = sd;
        out->covariance[i][i] = sd * sd;
    }
    for (int32_t i = 0; i < f->active_count; i++) {
        int32_t row = f->active[i];
        out->identified[row] = true;
        for (int32_t j = 0; j < f->active_count; j++) {
            out->covariance[row][f->active[j]] = gsl_matrix_get(covariance, (size_t)i, (size_t)j);
        }
        out->log_sd[row] = sqrt(out->covariance[row][row]);
        if (!isfinite(out->log_sd[row])) {
            return nd_fail(err, ND_EINVAL, "parameter %s: the fit is out of range; check the uncertainties",
                           f->problem->parameters[row].name);
        }
    }
    return ND_OK;
}

/* Posterior against prior width of one active parameter. */
static double width_ratio(const fit *f, const nd_fit_result *result, int32_t position)
{
    int32_t index = f->active[position];
    return result->log_sd[index] / f->problem->parameters[index].prior_log_sd;
}

/* Drop what the data say nothing about, and of the rest the parameter that they narrow least, when they hardly do: of a
 * correlated pair one must stay. */
static bool drop_unidentified(fit *f, const nd_fit_result *result)
{
    double limit = f->problem->not_identified_ratio > 0.0 ? f->problem->not_identified_ratio : default_not_identified;
    double worst = 0.0;
    for (int32_t i = 0; i < f->active_count; i++) {
        worst = fmax(worst, width_ratio(f, result, i));
    }
    if (worst <= limit) {
        return false;
    }
    double cut = fmin(worst, fmax(limit, says_nothing));
    int32_t kept = 0;
    for (int32_t i = 0; i < f->active_count; i++) {
        if (width_ratio(f, result, i) < cut) {
            f->active[kept++] = f->active[i];
        }
    }
    f->active_count = kept;
    return true;
}

static nd_status fit_active(fit *f, nd_fit_result *out, nd_error *err)
{
    size_t parameters = (size_t)f->active_count;
    size_t rows = (size_t)f->problem->measured_count + parameters;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *workspace =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, rows, parameters);
    gsl_vector *x = gsl_vector_alloc(parameters);
    gsl_matrix *covariance = gsl_matrix_alloc(parameters, parameters);
    nd_status status = ND_OK;
    if (workspace == NULL || x == NULL || covariance == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a fit of %zu rows", rows);
    } else {
        for (size_t i = 0; i < parameters; i++) {
            gsl_vector_set(x, i, log(f->start[f->active[i]]));
        }
        status = solve_robustly(f, workspace, x, out, err);
    }
    if (status == ND_OK) {
        status = record_answer(f, x, workspace, covariance, out, err);
    }
    gsl_matrix_free(covariance);
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(workspace);
    return status;
}

/* Nothing left to fit: every constant keeps its prior. */
static nd_status keep_priors(fit *f, nd_fit_result *out, nd_error *err)
{
    for (int32_t i = 0; i < f->problem->parameters_count; i++) {
        const nd_fit_parameter *parameter = &f->problem->parameters[i];
        out->value[i] = parameter->prior;
        out->log_sd[i] = parameter->prior_log_sd;
        out->identified[i] = false;
        out->covariance[i][i] = parameter->prior_log_sd * parameter->prior_log_sd;
    }
    if (!predict(f, out->value)) {
        return broken_model(err);
    }
    record_scatter(f, out);
    out->rcond = 0.0;
    return ND_OK;
}

static nd_status fit_until_identified(fit *f, nd_fit_result *out, nd_error *err)
{
    nd_fit_result result;
    bool settled = false;
    f->rounds_max = ROUNDS_WHILE_DROPPING;
    while (!settled) {
        memset(&result, 0, sizeof result);
        for (int64_t i = 0; i < f->problem->measured_count; i++) {
            f->weights[i] = 1.0;
        }
        if (f->active_count == 0) {
            ND_TRY(keep_priors(f, &result, err));
            break;
        }
        ND_TRY(fit_active(f, &result, err));
        memcpy(f->start, result.value, sizeof f->start);
        if (!drop_unidentified(f, &result)) {
            settled = f->rounds_max == ROUNDS_MAX;
            f->rounds_max = ROUNDS_MAX;
        }
    }
    *out = result;
    return ND_OK;
}

static nd_status check(const nd_fit_problem *p, nd_error *err)
{
    if (p->parameters_count < 1 || p->parameters_count > ND_FIT_PARAMETERS_MAX || p->measured_count < 1) {
        return nd_fail(err, ND_EINVAL, "a fit needs 1 to %d parameters and a measurement, got %d and %lld",
                       (int)ND_FIT_PARAMETERS_MAX, (int)p->parameters_count, (long long)p->measured_count);
    }
    for (int32_t i = 0; i < p->parameters_count; i++) {
        const nd_fit_parameter *q = &p->parameters[i];
        if (!(q->min > 0.0 && q->min <= q->prior && q->prior <= q->max && isfinite(q->max) && q->prior_log_sd > 0.0 &&
              isfinite(q->prior_log_sd))) {
            return nd_fail(err, ND_EINVAL,
                           "parameter %s: needs 0 < min <= prior <= max and a width > 0, got %g, %g, %g, %g", q->name,
                           q->min, q->prior, q->max, q->prior_log_sd);
        }
    }
    for (int64_t i = 0; i < p->measured_count; i++) {
        if (!(p->measured[i] > 0.0 && isfinite(p->measured[i]) && p->log_sd[i] > 0.0 && isfinite(p->log_sd[i]))) {
            return nd_fail(err, ND_EINVAL,
                           "measurement %lld must be positive with a positive uncertainty, got %g and %g",
                           (long long)i + 1, p->measured[i], p->log_sd[i]);
        }
    }
    return ND_OK;
}

nd_status nd_fit(const nd_fit_problem *problem, nd_fit_result *out, double *log_errors, double *weights, nd_error *err)
{
    ND_TRY(check(problem, err));
    size_t count = (size_t)problem->measured_count;
    size_t bytes = count * sizeof(double);
    fit f = {.problem = problem,
             .predicted = calloc(count, sizeof(double)),
             .weights = calloc(count, sizeof(double)),
             .errors = calloc(count, sizeof(double))};
    for (f.active_count = 0; f.active_count < problem->parameters_count; f.active_count++) {
        f.active[f.active_count] = f.active_count;
        const nd_fit_parameter *parameter = &problem->parameters[f.active_count];
        double start = problem->start != NULL ? problem->start[f.active_count] : parameter->prior;
        f.start[f.active_count] = fmin(fmax(start, parameter->min), parameter->max);
    }
    gsl_error_handler_t *handler = gsl_set_error_handler_off(); /* its default aborts the program */
    nd_status status = ND_ENOMEM;
    if (f.predicted == NULL || f.weights == NULL || f.errors == NULL) {
        (void)nd_fail(err, ND_ENOMEM, "out of memory for a fit of %lld rows", (long long)problem->measured_count);
    } else {
        status = fit_until_identified(&f, out, err);
    }
    (void)gsl_set_error_handler(handler);
    if (status == ND_OK) {
        if (log_errors != NULL) {
            memcpy(log_errors, f.errors, bytes);
        }
        if (weights != NULL) {
            memcpy(weights, f.weights, bytes);
        }
        for (int64_t i = 0; i < problem->measured_count; i++) {
            f.predicted[i] = fabs(f.errors[i]);
        }
        out->median_abs_log_error = nd_median(f.predicted, problem->measured_count);
    }
    free(f.predicted);
    free(f.weights);
    free(f.errors);
    return status;
}
