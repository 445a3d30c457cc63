#include "core/resource.h"

#include "tests/nd_test.h"

static const nd_resource table[] = {
    {"llama-3.1-8b", "{}", 2},
    {"H100-SXM", "[]", 2},
    {NULL, NULL, 0},
};

static void test_count_stops_at_the_terminator(void)
{
    CU_ASSERT_EQUAL(nd_resource_count(table), 2);
    CU_ASSERT_EQUAL(nd_resource_count(&table[2]), 0);
}

static void test_names_are_found_in_canonical_form(void)
{
    CU_ASSERT_PTR_EQUAL(nd_resource_find(table, "meta-llama/Llama-3.1-8B"), &table[0]);
    CU_ASSERT_PTR_EQUAL(nd_resource_find(table, "h100sxm"), &table[1]);
}

static void test_absent_names_are_not_found(void)
{
    CU_ASSERT_PTR_NULL(nd_resource_find(table, "h100"));
    CU_ASSERT_PTR_NULL(nd_resource_find(table, ""));
    CU_ASSERT_PTR_NULL(nd_resource_find(&table[2], "h100"));
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_count_stops_at_the_terminator),
        ND_TEST(test_names_are_found_in_canonical_form),
        ND_TEST(test_absent_names_are_not_found),
        {NULL, NULL},
    };
    return nd_test_main("core.resource", cases);
}
