#include "core/json.h"

#include <math.h>
#include <stdlib.h>

#include "tests/core/json_check.h"

static const char sample[] = "{\n"
                             "  \"name\": \"a \\\"{[\\\\\",\n"
                             "  \"sizes\": [1, -2, 3.5, [], {}, \"x:y\", true, null],\n"
                             "  \"k\\u0065y\\/\": {\"deep\": {\"é\": [[7]]}},\n"
                             "  \"\": 0\n"
                             "}\n";

static void test_members_come_in_file_order_with_decoded_keys(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    nd_json root = nd_json_root(doc);
    nd_json value;
    CU_ASSERT_EQUAL(nd_json_size(root), 4);
    CU_ASSERT_STRING_EQUAL(nd_json_member(root, 0, &value), "name");
    CU_ASSERT_STRING_EQUAL(nd_json_member(root, 1, &value), "sizes");
    CU_ASSERT_STRING_EQUAL(nd_json_member(root, 2, &value), "key/");
    CU_ASSERT_STRING_EQUAL(nd_json_member(root, 3, &value), "");
    CU_ASSERT_EQUAL(nd_json_typeof(value), ND_JSON_INT);
    nd_json_free(doc);
}

static void test_every_value_knows_where_it_is(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    CU_ASSERT_TRUE(json_offsets_hold(nd_json_root(doc), sample, sizeof sample - 1));
    nd_json_free(doc);
}

static void test_types(void)
{
    static const nd_json_type expected[] = {ND_JSON_INT,    ND_JSON_INT,    ND_JSON_REAL, ND_JSON_ARRAY,
                                            ND_JSON_OBJECT, ND_JSON_STRING, ND_JSON_BOOL, ND_JSON_NULL};
    nd_json_doc *doc = json_must_parse(sample);
    nd_json sizes;
    CU_ASSERT_TRUE_FATAL(nd_json_find(nd_json_root(doc), "sizes", &sizes));
    CU_ASSERT_EQUAL_FATAL(nd_json_size(sizes), 8);
    for (size_t i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(nd_json_typeof(nd_json_at(sizes, i)), expected[i]);
    }
    CU_ASSERT_EQUAL(nd_json_size(nd_json_at(sizes, 0)), 0);
    nd_json_free(doc);
}

