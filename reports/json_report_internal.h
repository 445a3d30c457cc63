/** Parts of JSON results that several commands write. Private to reports/. */
#ifndef ND_REPORTS_JSON_REPORT_INTERNAL_H
#define ND_REPORTS_JSON_REPORT_INTERNAL_H

#include "core/json_writer.h"
#include "planner/fixes.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** "schema", "model", "cluster", "training", "framework", "stack", "calibration", "assumed" of the open object. */
void nd_json_put_head(nd_json_writer *json, const nd_report_context *context, const char *schema);

/** "layout": {...} */
void nd_json_put_layout(nd_json_writer *json, const nd_layout *layout);

/** "assumed": [...] */
void nd_json_put_assumed(nd_json_writer *json, const nd_assumption *assumptions, int32_t count);

/** "memory": {...} and "time": {...} */
void nd_json_put_memory(nd_json_writer *json, const nd_memory_breakdown *memory);
void nd_json_put_time(nd_json_writer *json, const nd_time_breakdown *time);

/** {...}: one change of a layout */
void nd_json_put_fix(nd_json_writer *json, const nd_fix *fix);

/** "estimate": {...} */
void nd_json_put_estimate(nd_json_writer *json, const nd_estimate *estimate);

ND_END_DECLS

#endif
