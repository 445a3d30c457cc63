#include "reports/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text_width.h"

enum { GAP = 2, PARAGRAPH_WIDTH_MIN = 16, PARAGRAPH_MAX = 2048 };

typedef struct table_cell {
    char *text;
    nd_tone tone;
} table_cell;

struct nd_table {
    nd_column columns[ND_TABLE_COLUMNS_MAX];
    int32_t columns_count;
    table_cell *cells; /* row-major */
    size_t cells_count, cells_capacity;
    bool out_of_memory;
};

/* What of the table is printed, and how wide. */
typedef struct table_plan {
    bool shown[ND_TABLE_COLUMNS_MAX];
    int32_t width[ND_TABLE_COLUMNS_MAX];
    int32_t gap;
} table_plan;

static const char *const tone_codes[ND_TONE_COUNT] = {
    [ND_TONE_PLAIN] = "",       [ND_TONE_GOOD] = "\033[32m",  [ND_TONE_WARN] = "\033[33m",
    [ND_TONE_BAD] = "\033[31m", [ND_TONE_STRONG] = "\033[1m",
};

nd_table *nd_table_create(const nd_column *columns, int32_t count)
{
    nd_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->columns_count = count < ND_TABLE_COLUMNS_MAX ? count : ND_TABLE_COLUMNS_MAX;
    memcpy(table->columns, columns, (size_t)table->columns_count * sizeof *columns);
    return table;
}

void nd_table_free(nd_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->cells_count; i++) {
        free(table->cells[i].text);
    }
    free(table->cells);
    free(table);
}

static char *copy_printable(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, text, bytes);
    for (char *c = copy; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return copy;
}

static bool grow(nd_table *table)
{
    if (table->cells_count < table->cells_capacity) {
        return true;
    }
    size_t capacity = table->cells_capacity == 0 ? 64 : 2 * table->cells_capacity;
    table_cell *cells = realloc(table->cells, capacity * sizeof *cells);
    if (cells == NULL) {
        return false;
    }
    table->cells = cells;
    table->cells_capacity = capacity;
    return true;
}

void nd_table_add_tone(nd_table *table, const char *text, nd_tone tone)
{
    char *copy = copy_printable(text);
    if (copy == NULL || !grow(table)) {
        free(copy);
        table->out_of_memory = true;
        return;
    }
    table->cells[table->cells_count++] = (table_cell){copy, tone};
}

void nd_table_add(nd_table *table, const char *text)
{
    nd_table_add_tone(table, text, ND_TONE_PLAIN);
}

static int32_t max_width(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static void measure(const nd_table *table, table_plan *plan)
{
    for (int32_t c = 0; c < table->columns_count; c++) {
        const nd_column *column = &table->columns[c];
        plan->width[c] = max_width(nd_text_width(column->title), column->unit ? nd_text_width(column->unit) : 0);
    }
    for (size_t i = 0; i < table->cells_count; i++) {
        size_t c = i % (size_t)table->columns_count;
        plan->width[c] = max_width(plan->width[c], nd_text_width(table->cells[i].text));
    }
}

static int32_t total_width(const nd_table *table, const table_plan *plan)
{
    int32_t total = 0;
    int32_t shown = 0;
    for (int32_t c = 0; c < table->columns_count; c++) {
        if (plan->shown[c]) {
            total += plan->width[c];
            shown++;
        }
    }
    return total + plan->gap * (shown > 0 ? shown - 1 : 0);
}

/* Give the wrapping column what the others leave, but not less than it can be read at. */
static void shrink_wrapping(const nd_table *table, table_plan *plan, int32_t room)
{
    for (int32_t c = 0; c < table->columns_count; c++) {
        if (table->columns[c].wrap > 0 && plan->shown[c]) {
            int32_t excess = total_width(table, plan) - room;
            int32_t floor = max_width(table->columns[c].wrap, nd_text_width(table->columns[c].title));
            if (excess > 0 && plan->width[c] > floor) {
                plan->width[c] = max_width(floor, plan->width[c] - excess);
            }
        }
    }
}

static bool drop_one(const nd_table *table, table_plan *plan)
{
    int32_t victim = -1;
    for (int32_t c = 0; c < table->columns_count; c++) {
        if (plan->shown[c] && table->columns[c].drop > 0 &&
            (victim < 0 || table->columns[c].drop > table->columns[victim].drop)) {
            victim = c;
        }
    }
    if (victim < 0) {
        return false;
    }
    plan->shown[victim] = false;
    return true;
}

/* Widths for one gap, the columns shown being given; true when they fit. */
static bool fit_with_gap(const nd_table *table, table_plan *plan, int32_t room, int32_t gap)
{
    plan->gap = gap;
    measure(table, plan);
    shrink_wrapping(table, plan, room);
    return total_width(table, plan) <= room;
}

static void fit(const nd_table *table, table_plan *plan, int32_t room)
{
    do {
        if (fit_with_gap(table, plan, room, GAP) || fit_with_gap(table, plan, room, 1)) {
            return;
        }
    } while (drop_one(table, plan));
}

static void print_blanks(FILE *stream, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        fputc(' ', stream);
    }
}

