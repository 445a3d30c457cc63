/** The answer in one line: the first of a text report. */
#ifndef ND_REPORTS_ANSWER_H
#define ND_REPORTS_ANSWER_H

#include "reports/report.h"

ND_BEGIN_DECLS

enum { ND_SHORT_LAYOUT_MAX = 96, ND_INTERVAL_TEXT_MAX = 64 };

/** The degrees above 1, "dp_shard=8,tp=2"; "1 GPU" when there are none. Not for --layout: the rest is left out. */
void nd_layout_degrees_text(const nd_layout *layout, char out[ND_SHORT_LAYOUT_MAX]);

/** "4.53 s (80 %: 3.98 to 5.16 s)"; both ends have a unit when they differ in it.
 * \param[in] time  in seconds */
void nd_step_interval_text(const nd_time_breakdown *time, char out[ND_INTERVAL_TEXT_MAX]);

/** "does it fit": "fits", "borderline" or "does not fit". */
const char *nd_verdict_words(nd_verdict verdict);

/** "LABEL: DEGREES, step ... (80 %: ...), fits": up to three degrees in 80 columns. */
void nd_report_plan_answer(FILE *stream, const nd_report_context *context, const char *label, const nd_plan *plan);

ND_END_DECLS

#endif
