/** The results of `ndplan sweep`: text, JSON, CSV and a picture. */
#ifndef ND_REPORTS_SWEEP_REPORT_H
#define ND_REPORTS_SWEEP_REPORT_H

#include "planner/sweep.h"
#include "reports/report.h"

ND_BEGIN_DECLS

typedef struct nd_sweep_view {
    nd_sweep_quantity quantity;
    const nd_sweep_point *points; /* borrowed, ascending */
    int32_t count;
} nd_sweep_view;

nd_status nd_report_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view,
                          nd_error *err) ND_NODISCARD;

/** "ndplan/sweep/1" */
void nd_json_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view);

/** One row for each value, those at which nothing fits with empty figures. */
void nd_csv_sweep(FILE *stream, const nd_sweep_view *view);

/** Tokens per second over the quantity; layouts in their own colours; over GPUs, what perfect scaling would give.
 * \return as nd_plot_write(); ND_EUNSUPPORTED when nothing fits, so that there is nothing to draw */
nd_status nd_plot_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view,
                        nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
