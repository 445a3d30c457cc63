/** Sharded checkpoints: master weights and moments in one file per rank that holds any, and a manifest.
 *
 *   DIR/LATEST                        the name of the newest complete checkpoint
 *   DIR/step-0000000010/manifest.json model, layout, step, settings, type, files with sizes and checksums
 *   DIR/step-0000000010/rank-00000.bin its shard of every unit: weights, first moments, second moments
 *   DIR/step-0000000020.tmp-PID/       one that is being written, or whose writer was killed
 *
 * Files are written into the temporary directory and flushed, the directory is renamed, and then LATEST is replaced, so
 * that a run killed at any time, or a full disk, leaves what LATEST named before. Then the oldest checkpoints go. What
 * a killed writer left is removed by the next save; one run at a time saves into a directory. Numbers are
 * little-endian. No call needs memory for more than one unit of a rank.
 */
#ifndef ND_EXECUTOR_CHECKPOINT_H
#define ND_EXECUTOR_CHECKPOINT_H

#include "core/layout.h"
#include "executor/settings.h"
#include "program/instruction.h"
#include "program/placement.h"

ND_BEGIN_DECLS

/** What a checkpoint says about itself. */
typedef struct nd_checkpoint_info {
    nd_layout layout;
    nd_chunk_map chunks;
    int64_t step;         /* steps taken */
    nd_settings settings; /* that they were taken with */
    nd_elem wide;         /* type of the numbers: fp64 or fp32 */
} nd_checkpoint_info;

typedef enum nd_checkpoint_part {
    ND_CHECKPOINT_MASTER,
    ND_CHECKPOINT_M,
    ND_CHECKPOINT_V,
    ND_CHECKPOINT_PARTS
} nd_checkpoint_part;

/* Saving: create, put every rank, finish; or discard. */

typedef struct nd_checkpoint_writer nd_checkpoint_writer;

/** Begin a checkpoint in `directory`, which is made when it does not exist; what killed writers left there is removed.
 * \param[in] model, params  borrowed until the writer is gone
 * \param[in] keep           checkpoints that stay when this one is complete, itself included; 0: all
 * \return ND_EINVAL when the directory is not one for checkpoints of this model, ND_EIO, ND_ENOMEM */
nd_status nd_checkpoint_create(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                               const nd_checkpoint_info *info, int64_t keep, nd_checkpoint_writer **out,
                               nd_error *err) ND_NODISCARD;

/** Whether `saves` checkpoints of `bytes` each will be able to go into `directory`: it can be made and written, is not
 * one for something else, and its disk has room while `keep` stay. Leaves nothing behind.
 * \return as nd_checkpoint_create(); ND_EIO with the bytes when the disk is too full */
nd_status nd_checkpoint_check(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                              int64_t bytes, int64_t saves, int64_t keep, nd_error *err) ND_NODISCARD;

/** Bytes of the file of one rank. */
int64_t nd_checkpoint_rank_bytes(const nd_model_spec *model, const nd_placement *placement, const nd_layout *layout,
                                 nd_elem wide);

/** Copy this rank's shard of `part` of unit number `unit`: shard_elements numbers of the wide type. */
typedef void (*nd_checkpoint_fill)(void *user, int32_t unit, nd_checkpoint_part part, void *out);

/** Write the file of one rank, if it has to write one. Different ranks may be put by different threads; all ranks must
 * be put. \return ND_EIO: the disk is full, ... */
nd_status nd_checkpoint_put(nd_checkpoint_writer *writer, const nd_placement *placement, nd_checkpoint_fill fill,
                            void *user, nd_error *err) ND_NODISCARD;

/** Complete the checkpoint. On failure the earlier one is still the latest. Frees the writer in any case. An earlier
 * checkpoint of the same step is replaced, and of all others the oldest are removed as `keep` says. */
nd_status nd_checkpoint_finish(nd_checkpoint_writer *writer, nd_error *err) ND_NODISCARD;

/** Give up: removes what was written. Frees the writer; NULL is fine. */
void nd_checkpoint_discard(nd_checkpoint_writer *writer);

/* Loading. */

typedef struct nd_checkpoint nd_checkpoint;

/** Open the latest checkpoint of `path`, or the one that `path` itself is, and read every byte of it to compare sizes
 * and checksums: afterwards only a failing disk can make a read fail.
 * \param[in] model, params  of the run; params is borrowed
 * \param[in] wide           ND_ELEM_COUNT: any
 * \return ND_EINVAL for another model or type, ND_EPARSE for a damaged, truncated or incomplete checkpoint, ND_EIO when
 *         there is none; the message names file, what, expected and found */
nd_status nd_checkpoint_open(const char *path, const nd_model_spec *model, const nd_param_list *params, nd_elem wide,
                             nd_checkpoint **out, nd_error *err) ND_NODISCARD;
void nd_checkpoint_close(nd_checkpoint *checkpoint); /* NULL is fine */

const nd_checkpoint_info *nd_checkpoint_info_get(const nd_checkpoint *checkpoint);
const char *nd_checkpoint_path(const nd_checkpoint *checkpoint);            /* "DIR/step-0000000010" */
const nd_param_list *nd_checkpoint_params(const nd_checkpoint *checkpoint); /* as given to open */

/** Elements first .. first + count - 1 of a flat unit of any rank of any layout, padding as 0, in the wide type of the
 * checkpoint; reads only the bytes that it needs. Several threads may read at the same time. */
nd_status nd_checkpoint_read(const nd_checkpoint *checkpoint, const nd_placement *placement, const nd_unit *unit,
                             nd_checkpoint_part part, int64_t first, int64_t count, void *out,
                             nd_error *err) ND_NODISCARD;

/** Rows row .. row + rows - 1 of a whole parameter. */
nd_status nd_checkpoint_read_param(const nd_checkpoint *checkpoint, int32_t param, nd_checkpoint_part part, int64_t row,
                                   int64_t rows, void *out, nd_error *err) ND_NODISCARD;

/** Write all weights to one safetensors file, a block of rows at a time. Names and shapes are those of Hugging Face for
 * the families whose checkpoints keep every matrix by itself; of others (GPT-2 fuses and transposes) those of the
 * parameter list. The file's metadata says which: names=huggingface or names=ndplan.
 * \param[in] type  fp64, fp32 or bf16 (rounded to nearest even) */
nd_status nd_checkpoint_merge(const nd_checkpoint *checkpoint, const nd_model_spec *model, nd_elem type,
                              const char *path, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
