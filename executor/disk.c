#include "executor/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static nd_status fail(nd_error *err, const char *verb, const char *path)
{
    return nd_fail(err, ND_EIO, "cannot %s '%s': %s", verb, path, strerror(errno));
}

nd_status nd_disk_path(char path[ND_DISK_PATH_MAX], const char *directory, const char *name, nd_error *err)
{
    int length = snprintf(path, ND_DISK_PATH_MAX, "%s/%s", directory, name);
    if (length < 0 || length >= ND_DISK_PATH_MAX) {
        return nd_fail(err, ND_EINVAL, "the path '%.80s...' is too long", directory);
    }
    return ND_OK;
}

nd_status nd_disk_make(const char *path, nd_error *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) {
        return ND_OK;
    }
    return fail(err, "make the directory", path);
}

nd_status nd_disk_create(const char *path, int *fd, nd_error *err)
{
    int opened = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (opened < 0) {
        return fail(err, "write", path);
    }
    *fd = opened;
    return ND_OK;
}

nd_status nd_disk_write(int fd, const char *path, const void *bytes, size_t count, nd_error *err)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t wrote = write(fd, at, count);
        if (wrote < 0 && errno != EINTR) {
            return fail(err, "write", path);
        }
        at += wrote > 0 ? wrote : 0;
        count -= wrote > 0 ? (size_t)wrote : 0;
    }
    return ND_OK;
}

nd_status nd_disk_close(int fd, const char *path, nd_error *err)
{
    bool synced = fsync(fd) == 0;
    nd_status status = synced ? ND_OK : fail(err, "write", path);
    if (close(fd) != 0 && synced) {
        return fail(err, "write", path);
    }
    return status;
}

nd_status nd_disk_sync(const char *directory, nd_error *err)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail(err, "open", directory);
    }
    return nd_disk_close(fd, directory, err);
}

nd_status nd_disk_rename(const char *from, const char *to, nd_error *err)
{
    return rename(from, to) == 0 ? ND_OK : fail(err, "write", to);
}

nd_status nd_disk_read(int fd, const char *path, void *bytes, size_t count, int64_t offset, nd_error *err)
{
    char *at = bytes;
    while (count > 0) {
        ssize_t got = pread(fd, at, count, (off_t)offset);
        if (got < 0 && errno != EINTR) {
            return fail(err, "read", path);
        }
        if (got == 0) {
            return nd_fail(err, ND_EIO, "'%s' ends at byte %lld, before what should be read", path, (long long)offset);
        }
        at += got > 0 ? got : 0;
        offset += got > 0 ? got : 0;
        count -= got > 0 ? (size_t)got : 0;
    }
    return ND_OK;
}

nd_status nd_disk_list(const char *directory, void (*visit)(void *user, const char *name), void *user, nd_error *err)
{
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return fail(err, "open", directory);
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(user, entry->d_name);
        }
    }
    (void)closedir(stream);
    return ND_OK;
}

nd_status nd_disk_probe(const char *directory, nd_error *err)
{
    char name[64];
    char path[ND_DISK_PATH_MAX];
    int fd = -1;
    (void)snprintf(name, sizeof name, ".ndplan-probe.tmp-%ld", (long)getpid());
    ND_TRY(nd_disk_path(path, directory, name, err));
    if (nd_disk_create(path, &fd, NULL) != ND_OK) {
        return fail(err, "write files into", directory);
    }
    (void)close(fd);
    (void)unlink(path);
    return ND_OK;
}

nd_status nd_disk_room(const char *path, int64_t *bytes, uint64_t *disk, nd_error *err)
{
    struct statvfs room;
    struct stat info;
    if (statvfs(path, &room) != 0 || stat(path, &info) != 0) {
        return fail(err, "find the free space of", path);
    }
    double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
    *bytes = free_bytes < 9e18 ? (int64_t)free_bytes : INT64_MAX;
    *disk = (uint64_t)info.st_dev;
    return ND_OK;
}

nd_status nd_disk_parent(const char *path, char parent[ND_DISK_PATH_MAX], nd_error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    if (length >= ND_DISK_PATH_MAX) {
        return nd_fail(err, ND_EINVAL, "the path '%.80s...' is too long", path);
    }
    if (length == 0) {
        (void)snprintf(parent, ND_DISK_PATH_MAX, ".");
    } else {
        memcpy(parent, path, length);
        parent[length] = '\0';
    }
    return ND_OK;
}

void nd_disk_remove(const char *directory)
{
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        (void)unlinkat(dirfd(stream), entry->d_name, 0); /* of "." and "..": fails */
    }
    (void)closedir(stream);
    (void)rmdir(directory);
}
