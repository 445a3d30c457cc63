#include "reports/table.h"

#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/capture.h"

static const nd_report_style wide = {80, false};

static const nd_column name_and_size[] = {
    {"name", NULL, ND_ALIGN_LEFT, 0, 0},
    {"size", "GiB", ND_ALIGN_RIGHT, 0, 0},
};

/* Print and compare. */
static void expect(nd_table *table, const nd_report_style *style, int32_t indent, const char *expected)
{
    nd_error err;
    capture out;
    capture_begin(&out);
    ND_ASSERT_OK(nd_table_print(table, out.stream, style, indent, &err));
    CU_ASSERT_STRING_EQUAL(capture_end(&out), expected);
    if (strcmp(out.text, expected) != 0) {
        fprintf(stderr, "got:\n%swanted:\n%s", out.text, expected);
    }
    capture_free(&out);
    nd_table_free(table);
}

static void test_columns_align_and_lines_have_no_trailing_blanks(void)
{
    nd_table *table = nd_table_create(name_and_size, 2);
    nd_table_add(table, "weights");
    nd_table_add(table, "3.74");
    nd_table_add(table, "x");
    nd_table_add(table, "12.5");
    expect(table, &wide, 0,
           "name     size\n"
           "          GiB\n"
           "weights  3.74\n"
           "x        12.5\n");
}

static void test_a_table_without_rows_is_its_header(void)
{
    expect(nd_table_create(name_and_size, 2), &wide, 2, "  name  size\n         GiB\n");
}

static void test_wide_characters_keep_the_columns_straight(void)
{
    nd_table *table = nd_table_create(name_and_size, 2);
    nd_table_add(table, "\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1");
    nd_table_add(table, "1");
    nd_table_add(table, "abcdef");
    nd_table_add(table, "2");
    expect(table, &wide, 0,
           "name    size\n"
           "         GiB\n"
           "\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1     1\n"
           "abcdef     2\n");
}

static void test_control_bytes_never_reach_the_terminal(void)
{
    nd_table *table = nd_table_create(name_and_size, 2);
    nd_table_add(table, "a\033[31m\n");
    nd_table_add(table, "1");
    expect(table, &wide, 0,
           "name     size\n"
           "          GiB\n"
           "a?[31m?     1\n");
}

static void test_the_column_with_the_highest_drop_number_goes_first(void)
{
    static const nd_column columns[] = {
        {"first column", NULL, ND_ALIGN_LEFT, 0, 0},
        {"second column", NULL, ND_ALIGN_LEFT, 2, 0},
        {"third column", NULL, ND_ALIGN_LEFT, 1, 0},
    };
    nd_table *table = nd_table_create(columns, 3);
    nd_table_add(table, "a");
    nd_table_add(table, "b");
    nd_table_add(table, "c");
    CU_ASSERT_EQUAL(nd_table_hidden(table, &(nd_report_style){30, false}, 0), 1);
    CU_ASSERT_EQUAL(nd_table_hidden(table, &(nd_report_style){80, false}, 0), 0);
    expect(table, &(nd_report_style){30, false}, 0,
           "first column  third column\n"
           "a             c\n");
}

static void test_a_wrapping_column_takes_the_room_that_is_left(void)
{
    static const nd_column columns[] = {
        {"n", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"message", NULL, ND_ALIGN_LEFT, 0, 16},
        {"nearest", NULL, ND_ALIGN_LEFT, 0, 0},
    };
    nd_table *table = nd_table_create(columns, 3);
    nd_table_add(table, "7");
    nd_table_add(table, "tp=16 does not divide 8 heads");
    nd_table_add(table, "tp=8");
    expect(table, &(nd_report_style){30, false}, 0,
           "n  message             nearest\n"
           "7  tp=16 does not      tp=8\n"
           "   divide 8 heads\n");
}

static void test_every_line_fits_the_width(void)
{
    static const nd_column columns[] = {
        {"alpha", NULL, ND_ALIGN_RIGHT, 0, 0},  {"beta", NULL, ND_ALIGN_LEFT, 3, 0},
        {"gamma", NULL, ND_ALIGN_LEFT, 0, 16},  {"delta", NULL, ND_ALIGN_RIGHT, 1, 0},
        {"epsilon", NULL, ND_ALIGN_LEFT, 2, 0},
    };
    for (int32_t width = 30; width <= 120; width++) {
        nd_error err;
        capture out;
        nd_table *table = nd_table_create(columns, 5);
        for (int i = 0; i < 5; i++) {
            nd_table_add(table, "some twenty bytes ok");
        }
        capture_begin(&out);
        nd_report_style style = {width, false};
        ND_ASSERT_OK(nd_table_print(table, out.stream, &style, 0, &err));
        for (char *line = strtok((char *)capture_end(&out), "\n"); line != NULL; line = strtok(NULL, "\n")) {
            /* the two columns that may neither wrap nor go need 20 + 1 + 16 */
            CU_ASSERT_TRUE((int32_t)strlen(line) <= (width < 37 ? 37 : width));
        }
        capture_free(&out);
        nd_table_free(table);
    }
}

static void test_colour_appears_only_when_asked_for(void)
{
    nd_error err;
    for (int color = 0; color <= 1; color++) {
        capture out;
        nd_table *table = nd_table_create(name_and_size, 2);
        nd_table_add_tone(table, "bad", ND_TONE_BAD);
        nd_table_add(table, "1");
        capture_begin(&out);
        nd_report_style style = {80, color == 1};
        ND_ASSERT_OK(nd_table_print(table, out.stream, &style, 0, &err));
        CU_ASSERT_EQUAL(strchr(capture_end(&out), '\033') != NULL, color == 1);
        capture_free(&out);
        nd_table_free(table);
    }
}

static void test_paragraphs_wrap_with_a_hanging_indent(void)
{
    capture out;
    capture_begin(&out);
    nd_report_style style = {24, false};
    nd_report_paragraph(out.stream, &style, 0, 4, "Words of a %s end", "sentence, wrapped,");
    CU_ASSERT_STRING_EQUAL(capture_end(&out), "Words of a sentence,\n    wrapped, end\n");
    capture_free(&out);
    capture_begin(&out); /* what is copied stays whole */
    nd_report_paragraph(out.stream, &style, 0, 4, "Layout %s end", "tp=2,cp=2,dp_shard=4,pp=2");
    CU_ASSERT_STRING_EQUAL(capture_end(&out), "Layout\n    tp=2,cp=2,dp_shard=4,pp=2\n    end\n");
    capture_free(&out);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_columns_align_and_lines_have_no_trailing_blanks),
        ND_TEST(test_a_table_without_rows_is_its_header),
        ND_TEST(test_wide_characters_keep_the_columns_straight),
        ND_TEST(test_control_bytes_never_reach_the_terminal),
        ND_TEST(test_the_column_with_the_highest_drop_number_goes_first),
        ND_TEST(test_a_wrapping_column_takes_the_room_that_is_left),
        ND_TEST(test_every_line_fits_the_width),
        ND_TEST(test_colour_appears_only_when_asked_for),
        ND_TEST(test_paragraphs_wrap_with_a_hanging_indent),
        {NULL, NULL},
    };
    return nd_test_main("table", cases);
}
