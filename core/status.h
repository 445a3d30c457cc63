/** Status codes and the error message that the caller owns.
 *
 * The contract, stated once: a function that can fail returns nd_status and takes `nd_error *err` last.
 * On failure its outputs are untouched and err->message (when err is not NULL) says in one line what was
 * wrong, with the value, and what to do about it.
 */
#ifndef ND_CORE_STATUS_H
#define ND_CORE_STATUS_H

#include "core/decls.h"

ND_BEGIN_DECLS

/* X(name, text) */
#define ND_STATUS_LIST(X)                                                                                              \
    X(ND_OK, "success")                                                                                                \
    X(ND_EINVAL, "invalid argument")                                                                                   \
    X(ND_ENOTFOUND, "no such name")                                                                                    \
    X(ND_EPARSE, "malformed input")                                                                                    \
    X(ND_EIO, "input or output failed")                                                                                \
    X(ND_ENOMEM, "out of memory")                                                                                      \
    X(ND_EUNSUPPORTED, "not supported")                                                                                \
    X(ND_EINTERRUPTED, "interrupted")

typedef enum nd_status {
#define ND_STATUS_ENUM(name, text) name,
    ND_STATUS_LIST(ND_STATUS_ENUM)
#undef ND_STATUS_ENUM
        ND_STATUS_COUNT
} nd_status;

enum { ND_ERROR_MESSAGE_MAX = 1024 };

typedef struct nd_error {
    nd_status status;
    char message[ND_ERROR_MESSAGE_MAX]; /* one line, no trailing newline; control bytes are replaced */
} nd_error;

/** The text of a status code; never NULL. */
const char *nd_status_text(nd_status status);

/** Fill `err` (may be NULL) and return `status`, so that `return nd_fail(...)` reads as one thing. */
nd_status nd_fail(nd_error *err, nd_status status, const char *format, ...) ND_PRINTF(3, 4);

/* The analyzer sees one file at a time: there, a failure must not look as if it could succeed. */
#ifdef __clang_analyzer__
#define nd_fail(err, status, ...) ((nd_fail)(err, status, __VA_ARGS__), (status))
#endif

/** Return from the calling function when `call` fails; only where nothing is held. */
#define ND_TRY(call)                                                                                                   \
    do {                                                                                                               \
        nd_status nd_try_status = (call);                                                                              \
        if (nd_try_status != ND_OK) {                                                                                  \
            return nd_try_status;                                                                                      \
        }                                                                                                              \
    } while (0)

ND_END_DECLS

#endif
