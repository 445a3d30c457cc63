/** Which quantity a sweep varies and over which values. */
#ifndef ND_CLI_SWEEP_INPUT_H
#define ND_CLI_SWEEP_INPUT_H

#include "cli/options.h"
#include "planner/sweep.h"

/** --over; and that the option which says the same is not given, too. */
nd_status nd_sweep_input_quantity(const nd_options *options, nd_sweep_quantity *out, nd_error *err) ND_NODISCARD;

/** --values, or --from, --to and --steps.
 * \param[in]  cluster may be NULL for seq-len, which does not depend on it
 * \param[out] values  at most ND_SWEEP_POINTS_MAX, ascending, base units */
nd_status nd_sweep_input_values(const nd_options *options, const nd_cluster_spec *cluster, nd_sweep_quantity quantity,
                                double *values, int32_t *count, nd_error *err) ND_NODISCARD;

/** Check that there is a cluster and a training for each value; the message begins with the option the value is from.
 */
nd_status nd_sweep_input_check(const nd_options *options, const nd_task *task, nd_sweep_quantity quantity,
                               const double *values, int32_t count, nd_error *err) ND_NODISCARD;

#endif
