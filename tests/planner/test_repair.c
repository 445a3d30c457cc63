/* A layout that breaks rules is led to one that breaks none, and every rule on the way is named. */
#include "planner/repair.h"

#include <string.h>

#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* large: not on the stack */
static nd_repair repair;

static void repair_of(const nd_framework *framework, const char *text)
{
    nd_error err;
    uint32_t given = 0;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, &given, &err));
    nd_layout_repair(&fixture.context, framework, &layout, given, &repair);
}

/* The repaired layout is legal in the training that the repair chose. */
static void expect_legal(const nd_framework *framework)
{
    static planner_fixture changed;
    CU_ASSERT_TRUE_FATAL(repair.found);
    changed = fixture;
    changed.train = repair.train;
    fixture_refresh(&changed);
    CU_ASSERT_TRUE(nd_layout_allowed(&changed.context, framework, &repair.layout, NULL, NULL));
    CU_ASSERT_EQUAL(nd_layout_ranks(&repair.layout), fixture.cluster.gpus);
    for (int32_t i = 0; i < repair.count; i++) {
        CU_ASSERT_PTR_NOT_NULL(repair.steps[i].refusal.rule);
        CU_ASSERT_TRUE(repair.steps[i].change[0] != '\0');
    }
}

static void expect_step(int32_t index, const char *rule, const char *change)
{
    CU_ASSERT_TRUE_FATAL(index < repair.count);
    CU_ASSERT_STRING_EQUAL(repair.steps[index].refusal.rule, rule);
    CU_ASSERT_STRING_EQUAL(repair.steps[index].change, change);
}

static void test_a_legal_layout_needs_nothing(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    repair_of(NULL, "dp_shard=8,sharding=zero3,grad_accum=2");
    CU_ASSERT_EQUAL(repair.count, 0);
    CU_ASSERT_FALSE(repair.found);
}

static void test_missing_degrees_go_to_dp_shard(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    repair_of(NULL, "tp=2,sp=on");
    CU_ASSERT_EQUAL(repair.count, 1);
    expect_step(0, "ranks-equal-gpus", "dp_shard=4,grad_accum=4,sharding=zero3");
    expect_legal(NULL);
}

static void test_a_degree_that_no_gpus_divide_is_lowered(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    repair_of(NULL, "tp=3,dp_shard=2,sharding=zero3,sp=on");
    CU_ASSERT_EQUAL(repair.count, 1);
    CU_ASSERT_STRING_EQUAL(repair.steps[0].refusal.rule, "ranks-equal-gpus");
    expect_legal(NULL);
    CU_ASSERT_TRUE(repair.layout.size[ND_AXIS_TP] < 3);
}

static void test_every_broken_rule_is_named(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    repair_of(NULL, "dp_shard=8,sharding=none,ep=2,vpp=3,grad_accum=2");
    CU_ASSERT_EQUAL(repair.count, 3);
    expect_step(0, "ep-needs-experts", "ep=1");
    expect_legal(NULL);
    CU_ASSERT_EQUAL(repair.layout.vpp, 1);
}

static void test_the_batch_keeps_when_the_micro_batch_can_shrink(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    repair_of(NULL, "dp_shard=8,sharding=zero3,micro_batch=3");
    expect_legal(NULL);
    CU_ASSERT_EQUAL(repair.count, 1);
    expect_step(0, "global-batch", "micro_batch=2");
    CU_ASSERT_EQUAL(repair.train.global_batch_seqs, 16);
}

static void test_another_batch_where_no_micro_batch_divides(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 12);
    repair_of(NULL, "dp_shard=8,sharding=zero3");
    CU_ASSERT_EQUAL(repair.count, 1);
    CU_ASSERT_STRING_EQUAL(repair.steps[0].refusal.rule, "global-batch");
    expect_legal(NULL);
    CU_ASSERT_EQUAL(repair.train.global_batch_seqs % 8, 0);
}

static void test_the_framework_speaks_first(void)
{
    nd_error err;
    const nd_framework *accelerate = NULL;
    ND_ASSERT_OK(nd_framework_find("accelerate", &accelerate, &err));
    fixture_init(&fixture, fixture_dense, "1x8xh100", accelerate->stack, 4096, 16);
    repair_of(accelerate, "pp=2,tp=2,dp_shard=2,sharding=zero3,sp=on,grad_accum=8");
    CU_ASSERT_STRING_EQUAL(repair.steps[0].refusal.rule, "accelerate.no-pp");
    expect_legal(accelerate);
}

/* Sequence parallelism that the user did not write is settled, not held against the layout. */
static void test_what_nobody_wrote_is_no_broken_rule(void)
{
    nd_error err;
    const nd_framework *accelerate = NULL;
    nd_layout layout = nd_layout_single();
    uint32_t given = 0;
    ND_ASSERT_OK(nd_framework_find("accelerate", &accelerate, &err));
    fixture_init(&fixture, fixture_dense, "1x8xh100", accelerate->stack, 4096, 16);
    ND_ASSERT_OK(nd_layout_parse("pp=2,tp=2,dp_shard=2,sharding=zero3", &layout, &given, &err));
    layout.sequence_parallel = true; /* as the command line assumes */
    layout.grad_accum = 8;
    nd_layout_repair(&fixture.context, accelerate, &layout, given, &repair);
    CU_ASSERT_EQUAL(repair.count, 1);
    CU_ASSERT_FALSE(repair.layout.sequence_parallel);
    expect_legal(accelerate);
}

static void test_every_repair_is_legal(void)
{
    static const char *const layouts[] = {
        "tp=16,dp_shard=2,sharding=zero3",
        "pp=16",
        "cp=3,dp_shard=5",
        "pp=2,dp_shard=4,vpp=5",
        "dp_replicate=3",
        "cp=8,tp=8",
        "ep=8,dp_shard=8",
        "recompute=every:99,dp_shard=8",
        "schedule=zero_bubble,dp_shard=8",
        "micro_batch=7",
        "pp=2,tp=2,cp=2,vpp=2,grad_accum=3",
    };
    fixture_init(&fixture, fixture_moe, "1x8xh100", "ndplan", 4096, 16);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        repair_of(NULL, layouts[i]);
        if (repair.count > 0) {
            expect_legal(NULL);
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_a_legal_layout_needs_nothing),
        ND_TEST(test_missing_degrees_go_to_dp_shard),
        ND_TEST(test_a_degree_that_no_gpus_divide_is_lowered),
        ND_TEST(test_every_broken_rule_is_named),
        ND_TEST(test_the_batch_keeps_when_the_micro_batch_can_shrink),
        ND_TEST(test_another_batch_where_no_micro_batch_divides),
        ND_TEST(test_the_framework_speaks_first),
        ND_TEST(test_what_nobody_wrote_is_no_broken_rule),
        ND_TEST(test_every_repair_is_legal),
        {NULL, NULL},
    };
    return nd_test_main("planner.repair", cases);
}