static void test_errors_name_file_line_column_and_key(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    nd_error err;
    nd_json value;
    int64_t number = 5;
    CU_ASSERT_EQUAL(nd_json_need_int(nd_json_root(doc), "name", 1, 9, &number, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "f.json:2:11: 'name' must be a whole number from 1 to 9, got the string \"a \"{[\\\"");
    CU_ASSERT_TRUE_FATAL(nd_json_find(nd_json_root(doc), "sizes", &value));
    CU_ASSERT_EQUAL(nd_json_as_int(nd_json_at(value, 1), "sizes", 1, 9, &number, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:3:16: 'sizes' must be a whole number from 1 to 9, got -2");
    CU_ASSERT_TRUE_FATAL(nd_json_find(nd_json_root(doc), "key/", &value));
    CU_ASSERT_TRUE_FATAL(nd_json_find(value, "deep", &value));
    CU_ASSERT_TRUE_FATAL(nd_json_find(value, "é", &value));
    CU_ASSERT_EQUAL(nd_json_fail(nd_json_at(nd_json_at(value, 0), 0), &err, "%d is odd", 7), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:4:34: 7 is odd"); /* columns count characters, not bytes */
    CU_ASSERT_EQUAL(number, 5);
    nd_json_free(doc);
}

static void test_whole_reals_are_integers(void)
{
    nd_json_doc *doc = json_must_parse("[4096.0, 1e3, 4096.5, 1e300, 9223372036854775808.0, -9223372036854775808.0]");
    nd_json root = nd_json_root(doc);
    nd_error err;
    int64_t value = 0;
    ND_ASSERT_OK(nd_json_as_int(nd_json_at(root, 0), "x", 0, INT64_MAX, &value, &err));
    CU_ASSERT_EQUAL(value, 4096);
    ND_ASSERT_OK(nd_json_as_int(nd_json_at(root, 1), "x", 0, INT64_MAX, &value, &err));
    CU_ASSERT_EQUAL(value, 1000);
    for (size_t i = 2; i < 5; i++) {
        CU_ASSERT_EQUAL(nd_json_as_int(nd_json_at(root, i), "x", INT64_MIN, INT64_MAX, &value, &err), ND_EPARSE);
    }
    ND_ASSERT_OK(nd_json_as_int(nd_json_at(root, 5), "x", INT64_MIN, INT64_MAX, &value, &err));
    CU_ASSERT_EQUAL(value, INT64_MIN);
    nd_json_free(doc);
}

static void test_scalars_of_the_wrong_type_are_refused(void)
{
    nd_json_doc *doc = json_must_parse("[\"8\", true, null, [], {}, 8]");
    nd_json root = nd_json_root(doc);
    nd_error err;
    int64_t number = 1;
    double real = 1.0;
    bool flag = true;
    const char *text = "kept";
    for (size_t i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(nd_json_as_int(nd_json_at(root, i), "x", 0, 9, &number, &err), ND_EPARSE);
        CU_ASSERT_EQUAL(nd_json_as_double(nd_json_at(root, i), "x", 0.0, 9.0, &real, &err), ND_EPARSE);
        if (i != 0) {
            CU_ASSERT_EQUAL(nd_json_as_string(nd_json_at(root, i), "x", &text, &err), ND_EPARSE);
            ND_ASSERT_CONTAINS(err.message, "'x' must be a string, got ");
        }
        if (i != 1) {
            CU_ASSERT_EQUAL(nd_json_as_bool(nd_json_at(root, i), "x", &flag, &err), ND_EPARSE);
            ND_ASSERT_CONTAINS(err.message, "'x' must be true or false, got ");
        }
    }
    CU_ASSERT_EQUAL(nd_json_as_bool(nd_json_at(root, 5), "x", &flag, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:27: 'x' must be true or false, got 8");
    CU_ASSERT_EQUAL(number, 1);
    CU_ASSERT_EQUAL(real, 1.0);
    CU_ASSERT_TRUE(flag);
    CU_ASSERT_STRING_EQUAL(text, "kept");
    nd_json_free(doc);
}

static void test_doubles_take_integers_and_respect_the_range(void)
{
    nd_json_doc *doc = json_must_parse("[3, 0.5, -0.25]");
    nd_json root = nd_json_root(doc);
    nd_error err;
    double value = 0.0;
    ND_ASSERT_OK(nd_json_as_double(nd_json_at(root, 0), "x", 0.0, 3.0, &value, &err));
    CU_ASSERT_EQUAL(value, 3.0);
    CU_ASSERT_EQUAL(nd_json_as_double(nd_json_at(root, 2), "bw", 0.0, 1.0, &value, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:10: 'bw' must be a number from 0 to 1, got -0.25");
    CU_ASSERT_EQUAL(nd_json_as_double(nd_json_at(root, 0), "x", (double)NAN, (double)NAN, &value, &err), ND_EPARSE);
    nd_json_free(doc);
}

static void test_find_on_what_is_no_object_finds_nothing(void)
{
    nd_json_doc *doc = json_must_parse("[1]");
    nd_json value;
    CU_ASSERT_FALSE(nd_json_find(nd_json_root(doc), "a", &value));
    CU_ASSERT_FALSE(nd_json_find(nd_json_at(nd_json_root(doc), 0), "a", &value));
    nd_json_free(doc);
}

static void test_scalars_can_be_the_root(void)
{
    nd_json_doc *doc = json_must_parse("  12 ");
    CU_ASSERT_EQUAL(nd_json_typeof(nd_json_root(doc)), ND_JSON_INT);
    CU_ASSERT_EQUAL(nd_json_root(doc).offset, 2);
    nd_json_free(doc);
}

static void test_a_long_origin_leaves_room_for_the_position(void)
{
    char origin[3000];
    memset(origin, 'd', sizeof origin);
    memcpy(origin + sizeof origin - 8, "/x.json", 8);
    nd_error err;
    nd_json_doc *doc = NULL;
    CU_ASSERT_EQUAL(nd_json_parse("[1,", 3, origin, &doc, &err), ND_EPARSE);
    CU_ASSERT_TRUE(strncmp(err.message, "...d", 4) == 0);
    ND_ASSERT_CONTAINS(err.message, "/x.json:1:4: the JSON ends too early");
    CU_ASSERT_PTR_NULL(doc);
}

/* 400,000 elements and members: a quadratic loop would take minutes, this takes a fraction of a second. */
static void test_walking_a_large_document_is_linear(void)
{
    enum { COUNT = 400000 };
    char *text = malloc((size_t)COUNT * 24 + 64);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t length = 0;
    length += (size_t)sprintf(text, "[[0");
    for (int i = 1; i < COUNT; i++) {
        length += (size_t)sprintf(text + length, ",%d", i);
    }
    length += (size_t)sprintf(text + length, "],{\"k0\":0");
    for (int i = 1; i < COUNT; i++) {
        length += (size_t)sprintf(text + length, ",\"k%d\":%d", i, i);
    }
    length += (size_t)sprintf(text + length, "}]");
    nd_error err;
    nd_json_doc *doc = NULL;
    ND_ASSERT_OK(nd_json_parse(text, length, "f.json", &doc, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_json array = nd_json_at(nd_json_root(doc), 0);
    nd_json object = nd_json_at(nd_json_root(doc), 1);
    size_t right = 0;
    for (size_t i = 0; i < COUNT; i++) {
        int64_t element = -1;
        int64_t member = -1;
        nd_json value;
        (void)nd_json_member(object, i, &value);
        bool read = nd_json_as_int(nd_json_at(array, i), "x", 0, COUNT, &element, &err) == ND_OK &&
                    nd_json_as_int(value, "x", 0, COUNT, &member, &err) == ND_OK;
        right += read && element == (int64_t)i && member == (int64_t)i ? 1 : 0;
    }
    CU_ASSERT_EQUAL(right, COUNT);
    nd_json_free(doc);
    free(text);
}

static void test_freeing_nothing_is_fine(void)
{
    nd_json_free(NULL);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_members_come_in_file_order_with_decoded_keys),
        ND_TEST(test_every_value_knows_where_it_is),
        ND_TEST(test_types),
        ND_TEST(test_errors_name_file_line_column_and_key),
        ND_TEST(test_whole_reals_are_integers),
        ND_TEST(test_scalars_of_the_wrong_type_are_refused),
        ND_TEST(test_doubles_take_integers_and_respect_the_range),
        ND_TEST(test_find_on_what_is_no_object_finds_nothing),
        ND_TEST(test_scalars_can_be_the_root),
        ND_TEST(test_a_long_origin_leaves_room_for_the_position),
        ND_TEST(test_walking_a_large_document_is_linear),
        ND_TEST(test_freeing_nothing_is_fine),
        {NULL, NULL},
    };
    return nd_test_main("core.json", cases);
}
