/** The answers of `ndplan max`: limits, the layouts that reach them, and what goes further. */
#ifndef ND_REPORTS_MAX_REPORT_H
#define ND_REPORTS_MAX_REPORT_H

#include "planner/fixes.h"
#include "planner/limits.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** One limit and the changes with which the first value beyond it fits (or all that help, when none suffices alone). */
typedef struct nd_limit_view {
    const nd_limit *limit;  /* borrowed */
    nd_cost_context beyond; /* borrows from `limit`; set when fixes_count > 0 */
    nd_fix fixes[ND_FIXES_MAX];
    int32_t fixes_count;
    bool fixes_suffice;
} nd_limit_view;

/** \return as nd_point_context() */
nd_status nd_limit_view_build(const nd_task *task, const nd_limit *limit, nd_limit_view *out,
                              nd_error *err) ND_NODISCARD;

nd_status nd_report_limits(FILE *stream, const nd_report_context *context, const nd_limit_view *views, int32_t count,
                           nd_error *err) ND_NODISCARD;

/** "ndplan/max/1" */
void nd_json_limits(FILE *stream, const nd_report_context *context, const nd_limit_view *views, int32_t count);

ND_END_DECLS

#endif
