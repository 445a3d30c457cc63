/* A sweep is a search at each value, and says what changed between them. */
#include <math.h>
#include <string.h>

#include "planner/sweep.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;
static nd_sweep_point points[ND_SWEEP_POINTS_MAX];
static double values[ND_SWEEP_POINTS_MAX];

static nd_task task_of(void)
{
    return (nd_task){.context = &fixture.context, .pin = nd_layout_single(), .batch_given = true};
}

/* The first plan of a search of ten, as `ndplan suggest` makes it. */
static nd_plan first_of_search(const nd_task *task, const nd_point *point)
{
    nd_error err;
    nd_cost_context context;
    nd_plan_list list = {0};
    nd_plan first = {.layout = nd_layout_single()};
    nd_search_options options = nd_search_options_default();
    ND_ASSERT_OK(nd_point_context(task, point, &context, &err));
    ND_ASSERT_OK(nd_search(&context, NULL, &options, &list, &err));
    CU_ASSERT_TRUE_FATAL(list.count > 0);
    first = list.plans[0];
    nd_plan_list_free(&list);
    return first;
}

static void check_points(const nd_task *task, int32_t count)
{
    const nd_sweep_point *first = NULL;
    for (int32_t i = 0; i < count; i++) {
        if (!points[i].point.fits) {
            continue;
        }
        first = first != NULL ? first : &points[i];
        nd_plan plan = first_of_search(task, &points[i].point);
        CU_ASSERT_EQUAL(memcmp(plan.layout.size, points[i].point.best.layout.size, sizeof plan.layout.size), 0);
        CU_ASSERT_EQUAL(plan.layout.micro_batch, points[i].point.best.layout.micro_batch);
        ND_ASSERT_REL(points[i].point.best.estimate.time.step_s, plan.estimate.time.step_s, 1e-12);
        ND_ASSERT_REL(points[i].efficiency_frac,
                      plan.estimate.tokens_per_s_per_gpu / first->point.best.estimate.tokens_per_s_per_gpu, 1e-12);
    }
    CU_ASSERT_PTR_NOT_NULL(first);
}

static int32_t sweep(nd_sweep_quantity quantity, nd_sweep_range range)
{
    nd_error err;
    int32_t count = 0;
    nd_task task = task_of();
    ND_ASSERT_OK(nd_sweep_values(&fixture.cluster, quantity, &range, values, &count, &err));
    ND_ASSERT_OK(nd_sweep_run(&task, quantity, values, count, points, &err));
    check_points(&task, count);
    return count;
}

static void test_each_point_is_what_suggest_puts_first(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 4096, 64);
    int32_t count = sweep(ND_SWEEP_GPUS, (nd_sweep_range){1, 64, 0});
    CU_ASSERT_EQUAL(count, 7);
    CU_ASSERT_FALSE(points[0].point.fits); /* one GPU does not hold its states */
    CU_ASSERT_TRUE(points[0].point.has_closest);
    CU_ASSERT_EQUAL(points[6].point.cluster.nodes, 8);
    CU_ASSERT_EQUAL(points[2].point.cluster.gpus_per_node, 4);
    (void)sweep(ND_SWEEP_SEQ_LEN, (nd_sweep_range){4096, 16384, 0});
    (void)sweep(ND_SWEEP_GLOBAL_BATCH, (nd_sweep_range){16, 64, 0});
    (void)sweep(ND_SWEEP_NIC, (nd_sweep_range){12.5e9, 400e9, 3});
    (void)sweep(ND_SWEEP_NVLINK_DOMAIN, (nd_sweep_range){0, 0, 0});
    CU_ASSERT_EQUAL(points[0].point.cluster.nvlink_domain, 2);
}

static void test_changes_name_what_changed(void)
{
    nd_error err;
    nd_task task = task_of();
    const double gpus[] = {8, 16, 32};
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 4096, 128);
    task.context = &fixture.context;
    ND_ASSERT_OK(
        nd_layout_parse("pp=1,tp=1,cp=1,micro_batch=1,sharding=zero2,recompute=full", &task.pin, &task.pinned, &err));
    ND_ASSERT_OK(nd_sweep_run(&task, ND_SWEEP_GPUS, gpus, 3, points, &err));
    for (int32_t i = 0; i < 3; i++) { /* only data parallelism follows the GPUs */
        CU_ASSERT_TRUE(points[i].point.fits);
        CU_ASSERT_FALSE(points[i].changed);
        CU_ASSERT_STRING_EQUAL(points[i].changes, "");
    }
    const double tokens[] = {2048, 65536};
    task.pinned = 0;
    ND_ASSERT_OK(nd_sweep_run(&task, ND_SWEEP_SEQ_LEN, tokens, 2, points, &err));
    CU_ASSERT_FALSE(points[0].changed);
    CU_ASSERT_TRUE(points[1].changed);
    CU_ASSERT_TRUE(strlen(points[1].changes) > 0);
}

