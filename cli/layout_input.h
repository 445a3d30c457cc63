/** A layout from the command line: what it leaves open follows from batch, stack and cluster. */
#ifndef ND_CLI_LAYOUT_INPUT_H
#define ND_CLI_LAYOUT_INPUT_H

#include "cli/inputs.h"

/** Parse `text` (--layout) as a layout for inputs->cluster; the global batch follows from it when none was given, else
 * the accumulation from the batch. Sharding and schedule follow from the stack. What was assumed is recorded.
 * \param[out] keys   which keys the text has */
nd_status nd_layout_input(nd_inputs *inputs, const char *text, nd_layout *layout, uint32_t *keys,
                          nd_error *err) ND_NODISCARD;

/** The same for a layout that may be illegal in any way: its ranks may not be the GPUs, and its batch not a multiple.
 * Only text that is no layout fails. */
nd_status nd_layout_input_any(nd_inputs *inputs, const char *text, nd_layout *layout, uint32_t *keys,
                              nd_error *err) ND_NODISCARD;

/** Parse a layout that was measured on inputs->cluster, after nd_inputs_finish(). It takes the task's global batch
 * unless it has an accumulation of its own; the task's batch stays as it is. What was assumed is recorded.
 * \param[in] option  how messages call it: "--anchor"
 * \return ND_EINVAL also when the layout is not legal */
nd_status nd_layout_input_measured(nd_inputs *inputs, const char *option, const char *text, nd_layout *layout,
                                   nd_error *err) ND_NODISCARD;

/** The same for a layout that is compared with (`option`: "--against"). */
nd_status nd_layout_input_against(nd_inputs *inputs, const char *option, const char *text, nd_layout *layout,
                                  nd_error *err) ND_NODISCARD;

/** The same for a layout that is executed: any number of ranks, and a batch that is small. After
 * nd_inputs_load_training(). \return ND_EINVAL or ND_EUNSUPPORTED when it cannot be built into a program */
nd_status nd_layout_input_executed(nd_inputs *inputs, const char *text, nd_layout *layout, nd_error *err) ND_NODISCARD;

/** Sequence parallelism is the default with tp where it is possible at all; after nd_inputs_finish(). */
void nd_layout_input_sequence_parallel(nd_inputs *inputs, nd_layout *layout, uint32_t keys);

#endif
