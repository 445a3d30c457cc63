#include "core/csv.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/nd_test.h"

enum { ROUNDS = 6000, TEXT_MAX = 512 };

/* A table of `text` that must parse. */
static nd_csv *must_parse(const char *text)
{
    nd_error err;
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_parse(text, strlen(text), "t.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    return csv;
}

static void check_cell(const nd_csv *csv, size_t row, const char *name, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(nd_csv_text(csv, row, name), expected);
}

static void check_refused_bytes(const char *text, size_t length, const char *message)
{
    nd_error err = {0};
    nd_csv *csv = NULL;
    CU_ASSERT_EQUAL(nd_csv_parse(text, length, "t.csv", &csv, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_PTR_NULL(csv);
    nd_csv_free(csv);
}

static void check_refused(const char *text, const char *message)
{
    check_refused_bytes(text, strlen(text), message);
}

static void test_cells_are_found_by_row_and_column_name(void)
{
    nd_csv *csv = must_parse("id,gpus,note\nA,8,first\nB,16,second\n");
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 2);
    CU_ASSERT_EQUAL(nd_csv_columns(csv), 3);
    CU_ASSERT_STRING_EQUAL(nd_csv_origin(csv), "t.csv");
    CU_ASSERT_STRING_EQUAL(nd_csv_column_name(csv, 1), "gpus");
    CU_ASSERT_EQUAL(nd_csv_column(csv, "note"), 2);
    CU_ASSERT_EQUAL(nd_csv_column(csv, "Note"), -1);
    check_cell(csv, 0, "id", "A");
    check_cell(csv, 1, "gpus", "16");
    check_cell(csv, 1, "note", "second");
    check_cell(csv, 0, "no such column", "");
    nd_csv_free(csv);
}

static void test_quotes_hold_commas_quotes_and_line_breaks(void)
{
    nd_csv *csv = must_parse("a,\"b, c\"\n\"1,5\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\"\n\"\"\"\",x\"y\n");
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 3);
    check_cell(csv, 0, "a", "1,5");
    check_cell(csv, 0, "b, c", "say \"hi\"");
    check_cell(csv, 1, "a", "two\nlines");
    check_cell(csv, 1, "b, c", "");
    check_cell(csv, 2, "a", "\"");
    check_cell(csv, 2, "b, c", "x\"y"); /* a quote inside an unquoted cell is text */
    nd_csv_free(csv);
}

static void test_lines_may_end_in_crlf_and_files_without_newline(void)
{
    static const char *const texts[] = {"a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r\n1,2\r\n3,4\r",
                                        "\"a\",\"b\"\r\n\"1\",\"2\"\r\n\"3\",\"4\"", "\xEF\xBB\xBF\x61,b\n1,2\n3,4\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        nd_csv *csv = must_parse(texts[i]);
        CU_ASSERT_EQUAL(nd_csv_columns(csv), 2);
        CU_ASSERT_EQUAL(nd_csv_rows(csv), 2);
        check_cell(csv, 0, "a", "1");
        check_cell(csv, 0, "b", "2");
        check_cell(csv, 1, "a", "3");
        check_cell(csv, 1, "b", "4");
        nd_csv_free(csv);
    }
}

static void test_a_carriage_return_inside_a_line_is_text(void)
{
    nd_csv *csv = must_parse("a,b\n1\r2,3\n");
    check_cell(csv, 0, "a", "1\r2");
    check_cell(csv, 0, "b", "3");
    nd_csv_free(csv);
}

static void test_blank_lines_are_skipped_and_counted(void)
{
    nd_error err;
    nd_csv *csv = must_parse("\n \t\r\na,b\n\n1,2\n   \n3,4\n\n\r\n");
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 2);
    check_cell(csv, 1, "b", "4");
    CU_ASSERT_EQUAL(nd_csv_fail(csv, 1, &err, "bad %d", 7), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:7: bad 7");
    nd_csv_free(csv);
}

static void test_short_rows_end_in_empty_cells(void)
{
    nd_csv *csv = must_parse("a,b,c\n1\n2,3\n,,\n,4,\n");
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 4);
    check_cell(csv, 0, "a", "1");
    check_cell(csv, 0, "b", "");
    check_cell(csv, 0, "c", "");
    check_cell(csv, 1, "b", "3");
    check_cell(csv, 1, "c", "");
    check_cell(csv, 2, "a", "");
    check_cell(csv, 2, "c", "");
    check_cell(csv, 3, "b", "4");
    nd_csv_free(csv);
}

