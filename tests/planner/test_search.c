/* What a search returns: legal, complete, sorted, the same every time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/planner/search_checks.h"

static void test_plans_multiply_and_are_sorted(void)
{
    static const char *const stacks[] = {"ndplan", "megatron", "torch-fsdp2", "deepspeed", "torch-ddp"};
    static const char *const models[] = {fixture_dense, fixture_moe};
    for (size_t s = 0; s < 5; s++) {
        for (size_t m = 0; m < 2; m++) {
            fixture_init(&fixture, models[m], "2x8xh100", stacks[s], 4096, 48);
            nd_plan_list list = search(50);
            CU_ASSERT_TRUE(list.count > 0);
            check_list(&list);
            nd_plan_list_free(&list);
        }
    }
}

static void test_two_searches_give_the_same_list(void)
{
    fixture_init(&fixture, fixture_moe, "2x8xh100", "ndplan", 4096, 48);
    nd_plan_list a = search(100);
    nd_plan_list b = search(100);
    CU_ASSERT_EQUAL_FATAL(a.count, b.count);
    for (int32_t i = 0; i < a.count; i++) {
        char text[2][256];
        (void)nd_layout_format(&a.plans[i].layout, text[0], sizeof text[0]);
        (void)nd_layout_format(&b.plans[i].layout, text[1], sizeof text[1]);
        CU_ASSERT_STRING_EQUAL(text[0], text[1]);
    }
    nd_plan_list_free(&a);
    nd_plan_list_free(&b);
}

static void test_a_longer_list_starts_like_a_shorter_one(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "4x8xh100", "ndplan", 8192, 64);
    nd_plan_list shorter = search(5);
    nd_plan_list longer = search(40);
    CU_ASSERT_EQUAL_FATAL(shorter.count, 5);
    CU_ASSERT_TRUE_FATAL(longer.count >= 5);
    for (int32_t i = 0; i < 4; i++) { /* the fifth may be the one that surely fits */
        CU_ASSERT_TRUE(same_mesh(&shorter.plans[i].layout, &longer.plans[i].layout));
        CU_ASSERT_EQUAL(shorter.plans[i].estimate.time.step_s, longer.plans[i].estimate.time.step_s);
    }
    CU_ASSERT_EQUAL(shorter.searched, longer.searched);
    CU_ASSERT_TRUE(shorter.fitting <= longer.fitting); /* fewer are looked at for a shorter list */
    nd_plan_list_free(&shorter);
    nd_plan_list_free(&longer);
}

static void test_a_pin_never_finds_a_better_plan(void)
{
    static const char *const pins[] = {"tp=2",
                                       "cp=2",
                                       "pp=2",
                                       "dp_shard=4",
                                       "ep=2",
                                       "sp=on",
                                       "micro_batch=1",
                                       "grad_accum=2",
                                       "sharding=zero1",
                                       "recompute=full",
                                       "vpp=2",
                                       "schedule=1f1b",
                                       "cp_method=ulysses",
                                       "dp_replicate=2",
                                       "tp=1,pp=1"};
    fixture_init(&fixture, fixture_moe, "1x8xh100", "ndplan", 4096, 32);
    nd_plan_list open = search(1);
    CU_ASSERT_EQUAL_FATAL(open.count, 1);
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        nd_search_options options = nd_search_options_default();
        pin(&options, pins[i]);
        nd_plan_list pinned = search_with(NULL, &options);
        check_list(&pinned);
        CU_ASSERT_TRUE(pinned.count > 0);
        CU_ASSERT_TRUE(pinned.searched <= open.searched);
        CU_ASSERT_TRUE(pinned.count == 0 || pinned.plans[0].estimate.time.step_s >= open.plans[0].estimate.time.step_s);
        nd_plan_list_free(&pinned);
    }
    nd_plan_list_free(&open);
}

static void test_pins_and_limits_hold_in_every_plan(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 32);
    nd_search_options options = nd_search_options_default();
    options.top = 200;
    pin(&options, "dp_shard=2,recompute=full,sharding=zero3");
    options.max.size[ND_AXIS_TP] = 2;
    options.max.micro_batch = 2;
    options.limited = 1u << ND_LAYOUT_KEY_TP | 1u << ND_LAYOUT_KEY_MICRO_BATCH;
    nd_plan_list list = search_with(NULL, &options);
    CU_ASSERT_TRUE(list.count > 10);
    check_list(&list);
    for (int32_t i = 0; i < list.count; i++) {
        const nd_layout *layout = &list.plans[i].layout;
        CU_ASSERT_EQUAL(layout->size[ND_AXIS_DP_SHARD], 2);
        CU_ASSERT_EQUAL(layout->recompute, ND_RECOMPUTE_FULL);
        CU_ASSERT_EQUAL(layout->sharding, ND_SHARDING_ZERO3);
        CU_ASSERT_TRUE(layout->size[ND_AXIS_TP] <= 2 && layout->micro_batch <= 2);
    }
    nd_plan_list_free(&list);
}

