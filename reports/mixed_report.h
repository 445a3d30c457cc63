/** The answer of `ndplan suggest` on a cluster of several kinds of node. */
#ifndef ND_REPORTS_MIXED_REPORT_H
#define ND_REPORTS_MIXED_REPORT_H

#include "planner/mixed.h"
#include "reports/report.h"

ND_BEGIN_DECLS

enum { ND_MIXED_LABEL_MAX = 160 };

/** Which way in words: "2x8xh100 alone", "all as the slowest kind", "stages on h100, then a100".
 * \param[out] text  ND_MIXED_LABEL_MAX bytes, always terminated */
void nd_mixed_label(const nd_mixed_cluster *cluster, const nd_mixed_option *option, char *text);

/** Indices of the options, best first; those that were not found come last.
 * \return plan->count */
int32_t nd_mixed_rank(const nd_mixed_plan *plan, int32_t order[ND_MIXED_OPTIONS_MAX]);

/** The best way with its reason, its stages, and a table of at most `top` ways.
 * \param[in] context  with `mixed` set */
nd_status nd_report_mixed(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan, int32_t top,
                          nd_error *err) ND_NODISCARD;

/** "ndplan/suggest-mixed/1" */
void nd_json_mixed(FILE *stream, const nd_report_context *context, const nd_mixed_input *input,
                   const nd_mixed_plan *plan);

/** Header and one row for each way that was found, best first. */
void nd_csv_mixed(FILE *stream, const nd_mixed_cluster *cluster, const nd_mixed_plan *plan);

ND_END_DECLS

#endif
