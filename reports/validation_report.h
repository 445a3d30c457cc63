/** A validation as text, JSON, CSV and a picture. */
#ifndef ND_REPORTS_VALIDATION_REPORT_H
#define ND_REPORTS_VALIDATION_REPORT_H

#include <stdio.h>

#include "cost_model/validation.h"
#include "reports/table.h"

ND_BEGIN_DECLS

/** What is shown. Everything is borrowed. */
typedef struct nd_validation_view {
    const nd_validation *validation;
    const nd_validation_score *score;
    const nd_validation_groups *sources;
    const nd_validation_groups *groups; /* by `by`; the same as `sources` for ND_VALIDATION_BY_SOURCE */
    nd_validation_key by;
    const nd_anchored_score *anchored; /* NULL: not asked for */
    const char *origin;                /* where the runs come from */
    const char *calibration;           /* file of constants; NULL: the built-in ones */
    bool leave_one_out;
    int64_t worst;    /* rows with the largest errors to list in the text */
    bool rows;        /* list every row in the text */
    double bound;     /* largest allowed mean of the source medians, as a fraction; NAN: none */
    bool bound_holds; /* set when there is a bound */
} nd_validation_view;

/** Tables for people. ND_ENOMEM. */
nd_status nd_report_validation(FILE *stream, const nd_report_style *style, const nd_validation_view *view,
                               nd_error *err) ND_NODISCARD;

/** One object, schema ndplan/validate/1. */
void nd_json_validation(FILE *stream, const nd_validation_view *view);

/** Header and one row for each run, skipped ones last. */
void nd_csv_validation(FILE *stream, const nd_validation_view *view);

/** Predicted against measured step times of the scored runs as SVG, with a band of 10 %: one series for each source.
 * ND_EUNSUPPORTED for more than ND_PLOT_SERIES_MAX sources (reports/plot.h), ND_EIO, ND_ENOMEM. */
nd_status nd_plot_validation(FILE *stream, const nd_validation_view *view, nd_error *err) ND_NODISCARD;

/** The assumptions of a run as "network, recompute", or "". Always terminated. */
void nd_format_assumptions(const nd_measured_run *run, char *out, size_t out_bytes);

ND_END_DECLS

#endif
