/** The ranked table of `ndplan suggest`, why the first is first, and what was rejected. */
#ifndef ND_REPORTS_PLAN_TABLE_H
#define ND_REPORTS_PLAN_TABLE_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** First the answer in one line: the best plan, or why there is none.
 * \param[in] objective  what the ranking was for
 * When `list` has no plans: the closest layout, what it lacks, and the rules that rejected the rest. */
nd_status nd_report_plans(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                          nd_objective objective, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
