/** What the steps of a run are made with besides model and layout: kept in checkpoints, and compared when a run goes on
 * from one. */
#ifndef ND_EXECUTOR_SETTINGS_H
#define ND_EXECUTOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

typedef struct nd_settings {
    uint64_t seed;          /* of the data */
    int64_t data_bytes;     /* of the file that is trained on; 0: synthetic tokens */
    uint64_t data_checksum; /* of its bytes */
    int64_t seq_len_tokens;
    int64_t global_batch_seqs;
    int64_t warmup_steps, decay_steps; /* of the learning rate */
    double masked_frac;
    double beta1, beta2, eps;
    double lr, weight_decay, clip_norm;
} nd_settings;

/** A setting that may change between steps, and did. */
typedef struct nd_setting_change {
    const char *name; /* "lr"; static storage */
    double before, now;
} nd_setting_change;

enum { ND_SETTINGS_CHANGES_MAX = 3 };

/** Whether steps with `now` go on from steps with `saved`. The data, how it is dealt to steps, and the course of the
 * optimizer must be the same: other ones would repeat sequences, leave some out, or bend the schedule, without a sign.
 * Learning rate, weight decay and clipping are changed on purpose in the middle of trainings: such changes are listed.
 *
 * \param[in] from     the checkpoint's path, for the message
 * \param[out] changes [ND_SETTINGS_CHANGES_MAX]
 * \return ND_EINVAL with both values, and what to do */
nd_status nd_settings_compare(const nd_settings *saved, const nd_settings *now, const char *from,
                              nd_setting_change *changes, int32_t *count, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
