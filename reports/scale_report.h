/** What a search over cluster sizes adds to a list of plans. */
#ifndef ND_REPORTS_SCALE_REPORT_H
#define ND_REPORTS_SCALE_REPORT_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** Under the table: what the order means, the answer to the goal, and which sizes were not searched and why. */
void nd_report_scale(FILE *stream, const nd_report_context *context, const nd_plan_list *list);

/** "In full: ndplan estimate ... --cluster C --layout L" with the cluster of this plan's size. */
void nd_report_scale_next_step(FILE *stream, const nd_report_context *context, const nd_layout *layout);

ND_END_DECLS

#endif
