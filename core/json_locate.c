/* Where the values of a JSON text are. The scanner trusts nothing: on bytes that are not JSON it finds odd
 * values, but it always advances and never leaves the text. */
#include "core/json_internal.h"

#include <assert.h>
#include <stdlib.h>

typedef enum scan_event { SCAN_SCALAR, SCAN_OPEN, SCAN_CLOSE, SCAN_END } scan_event;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_spaces(const char *text, size_t length, size_t at)
{
    while (at < length && is_space(text[at])) {
        at++;
    }
    return at;
}

/* `at` is an opening quote; the offset after the closing one. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++) {
        if (text[at] == '\\') {
            at++;
        }
    }
    return at < length ? at + 1 : length;
}

/* A number, true, false or null: up to the next character that can follow one. */
static size_t skip_word(const char *text, size_t length, size_t at)
{
    do {
        at++;
    } while (at < length && !is_space(text[at]) && text[at] != ',' && text[at] != ':' && text[at] != ']' &&
             text[at] != '}' && text[at] != '[' && text[at] != '{' && text[at] != '"');
    return at;
}

/* The next value start or closing bracket at or after *at; keys are passed over. *at moves behind it. */
static scan_event scan_next(const char *text, size_t length, size_t *at, size_t *start)
{
    size_t here = *at;
    while (here < length) {
        char c = text[here];
        if (is_space(c) || c == ',' || c == ':') {
            here++;
            continue;
        }
        *start = here;
        if (c == '{' || c == '[' || c == '}' || c == ']') {
            *at = here + 1;
            return c == '{' || c == '[' ? SCAN_OPEN : SCAN_CLOSE;
        }
        here = c == '"' ? skip_string(text, length, here) : skip_word(text, length, here);
        if (c == '"') {
            size_t next = skip_spaces(text, length, here);
            if (next < length && text[next] == ':') {
                here = next + 1;
                continue;
            }
        }
        *at = here;
        return SCAN_SCALAR;
    }
    *at = length;
    return SCAN_END;
}

bool nd_json_too_deep(const char *text, size_t length, size_t *offset)
{
    size_t at = 0;
    size_t start = 0;
    int depth = 0;
    for (;;) {
        scan_event event = scan_next(text, length, &at, &start);
        if (event == SCAN_END) {
            return false;
        }
        if (event == SCAN_OPEN && ++depth > ND_JSON_DEPTH_MAX) {
            *offset = start;
            return true;
        }
        if (event == SCAN_CLOSE && depth > 0) {
            depth--;
        }
    }
}

size_t nd_json_root_offset(const char *text, size_t length)
{
    return skip_spaces(text, length, 0);
}

/* Children are contiguous per container, so counts are needed before offsets can be placed. */
static void count_values(const char *text, size_t length, size_t *containers, size_t *values)
{
    size_t at = 0;
    size_t start = 0;
    *containers = 0;
    *values = 0;
    for (scan_event event = SCAN_OPEN; event != SCAN_END;) {
        event = scan_next(text, length, &at, &start);
        *containers += event == SCAN_OPEN ? 1 : 0;
        *values += event == SCAN_OPEN || event == SCAN_SCALAR ? 1 : 0;
    }
}

static void count_children(const char *text, size_t length, nd_json_index *index)
{
    size_t open[ND_JSON_DEPTH_MAX] = {0};
    size_t depth = 0;
    size_t found = 0;
    size_t at = 0;
    size_t start = 0;
    for (;;) {
        scan_event event = scan_next(text, length, &at, &start);
        if (event == SCAN_END) {
            return;
        }
        if (event == SCAN_CLOSE) {
            depth--;
            continue;
        }
        if (depth > 0) {
            index->containers[open[depth - 1]].count++;
        }
        if (event == SCAN_OPEN) {
            index->containers[found] = (nd_json_container){.offset = (uint32_t)start};
            open[depth++] = found++;
        }
    }
}

static void place_values(const char *text, size_t length, nd_json_index *index)
{
    size_t open[ND_JSON_DEPTH_MAX] = {0};
    uint32_t next[ND_JSON_DEPTH_MAX] = {0};
    size_t depth = 0;
    size_t found = 0;
    size_t at = 0;
    size_t start = 0;
    for (;;) {
        scan_event event = scan_next(text, length, &at, &start);
        if (event == SCAN_END) {
            return;
        }
        if (event == SCAN_CLOSE) {
            depth--;
            continue;
        }
        if (depth > 0) {
            index->values[index->containers[open[depth - 1]].first + next[depth - 1]++] = (uint32_t)start;
        }
        if (event == SCAN_OPEN) {
            open[depth] = found++;
            next[depth++] = 0;
        }
    }
}

nd_status nd_json_index_build(const char *text, size_t length, nd_json_index *out, nd_error *err)
{
    assert(length <= ND_JSON_BYTES_MAX);
    nd_json_index index = {0};
    count_values(text, length, &index.container_count, &index.value_count);
    index.containers = calloc(index.container_count + 1, sizeof *index.containers);
    index.values = calloc(index.value_count + 1, sizeof *index.values);
    if (index.containers == NULL || index.values == NULL) {
        nd_json_index_free(&index);
        return nd_fail(err, ND_ENOMEM, "out of memory for the index of a JSON text of %zu bytes", length);
    }
    count_children(text, length, &index);
    uint32_t first = 0;
    for (size_t i = 0; i < index.container_count; i++) {
        index.containers[i].first = first;
        first += index.containers[i].count;
    }
    place_values(text, length, &index);
    *out = index;
    return ND_OK;
}

void nd_json_index_free(nd_json_index *index)
{
    free(index->containers);
    free(index->values);
    *index = (nd_json_index){0};
}

const nd_json_container *nd_json_index_find(const nd_json_index *index, size_t offset)
{
    size_t low = 0;
    size_t high = index->container_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (index->containers[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    assert(index->container_count > 0 && index->containers[low].offset == offset);
    return &index->containers[low];
}

void nd_json_line_column(const char *text, size_t length, size_t offset, size_t *line, size_t *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset && i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n') {
            ++*line;
            *column = 1;
        } else if ((c & 0xC0) != 0x80) { /* continuation bytes of UTF-8 are no characters of their own */
            ++*column;
        }
    }
}
