#include "tests/core/json_check.h"

static const char sample[] =
    "{\"hidden_size\": 4096, \"rope_theta\": 0.5, \"tie\": true, \"act\": \"silu\", \"none\": null}";

static void test_present_members_are_read(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    nd_json root = nd_json_root(doc);
    nd_error err;
    int64_t number = 0;
    double real = 0.0;
    bool flag = false;
    const char *text = NULL;
    ND_ASSERT_OK(nd_json_need_int(root, "hidden_size", 1, 1 << 20, &number, &err));
    ND_ASSERT_OK(nd_json_need_double(root, "rope_theta", 0.0, 1.0, &real, &err));
    ND_ASSERT_OK(nd_json_need_string(root, "act", &text, &err));
    CU_ASSERT_EQUAL(number, 4096);
    CU_ASSERT_EQUAL(real, 0.5);
    CU_ASSERT_STRING_EQUAL(text, "silu");
    number = 0;
    real = 0.0;
    text = NULL;
    ND_ASSERT_OK(nd_json_opt_int(root, "hidden_size", 1, 1 << 20, &number, &err));
    ND_ASSERT_OK(nd_json_opt_double(root, "rope_theta", 0.0, 1.0, &real, &err));
    ND_ASSERT_OK(nd_json_opt_bool(root, "tie", &flag, &err));
    ND_ASSERT_OK(nd_json_opt_string(root, "act", &text, &err));
    CU_ASSERT_EQUAL(number, 4096);
    CU_ASSERT_EQUAL(real, 0.5);
    CU_ASSERT_TRUE(flag);
    CU_ASSERT_STRING_EQUAL(text, "silu");
    nd_json_free(doc);
}

static void test_absent_optional_members_keep_the_default(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    nd_json root = nd_json_root(doc);
    nd_error err;
    int64_t number = 3;
    double real = 3.0;
    bool flag = true;
    const char *text = "kept";
    ND_ASSERT_OK(nd_json_opt_int(root, "absent", 1, 2, &number, &err));
    ND_ASSERT_OK(nd_json_opt_double(root, "absent", 1.0, 2.0, &real, &err));
    ND_ASSERT_OK(nd_json_opt_bool(root, "absent", &flag, &err));
    ND_ASSERT_OK(nd_json_opt_string(root, "absent", &text, &err));
    CU_ASSERT_EQUAL(number, 3);
    CU_ASSERT_EQUAL(real, 3.0);
    CU_ASSERT_TRUE(flag);
    CU_ASSERT_STRING_EQUAL(text, "kept");
    nd_json_free(doc);
}

static void test_null_is_no_value_for_an_optional_member(void)
{
    nd_json_doc *doc = json_must_parse(sample);
    nd_error err;
    int64_t number = 3;
    CU_ASSERT_EQUAL(nd_json_opt_int(nd_json_root(doc), "none", 1, 2, &number, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "'none' must be a whole number from 1 to 2, got null");
    CU_ASSERT_EQUAL(number, 3);
    nd_json_free(doc);
}

static void test_missing_keys_name_the_key_and_a_misspelling(void)
{
    nd_json_doc *doc = json_must_parse(" {\"hiden_size\": 1, \"x\": 2}");
    nd_json root = nd_json_root(doc);
    nd_error err;
    nd_json value = {0};
    CU_ASSERT_EQUAL(nd_json_need(root, "hidden_size", &value, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:2: missing key 'hidden_size'; is 'hiden_size' meant to be it?");
    CU_ASSERT_EQUAL(nd_json_need(root, "vocab_size", &value, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:2: missing key 'vocab_size'");
    CU_ASSERT_EQUAL(nd_json_need(root, "y", &value, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:2: missing key 'y'");
    CU_ASSERT_PTR_NULL(value.doc);
    nd_json_free(doc);
}

static void test_needing_a_key_of_no_object_says_what_it_is(void)
{
    nd_json_doc *doc = json_must_parse("[1]");
    nd_error err;
    nd_json value;
    CU_ASSERT_EQUAL(nd_json_need(nd_json_root(doc), "name", &value, &err), ND_EPARSE);
    CU_ASSERT_STRING_EQUAL(err.message, "f.json:1:1: expected an object with the key 'name', got an array");
    nd_json_free(doc);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_present_members_are_read),
        ND_TEST(test_absent_optional_members_keep_the_default),
        ND_TEST(test_null_is_no_value_for_an_optional_member),
        ND_TEST(test_missing_keys_name_the_key_and_a_misspelling),
        ND_TEST(test_needing_a_key_of_no_object_says_what_it_is),
        {NULL, NULL},
    };
    return nd_test_main("core.json_need", cases);
}
