#include "reports/csv_report.h"

#include <math.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/capture.h"
#include "tests/reports/fixture.h"

static void expect_text(const char *text, const char *expected)
{
    capture out;
    capture_begin(&out);
    nd_csv_writer csv = {out.stream, false};
    nd_csv_writer_text(&csv, text);
    nd_csv_writer_end_row(&csv);
    CU_ASSERT_STRING_EQUAL(capture_end(&out), expected);
    capture_free(&out);
}

static void test_plain_text_is_not_quoted(void)
{
    expect_text("llama-3.1-8b", "llama-3.1-8b\r\n");
    expect_text("", "\r\n");
}

static void test_commas_quotes_and_line_ends_are_quoted(void)
{
    expect_text("a,b", "\"a,b\"\r\n");
    expect_text("say \"hi\"", "\"say \"\"hi\"\"\"\r\n");
    expect_text("two\nlines", "\"two\nlines\"\r\n");
}

static void test_formulas_are_disarmed(void)
{
    expect_text("=1+1", "\"'=1+1\"\r\n");
    expect_text("@SUM(A1)", "\"'@SUM(A1)\"\r\n");
    expect_text("+1", "\"'+1\"\r\n");
    expect_text("-1", "\"'-1\"\r\n");
}

static void test_numbers_read_back_the_same(void)
{
    static const double values[] = {0.1, 1.0 / 3.0, 1e300, -2.5, 0.0, 4096.0, 5e-324};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        capture out;
        capture_begin(&out);
        nd_csv_writer csv = {out.stream, false};
        nd_csv_writer_double(&csv, values[i]);
        CU_ASSERT_EQUAL(strtod(capture_end(&out), NULL), values[i]);
        capture_free(&out);
    }
}

static void test_numbers_that_are_not_finite_are_empty_fields(void)
{
    capture out;
    capture_begin(&out);
    nd_csv_writer csv = {out.stream, false};
    nd_csv_writer_double(&csv, (double)NAN);
    nd_csv_writer_double(&csv, (double)INFINITY);
    nd_csv_writer_int(&csv, -7);
    nd_csv_writer_end_row(&csv);
    CU_ASSERT_STRING_EQUAL(capture_end(&out), ",,-7\r\n");
    capture_free(&out);
}

static int count_of(const char *text, const char *end, char wanted)
{
    int count = 0;
    for (; text < end; text++) {
        count += *text == wanted;
    }
    return count;
}

static void test_every_plan_row_has_as_many_fields_as_the_header(void)
{
    fixture f;
    fixture_init(&f);
    capture out;
    capture_begin(&out);
    nd_csv_plans(out.stream, f.plans, 2);
    const char *line = capture_end(&out);
    int lines = 0;
    int commas = -1;
    for (const char *end; (end = strstr(line, "\r\n")) != NULL; line = end + 2) {
        int here = count_of(line, end, ',');
        CU_ASSERT_TRUE(commas < 0 || here == commas);
        commas = here;
        lines++;
    }
    CU_ASSERT_EQUAL(lines, 3);
    CU_ASSERT_TRUE(commas > 40);
    ND_ASSERT_CONTAINS(out.text, "rank,pp,dp_replicate,dp_shard,cp,tp,ep,");
    ND_ASSERT_CONTAINS(out.text, "\r\n1,1,1,8,1,2,1,1,true,");
    ND_ASSERT_CONTAINS(out.text, ",4.294967296e+10,"); /* 40 GiB */
    capture_free(&out);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_plain_text_is_not_quoted),
        ND_TEST(test_commas_quotes_and_line_ends_are_quoted),
        ND_TEST(test_formulas_are_disarmed),
        ND_TEST(test_numbers_read_back_the_same),
        ND_TEST(test_numbers_that_are_not_finite_are_empty_fields),
        ND_TEST(test_every_plan_row_has_as_many_fields_as_the_header),
        {NULL, NULL},
    };
    return nd_test_main("csv_report", cases);
}