static void test_a_header_alone_is_a_table_without_rows(void)
{
    nd_csv *csv = must_parse("a,b");
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 0);
    CU_ASSERT_EQUAL(nd_csv_columns(csv), 2);
    nd_csv_free(csv);
}

static void test_what_is_no_table_is_refused_with_its_line(void)
{
    check_refused("", "t.csv: the table is empty");
    check_refused(" \n\r\n", "t.csv: the table is empty");
    check_refused("\xEF\xBB\xBF", "t.csv: the table is empty");
    check_refused("a,b\n\n1,2,3\n", "t.csv:3: more cells than the 2 columns of the header");
    check_refused("a,b\n1,2,\n", "t.csv:2: more cells than the 2 columns");
    check_refused("\na,,c\n", "t.csv:2: column 2 of the header has no name");
    check_refused("a,b,", "t.csv:1: column 3 of the header has no name");
    check_refused("a,\"\"\n", "t.csv:1: column 2 of the header has no name");
    check_refused("a,b,a\n", "t.csv:1: column 'a' is there twice");
    check_refused("a,b\n\"1\"x,2\n", "t.csv:2: text follows a closing quote");
    check_refused("a,b\n1,\"two\nlines\"\"\nthree\" x\n", "t.csv:4: text follows a closing quote");
    check_refused("a,b\n1,2\n3,\"4\n5,6\n", "t.csv:3: a quoted cell is not closed");
    check_refused("a,\"", "t.csv:1: a quoted cell is not closed");
    check_refused("\"\"\"", "t.csv:1: a quoted cell is not closed");
    check_refused_bytes("a,b\n1,\0\n", 8, "t.csv: the table holds NUL bytes; is it text in UTF-8?");
    check_refused_bytes("\xFF\xFE"
                        "a\0,\0b\0\n\0",
                        10, "NUL bytes");
}

