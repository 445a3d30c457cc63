/** Writing JSON to a stream: commas, indentation and escapes are its job, the keys are the caller's. */
#ifndef ND_CORE_JSON_WRITER_H
#define ND_CORE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/decls.h"

ND_BEGIN_DECLS

enum { ND_JSON_WRITER_DEPTH_MAX = 32 };

typedef struct nd_json_writer {
    FILE *stream;
    int depth;
    bool has_members[ND_JSON_WRITER_DEPTH_MAX];
    bool after_key;
} nd_json_writer;

nd_json_writer nd_json_writer_start(FILE *stream);
/** Ends the document with a newline; all objects and arrays must be closed. */
void nd_json_writer_finish(nd_json_writer *writer);

void nd_json_begin_object(nd_json_writer *writer);
void nd_json_end_object(nd_json_writer *writer);
void nd_json_begin_array(nd_json_writer *writer);
void nd_json_end_array(nd_json_writer *writer);
void nd_json_key(nd_json_writer *writer, const char *key);
void nd_json_string(nd_json_writer *writer, const char *text); /* escapes; invalid UTF-8 becomes U+FFFD */
void nd_json_int(nd_json_writer *writer, int64_t value);
void nd_json_double(nd_json_writer *writer,
                    double value); /* shortest of %.6g..%.17g that round-trips; non-finite -> null */
void nd_json_bool(nd_json_writer *writer, bool value);
void nd_json_null(nd_json_writer *writer);

/** key + value in one call. */
void nd_json_put_string(nd_json_writer *writer, const char *key, const char *text);
void nd_json_put_int(nd_json_writer *writer, const char *key, int64_t value);
void nd_json_put_double(nd_json_writer *writer, const char *key, double value);
void nd_json_put_bool(nd_json_writer *writer, const char *key, bool value);

ND_END_DECLS

#endif
