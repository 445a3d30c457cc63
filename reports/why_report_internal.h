/** Parts of the report of `ndplan why`. Private to reports/why_*.c. */
#ifndef ND_REPORTS_WHY_REPORT_INTERNAL_H
#define ND_REPORTS_WHY_REPORT_INTERNAL_H

#include "reports/terms.h"
#include "reports/why_report.h"

ND_BEGIN_DECLS

enum { ND_WHY_AXES_TEXT_MAX = 96 };

/** The words of a time term by its key; the key itself for what has none. */
const char *nd_why_time_label(const char *key);

/** The largest term of memory. */
const nd_term *nd_why_largest_memory(const nd_memory_breakdown *memory);

/** "dp_shard, cp and tp": the degrees that make the term smaller when they double; "no degree" when none does. */
void nd_why_dividing_axes(const nd_divisions *divisions, const nd_term *term, char out[ND_WHY_AXES_TEXT_MAX]);

/** Bytes of weights, gradients and optimizer. */
double nd_why_state_bytes(const nd_memory_breakdown *memory);

/** How the text calls the layout that is compared with: "the first plan", "the next plan", "the other layout". */
const char *nd_why_other_name(const nd_why *why);

/** why_memory.c: tables of terms, what makes it fit, host memory and loading. */
nd_status nd_report_why_memory(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err);
void nd_report_why_host(FILE *stream, const nd_report_context *context, const nd_why *why);
nd_status nd_report_why_divisions(FILE *stream, const nd_report_context *context, const nd_divisions *divisions,
                                  nd_error *err);

/** why_time.c: the comparison, term by term. */
nd_status nd_report_why_time(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err);

ND_END_DECLS

#endif
