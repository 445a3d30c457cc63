/** Changes of a layout, what each saves and what it costs. */
#ifndef ND_REPORTS_FIXES_TABLE_H
#define ND_REPORTS_FIXES_TABLE_H

#include "planner/fixes.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** One row for each of the first `shown` of `count` changes; says how many more there are. */
nd_status nd_report_fixes(FILE *stream, const nd_report_context *context, const nd_fix *fixes, int32_t count,
                          int32_t shown, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
