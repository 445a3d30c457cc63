/* Searches over cluster sizes: against one search for each size, by hand. */
#include <math.h>
#include <string.h>

#include "planner/scale.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;
static nd_run_spec run;

static nd_scale_list scale_search(nd_scale_goal goal, int32_t top)
{
    nd_error err;
    nd_scale_list list;
    nd_scale_options options = {.goal = goal, .search = nd_search_options_default(), .run = &run};
    memset(&list, 0, sizeof list);
    options.search.top = top;
    ND_ASSERT_OK(nd_scale_search(&fixture.context, NULL, &options, &list, &err));
    return list;
}

/* The best 1000 layouts of one size. */
static nd_plan_list all_of(int64_t gpus, nd_objective objective)
{
    nd_error err;
    nd_cluster_spec cluster;
    nd_plan_list list = {0};
    nd_search_options options = nd_search_options_default();
    nd_cost_context context = fixture.context;
    ND_ASSERT_OK(nd_scale_cluster(fixture.context.cluster, gpus, &cluster, &err));
    CU_ASSERT_EQUAL(cluster.gpus, gpus);
    context.cluster = &cluster;
    options.top = ND_PLANS_MAX;
    options.objective = objective;
    ND_ASSERT_OK(nd_search(&context, NULL, &options, &list, &err));
    return list;
}

static bool fits(const nd_plan *plan)
{
    return plan->estimate.memory.verdict == ND_VERDICT_FITS;
}

static double usd_of(const nd_plan *plan)
{
    nd_run_cost cost;
    nd_run_cost_of(&fixture.context, &plan->layout, &plan->estimate, &run, &cost);
    return cost.usd_per_million_tokens;
}

static void start(const char *model, const char *cluster, int64_t batch)
{
    fixture_init(&fixture, model, cluster, "ndplan", 4096, batch);
    run = nd_run_spec_default();
    run.price_usd_per_gpu_hour = 2.0;
}

static void sizes_ascend_to_the_whole_cluster(void)
{
    int64_t sizes[ND_SCALE_SIZES_MAX];
    static const int64_t of_five[] = {1, 2, 4, 8, 16, 24, 32, 40};
    static const char *const clusters[] = {"h100", "8xh100", "5x8xh100", "13x8xh100", "65536x8xh100", "1000x3xa100"};
    start("llama-3.1-8b", "5x8xh100", 64);
    CU_ASSERT_EQUAL_FATAL(nd_scale_sizes(&fixture.cluster, false, sizes), 8);
    CU_ASSERT_EQUAL(memcmp(sizes, of_five, sizeof of_five), 0);
    CU_ASSERT_EQUAL_FATAL(nd_scale_sizes(&fixture.cluster, true, sizes), 5);
    CU_ASSERT_EQUAL(sizes[0], 8);
    for (size_t c = 0; c < sizeof clusters / sizeof clusters[0]; c++) {
        nd_error err;
        nd_cluster_spec cluster;
        nd_cluster_spec part;
        ND_ASSERT_OK(nd_cluster_load(clusters[c], &cluster, &err));
        int32_t count = nd_scale_sizes(&cluster, false, sizes);
        CU_ASSERT_TRUE_FATAL(count >= 1 && count <= ND_SCALE_SIZES_MAX);
        CU_ASSERT_EQUAL(sizes[count - 1], cluster.gpus);
        for (int32_t i = 0; i < count; i++) {
            CU_ASSERT_TRUE(i == 0 || (sizes[i] > sizes[i - 1] && sizes[i] <= 2 * sizes[i - 1]));
            ND_ASSERT_OK(nd_scale_cluster(&cluster, sizes[i], &part, &err));
            CU_ASSERT_EQUAL(part.gpus, sizes[i]);
        }
    }
}

static void the_cheapest_is_the_cheapest_of_all_sizes(void)
{
    start("llama-3.1-8b", "2x8xh100", 64);
    nd_scale_list list = scale_search(ND_SCALE_COST, 10);
    CU_ASSERT_TRUE_FATAL(list.plans.count > 1);
    CU_ASSERT_TRUE(fits(&list.plans.plans[0]));
    double least = HUGE_VAL;
    for (int32_t i = 0; i < list.sizes_count; i++) {
        nd_plan_list all = all_of(list.sizes[i].gpus, ND_OBJECTIVE_THROUGHPUT);
        for (int32_t k = 0; k < all.count; k++) {
            least = fits(&all.plans[k]) ? fmin(least, usd_of(&all.plans[k])) : least;
        }
        nd_plan_list_free(&all);
    }
    ND_ASSERT_REL(usd_of(&list.plans.plans[0]), least, 1e-12);
    for (int32_t i = 1; i < list.plans.count; i++) {
        const nd_plan *before = &list.plans.plans[i - 1];
        const nd_plan *plan = &list.plans.plans[i];
        CU_ASSERT_TRUE(fits(before) > fits(plan) || usd_of(before) <= usd_of(plan));
        CU_ASSERT_NOT_EQUAL(nd_layout_ranks(&before->layout), nd_layout_ranks(&plan->layout));
    }
    nd_plan_list_free(&list.plans);
}

