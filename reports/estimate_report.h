/** The full report of one layout: `ndplan estimate`. */
#ifndef ND_REPORTS_ESTIMATE_REPORT_H
#define ND_REPORTS_ESTIMATE_REPORT_H

#include "reports/estimate_view.h"

ND_BEGIN_DECLS

nd_status nd_report_estimate(FILE *stream, const nd_report_context *context, const nd_estimate_view *view,
                             nd_error *err) ND_NODISCARD;

/** Why a layout is refused: rule, numbers, nearest legal value. */
void nd_report_illegal(FILE *stream, const nd_report_context *context, const nd_layout *layout,
                       const nd_refusal *refusal);

ND_END_DECLS

#endif
