/* The best there is: what plain loops over all layouts find, with and without bounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/split.h"
#include "tests/planner/search_checks.h"

typedef struct point {
    double step_s, peak_bytes;
} point;

/* Independent of the search: plain loops over all values, one estimate each. */
typedef struct direct_result {
    int64_t legal, fitting;
    double best_step_s, best_mesh_s[512], least_peak_bytes; /* best: of those that rather fit than not, if any */
    bool best_in_doubt, mesh_in_doubt[512], safe;
    nd_layout meshes[512];
    int32_t meshes_count;
    point points[1 << 18]; /* of those that rather fit than not */
    int32_t points_count;
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
    if (!doubt) {
        CU_ASSERT_TRUE_FATAL(result->points_count < (int32_t)(sizeof result->points / sizeof result->points[0]));
        result->points[result->points_count++] = (point){estimate.time.step_s, estimate.memory.peak_bytes};
    }
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

static int by_time(const void *left, const void *right)
{
    const point *a = left;
    const point *b = right;
    int order = (a->step_s > b->step_s) - (a->step_s < b->step_s);
    return order != 0 ? order : (a->peak_bytes > b->peak_bytes) - (a->peak_bytes < b->peak_bytes);
}

/* What no layout beats in both: sorted by time, each that is smaller than all before it. */
static void check_front(const char *what)
{
    nd_search_options options = nd_search_options_default();
    options.front = true;
    nd_plan_list list = search_with(NULL, &options);
    int32_t found = 0;
    double least_bytes = HUGE_VAL;
    qsort(direct.points, (size_t)direct.points_count, sizeof direct.points[0], by_time);
    for (int32_t i = 0; i < direct.points_count; i++) {
        if (direct.points[i].peak_bytes >= least_bytes) {
            continue;
        }
        least_bytes = direct.points[i].peak_bytes;
        const nd_estimate *estimate = found < list.count ? &list.plans[found].estimate : NULL;
        bool same = estimate != NULL && estimate->time.step_s == direct.points[i].step_s &&
                    estimate->memory.peak_bytes == direct.points[i].peak_bytes;
        CU_ASSERT_TRUE(same);
        if (!same) {
            printf("%s: point %d of the front is lost\n", what, (int)found);
            break;
        }
        found++;
    }
    CU_ASSERT_EQUAL(list.count, found);
    CU_ASSERT_EQUAL(list.fitting + rejected(&list), list.searched);
    nd_plan_list_free(&list);
}

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
    check_front(stack);
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

/* Times by simulation: what the search keeps beside the front of the closed form has all of the front. */
static void test_the_front_is_complete_when_pipelines_are_simulated(void)
{
    static const struct {
        const char *model, *cluster, *stack;
        int64_t batch;
        double memory_frac;
    } cases[] = {
        {fixture_dense, "1x8xh100", "ndplan", 32, 0.06},
        {fixture_dense, "1x8xh100", "megatron", 16, 1.0},
        {fixture_moe, "1x4xh100", "ndplan", 16, 0.08},
        {"llama-3.1-8b", "1x4xh100", "ndplan", 16, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_init(&fixture, cases[i].model, cases[i].cluster, cases[i].stack, 4096, cases[i].batch);
        fixture.cluster.gpu.memory_bytes = (int64_t)((double)fixture.cluster.gpu.memory_bytes * cases[i].memory_frac);
        fixture_refresh(&fixture);
        fixture.context.simulates = true;
        direct_meshes(&direct);
        check_front(cases[i].stack);
    }
}

static void expect_same(const nd_plan_list *every, const nd_plan_list *pruned, const nd_search_options *options,
                        const char *what)
{
    CU_ASSERT_EQUAL(every->count, pruned->count);
    CU_ASSERT_EQUAL(every->searched, pruned->searched);
    for (int32_t i = 0; i < every->count && i < pruned->count; i++) {
        char text[2][256];
        (void)nd_layout_format(&every->plans[i].layout, text[0], sizeof text[0]);
        (void)nd_layout_format(&pruned->plans[i].layout, text[1], sizeof text[1]);
        if (strcmp(text[0], text[1]) != 0) {
            printf("%s, top %d, #%d: %s (%g s), pruned %s (%g s)\n", what, (int)options->top, (int)(i + 1), text[0],
                   every->plans[i].estimate.time.step_s, text[1], pruned->plans[i].estimate.time.step_s);
        }
        CU_ASSERT_STRING_EQUAL(text[0], text[1]);
    }
    CU_ASSERT_EQUAL(every->has_closest, pruned->has_closest);
    CU_ASSERT_EQUAL(every->closest.estimate.memory.peak_bytes, pruned->closest.estimate.memory.peak_bytes);
    CU_ASSERT_EQUAL(every->fitting > 0, pruned->fitting > 0);
}

static bool has_safe(const nd_plan_list *list)
{
    bool safe = false;
    for (int32_t i = 0; i < list->count; i++) {
        safe = safe || list->plans[i].estimate.memory.verdict == ND_VERDICT_FITS;
    }
    return safe;
}

/* What is left out when only that is asked changes nothing about whether something fits, and surely. */
static void expect_same_answer(const nd_framework *framework, nd_search_options options, const nd_plan_list *every)
{
    options.plans_only = true;
    options.until_sure = true;
    for (int any = 0; any < 2; any++) {
        options.any_closest = any == 1;
        nd_plan_list quick = search_with(framework, &options);
        CU_ASSERT_EQUAL(quick.fitting > 0, every->fitting > 0);
        CU_ASSERT_EQUAL(has_safe(&quick), has_safe(every));
        CU_ASSERT_EQUAL(quick.has_closest, every->has_closest);
        if (options.any_closest && quick.has_closest) {
            CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, framework, &quick.closest.layout, NULL, NULL));
        } else {
            CU_ASSERT_EQUAL(quick.closest.estimate.memory.peak_bytes, every->closest.estimate.memory.peak_bytes);
        }
        nd_plan_list_free(&quick);
    }
}

static void expect_same_plans(const nd_framework *framework, nd_search_options options, const char *what)
{
    options.exhaustive = true;
    nd_plan_list every = search_with(framework, &options);
    options.exhaustive = false;
    nd_plan_list pruned = search_with(framework, &options);
    options.plans_only = true;
    nd_plan_list uncounted = search_with(framework, &options);
    expect_same(&every, &pruned, &options, what);
    expect_same(&every, &uncounted, &options, what);
    CU_ASSERT_EQUAL(uncounted.fitting, pruned.fitting);
    if (options.top > 1 && !options.include_unfit) {
        expect_same_answer(framework, options, &every);
    }
    nd_plan_list_free(&every);
    nd_plan_list_free(&pruned);
    nd_plan_list_free(&uncounted);
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

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_search_finds_what_plain_loops_find),
        ND_TEST(test_the_front_is_complete_when_pipelines_are_simulated),
        ND_TEST(test_bounds_lose_no_plan),
        ND_TEST(test_the_memory_objective_ranks_by_memory),
        {NULL, NULL},
    };
    return nd_test_main("planner.search_exact", cases);
}
