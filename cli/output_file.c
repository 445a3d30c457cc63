#include "cli/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static nd_status cannot_write(const char *path, nd_error *err)
{
    return nd_fail(err, ND_EIO, "cannot write '%s': %s", path, strerror(errno));
}

nd_status nd_output_open(const char *path, nd_output_file *out, nd_error *err)
{
    struct stat info;
    nd_output_file file = {.path = path};
    int length = snprintf(file.temporary, sizeof file.temporary, "%s.%ld.tmp", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof file.temporary) {
        return nd_fail(err, ND_EINVAL, "cannot write '%.80s...': the path is too long", path);
    }
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) { /* nothing to keep, and nothing to rename over */
        file.temporary[0] = '\0';
        file.stream = fopen(path, "w");
    } else if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
    } else {
        file.stream = fopen(file.temporary, "wx");
    }
    if (file.stream == NULL) {
        return cannot_write(path, err);
    }
    *out = file;
    return ND_OK;
}

nd_status nd_output_close(nd_output_file *file, nd_status status, nd_error *err)
{
    errno = 0;
    bool failed = ferror(file->stream) != 0;
    failed = fclose(file->stream) != 0 || failed;
    if (status == ND_OK && !failed && file->temporary[0] != '\0') {
        failed = rename(file->temporary, file->path) != 0;
    }
    if (status == ND_OK && !failed) {
        return ND_OK;
    }
    int reason = errno != 0 ? errno : EIO;
    if (file->temporary[0] != '\0') {
        (void)unlink(file->temporary);
    }
    errno = reason;
    return status == ND_OK ? cannot_write(file->path, err) : status;
}
