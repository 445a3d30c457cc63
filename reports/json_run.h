/** The "run" object of an estimate in JSON. */
#ifndef ND_REPORTS_JSON_RUN_H
#define ND_REPORTS_JSON_RUN_H

#include "core/json_writer.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** Key "run": null when context->run is NULL; what is not known (no tokens, no price) is null inside. */
void nd_json_put_run(nd_json_writer *json, const nd_report_context *context, const nd_plan *plan);

ND_END_DECLS

#endif