static void test_one_plan_per_mesh_comes_first(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    nd_plan_list list = search(10);
    CU_ASSERT_EQUAL(list.count, 10);
    for (int32_t i = 0; i < list.count; i++) {
        for (int32_t j = 0; j < i; j++) {
            bool same = same_mesh(&list.plans[i].layout, &list.plans[j].layout);
            CU_ASSERT_TRUE(!same || list.plans[i].estimate.memory.verdict != list.plans[j].estimate.memory.verdict);
        }
    }
    nd_plan_list_free(&list);
    /* A pinned mesh shows its variants instead. */
    nd_search_options options = nd_search_options_default();
    pin(&options, "pp=1,dp_replicate=2,dp_shard=2,cp=2,tp=2");
    list = search_with(NULL, &options);
    CU_ASSERT_EQUAL(list.count, 10);
    check_list(&list);
    nd_plan_list_free(&list);
}

static void test_the_layout_of_the_guide_is_searched(void)
{
    nd_error err;
    const nd_framework *accelerate = NULL;
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "torch-fsdp2", 8192, 64);
    ND_ASSERT_OK(nd_framework_find("accelerate", &accelerate, &err));
    nd_search_options options = nd_search_options_default();
    pin(&options, "dp_replicate=2,dp_shard=2,cp=2,tp=2");
    nd_plan_list list = search_with(accelerate, &options);
    CU_ASSERT_TRUE(list.searched > 0);
    CU_ASSERT_TRUE(list.count > 0 || list.has_closest);
    nd_plan_list_free(&list);
    nd_search_options all = nd_search_options_default();
    all.top = 200;
    list = search_with(accelerate, &all);
    CU_ASSERT_PTR_NOT_NULL(rejection(&list, "stack-pp"));
    for (int32_t i = 0; i < list.count; i++) {
        CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, accelerate, &list.plans[i].layout, NULL, NULL));
    }
    nd_plan_list_free(&list);
}

static void test_odd_clusters_get_an_answer(void)
{
    static const char *const clusters[] = {"1x7xh100", "h100", "7x3xh100", "13x1xh100", "2x9xh100"};
    static const char *const models[] = {fixture_dense, fixture_moe};
    for (size_t c = 0; c < 5; c++) {
        for (size_t m = 0; m < 2; m++) {
            fixture_init(&fixture, models[m], clusters[c], "ndplan", 4096, 42);
            nd_plan_list list = search(20);
            check_list(&list);
            CU_ASSERT_TRUE(list.count > 0 || list.rejections_count > 0);
            nd_plan_list_free(&list);
        }
    }
}

static void test_one_sequence_and_one_token_get_an_answer(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 1);
    nd_plan_list list = search(10);
    CU_ASSERT_TRUE(list.count > 0); /* one sequence over tp, cp and pp */
    check_list(&list);
    const nd_rejection *batch = rejection(&list, "global-batch");
    CU_ASSERT_PTR_NOT_NULL_FATAL(batch);
    ND_ASSERT_CONTAINS(batch->nearest, "--global-batch");
    nd_plan_list_free(&list);
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 1, 1);
    list = search(10);
    check_list(&list);
    CU_ASSERT_TRUE(list.count > 0);
    nd_plan_list_free(&list);
}

static void test_a_batch_that_nothing_divides_is_explained(void)
{
    fixture_init(&fixture, fixture_dense, "1x16xh100", "torch-ddp", 4096, 7);
    nd_plan_list list = search(10);
    CU_ASSERT_EQUAL(list.count, 0);
    CU_ASSERT_FALSE(list.has_closest);
    const nd_rejection *batch = rejection(&list, "global-batch");
    CU_ASSERT_PTR_NOT_NULL_FATAL(batch);
    ND_ASSERT_CONTAINS(batch->message, "a global batch of 7 sequences");
    ND_ASSERT_CONTAINS(batch->nearest, "--global-batch 16");
    nd_plan_list_free(&list);
}

static void test_when_nothing_fits_the_closest_says_by_how_much(void)
{
    fixture_init(&fixture, "llama-3.1-405b", "1x8xh100", "ndplan", 8192, 8);
    nd_plan_list list = search(10);
    CU_ASSERT_EQUAL(list.count, 0);
    CU_ASSERT_TRUE_FATAL(list.has_closest);
    CU_ASSERT_TRUE(list.closest.estimate.memory.peak_bytes > list.closest.estimate.memory.capacity_bytes);
    ND_ASSERT_CONTAINS(rejection(&list, "memory")->message, "even the smallest legal layout needs");
    nd_plan_list_free(&list);
    nd_search_options options = nd_search_options_default();
    options.include_unfit = true;
    list = search_with(NULL, &options);
    CU_ASSERT_EQUAL(list.count, 10);
    CU_ASSERT_EQUAL(list.plans[0].estimate.memory.verdict, ND_VERDICT_NO);
    nd_plan_list_free(&list);
}

