#include "core/csv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

enum { BYTES_MAX = 64 * 1024 * 1024, COLUMNS_MAX = 256, ORIGIN_MAX = 200 };

typedef struct csv_row {
    uint32_t line;  /* of the file, from 1 */
    uint32_t first; /* cell */
} csv_row;

/* Cells are offsets into `text`, where every cell ends in a NUL of its own. Only the cells that a row has are stored:
 * a wide header over many short rows must not take more memory than the file did. */
struct nd_csv {
    char origin[ORIGIN_MAX];
    char fingerprint[32];
    char *text;
    char *write; /* end of the cells so far: unquoting only shrinks, so it never overtakes the reader */
    uint32_t *cells;
    csv_row *lines; /* header first, and one behind the last */
    size_t columns, rows, cells_count, cells_capacity, lines_capacity;
};

typedef struct reader {
    nd_csv *csv;
    const char *at, *end;
    size_t line;
    nd_error *err;
} reader;

static nd_status fail_at(const nd_csv *csv, size_t line, nd_error *err, const char *what)
{
    return nd_fail(err, ND_EPARSE, "%s:%zu: %s", csv->origin, line, what);
}

/* `array` with room for item `used`, moved when it is full; NULL when out of memory (`array` stays). */
static void *grow(void *array, size_t *capacity, size_t used, size_t item_bytes, nd_error *err)
{
    if (used < *capacity) {
        return array;
    }
    size_t wanted = *capacity == 0 ? 256 : *capacity * 2;
    void *grown = realloc(array, wanted * item_bytes);
    if (grown == NULL) {
        (void)nd_fail(err, ND_ENOMEM, "out of memory for a table of %zu cells", wanted);
        return NULL;
    }
    *capacity = wanted;
    return grown;
}

