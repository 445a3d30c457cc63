/** The timeline of one step in the trace format of Chrome and Perfetto (https://ui.perfetto.dev opens the file). */
#ifndef ND_REPORTS_TRACE_H
#define ND_REPORTS_TRACE_H

#include <stdio.h>

#include "cost_model/simulate.h"

ND_BEGIN_DECLS

/** Simulate a step and write every event: a process for each pipeline stage, with a thread for its passes, one for each
 * direction it sends in, and one for data-parallel traffic. The format counts in microseconds.
 *
 * \param[in] layout passed nd_layout_allowed()
 * \return what nd_simulate_step() returns; whether everything could be written the caller asks the stream. */
nd_status nd_trace_step(FILE *stream, const nd_cost_context *context, const nd_layout *layout,
                        nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
