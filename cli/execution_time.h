/** Times of a run beside the predicted ones. */
#ifndef ND_CLI_EXECUTION_TIME_H
#define ND_CLI_EXECUTION_TIME_H

#include "cli/execution_input.h"
#include "reports/execution_view.h"

/** Fill in view->time from the run's last step and the machine's constants, and write the trace to `trace` when it is
 * not NULL. Free the list of operations with the view. \return ND_ENOMEM */
nd_status nd_execution_time_gather(const nd_execution_input *input, const nd_run *run, FILE *trace,
                                   nd_execution_view *view, nd_error *err) ND_NODISCARD;

#endif
