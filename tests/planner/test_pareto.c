/* The front of step time, memory and GPUs, against its definition. */
#include <stdlib.h>
#include <string.h>

#include "planner/pareto.h"
#include "tests/nd_test.h"

enum { PLANS = 300 };

static nd_plan plan_of(double step_s, double peak_bytes, int32_t gpus)
{
    nd_plan plan = {.layout = nd_layout_single()};
    plan.layout.size[ND_AXIS_DP_SHARD] = gpus;
    plan.estimate.time.step_s = step_s;
    plan.estimate.memory.peak_bytes = peak_bytes;
    return plan;
}

static uint32_t state = 1;

/* 1 to `most`, the same sequence on every run. */
static int32_t draw(int32_t most)
{
    state = state * 1664525u + 1013904223u;
    return (int32_t)(state >> 8) % most + 1;
}

static void fill(nd_plan *plans, int32_t count)
{
    state = 1;
    for (int32_t i = 0; i < count; i++) {
        int32_t gpus = draw(8); /* one after the other: compilers differ in the order of arguments */
        double peak_bytes = (double)draw(50);
        double step_s = (double)draw(50);
        plans[i] = plan_of(step_s, peak_bytes, gpus);
    }
}

static bool beats(const nd_plan *a, const nd_plan *b)
{
    double step = a->estimate.time.step_s - b->estimate.time.step_s;
    double peak = a->estimate.memory.peak_bytes - b->estimate.memory.peak_bytes;
    int64_t gpus = nd_layout_ranks(&a->layout) - nd_layout_ranks(&b->layout);
    return step <= 0.0 && peak <= 0.0 && gpus <= 0 && (step < 0.0 || peak < 0.0 || gpus < 0);
}

static bool same(const nd_plan *a, const nd_plan *b)
{
    return !beats(a, b) && !beats(b, a) && a->estimate.time.step_s == b->estimate.time.step_s &&
           a->estimate.memory.peak_bytes == b->estimate.memory.peak_bytes;
}

static void the_front_is_what_nothing_beats(void)
{
    static nd_plan all[PLANS], kept[PLANS];
    nd_error err;
    int32_t count = PLANS;
    double coarseness = -1.0;
    fill(all, PLANS);
    memcpy(kept, all, sizeof all);
    ND_ASSERT_OK(nd_pareto_front(kept, &count, PLANS, &coarseness, &err));
    CU_ASSERT_EQUAL(coarseness, 0.0);
    CU_ASSERT_TRUE(count > 5 && count < PLANS);
    for (int32_t i = 0; i < PLANS; i++) {
        bool beaten = false;
        bool listed = false;
        for (int32_t k = 0; k < PLANS; k++) {
            beaten = beaten || beats(&all[k], &all[i]);
        }
        for (int32_t k = 0; k < count; k++) {
            listed = listed || same(&kept[k], &all[i]);
        }
        CU_ASSERT_EQUAL(listed, !beaten);
    }
}

static void the_front_is_sorted_and_does_not_depend_on_the_order(void)
{
    static nd_plan one[PLANS], other[PLANS];
    nd_error err;
    int32_t count = PLANS;
    int32_t other_count = PLANS;
    double coarseness = 0.0;
    fill(one, PLANS);
    for (int32_t i = 0; i < PLANS; i++) {
        other[i] = one[PLANS - 1 - i];
    }
    ND_ASSERT_OK(nd_pareto_front(one, &count, PLANS, &coarseness, &err));
    ND_ASSERT_OK(nd_pareto_front(other, &other_count, PLANS, &coarseness, &err));
    CU_ASSERT_EQUAL_FATAL(count, other_count);
    for (int32_t i = 0; i < count; i++) {
        CU_ASSERT_TRUE(same(&one[i], &other[i]));
        CU_ASSERT_TRUE(i == 0 || one[i - 1].estimate.time.step_s <= one[i].estimate.time.step_s);
    }
}

static void a_thinned_front_leaves_out_only_what_is_near(void)
{
    static nd_plan front[PLANS], thin[PLANS];
    for (int32_t limit = 1; limit < 12; limit++) {
        nd_error err;
        int32_t count = PLANS;
        double coarseness = 0.0;
        fill(front, PLANS);
        ND_ASSERT_OK(nd_pareto_front(front, &count, PLANS, &coarseness, &err));
        int32_t kept = count;
        memcpy(thin, front, sizeof front);
        ND_ASSERT_OK(nd_pareto_front(thin, &kept, limit, &coarseness, &err));
        CU_ASSERT_TRUE(kept >= 1 && kept <= limit);
        CU_ASSERT_EQUAL(coarseness > 0.0, count > limit);
        for (int32_t i = 0; i < count; i++) {
            bool near = false;
            for (int32_t k = 0; k < kept; k++) {
                nd_plan better = front[i];
                better.estimate.time.step_s *= 1.0 + coarseness;
                better.estimate.memory.peak_bytes *= 1.0 + coarseness;
                near = near || (thin[k].estimate.time.step_s <= better.estimate.time.step_s &&
                                thin[k].estimate.memory.peak_bytes <= better.estimate.memory.peak_bytes &&
                                (double)nd_layout_ranks(&thin[k].layout) <=
                                    (1.0 + coarseness) * (double)nd_layout_ranks(&front[i].layout));
            }
            CU_ASSERT_TRUE(near);
        }
    }
}

static void nothing_has_an_empty_front(void)
{
    nd_error err;
    int32_t count = 0;
    double coarseness = 1.0;
    ND_ASSERT_OK(nd_pareto_front(NULL, &count, 10, &coarseness, &err));
    CU_ASSERT_EQUAL(count, 0);
    CU_ASSERT_EQUAL(coarseness, 0.0);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(the_front_is_what_nothing_beats),
        ND_TEST(the_front_is_sorted_and_does_not_depend_on_the_order),
        ND_TEST(a_thinned_front_leaves_out_only_what_is_near),
        ND_TEST(nothing_has_an_empty_front),
        {NULL, NULL},
    };
    return nd_test_main("planner.pareto", cases);
}