static void test_a_line_number_counts_the_breaks_inside_quotes(void)
{
    nd_error err;
    int64_t value = 0;
    nd_csv *csv = must_parse("a,\"b\nb\"\n\"x\n\ny\",1\nz,none\n");
    CU_ASSERT_EQUAL(nd_csv_int(csv, 1, "b\nb", 0, 9, &value, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "t.csv:6: ");
    nd_csv_free(csv);
}

static void test_numbers_are_read_in_their_bounds(void)
{
    nd_error err;
    int64_t whole = 0;
    double real = 0.0;
    nd_csv *csv = must_parse("gpus,step_s\n64,1.5e-1\n-3,0\n");
    ND_ASSERT_OK(nd_csv_int(csv, 0, "gpus", 1, 64, &whole, &err));
    ND_ASSERT_OK(nd_csv_double(csv, 0, "step_s", 0.0, 1.0, &real, &err));
    CU_ASSERT_EQUAL(whole, 64);
    CU_ASSERT_EQUAL(real, 0.15);
    ND_ASSERT_OK(nd_csv_int(csv, 1, "gpus", -3, 64, &whole, &err));
    CU_ASSERT_EQUAL(whole, -3);
    nd_csv_free(csv);
}

static void test_a_bad_number_names_file_line_column_and_value(void)
{
    nd_error err;
    int64_t whole = 5;
    double real = 5.0;
    nd_csv *csv = must_parse("gpus,step_s\n\n65,fast\n8.0,nan\n 8,1e400\n");
    CU_ASSERT_EQUAL(nd_csv_int(csv, 0, "gpus", 1, 64, &whole, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:3: gpus must be from 1 to 64, got 65");
    CU_ASSERT_EQUAL(nd_csv_double(csv, 0, "step_s", 0.0, 9.0, &real, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:3: step_s must be a number from 0 to 9, got 'fast'");
    CU_ASSERT_EQUAL(nd_csv_int(csv, 1, "gpus", 1, 64, &whole, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "t.csv:4: gpus must be a whole number");
    CU_ASSERT_EQUAL(nd_csv_double(csv, 1, "step_s", 0.0, 9.0, &real, &err), ND_EPARSE);
    CU_ASSERT_EQUAL(nd_csv_int(csv, 2, "gpus", 1, 64, &whole, &err), ND_EPARSE);
    CU_ASSERT_EQUAL(nd_csv_double(csv, 2, "step_s", 0.0, 9.0, &real, &err), ND_EPARSE);
    CU_ASSERT_EQUAL(nd_csv_double(csv, 2, "step_s", 0.0, 9.0, &real, NULL), ND_EPARSE);
    CU_ASSERT_EQUAL(whole, 5);
    CU_ASSERT_EQUAL(real, 5.0);
    nd_csv_free(csv);
}

static void test_an_empty_cell_and_a_missing_column_keep_the_default(void)
{
    nd_error err;
    int64_t whole = 42;
    double real = 4.2;
    nd_csv *csv = must_parse("gpus,note\n,x\n");
    ND_ASSERT_OK(nd_csv_int(csv, 0, "gpus", 1, 2, &whole, &err));
    ND_ASSERT_OK(nd_csv_int(csv, 0, "nodes", 1, 2, &whole, &err));
    ND_ASSERT_OK(nd_csv_double(csv, 0, "gpus", 1.0, 2.0, &real, &err));
    ND_ASSERT_OK(nd_csv_double(csv, 0, "step_s", 1.0, 2.0, &real, &err));
    CU_ASSERT_EQUAL(whole, 42);
    CU_ASSERT_EQUAL(real, 4.2);
    nd_csv_free(csv);
}

static void test_an_unknown_column_names_the_nearest(void)
{
    static const char *const known[] = {"gpus", "step_s", "peak_bytes"};
    nd_error err;
    nd_csv *good = must_parse("step_s,gpus\n");
    ND_ASSERT_OK(nd_csv_check_columns(good, known, 3, &err));
    ND_ASSERT_OK(nd_csv_need_column(good, "gpus", &err));
    CU_ASSERT_EQUAL(nd_csv_need_column(good, "peak_bytes", &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:1: the table has no column 'peak_bytes'");
    nd_csv_free(good);

    nd_csv *near = must_parse("\ngpus,peek_bytes\n");
    CU_ASSERT_EQUAL(nd_csv_check_columns(near, known, 3, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:2: unknown column 'peek_bytes'; did you mean 'peak_bytes'?");
    nd_csv_free(near);

    nd_csv *far = must_parse("gpus,favourite colour\n");
    CU_ASSERT_EQUAL(nd_csv_check_columns(far, known, 3, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "t.csv:1: unknown column 'favourite colour'");
    nd_csv_free(far);
}

static void test_a_file_is_loaded_and_named_in_messages(void)
{
    char path[] = "nd_test_csv_XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    FILE *file = fdopen(fd, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("a,b\n1,2\n3,x\n", file);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    nd_error err;
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_load(path, &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    CU_ASSERT_STRING_EQUAL(nd_csv_origin(csv), path);
    int64_t value = 0;
    CU_ASSERT_EQUAL(nd_csv_int(csv, 1, "b", 0, 9, &value, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, path);
    ND_ASSERT_CONTAINS(err.message, ":3: b must be");
    nd_csv_free(csv);
    (void)unlink(path);
    csv = NULL;
    CU_ASSERT_EQUAL(nd_csv_load(path, &csv, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, path);
    CU_ASSERT_PTR_NULL(csv);
}

/* `head`, then `part` repeated to about `bytes`. */
static char *repeat(const char *head, const char *part, size_t bytes, size_t *length)
{
    char *text = malloc(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    *length = strlen(head);
    memcpy(text, head, *length);
    for (size_t step = strlen(part); *length + step <= bytes; *length += step) {
        memcpy(text + *length, part, step);
    }
    return text;
}

static void test_many_short_rows_under_a_wide_header_stay_cheap(void)
{
    char header[2048] = "";
    for (int i = 0; i < 256; i++) {
        (void)snprintf(header + strlen(header), sizeof header - strlen(header), "%sc%d", i > 0 ? "," : "", i);
    }
    (void)snprintf(header + strlen(header), sizeof header - strlen(header), "\n");
    /* a padded table would hold 256 cells for each of these 2 million rows: gigabytes */
    size_t length = 0;
    char *text = repeat(header, "1\n", (size_t)4 << 20, &length);
    nd_error err;
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_parse(text, length, "t.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    size_t last = nd_csv_rows(csv) - 1;
    CU_ASSERT_TRUE(last > 2000000);
    check_cell(csv, last, "c0", "1");
    check_cell(csv, last, "c255", "");
    nd_csv_free(csv);
    free(text);
}

static void check_huge(const char *head, const char *part, size_t bytes, const char *message)
{
    size_t length = 0;
    char *text = repeat(head, part, bytes, &length);
    check_refused_bytes(text, length, message);
    free(text);
}

static void test_hostile_texts_are_refused(void)
{
    size_t bytes = (size_t)4 << 20;
    check_huge("", ",", bytes, "t.csv:1: more than 256 cells in a line");
    check_huge("a\n", ",", bytes, "t.csv:2: more cells than the 1 columns");
    check_huge("a\n\"", "\"\"", bytes + 1, "t.csv:2: a quoted cell is not closed");
    check_huge("a,b\n\"", "\n", bytes, "t.csv:2: a quoted cell is not closed");
    check_huge("", "\n", bytes, "t.csv: the table is empty");
    check_huge("", "a", ((size_t)64 << 20) + 1, "t.csv: a table of 67108865 bytes, more than the 67108864 allowed");
}

static void test_a_message_stays_one_line_whatever_the_cells_hold(void)
{
    nd_error err = {0};
    nd_csv *csv = NULL;
    static const char text[] = "a\x1b[31m\r\t,\"a\x1b[31m\r\t\"\n";
    CU_ASSERT_EQUAL(nd_csv_parse(text, sizeof text - 1, "t.csv", &csv, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "is there twice");
    CU_ASSERT_PTR_NULL(strpbrk(err.message, "\x1b\n\r\t"));
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t bound)
{
    return (size_t)(next_random(state) % bound);
}

/* Overwrite, insert, delete or repeat at a random place; the new length. */
static size_t mutate(char text[TEXT_MAX], size_t length, uint64_t *state)
{
    static const char interesting[] = "\"\"\"\",,,\n\n\r\r\n ab1\xEF\xBB\xBF\xff\0";
    char byte = interesting[below(state, sizeof interesting)];
    size_t at = length > 0 ? below(state, length) : 0;
    size_t count = 1 + below(state, 9);
    count = count < length - at ? count : length - at;
    switch (below(state, 4)) {
    case 0:
        text[at] = byte;
        return length > 0 ? length : 1;
    case 1:
        memmove(text + at + 1, text + at, length - at);
        text[at] = byte;
        return length + 1;
    case 2:
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    default:
        memmove(text + at + count, text + at, length - at);
        return length + count;
    }
}

/* Every cell can be read, and all of them together are no longer than the text. */
static bool cells_hold(const nd_csv *csv, size_t length)
{
    size_t bytes = 0;
    for (size_t column = 0; column < nd_csv_columns(csv); column++) {
        const char *name = nd_csv_column_name(csv, column);
        if (nd_csv_column(csv, name) != (int)column) {
            return false;
        }
        bytes += strlen(name);
        for (size_t row = 0; row < nd_csv_rows(csv); row++) {
            bytes += strlen(nd_csv_text(csv, row, name));
        }
    }
    return bytes <= length;
}

static bool text_holds(const char *text, size_t length, bool *accepted)
{
    char *copy = malloc(length > 0 ? length : 1); /* exact size: a sanitizer sees a byte read too far */
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text, length);
    nd_error err = {0};
    nd_csv *csv = NULL;
    nd_status status = nd_csv_parse(copy, length, "t.csv", &csv, &err);
    free(copy); /* the table owns what it lends */
    *accepted = status == ND_OK;
    bool holds = status == ND_OK ? cells_hold(csv, length)
                                 : status == ND_EPARSE && csv == NULL && strncmp(err.message, "t.csv", 5) == 0 &&
                                       strpbrk(err.message, "\n\r") == NULL;
    nd_csv_free(csv);
    return holds;
}

static void test_damaged_tables_are_read_or_refused(void)
{
    static const char *const tables[] = {
        "id,gpus,step_s,note\nA,8,1.5,\"x, \"\"y\"\"\"\nB,16,,\n\nC,32,0.7,\"two\nlines\"\n",
        "\xEF\xBB\xBF\x61,b\r\n1,2\r\n3\r\n\"4\",\"5\"\r\n",
        "\"a\",\"b\"\n\"\",\"\"\n,\n",
    };
    uint64_t state = UINT64_C(0xA0761D6478BD642F);
    int accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const char *source = tables[below(&state, sizeof tables / sizeof tables[0])];
        char text[TEXT_MAX];
        size_t length = strlen(source);
        memcpy(text, source, length);
        for (size_t edits = below(&state, 6); edits > 0; edits--) {
            length = mutate(text, length, &state);
        }
        bool was_accepted = false;
        CU_ASSERT_TRUE_FATAL(text_holds(text, length, &was_accepted));
        accepted += was_accepted ? 1 : 0;
    }
    CU_ASSERT_TRUE(accepted > ROUNDS / 10); /* both outcomes were seen */
    CU_ASSERT_TRUE(accepted < ROUNDS * 9 / 10);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_cells_are_found_by_row_and_column_name),
        ND_TEST(test_quotes_hold_commas_quotes_and_line_breaks),
        ND_TEST(test_lines_may_end_in_crlf_and_files_without_newline),
        ND_TEST(test_a_carriage_return_inside_a_line_is_text),
        ND_TEST(test_blank_lines_are_skipped_and_counted),
        ND_TEST(test_short_rows_end_in_empty_cells),
        ND_TEST(test_a_header_alone_is_a_table_without_rows),
        ND_TEST(test_what_is_no_table_is_refused_with_its_line),
        ND_TEST(test_a_line_number_counts_the_breaks_inside_quotes),
        ND_TEST(test_numbers_are_read_in_their_bounds),
        ND_TEST(test_a_bad_number_names_file_line_column_and_value),
        ND_TEST(test_an_empty_cell_and_a_missing_column_keep_the_default),
        ND_TEST(test_an_unknown_column_names_the_nearest),
        ND_TEST(test_a_file_is_loaded_and_named_in_messages),
        ND_TEST(test_many_short_rows_under_a_wide_header_stay_cheap),
        ND_TEST(test_hostile_texts_are_refused),
        ND_TEST(test_a_message_stays_one_line_whatever_the_cells_hold),
        ND_TEST(test_damaged_tables_are_read_or_refused),
        {NULL, NULL},
    };
    return nd_test_main("core.csv", cases);
}
