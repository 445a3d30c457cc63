/** Timing this machine's processor with small training runs: what the constants of cost_model/machine.h are fitted to.
 *
 * The runs are steps of small models whose instructions cover the operations in several sizes, by one rank and by two
 * or as many ranks as processors. They take turns, round after round, so that a machine that gets slower for a while
 * does so for all of them. */
#ifndef ND_EXECUTOR_MEASURE_H
#define ND_EXECUTOR_MEASURE_H

#include "executor/run.h"

ND_BEGIN_DECLS

typedef struct nd_measure_options {
    nd_elem real;       /* compute type */
    double budget_s;    /* time for all rounds; there are at least three */
    int32_t processors; /* ranks that run at the same time at most, >= 1 */
} nd_measure_options;

/** One run, timed. Valid during the call. */
typedef struct nd_measured_step {
    const nd_program *const *programs; /* [ranks] */
    int32_t ranks;
    int64_t kv_heads;             /* of the model */
    const double *const *seconds; /* [rank][instruction]: median over the rounds, without waiting for others */
    double step_s;                /* median */
    int32_t rounds;
} nd_measured_step;

/** Receives every run when the rounds are over. Anything but ND_OK ends the measurement, which returns it. */
typedef nd_status (*nd_measure_sink)(void *user, const nd_measured_step *step, nd_error *err);

/** Called before every round with the part that is done, 0 .. 1, of the budget or the least number of rounds. \return
 * false: stop with ND_EINTERRUPTED */
typedef bool (*nd_measure_progress)(void *user, double done_frac);

/** Measure. \return ND_ENOMEM, ND_EINTERRUPTED, what the sink returned. */
nd_status nd_measure_machine(const nd_measure_options *options, nd_measure_progress progress, nd_measure_sink sink,
                             void *user, nd_error *err) ND_NODISCARD;

/** What the system calls the processor; "unknown" where it does not say. */
void nd_processor_name(char *out, size_t out_bytes);

ND_END_DECLS

#endif
