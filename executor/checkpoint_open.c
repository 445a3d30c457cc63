/* Opening a checkpoint: reading its manifest, finding which file holds what, comparing sizes and checksums. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/checkpoint_internal.h"

static nd_status add_holder(nd_checkpoint *c, const nd_checkpoint_holder *one, nd_error *err)
{
    if (c->holders_count == c->holders_capacity) {
        int32_t wanted = c->holders_capacity == 0 ? 256 : c->holders_capacity * 2;
        nd_checkpoint_holder *larger = realloc(c->holders, (size_t)wanted * sizeof *larger);
        if (larger == NULL) {
            return nd_fail(err, ND_ENOMEM, "out of memory for the places of parameters in a checkpoint");
        }
        c->holders = larger;
        c->holders_capacity = wanted;
    }
    c->holders[c->holders_count++] = *one;
    return ND_OK;
}

/* The elements of a piece that the shard has. */
static bool overlaps(const nd_piece *piece, int64_t first, int64_t end)
{
    return piece->offset < end && piece->offset + piece->valid_rows * piece->cols > first;
}

static nd_status add_unit(nd_checkpoint *c, const nd_placement *placement, const nd_unit *unit, int64_t *offset,
                          nd_error *err)
{
    nd_checkpoint_holder h = {.rank = placement->rank,
                              .first = unit->shard_index * unit->shard_elements,
                              .file_offset = *offset,
                              .part_bytes = unit->shard_elements * c->elem_bytes};
    h.end = h.first + unit->shard_elements;
    for (int32_t i = 0; i < unit->pieces; i++) {
        h.piece = placement->pieces[unit->first_piece + i];
        if (h.piece.primary && overlaps(&h.piece, h.first, h.end)) {
            ND_TRY(add_holder(c, &h, err));
        }
    }
    *offset += ND_CHECKPOINT_PARTS * h.part_bytes;
    return ND_OK;
}

/* What the rank's file holds; also that it has the size which follows. */
static nd_status add_rank(nd_checkpoint *c, int64_t rank, nd_error *err)
{
    const nd_checkpoint_info *info = &c->manifest.info;
    nd_placement placement;
    int64_t bytes = 0;
    ND_TRY(nd_placement_create(c->model, c->params, &info->layout, &info->chunks, rank, &placement, err));
    nd_status status = ND_OK;
    for (int32_t i = 0; i < placement.units_count && status == ND_OK; i++) {
        if (nd_checkpoint_writes(&placement, &placement.units[i], &info->layout, c->model->kv_heads)) {
            status = add_unit(c, &placement, &placement.units[i], &bytes, err);
        }
    }
    nd_placement_free(&placement);
    if (status == ND_OK && bytes != c->manifest.files[rank].bytes) {
        return nd_fail(err, ND_EPARSE,
                       "%s/manifest.json is damaged: it gives rank %" PRId64 " %" PRId64
                       " bytes, and its layout %" PRId64,
                       c->directory, rank, c->manifest.files[rank].bytes, bytes);
    }
    return status;
}

static int by_param(const void *a, const void *b)
{
    const nd_checkpoint_holder *left = a;
    const nd_checkpoint_holder *right = b;
    int params = (left->piece.param > right->piece.param) - (left->piece.param < right->piece.param);
    int ranks = (left->rank > right->rank) - (left->rank < right->rank);
    return params != 0 ? params : ranks;
}

static nd_status index_holders(nd_checkpoint *c, nd_error *err)
{
    for (int64_t rank = 0; rank < c->manifest.ranks; rank++) {
        ND_TRY(add_rank(c, rank, err));
    }
    c->holders_first = calloc((size_t)c->params->count + 1, sizeof *c->holders_first);
    if (c->holders_first == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    qsort(c->holders, (size_t)c->holders_count, sizeof *c->holders, by_param);
    int32_t at = 0;
    for (int32_t param = 0; param < c->params->count; param++) {
        c->holders_first[param] = at;
        while (at < c->holders_count && c->holders[at].piece.param == param) {
            at++;
        }
    }
    c->holders_first[c->params->count] = at;
    return ND_OK;
}

nd_status nd_checkpoint_rank_path(const nd_checkpoint *c, int64_t rank, char path[ND_DISK_PATH_MAX], nd_error *err)
{
    char name[ND_CHECKPOINT_NAME_MAX];
    nd_checkpoint_file_name(rank, name);
    return nd_disk_path(path, c->directory, name, err);
}

nd_status nd_checkpoint_rank_open(const char *path, int *fd, nd_error *err)
{
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s' of the checkpoint: %s", path, strerror(errno));
    }
    *fd = opened;
    return ND_OK;
}