/* One cell's text (`bytes` of it) in its column; blanks after the last column are left out. */
static void print_padded(FILE *stream, const nd_report_style *style, const char *text, size_t bytes, nd_tone tone,
                         nd_align align, int32_t width, int32_t *pending)
{
    char piece[PARAGRAPH_MAX];
    (void)snprintf(piece, sizeof piece, "%.*s", (int)bytes, text);
    int32_t blanks = max_width(0, width - nd_text_width(piece));
    if (align == ND_ALIGN_RIGHT) {
        *pending += blanks;
        blanks = 0;
    }
    if (piece[0] != '\0') {
        print_blanks(stream, *pending);
        *pending = 0;
        nd_report_tone(stream, style, tone, piece);
    } else {
        blanks = align == ND_ALIGN_RIGHT ? 0 : width;
    }
    *pending += blanks;
}

static void print_header_line(const nd_table *table, const table_plan *plan, FILE *stream, const nd_report_style *style,
                              int32_t indent, bool units)
{
    int32_t pending = indent;
    bool first = true;
    for (int32_t c = 0; c < table->columns_count; c++) {
        if (!plan->shown[c]) {
            continue;
        }
        pending += first ? 0 : plan->gap;
        first = false;
        const char *text = units ? table->columns[c].unit : table->columns[c].title;
        text = text == NULL ? "" : text;
        print_padded(stream, style, text, strlen(text), ND_TONE_STRONG, table->columns[c].align, plan->width[c],
                     &pending);
    }
    fputc('\n', stream);
}

static void print_row(const nd_table *table, const table_plan *plan, const table_cell *row, FILE *stream,
                      const nd_report_style *style, int32_t indent)
{
    const char *rest = NULL; /* of the wrapping cell */
    bool first_line = true;
    do {
        int32_t pending = indent;
        bool first = true;
        const char *next = NULL;
        for (int32_t c = 0; c < table->columns_count; c++) {
            if (!plan->shown[c]) {
                continue;
            }
            pending += first ? 0 : plan->gap;
            first = false;
            const char *text = first_line ? row[c].text : table->columns[c].wrap > 0 ? rest : "";
            size_t bytes = strlen(text);
            if (table->columns[c].wrap > 0) {
                bytes = nd_text_line(text, plan->width[c]);
                next = text + bytes + strspn(text + bytes, " ");
            }
            print_padded(stream, style, text, bytes, row[c].tone, table->columns[c].align, plan->width[c], &pending);
        }
        fputc('\n', stream);
        rest = next;
        first_line = false;
    } while (rest != NULL && *rest != '\0');
}

static table_plan plan_table(const nd_table *table, int32_t room)
{
    table_plan plan = {.gap = GAP};
    for (int32_t c = 0; c < table->columns_count; c++) {
        plan.shown[c] = true;
    }
    fit(table, &plan, room);
    return plan;
}

int32_t nd_table_hidden(const nd_table *table, const nd_report_style *style, int32_t indent)
{
    table_plan plan = plan_table(table, style->width - indent);
    int32_t hidden = 0;
    for (int32_t c = 0; c < table->columns_count; c++) {
        hidden += plan.shown[c] ? 0 : 1;
    }
    return hidden;
}

nd_status nd_table_print(const nd_table *table, FILE *stream, const nd_report_style *style, int32_t indent,
                         nd_error *err)
{
    if (table->out_of_memory) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out a table");
    }
    table_plan plan = plan_table(table, style->width - indent);
    bool units = false;
    for (int32_t c = 0; c < table->columns_count; c++) {
        units = units || (plan.shown[c] && table->columns[c].unit != NULL);
    }
    print_header_line(table, &plan, stream, style, indent, false);
    if (units) {
        print_header_line(table, &plan, stream, style, indent, true);
    }
    size_t columns = (size_t)table->columns_count;
    for (size_t i = 0; i + columns <= table->cells_count; i += columns) {
        print_row(table, &plan, &table->cells[i], stream, style, indent);
    }
    return ND_OK;
}

void nd_report_paragraph(FILE *stream, const nd_report_style *style, int32_t indent, int32_t hanging,
                         const char *format, ...)
{
    char text[PARAGRAPH_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++) { /* names come from files: a terminal must not obey them */
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    int32_t margin = indent;
    for (const char *rest = text; *rest != '\0';) {
        size_t bytes = nd_text_copyable_line(rest, max_width(style->width - margin, PARAGRAPH_WIDTH_MIN));
        print_blanks(stream, margin);
        fprintf(stream, "%.*s\n", (int)bytes, rest);
        rest += bytes;
        rest += strspn(rest, " ");
        margin = hanging;
    }
}

void nd_report_heading(FILE *stream, const nd_report_style *style, const char *title)
{
    fputc('\n', stream);
    nd_report_tone(stream, style, ND_TONE_STRONG, title);
    fputc('\n', stream);
}

void nd_report_tone(FILE *stream, const nd_report_style *style, nd_tone tone, const char *text)
{
    bool color = style->color && tone != ND_TONE_PLAIN;
    fprintf(stream, "%s%s%s", color ? tone_codes[tone] : "", text, color ? "\033[0m" : "");
}
