/** How many layouts were looked at, and which rules refused how many. */
#ifndef ND_REPORTS_REJECTIONS_H
#define ND_REPORTS_REJECTIONS_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** One line of counts and a table of rules; context->verbose (or no plans at all) adds the message of each. */
nd_status nd_report_rejections(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                               nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
