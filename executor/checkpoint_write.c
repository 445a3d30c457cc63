/* Saving a checkpoint: see checkpoint.h for the order that makes it safe. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/units.h"
#include "executor/checkpoint_internal.h"

struct nd_checkpoint_writer {
    const nd_model_spec *model;
    const nd_param_list *params;
    nd_manifest manifest;
    bool *put; /* [ranks] */
    int64_t keep;
    char directory[ND_DISK_PATH_MAX];
    char temporary[ND_DISK_PATH_MAX];
};

static nd_status make_directories(nd_checkpoint_writer *w, const char *directory, int64_t step, nd_error *err)
{
    char name[ND_CHECKPOINT_NAME_MAX];
    if (snprintf(w->directory, sizeof w->directory, "%s", directory) >= (int)sizeof w->directory) {
        return nd_fail(err, ND_EINVAL, "the path '%.80s...' is too long", directory);
    }
    (void)snprintf(name, sizeof name, "step-%010" PRId64 ".tmp-%ld", step, (long)getpid());
    ND_TRY(nd_disk_make(directory, err));
    nd_checkpoint_remove_leftovers(directory);
    ND_TRY(nd_disk_path(w->temporary, directory, name, err));
    return nd_disk_make(w->temporary, err);
}

static void release(nd_checkpoint_writer *writer)
{
    free(writer->manifest.files);
    free(writer->put);
    free(writer);
}

nd_status nd_checkpoint_create(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                               const nd_checkpoint_info *info, int64_t keep, nd_checkpoint_writer **out, nd_error *err)
{
    nd_checkpoint_list list;
    ND_TRY(nd_checkpoint_list_load(directory, model, params, &list, err));
    int64_t number = list.count > 0 ? list.entries[0].number + 1 : 1;
    free(list.entries);
    nd_checkpoint_writer *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    w->model = model;
    w->params = params;
    w->keep = keep;
    w->manifest = (nd_manifest){.info = *info, .number = number, .ranks = nd_layout_ranks(&info->layout)};
    (void)snprintf(w->manifest.model, sizeof w->manifest.model, "%s", model->name);
    nd_checkpoint_shapes(model, params, w->manifest.shapes);
    w->manifest.files = calloc((size_t)w->manifest.ranks, sizeof *w->manifest.files);
    w->put = calloc((size_t)w->manifest.ranks, sizeof *w->put);
    nd_status status = w->manifest.files == NULL || w->put == NULL ? nd_fail(err, ND_ENOMEM, "out of memory")
                                                                   : make_directories(w, directory, info->step, err);
    if (status != ND_OK) {
        release(w);
        return status;
    }
    *out = w;
    return ND_OK;
}

int64_t nd_checkpoint_rank_bytes(const nd_model_spec *model, const nd_placement *placement, const nd_layout *layout,
                                 nd_elem wide)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < placement->units_count; i++) {
        const nd_unit *unit = &placement->units[i];
        bool writes = nd_checkpoint_writes(placement, unit, layout, model->kv_heads);
        elements += writes ? ND_CHECKPOINT_PARTS * unit->shard_elements : 0;
    }
    return elements * nd_elem_bytes(wide);
}

/* Most checkpoints that are there at one time beyond those that are there now: the oldest goes when a new one is
 * complete. */
static int64_t more_at_once(int64_t there, int64_t saves, int64_t keep)
{
    int64_t most = there + saves;
    most = keep > 0 && most > keep + 1 ? keep + 1 : most;
    return most - there > 1 ? most - there : 1;
}

static nd_status check_room(const char *directory, const char *disk_of, int64_t bytes, int64_t count, nd_error *err)
{
    /* Manifest, LATEST, and blocks of the file system that are not full: own assumption, about 300 bytes a rank. */
    static const double other_frac = 0.01;
    static const double other_bytes = 65536.0;
    int64_t room = 0;
    uint64_t disk = 0;
    ND_TRY(nd_disk_room(disk_of, &room, &disk, err));
    double needed = (double)count * ((double)bytes * (1.0 + other_frac) + other_bytes);
    if (needed > (double)room) {
        return nd_fail(err, ND_EIO,
                       "the disk of '%s' has %.1f MiB free, and %" PRId64 " checkpoint%s of %.1f MiB need%s %.1f MiB; "
                       "make room, keep fewer, or name another directory",
                       directory, (double)room / ND_MIB, count, count == 1 ? "" : "s", (double)bytes / ND_MIB,
                       count == 1 ? "s" : "", needed / ND_MIB);
    }
    return ND_OK;
}

