/* What a search returns: legal, complete, sorted, the same every time, and the best there is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost_model/split.h"
#include "planner/search.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;

static nd_plan_list search_with(const nd_framework *framework, const nd_search_options *options)
{
    nd_error err;
    nd_plan_list list;
    memset(&list, 0, sizeof list);
    ND_ASSERT_OK(nd_search(&fixture.context, framework, options, &list, &err));
    return list;
}

static nd_plan_list search(int32_t top)
{
    nd_search_options options = nd_search_options_default();
    options.top = top;
    return search_with(NULL, &options);
}

static void pin(nd_search_options *options, const char *text)
{
    nd_error err;
    ND_ASSERT_OK(nd_layout_parse(text, &options->pin, &options->pinned, &err));
}

static bool same_mesh(const nd_layout *a, const nd_layout *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep;
}

static int64_t rejected(const nd_plan_list *list)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < list->rejections_count; i++) {
        sum += list->rejections[i].count;
    }
    return sum;
}

static const nd_rejection *rejection(const nd_plan_list *list, const char *rule)
{
    for (int32_t i = 0; i < list->rejections_count; i++) {
        if (strcmp(list->rejections[i].rule, rule) == 0) {
            return &list->rejections[i];
        }
    }
    return NULL;
}

/* Whether it will rather run out of memory than not. */
static bool in_doubt(const nd_plan *plan)
{
    return plan->estimate.memory.peak_bytes > plan->estimate.memory.capacity_bytes;
}

static bool expects_safe; /* set where some layout surely fits */

static void check_list(const nd_plan_list *list)
{
    int surely = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const nd_plan *plan = &list->plans[i];
        CU_ASSERT_EQUAL(nd_layout_ranks(&plan->layout), fixture.cluster.gpus);
        CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&plan->layout), fixture.train.global_batch_seqs);
        CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, NULL, &plan->layout, NULL, NULL));
        CU_ASSERT_TRUE(plan->estimate.memory.verdict != ND_VERDICT_NO);
        CU_ASSERT_TRUE(plan->estimate.time.step_s > 0.0);
        CU_ASSERT_TRUE(i == 0 || in_doubt(&list->plans[i - 1]) < in_doubt(plan) ||
                       (in_doubt(&list->plans[i - 1]) == in_doubt(plan) &&
                        list->plans[i - 1].estimate.time.step_s <= plan->estimate.time.step_s));
        surely += plan->estimate.memory.verdict == ND_VERDICT_FITS;
    }
    CU_ASSERT_TRUE(list->count < 2 || surely > 0 || !expects_safe);
    for (int32_t i = 0; i < list->rejections_count; i++) {
        const nd_rejection *entry = &list->rejections[i];
        CU_ASSERT_TRUE(entry->count > 0 && strlen(entry->rule) > 0 && strlen(entry->message) > 10);
        CU_ASSERT_TRUE(i == 0 || list->rejections[i - 1].count >= entry->count);
    }
    CU_ASSERT_EQUAL(list->fitting + rejected(list), list->searched);
    CU_ASSERT_TRUE(list->evaluated <= list->fitting);
    CU_ASSERT_TRUE(list->fitting == 0 || list->count > 0);
    CU_ASSERT_EQUAL(list->has_closest, list->fitting == 0 && rejection(list, "memory") != NULL);
}

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

/* Independent of the search: plain loops over all values, one estimate each. */
typedef struct direct_result {
    int64_t legal, fitting;
    double best_step_s, best_mesh_s[512], least_peak_bytes; /* best: of those that rather fit than not, if any */
    bool best_in_doubt, mesh_in_doubt[512], safe;
    nd_layout meshes[512];
    int32_t meshes_count;
} direct_result;

static bool is_canonical(const nd_layout *layout)
{
    bool cp1 = layout->size[ND_AXIS_CP] == 1;
    bool narrow = cp1 && layout->size[ND_AXIS_DP_SHARD] == 1;
    return (!cp1 || layout->cp_method == ND_CP_METHOD_RING) && (!narrow || layout->sharding == ND_SHARDING_NONE) &&
           (layout->size[ND_AXIS_PP] > 1 || (layout->schedule == ND_SCHEDULE_1F1B && layout->split == ND_SPLIT_EVEN));
}

