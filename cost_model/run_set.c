#include "cost_model/run_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fitted.h"
#include "cost_model/time.h"

static nd_status find_calibration(nd_run_set *set, const nd_gpu_spec *gpu, const nd_fitted *fitted, int32_t *index,
                                  nd_error *err)
{
    nd_calibration calibration;
    ND_TRY(nd_calibration_for_gpu(gpu, &calibration, err));
    if (fitted != NULL) {
        nd_fitted_apply(fitted, &calibration, NULL);
    }
    for (int32_t i = 0; i < set->calibrations_count; i++) {
        const nd_calibration *known = &set->calibrations[i];
        if (strcmp(known->name, calibration.name) == 0 && known->borrowed == calibration.borrowed) {
            *index = i;
            return ND_OK;
        }
    }
    if (set->calibrations_count == ND_SET_CALIBRATIONS_MAX) {
        return nd_fail(err, ND_EUNSUPPORTED, "more than %d GPU types in one table", (int)ND_SET_CALIBRATIONS_MAX);
    }
    *index = set->calibrations_count++;
    set->calibrations[*index] = calibration;
    return ND_OK;
}

static nd_status prepare(nd_run_set *set, const nd_fitted *fitted, nd_run_entry *entry, nd_error *err)
{
    ND_TRY(find_calibration(set, &entry->run.cluster.gpu, fitted, &entry->calibration, err));
    const nd_calibration *calibration = &set->calibrations[entry->calibration];
    nd_measured_run *run = &entry->run;
    if (fitted != NULL) {
        nd_fitted_apply(fitted, NULL, &run->stack);
    }
    ND_TRY(nd_measured_complete(run, calibration, err));
    ND_TRY(
        nd_cost_context_init(&run->model, &run->cluster, &run->train, &run->stack, calibration, &entry->context, err));
    set->some_own = set->some_own || !calibration->borrowed;
    nd_estimate estimate;
    nd_estimate_layout(&entry->context, &run->layout, &estimate);
    if (!isfinite(estimate.time.step_s) || estimate.time.step_s <= 0.0) {
        return nd_fail(err, ND_EUNSUPPORTED, "its predicted step is not a finite time");
    }
    if (fitted != NULL) {
        entry->context.uncertainty = nd_fitted_uncertainty(fitted, calibration, &run->stack);
    }
    return ND_OK;
}

static nd_status load_row(const nd_csv *csv, size_t row, const nd_fitted *fitted, nd_run_set *set, nd_error *err)
{
    nd_error why;
    nd_run_entry *entry = &set->entries[set->count];
    nd_status status = nd_measured_read(csv, row, &entry->run, &why);
    if (status == ND_OK) {
        status = prepare(set, fitted, entry, &why);
    }
    if (status == ND_EPARSE) {
        return nd_fail(err, status, "%s", why.message);
    }
    if (status != ND_OK) {
        nd_skipped_row *skipped = &set->skipped[set->skipped_count++];
        (void)snprintf(skipped->id, sizeof skipped->id, "%s", entry->run.id);
        (void)snprintf(skipped->source, sizeof skipped->source, "%s", entry->run.source);
        (void)snprintf(skipped->reason, sizeof skipped->reason, "%.180s", why.message);
        return ND_OK;
    }
    set->count++;
    return ND_OK;
}

nd_status nd_run_set_load(const nd_csv *csv, const nd_fitted *fitted, nd_run_set *out, nd_error *err)
{
    size_t rows = nd_csv_rows(csv);
    ND_TRY(nd_measured_check(csv, err));
    nd_run_set *set = out;
    memset(set, 0, sizeof *set);
    set->entries = calloc(rows + 1, sizeof set->entries[0]);
    set->skipped = calloc(rows + 1, sizeof set->skipped[0]);
    if (set->entries == NULL || set->skipped == NULL) {
        nd_run_set_free(set);
        return nd_fail(err, ND_ENOMEM, "out of memory for %zu runs", rows);
    }
    for (size_t row = 0; row < rows; row++) {
        nd_status status = load_row(csv, row, fitted, set, err);
        if (status != ND_OK) {
            nd_run_set_free(set);
            return status;
        }
    }
    return ND_OK;
}

void nd_run_set_free(nd_run_set *set)
{
    free(set->entries);
    free(set->skipped);
    memset(set, 0, sizeof *set);
}

void nd_run_set_predict(const nd_run_set *set, int64_t index, nd_estimate *out)
{
    const nd_run_entry *entry = &set->entries[index];
    nd_estimate_layout(&entry->context, &entry->run.layout, out);
}

double nd_run_set_step_s(const nd_run_set *set, int64_t index)
{
    const nd_run_entry *entry = &set->entries[index];
    nd_block_prices prices;
    nd_time_breakdown time;
    nd_price_blocks(&entry->context, &entry->run.layout, &prices);
    nd_estimate_time(&entry->context, &entry->run.layout, &prices, &time);
    return time.step_s;
}
