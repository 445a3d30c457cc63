#include "core/json_writer.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/core/json_check.h"

typedef struct capture {
    char *text;
    size_t length;
    nd_json_writer writer;
} capture;

static void start(capture *out)
{
    *out = (capture){0};
    FILE *stream = open_memstream(&out->text, &out->length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    out->writer = nd_json_writer_start(stream);
}

static void finish(capture *out)
{
    nd_json_writer_finish(&out->writer);
    CU_ASSERT_EQUAL_FATAL(fclose(out->writer.stream), 0);
}

static void test_structure_commas_and_indentation(void)
{
    capture out;
    start(&out);
    nd_json_writer *writer = &out.writer;
    nd_json_begin_object(writer);
    nd_json_put_string(writer, "name", "x");
    nd_json_put_int(writer, "count", -3);
    nd_json_key(writer, "list");
    nd_json_begin_array(writer);
    nd_json_int(writer, 1);
    nd_json_begin_object(writer);
    nd_json_end_object(writer);
    nd_json_null(writer);
    nd_json_end_array(writer);
    nd_json_key(writer, "empty");
    nd_json_begin_array(writer);
    nd_json_end_array(writer);
    nd_json_put_double(writer, "half", 0.5);
    nd_json_put_bool(writer, "yes", true);
    nd_json_end_object(writer);
    finish(&out);
    CU_ASSERT_STRING_EQUAL(out.text,
                           "{\n  \"name\": \"x\",\n  \"count\": -3,\n  \"list\": [\n    1,\n    {},\n    null\n"
                           "  ],\n  \"empty\": [],\n  \"half\": 0.5,\n  \"yes\": true\n}\n");
    free(out.text);
}

static void check_string(const char *text, const char *expected)
{
    capture out;
    start(&out);
    nd_json_string(&out.writer, text);
    finish(&out);
    CU_ASSERT_STRING_EQUAL(out.text, expected);
    free(out.text);
}

static void test_strings_are_escaped(void)
{
    check_string("", "\"\"\n");
    check_string("a\"b\\c/", "\"a\\\"b\\\\c/\"\n");
    check_string("\n\r\t\x01\x1b\x7f", "\"\\n\\r\\t\\u0001\\u001b\\u007f\"\n");
    check_string("é€𝄞", "\"é€𝄞\"\n");
}

static void test_invalid_utf8_becomes_the_replacement_character(void)
{
    check_string("a\xff"
                 "b",
                 "\"a\xEF\xBF\xBD"
                 "b\"\n");
    check_string("\xc3", "\"\xEF\xBF\xBD\"\n");
    check_string("\xc0\xaf", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
    check_string("\xed\xa0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
    check_string("\xf4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
    check_string("\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"\n");
}

static void check_double(double value, const char *expected)
{
    capture out;
    start(&out);
    nd_json_double(&out.writer, value);
    finish(&out);
    CU_ASSERT_STRING_EQUAL(out.text, expected);
    free(out.text);
}

static void test_doubles_are_short_and_finite(void)
{
    check_double(0.0, "0\n");
    check_double(0.1, "0.1\n");
    check_double(3.0, "3\n");
    check_double(0.412, "0.412\n");
    check_double(1e300, "1e+300\n");
    check_double(1234567.0, "1234567\n");
    check_double((double)NAN, "null\n");
    check_double((double)INFINITY, "null\n");
    check_double(-(double)INFINITY, "null\n");
}

static void test_doubles_come_back_exactly(void)
{
    static const double values[] = {1.0 / 3.0, DBL_MAX, DBL_MIN, -2.0 / 7.0, 1e-5, 123456789.123456789, 4.9e-324};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        capture out;
        start(&out);
        nd_json_double(&out.writer, values[i]);
        finish(&out);
        CU_ASSERT_EQUAL(strtod(out.text, NULL), values[i]);
        free(out.text);
    }
}

static void test_integers_to_their_ends(void)
{
    capture out;
    start(&out);
    nd_json_begin_array(&out.writer);
    nd_json_int(&out.writer, INT64_MAX);
    nd_json_int(&out.writer, INT64_MIN);
    nd_json_bool(&out.writer, false);
    nd_json_end_array(&out.writer);
    finish(&out);
    CU_ASSERT_STRING_EQUAL(out.text, "[\n  9223372036854775807,\n  -9223372036854775808,\n  false\n]\n");
    free(out.text);
}

/* Any bytes as key and value, and the deepest nesting: the reader takes it all. */
static void test_what_the_writer_writes_the_reader_reads(void)
{
    capture out;
    start(&out);
    for (int i = 0; i < ND_JSON_WRITER_DEPTH_MAX; i++) {
        nd_json_begin_object(&out.writer);
        nd_json_key(&out.writer, "k\"\xfe\n");
    }
    char bytes[256];
    for (int i = 1; i < 256; i++) {
        bytes[i - 1] = (char)i;
    }
    bytes[255] = '\0';
    nd_json_string(&out.writer, bytes);
    for (int i = 0; i < ND_JSON_WRITER_DEPTH_MAX; i++) {
        nd_json_end_object(&out.writer);
    }
    finish(&out);
    nd_json_doc *doc = json_must_parse(out.text);
    nd_json value = nd_json_root(doc);
    int depth = 0;
    while (nd_json_find(value, "k\"\xEF\xBF\xBD\n", &value)) {
        depth++;
    }
    CU_ASSERT_EQUAL(depth, ND_JSON_WRITER_DEPTH_MAX);
    nd_json_free(doc);
    free(out.text);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_structure_commas_and_indentation),
        ND_TEST(test_strings_are_escaped),
        ND_TEST(test_invalid_utf8_becomes_the_replacement_character),
        ND_TEST(test_doubles_are_short_and_finite),
        ND_TEST(test_doubles_come_back_exactly),
        ND_TEST(test_integers_to_their_ends),
        ND_TEST(test_what_the_writer_writes_the_reader_reads),
        {NULL, NULL},
    };
    return nd_test_main("core.json_writer", cases);
}
