#include <stdio.h>
#include <stdlib.h>

#include "tests/core/json_check.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
    const char *text;
    size_t length;
    const char *message;
} corpus[] = {
    {TEXT(""), "f.json:1:1: the JSON text is empty"},
    {TEXT(" \n\t"), "f.json:1:1: the JSON text is empty"},
    {TEXT("{"), "f.json:1:2: the JSON ends too early"},
    {TEXT("["), "f.json:1:2: the JSON ends too early"},
    {TEXT("]"), "f.json:1:1: not valid JSON"},
    {TEXT("}"), "f.json:1:1: not valid JSON"},
    {TEXT("[1"), "f.json:1:3: the JSON ends too early"},
    {TEXT("[1}"), "f.json:1:3: not valid JSON"},
    {TEXT("{\"a\":1]"), "f.json:1:7: not valid JSON"},
    {TEXT("[1,]"), "f.json:1:4: not valid JSON"},
    {TEXT("[,1]"), "f.json:1:2: not valid JSON"},
    {TEXT("{\"a\":1,}"), "f.json:1:8: not valid JSON"},
    {TEXT("{\"a\" 1}"), "f.json:1:6: not valid JSON"},
    {TEXT("{\"a\":}"), "f.json:1:6: not valid JSON"},
    {TEXT("{a:1}"), "f.json:1:2: not valid JSON"},
    {TEXT("{1:1}"), "f.json:1:2: not valid JSON"},
    {TEXT("{'a':1}"), "f.json:1:2: not valid JSON"},
    {TEXT("[1] [2]"), "f.json:1:5: there is text after the end"},
    {TEXT("{} x"), "f.json:1:4: there is text after the end"},
    {TEXT("// c\n{}"), "f.json:1:1: not valid JSON"},
    {TEXT("{} // c"), "f.json:1:4: there is text after the end"},
    {TEXT("[NaN]"), "f.json:1:2: not valid JSON: invalid token near 'NaN'; JSON has only finite numbers"},
    {TEXT("[-NaN]"), "f.json:1:2: not valid JSON"},
    {TEXT("[Infinity]"), "JSON has only finite numbers"},
    {TEXT("[-Infinity]"), "JSON has only finite numbers"},
    {TEXT("[1e999]"), "f.json:1:2: a number is out of range"},
    {TEXT("[-1e999]"), "f.json:1:2: a number is out of range"},
    {TEXT("[9223372036854775808]"), "f.json:1:2: a number is out of range"},
    {TEXT("[-9223372036854775809]"), "f.json:1:2: a number is out of range"},
    {TEXT("[01]"), "f.json:1:2: not valid JSON"},
    {TEXT("[+1]"), "f.json:1:2: not valid JSON"},
    {TEXT("[.5]"), "f.json:1:2: not valid JSON"},
    {TEXT("[5.]"), "f.json:1:2: not valid JSON"},
    {TEXT("[1e]"), "f.json:1:2: not valid JSON"},
    {TEXT("[-]"), "f.json:1:2: not valid JSON"},
    {TEXT("[0x10]"), "f.json:1:3: not valid JSON"},
    {TEXT("[1_000]"), "f.json:1:3: not valid JSON"},
    {TEXT("[True]"), "f.json:1:2: not valid JSON"},
    {TEXT("[None]"), "f.json:1:2: not valid JSON"},
    {TEXT("[tru]"), "f.json:1:2: not valid JSON"},
    {TEXT("\"abc"), "the JSON ends too early"},
    {TEXT("[\"a\nb\"]"), "not valid JSON"},
    {TEXT("[\"a\tb\"]"), "not valid JSON"},
    {TEXT("[\"\\x\"]"), "not valid JSON"},
    {TEXT("[\"\\u12\"]"), "not valid JSON"},
    {TEXT("[\"\\ud800\"]"), "not valid JSON"},
    {TEXT("[\"\\udc00\"]"), "not valid JSON"},
    {TEXT("[\"\\u0000\"]"), "the NUL character"},
    {TEXT("{\"\\u0000\":1}"), "the NUL character"},
    {TEXT("[1\0]"), "f.json:1:3: the text contains a NUL byte"},
    {TEXT("[\"a\0b\"]"), "f.json:1:4: the text contains a NUL byte"},
    {TEXT("\0"), "f.json:1:1: the text contains a NUL byte"},
    {TEXT("[]\0"), "f.json:1:3: the text contains a NUL byte"},
    {TEXT("{\"a\":1,\"a\":2}"), "f.json:1:8: duplicate object key near '\"a\"'; keep one"},
    {TEXT("{\"a\":1,\n\"\\u0061\":2}"), "f.json:2:1: duplicate object key"},
    {TEXT("[{\"x\":{\"k\":1,\"k\":1}}]"), "duplicate object key"},
    {TEXT("[\"\xff\"]"), "not UTF-8 text"},
    {TEXT("[\"\xc0\xaf\"]"), "not UTF-8 text"},
    {TEXT("[\"\xed\xa0\x80\"]"), "not UTF-8 text"},
    {TEXT("[\"\xf4\x90\x80\x80\"]"), "not UTF-8 text"},
    {TEXT("[\"\xe2\x82"), "not UTF-8 text"},
    {TEXT("\xef\xbb\xbf{}"), "f.json:1:1: the text starts with a byte order mark"},
    {TEXT("\xff\xfe{\0}\0"), "f.json:1:4: the text contains a NUL byte"},
    {TEXT("\x1f\x8b\x08\0\0"), "f.json:1:3: the text contains a NUL byte"},
    {TEXT("PK\x03\x04"), "f.json:1:1: not valid JSON"},
};

