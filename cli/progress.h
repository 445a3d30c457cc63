/** What a long search or run shows and how it is stopped: a bar on stderr, of searches after two seconds, on a terminal
 * only; Ctrl-C ends it, so that what is known by then is printed and the process exits with 130. */
#ifndef ND_CLI_PROGRESS_H
#define ND_CLI_PROGRESS_H

#include "cli/options.h"
#include "planner/search.h"

/** Read --threads, and from now on answer SIGINT by stopping searches instead of ending the process. A second SIGINT
 * ends it at once. To be called once. */
nd_status nd_progress_start(const nd_options *options, nd_search_control *out, nd_error *err) ND_NODISCARD;

/** Wipe the bar, before results are printed; harmless when there is none. */
void nd_progress_end(void);

/** The same for a run of steps: the bar is there from the first step on.
 * \param[in] what   static text before the bar, "step"
 * \param[in] lines  write a line for every step instead */
void nd_progress_start_run(const char *what, int64_t steps, double tokens_per_step, bool lines);

/** A step is done. \return false when the run should end, since Ctrl-C was pressed */
bool nd_progress_step(int64_t step, double loss, double grad_norm, double seconds);

/** The same for a measurement, which says how much of it is done. \return false when it should end */
void nd_progress_start_measuring(void);
bool nd_progress_measuring(double done_frac);

/** Ctrl-C was pressed since nd_progress_start() or nd_progress_start_run(). */
bool nd_progress_interrupted(void);

#endif
