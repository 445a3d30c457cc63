/* Pins and limits that contradict each other, the cluster or the batch are refused with what would work. */
#include <string.h>

#include "planner/search.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;

static void expect_refused(const char *pins, const char *limits, const char *message)
{
    nd_error err;
    nd_plan_list list;
    nd_search_options options = nd_search_options_default();
    memset(&list, 0, sizeof list);
    list.count = -7; /* a failed call leaves its output as it is */
    if (pins != NULL) {
        ND_ASSERT_OK(nd_layout_parse(pins, &options.pin, &options.pinned, &err));
    }
    if (limits != NULL) {
        ND_ASSERT_OK(nd_layout_parse(limits, &options.max, &options.limited, &err));
    }
    CU_ASSERT_EQUAL(nd_search(&fixture.context, NULL, &options, &list, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_EQUAL(list.count, -7);
    CU_ASSERT_PTR_NULL(list.plans);
}

static void test_pins_that_do_not_divide_the_gpus(void)
{
    fixture_init(&fixture, fixture_moe, "2x8xh100", "ndplan", 4096, 48);
    expect_refused("tp=3", NULL, "pin tp=3 does not divide the 16 GPUs; use tp=2 or 4");
    expect_refused("pp=32", NULL, "pin pp=32 does not divide the 16 GPUs; use pp=16");
    expect_refused("ep=5", NULL, "pin ep=5 does not divide");
    expect_refused("tp=8,pp=4", NULL, "pins pp=4, tp=8 multiply to at least 32");
    expect_refused("tp=8,pp=1,cp=1,dp_shard=1,dp_replicate=1", NULL, "multiply to 8, not to the 16 GPUs");
}

static void test_pins_and_limits_that_contradict(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 48);
    expect_refused("tp=8", "tp=4", "pin tp=8 is above max tp=4");
    expect_refused("pp=1,vpp=2", NULL, "pins pp=1 and vpp=2 contradict");
    expect_refused("pp=1,schedule=zero_bubble", NULL, "pins pp=1 and schedule=zero_bubble contradict");
    expect_refused("vpp=2,schedule=gpipe", NULL, "pins vpp=2 and schedule=gpipe contradict");
    expect_refused("vpp=2,schedule=zero_bubble", NULL, "pins vpp=2 and schedule=zero_bubble contradict");
    expect_refused("tp=1,sp=on", NULL, "pins tp=1 and sp=on contradict");
    expect_refused("dp_shard=4,sharding=none", NULL, "use dp_replicate=4");
    expect_refused(NULL, "recompute=full", "recompute has no upper limit");
    expect_refused(NULL, "tp=2,pp=1,cp=1,dp_shard=2,dp_replicate=2", "no mesh of 16 GPUs has pp<=1, dp_replicate<=2");
}

static void test_pins_that_miss_the_global_batch(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 64);
    expect_refused("micro_batch=3,grad_accum=2", NULL,
                   "does not divide the global batch of 64; use --global-batch 60 or 66");
    expect_refused("micro_batch=8,dp_replicate=16", NULL, "more than the global batch of 64");
    expect_refused("micro_batch=1,grad_accum=1,dp_replicate=8,dp_shard=2", NULL, "make a global batch of 16, not 64");
}

static void test_values_out_of_range(void)
{
    nd_error err;
    nd_plan_list list;
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 64);
    static const int32_t tops[] = {0, -1, ND_PLANS_MAX + 1};
    for (int i = 0; i < 3; i++) {
        nd_search_options options = nd_search_options_default();
        options.top = tops[i];
        CU_ASSERT_EQUAL(nd_search(&fixture.context, NULL, &options, &list, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, "top must be 1 to 1000");
    }
    nd_search_options options = nd_search_options_default();
    options.pin.size[ND_AXIS_CP] = 0;
    options.pinned = 1u << ND_LAYOUT_KEY_CP;
    CU_ASSERT_EQUAL(nd_search(&fixture.context, NULL, &options, &list, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "pin cp=0");
    options = nd_search_options_default();
    options.max.ep = 0;
    options.limited = 1u << ND_LAYOUT_KEY_EP;
    CU_ASSERT_EQUAL(nd_search(&fixture.context, NULL, &options, &list, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "max ep=0");
}

static void test_a_pin_against_the_model_is_explained_by_its_rule(void)
{
    nd_error err;
    nd_plan_list list;
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 64);
    nd_search_options options = nd_search_options_default();
    ND_ASSERT_OK(nd_layout_parse("tp=16", &options.pin, &options.pinned, &err));
    ND_ASSERT_OK(nd_search(&fixture.context, NULL, &options, &list, &err));
    CU_ASSERT_EQUAL(list.count, 0);
    CU_ASSERT_FALSE(list.has_closest);
    CU_ASSERT_EQUAL_FATAL(list.rejections_count, 1);
    CU_ASSERT_STRING_EQUAL(list.rejections[0].rule, "tp-divides-heads");
    CU_ASSERT_STRING_EQUAL(list.rejections[0].nearest, "tp=8");
    CU_ASSERT_EQUAL(list.rejections[0].count, list.searched);
    nd_plan_list_free(&list);
    ND_ASSERT_OK(nd_layout_parse("ep=2", &options.pin, &options.pinned, &err));
    ND_ASSERT_OK(nd_search(&fixture.context, NULL, &options, &list, &err));
    CU_ASSERT_STRING_EQUAL(list.rejections[0].rule, "ep-needs-experts");
    nd_plan_list_free(&list);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_pins_that_do_not_divide_the_gpus),
        ND_TEST(test_pins_and_limits_that_contradict),
        ND_TEST(test_pins_that_miss_the_global_batch),
        ND_TEST(test_values_out_of_range),
        ND_TEST(test_a_pin_against_the_model_is_explained_by_its_rule),
        {NULL, NULL},
    };
    return nd_test_main("planner.search_options", cases);
}
