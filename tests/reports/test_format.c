#include "reports/format.h"

#include <math.h>

#include "tests/nd_test.h"

static void test_counts_have_thousands_separators(void)
{
    CU_ASSERT_STRING_EQUAL(nd_format_count(0).text, "0");
    CU_ASSERT_STRING_EQUAL(nd_format_count(999).text, "999");
    CU_ASSERT_STRING_EQUAL(nd_format_count(1000).text, "1,000");
    CU_ASSERT_STRING_EQUAL(nd_format_count(-123456).text, "-123,456");
    CU_ASSERT_STRING_EQUAL(nd_format_count(INT64_MIN).text, "-9,223,372,036,854,775,808");
}

static void test_numbers_keep_three_digits(void)
{
    CU_ASSERT_STRING_EQUAL(nd_format_number(0.0123).text, "0.012");
    CU_ASSERT_STRING_EQUAL(nd_format_number(0.5).text, "0.500");
    CU_ASSERT_STRING_EQUAL(nd_format_number(4.214).text, "4.21");
    CU_ASSERT_STRING_EQUAL(nd_format_number(9.996).text, "10.0");
    CU_ASSERT_STRING_EQUAL(nd_format_number(61.24).text, "61.2");
    CU_ASSERT_STRING_EQUAL(nd_format_number(99.96).text, "100");
    CU_ASSERT_STRING_EQUAL(nd_format_number(999.6).text, "1,000");
    CU_ASSERT_STRING_EQUAL(nd_format_number(12345.6).text, "12,346");
}

static void test_odd_numbers_have_a_text(void)
{
    CU_ASSERT_STRING_EQUAL(nd_format_number(0.0).text, "0");
    CU_ASSERT_STRING_EQUAL(nd_format_number(-2.5).text, "-2.50");
    CU_ASSERT_STRING_EQUAL(nd_format_number((double)NAN).text, "n/a");
    CU_ASSERT_STRING_EQUAL(nd_format_number((double)INFINITY).text, "n/a");
    CU_ASSERT_STRING_EQUAL(nd_format_number(1e300).text, "1e+300");
    CU_ASSERT_STRING_EQUAL(nd_format_percent((double)NAN).text, "n/a");
}

static void test_units_follow_the_size(void)
{
    CU_ASSERT_STRING_EQUAL(nd_format_bytes(512.0).text, "512 B");
    CU_ASSERT_STRING_EQUAL(nd_format_bytes(1342177280.0).text, "1.25 GiB"); /* 1.25 x 2^30 */
    CU_ASSERT_STRING_EQUAL(nd_format_gib(1073741824.0 * 80).text, "80.0");
    CU_ASSERT_STRING_EQUAL(nd_format_seconds(0.0123).text, "12.3 ms");
    CU_ASSERT_STRING_EQUAL(nd_format_seconds(4.21).text, "4.21 s");
    CU_ASSERT_STRING_EQUAL(nd_format_seconds(7200.0).text, "2.00 h");
    CU_ASSERT_STRING_EQUAL(nd_format_tokens(15e12).text, "15.0 T");
    CU_ASSERT_STRING_EQUAL(nd_format_tokens(300.0).text, "300");
    CU_ASSERT_STRING_EQUAL(nd_format_usd(812345.0).text, "812,345");
    CU_ASSERT_STRING_EQUAL(nd_format_usd(3.12e6).text, "3.12 M");
    CU_ASSERT_STRING_EQUAL(nd_format_energy(3.6e6).text, "1.00 kWh");
    CU_ASSERT_STRING_EQUAL(nd_format_energy(5.31 * 3.6e12).text, "5.31 GWh");
    CU_ASSERT_STRING_EQUAL(nd_format_params(8030261248).text, "8.03 B");
    CU_ASSERT_STRING_EQUAL(nd_format_percent(0.412).text, "41.2");
    CU_ASSERT_STRING_EQUAL(nd_format_tflops(989.4e12).text, "989");
    CU_ASSERT_STRING_EQUAL(nd_format_gb_per_s(450e9).text, "450");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_counts_have_thousands_separators),
        ND_TEST(test_numbers_keep_three_digits),
        ND_TEST(test_odd_numbers_have_a_text),
        ND_TEST(test_units_follow_the_size),
        {NULL, NULL},
    };
    return nd_test_main("format", cases);
}
