#include "topologies/figure_internal.h"

#include <string.h>

#include "tests/nd_test.h"

static nd_json_doc *parsed(const char *text)
{
    nd_json_doc *doc = NULL;
    nd_error err;
    ND_ASSERT_OK(nd_json_parse(text, strlen(text), "f.json", &doc, &err));
    return doc;
}

static void a_figure_is_a_number_or_a_value_with_a_source(void)
{
    nd_json_doc *doc = parsed("{\"a\": 2.5, \"b\": {\"value\": 7, \"source\": \"a table\"}, \"c\": {\"value\": 1}}");
    nd_json root = nd_json_root(doc);
    char source[16] = "before";
    double value = 0.0;
    int64_t count = 0;
    nd_error err;
    ND_ASSERT_OK(nd_figure_double(root, "a", 0.0, 10.0, &value, source, sizeof source, &err));
    ND_ASSERT_REL(value, 2.5, 1e-15);
    CU_ASSERT_STRING_EQUAL(source, "before");
    ND_ASSERT_OK(nd_figure_int(root, "b", 0, 10, &count, source, sizeof source, &err));
    CU_ASSERT_EQUAL(count, 7);
    CU_ASSERT_STRING_EQUAL(source, "a table");
    ND_ASSERT_OK(nd_figure_double(root, "absent", 0.0, 10.0, &value, source, sizeof source, &err));
    ND_ASSERT_REL(value, 2.5, 1e-15);
    ND_ASSERT_OK(nd_figure_double(root, "c", 0.0, 10.0, &value, NULL, 0, &err));
    CU_ASSERT_EQUAL(nd_figure_int(root, "b", 8, 10, &count, NULL, 0, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "f.json:1:27: 'b' must be");
    CU_ASSERT_EQUAL(count, 7);
    nd_json_free(doc);
}

static void a_misspelt_key_of_a_figure_is_refused(void)
{
    nd_json_doc *doc = parsed("{\"a\": {\"value\": 1, \"sorce\": \"x\"}, \"b\": {\"valu\": 1}}");
    double value = 0.0;
    nd_error err;
    CU_ASSERT_EQUAL(nd_figure_double(nd_json_root(doc), "a", 0.0, 9.0, &value, NULL, 0, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "unknown key 'sorce' in 'a'; did you mean 'source'?");
    CU_ASSERT_EQUAL(nd_figure_double(nd_json_root(doc), "b", 0.0, 9.0, &value, NULL, 0, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "did you mean 'value'?");
    nd_json_free(doc);
}

static void keys_far_from_all_known_ones_list_those(void)
{
    static const char *const allowed[] = {"name", "nodes", NULL};
    nd_json_doc *doc = parsed("{\n  \"nodes\": 1,\n  \"completely_else\": 1}");
    nd_error err;
    CU_ASSERT_EQUAL(nd_figure_check_keys(nd_json_root(doc), "the file", allowed, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "f.json:3:22: unknown key 'completely_else' in the file; known are name, nodes");
    nd_json_free(doc);
}

static void long_text_is_cut_between_characters_or_refused(void)
{
    nd_json_doc *doc = parsed("{\"t\": \"abc\xc3\xa9\"}");
    char five[5];
    char six[6];
    nd_error err;
    ND_ASSERT_OK(nd_figure_text(nd_json_root(doc), "t", five, sizeof five, true, &err));
    CU_ASSERT_STRING_EQUAL(five, "abc");
    ND_ASSERT_OK(nd_figure_text(nd_json_root(doc), "t", six, sizeof six, false, &err));
    CU_ASSERT_STRING_EQUAL(six, "abc\xc3\xa9");
    CU_ASSERT_EQUAL(nd_figure_text(nd_json_root(doc), "t", five, sizeof five, false, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "'t' must have at most 4 bytes, got 5; shorten it");
    nd_json_free(doc);
}

static void an_object_is_required_where_one_belongs(void)
{
    nd_json_doc *doc = parsed("{\"o\": {}, \"n\": null}");
    nd_json out;
    bool found = false;
    nd_error err;
    ND_ASSERT_OK(nd_figure_object(nd_json_root(doc), "o", &out, &found, &err));
    CU_ASSERT_TRUE(found);
    ND_ASSERT_OK(nd_figure_object(nd_json_root(doc), "absent", &out, &found, &err));
    CU_ASSERT_FALSE(found);
    CU_ASSERT_EQUAL(nd_figure_object(nd_json_root(doc), "n", &out, &found, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "'n' must be an object, got");
    nd_json_free(doc);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(a_figure_is_a_number_or_a_value_with_a_source), ND_TEST(a_misspelt_key_of_a_figure_is_refused),
        ND_TEST(keys_far_from_all_known_ones_list_those),       ND_TEST(long_text_is_cut_between_characters_or_refused),
        ND_TEST(an_object_is_required_where_one_belongs),       {NULL, NULL},
    };
    return nd_test_main("topologies/figure", cases);
}
