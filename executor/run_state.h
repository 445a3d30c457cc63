/** Saving a run and going on with it, in the same layout or another. Between steps only: no thread of the run may be
 * in nd_run_steps(). */
#ifndef ND_EXECUTOR_RUN_STATE_H
#define ND_EXECUTOR_RUN_STATE_H

#include "executor/checkpoint.h"
#include "executor/run.h"

ND_BEGIN_DECLS

/** Save weights, moments and the number of steps into `directory` (executor/checkpoint.h).
 * \return ND_EIO when the disk is full or fails: the checkpoint before is still the latest; ND_EINVAL, ND_ENOMEM */
nd_status nd_run_save(const nd_run *run, const char *directory, nd_error *err) ND_NODISCARD;

/** Go on from the latest checkpoint of `path`: in the layout that saved it to the same bits, in another with the same
 * numbers. Learning rate, data and options are those of this run; the step goes on counting.
 * \return as nd_checkpoint_open(), before anything of the run has changed */
nd_status nd_run_resume(nd_run *run, const char *path, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