static void test_faster_networks_are_never_slower(void)
{
    fixture_init(&fixture, "llama-3.1-70b", "4x8xh100", "ndplan", 4096, 32);
    int32_t count = sweep(ND_SWEEP_NIC, (nd_sweep_range){2.5e9, 400e9, 6});
    for (int32_t i = 0; i < count; i++) {
        ND_ASSERT_REL(points[i].point.cluster.nic_bytes_per_s, values[i], 1e-12);
        CU_ASSERT_TRUE(i == 0 || points[i].point.best.estimate.memory.verdict != ND_VERDICT_FITS ||
                       points[i].point.best.estimate.time.step_s <=
                           (1.0 + 1e-9) * points[i - 1].point.best.estimate.time.step_s ||
                       points[i - 1].point.best.estimate.memory.verdict == ND_VERDICT_BORDERLINE);
    }
}

static void test_values_double_round_and_end_where_asked(void)
{
    nd_error err;
    int32_t count = 0;
    nd_sweep_range range = {8, 100, 0};
    fixture_init(&fixture, fixture_dense, "4x8xh100", "ndplan", 2048, 32);
    range.to = 96;
    ND_ASSERT_OK(nd_sweep_values(&fixture.cluster, ND_SWEEP_GPUS, &range, values, &count, &err));
    static const double nodes[] = {8, 16, 32, 64, 96};
    CU_ASSERT_EQUAL_FATAL(count, 5);
    CU_ASSERT_EQUAL(memcmp(values, nodes, sizeof nodes), 0);
    range = (nd_sweep_range){1024, 16384, 4};
    ND_ASSERT_OK(nd_sweep_values(NULL, ND_SWEEP_SEQ_LEN, &range, values, &count, &err));
    CU_ASSERT_EQUAL_FATAL(count, 4);
    CU_ASSERT_EQUAL(values[1], 2560.0); /* 1024 x 2^(4/3) = 2580, in steps of 128 */
    CU_ASSERT_EQUAL(values[3], 16384.0);
    range = (nd_sweep_range){0, 0, 0};
    for (int quantity = 0; quantity < ND_SWEEP_QUANTITY_COUNT; quantity++) {
        ND_ASSERT_OK(nd_sweep_values(&fixture.cluster, (nd_sweep_quantity)quantity, &range, values, &count, &err));
        CU_ASSERT_TRUE(count >= 4);
    }
    range = (nd_sweep_range){16, 8, 0};
    CU_ASSERT_EQUAL(nd_sweep_values(&fixture.cluster, ND_SWEEP_GPUS, &range, values, &count, &err), ND_EINVAL);
}

static void test_values_that_no_cluster_has_are_refused_before_a_search(void)
{
    nd_error err;
    nd_task task = task_of();
    const double gpus[] = {8, 12};
    const double one[] = {8};
    fixture_init(&fixture, fixture_dense, "4x8xh100", "ndplan", 2048, 32);
    task.context = &fixture.context;
    memset(points, 0, sizeof points);
    CU_ASSERT_EQUAL(nd_sweep_run(&task, ND_SWEEP_GPUS, gpus, 2, points, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nearest: 8 or 16");
    CU_ASSERT_EQUAL(points[0].value, 0.0);
    ND_ASSERT_OK(nd_layout_parse("tp=3", &task.pin, &task.pinned, &err));
    CU_ASSERT_EQUAL(nd_sweep_run(&task, ND_SWEEP_GPUS, one, 1, points, &err), ND_EINVAL);
    task = task_of();
    task.batch_tokens = 65536;
    const double odd[] = {3000};
    CU_ASSERT_EQUAL(nd_sweep_run(&task, ND_SWEEP_SEQ_LEN, odd, 1, points, &err), ND_EINVAL);
}

static void test_a_batch_in_tokens_stays(void)
{
    nd_error err;
    nd_cluster_spec cluster;
    nd_train_spec train;
    fixture_init(&fixture, fixture_dense, "8xh100", "ndplan", 2048, 32);
    nd_task task = task_of();
    task.batch_tokens = 65536;
    ND_ASSERT_OK(nd_sweep_inputs(&task, ND_SWEEP_SEQ_LEN, 4096.0, &cluster, &train, &err));
    CU_ASSERT_EQUAL(train.global_batch_seqs, 16);
    task.batch_tokens = 0;
    ND_ASSERT_OK(nd_sweep_inputs(&task, ND_SWEEP_SEQ_LEN, 4096.0, &cluster, &train, &err));
    CU_ASSERT_EQUAL(train.global_batch_seqs, 32);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_each_point_is_what_suggest_puts_first),
        ND_TEST(test_changes_name_what_changed),
        ND_TEST(test_faster_networks_are_never_slower),
        ND_TEST(test_values_double_round_and_end_where_asked),
        ND_TEST(test_values_that_no_cluster_has_are_refused_before_a_search),
        ND_TEST(test_a_batch_in_tokens_stays),
        {NULL, NULL},
    };
    return nd_test_main("planner/sweep", cases);
}
