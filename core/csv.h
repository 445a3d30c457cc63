/** Comma-separated tables with a header line (RFC 4180: quotes, doubled quotes, line breaks inside quotes).
 *
 * Errors name file and line ("runs.csv:17: gpus must be ..."). Refused: files over 64 MiB, no header, an empty or a
 * repeated column name, a row with more cells than columns, text behind a closing quote, NUL bytes. Rows with fewer
 * cells end in empty ones; blank lines are skipped; a UTF-8 byte order mark and CRLF are fine.
 */
#ifndef ND_CORE_CSV_H
#define ND_CORE_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

typedef struct nd_csv nd_csv;

/** Load a file: ND_EIO when it cannot be read, ND_EPARSE when it is no table ("FILE:LINE: ..."). */
nd_status nd_csv_load(const char *path, nd_csv **out, nd_error *err) ND_NODISCARD;

/** Parse `text` (length bytes, copied); `origin` stands for the file name in messages. */
nd_status nd_csv_parse(const char *text, size_t length, const char *origin, nd_csv **out, nd_error *err) ND_NODISCARD;

void nd_csv_free(nd_csv *csv); /* NULL is fine */

size_t nd_csv_rows(const nd_csv *csv);    /* without the header */
size_t nd_csv_columns(const nd_csv *csv); /* >= 1 */
const char *nd_csv_origin(const nd_csv *csv);
/** "fnv1a64:" and 16 hexadecimal digits: the same for the same bytes. */
const char *nd_csv_fingerprint(const nd_csv *csv);
const char *nd_csv_column_name(const nd_csv *csv, size_t column);

/** Index of a column, or -1. Names are compared exactly. */
int nd_csv_column(const nd_csv *csv, const char *name);

/** ND_EPARSE unless every column is one of `known` (count names); the message names the nearest one. */
nd_status nd_csv_check_columns(const nd_csv *csv, const char *const *known, size_t count, nd_error *err) ND_NODISCARD;

/** ND_EPARSE unless the table has column `name`. */
nd_status nd_csv_need_column(const nd_csv *csv, const char *name, nd_error *err) ND_NODISCARD;

/** Text of a cell by column name; "" for an empty cell or a column that the table lacks. Never NULL. */
const char *nd_csv_text(const nd_csv *csv, size_t row, const char *name);

/** A number in [min, max]; an empty cell or missing column leaves *out as it is (the caller's default). */
nd_status nd_csv_int(const nd_csv *csv, size_t row, const char *name, int64_t min, int64_t max, int64_t *out,
                     nd_error *err) ND_NODISCARD;
nd_status nd_csv_double(const nd_csv *csv, size_t row, const char *name, double min, double max, double *out,
                        nd_error *err) ND_NODISCARD;

/** Fail with "FILE:LINE: <message>" at `row`. */
nd_status nd_csv_fail(const nd_csv *csv, size_t row, nd_error *err, const char *format, ...) ND_PRINTF(4, 5);

#ifdef __clang_analyzer__ /* as for nd_fail */
#define nd_csv_fail(csv, row, err, ...) ((nd_csv_fail)(csv, row, err, __VA_ARGS__), ND_EPARSE)
#endif

ND_END_DECLS

#endif
