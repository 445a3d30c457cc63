/** Where a run goes on from and what it saves: --resume, --save, --save-every, --keep, --save-weights. */
#ifndef ND_CLI_EXECUTION_SAVES_H
#define ND_CLI_EXECUTION_SAVES_H

#include "cli/execution_input.h"
#include "executor/run_state.h"
#include "reports/execution_view.h"

/** Go on from the checkpoint that was named, if any, and see that what is to be saved can be saved, before hours of
 * steps. \param[out] resumed  untouched without --resume */
nd_status nd_execution_begin(const nd_execution_input *input, nd_run *run, nd_resumed *resumed,
                             nd_error *err) ND_NODISCARD;

/** Take the steps of the run, with a checkpoint after each multiple of --save-every, so that a run that was resumed
 * saves the same ones. The last is left to nd_execution_save(). */
nd_status nd_execution_take(const nd_execution_input *input, nd_run *run, nd_run_observer observer, void *user,
                            nd_error *err) ND_NODISCARD;

/** Write what was asked for at the end: a checkpoint, and all weights of it in one file.
 * \param[out] failed  on failure: the disk failed; the run itself went well until here */
nd_status nd_execution_save(const nd_execution_input *input, const nd_run *run, bool *failed,
                            nd_error *err) ND_NODISCARD;

void nd_execution_note_resumed(const nd_resumed *resumed, nd_execution_view *view);

#endif