static void keep_better(double *best_s, bool *best_in_doubt, double step_s, bool doubt)
{
    if (doubt < *best_in_doubt || (doubt == *best_in_doubt && step_s < *best_s)) {
        *best_s = step_s;
        *best_in_doubt = doubt;
    }
}

/* Balanced stages that are the even ones are the same layout again. */
static bool repeats_even(const nd_layout *layout)
{
    nd_block_prices prices;
    nd_stage_split even;
    nd_stage_split balanced;
    nd_layout other = *layout;
    bool equal = fixture.model.layers % ((int64_t)layout->size[ND_AXIS_PP] * layout->vpp) == 0;
    if (layout->split == ND_SPLIT_EVEN || (layout->vpp > 1 && !equal)) {
        return false; /* interleaved chunks are equal, or balanced */
    }
    other.split = ND_SPLIT_EVEN;
    nd_price_blocks(&fixture.context, layout, &prices);
    nd_split_stages(&fixture.context, layout, &prices, &balanced);
    nd_split_stages(&fixture.context, &other, &prices, &even);
    return nd_stage_split_same(&even, &balanced);
}

static void take_direct(direct_result *result, const nd_layout *layout)
{
    if (!is_canonical(layout) || !nd_layout_allowed(&fixture.context, NULL, layout, NULL, NULL)) {
        return;
    }
    if (repeats_even(layout)) {
        return;
    }
    nd_estimate estimate;
    nd_estimate_layout(&fixture.context, layout, &estimate);
    result->legal++;
    result->least_peak_bytes = fmin(result->least_peak_bytes, estimate.memory.peak_bytes);
    if (estimate.memory.verdict == ND_VERDICT_NO) {
        return;
    }
    result->fitting++;
    bool doubt = estimate.memory.peak_bytes > estimate.memory.capacity_bytes;
    result->safe = result->safe || estimate.memory.verdict == ND_VERDICT_FITS;
    keep_better(&result->best_step_s, &result->best_in_doubt, estimate.time.step_s, doubt);
    int32_t mesh = 0;
    while (mesh < result->meshes_count && !same_mesh(&result->meshes[mesh], layout)) {
        mesh++;
    }
    CU_ASSERT_TRUE_FATAL(mesh < 512);
    if (mesh == result->meshes_count) {
        result->meshes[result->meshes_count++] = *layout;
        result->best_mesh_s[mesh] = HUGE_VAL;
        result->mesh_in_doubt[mesh] = true;
    }
    keep_better(&result->best_mesh_s[mesh], &result->mesh_in_doubt[mesh], estimate.time.step_s, doubt);
}

static void direct_modes(direct_result *result, nd_layout layout)
{
    int64_t share = fixture.train.global_batch_seqs / nd_layout_data_ranks(&layout);
    for (int mode = 0; mode < 2 * 3 * 3 * 4 * 4 * 2; mode++) {
        layout.sequence_parallel = mode % 2 == 1;
        layout.cp_method = (nd_cp_method)(mode / 2 % 3);
        layout.schedule = (nd_schedule)(mode / 6 % 3);
        layout.sharding = (nd_sharding)(mode / 18 % 4);
        layout.recompute = (nd_recompute)(mode / 72 % 4);
        layout.split = (nd_split)(mode / 288);
        layout.recompute_every = layout.recompute == ND_RECOMPUTE_EVERY ? 2 : 1;
        for (layout.micro_batch = 1; layout.micro_batch <= share && layout.micro_batch <= 64; layout.micro_batch++) {
            layout.grad_accum = share / layout.micro_batch;
            take_direct(result, &layout);
        }
    }
}

static void direct_meshes(direct_result *result)
{
    int32_t gpus = (int32_t)fixture.cluster.gpus;
    memset(result, 0, sizeof *result);
    result->best_step_s = HUGE_VAL;
    result->best_in_doubt = true;
    result->least_peak_bytes = HUGE_VAL;
    nd_layout layout = nd_layout_single();
    int32_t *size = layout.size;
    for (size[0] = 1; size[0] <= gpus; size[0]++) {
        for (size[1] = 1; size[1] <= gpus; size[1]++) {
            for (size[2] = 1; size[2] <= gpus; size[2]++) {
                for (size[3] = 1; size[3] <= gpus; size[3]++) {
                    for (size[4] = 1; size[4] <= gpus; size[4]++) {
                        for (layout.ep = 1; nd_layout_ranks(&layout) == gpus && layout.ep <= gpus; layout.ep++) {
                            for (layout.vpp = 1; layout.vpp <= 8; layout.vpp++) {
                                direct_modes(result, layout);
                            }
                        }
                        layout.ep = 1;
                        layout.vpp = 1;
                    }
                }
            }
        }
    }
}

