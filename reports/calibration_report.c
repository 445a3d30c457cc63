#include "reports/calibration_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/stats.h"

static const nd_column columns[] = {
    {"belongs to", NULL, ND_ALIGN_LEFT, 0, 0}, {"constant", NULL, ND_ALIGN_LEFT, 0, 0},
    {"prior", NULL, ND_ALIGN_RIGHT, 0, 0},     {"fitted", NULL, ND_ALIGN_RIGHT, 0, 0},
    {"std error", "%", ND_ALIGN_RIGHT, 0, 0},  {"from", NULL, ND_ALIGN_LEFT, 0, 0},
};

static void add_number(nd_table *table, int digits, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*g", digits, value);
    nd_table_add(table, text);
}

static void add_constant(nd_table *table, const nd_fitted *fitted, int32_t index)
{
    const nd_run_constant *constant = &fitted->constants[index];
    char owner[80];
    (void)snprintf(owner, sizeof owner, "%s%s", constant->of_stack ? "stack " : "", constant->owner);
    nd_table_add(table, owner);
    nd_table_add(table, constant->key);
    add_number(table, 4, constant->prior);
    add_number(table, 4, fitted->value[index]);
    add_number(table, 3, 100.0 * fitted->log_sd[index]);
    nd_table_add(table, fitted->identified[index] ? "runs" : "prior");
}

/* Median of |error| in percent; NAN without any. */
static double median_error(const nd_calibration_result *result, bool left_out)
{
    double *errors = malloc((size_t)(result->residuals_count + 1) * sizeof *errors);
    int64_t count = 0;
    double median = nan("");
    for (int64_t i = 0; errors != NULL && i < result->residuals_count; i++) {
        const nd_fitted_residual *residual = &result->residuals[i];
        double log_error = left_out ? residual->left_out_log_error : residual->log_error;
        if (!isnan(log_error)) {
            errors[count++] = 100.0 * fabs(expm1(log_error));
        }
    }
    if (count > 0) {
        median = nd_median(errors, count);
    }
    free(errors);
    return median;
}

static const char *form_text(char *out, size_t room, double log_sd)
{
    if (log_sd > 0.0) {
        (void)snprintf(out, room, "%.1f %%", 100.0 * log_sd);
    } else {
        (void)snprintf(out, room, "no such runs");
    }
    return out;
}

/* Twice or half is beyond what constants explain: then a unit, a batch or a label is wrong, and it bends the fit. */
static void print_misfit(FILE *stream, const nd_calibration_result *result, const nd_report_style *style)
{
    const double misfit_log = 0.6931; /* log 2 */
    const nd_fitted_residual *worst = NULL;
    int64_t count = 0;
    for (int64_t i = 0; i < result->residuals_count; i++) {
        const nd_fitted_residual *residual = &result->residuals[i];
        count += fabs(residual->log_error) > misfit_log;
        if (worst == NULL || fabs(residual->log_error) > fabs(worst->log_error)) {
            worst = residual;
        }
    }
    if (count > 0) {
        double factor = exp(fabs(worst->log_error));
        nd_report_paragraph(stream, style, 0, 2,
                            "Warning: %" PRId64 " of %" PRId64 " runs %s more than a factor of 2 off, run %s most: it "
                            "took %.3g times %s than predicted. Check units (seconds, tokens/s of one GPU), "
                            "global_batch, recompute and gpu; `ndplan validate --runs FILE --rows` shows each run and "
                            "what was assumed.",
                            count, result->residuals_count, count == 1 ? "is" : "are", worst->id, factor,
                            worst->log_error < 0.0 ? "longer" : "shorter");
    }
}

static void print_errors(FILE *stream, const nd_calibration_result *result, const nd_report_style *style)
{
    const nd_fitted *fitted = &result->fitted;
    nd_report_paragraph(stream, style, 0, 2,
                        "from prior: not identified, the runs do not narrow it and the prior is kept.");
    nd_report_paragraph(stream, style, 0, 2,
                        "Median error of the %" PRId64 " runs: %.1f %%; reduced chi-square %.2f, reciprocal condition "
                        "number %.2g.",
                        fitted->runs, median_error(result, false), fitted->reduced_chi2, fitted->rcond);
    print_misfit(stream, result, style);
    if (result->sources == 0) {
        nd_report_paragraph(stream, style, 0, 2,
                            "No source was left out to measure the model's own error (that takes three), so intervals "
                            "keep the built-in one.");
        return;
    }
    char dense[32];
    char hard[32];
    nd_report_paragraph(stream, style, 0, 2,
                        "Each of the %" PRId64 " sources predicted without its own runs: median error %.1f %%. The "
                        "model's own error that makes 80 %% intervals hold there: %s (dense), %s (fp8 or experts).",
                        result->sources, median_error(result, true),
                        form_text(dense, sizeof dense, fitted->form_log_sd),
                        form_text(hard, sizeof hard, fitted->hard_form_log_sd));
}

nd_status nd_report_calibration(FILE *stream, const nd_calibration_result *result, const nd_report_style *style,
                                nd_error *err)
{
    nd_table *table = nd_table_create(columns, sizeof columns / sizeof columns[0]);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the table of constants");
    }
    for (int32_t i = 0; i < result->fitted.constants_count; i++) {
        add_constant(table, &result->fitted, i);
    }
    fprintf(stream, "Constants fitted to %s\n\n", result->fitted.source + sizeof "fit of");
    nd_status status = nd_table_print(table, stream, style, 2, err);
    nd_table_free(table);
    if (status == ND_OK) {
        fputc('\n', stream);
        print_errors(stream, result, style);
    }
    return status;
}
