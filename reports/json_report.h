/** Machine-readable results; the keys are a promise (docs/CLI.md). Base units. */
#ifndef ND_REPORTS_JSON_REPORT_H
#define ND_REPORTS_JSON_REPORT_H

#include "reports/estimate_view.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** "ndplan/suggest/1" */
void nd_json_plans(FILE *stream, const nd_report_context *context, const nd_plan_list *list);

/** "ndplan/estimate/1" */
void nd_json_estimate(FILE *stream, const nd_report_context *context, const nd_estimate_view *view);

/** "ndplan/estimate/1" with "legal": false */
void nd_json_illegal(FILE *stream, const nd_report_context *context, const nd_layout *layout,
                     const nd_refusal *refusal);

ND_END_DECLS

#endif