static direct_result direct;

static void compare_with_direct(const char *model, const char *cluster, const char *stack, int64_t seq, int64_t batch,
                                double memory_frac)
{
    fixture_init(&fixture, model, cluster, stack, seq, batch);
    fixture.cluster.gpu.memory_bytes = (int64_t)((double)fixture.cluster.gpu.memory_bytes * memory_frac);
    fixture_refresh(&fixture);
    direct_meshes(&direct);
    nd_search_options options = nd_search_options_default();
    options.top = ND_PLANS_MAX;
    options.exhaustive = true; /* so that all are counted; test_bounds_lose_no_plan() holds the plans */
    nd_plan_list list = search_with(NULL, &options);
    expects_safe = direct.safe;
    check_list(&list);
    expects_safe = false;
    const nd_rejection *memory = rejection(&list, "memory");
    CU_ASSERT_EQUAL(list.fitting, direct.fitting);
    CU_ASSERT_EQUAL(list.fitting + (memory != NULL ? memory->count : 0), direct.legal);
    if (direct.fitting > 0) {
        CU_ASSERT_TRUE_FATAL(list.count > 0);
        CU_ASSERT_EQUAL(list.plans[0].estimate.time.step_s, direct.best_step_s);
    } else if (direct.legal > 0) {
        CU_ASSERT_TRUE(list.has_closest);
        /* among those within 2 % the one that uses fewer axes */
        CU_ASSERT_TRUE(list.closest.estimate.memory.peak_bytes <= 1.02 * direct.least_peak_bytes);
    }
    for (int32_t mesh = 0; mesh < direct.meshes_count; mesh++) {
        int32_t i = 0;
        while (i < list.count && !same_mesh(&list.plans[i].layout, &direct.meshes[mesh])) {
            i++;
        }
        CU_ASSERT_TRUE_FATAL(i < list.count); /* every mesh that fits is in a list of 1000 */
        CU_ASSERT_EQUAL(list.plans[i].estimate.time.step_s, direct.best_mesh_s[mesh]);
    }
    nd_plan_list_free(&list);
    nd_plan_list one = search(1);
    CU_ASSERT_EQUAL(one.count, direct.fitting > 0 ? 1 : 0);
    CU_ASSERT_TRUE(one.count == 0 || one.plans[0].estimate.time.step_s == direct.best_step_s);
    nd_plan_list_free(&one);
}

static void test_search_finds_what_plain_loops_find(void)
{
    compare_with_direct(fixture_dense, "1x8xh100", "ndplan", 4096, 8, 1.0);
    compare_with_direct(fixture_dense, "1x8xh100", "megatron", 4096, 12, 0.06);
    compare_with_direct(fixture_moe, "1x4xh100", "ndplan", 2048, 6, 0.08);
    compare_with_direct(fixture_dense, "1x6xh100", "torch-fsdp2", 4092, 18, 0.05);
    compare_with_direct(fixture_dense, "1x8xh100", "ndplan", 4096, 8, 0.001); /* nothing fits */
}

static void expect_same_plans(const nd_framework *framework, nd_search_options options, const char *what)
{
    options.exhaustive = true;
    nd_plan_list every = search_with(framework, &options);
    options.exhaustive = false;
    nd_plan_list pruned = search_with(framework, &options);
    CU_ASSERT_EQUAL(every.count, pruned.count);
    CU_ASSERT_EQUAL(every.searched, pruned.searched);
    for (int32_t i = 0; i < every.count && i < pruned.count; i++) {
        char text[2][256];
        (void)nd_layout_format(&every.plans[i].layout, text[0], sizeof text[0]);
        (void)nd_layout_format(&pruned.plans[i].layout, text[1], sizeof text[1]);
        if (strcmp(text[0], text[1]) != 0) {
            printf("%s, top %d, #%d: %s (%g s), pruned %s (%g s)\n", what, (int)options.top, (int)(i + 1), text[0],
                   every.plans[i].estimate.time.step_s, text[1], pruned.plans[i].estimate.time.step_s);
        }
        CU_ASSERT_STRING_EQUAL(text[0], text[1]);
    }
    CU_ASSERT_EQUAL(every.has_closest, pruned.has_closest);
    CU_ASSERT_EQUAL(every.closest.estimate.memory.peak_bytes, pruned.closest.estimate.memory.peak_bytes);
    CU_ASSERT_EQUAL(every.fitting > 0, pruned.fitting > 0);
    nd_plan_list_free(&every);
    nd_plan_list_free(&pruned);
}

