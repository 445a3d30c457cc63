/** What a calibration found, as text. */
#ifndef ND_REPORTS_CALIBRATION_REPORT_H
#define ND_REPORTS_CALIBRATION_REPORT_H

#include "cost_model/calibrate.h"
#include "reports/table.h"

ND_BEGIN_DECLS

/** Constants with their errors, what the data could not say, and the errors of the runs. */
nd_status nd_report_calibration(FILE *stream, const nd_calibration_result *result, const nd_report_style *style,
                                nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