nd_status nd_checkpoint_check(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                              int64_t bytes, int64_t saves, int64_t keep, nd_error *err)
{
    nd_checkpoint_list list;
    char parent[ND_DISK_PATH_MAX];
    struct stat info;
    ND_TRY(nd_checkpoint_list_load(directory, model, params, &list, err));
    int64_t count = more_at_once(list.count, saves, keep);
    free(list.entries);
    bool exists = stat(directory, &info) == 0;
    ND_TRY(nd_disk_parent(directory, parent, err));
    if (!exists) {
        ND_TRY(nd_disk_make(directory, err));
    }
    nd_status status = nd_disk_probe(directory, err);
    if (status == ND_OK) {
        status = check_room(directory, exists ? directory : parent, bytes, count, err);
    }
    if (!exists) {
        (void)rmdir(directory);
    }
    return status;
}

/** A rank's file while it is written. */
typedef struct put {
    const nd_checkpoint_writer *writer;
    const nd_placement *placement;
    nd_checkpoint_fill fill;
    void *user;
    int fd;
    char path[ND_DISK_PATH_MAX];
    void *buffer; /* one part of the largest unit */
    nd_checksum checksum;
} put;

static bool writes(const put *p, const nd_unit *unit)
{
    return nd_checkpoint_writes(p->placement, unit, &p->writer->manifest.info.layout, p->writer->model->kv_heads);
}

static nd_status put_units(put *p, nd_error *err)
{
    for (int32_t i = 0; i < p->placement->units_count; i++) {
        const nd_unit *unit = &p->placement->units[i];
        size_t bytes = (size_t)(unit->shard_elements * nd_elem_bytes(p->writer->manifest.info.wide));
        for (int part = 0; part < ND_CHECKPOINT_PARTS && writes(p, unit); part++) {
            p->fill(p->user, i, (nd_checkpoint_part)part, p->buffer);
            nd_checksum_add(&p->checksum, p->buffer, bytes);
            ND_TRY(nd_disk_write(p->fd, p->path, p->buffer, bytes, err));
        }
    }
    return ND_OK;
}

static nd_status put_file(put *p, int64_t largest, nd_error *err)
{
    char name[ND_CHECKPOINT_NAME_MAX];
    nd_checkpoint_file_name(p->placement->rank, name);
    ND_TRY(nd_disk_path(p->path, p->writer->temporary, name, err));
    size_t bytes = (size_t)(largest * nd_elem_bytes(p->writer->manifest.info.wide));
    p->buffer = malloc(bytes);
    if (p->buffer == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %zu bytes of a checkpoint", bytes);
    }
    nd_status status = nd_disk_create(p->path, &p->fd, err);
    if (status == ND_OK) {
        status = put_units(p, err);
        nd_status closed = nd_disk_close(p->fd, p->path, status == ND_OK ? err : NULL);
        status = status != ND_OK ? status : closed;
    }
    free(p->buffer);
    return status;
}

nd_status nd_checkpoint_put(nd_checkpoint_writer *writer, const nd_placement *placement, nd_checkpoint_fill fill,
                            void *user, nd_error *err)
{
    put p = {.writer = writer, .placement = placement, .fill = fill, .user = user, .checksum = nd_checksum_start()};
    int64_t largest = 0;
    for (int32_t i = 0; i < placement->units_count; i++) {
        const nd_unit *unit = &placement->units[i];
        largest = writes(&p, unit) && unit->shard_elements > largest ? unit->shard_elements : largest;
    }
    if (largest > 0) {
        ND_TRY(put_file(&p, largest, err));
        writer->manifest.files[placement->rank] =
            (nd_checkpoint_file){.bytes = (int64_t)p.checksum.length, .checksum = nd_checksum_value(&p.checksum)};
    }
    writer->put[placement->rank] = true;
    return ND_OK;
}

static nd_status write_file(const char *path, const char *text, size_t length, nd_error *err)
{
    int fd = -1;
    ND_TRY(nd_disk_create(path, &fd, err));
    nd_status status = nd_disk_write(fd, path, text, length, err);
    nd_status closed = nd_disk_close(fd, path, status == ND_OK ? err : NULL);
    return status != ND_OK ? status : closed;
}

static nd_status write_manifest(const nd_checkpoint_writer *w, nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    ND_TRY(nd_disk_path(path, w->temporary, "manifest.json", err));
    ND_TRY(nd_manifest_write(&w->manifest, &text, &length, err));
    nd_status status = write_file(path, text, length, err);
    free(text);
    return status;
}

/* A name that no checkpoint has: what LATEST names now stays whole until LATEST names the new one, also when both are
 * of the same step. */