static bool ends_cell(const reader *r)
{
    return r->at == r->end || *r->at == ',' || *r->at == '\n' ||
           (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

static nd_status read_quoted(reader *r)
{
    size_t first_line = r->line;
    nd_csv *csv = r->csv;
    for (r->at++;; r->at++) {
        if (r->at == r->end) {
            return fail_at(csv, first_line, r->err, "a quoted cell is not closed; add the missing '\"'");
        }
        if (*r->at == '"') {
            r->at++;
            if (r->at == r->end || *r->at != '"') {
                break;
            }
        }
        r->line += *r->at == '\n';
        *csv->write++ = *r->at;
    }
    if (!ends_cell(r)) {
        return fail_at(csv, r->line, r->err, "text follows a closing quote; double the quotes inside a quoted cell");
    }
    return ND_OK;
}

/* Read one cell; its terminator overwrites the separator or stays before it. */
static nd_status read_cell(reader *r)
{
    nd_csv *csv = r->csv;
    uint32_t *cells = grow(csv->cells, &csv->cells_capacity, csv->cells_count, sizeof csv->cells[0], r->err);
    if (cells == NULL) {
        return ND_ENOMEM;
    }
    csv->cells = cells;
    csv->cells[csv->cells_count++] = (uint32_t)(csv->write - csv->text);
    if (r->at < r->end && *r->at == '"') {
        return read_quoted(r);
    }
    while (!ends_cell(r)) {
        *csv->write++ = *r->at++;
    }
    return ND_OK;
}

/* One line of cells. The NUL of a cell goes where its separator was. */
static nd_status read_row(reader *r, size_t *count)
{
    nd_csv *csv = r->csv;
    bool more = true;
    *count = 0;
    while (more) {
        ND_TRY(read_cell(r));
        ++*count;
        more = r->at < r->end && *r->at == ',';
        bool carriage = r->at < r->end && *r->at == '\r';
        r->at += carriage;
        r->at += r->at < r->end;
        *csv->write++ = '\0';
        if (csv->columns > 0 && *count > csv->columns) {
            return nd_fail(r->err, ND_EPARSE,
                           "%s:%zu: more cells than the %zu columns of the header; quote cells that hold commas",
                           csv->origin, r->line, csv->columns);
        }
        if (*count > COLUMNS_MAX) {
            return nd_fail(r->err, ND_EPARSE, "%s:%zu: more than %d cells in a line", csv->origin, r->line,
                           (int)COLUMNS_MAX);
        }
    }
    return ND_OK;
}

static bool skip_blank_line(reader *r)
{
    const char *at = r->at;
    while (at < r->end && (*at == ' ' || *at == '\t' || *at == '\r')) {
        at++;
    }
    if (at < r->end && *at != '\n') {
        return false;
    }
    r->at = at < r->end ? at + 1 : at;
    r->line++;
    return true;
}

static nd_status check_header(const nd_csv *csv, nd_error *err)
{
    for (size_t i = 0; i < csv->columns; i++) {
        if (*nd_csv_column_name(csv, i) == '\0') {
            return nd_fail(err, ND_EPARSE, "%s:%u: column %zu of the header has no name", csv->origin,
                           csv->lines[0].line, i + 1);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(nd_csv_column_name(csv, i), nd_csv_column_name(csv, j)) == 0) {
                return nd_fail(err, ND_EPARSE, "%s:%u: column '%.80s' is there twice", csv->origin, csv->lines[0].line,
                               nd_csv_column_name(csv, i));
            }
        }
    }
    return ND_OK;
}

static nd_status begin_row(reader *r, size_t row)
{
    nd_csv *csv = r->csv;
    csv_row *lines = grow(csv->lines, &csv->lines_capacity, row, sizeof csv->lines[0], r->err);
    if (lines == NULL) {
        return ND_ENOMEM;
    }
    csv->lines = lines;
    csv->lines[row] = (csv_row){.line = (uint32_t)r->line, .first = (uint32_t)csv->cells_count};
    return ND_OK;
}

static nd_status read_rows(reader *r)
{
    nd_csv *csv = r->csv;
    size_t rows = 0;
    while (r->at < r->end) {
        size_t count = 0;
        if (skip_blank_line(r)) {
            continue;
        }
        ND_TRY(begin_row(r, rows));
        ND_TRY(read_row(r, &count));
        r->line++;
        if (rows == 0) {
            csv->columns = count;
            ND_TRY(check_header(csv, r->err));
        }
        rows++;
    }
    if (rows == 0) {
        return nd_fail(r->err, ND_EPARSE, "%s: the table is empty; its first line must name the columns", csv->origin);
    }
    csv->rows = rows - 1;
    return begin_row(r, rows);
}

static void set_fingerprint(nd_csv *csv, const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 64 bit */
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)(unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    (void)snprintf(csv->fingerprint, sizeof csv->fingerprint, "fnv1a64:%016" PRIx64, hash);
}

static nd_status create(char *text, size_t length, const char *origin, nd_csv **out, nd_error *err)
{
    nd_csv *csv = calloc(1, sizeof *csv);
    /* a file without a final newline needs one byte more for the NUL of its last cell */
    char *room = realloc(text, length + 1);
    if (csv == NULL || room == NULL) {
        free(csv);
        free(room == NULL ? text : room);
        return nd_fail(err, ND_ENOMEM, "out of memory for the %zu bytes of '%s'", length, origin);
    }
    (void)snprintf(csv->origin, sizeof csv->origin, "%s", origin);
    set_fingerprint(csv, room, length);
    csv->text = room;
    csv->write = room;
    size_t mark = length >= 3 && memcmp(room, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    reader r = {.csv = csv, .at = room + mark, .end = room + length, .line = 1, .err = err};
    nd_status status = ND_OK;
    if (memchr(room, '\0', length) != NULL) {
        status = nd_fail(err, ND_EPARSE, "%s: the table holds NUL bytes; is it text in UTF-8?", csv->origin);
    }
    status = status == ND_OK ? read_rows(&r) : status;
    if (status != ND_OK) {
        nd_csv_free(csv);
        return status;
    }
    *out = csv;
    return ND_OK;
}

nd_status nd_csv_load(const char *path, nd_csv **out, nd_error *err)
{
    char *text = NULL;
    size_t length = 0;
    nd_file_request request = {.path = path, .origin = path, .format = "CSV", .bytes_max = BYTES_MAX};
    ND_TRY(nd_file_read(&request, &text, &length, err));
    return create(text, length, path, out, err);
}

nd_status nd_csv_parse(const char *text, size_t length, const char *origin, nd_csv **out, nd_error *err)
{
    if (length > BYTES_MAX) {
        return nd_fail(err, ND_EPARSE, "%s: a table of %zu bytes, more than the %d allowed", origin, length,
                       (int)BYTES_MAX);
    }
    char *copy = malloc(length + 1);
    if (copy == NULL) {
        return nd_fail(err, ND_ENOMEM, "%s: no memory for a table of %zu bytes", origin, length);
    }
    if (length > 0) { /* an empty text may have no address */
        memcpy(copy, text, length);
    }
    return create(copy, length, origin, out, err);
}

void nd_csv_free(nd_csv *csv)
{
    if (csv != NULL) {
        free(csv->text);
        free(csv->cells);
        free(csv->lines);
        free(csv);
    }
}

size_t nd_csv_rows(const nd_csv *csv)
{
    return csv->rows;
}

size_t nd_csv_columns(const nd_csv *csv)
{
    return csv->columns;
}

const char *nd_csv_origin(const nd_csv *csv)
{
    return csv->origin;
}

const char *nd_csv_fingerprint(const nd_csv *csv)
{
    return csv->fingerprint;
}

const char *nd_csv_column_name(const nd_csv *csv, size_t column)
{
    return csv->text + csv->cells[column];
}

int nd_csv_column(const nd_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->columns; i++) {
        if (strcmp(nd_csv_column_name(csv, i), name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

nd_status nd_csv_check_columns(const nd_csv *csv, const char *const *known, size_t count, nd_error *err)
{
    for (size_t i = 0; i < csv->columns; i++) {
        const char *name = nd_csv_column_name(csv, i);
        bool found = false;
        for (size_t j = 0; j < count && !found; j++) {
            found = strcmp(name, known[j]) == 0;
        }
        if (!found) {
            const char *near = nd_text_nearest(name, known, count);
            return nd_fail(err, ND_EPARSE, "%s:%u: unknown column '%.80s'%s%s%s", csv->origin, csv->lines[0].line, name,
                           near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
        }
    }
    return ND_OK;
}

nd_status nd_csv_need_column(const nd_csv *csv, const char *name, nd_error *err)
{
    if (nd_csv_column(csv, name) < 0) {
        return nd_fail(err, ND_EPARSE, "%s:%u: the table has no column '%s'", csv->origin, csv->lines[0].line, name);
    }
    return ND_OK;
}

const char *nd_csv_text(const nd_csv *csv, size_t row, const char *name)
{
    int column = nd_csv_column(csv, name);
    size_t cell = csv->lines[row + 1].first + (size_t)(column < 0 ? 0 : column);
    bool given = column >= 0 && cell < csv->lines[row + 2].first;
    return given ? csv->text + csv->cells[cell] : "";
}

/* The number's own message, behind file and line. */
static nd_status locate(const nd_csv *csv, size_t row, nd_status status, const nd_error *found, nd_error *err)
{
    return status == ND_OK
               ? ND_OK
               : nd_fail(err, ND_EPARSE, "%s:%u: %.700s", csv->origin, csv->lines[row + 1].line, found->message);
}

nd_status nd_csv_int(const nd_csv *csv, size_t row, const char *name, int64_t min, int64_t max, int64_t *out,
                     nd_error *err)
{
    nd_error found;
    const char *text = nd_csv_text(csv, row, name);
    return *text == '\0' ? ND_OK : locate(csv, row, nd_text_int(text, name, min, max, out, &found), &found, err);
}

nd_status nd_csv_double(const nd_csv *csv, size_t row, const char *name, double min, double max, double *out,
                        nd_error *err)
{
    nd_error found;
    const char *text = nd_csv_text(csv, row, name);
    return *text == '\0' ? ND_OK : locate(csv, row, nd_text_double(text, name, min, max, out, &found), &found, err);
}

nd_status(nd_csv_fail)(const nd_csv *csv, size_t row, nd_error *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return nd_fail(err, ND_EPARSE, "%s:%u: %s", csv->origin, csv->lines[row + 1].line, text);
}
