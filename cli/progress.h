/** What a long search shows and how it is stopped: a bar on stderr after two seconds, on a terminal only; Ctrl-C ends
 * the search, so that what is known by then is printed and the process exits with 130. */
#ifndef ND_CLI_PROGRESS_H
#define ND_CLI_PROGRESS_H

#include "cli/options.h"
#include "planner/search.h"

/** Read --threads, and from now on answer SIGINT by stopping searches instead of ending the process. A second SIGINT
 * ends it at once. To be called once. */
nd_status nd_progress_start(const nd_options *options, nd_search_control *out, nd_error *err) ND_NODISCARD;

/** Wipe the bar, before results are printed; harmless when there is none. */
void nd_progress_end(void);

#endif