/* In closed form gpipe is 1f1b with more memory; a search lists it only when told to, with the estimate's figures. */
static void test_gpipe_is_used_only_when_pinned(void)
{
    nd_search_options options = nd_search_options_default();
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 2048, 64);
    nd_plan_list open = search(200);
    for (int32_t i = 0; i < open.count; i++) {
        CU_ASSERT_NOT_EQUAL(open.plans[i].layout.schedule, ND_SCHEDULE_GPIPE);
    }
    pin(&options, "pp=2,schedule=gpipe,micro_batch=1");
    nd_plan_list list = search_with(NULL, &options);
    CU_ASSERT_TRUE(list.count > 0);
    for (int32_t i = 0; i < list.count; i++) {
        const nd_plan *plan = &list.plans[i];
        nd_layout plain = plan->layout;
        nd_estimate gpipe;
        nd_estimate one;
        plain.schedule = ND_SCHEDULE_1F1B;
        nd_estimate_layout(&fixture.context, &plan->layout, &gpipe);
        nd_estimate_layout(&fixture.context, &plain, &one);
        CU_ASSERT_EQUAL(plan->layout.schedule, ND_SCHEDULE_GPIPE);
        CU_ASSERT_EQUAL(plan->estimate.memory.peak_bytes, gpipe.memory.peak_bytes);
        ND_ASSERT_REL(gpipe.time.step_s, one.time.step_s, 1e-12);
        CU_ASSERT_TRUE(gpipe.memory.peak_bytes > one.memory.peak_bytes || plan->layout.grad_accum == 1);
    }
    nd_plan_list_free(&list);
    nd_plan_list_free(&open);
}

static void test_offload_is_used_only_when_pinned(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    nd_search_options options = nd_search_options_default();
    pin(&options, "offload=optimizer");
    nd_plan_list list = search_with(NULL, &options);
    CU_ASSERT_TRUE(list.count > 0);
    for (int32_t i = 0; i < list.count; i++) {
        CU_ASSERT_EQUAL(list.plans[i].layout.offload, ND_OFFLOAD_OPTIMIZER);
    }
    nd_plan_list_free(&list);
}

static void test_pinned_values_beyond_the_caps_are_tried(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 128, 4096);
    nd_search_options options = nd_search_options_default();
    pin(&options, "micro_batch=128,recompute=every:3");
    nd_plan_list list = search_with(NULL, &options);
    CU_ASSERT_TRUE_FATAL(list.count > 0);
    CU_ASSERT_EQUAL(list.plans[0].layout.micro_batch, 128);
    CU_ASSERT_EQUAL(list.plans[0].layout.recompute_every, 3);
    check_list(&list);
    nd_plan_list_free(&list);
    options = nd_search_options_default();
    pin(&options, "grad_accum=4");
    list = search_with(NULL, &options);
    CU_ASSERT_TRUE_FATAL(list.count > 0);
    CU_ASSERT_EQUAL(list.plans[0].layout.grad_accum, 4);
    check_list(&list);
    nd_plan_list_free(&list);
}

static void test_lora_is_searched_like_anything_else(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "1x8xh100", "torch-fsdp2", 4096, 16);
    fixture.train.lora_rank = 16;
    fixture_refresh(&fixture);
    nd_plan_list list = search(10);
    CU_ASSERT_TRUE(list.count > 0);
    check_list(&list);
    nd_plan_list_free(&list);
}

static void test_freeing_twice_or_nothing_is_fine(void)
{
    fixture_init(&fixture, fixture_dense, "h100", "ndplan", 4096, 1);
    nd_plan_list list = search(1);
    nd_plan_list_free(&list);
    nd_plan_list_free(&list);
    nd_plan_list_free(NULL);
    CU_ASSERT_PTR_NULL(list.plans);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_plans_multiply_and_are_sorted),
        ND_TEST(test_two_searches_give_the_same_list),
        ND_TEST(test_a_longer_list_starts_like_a_shorter_one),
        ND_TEST(test_a_pin_never_finds_a_better_plan),
        ND_TEST(test_pins_and_limits_hold_in_every_plan),
        ND_TEST(test_one_plan_per_mesh_comes_first),
        ND_TEST(test_the_layout_of_the_guide_is_searched),
        ND_TEST(test_odd_clusters_get_an_answer),
        ND_TEST(test_one_sequence_and_one_token_get_an_answer),
        ND_TEST(test_a_batch_that_nothing_divides_is_explained),
        ND_TEST(test_when_nothing_fits_the_closest_says_by_how_much),
        ND_TEST(test_gpipe_is_used_only_when_pinned),
        ND_TEST(test_offload_is_used_only_when_pinned),
        ND_TEST(test_pinned_values_beyond_the_caps_are_tried),
        ND_TEST(test_lora_is_searched_like_anything_else),
        ND_TEST(test_freeing_twice_or_nothing_is_fine),
        {NULL, NULL},
    };
    return nd_test_main("planner.search", cases);
}
