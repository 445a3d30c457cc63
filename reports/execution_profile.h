/** Measured times of a run beside predicted ones, as part of the report on it. */
#ifndef ND_REPORTS_EXECUTION_PROFILE_H
#define ND_REPORTS_EXECUTION_PROFILE_H

#include "core/json_writer.h"
#include "reports/execution_view.h"

ND_BEGIN_DECLS

/** The line below the step time: what was predicted, and how far off; without a machine's constants how to get them. */
void nd_report_predicted(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet);

/** The table of operations, when the run was profiled. */
nd_status nd_report_profile(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err);

/** "predicted" and "profile", null when not there. */
void nd_json_put_execution_time(nd_json_writer *json, const nd_execution_view *view);

ND_END_DECLS

#endif
