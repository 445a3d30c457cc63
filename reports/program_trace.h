/** The timeline of one step of programs, instruction by instruction, in the trace format of Chrome and Perfetto
 * (https://ui.perfetto.dev opens the file). */
#ifndef ND_REPORTS_PROGRAM_TRACE_H
#define ND_REPORTS_PROGRAM_TRACE_H

#include <stdio.h>

#include "program/program_time.h"

ND_BEGIN_DECLS

typedef struct nd_program_trace {
    const nd_program *const *programs; /* [ranks] */
    int32_t ranks;
    const nd_program_time *measured, *predicted; /* NULL: not there */
    const char *model, *layout;                  /* for the file's own description */
} nd_program_trace;

/** A process for each rank and for what is measured and what is predicted, one below the other, with a thread for each
 * stream; waiting for others is an event of its own. Whether everything could be written the caller asks the stream. */
void nd_trace_program(FILE *stream, const nd_program_trace *trace);

ND_END_DECLS

#endif
