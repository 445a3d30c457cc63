/** The answer of `ndplan why`: one sentence, then its evidence. */
#ifndef ND_REPORTS_WHY_REPORT_H
#define ND_REPORTS_WHY_REPORT_H

#include "planner/why.h"
#include "reports/report.h"

ND_BEGIN_DECLS

enum { ND_WHY_SENTENCE_MAX = 1024 };

/** The answer in one sentence; always terminated. */
void nd_why_sentence(const nd_why *why, char out[ND_WHY_SENTENCE_MAX]);

/** Text. context->verbose adds what a doubled degree does to each term of memory, and all terms of the comparison. */
nd_status nd_report_why(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err) ND_NODISCARD;

/** "ndplan/why/1" */
void nd_json_why(FILE *stream, const nd_report_context *context, const nd_why *why);

ND_END_DECLS

#endif
