#include <stdlib.h>
#include <string.h>

#include "core/json_internal.h"
#include "tests/nd_test.h"

static void test_the_index_lists_children_per_container(void)
{
    static const char text[] = " {\"a\": [1, \"]\"], \"b\\\"\": {}}";
    nd_error err;
    nd_json_index index = {0};
    ND_ASSERT_OK(nd_json_index_build(text, sizeof text - 1, &index, &err));
    CU_ASSERT_EQUAL_FATAL(index.container_count, 3);
    const nd_json_container *root = nd_json_index_find(&index, nd_json_root_offset(text, sizeof text - 1));
    CU_ASSERT_EQUAL_FATAL(root->count, 2);
    uint32_t array = index.values[root->first];
    uint32_t object = index.values[root->first + 1];
    CU_ASSERT_EQUAL(text[array], '[');
    CU_ASSERT_EQUAL(text[object], '{');
    const nd_json_container *elements = nd_json_index_find(&index, array);
    CU_ASSERT_EQUAL_FATAL(elements->count, 2);
    CU_ASSERT_EQUAL(text[index.values[elements->first]], '1');
    CU_ASSERT_EQUAL(text[index.values[elements->first + 1]], '"');
    CU_ASSERT_EQUAL(nd_json_index_find(&index, object)->count, 0);
    nd_json_index_free(&index);
}

static void test_a_scalar_text_has_no_containers(void)
{
    nd_error err;
    nd_json_index index = {0};
    ND_ASSERT_OK(nd_json_index_build("12", 2, &index, &err));
    CU_ASSERT_EQUAL(index.container_count, 0);
    nd_json_index_free(&index);
}

static void test_lines_and_columns_count_characters(void)
{
    static const char text[] = "ab\n\xc3\xa9x\r\n\nz";
    static const struct {
        size_t offset;
        size_t line;
        size_t column;
    } expected[] = {{0, 1, 1}, {1, 1, 2}, {3, 2, 1}, {5, 2, 2}, {8, 3, 1}, {9, 4, 1}, {10, 4, 2}, {99, 4, 2}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        size_t line = 0;
        size_t column = 0;
        nd_json_line_column(text, sizeof text - 1, expected[i].offset, &line, &column);
        CU_ASSERT_EQUAL(line, expected[i].line);
        CU_ASSERT_EQUAL(column, expected[i].column);
    }
}

static void nested(char *text, int depth)
{
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    text[2 * depth] = '\0';
}

static void test_depth_is_limited_at_the_first_bracket_too_many(void)
{
    char text[4 * ND_JSON_DEPTH_MAX];
    size_t offset = 0;
    nested(text, ND_JSON_DEPTH_MAX);
    CU_ASSERT_FALSE(nd_json_too_deep(text, strlen(text), &offset));
    nested(text, ND_JSON_DEPTH_MAX + 1);
    CU_ASSERT_TRUE(nd_json_too_deep(text, strlen(text), &offset));
    CU_ASSERT_EQUAL(offset, ND_JSON_DEPTH_MAX);
}

static void test_brackets_in_strings_are_not_depth(void)
{
    char text[4 * ND_JSON_DEPTH_MAX + 8];
    size_t offset = 0;
    nested(text + 1, ND_JSON_DEPTH_MAX + 1);
    text[0] = '"';
    CU_ASSERT_FALSE(nd_json_too_deep(text, strlen(text), &offset));
}

static void test_brackets_side_by_side_are_not_depth(void)
{
    enum { PAIRS = 1000 };
    char text[3 * PAIRS + 1];
    for (int i = 0; i < PAIRS; i++) {
        memcpy(text + 3 * i, "[],", 4);
    }
    size_t offset = 0;
    CU_ASSERT_FALSE(nd_json_too_deep(text, strlen(text), &offset));
}

/* Exact-size heap copies, so that a sanitizer sees a single byte read too far. */
static void test_the_scanner_stays_inside_any_text(void)
{
    static const char *const texts[] = {"",    "\"",  "\"\\", "\\",   "[\"", "{\"a\"", "{\"a\":", "\"a\\\"",
                                        "]]]", "}{]", ":::",  "tru[", "1\"", ",",      "\"a\" ",  "\"\\u"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t length = strlen(texts[i]);
        char *copy = malloc(length > 0 ? length : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, texts[i], length);
        size_t offset = 0;
        CU_ASSERT_FALSE(nd_json_too_deep(copy, length, &offset));
        CU_ASSERT_TRUE(nd_json_root_offset(copy, length) <= length);
        free(copy);
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_the_index_lists_children_per_container),
        ND_TEST(test_a_scalar_text_has_no_containers),
        ND_TEST(test_lines_and_columns_count_characters),
        ND_TEST(test_depth_is_limited_at_the_first_bracket_too_many),
        ND_TEST(test_brackets_in_strings_are_not_depth),
        ND_TEST(test_brackets_side_by_side_are_not_depth),
        ND_TEST(test_the_scanner_stays_inside_any_text),
        {NULL, NULL},
    };
    return nd_test_main("core.json_locate", cases);
}
