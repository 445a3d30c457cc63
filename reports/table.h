/** Text tables: aligned columns, a unit under each title, fitted to a width.
 *
 * A table that is too wide first wraps its one wrapping column, then narrows its gaps, then drops columns in the
 * order their `drop` numbers say. Nothing here knows what the cells mean.
 */
#ifndef ND_REPORTS_TABLE_H
#define ND_REPORTS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_TABLE_COLUMNS_MAX = 24, ND_REPORT_WIDTH_DEFAULT = 80 };

/** Where the text goes: the command line finds out, the reports obey. */
typedef struct nd_report_style {
    int32_t width; /* columns of the terminal, >= 20 */
    bool color;
} nd_report_style;

typedef enum nd_align { ND_ALIGN_LEFT, ND_ALIGN_RIGHT } nd_align;
typedef enum nd_tone { ND_TONE_PLAIN, ND_TONE_GOOD, ND_TONE_WARN, ND_TONE_BAD, ND_TONE_STRONG, ND_TONE_COUNT } nd_tone;

typedef struct nd_column {
    const char *title;
    const char *unit; /* second header line; NULL: none */
    nd_align align;
    int32_t drop; /* 0: always shown; else the column with the highest number goes first */
    int32_t wrap; /* > 0: long cells continue on the next line, in no fewer columns than this; one column at most */
} nd_column;

typedef struct nd_table nd_table;

/** \param[in] columns  copied; the texts are borrowed
 * \return NULL when out of memory. */
nd_table *nd_table_create(const nd_column *columns, int32_t count);
void nd_table_free(nd_table *table); /* NULL is fine */

/** Append the next cell, row by row; `text` is copied, control bytes are replaced. */
void nd_table_add(nd_table *table, const char *text);
void nd_table_add_tone(nd_table *table, const char *text, nd_tone tone);

/** Print header and rows, each line indented by `indent`.
 * \return ND_ENOMEM when a cell could not be stored; nothing is printed then. */
nd_status nd_table_print(const nd_table *table, FILE *stream, const nd_report_style *style, int32_t indent,
                         nd_error *err) ND_NODISCARD;

/** How many columns nd_table_print() leaves out at this width. */
int32_t nd_table_hidden(const nd_table *table, const nd_report_style *style, int32_t indent);

/** Print `text` wrapped to the width: the first line indented by `indent`, the others by `hanging`. What people copy (a
 * layout, an option with its value) is never parted, however wide. */
void nd_report_paragraph(FILE *stream, const nd_report_style *style, int32_t indent, int32_t hanging,
                         const char *format, ...) ND_PRINTF(5, 6);

/** A blank line and a heading. */
void nd_report_heading(FILE *stream, const nd_report_style *style, const char *title);

/** `text` in a tone, or plain when the style has no colour. */
void nd_report_tone(FILE *stream, const nd_report_style *style, nd_tone tone, const char *text);

ND_END_DECLS

#endif
