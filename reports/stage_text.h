/** Pipeline stages in words. */
#ifndef ND_REPORTS_STAGE_TEXT_H
#define ND_REPORTS_STAGE_TEXT_H

#include <stddef.h>

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** "4,5,6 x5,3": layers of each stage, runs of equal ones together; always terminated. */
void nd_stage_runs_text(const nd_stage_runs *runs, char *buffer, size_t buffer_bytes);

ND_END_DECLS

#endif
