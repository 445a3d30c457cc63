/** Runs a layout, and the same steps on one rank when asked, and gathers what a report shows. */
#ifndef ND_CLI_EXECUTION_H
#define ND_CLI_EXECUTION_H

#include "cli/execution_input.h"
#include "reports/execution_view.h"

/** \param[out] view    borrows from `input`; free with nd_execution_free() on success
 * \param[out] failed  on failure: it was a rank that failed, not the input */
nd_status nd_execution_run(const nd_execution_input *input, nd_execution_view *view, bool *failed,
                           nd_error *err) ND_NODISCARD;
void nd_execution_free(nd_execution_view *view);

#endif