static nd_status free_name(const nd_checkpoint_writer *w, char name[ND_CHECKPOINT_NAME_MAX], nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    struct stat info;
    (void)snprintf(name, ND_CHECKPOINT_NAME_MAX, "step-%010" PRId64, w->manifest.info.step);
    for (int copy = 2; copy < 1000; copy++) {
        ND_TRY(nd_disk_path(path, w->directory, name, err));
        if (lstat(path, &info) != 0 && errno == ENOENT) {
            return ND_OK;
        }
        (void)snprintf(name, ND_CHECKPOINT_NAME_MAX, "step-%010" PRId64 "-%d", w->manifest.info.step, copy);
    }
    return nd_fail(err, ND_EIO, "%s has too many checkpoints of step %" PRId64 "; remove some", w->directory,
                   w->manifest.info.step);
}

static nd_status name_latest(const nd_checkpoint_writer *w, const char *name, nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    char temporary[ND_DISK_PATH_MAX];
    char temporary_name[ND_CHECKPOINT_NAME_MAX];
    char line[ND_CHECKPOINT_NAME_MAX + 1];
    (void)snprintf(temporary_name, sizeof temporary_name, "LATEST.tmp-%ld", (long)getpid());
    (void)snprintf(line, sizeof line, "%s\n", name);
    ND_TRY(nd_disk_path(path, w->directory, "LATEST", err));
    ND_TRY(nd_disk_path(temporary, w->directory, temporary_name, err));
    nd_status status = write_file(temporary, line, strlen(line), err);
    status = status == ND_OK ? nd_disk_rename(temporary, path, err) : status;
    if (status != ND_OK) {
        (void)unlink(temporary);
        return status;
    }
    return nd_disk_sync(w->directory, err);
}

static nd_status check_all_put(const nd_checkpoint_writer *w, nd_error *err)
{
    for (int64_t rank = 0; rank < w->manifest.ranks; rank++) {
        if (!w->put[rank]) {
            return nd_fail(err, ND_EINVAL, "the checkpoint of step %" PRId64 " lacks rank %" PRId64,
                           w->manifest.info.step, rank);
        }
    }
    return ND_OK;
}

/* Everything until the complete directory has its name. */
static nd_status complete(nd_checkpoint_writer *w, char name[ND_CHECKPOINT_NAME_MAX], nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    ND_TRY(check_all_put(w, err));
    ND_TRY(write_manifest(w, err));
    ND_TRY(nd_disk_sync(w->temporary, err));
    ND_TRY(free_name(w, name, err));
    ND_TRY(nd_disk_path(path, w->directory, name, err));
    ND_TRY(nd_disk_rename(w->temporary, path, err));
    memcpy(w->temporary, path, sizeof path); /* to remove when LATEST cannot be written */
    ND_TRY(nd_disk_sync(w->directory, err));
    return name_latest(w, name, err);
}

/* The earlier checkpoint of the same step, which the new one replaces. */
static void remove_replaced(const nd_checkpoint_writer *w, const char *before, const char *name)
{
    size_t step = strlen("step-") + 10;
    bool same_step = strncmp(before, name, step) == 0 && (before[step] == '\0' || before[step] == '-');
    if (same_step && strcmp(before, name) != 0) {
        nd_checkpoint_remove(w->directory, before);
    }
}

/* All but the newest. What cannot be listed or removed now is in nobody's way and goes another time. */
static void remove_old(const nd_checkpoint_writer *w, const char *name)
{
    nd_checkpoint_list list;
    if (w->keep == 0 || nd_checkpoint_list_load(w->directory, w->model, w->params, &list, NULL) != ND_OK) {
        return;
    }
    for (int32_t i = 0; i < list.count; i++) {
        if (i >= w->keep && strcmp(list.entries[i].name, name) != 0) {
            nd_checkpoint_remove(w->directory, list.entries[i].name);
        }
    }
    free(list.entries);
}

nd_status nd_checkpoint_finish(nd_checkpoint_writer *writer, nd_error *err)
{
    char before[ND_CHECKPOINT_NAME_MAX] = "";
    char name[ND_CHECKPOINT_NAME_MAX] = "";
    char now[ND_CHECKPOINT_NAME_MAX] = "";
    if (nd_checkpoint_latest(writer->directory, before, NULL) != ND_OK) {
        before[0] = '\0';
    }
    nd_status status = complete(writer, name, err);
    if (status == ND_OK) {
        remove_replaced(writer, before, name);
        remove_old(writer, name);
        release(writer);
        return ND_OK;
    }
    /* the flush after the rename of LATEST may be what failed: then it names the new checkpoint, which must stay */
    if (nd_checkpoint_latest(writer->directory, now, NULL) == ND_OK && name[0] != '\0' && strcmp(now, name) == 0) {
        release(writer);
        return status;
    }
    nd_checkpoint_discard(writer);
    return status;
}

void nd_checkpoint_discard(nd_checkpoint_writer *writer)
{
    if (writer != NULL) {
        nd_disk_remove(writer->temporary);
        release(writer);
    }
}
