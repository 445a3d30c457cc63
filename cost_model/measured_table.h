/** Tables of measured runs as a whole: the published ones that the program carries, and what every table must keep. */
#ifndef ND_COST_MODEL_MEASURED_TABLE_H
#define ND_COST_MODEL_MEASURED_TABLE_H

#include "core/csv.h"

ND_BEGIN_DECLS

enum { ND_MEASURED_ROWS_MAX = 20000 };

/** The published runs that the program carries (cost_model/measurements/runs.csv; sources in README.md beside it).
 * \param[out] out  freed by the caller with nd_csv_free() */
nd_status nd_measured_builtin(nd_csv **out, nd_error *err) ND_NODISCARD;

/** Check a table before its rows are read: known columns, 1 to ND_MEASURED_ROWS_MAX rows, a model, GPU and number of
 * GPUs in every row, no id twice. ND_EPARSE with file and line ("runs.csv:17: ..."), ND_ENOMEM. */
nd_status nd_measured_check_table(const nd_csv *csv, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
