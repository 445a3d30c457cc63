#include "core/text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"

static void test_whole_numbers_are_read_to_the_ends_of_their_range(void)
{
    nd_error err;
    int64_t value = 0;
    ND_ASSERT_OK(nd_text_int("9223372036854775807", "x", INT64_MIN, INT64_MAX, &value, &err));
    CU_ASSERT_EQUAL(value, INT64_MAX);
    ND_ASSERT_OK(nd_text_int("-9223372036854775808", "x", INT64_MIN, INT64_MAX, &value, &err));
    CU_ASSERT_EQUAL(value, INT64_MIN);
    ND_ASSERT_OK(nd_text_int("0", "x", 0, 0, &value, &err));
    CU_ASSERT_EQUAL(value, 0);
    ND_ASSERT_OK(nd_text_int("008", "x", 1, 9, &value, &err));
    CU_ASSERT_EQUAL(value, 8);
}

static void test_what_is_no_whole_number_is_refused(void)
{
    static const char *const bad[] = {"",    "-",   "+1",  " 1",  "1 ", "1.0", "1e3", "0x10",
                                      "1_0", "1,0", "--1", "- 1", "a",  "8k",  "\n1", "1\n",
                                      "∞",   "٣",   "NaN", "-+1", "1-", "",    "0b1", "1'000"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nd_error err;
        int64_t value = 77;
        CU_ASSERT_EQUAL(nd_text_int(bad[i], "--seq-len", -5, 10, &value, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, "--seq-len must be a whole number from -5 to 10");
        CU_ASSERT_EQUAL(value, 77);
    }
}

static void test_a_suffix_is_refused_with_what_to_write(void)
{
    static const struct {
        const char *text, *hint; /* at the end of the message */
    } cases[] = {{"8k", "got '8k'; write 8192 or 8000"},
                 {"8K", "; write 8192 or 8000"},
                 {"8Ki", "; write 8192"},
                 {"1.5M", "; write 1572864 or 1500000"},
                 {"1.3k", "; write 1300"},
                 {"2g", "; write 2147483648 or 2000000000"},
                 {"1.3Ki", "got '1.3Ki'"},
                 {"8kb", "got '8kb'"},
                 {"0k", "got '0k'"},
                 {"k", "got 'k'"},
                 {"0x8k", "got '0x8k'"},
                 {"999999999999999999g", "g'"},
                 {"-8k", "got '-8k'"},
                 {"8kk", "got '8kk'"},
                 {"8.0.0k", "got '8.0.0k'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nd_error err;
        int64_t value = 77;
        CU_ASSERT_EQUAL(nd_text_int(cases[i].text, "--seq-len", 1, 1 << 30, &value, &err), ND_EINVAL);
        size_t length = strlen(err.message);
        size_t hint = strlen(cases[i].hint);
        CU_ASSERT_TRUE(length >= hint && strcmp(err.message + length - hint, cases[i].hint) == 0);
    }
}

static void test_numbers_out_of_range_name_the_range_and_the_value(void)
{
    static const char *const bad[] = {"0", "-1", "11", "99999999999999999999999", "-99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nd_error err;
        int64_t value = 77;
        CU_ASSERT_EQUAL(nd_text_int(bad[i], "--top", 1, 10, &value, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, "--top must be from 1 to 10, got ");
        ND_ASSERT_CONTAINS(err.message, bad[i]);
        CU_ASSERT_EQUAL(value, 77);
    }
    int64_t value = 77; /* saturation must not wrap into the range */
    CU_ASSERT_EQUAL(nd_text_int("18446744073709551617", "x", 0, 5, &value, NULL), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_text_int("9223372036854775808", "x", 0, INT64_MAX - 1, &value, NULL), ND_EINVAL);
}

static void test_decimal_numbers(void)
{
    nd_error err;
    double value = 0.0;
    ND_ASSERT_OK(nd_text_double("0.25", "x", 0.0, 1.0, &value, &err));
    CU_ASSERT_EQUAL(value, 0.25);
    ND_ASSERT_OK(nd_text_double("-1.5e2", "x", -1000.0, 0.0, &value, &err));
    CU_ASSERT_EQUAL(value, -150.0);
    static const char *const bad[] = {"",   "nan", "inf", "-inf", "0x1p3", "1e400", " 1",
                                      "1 ", "1,5", "+1",  "e5",   "1e",    "2",     "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(nd_text_double(bad[i], "--price", 0.0, 1.0, &value, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, "--price must be");
        CU_ASSERT_EQUAL(value, -150.0);
    }
}

static void test_canonical_names_drop_owner_case_and_separators(void)
{
    char out[64];
    nd_text_canonical("meta-llama/Llama-3.1-8B", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "llama318b");
    nd_text_canonical("a/b/", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "b");
    nd_text_canonical("H100 SXM_80", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "h100sxm80");
    nd_text_canonical("", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "");
    nd_text_canonical("///", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "");
}

static void test_canonical_names_are_cut_to_the_buffer(void)
{
    char out[5] = "????";
    nd_text_canonical("abcdefgh", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "abcd");
    nd_text_canonical("abcdefgh", out, 1);
    CU_ASSERT_STRING_EQUAL(out, "");
    nd_text_canonical("abcdefgh", NULL, 0);
}

/* The definition, slow and plain, to compare with. */
static int full_distance(const char *a, const char *b)
{
    int table[16][16];
    int length_a = (int)strlen(a);
    int length_b = (int)strlen(b);
    for (int i = 0; i <= length_a; i++) {
        for (int j = 0; j <= length_b; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            int best = table[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            best = table[i - 1][j] + 1 < best ? table[i - 1][j] + 1 : best;
            best = table[i][j - 1] + 1 < best ? table[i][j - 1] + 1 : best;
            table[i][j] = best;
        }
    }
    return table[length_a][length_b];
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void test_distance_equals_its_definition_up_to_the_limit(void)
{
    unsigned state = 7;
    for (int round = 0; round < 20000; round++) {
        char words[2][12] = {"", ""};
        for (int w = 0; w < 2; w++) {
            unsigned length = next_random(&state) % 11;
            for (unsigned i = 0; i < length; i++) {
                words[w][i] = (char)('a' + next_random(&state) % 3);
            }
        }
        int limit = (int)(next_random(&state) % 12);
        int expected = full_distance(words[0], words[1]);
        expected = expected > limit ? limit + 1 : expected;
        CU_ASSERT_EQUAL_FATAL(nd_text_distance(words[0], words[1], limit), expected);
    }
}

static void test_distance_of_long_texts_is_quick(void)
{
    enum { BYTES = 1 << 20 };
    char *a = malloc(BYTES + 1);
    char *b = malloc(BYTES + 1);
    CU_ASSERT_FATAL(a != NULL && b != NULL);
    memset(a, 'x', BYTES);
    memset(b, 'x', BYTES);
    a[BYTES] = b[BYTES] = '\0';
    b[BYTES / 2] = 'y';
    CU_ASSERT_EQUAL(nd_text_distance(a, b, ND_TEXT_DISTANCE_MAX), 1);
    free(a);
    free(b);
}

static void test_nearest_name(void)
{
    static const char *const names[] = {"llama-3.1-8b", "llama-3.1-70b", "Mixtral-8x7B", "tp", "dp_shard"};
    const size_t count = sizeof names / sizeof names[0];
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("meta-llama/Lama-3.1-8B", names, count), names[0]);
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("llama3.1-70", names, count), names[1]);
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("mixtral8x7", names, count), names[2]);
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("mix", names, count), names[2]);
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("tpp", names, count), names[3]);
    CU_ASSERT_PTR_EQUAL(nd_text_nearest("DP-shard", names, count), names[4]);
    CU_ASSERT_PTR_NULL(nd_text_nearest("qwen", names, count));
    CU_ASSERT_PTR_NULL(nd_text_nearest("x", names, count));
    CU_ASSERT_PTR_NULL(nd_text_nearest("", names, count));
    CU_ASSERT_PTR_NULL(nd_text_nearest("tp", names, 0));
}

static void test_nearest_takes_names_of_any_length(void)
{
    enum { BYTES = 100000 };
    static const char *const names[] = {"tp"};
    char *text = malloc(BYTES + 1);
    CU_ASSERT_FATAL(text != NULL);
    memset(text, 'a', BYTES);
    text[BYTES] = '\0';
    CU_ASSERT_PTR_NULL(nd_text_nearest(text, names, 1));
    free(text);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_whole_numbers_are_read_to_the_ends_of_their_range),
        ND_TEST(test_what_is_no_whole_number_is_refused),
        ND_TEST(test_a_suffix_is_refused_with_what_to_write),
        ND_TEST(test_numbers_out_of_range_name_the_range_and_the_value),
        ND_TEST(test_decimal_numbers),
        ND_TEST(test_canonical_names_drop_owner_case_and_separators),
        ND_TEST(test_canonical_names_are_cut_to_the_buffer),
        ND_TEST(test_distance_equals_its_definition_up_to_the_limit),
        ND_TEST(test_distance_of_long_texts_is_quick),
        ND_TEST(test_nearest_name),
        ND_TEST(test_nearest_takes_names_of_any_length),
        {NULL, NULL},
    };
    return nd_test_main("core.text", cases);
}
