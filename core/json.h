/** Reading JSON with errors that name file, line, column and key.
 *
 * A document owns its text and tree; an nd_json is a cursor into it (a value, copied freely, dead when the
 * document is freed). Refused: files over 16 MiB, nesting over 64, duplicate keys, NaN and Infinity,
 * numbers out of range, bytes that are not UTF-8.
 */
#ifndef ND_CORE_JSON_H
#define ND_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

typedef struct nd_json_doc nd_json_doc;

typedef struct nd_json {
    const nd_json_doc *doc;
    const void *node;
    size_t offset; /* byte offset of the value in the text: where an error points */
} nd_json;

typedef enum nd_json_type {
    ND_JSON_NULL,
    ND_JSON_BOOL,
    ND_JSON_INT,
    ND_JSON_REAL,
    ND_JSON_STRING,
    ND_JSON_ARRAY,
    ND_JSON_OBJECT
} nd_json_type;

/** Load a file. ND_EIO when it cannot be read (missing, a directory, a FIFO, too large), ND_EPARSE when it is not
 * JSON ("FILE:LINE:COLUMN: ..."). */
nd_status nd_json_load(const char *path, nd_json_doc **out, nd_error *err) ND_NODISCARD;

/** Parse `text` (length bytes, need not be terminated); `origin` stands for the file name in messages. */
nd_status nd_json_parse(const char *text, size_t length, const char *origin, nd_json_doc **out,
                        nd_error *err) ND_NODISCARD;

void nd_json_free(nd_json_doc *doc); /* NULL is fine */

nd_json nd_json_root(const nd_json_doc *doc);
nd_json_type nd_json_typeof(nd_json value);
const char *nd_json_type_name(nd_json_type type); /* "a number", "an object", ... */

/** Member `key` of an object; false when `object` is no object or has no such key. null counts as present. */
bool nd_json_find(nd_json object, const char *key, nd_json *out);

/** Number of array elements or object members; 0 for scalars. */
size_t nd_json_size(nd_json value);
/** Element `index` of an array (index < size). */
nd_json nd_json_at(nd_json array, size_t index);
/** Key and value of member `index` of an object, in file order; the key lives as long as the document. */
const char *nd_json_member(nd_json object, size_t index, nd_json *out);

/** Scalars with their range; the message says "FILE:LINE:COL: 'key' must be ..., got ...; what to do". */
nd_status nd_json_as_int(nd_json value, const char *key, int64_t min, int64_t max, int64_t *out,
                         nd_error *err) ND_NODISCARD; /* 4096.0 is accepted as 4096 */
nd_status nd_json_as_double(nd_json value, const char *key, double min, double max, double *out,
                            nd_error *err) ND_NODISCARD;
nd_status nd_json_as_bool(nd_json value, const char *key, bool *out, nd_error *err) ND_NODISCARD;
nd_status nd_json_as_string(nd_json value, const char *key, const char **out, nd_error *err) ND_NODISCARD;

/** Required members: find + as; a missing key is ND_EPARSE "FILE:LINE:COL: missing key 'hidden_size'". */
nd_status nd_json_need(nd_json object, const char *key, nd_json *out, nd_error *err) ND_NODISCARD;
nd_status nd_json_need_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out,
                           nd_error *err) ND_NODISCARD;
nd_status nd_json_need_double(nd_json object, const char *key, double min, double max, double *out,
                              nd_error *err) ND_NODISCARD;
nd_status nd_json_need_string(nd_json object, const char *key, const char **out, nd_error *err) ND_NODISCARD;

/** Optional members: absent leaves *out as it is (the caller put the default there); null is an error here,
 * so test for it with nd_json_find() where null means something. */
nd_status nd_json_opt_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out,
                          nd_error *err) ND_NODISCARD;
nd_status nd_json_opt_double(nd_json object, const char *key, double min, double max, double *out,
                             nd_error *err) ND_NODISCARD;
nd_status nd_json_opt_bool(nd_json object, const char *key, bool *out, nd_error *err) ND_NODISCARD;
nd_status nd_json_opt_string(nd_json object, const char *key, const char **out, nd_error *err) ND_NODISCARD;

/** Fail with "FILE:LINE:COL: <message>" at `value`. */
nd_status nd_json_fail(nd_json value, nd_error *err, const char *format, ...) ND_PRINTF(3, 4);

ND_END_DECLS

#endif
