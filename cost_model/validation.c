#include "cost_model/validation.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fitted.h"

static double relative_error(double predicted, double measured)
{
    return measured > 0.0 ? predicted / measured - 1.0 : (double)NAN;
}

static void predict(const nd_run_set *set, int64_t index, nd_validation_row *row)
{
    const nd_measured_run *run = &set->entries[index].run;
    nd_estimate estimate;
    nd_run_set_predict(set, index, &estimate);
    const nd_memory_breakdown *memory = &estimate.memory;
    double predicted_bytes = nd_measured_memory(run, memory);
    *row = (nd_validation_row){
        .run = run,
        .scored = !run->contradictory && run->grade != 'C',
        .hard = nd_measured_is_hard(run),
        .predicted_s = estimate.time.step_s,
        .low_s = estimate.time.step_low_s,
        .high_s = estimate.time.step_high_s,
        .error_frac = relative_error(estimate.time.step_s, run->step_s),
        .predicted_peak_bytes = predicted_bytes,
        /* the interval is one of factors, so it suits every kind of reading */
        .peak_low_bytes = predicted_bytes * memory->peak_low_bytes / memory->peak_bytes,
        .peak_high_bytes = predicted_bytes * memory->peak_high_bytes / memory->peak_bytes,
        .memory_error_frac = relative_error(predicted_bytes, run->peak_bytes),
    };
}

static void count_row(nd_validation *validation, const nd_validation_row *row)
{
    if (row->run->contradictory) {
        validation->contradictory++;
    } else if (!row->scored) {
        validation->grade_c++;
    } else {
        validation->scored++;
    }
}

nd_status nd_validation_create(const nd_run_set *set, nd_validation *out, nd_error *err)
{
    nd_validation validation = {.set = set, .count = set->count};
    validation.rows = calloc((size_t)set->count + 1, sizeof validation.rows[0]);
    if (validation.rows == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %lld predictions", (long long)set->count);
    }
    for (int64_t i = 0; i < set->count; i++) {
        predict(set, i, &validation.rows[i]);
        count_row(&validation, &validation.rows[i]);
    }
    *out = validation;
    return ND_OK;
}

void nd_validation_free(nd_validation *validation)
{
    free(validation->rows);
    memset(validation, 0, sizeof *validation);
}

/* What holding a source out changes in a set: to put it back. */
typedef struct saved_entry {
    nd_stack stack;
    nd_time_uncertainty uncertainty;
} saved_entry;

typedef struct saved_set {
    nd_calibration *calibrations;
    saved_entry *entries;
} saved_set;

static void free_saved(saved_set *saved)
{
    free(saved->calibrations);
    free(saved->entries);
}

static nd_status save(const nd_run_set *set, saved_set *out, nd_error *err)
{
    saved_set saved = {
        .calibrations = calloc((size_t)set->calibrations_count + 1, sizeof(nd_calibration)),
        .entries = calloc((size_t)set->count + 1, sizeof(saved_entry)),
    };
    if (saved.calibrations == NULL || saved.entries == NULL) {
        free_saved(&saved);
        return nd_fail(err, ND_ENOMEM, "out of memory for the constants of %lld runs", (long long)set->count);
    }
    memcpy(saved.calibrations, set->calibrations, (size_t)set->calibrations_count * sizeof(nd_calibration));
    for (int64_t i = 0; i < set->count; i++) {
        saved.entries[i] = (saved_entry){set->entries[i].run.stack, set->entries[i].context.uncertainty};
    }
    *out = saved;
    return ND_OK;
}

static void restore(nd_run_set *set, const saved_set *saved)
{
    assert(saved->calibrations != NULL && saved->entries != NULL);
    memcpy(set->calibrations, saved->calibrations, (size_t)set->calibrations_count * sizeof(nd_calibration));
    for (int64_t i = 0; i < set->count; i++) {
        set->entries[i].run.stack = saved->entries[i].stack;
        set->entries[i].context.uncertainty = saved->entries[i].uncertainty;
    }
}

/* True when entry `index` is the first of its source. */
static bool is_first_of_source(const nd_run_set *set, int64_t index)
{
    for (int64_t i = 0; i < index; i++) {
        if (strcmp(set->entries[i].run.source, set->entries[index].run.source) == 0) {
            return false;
        }
    }
    return true;
}

