/** Comma-separated values after RFC 4180: CRLF, quotes where needed. Base units. */
#ifndef ND_REPORTS_CSV_REPORT_H
#define ND_REPORTS_CSV_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "planner/plan.h"
#include "reports/report.h"

ND_BEGIN_DECLS

typedef struct nd_csv_writer {
    FILE *stream;
    bool in_row;
} nd_csv_writer;

/** Fields of the current row. A text that a spreadsheet would run as a formula (it starts with = + - @, a tab or a
 * carriage return) gets an apostrophe in front. Numbers that are not finite are empty fields. */
void nd_csv_writer_text(nd_csv_writer *csv, const char *text);
void nd_csv_writer_int(nd_csv_writer *csv, int64_t value);
void nd_csv_writer_double(nd_csv_writer *csv, double value);
void nd_csv_writer_end_row(nd_csv_writer *csv);

/** Header and one row for each plan; `count` may be 0. */
void nd_csv_plans(FILE *stream, const nd_plan *plans, int32_t count);

/** The same with the columns of the whole run filled in as far as context->run tells. */
void nd_csv_plans_run(FILE *stream, const nd_report_context *context, const nd_plan *plans, int32_t count);

ND_END_DECLS

#endif
