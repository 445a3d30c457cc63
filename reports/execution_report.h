/** Reports on a layout that was executed. */
#ifndef ND_REPORTS_EXECUTION_REPORT_H
#define ND_REPORTS_EXECUTION_REPORT_H

#include "reports/execution_view.h"

ND_BEGIN_DECLS

/** \param[in] quiet  without assumptions and tables */
nd_status nd_report_execution(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet,
                              nd_error *err) ND_NODISCARD;

/** "ndplan/run/1" */
void nd_json_execution(FILE *stream, const nd_execution_view *view);

ND_END_DECLS

#endif
