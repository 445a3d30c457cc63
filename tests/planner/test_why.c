/* One answer for every layout, and evidence that agrees with it. */
#include "planner/why.h"

#include <string.h>

#include "planner/search.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* large: not on the stack */
static nd_why why;

static nd_layout ask(const char *text)
{
    nd_error err;
    uint32_t given = 0;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, &given, &err));
    ND_ASSERT_OK(nd_why_layout(&fixture.context, NULL, &layout, given, NULL, &why, &err));
    return layout;
}

static void ask_about(const nd_layout *layout)
{
    nd_error err;
    ND_ASSERT_OK(nd_why_layout(&fixture.context, NULL, layout, ~0u, NULL, &why, &err));
}

static void test_illegal_comes_before_all_else(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 8);
    (void)ask("tp=2,sp=on");
    CU_ASSERT_EQUAL(why.answer, ND_WHY_ILLEGAL);
    CU_ASSERT_TRUE(why.repair.found);
    CU_ASSERT_FALSE(why.has_comparison);
    CU_ASSERT_EQUAL(why.place.rank, 0);
}

static void test_what_does_not_fit_gets_a_change_that_fits(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 64);
    (void)ask("dp_replicate=8,micro_batch=1,grad_accum=8");
    CU_ASSERT_EQUAL(why.answer, ND_WHY_UNFIT);
    CU_ASSERT_TRUE_FATAL(why.has_sure);
    CU_ASSERT_EQUAL(why.sure.estimate.memory.verdict, ND_VERDICT_FITS);
    CU_ASSERT_EQUAL(why.place.rank, 0);
    CU_ASSERT_EQUAL(why.divisions.memory.phase, why.estimate.memory.phase);
}

static void test_another_layout_where_no_change_suffices(void)
{
    fixture_init(&fixture, "llama-3.1-405b", "32x8xh100", "ndplan", 8192, 256);
    (void)ask("dp_replicate=256,micro_batch=1,grad_accum=1");
    CU_ASSERT_EQUAL(why.answer, ND_WHY_UNFIT);
    CU_ASSERT_TRUE_FATAL(why.has_search_fit);
    CU_ASSERT_TRUE(why.search_fit.estimate.memory.verdict != ND_VERDICT_NO);
}

static void test_host_memory_counts(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "1x8xh100", "ndplan", 4096, 8);
    const char *offloaded = "dp_shard=8,micro_batch=1,grad_accum=1,sharding=zero3,recompute=full,offload=params";
    (void)ask(offloaded);
    CU_ASSERT_NOT_EQUAL(why.answer, ND_WHY_HOST_UNFIT);
    CU_ASSERT_NOT_EQUAL(why.answer, ND_WHY_UNFIT);
    fixture.cluster.host_memory_bytes = INT64_C(64) << 30;
    (void)ask(offloaded);
    CU_ASSERT_EQUAL(why.answer, ND_WHY_HOST_UNFIT);
}

static nd_plan_list search_all(void)
{
    nd_error err;
    nd_plan_list list = {0};
    nd_search_options options = nd_search_options_default();
    options.top = ND_PLANS_MAX;
    ND_ASSERT_OK(nd_search(&fixture.context, NULL, &options, &list, &err));
    return list;
}

/* The place of every plan of the list is its place in the list, since each is the best of its mesh. */
static void test_places_are_those_of_the_search(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    nd_plan_list list = search_all();
    CU_ASSERT_TRUE_FATAL(list.count > 3);
    int32_t rank = 0;
    for (int32_t i = 0; i < list.count; i++) {
        bool leads = true;
        for (int32_t j = 0; j < i; j++) {
            bool same = memcmp(list.plans[i].layout.size, list.plans[j].layout.size, sizeof list.plans[i].layout.size);
            leads = leads && (same || list.plans[i].layout.ep != list.plans[j].layout.ep);
        }
        if (!leads) {
            continue;
        }
        rank++;
        ask_about(&list.plans[i].layout);
        CU_ASSERT_TRUE(why.place.rank <= rank); /* equal steps share a place */
        CU_ASSERT_FALSE(why.place.has_variant);
        CU_ASSERT_EQUAL(why.answer == ND_WHY_FIRST, why.place.rank == 1);
        CU_ASSERT_TRUE(rank > 1 || why.place.rank == 1);
        if (why.answer == ND_WHY_NOT_FIRST) {
            CU_ASSERT_TRUE(why.comparison.slower.was_asked);
            CU_ASSERT_EQUAL(why.comparison.faster.estimate.time.step_s, list.plans[0].estimate.time.step_s);
        }
    }
    nd_plan_list_free(&list);
}