static void a_list_of_one_is_the_head_of_a_longer_one(void)
{
    start("llama-3.1-8b", "4x8xh100", 64);
    nd_scale_list ten = scale_search(ND_SCALE_COST, 10);
    nd_scale_list one = scale_search(ND_SCALE_COST, 1);
    CU_ASSERT_EQUAL_FATAL(one.plans.count, 1);
    ND_ASSERT_REL(usd_of(&one.plans.plans[0]), usd_of(&ten.plans.plans[0]), 1e-12);
    nd_plan_list_free(&ten.plans);
    nd_plan_list_free(&one.plans);
}

static void no_plan_is_cheaper_than_the_bound(void)
{
    start("llama-3.1-8b", "4x8xh100", 64);
    nd_scale_list list = scale_search(ND_SCALE_COST, 100);
    for (int32_t i = 0; i < list.plans.count; i++) {
        const nd_plan *plan = &list.plans.plans[i];
        double bound = nd_scale_least_usd_per_million_tokens(&fixture.context, &run, nd_layout_ranks(&plan->layout));
        CU_ASSERT_TRUE(bound > 0.0 && bound < usd_of(plan));
    }
    nd_plan_list_free(&list.plans);
}

/* Where failures eat almost everything, larger clusters cannot win and are not searched. */
static void sizes_that_cannot_win_are_skipped(void)
{
    start("llama-3.1-8b", "16x8xh100", 128);
    run.failures_per_gpu_hour = 0.5;
    nd_scale_list list = scale_search(ND_SCALE_COST, 1);
    CU_ASSERT_EQUAL_FATAL(list.plans.count, 1);
    CU_ASSERT_FALSE(list.sizes[list.sizes_count - 1].searched);
    double least = usd_of(&list.plans.plans[0]);
    for (int32_t i = 0; i < list.sizes_count; i++) {
        if (!list.sizes[i].searched) {
            nd_plan_list all = all_of(list.sizes[i].gpus, ND_OBJECTIVE_THROUGHPUT);
            for (int32_t k = 0; k < all.count; k++) {
                CU_ASSERT_TRUE(!fits(&all.plans[k]) || usd_of(&all.plans[k]) > least);
            }
            nd_plan_list_free(&all);
        }
    }
    nd_plan_list_free(&list.plans);
}

static void fewest_gpus_is_the_first_size_that_surely_fits(void)
{
    start("llama-3.1-70b", "8x8xh100", 64);
    nd_scale_list list = scale_search(ND_SCALE_GPUS, 5);
    CU_ASSERT_TRUE_FATAL(list.plans.count > 1);
    int64_t answer = nd_layout_ranks(&list.plans.plans[0].layout);
    CU_ASSERT_TRUE(fits(&list.plans.plans[0]));
    int64_t may_fit = 0;
    for (int32_t i = 0; i < list.sizes_count && list.sizes[i].gpus < answer; i++) {
        nd_plan_list all = all_of(list.sizes[i].gpus, ND_OBJECTIVE_MEMORY);
        for (int32_t k = 0; k < all.count; k++) {
            CU_ASSERT_FALSE(fits(&all.plans[k]));
        }
        may_fit = all.count > 0 && may_fit == 0 ? list.sizes[i].gpus : may_fit;
        nd_plan_list_free(&all);
    }
    int64_t second = nd_layout_ranks(&list.plans.plans[1].layout);
    CU_ASSERT_EQUAL(second, may_fit > 0 ? may_fit : answer);
    nd_plan_list_free(&list.plans);
}

