/* White box: the values of one key that a search tries. */
#include "planner/search_space_internal.h"

#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;
static nd_search_options options;
static nd_search_space space;

static void start(const char *stack)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", stack, 4096, 16);
    options = nd_search_options_default();
    nd_search_space_init(&fixture.context, &options, &space);
}

/* The splits that are tried with one micro-batch schedule and one chunk. */
static int32_t splits_of(int32_t pp, nd_split out[ND_SPLIT_COUNT])
{
    nd_pipeline_choice choices[ND_PIPELINES_MAX];
    int32_t choices_count = nd_space_pipelines(&space, pp, choices);
    int32_t count = 0;
    for (int32_t i = 0; i < choices_count; i++) {
        if (choices[i].vpp == 1 && choices[i].schedule == ND_SCHEDULE_1F1B) {
            out[count++] = choices[i].split;
        }
    }
    return count;
}

static void test_a_pipeline_is_tried_even_and_balanced(void)
{
    nd_split splits[ND_SPLIT_COUNT];
    start("megatron");
    CU_ASSERT_EQUAL(splits_of(4, splits), 2);
    CU_ASSERT_EQUAL(splits[0], ND_SPLIT_EVEN);
    CU_ASSERT_EQUAL(splits[1], ND_SPLIT_BALANCED);
    CU_ASSERT_EQUAL(splits_of(1, splits), 1); /* nothing to divide */
    CU_ASSERT_EQUAL(splits[0], ND_SPLIT_EVEN);
}

static void test_a_stack_that_cannot_be_told_is_tried_even_only(void)
{
    nd_split splits[ND_SPLIT_COUNT];
    start("megatron-2022");
    CU_ASSERT_EQUAL(splits_of(4, splits), 1);
    CU_ASSERT_EQUAL(splits[0], ND_SPLIT_EVEN);
}

static void test_a_pinned_split_is_the_only_one(void)
{
    nd_split splits[ND_SPLIT_COUNT];
    start("megatron");
    options.pin.split = ND_SPLIT_BALANCED;
    options.pinned = 1u << ND_LAYOUT_KEY_SPLIT;
    CU_ASSERT_EQUAL(splits_of(4, splits), 1);
    CU_ASSERT_EQUAL(splits[0], ND_SPLIT_BALANCED);
}

static const nd_test_case cases[] = {
    ND_TEST(test_a_pipeline_is_tried_even_and_balanced),
    ND_TEST(test_a_stack_that_cannot_be_told_is_tried_even_only),
    ND_TEST(test_a_pinned_split_is_the_only_one),
    {NULL, NULL},
};

int main(void)
{
    return nd_test_main("planner/search_space", cases);
}