static void test_a_worse_variant_is_told_its_best(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    (void)ask("dp_shard=8,micro_batch=1,grad_accum=2,sharding=zero3,recompute=full");
    CU_ASSERT_EQUAL(why.answer, ND_WHY_NOT_FIRST);
    CU_ASSERT_TRUE_FATAL(why.place.has_variant);
    CU_ASSERT_EQUAL(why.place.variant.layout.size[ND_AXIS_DP_SHARD], 8);
    CU_ASSERT_TRUE(why.place.variant.estimate.time.step_s < why.estimate.time.step_s);
}

/* A mesh that comes after the list has its best variant all the same, and a place that is a lower bound. */
static void test_a_mesh_beyond_the_list(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "64x8xh100", "ndplan", 4096, 512);
    (void)ask("tp=2,sp=on,pp=32,dp_replicate=8,micro_batch=1,grad_accum=64,recompute=full");
    CU_ASSERT_EQUAL(why.answer, ND_WHY_NOT_FIRST);
    CU_ASSERT_TRUE(why.place.at_least);
    CU_ASSERT_EQUAL(why.place.rank, why.place.meshes);
    CU_ASSERT_TRUE(why.place.meshes > 100);
    CU_ASSERT_TRUE_FATAL(why.place.has_variant);
    CU_ASSERT_EQUAL(memcmp(why.place.variant.layout.size, why.layout.size, sizeof why.layout.size), 0);
    CU_ASSERT_TRUE(why.place.variant.estimate.time.step_s < why.estimate.time.step_s);
}

static void test_the_only_layout_is_the_first(void)
{
    fixture_init(&fixture, fixture_dense, "h100", "ndplan", 4096, 1);
    nd_plan_list list = search_all();
    CU_ASSERT_TRUE_FATAL(list.count > 0);
    ask_about(&list.plans[0].layout);
    CU_ASSERT_EQUAL(why.answer, ND_WHY_FIRST);
    CU_ASSERT_EQUAL(why.place.meshes, 1);
    nd_plan_list_free(&list);
}

static void test_against_needs_no_search(void)
{
    nd_error err;
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    nd_layout other = ask("dp_shard=8,micro_batch=1,grad_accum=2,sharding=zero3");
    nd_layout layout = other;
    layout.recompute = ND_RECOMPUTE_FULL;
    nd_why_against against = {&fixture.context, &other};
    ND_ASSERT_OK(nd_why_layout(&fixture.context, NULL, &layout, 0, &against, &why, &err));
    CU_ASSERT_EQUAL(why.answer, ND_WHY_NOT_FIRST);
    CU_ASSERT_EQUAL(why.place.rank, 0);
    CU_ASSERT_TRUE(why.comparison.slower.was_asked);
    CU_ASSERT_STRING_EQUAL(why.comparison.terms[0].key, "recompute_s");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_illegal_comes_before_all_else),
        ND_TEST(test_what_does_not_fit_gets_a_change_that_fits),
        ND_TEST(test_another_layout_where_no_change_suffices),
        ND_TEST(test_host_memory_counts),
        ND_TEST(test_places_are_those_of_the_search),
        ND_TEST(test_a_worse_variant_is_told_its_best),
        ND_TEST(test_a_mesh_beyond_the_list),
        ND_TEST(test_the_only_layout_is_the_first),
        ND_TEST(test_against_needs_no_search),
        {NULL, NULL},
    };
    return nd_test_main("planner.why", cases);
}
