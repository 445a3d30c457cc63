/** Saving a run and going on with it, in the same layout or another. Between steps only: no thread of the run may be
 * in nd_run_steps(). */
#ifndef ND_EXECUTOR_RUN_STATE_H
#define ND_EXECUTOR_RUN_STATE_H

#include "executor/checkpoint.h"
#include "executor/run.h"

ND_BEGIN_DECLS

/** What a run will save: to be checked before its first step, so that no hour of training is lost to a typing mistake
 * or a full disk. */
typedef struct nd_save_target {
    const char *directory; /* of checkpoints */
    int64_t keep;          /* as nd_run_save() */
    int64_t saves;         /* checkpoints that will be written */
    const char *weights;   /* file for nd_checkpoint_merge(); NULL: none */
    nd_elem weights_elem;
} nd_save_target;

/** Whether directory and file can be written, are not there for something else, and their disks have room for the state
 * of all ranks. Leaves nothing behind.
 * \return ND_EINVAL, ND_EIO: which of them, why, and what to do */
nd_status nd_run_save_check(const nd_run *run, const nd_save_target *target, nd_error *err) ND_NODISCARD;

/** Save weights, moments, settings and the number of steps into `directory` (executor/checkpoint.h).
 * \param[in] keep  newest checkpoints that stay there, this one included; 0: all
 * \return ND_EIO when the disk is full or fails: the checkpoint before is still the latest; ND_EINVAL (the run is
 *         spoiled, or the directory one for something else), ND_ENOMEM */
nd_status nd_run_save(const nd_run *run, const char *directory, int64_t keep, nd_error *err) ND_NODISCARD;

/** Where a run went on from. */
typedef struct nd_resumed {
    int64_t step;     /* of the checkpoint */
    nd_layout layout; /* that saved it */
    int32_t changes_count;
    nd_setting_change changes[ND_SETTINGS_CHANGES_MAX];
} nd_resumed;

/** Go on from the latest checkpoint of `path`: in the layout that saved it to the same bits, in another with the same
 * numbers. Data and schedule must be those of the checkpoint (executor/settings.h); the step goes on counting.
 * \param[out] out  may be NULL
 * \return as nd_checkpoint_open() and nd_settings_compare(), before anything of the run has changed. When the disk
 *         fails after all of it had been read once, the run is spoiled. */
nd_status nd_run_resume(nd_run *run, const char *path, nd_resumed *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
