/** What the JSON reader's files share: the index of value offsets. No jansson here.
 *
 * jansson keeps no positions, and ours must name line and column of any value. So the text is scanned once
 * more after jansson accepted it, and the offset of every value is stored: 4 bytes per value, found in
 * O(log containers) from the offset of its container.
 */
#ifndef ND_CORE_JSON_INTERNAL_H
#define ND_CORE_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum {
    ND_JSON_DEPTH_MAX = 64,
    ND_JSON_BYTES_MAX = 16 * 1024 * 1024,
};

/** One array or object. */
typedef struct nd_json_container {
    uint32_t offset; /* of its bracket */
    uint32_t first;  /* its children are values[first .. first + count) */
    uint32_t count;
} nd_json_container;

/** Offsets of all values but the root. Containers are in text order, so sorted by offset. */
typedef struct nd_json_index {
    nd_json_container *containers;
    uint32_t *values;
    size_t container_count;
    size_t value_count;
} nd_json_index;

/** True when brackets nest over ND_JSON_DEPTH_MAX; `offset` is then the bracket too many. Any bytes will do. */
bool nd_json_too_deep(const char *text, size_t length, size_t *offset);

/** Offset of the root value. */
size_t nd_json_root_offset(const char *text, size_t length);

/** Build the index of a text that is valid JSON of legal depth. */
nd_status nd_json_index_build(const char *text, size_t length, nd_json_index *out, nd_error *err) ND_NODISCARD;
void nd_json_index_free(nd_json_index *index);

/** The container whose bracket is at `offset`; it must be one. */
const nd_json_container *nd_json_index_find(const nd_json_index *index, size_t offset);

/** 1-based line, and column in characters, of a byte offset. */
void nd_json_line_column(const char *text, size_t length, size_t offset, size_t *line, size_t *column);

#endif
