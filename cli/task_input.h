/** Inputs of the commands that vary a quantity: --layout fixes a whole layout, --pin parts of one. */
#ifndef ND_CLI_TASK_INPUT_H
#define ND_CLI_TASK_INPUT_H

#include "cli/inputs.h"
#include "planner/point.h"

/** The batch when the user gives none: one micro-batch for each of so many GPUs. */
typedef struct nd_task_batch {
    int64_t gpus;
    const char *why; /* of the assumption; static storage */
} nd_task_batch;

/** After nd_inputs_load(): settle layout, batch and context.
 * \param[out] out  borrows from `inputs` */
nd_status nd_task_input(const nd_options *options, nd_inputs *inputs, const nd_task_batch *batch, nd_task *out,
                        nd_error *err) ND_NODISCARD;

#endif
