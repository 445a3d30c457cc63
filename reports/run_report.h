/** A whole run in words: what it takes in days, dollars and energy, and what checkpoints and failures leave of it. */
#ifndef ND_REPORTS_RUN_REPORT_H
#define ND_REPORTS_RUN_REPORT_H

#include "cost_model/run_cost.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** The section "The whole run" of `ndplan estimate`; nothing when context->run is NULL. */
nd_status nd_report_run(FILE *stream, const nd_report_context *context, const nd_plan *plan,
                        nd_error *err) ND_NODISCARD;

/** The same in two sentences, under a list of plans; nothing when context->run is NULL. */
void nd_report_run_short(FILE *stream, const nd_report_context *context, const nd_plan *plan);

/** The batch, which layouts of one list never change, and what it means for the learning rate when nobody chose it. */
void nd_report_batch(FILE *stream, const nd_report_context *context);

/** Cells of the columns of a list, and "" where context->run does not say enough for it. */
void nd_run_days_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes);
void nd_run_usd_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes);
/** Dollars per million tokens; "" when the days and dollars of the whole run are known. */
void nd_run_rate_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes);

ND_END_DECLS

#endif