static void no_layout_fits_below_the_memory_bound(void)
{
    static const char *const models[] = {"llama-3.1-70b", "mixtral-8x7b", "llama-3.1-8b"};
    nd_search_options options = nd_search_options_default();
    for (size_t m = 0; m < 3; m++) {
        start(models[m], "8x8xh100", 64);
        int64_t least = nd_scale_least_gpus(&fixture.context, &options);
        CU_ASSERT_TRUE(least > 1 && least < 64);
        int64_t sizes[ND_SCALE_SIZES_MAX];
        int32_t count = nd_scale_sizes(&fixture.cluster, false, sizes);
        for (int32_t i = 0; i < count && sizes[i] < least; i++) {
            nd_plan_list all = all_of(sizes[i], ND_OBJECTIVE_MEMORY);
            CU_ASSERT_EQUAL(all.fitting, 0);
            nd_plan_list_free(&all);
        }
    }
    fixture.train.lora_rank = 16;
    fixture_refresh(&fixture);
    CU_ASSERT_EQUAL(nd_scale_least_gpus(&fixture.context, &options), 1);
}

static void no_plan_beats_the_front(void)
{
    start("llama-3.1-8b", "2x8xh100", 64);
    nd_scale_list list = scale_search(ND_SCALE_PARETO, ND_PLANS_MAX);
    CU_ASSERT_EQUAL(list.coarseness_frac, 0.0);
    CU_ASSERT_TRUE(list.plans.count > 3);
    for (int32_t i = 0; i < list.sizes_count; i++) {
        nd_plan_list all = all_of(list.sizes[i].gpus, ND_OBJECTIVE_THROUGHPUT);
        for (int32_t p = 0; p < list.plans.count; p++) {
            const nd_plan *plan = &list.plans.plans[p];
            const nd_plan *fastest = &all.plans[0];
            bool roomy = all.count > 0 && fastest->estimate.memory.peak_bytes <= plan->estimate.memory.peak_bytes &&
                         list.sizes[i].gpus <= nd_layout_ranks(&plan->layout);
            CU_ASSERT_TRUE(!roomy || fastest->estimate.time.step_s >= plan->estimate.time.step_s);
        }
        nd_plan_list_free(&all);
    }
    nd_plan_list_free(&list.plans);
}

static void where_nothing_fits_the_closest_is_said(void)
{
    start("llama-3.1-405b", "8xh100", 64);
    nd_scale_list list = scale_search(ND_SCALE_GPUS, 10);
    CU_ASSERT_EQUAL(list.plans.count, 0);
    CU_ASSERT_EQUAL(list.plans.fitting, 0);
    CU_ASSERT_TRUE(list.plans.has_closest);
    CU_ASSERT_TRUE(list.sizes[list.sizes_count - 1].searched);
    CU_ASSERT_FALSE(list.sizes[0].searched);
    nd_plan_list_free(&list.plans);
}

/* dp_shard=8 leaves 1, 2 and 4 GPUs no layout; that is no failure. With tp=3 all sizes are refused. */
static void pins_only_matter_when_no_size_obeys_them(void)
{
    nd_error err;
    nd_scale_list list;
    nd_scale_options options = {.goal = ND_SCALE_GPUS, .search = nd_search_options_default()};
    start("llama-3.1-8b", "2x8xh100", 64);
    ND_ASSERT_OK(nd_layout_parse("dp_shard=8", &options.search.pin, &options.search.pinned, &err));
    ND_ASSERT_OK(nd_scale_search(&fixture.context, NULL, &options, &list, &err));
    CU_ASSERT_TRUE(list.plans.count > 0);
    CU_ASSERT_EQUAL(list.plans.plans[0].layout.size[ND_AXIS_DP_SHARD], 8);
    nd_plan_list_free(&list.plans);
    ND_ASSERT_OK(nd_layout_parse("tp=3", &options.search.pin, &options.search.pinned, &err));
    CU_ASSERT_EQUAL(nd_scale_search(&fixture.context, NULL, &options, &list, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "tp");
    ND_ASSERT_CONTAINS(err.message, "16");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(sizes_ascend_to_the_whole_cluster),
        ND_TEST(the_cheapest_is_the_cheapest_of_all_sizes),
        ND_TEST(a_list_of_one_is_the_head_of_a_longer_one),
        ND_TEST(no_plan_is_cheaper_than_the_bound),
        ND_TEST(sizes_that_cannot_win_are_skipped),
        ND_TEST(fewest_gpus_is_the_first_size_that_surely_fits),
        ND_TEST(no_layout_fits_below_the_memory_bound),
        ND_TEST(no_plan_beats_the_front),
        ND_TEST(where_nothing_fits_the_closest_is_said),
        ND_TEST(pins_only_matter_when_no_size_obeys_them),
        {NULL, NULL},
    };
    return nd_test_main("planner.scale", cases);
}
