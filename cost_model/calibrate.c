#include "cost_model/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES_MAX = 64, SOURCES_MIN = 3 };

static const double wanted_coverage = 0.80;
static const double form_max = 2.0;

/* One usable run: what the form's error is judged by. */
typedef struct judged {
    const nd_run_entry *entry;
    double log_error;          /* of the final fit */
    double left_out_log_error; /* NAN until its source was left out */
    double parameter_log_sd;   /* of the final constants */
    double weight;             /* one over the runs of its source and class */
    bool hard;
} judged;

typedef struct calibration_work {
    nd_run_set set;
    nd_run_fit fit;
    judged *runs;
    int64_t count;
    char sources[SOURCES_MAX][24];
    int32_t sources_count;
} calibration_work;

static nd_status list_runs(calibration_work *work, const nd_calibrate_request *request, nd_error *err)
{
    work->runs = calloc((size_t)work->set.count + 1, sizeof work->runs[0]);
    if (work->runs == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %lld runs", (long long)work->set.count);
    }
    for (int64_t i = 0; i < work->set.count; i++) {
        const nd_run_entry *entry = &work->set.entries[i];
        nd_fit_selection selection = {.gpu = request->gpu, .stack = request->stack};
        if (!nd_run_is_selected(&work->set, entry, &selection)) {
            continue;
        }
        work->runs[work->count++] =
            (judged){.entry = entry, .left_out_log_error = nan(""), .hard = nd_measured_is_hard(&entry->run)};
        bool known = false;
        for (int32_t s = 0; s < work->sources_count; s++) {
            known = known || strcmp(work->sources[s], entry->run.source) == 0;
        }
        if (!known && work->sources_count < SOURCES_MAX) {
            (void)snprintf(work->sources[work->sources_count++], sizeof work->sources[0], "%s", entry->run.source);
        }
    }
    return ND_OK;
}

/* Why no run is left: what was asked for, and what the table has. */
static nd_status nothing_to_fit(const calibration_work *work, const nd_calibrate_request *request, nd_error *err)
{
    const nd_run_set *set = &work->set;
    const nd_fit_selection everything = {0};
    int64_t usable = 0;
    const nd_run_entry *first = NULL;
    for (int64_t i = set->count - 1; i >= 0; i--) {
        if (nd_run_is_selected(set, &set->entries[i], &everything)) {
            first = &set->entries[i];
            usable++;
        }
    }
    if (first != NULL) {
        return nd_fail(
            err, ND_EINVAL,
            "no run to fit: none of the %lld usable runs is of %s%s%s%s%s; run %s, for example, is of GPU %s "
            "and stack %s",
            (long long)usable, request->gpu != NULL ? "GPU " : "", request->gpu != NULL ? request->gpu : "",
            request->gpu != NULL && request->stack != NULL ? " and " : "", request->stack != NULL ? "stack " : "",
            request->stack != NULL ? request->stack : "", first->run.id, set->calibrations[first->calibration].gpu,
            first->run.stack.name);
    }
    if (set->count == 0 && set->skipped_count > 0) {
        return nd_fail(err, ND_EINVAL, "no run to fit: no row can be predicted; the first, %s: %s", set->skipped[0].id,
                       set->skipped[0].reason);
    }
    return nd_fail(err, ND_EINVAL,
                   "no run to fit: none of the %lld has a measured step, a grade other than C and no FLAG in its notes",
                   (long long)set->count);
}

static void set_priors(calibration_work *work)
{
    double priors[ND_FIT_PARAMETERS_MAX];
    for (int32_t i = 0; i < work->fit.constants_count; i++) {
        priors[i] = work->fit.constants[i].prior;
    }
    nd_run_fit_apply(&work->set, work->fit.constants, priors, work->fit.constants_count);
}

static double log_error_of(const calibration_work *work, const judged *run)
{
    double step_s = nd_run_set_step_s(&work->set, run->entry - work->set.entries);
    return log(step_s / run->entry->run.step_s);
}

/* Fit without one source and see how its runs are predicted. Needs no answer when nothing else is left. */
static nd_status leave_out(calibration_work *work, const nd_calibrate_request *request, const char *source,
                           nd_error *err)
{
    nd_fit_selection selection = {
        .without_source = source, .gpu = request->gpu, .stack = request->stack, .near = &work->fit};
    nd_run_fit *without = malloc(sizeof *without);
    nd_error ignored;
    if (without == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a fit");
    }
    set_priors(work);
    nd_status status = nd_fit_runs(&work->set, &selection, without, &ignored);
    free(without);
    for (int64_t i = 0; status == ND_OK && i < work->count; i++) {
        if (strcmp(work->runs[i].entry->run.source, source) == 0) {
            work->runs[i].left_out_log_error = log_error_of(work, &work->runs[i]);
        }
    }
    return ND_OK;
}

static void weigh_sources(calibration_work *work)
{
    for (int64_t i = 0; i < work->count; i++) {
        int64_t like = 0;
        for (int64_t j = 0; j < work->count; j++) {
            like += work->runs[j].hard == work->runs[i].hard &&
                    strcmp(work->runs[j].entry->run.source, work->runs[i].entry->run.source) == 0;
        }
        work->runs[i].weight = 1.0 / (double)like;
    }
}

/* Part of the left-out runs of a class that a form error of `form` covers, sources weighted equally; -1 without runs.
 */
static double coverage(const calibration_work *work, bool hard, double form)
{
    double inside = 0.0;
    double total = 0.0;
    for (int64_t i = 0; i < work->count; i++) {
        const judged *run = &work->runs[i];
        if (run->hard != hard || isnan(run->left_out_log_error)) {
            continue;
        }
        double sd = hypot(run->parameter_log_sd, form);
        inside += fabs(run->left_out_log_error) <= nd_interval80_sd * sd ? run->weight : 0.0;
        total += run->weight;
    }
    return total > 0.0 ? inside / total : -1.0;
}

