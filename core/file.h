/** Reading a whole file of unknown kind without hanging on it or filling memory with it. */
#ifndef ND_CORE_FILE_H
#define ND_CORE_FILE_H

#include <stddef.h>

#include "core/status.h"

ND_BEGIN_DECLS

typedef struct nd_file_request {
    const char *path;
    const char *origin; /* how messages call it, usually the path */
    const char *format; /* what it should hold, for messages: "JSON", "CSV" */
    size_t bytes_max;
} nd_file_request;

/** Read a regular file into a fresh buffer that the caller frees; not terminated.
 * ND_EIO when it is missing, a directory, a FIFO or device, or longer than bytes_max; ND_ENOMEM. */
nd_status nd_file_read(const nd_file_request *request, char **out, size_t *length, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
