/* Shared by the files that write and read checkpoints. */
#ifndef ND_EXECUTOR_CHECKPOINT_INTERNAL_H
#define ND_EXECUTOR_CHECKPOINT_INTERNAL_H

#include "core/json.h"
#include "core/json_writer.h"
#include "executor/checkpoint.h"
#include "executor/checksum.h"
#include "executor/disk.h"

enum { ND_CHECKPOINT_NAME_MAX = 64, ND_CHECKPOINT_RANKS_MAX = 1 << 16 };

/* What the manifest says of one rank's file. */
typedef struct nd_checkpoint_file {
    int64_t bytes; /* 0: the rank has none */
    uint64_t checksum;
} nd_checkpoint_file;

typedef struct nd_manifest {
    nd_checkpoint_info info;
    char model[ND_MODEL_NAME_MAX];
    char shapes[ND_CHECKSUM_TEXT]; /* nd_checkpoint_shapes() */
    int64_t number;                /* one more than that of every earlier checkpoint in the directory */
    int64_t ranks;
    nd_checkpoint_file *files; /* [ranks] */
} nd_manifest;

/** A primary piece in a rank's file. */
typedef struct nd_checkpoint_holder {
    nd_piece piece;
    int64_t rank;
    int64_t first, end;  /* flat elements of the unit that the file holds */
    int64_t file_offset; /* of the unit, bytes */
    int64_t part_bytes;  /* of one part of the unit */
} nd_checkpoint_holder;

struct nd_checkpoint {
    char directory[ND_DISK_PATH_MAX];
    nd_manifest manifest;
    const nd_model_spec *model; /* while opening */
    const nd_param_list *params;
    int64_t elem_bytes;
    int32_t holders_count, holders_capacity;
    nd_checkpoint_holder *holders; /* by parameter */
    int32_t *holders_first;        /* [params + 1] */
};

nd_status nd_checkpoint_rank_path(const nd_checkpoint *checkpoint, int64_t rank, char path[ND_DISK_PATH_MAX],
                                  nd_error *err) ND_NODISCARD;
nd_status nd_checkpoint_rank_open(const char *path, int *fd, nd_error *err) ND_NODISCARD;

/* The same for models whose parameters have the same names and shapes and are cut alike. */
void nd_checkpoint_shapes(const nd_model_spec *model, const nd_param_list *params, char text[ND_CHECKSUM_TEXT]);

/* The member "training" of a manifest. */
void nd_settings_write(nd_json_writer *json, const nd_settings *settings);
nd_status nd_settings_read(nd_json root, nd_settings *out, nd_error *err) ND_NODISCARD;

/* "mix64:0123456789abcdef" */
nd_status nd_checksum_read(nd_json object, uint64_t *out, nd_error *err) ND_NODISCARD;

/* The manifest's text, with a checksum of itself as last member; free() it. */
nd_status nd_manifest_write(const nd_manifest *manifest, char **text, size_t *length, nd_error *err) ND_NODISCARD;

/* Read DIRECTORY/manifest.json; free(out->files).
 * Returns ND_EINVAL for another model, ND_EPARSE when damaged, ND_EIO when missing. */
nd_status nd_manifest_load(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                           nd_manifest *out, nd_error *err) ND_NODISCARD;

/* "rank-00000.bin" */
void nd_checkpoint_file_name(int64_t rank, char name[ND_CHECKPOINT_NAME_MAX]);

/* Whether the rank of `placement` writes its shard of a unit: of copies the first does, and nobody a unit without
 * primary pieces (the second copy of a tied embedding). */
bool nd_checkpoint_writes(const nd_placement *placement, const nd_unit *unit, const nd_layout *layout,
                          int64_t kv_heads);

/* The checkpoints of one directory. */
typedef struct nd_checkpoint_entry {
    char name[ND_CHECKPOINT_NAME_MAX]; /* "step-0000000010" */
    int64_t number;
} nd_checkpoint_entry;

typedef struct nd_checkpoint_list {
    int32_t count, capacity;
    nd_checkpoint_entry *entries; /* newest first */
} nd_checkpoint_list;

/* Find the checkpoints in a directory (none when there is no such directory). Damaged ones are passed over.
 * Returns ND_EINVAL when the directory is one for something else: the message says for what. free(out->entries). */
nd_status nd_checkpoint_list_load(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                                  nd_checkpoint_list *out, nd_error *err) ND_NODISCARD;

/* Remove a checkpoint so that a kill leaves either all of it, or something that no name of a checkpoint has. */
void nd_checkpoint_remove(const char *directory, const char *name);

/* Remove what killed writers left in a directory. */
void nd_checkpoint_remove_leftovers(const char *directory);

/* The name that DIRECTORY/LATEST holds; "" when there is no such file. */
nd_status nd_checkpoint_latest(const char *directory, char name[ND_CHECKPOINT_NAME_MAX], nd_error *err) ND_NODISCARD;

#endif