/* The smallest form error whose intervals cover as many left-out runs as they promise; never less than the scatter of
 * one run, since a few runs that happen to agree do not make a model exact. */
static double form_error(const calibration_work *work, bool hard)
{
    double low = 0.0;
    double high = form_max;
    if (coverage(work, hard, high) < 0.0) {
        return 0.0;
    }
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2.0;
        if (coverage(work, hard, middle) >= wanted_coverage) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return fmax(high, nd_run_scatter_log_sd(hard));
}

static void record_fit(const calibration_work *work, const nd_calibrate_request *request, nd_fitted *out)
{
    const nd_run_fit *fit = &work->fit;
    memset(out, 0, sizeof *out);
    (void)snprintf(out->source, sizeof out->source, "fit of %lld runs of %d source%s", (long long)fit->rows,
                   (int)work->sources_count, work->sources_count == 1 ? "" : "s");
    (void)snprintf(out->fingerprint, sizeof out->fingerprint, "%s", nd_csv_fingerprint(request->csv));
    out->runs = fit->rows;
    out->constants_count = fit->constants_count;
    memcpy(out->constants, fit->constants, sizeof out->constants);
    memcpy(out->value, fit->result.value, sizeof out->value);
    memcpy(out->log_sd, fit->result.log_sd, sizeof out->log_sd);
    memcpy(out->identified, fit->result.identified, sizeof out->identified);
    for (int32_t i = 0; i < fit->constants_count; i++) {
        memcpy(out->covariance[i], fit->result.covariance[i], sizeof out->covariance[i]);
    }
    out->reduced_chi2 = fit->result.reduced_chi2;
    out->rcond = isfinite(fit->result.rcond) ? fit->result.rcond : 0.0;
}

/* Spread of a prediction that comes from the constants alone. */
static double parameter_log_sd(const nd_fitted *fitted, const nd_run_entry *entry)
{
    nd_cost_context context = entry->context;
    context.uncertainty = nd_fitted_uncertainty(fitted, context.calibration, context.stack);
    context.uncertainty.form_log_sd = 0.0;
    context.uncertainty.hard_form_log_sd = 0.0;
    nd_estimate estimate;
    nd_estimate_layout(&context, &entry->run.layout, &estimate);
    return log(estimate.time.step_high_s / estimate.time.step_s) / nd_interval80_sd;
}

static nd_status record_residuals(const calibration_work *work, const double *weights, nd_calibration_result *out,
                                  nd_error *err)
{
    out->residuals = calloc((size_t)work->count + 1, sizeof out->residuals[0]);
    if (out->residuals == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %lld residuals", (long long)work->count);
    }
    for (int64_t i = 0; i < work->count; i++) {
        nd_fitted_residual *residual = &out->residuals[i];
        (void)snprintf(residual->id, sizeof residual->id, "%s", work->runs[i].entry->run.id);
        residual->log_error = work->runs[i].log_error;
        residual->left_out_log_error = work->runs[i].left_out_log_error;
        residual->weight = weights[i];
    }
    out->residuals_count = work->count;
    return ND_OK;
}

static nd_status fit_all(calibration_work *work, const nd_calibrate_request *request, nd_calibration_result *out,
                         nd_error *err)
{
    nd_fit_selection selection = {.gpu = request->gpu, .stack = request->stack};
    double *weights = calloc((size_t)work->set.count + 1, sizeof *weights);
    if (weights == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %lld runs", (long long)work->set.count);
    }
    nd_status status = nd_fit_runs_weighted(&work->set, &selection, &work->fit, weights, err);
    if (status == ND_OK) {
        record_fit(work, request, &out->fitted);
        for (int64_t i = 0; i < work->count; i++) {
            work->runs[i].log_error = log_error_of(work, &work->runs[i]);
            work->runs[i].parameter_log_sd = parameter_log_sd(&out->fitted, work->runs[i].entry);
        }
    }
    bool enough = work->sources_count >= SOURCES_MIN && !request->skip_left_out;
    for (int32_t s = 0; status == ND_OK && enough && s < work->sources_count; s++) {
        status = leave_out(work, request, work->sources[s], err);
    }
    if (status == ND_OK && enough) {
        weigh_sources(work);
        out->fitted.form_log_sd = form_error(work, false);
        out->fitted.hard_form_log_sd = form_error(work, true);
        out->sources = work->sources_count;
    }
    status = status == ND_OK ? record_residuals(work, weights, out, err) : status;
    free(weights);
    return status;
}

nd_status nd_calibrate_from_runs(const nd_calibrate_request *request, nd_calibration_result *out, nd_error *err)
{
    calibration_work *work = calloc(1, sizeof *work);
    nd_calibration_result *result = calloc(1, sizeof *result);
    nd_status status = ND_OK;
    if (work == NULL || result == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a calibration");
    }
    status = status == ND_OK ? nd_run_set_load(request->csv, request->start, &work->set, err) : status;
    if (status == ND_OK) {
        status = list_runs(work, request, err);
        if (status == ND_OK && work->count == 0) {
            status = nothing_to_fit(work, request, err);
        }
        status = status == ND_OK ? fit_all(work, request, result, err) : status;
        nd_run_set_free(&work->set);
        free(work->runs);
    }
    if (status == ND_OK) {
        *out = *result;
    }
    free(work);
    free(result);
    return status;
}

void nd_calibration_result_free(nd_calibration_result *result)
{
    free(result->residuals);
    result->residuals = NULL;
    result->residuals_count = 0;
}
