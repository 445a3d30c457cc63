/* A directory of checkpoints: which there are, which is the newest, what may go. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "executor/checkpoint_internal.h"

static const char *const step_prefix = "step-";
static const char *const temporary_part = ".tmp-";

nd_status nd_checkpoint_latest(const char *directory, char name[ND_CHECKPOINT_NAME_MAX], nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    struct stat info;
    char *text = NULL;
    size_t length = 0;
    ND_TRY(nd_disk_path(path, directory, "LATEST", err));
    if (stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        name[0] = '\0';
        return ND_OK;
    }
    const nd_file_request request = {
        .path = path, .origin = path, .format = "name of a checkpoint", .bytes_max = ND_CHECKPOINT_NAME_MAX};
    ND_TRY(nd_file_read(&request, &text, &length, err));
    size_t used = length > 0 && text[length - 1] == '\n' ? length - 1 : length;
    bool good = used > 5 && used < ND_CHECKPOINT_NAME_MAX && memcmp(text, step_prefix, 5) == 0 &&
                memchr(text, '/', used) == NULL && memchr(text, '\0', used) == NULL;
    if (good) {
        memcpy(name, text, used);
        name[used] = '\0';
    }
    free(text);
    return good ? ND_OK : nd_fail(err, ND_EPARSE, "%s is damaged: it does not name a checkpoint (step-...)", path);
}

/* "step-0000000010", or "step-0000000010-2" when that step was saved again. */
static bool is_checkpoint_name(const char *name)
{
    static const char *const digits = "0123456789";
    if (strncmp(name, step_prefix, strlen(step_prefix)) != 0 || strlen(name) >= ND_CHECKPOINT_NAME_MAX) {
        return false;
    }
    const char *at = name + strlen(step_prefix);
    size_t step = strspn(at, digits);
    at += step;
    if (*at == '-' && strspn(at + 1, digits) > 0) {
        at += 1 + strspn(at + 1, digits);
    }
    return step > 0 && *at == '\0';
}

/** A list while it is filled. */
typedef struct listing {
    const char *directory;
    const nd_model_spec *model;
    const nd_param_list *params;
    nd_checkpoint_list *list;
    nd_status status;
    nd_error *err;
} listing;

static nd_status append(nd_checkpoint_list *list, const char *name, int64_t number, nd_error *err)
{
    if (list->count == list->capacity) {
        int32_t wanted = list->capacity == 0 ? 16 : list->capacity * 2;
        nd_checkpoint_entry *larger = realloc(list->entries, (size_t)wanted * sizeof *larger);
        if (larger == NULL) {
            return nd_fail(err, ND_ENOMEM, "out of memory for the list of checkpoints");
        }
        list->entries = larger;
        list->capacity = wanted;
    }
    nd_checkpoint_entry *entry = &list->entries[list->count++];
    (void)snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->number = number;
    return ND_OK;
}

static void visit(void *user, const char *name)
{
    listing *l = user;
    char path[ND_DISK_PATH_MAX];
    nd_manifest manifest;
    nd_error why = {0};
    if (l->status != ND_OK || !is_checkpoint_name(name) || nd_disk_path(path, l->directory, name, NULL) != ND_OK) {
        return;
    }
    nd_status status = nd_manifest_load(path, l->model, l->params, &manifest, &why);
    if (status == ND_OK) {
        l->status = append(l->list, name, manifest.number, l->err);
        free(manifest.files);
    } else if (status == ND_EINVAL) { /* a damaged one keeps nobody from saving a good one */
        l->status = nd_fail(l->err, status, "%s", why.message);
    }
}

/* Whoever names a checkpoint, or a file, has mistyped the directory. */
static nd_status check_kind(const char *directory, bool *exists, nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    char latest[ND_CHECKPOINT_NAME_MAX];
    struct stat info;
    *exists = stat(directory, &info) == 0;
    if (!*exists) {
        return ND_OK;
    }
    if (!S_ISDIR(info.st_mode)) {
        return nd_fail(err, ND_EINVAL, "'%s' is a file, not a directory for checkpoints; name another", directory);
    }
    ND_TRY(nd_disk_path(path, directory, "manifest.json", err));
    if (stat(path, &info) == 0) {
        return nd_fail(err, ND_EINVAL,
                       "'%s' is itself a checkpoint or something else with a manifest.json; name the directory that "
                       "holds it, or another",
                       directory);
    }
    nd_error why = {0};
    if (nd_checkpoint_latest(directory, latest, &why) != ND_OK) { /* somebody else's file would be replaced */
        return nd_fail(err, ND_EINVAL, "%s; remove that file or name another directory", why.message);
    }
    return ND_OK;
}

static int newest_first(const void *a, const void *b)
{
    const nd_checkpoint_entry *x = a;
    const nd_checkpoint_entry *y = b;
    return (y->number > x->number) - (y->number < x->number);
}

nd_status nd_checkpoint_list_load(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                                  nd_checkpoint_list *out, nd_error *err)
{
    bool exists = false;
    nd_checkpoint_list list = {0};
    listing l = {.directory = directory, .model = model, .params = params, .list = &list, .status = ND_OK, .err = err};
    ND_TRY(check_kind(directory, &exists, err));
    nd_status status = exists ? nd_disk_list(directory, visit, &l, err) : ND_OK;
    status = status == ND_OK ? l.status : status;
    if (status != ND_OK) {
        free(list.entries);
        return status;
    }
    if (list.count > 0) {
        qsort(list.entries, (size_t)list.count, sizeof *list.entries, newest_first);
    }
    *out = list;
    return ND_OK;
}

void nd_checkpoint_remove(const char *directory, const char *name)
{
    char path[ND_DISK_PATH_MAX];
    char temporary[ND_DISK_PATH_MAX];
    char temporary_name[ND_CHECKPOINT_NAME_MAX + 32];
    (void)snprintf(temporary_name, sizeof temporary_name, "%s%s%ld", name, temporary_part, (long)getpid());
    if (nd_disk_path(path, directory, name, NULL) == ND_OK &&
        nd_disk_path(temporary, directory, temporary_name, NULL) == ND_OK &&
        nd_disk_rename(path, temporary, NULL) == ND_OK) {
        nd_disk_remove(temporary);
    }
}

/* Of a process that lives it may be in use; in this one nobody else writes now. */
static bool is_leftover(const char *name)
{
    const char *part = strstr(name, temporary_part);
    bool ours = strncmp(name, step_prefix, strlen(step_prefix)) == 0 || strncmp(name, "LATEST", 6) == 0;
    if (!ours || part == NULL) {
        return false;
    }
    char *end = NULL;
    long process = strtol(part + strlen(temporary_part), &end, 10);
    if (process <= 0 || *end != '\0') {
        return false;
    }
    return process == (long)getpid() || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
}

static void remove_leftover(void *user, const char *name)
{
    char path[ND_DISK_PATH_MAX];
    if (is_leftover(name) && nd_disk_path(path, user, name, NULL) == ND_OK) {
        if (unlink(path) != 0) {
            nd_disk_remove(path);
        }
    }
}

void nd_checkpoint_remove_leftovers(const char *directory)
{
    char path[ND_DISK_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", directory);
    if (nd_disk_list(directory, remove_leftover, path, NULL) != ND_OK) {
        return; /* what stays is in nobody's way */
    }
}