static nd_status check_bytes(int fd, const char *path, const nd_checkpoint_file *file, char *buffer, size_t capacity,
                             nd_error *err)
{
    struct stat info;
    nd_checksum sum = nd_checksum_start();
    if (fstat(fd, &info) != 0 || (int64_t)info.st_size != file->bytes) {
        return nd_fail(err, ND_EPARSE, "%s is damaged: it has %lld bytes, and the manifest says %" PRId64, path,
                       (long long)info.st_size, file->bytes);
    }
    for (int64_t at = 0; at < file->bytes;) {
        size_t take = file->bytes - at < (int64_t)capacity ? (size_t)(file->bytes - at) : capacity;
        ND_TRY(nd_disk_read(fd, path, buffer, take, at, err));
        nd_checksum_add(&sum, buffer, take);
        at += (int64_t)take;
    }
    if (nd_checksum_value(&sum) != file->checksum) {
        char found[ND_CHECKSUM_TEXT];
        char expected[ND_CHECKSUM_TEXT];
        nd_checksum_text(nd_checksum_value(&sum), found);
        nd_checksum_text(file->checksum, expected);
        return nd_fail(err, ND_EPARSE, "%s is damaged: its checksum is %s, and the manifest says %s", path, found,
                       expected);
    }
    return ND_OK;
}

static nd_status check_files(const nd_checkpoint *c, nd_error *err)
{
    enum { CAPACITY = 1 << 20 };
    char *buffer = malloc(CAPACITY);
    nd_status status = buffer == NULL ? nd_fail(err, ND_ENOMEM, "out of memory") : ND_OK;
    for (int64_t rank = 0; rank < c->manifest.ranks && status == ND_OK; rank++) {
        char path[ND_DISK_PATH_MAX];
        int fd = -1;
        if (c->manifest.files[rank].bytes == 0) {
            continue;
        }
        status = nd_checkpoint_rank_path(c, rank, path, err);
        status = status == ND_OK ? nd_checkpoint_rank_open(path, &fd, err) : status;
        if (status == ND_OK) {
            status = check_bytes(fd, path, &c->manifest.files[rank], buffer, CAPACITY, err);
            (void)close(fd);
        }
    }
    free(buffer);
    return status;
}

/* `path` is a directory with LATEST, or one checkpoint. */
static nd_status find_directory(const char *path, char directory[ND_DISK_PATH_MAX], nd_error *err)
{
    char name[ND_CHECKPOINT_NAME_MAX] = "";
    char manifest[ND_DISK_PATH_MAX];
    struct stat info;
    ND_TRY(nd_checkpoint_latest(path, name, err));
    if (name[0] != '\0') {
        return nd_disk_path(directory, path, name, err);
    }
    ND_TRY(nd_disk_path(manifest, path, "manifest.json", err));
    if (stat(manifest, &info) != 0) {
        return nd_fail(err, ND_EIO, "'%s' holds no complete checkpoint: it has neither LATEST nor manifest.json", path);
    }
    (void)snprintf(directory, ND_DISK_PATH_MAX, "%s", path);
    return ND_OK;
}

static nd_status check_elem(const nd_checkpoint *c, nd_elem wide, nd_error *err)
{
    if (wide != ND_ELEM_COUNT && wide != c->manifest.info.wide) {
        return nd_fail(err, ND_EINVAL, "%s holds %s weights and moments, and this run keeps %s", c->directory,
                       nd_elem_name(c->manifest.info.wide), nd_elem_name(wide));
    }
    return ND_OK;
}

static nd_status open_parts(nd_checkpoint *c, const char *path, nd_elem wide, nd_error *err)
{
    ND_TRY(find_directory(path, c->directory, err));
    ND_TRY(nd_manifest_load(c->directory, c->model, c->params, &c->manifest, err));
    ND_TRY(check_elem(c, wide, err));
    c->elem_bytes = nd_elem_bytes(c->manifest.info.wide);
    ND_TRY(index_holders(c, err));
    return check_files(c, err);
}

nd_status nd_checkpoint_open(const char *path, const nd_model_spec *model, const nd_param_list *params, nd_elem wide,
                             nd_checkpoint **out, nd_error *err)
{
    nd_checkpoint *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    c->model = model;
    c->params = params;
    nd_status status = open_parts(c, path, wide, err);
    if (status != ND_OK) {
        nd_checkpoint_close(c);
        return status;
    }
    c->model = NULL;
    *out = c;
    return ND_OK;
}

void nd_checkpoint_close(nd_checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        free(checkpoint->manifest.files);
        free(checkpoint->holders);
        free(checkpoint->holders_first);
        free(checkpoint);
    }
}

const nd_checkpoint_info *nd_checkpoint_info_get(const nd_checkpoint *checkpoint)
{
    return &checkpoint->manifest.info;
}

const char *nd_checkpoint_path(const nd_checkpoint *checkpoint)
{
    return checkpoint->directory;
}

const nd_param_list *nd_checkpoint_params(const nd_checkpoint *checkpoint)
{
    return checkpoint->params;
}
