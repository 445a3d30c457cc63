/** The table of ranked plans: one row for each, columns that say the same in all of them left out. */
#ifndef ND_REPORTS_PLAN_COLUMNS_H
#define ND_REPORTS_PLAN_COLUMNS_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** Print the plans of `list` (at least one), and below them what is the same in every plan. */
nd_status nd_report_plan_rows(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                              nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
