/** `ndplan suggest` on a cluster of several kinds of node. */
#ifndef ND_CLI_MIXED_INPUT_H
#define ND_CLI_MIXED_INPUT_H

#include "cli/inputs.h"
#include "planner/search.h"
#include "reports/list_report.h"

/** Answer when --cluster names several kinds of node.
 *
 * \param[out] handled      false: it names one kind, and nothing was printed
 * \param[out] exit_status  set when handled */
nd_status nd_mixed_suggest(const nd_options *options, const nd_search_options *search, nd_report_format format,
                           bool *handled, int *exit_status, nd_error *err) ND_NODISCARD;

#endif
