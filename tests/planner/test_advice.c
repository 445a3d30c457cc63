/* What to change where nothing fits: every advice is legal and fits, and none is missed because one layout needs least
 * memory without it. */
#include "planner/advice.h"

#include "planner/constraints.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;
static nd_advice advice;

/* The closest layout of a search with the pins, in which nothing fits. */
static nd_layout find_advice(const char *pins)
{
    nd_error err;
    nd_plan_list list = {0};
    nd_search_options options = nd_search_options_default();
    if (pins[0] != '\0') {
        ND_ASSERT_OK(nd_layout_parse(pins, &options.pin, &options.pinned, &err));
    }
    ND_ASSERT_OK(nd_search(&fixture.context, NULL, &options, &list, &err));
    CU_ASSERT_EQUAL(list.fitting, 0);
    CU_ASSERT_TRUE_FATAL(list.has_closest);
    nd_layout closest = list.closest.layout;
    ND_ASSERT_OK(nd_advice_find(&fixture.context, NULL, &options, &closest, &advice, &err));
    nd_plan_list_free(&list);
    return closest;
}

static const nd_fix *advised(nd_fix_kind kind)
{
    for (int32_t i = 0; i < advice.count; i++) {
        if (advice.fixes[i].kind == kind) {
            return &advice.fixes[i];
        }
    }
    return NULL;
}

static void expect_all_fit(void)
{
    for (int32_t i = 0; i < advice.count; i++) {
        static planner_fixture changed;
        nd_error err;
        nd_estimate again;
        const nd_fix *fix = &advice.fixes[i];
        changed = fixture;
        changed.train = fix->train;
        changed.stack.style.loss_chunks = fix->loss_chunks;
        ND_ASSERT_OK(nd_cluster_resize(&fixture.cluster, fix->nodes, &changed.cluster, &err));
        fixture_refresh(&changed);
        CU_ASSERT_TRUE(nd_layout_allowed(&changed.context, NULL, &fix->layout, NULL, NULL));
        nd_estimate_layout(&changed.context, &fix->layout, &again);
        CU_ASSERT_TRUE(again.memory.verdict != ND_VERDICT_NO && again.memory.peak_bytes <= again.memory.capacity_bytes);
        ND_ASSERT_REL(fix->estimate.memory.peak_bytes, again.memory.peak_bytes, 1e-12);
        CU_ASSERT_EQUAL(fix->second != ND_FIX_COUNT, advice.pairs);
    }
}

/* The optimizer phase is the peak of full training, so the closest layout recomputes nothing; with adapters it is the
 * activations that do not fit. */
static void qlora_that_needs_recompute_is_named(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "1x1xh100", "torch-fsdp2", 8192, 16);
    nd_layout closest = find_advice("");
    const nd_fix *fix = advised(ND_FIX_QLORA);
    CU_ASSERT_PTR_NOT_NULL(fix);
    if (fix == NULL) {
        return;
    }
    CU_ASSERT_EQUAL(closest.recompute, ND_RECOMPUTE_NONE);
    CU_ASSERT_EQUAL(fix->layout.recompute, ND_RECOMPUTE_FULL);
    ND_ASSERT_CONTAINS(fix->layout_keys, "recompute=full");
    ND_ASSERT_CONTAINS(fix->options, "--lora r=16,bits=4");
    CU_ASSERT_FALSE(advice.pairs);
    expect_all_fit();
}

static void two_changes_are_found_where_one_does_not_suffice(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "1x1xa100-40gb", "torch-fsdp2", 8192, 16);
    (void)find_advice("");
    CU_ASSERT_TRUE(advice.pairs);
    CU_ASSERT_TRUE_FATAL(advice.count > 0);
    expect_all_fit();
    for (int32_t i = 0; i < advice.count; i++) {
        CU_ASSERT_NOT_EQUAL(advice.fixes[i].kind, advice.fixes[i].second);
    }
}

static void pins_hold_and_the_mildest_comes_first(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "1x8xh100", "ndplan", 4096, 8);
    (void)find_advice("tp=4");
    CU_ASSERT_TRUE_FATAL(advice.count > 2);
    expect_all_fit();
    for (int32_t i = 0; i < advice.count; i++) {
        CU_ASSERT_EQUAL(advice.fixes[i].layout.size[ND_AXIS_TP], 4);
        CU_ASSERT_TRUE(i == 0 ||
                       nd_fix_kind_class(advice.fixes[i - 1].kind) <= nd_fix_kind_class(advice.fixes[i].kind));
    }
    fixture_init(&fixture, "llama-3.1-405b", "1x8xh100", "ndplan", 4096, 8);
    (void)find_advice("tp=8,offload=optimizer");
    CU_ASSERT_PTR_NULL(advised(ND_FIX_OFFLOAD));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(qlora_that_needs_recompute_is_named),
        ND_TEST(two_changes_are_found_where_one_does_not_suffice),
        ND_TEST(pins_hold_and_the_mildest_comes_first),
        {NULL, NULL},
    };
    return nd_test_main("planner.advice", cases);
}