/* Exact-size heap copies, so that a sanitizer sees a single byte read too far. */
static void check(const char *text, size_t length, const char *message)
{
    char *copy = malloc(length > 0 ? length : 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, text, length);
    nd_error err = {0};
    nd_json_doc *doc = NULL;
    CU_ASSERT_EQUAL(nd_json_parse(copy, length, "f.json", &doc, &err), ND_EPARSE);
    if (strstr(err.message, message) == NULL) {
        fprintf(stderr, "of the text: %.*s\n", (int)length, text);
    }
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_TRUE(strncmp(err.message, "f.json:", 7) == 0);
    CU_ASSERT_PTR_NULL(doc);
    nd_json_free(doc);
    free(copy);
}

static void test_malformed_texts_are_refused_where_they_break(void)
{
    for (size_t i = 0; i < sizeof corpus / sizeof corpus[0]; i++) {
        check(corpus[i].text, corpus[i].length, corpus[i].message);
    }
}

static void test_every_prefix_of_a_document_is_refused(void)
{
    static const char text[] = "{\"a\": [1, -2.5e3, \"\\u00e9\\n\", {\"b\": null}], \"c\": true}";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        check(text, length, "f.json:1:");
    }
}

static void test_deep_nesting_is_refused_before_it_is_parsed(void)
{
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, '[', DEPTH);
    check(text, DEPTH, "f.json:1:65: arrays and objects nest deeper than the 64 levels allowed");
    for (size_t i = 0; i + 5 <= DEPTH; i += 5) {
        memcpy(text + i, "{\"a\":", 5);
    }
    check(text, DEPTH, "f.json:1:321: arrays and objects nest deeper than the 64 levels allowed");
    free(text);
}

static void test_a_text_over_the_size_limit_is_refused(void)
{
    size_t length = 16 * 1024 * 1024 + 1;
    char *text = malloc(length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, ' ', length);
    nd_error err;
    nd_json_doc *doc = NULL;
    CU_ASSERT_EQUAL(nd_json_parse(text, length, "f.json", &doc, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "16777217 bytes, more than the 16777216 allowed");
    free(text);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_malformed_texts_are_refused_where_they_break),
        ND_TEST(test_every_prefix_of_a_document_is_refused),
        ND_TEST(test_deep_nesting_is_refused_before_it_is_parsed),
        ND_TEST(test_a_text_over_the_size_limit_is_refused),
        {NULL, NULL},
    };
    return nd_test_main("core.json_malformed", cases);
}
