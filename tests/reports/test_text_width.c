#include "reports/text_width.h"

#include "tests/nd_test.h"

static void test_ascii_counts_bytes(void)
{
    CU_ASSERT_EQUAL(nd_text_width(""), 0);
    CU_ASSERT_EQUAL(nd_text_width("llama-3.1"), 9);
}

static void test_accents_count_once_and_wide_characters_twice(void)
{
    CU_ASSERT_EQUAL(nd_text_width("\xc3\xa9"), 1);                 /* e acute, one code point */
    CU_ASSERT_EQUAL(nd_text_width("e\xcc\x81"), 1);                /* e and a combining acute */
    CU_ASSERT_EQUAL(nd_text_width("\xe6\xa8\xa1\xe5\x9e\x8b"), 4); /* two Han characters */
    CU_ASSERT_EQUAL(nd_text_width("\xf0\x9f\x8c\x80"), 2);         /* an emoji */
}

static void test_broken_utf8_counts_bytes_and_ends(void)
{
    CU_ASSERT_EQUAL(nd_text_width("\xff\xfe"), 2);
    CU_ASSERT_EQUAL(nd_text_width("a\xe6"), 2);     /* cut after the first byte */
    CU_ASSERT_EQUAL(nd_text_width("a\xe6\xa8"), 3); /* cut after the second */
}

static void test_a_prefix_never_splits_a_character(void)
{
    CU_ASSERT_EQUAL(nd_text_prefix("\xe6\xa8\xa1\xe5\x9e\x8b", 3), 3);
    CU_ASSERT_EQUAL(nd_text_prefix("abc", 2), 2);
    CU_ASSERT_EQUAL(nd_text_prefix("abc", 9), 3);
}

static void test_lines_break_after_blanks_and_commas(void)
{
    CU_ASSERT_EQUAL(nd_text_line("one two", 7), 7);
    CU_ASSERT_EQUAL(nd_text_line("one two", 5), 3);
    CU_ASSERT_EQUAL(nd_text_line("one two", 3), 3);
    CU_ASSERT_EQUAL(nd_text_line("tp=2,cp=2", 6), 5);
    CU_ASSERT_EQUAL(nd_text_line("of 2,238 GiB", 6), 2);
    CU_ASSERT_EQUAL(nd_text_line("unbreakable", 4), 4);
}

static void test_a_line_takes_at_least_one_character(void)
{
    CU_ASSERT_EQUAL(nd_text_line("\xe6\xa8\xa1", 1), 3); /* two columns wide */
    CU_ASSERT_EQUAL(nd_text_line("", 5), 0);
}

static void test_what_is_copied_stays_in_one_line(void)
{
    CU_ASSERT_EQUAL(nd_text_copyable_line("one two", 5), 3);
    CU_ASSERT_EQUAL(nd_text_copyable_line("one two", 7), 7);
    CU_ASSERT_EQUAL(nd_text_copyable_line("one, two, three", 10), 9);
    CU_ASSERT_EQUAL(nd_text_copyable_line("tp=2,cp=2", 6), 9);                /* wider than the line, and whole */
    CU_ASSERT_EQUAL(nd_text_copyable_line("tp=2,cp=2 end", 6), 9);            /* and no further */
    CU_ASSERT_EQUAL(nd_text_copyable_line("use tp=2,cp=2", 8), 3);            /* on the next line */
    CU_ASSERT_EQUAL(nd_text_copyable_line("give --layout tp=2,cp=2", 14), 4); /* with its option */
    CU_ASSERT_EQUAL(nd_text_copyable_line("--layout tp=2,cp=2 end", 10), 18);
    CU_ASSERT_EQUAL(nd_text_copyable_line("of 2,238 GiB", 6), 2);
    CU_ASSERT_EQUAL(nd_text_copyable_line("unbreakable", 4), 4);
    CU_ASSERT_EQUAL(nd_text_copyable_line("", 4), 0);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_ascii_counts_bytes),
        ND_TEST(test_accents_count_once_and_wide_characters_twice),
        ND_TEST(test_broken_utf8_counts_bytes_and_ends),
        ND_TEST(test_a_prefix_never_splits_a_character),
        ND_TEST(test_lines_break_after_blanks_and_commas),
        ND_TEST(test_what_is_copied_stays_in_one_line),
        ND_TEST(test_a_line_takes_at_least_one_character),
        {NULL, NULL},
    };
    return nd_test_main("text_width", cases);
}
