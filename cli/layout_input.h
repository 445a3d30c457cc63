/** A layout from the command line: what it leaves open follows from batch, stack and cluster. */
#ifndef ND_CLI_LAYOUT_INPUT_H
#define ND_CLI_LAYOUT_INPUT_H

#include "cli/inputs.h"

/** Parse `text` as a layout for inputs->cluster; the global batch follows from it when none was given, else the
 * accumulation from the batch. Sharding and schedule follow from the stack. What was assumed is recorded.
 * \param[in] option  how messages call it: "--layout"
 * \param[out] keys   which keys the text has */
nd_status nd_layout_input(nd_inputs *inputs, const char *option, const char *text, nd_layout *layout, uint32_t *keys,
                          nd_error *err) ND_NODISCARD;

/** Sequence parallelism is the default with tp where it is possible at all; after nd_inputs_finish(). */
void nd_layout_input_sequence_parallel(nd_inputs *inputs, nd_layout *layout, uint32_t keys);

#endif
