/** What `ndplan calibrate --machine` found. */
#ifndef ND_REPORTS_MACHINE_REPORT_H
#define ND_REPORTS_MACHINE_REPORT_H

#include "cost_model/machine.h"
#include "reports/table.h"

ND_BEGIN_DECLS

/** Rates of every compute type that was measured, in units that people compare, and how well they are known. */
nd_status nd_report_machine(FILE *stream, const nd_report_style *style, const nd_machine *machine,
                            nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
