/* Reading a file of unknown kind without hanging on it or filling memory with it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

static nd_status check_kind(int fd, const nd_file_request *request, size_t *expected_bytes, nd_error *err)
{
    const char *origin = request->origin;
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s': %s", origin, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it is a directory; name the %s file in it", origin,
                       request->format);
    }
    if (!S_ISREG(info.st_mode)) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it is not a regular file; save the %s to one", origin,
                       request->format);
    }
    if ((size_t)info.st_size > request->bytes_max) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it has %lld bytes, more than the %zu allowed; is it %s?", origin,
                       (long long)info.st_size, request->bytes_max, request->format);
    }
    *expected_bytes = (size_t)info.st_size;
    return ND_OK;
}

/* The size that fstat() told is a hint: files grow, and files of /proc have size 0. */
static nd_status read_all(int fd, const nd_file_request *request, size_t capacity, char **buffer, size_t *length,
                          nd_error *err)
{
    const char *origin = request->origin;
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
        if (*length > request->bytes_max) {
            return nd_fail(err, ND_EIO, "cannot read '%s': it has more than the %zu bytes allowed", origin,
                           request->bytes_max);
        }
    }
}

nd_status nd_file_read(const nd_file_request *request, char **out, size_t *length, nd_error *err)
{
    int fd =
        open(request->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* a FIFO would block without O_NONBLOCK */
    if (fd < 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s': %s", request->origin, strerror(errno));
    }
    char *buffer = NULL;
    size_t used = 0;
    size_t expected = 0;
    nd_status status = check_kind(fd, request, &expected, err);
    if (status == ND_OK) {
        status = read_all(fd, request, expected, &buffer, &used, err);
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