static void test_bounds_lose_no_plan(void)
{
    static const struct {
        const char *model, *cluster, *stack;
        int64_t seq, batch;
        double memory_frac;
    } cases[] = {
        {fixture_dense, "1x8xh100", "ndplan", 4096, 16, 1.0},
        {fixture_dense, "2x8xh100", "megatron", 4096, 48, 0.06},
        {fixture_moe, "1x8xh100", "ndplan", 2048, 24, 0.08},
        {fixture_moe, "4x8xa100", "deepspeed", 4096, 64, 0.3},
        {fixture_dense, "1x6xh100", "torch-fsdp2", 4092, 18, 0.05},
        {"llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64, 1.0},
        {"llama-3.1-8b", "2x8xh100", "torch-fsdp2-compile", 4096, 16, 1.0},
        {"gemma-2-9b", "2x8xa100", "megatron", 4096, 32, 1.0},
        {"llama-3.1-70b", "1x8xh100", "ndplan", 4096, 8, 1.0}, /* nothing fits */
        {"qwen3-30b-a3b", "1x8xh100", "megatron", 4096, 32, 0.7},
        {"gpt2", "1x4xh100", "torch-ddp", 1024, 12, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_init(&fixture, cases[i].model, cases[i].cluster, cases[i].stack, cases[i].seq, cases[i].batch);
        fixture.cluster.gpu.memory_bytes = (int64_t)((double)fixture.cluster.gpu.memory_bytes * cases[i].memory_frac);
        fixture_refresh(&fixture);
        static const int32_t tops[] = {1, 10};
        for (size_t t = 0; t < sizeof tops / sizeof tops[0]; t++) {
            nd_search_options options = nd_search_options_default();
            options.top = tops[t];
            options.control.threads = 1 + (int32_t)(t % 3); /* must not matter */
            expect_same_plans(NULL, options, cases[i].model);
            options.objective = ND_OBJECTIVE_MEMORY;
            expect_same_plans(NULL, options, cases[i].model);
            options.objective = ND_OBJECTIVE_THROUGHPUT;
            options.include_unfit = true;
            expect_same_plans(NULL, options, cases[i].model);
        }
    }
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

static void test_the_memory_objective_ranks_by_memory(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    nd_search_options options = nd_search_options_default();
    options.objective = ND_OBJECTIVE_MEMORY;
    nd_plan_list list = search_with(NULL, &options);
    direct_meshes(&direct);
    CU_ASSERT_TRUE_FATAL(list.count > 1);
    CU_ASSERT_EQUAL(list.plans[0].estimate.memory.peak_bytes, direct.least_peak_bytes);
    for (int32_t i = 1; i < list.count; i++) {
        CU_ASSERT_TRUE(list.plans[i - 1].estimate.memory.peak_bytes <= list.plans[i].estimate.memory.peak_bytes);
    }
    nd_plan_list_free(&list);
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
        ND_TEST(test_search_finds_what_plain_loops_find),
        ND_TEST(test_bounds_lose_no_plan),
        ND_TEST(test_a_pin_never_finds_a_better_plan),
        ND_TEST(test_pins_and_limits_hold_in_every_plan),
        ND_TEST(test_one_plan_per_mesh_comes_first),
        ND_TEST(test_the_layout_of_the_guide_is_searched),
        ND_TEST(test_odd_clusters_get_an_answer),
        ND_TEST(test_one_sequence_and_one_token_get_an_answer),
        ND_TEST(test_a_batch_that_nothing_divides_is_explained),
        ND_TEST(test_when_nothing_fits_the_closest_says_by_how_much),
        ND_TEST(test_the_memory_objective_ranks_by_memory),
        ND_TEST(test_offload_is_used_only_when_pinned),
        ND_TEST(test_pinned_values_beyond_the_caps_are_tried),
        ND_TEST(test_lora_is_searched_like_anything_else),
        ND_TEST(test_freeing_twice_or_nothing_is_fine),
        {NULL, NULL},
    };
    return nd_test_main("planner.search", cases);
}
