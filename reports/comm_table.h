/** The communication table of `ndplan estimate`. */
#ifndef ND_REPORTS_COMM_TABLE_H
#define ND_REPORTS_COMM_TABLE_H

#include "reports/report.h"

ND_BEGIN_DECLS

/** Every collective of one step: group, ranks, link, bytes, calls, time, exposed time, bandwidth to hide it. */
nd_status nd_report_comm(FILE *stream, const nd_report_context *context, const nd_comm_breakdown *comm,
                         nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