static bool can_be_fitted(const nd_run_set *set, const char *source)
{
    for (int64_t i = 0; i < set->count; i++) {
        if (strcmp(set->entries[i].run.source, source) == 0 && nd_run_is_usable(&set->entries[i].run)) {
            return true;
        }
    }
    return false;
}

static bool is_held_out(const nd_run_set *set, int64_t index)
{
    /* without a run that can be fitted, no run of the source is scored */
    return is_first_of_source(set, index) && can_be_fitted(set, set->entries[index].run.source);
}

static nd_status count_sources(const nd_run_set *set, int64_t *out, nd_error *err)
{
    int64_t sources = 0;
    for (int64_t i = 0; i < set->count; i++) {
        sources += is_held_out(set, i);
    }
    if (sources < 2) {
        return nd_fail(err, ND_EINVAL,
                       "leaving one source out needs runs of two sources with measured steps, and there is %s",
                       sources == 1 ? "one" : "none");
    }
    *out = sources;
    return ND_OK;
}

/* The fit as a table, which knows how certain predictions with it are. */
static void table_of(const nd_run_fit *fit, const nd_fitted *form, nd_fitted *out)
{
    memset(out, 0, sizeof *out);
    out->constants_count = fit->constants_count;
    out->runs = fit->rows;
    memcpy(out->constants, fit->constants, sizeof out->constants);
    memcpy(out->value, fit->result.value, sizeof out->value);
    memcpy(out->log_sd, fit->result.log_sd, sizeof out->log_sd);
    memcpy(out->identified, fit->result.identified, sizeof out->identified);
    memcpy(out->covariance, fit->result.covariance, sizeof out->covariance);
    out->form_log_sd = form->form_log_sd;
    out->hard_form_log_sd = form->hard_form_log_sd;
}

/* Predict the runs of `source` from the others; `whole` is the fit to all runs, near which the answer lies. */
static nd_status hold_out(nd_run_set *set, const char *source, const nd_run_fit *whole, const nd_fitted *form,
                          nd_validation *validation, nd_error *err)
{
    assert(validation->rows != NULL);
    nd_fit_selection selection = {.without_source = source, .near = whole};
    nd_run_fit fit;
    nd_fitted table;
    ND_TRY(nd_fit_runs(set, &selection, &fit, err));
    table_of(&fit, form, &table);
    for (int64_t i = 0; i < set->count; i++) {
        nd_run_entry *entry = &set->entries[i];
        if (strcmp(entry->run.source, source) == 0) {
            entry->context.uncertainty =
                nd_fitted_uncertainty(&table, &set->calibrations[entry->calibration], &entry->run.stack);
            predict(set, i, &validation->rows[i]);
        }
    }
    return ND_OK;
}

/* How a validation tells how far it is. */
typedef struct progress_report {
    nd_validation_progress call; /* may be NULL */
    void *user;
    int64_t done, sources;
} progress_report;

static void tell(progress_report *progress)
{
    if (progress->call != NULL) {
        progress->call(progress->done, progress->sources, progress->user);
    }
    progress->done++;
}

static nd_status hold_all_out(nd_run_set *set, const saved_set *saved, const nd_fitted *form, progress_report *progress,
                              nd_validation *validation, nd_error *err)
{
    const nd_fit_selection all = {.without_source = NULL};
    nd_run_fit whole;
    nd_status status = nd_fit_runs(set, &all, &whole, err);
    restore(set, saved);
    for (int64_t i = 0; i < set->count && status == ND_OK; i++) {
        if (is_held_out(set, i)) {
            tell(progress);
            status = hold_out(set, set->entries[i].run.source, &whole, form, validation, err);
            restore(set, saved);
        }
    }
    return status;
}

nd_status nd_validation_leave_one_out(nd_run_set *set, const nd_fitted *form, nd_validation_progress progress,
                                      void *user, nd_validation *out, nd_error *err)
{
    nd_validation validation = {0};
    saved_set saved = {0};
    progress_report report = {.call = progress, .user = user};
    ND_TRY(count_sources(set, &report.sources, err));
    ND_TRY(save(set, &saved, err));
    nd_status status = nd_validation_create(set, &validation, err);
    if (status == ND_OK) {
        status = hold_all_out(set, &saved, form, &report, &validation, err);
    }
    free_saved(&saved);
    if (status != ND_OK) {
        nd_validation_free(&validation);
        return status;
    }
    *out = validation;
    return ND_OK;
}
