/* The terms of a comparison add up to the gap, and their factors multiply to the ratio of the steps. */
#include "planner/comparison.h"

#include <math.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* large: not on the stack */
static nd_comparison comparison;

static nd_layout parse(const char *text)
{
    nd_error err;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    return layout;
}

static void compare(const char *asked, const char *other)
{
    nd_layout a = parse(asked);
    nd_layout b = parse(other);
    nd_train_spec train = fixture.train;
    nd_cost_context context = fixture.context;
    train.global_batch_seqs = nd_layout_global_batch_seqs(&b);
    context.train = &train;
    nd_compare_layouts(&fixture.context, &a, &context, &b, &comparison);
}

static void expect_terms_to_add_up(void)
{
    double lost = 0.0;
    double factor = 1.0;
    double explained = 0.0;
    for (int32_t i = 0; i < comparison.count; i++) {
        const nd_gap_term *term = &comparison.terms[i];
        CU_ASSERT_EQUAL(term->lost_s, term->slower_s - term->faster_s);
        CU_ASSERT_TRUE(i == 0 || comparison.terms[i - 1].lost_s >= term->lost_s);
        lost += term->lost_s;
        factor *= term->factor_frac;
        explained += i < comparison.explaining ? term->lost_s : 0.0;
    }
    double step = comparison.slower.step_s;
    CU_ASSERT_TRUE(fabs(lost - comparison.lost_s) <= 1e-9 * step); /* additions of doubles */
    ND_ASSERT_REL(factor, step / comparison.faster.step_s, 1e-9);
    CU_ASSERT_TRUE(comparison.lost_s >= 0.0);
    CU_ASSERT_TRUE(comparison.explaining == 0 || explained >= 0.9 * comparison.lost_s);
}

static void test_terms_add_up_to_the_gap(void)
{
    static const char *const layouts[] = {
        "dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero3",
        "dp_shard=2,tp=8,sp=on,micro_batch=2,grad_accum=16,sharding=zero1,recompute=full",
        "pp=4,dp_shard=4,micro_batch=1,grad_accum=16,sharding=zero1,recompute=every:2",
        "dp_shard=4,cp=4,micro_batch=1,grad_accum=16,sharding=zero3,offload=optimizer",
    };
    enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    for (int i = 0; i < LAYOUTS; i++) {
        for (int j = 0; j < LAYOUTS; j++) {
            compare(layouts[i], layouts[j]);
            expect_terms_to_add_up();
            CU_ASSERT_TRUE(i != j || comparison.explaining == 0);
            for (int32_t t = 0; t < comparison.count; t++) { /* every part of the step has a name */
                CU_ASSERT_STRING_NOT_EQUAL(comparison.terms[t].key, "other_s");
            }
        }
    }
}

static void test_the_asked_side_is_known_either_way(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    const char *none = "dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero3";
    const char *full = "dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero3,recompute=full";
    compare(full, none);
    CU_ASSERT_TRUE(comparison.slower.was_asked);
    CU_ASSERT_STRING_EQUAL(comparison.terms[0].key, "recompute_s");
    double lost = comparison.lost_s;
    compare(none, full);
    CU_ASSERT_FALSE(comparison.slower.was_asked);
    CU_ASSERT_TRUE(comparison.faster.was_asked);
    CU_ASSERT_EQUAL(comparison.lost_s, lost);
}

/* The same work with half the batch is neither twice as fast nor slow: times are for equal tokens. */
static void test_another_batch_is_scaled(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    compare("dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero3",
            "dp_shard=16,micro_batch=1,grad_accum=2,sharding=zero3");
    CU_ASSERT_EQUAL(comparison.batch_factor, 2.0);
    expect_terms_to_add_up();
    CU_ASSERT_TRUE(comparison.slower.step_s / comparison.faster.step_s < 1.2);
}

static void test_the_collective_behind_a_term(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    compare("dp_shard=2,tp=8,sp=on,micro_batch=1,grad_accum=32,sharding=zero3",
            "dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero3");
    const nd_comm_line *line = nd_comm_largest_of(&comparison.slower.comm, "exposed_tp_s");
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    CU_ASSERT_EQUAL(line->group_kind, ND_GROUP_TP);
    CU_ASSERT_PTR_NULL(nd_comm_largest_of(&comparison.slower.comm, "exposed_pp_s"));
    CU_ASSERT_PTR_NULL(nd_comm_largest_of(&comparison.slower.comm, "gemm_s"));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_terms_add_up_to_the_gap),
        ND_TEST(test_the_asked_side_is_known_either_way),
        ND_TEST(test_another_batch_is_scaled),
        ND_TEST(test_the_collective_behind_a_term),
        {NULL, NULL},
    };
    return nd_test_main("planner.comparison", cases);
}
