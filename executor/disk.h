/** Files that survive a crash once a call has returned. Messages name the file and the system's reason. */
#ifndef ND_EXECUTOR_DISK_H
#define ND_EXECUTOR_DISK_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_DISK_PATH_MAX = 4096 };

/** "directory/name". \return ND_EINVAL when it does not fit */
nd_status nd_disk_path(char path[ND_DISK_PATH_MAX], const char *directory, const char *name,
                       nd_error *err) ND_NODISCARD;

/** Make a directory; one that exists is fine. */
nd_status nd_disk_make(const char *path, nd_error *err) ND_NODISCARD;

/** Open for writing, emptied, close-on-exec. */
nd_status nd_disk_create(const char *path, int *fd, nd_error *err) ND_NODISCARD;

/** Write all bytes. \return ND_EIO: a full disk, a limit, ... */
nd_status nd_disk_write(int fd, const char *path, const void *bytes, size_t count, nd_error *err) ND_NODISCARD;

/** Have the bytes on the disk, and close. `fd` is closed in any case. */
nd_status nd_disk_close(int fd, const char *path, nd_error *err) ND_NODISCARD;

/** Have the names in a directory on the disk. */
nd_status nd_disk_sync(const char *directory, nd_error *err) ND_NODISCARD;

nd_status nd_disk_rename(const char *from, const char *to, nd_error *err) ND_NODISCARD;

/** Read exactly `count` bytes at `offset`. \return ND_EIO when the file ends before */
nd_status nd_disk_read(int fd, const char *path, void *bytes, size_t count, int64_t offset, nd_error *err) ND_NODISCARD;

/** Call `visit` with every name in a directory but "." and "..". \return ND_EIO */
nd_status nd_disk_list(const char *directory, void (*visit)(void *user, const char *name), void *user,
                       nd_error *err) ND_NODISCARD;

/** Whether files can be made in a directory: makes one and removes it. \return ND_EIO */
nd_status nd_disk_probe(const char *directory, nd_error *err) ND_NODISCARD;

/** Bytes that this user may still write to the disk of an existing file or directory, and a number that is the same for
 * the same disk. \return ND_EIO */
nd_status nd_disk_room(const char *path, int64_t *bytes, uint64_t *disk, nd_error *err) ND_NODISCARD;

/** The directory that holds `path`: "." when it names none. \return ND_EINVAL when it is too long */
nd_status nd_disk_parent(const char *path, char parent[ND_DISK_PATH_MAX], nd_error *err) ND_NODISCARD;

/** Remove a directory and the files in it; whatever cannot be removed stays. */
void nd_disk_remove(const char *directory);

ND_END_DECLS

#endif
