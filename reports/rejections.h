/** How many layouts were looked at, and which rules refused how many. */
#ifndef ND_REPORTS_REJECTIONS_H
#define ND_REPORTS_REJECTIONS_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** The rule worth telling first when no layout is legal: one that another value of the user's own options lifts, as
 * --global-batch, else the most frequent. NULL when nothing was refused. */
const nd_rejection *nd_rejection_telling(const nd_plan_list *list);

/** One line of counts and a table of rules, when no layout is legal nd_rejection_telling() first;
 * context->verbose (or no plans at all) adds the message of each. */
nd_status nd_report_rejections(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                               nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
