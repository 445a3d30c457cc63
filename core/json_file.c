/* Reading a file of unknown kind without hanging on it or filling memory with it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json_internal.h"

static nd_status check_kind(int fd, const char *origin, size_t *expected_bytes, nd_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s': %s", origin, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it is a directory; name the JSON file in it", origin);
    }
    if (!S_ISREG(info.st_mode)) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it is not a regular file; save the JSON to one", origin);
    }
    if (info.st_size > ND_JSON_BYTES_MAX) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it has %lld bytes, more than the %d allowed; is it JSON?",
                       origin, (long long)info.st_size, (int)ND_JSON_BYTES_MAX);
    }
    *expected_bytes = (size_t)info.st_size;
    return ND_OK;
}

/* The size that fstat() told is a hint: files grow, and files of /proc have size 0. */
static nd_status read_all(int fd, const char *origin, size_t capacity, char **buffer, size_t *length, nd_error *err)
{
    *length = 0;
    for (;;) {
        if (*length == capacity || *buffer == NULL) {
            capacity = *buffer == NULL ? capacity + 1 : capacity * 2;
            char *grown = realloc(*buffer, capacity);
            if (grown == NULL) {
                return nd_fail(err, ND_ENOMEM, "out of memory for the %zu bytes of '%s'", capacity, origin);
            }
            *buffer = grown;
        }
        ssize_t got = read(fd, *buffer + *length, capacity - *length);
        if (got == 0) {
            return ND_OK;
        }
        if (got < 0 && errno != EINTR) {
            return nd_fail(err, ND_EIO, "cannot read '%s': %s", origin, strerror(errno));
        }
        *length += got > 0 ? (size_t)got : 0;
        if (*length > ND_JSON_BYTES_MAX) {
            return nd_fail(err, ND_EIO, "cannot read '%s': it has more than the %d bytes allowed", origin,
                           (int)ND_JSON_BYTES_MAX);
        }
    }
}

nd_status nd_json_read_file(const char *path, const char *origin, char **out, size_t *length, nd_error *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* a FIFO would block without O_NONBLOCK */
    if (fd < 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s': %s", origin, strerror(errno));
    }
    char *buffer = NULL;
    size_t used = 0;
    size_t expected = 0;
    nd_status status = check_kind(fd, origin, &expected, err);
    if (status == ND_OK) {
        status = read_all(fd, origin, expected, &buffer, &used, err);
    }
    (void)close(fd);
    if (status != ND_OK) {
        free(buffer);
        return status;
    }
    *out = buffer;
    *length = used;
    return ND_OK;
}
