/** A file that a command writes: whole or not at all. */
#ifndef ND_CLI_OUTPUT_FILE_H
#define ND_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/status.h"

enum { ND_OUTPUT_PATH_MAX = 4096 };

typedef struct nd_output_file {
    const char *path; /* borrowed */
    char temporary[ND_OUTPUT_PATH_MAX];
    FILE *stream;
} nd_output_file;

/** Open a temporary file beside `path` (or `path` itself when it is a device or a pipe). ND_EIO, or ND_EINVAL for a
 * path that is too long. Write to out->stream, then nd_output_close(). */
nd_status nd_output_open(const char *path, nd_output_file *out, nd_error *err) ND_NODISCARD;

/** Put the file in its place when `status` is ND_OK and everything could be written; otherwise remove it, and what
 * stood at `path` stays. \return status, or ND_EIO. */
nd_status nd_output_close(nd_output_file *file, nd_status status, nd_error *err) ND_NODISCARD;

#endif
