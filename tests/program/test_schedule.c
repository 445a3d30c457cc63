/* Properties of the orders of all small pipelines; tests/cost_model/test_simulate.c runs their stages together. */
#include "program/schedule.h"

#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"

enum { MICRO_BATCHES_MAX = 20, VPP_MAX = 4, PASSES_MAX = 3 * MICRO_BATCHES_MAX * VPP_MAX };

static nd_layout pipeline(int32_t pp, int32_t vpp, int64_t micro_batches, nd_schedule schedule)
{
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_PP] = pp;
    layout.vpp = vpp;
    layout.grad_accum = micro_batches;
    layout.schedule = schedule;
    return layout;
}

static int32_t list_order(const nd_layout *layout, int32_t stage, nd_work_item out[PASSES_MAX])
{
    nd_work_order order = nd_work_order_start(layout, stage);
    int32_t count = 0;
    for (nd_work_item item = nd_work_order_next(&order); item.kind != ND_WORK_NONE; item = nd_work_order_next(&order)) {
        CU_ASSERT_TRUE_FATAL(count < PASSES_MAX);
        out[count++] = item;
        nd_work_order_done(&order, item.kind);
    }
    return count;
}

/* Place of a pass in the order; -1: not there, -2: there twice. */
static int32_t place_of(const nd_work_item *items, int32_t count, nd_work_kind kind, int32_t chunk, int64_t micro_batch)
{
    int32_t place = -1;
    for (int32_t i = 0; i < count; i++) {
        if (items[i].kind == kind && items[i].chunk == chunk && items[i].micro_batch == micro_batch) {
            place = place == -1 ? i : -2;
        }
    }
    return place;
}

/* Every pass is there exactly once, the forward pass before the backward pass before the weight gradients. */
static void check_order(const nd_layout *layout, int32_t stage)
{
    nd_work_item items[PASSES_MAX];
    bool apart = layout->schedule == ND_SCHEDULE_ZERO_BUBBLE;
    int32_t count = list_order(layout, stage, items);
    CU_ASSERT_EQUAL(count, layout->vpp * layout->grad_accum * (apart ? 3 : 2));
    for (int32_t chunk = 0; chunk < layout->vpp; chunk++) {
        for (int64_t m = 0; m < layout->grad_accum; m++) {
            int32_t forward = place_of(items, count, ND_WORK_FORWARD, chunk, m);
            int32_t backward = place_of(items, count, ND_WORK_BACKWARD, chunk, m);
            int32_t weights = place_of(items, count, ND_WORK_WEIGHT_GRADIENT, chunk, m);
            CU_ASSERT_TRUE(forward >= 0 && backward > forward);
            CU_ASSERT_TRUE(apart ? weights > backward : weights == -1);
        }
    }
}

static void test_every_pass_is_there_once_and_after_what_it_needs(void)
{
    for (int32_t pp = 1; pp <= 6; pp++) {
        for (int32_t stage = 0; stage < pp; stage++) {
            for (int64_t m = 1; m <= MICRO_BATCHES_MAX; m++) {
                for (int s = 0; s < ND_SCHEDULE_COUNT; s++) {
                    bool interleaved = s == ND_SCHEDULE_INTERLEAVED;
                    for (int32_t vpp = interleaved ? 2 : 1; vpp <= (interleaved ? VPP_MAX : 1); vpp++) {
                        nd_layout layout = pipeline(pp, vpp, m, (nd_schedule)s);
                        check_order(&layout, stage);
                    }
                }
            }
        }
    }
}

static void write_order(const nd_layout *layout, int32_t stage, char *out, size_t bytes)
{
    nd_work_item items[PASSES_MAX];
    int32_t count = list_order(layout, stage, items);
    size_t used = 0;
    for (int32_t i = 0; i < count && used < bytes; i++) {
        int written = snprintf(out + used, bytes - used, "%s%c%d", i > 0 ? " " : "", "FBW"[items[i].kind],
                               (int)items[i].micro_batch);
        used += written > 0 ? (size_t)written : 0;
    }
}

static void expect_order(nd_schedule schedule, int32_t stage, const char *expected)
{
    char text[256] = "";
    nd_layout layout = pipeline(3, 1, 4, schedule);
    write_order(&layout, stage, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, expected);
}

/* Three stages, four micro-batches. */
static void test_orders_by_hand(void)
{
    expect_order(ND_SCHEDULE_1F1B, 0, "F0 F1 F2 B0 F3 B1 B2 B3");
    expect_order(ND_SCHEDULE_1F1B, 1, "F0 F1 B0 F2 B1 F3 B2 B3");
    expect_order(ND_SCHEDULE_1F1B, 2, "F0 B0 F1 B1 F2 B2 F3 B3");
    for (int32_t stage = 0; stage < 3; stage++) {
        expect_order(ND_SCHEDULE_GPIPE, stage, "F0 F1 F2 F3 B0 B1 B2 B3");
    }
    expect_order(ND_SCHEDULE_ZERO_BUBBLE, 0, "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
    expect_order(ND_SCHEDULE_ZERO_BUBBLE, 2, "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

/* One rank has nobody to wait for: every micro-batch is done before the next begins. */
static void test_without_a_pipeline_gpipe_is_no_schedule(void)
{
    char text[64] = "";
    nd_layout layout = pipeline(1, 1, 2, ND_SCHEDULE_GPIPE);
    write_order(&layout, 0, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "F0 B0 F1 B1");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_pass_is_there_once_and_after_what_it_needs),
        ND_TEST(test_orders_by_hand),
        ND_TEST(test_without_a_pipeline_gpipe_is_no_schedule),
        {NULL, NULL},
    };
    return nd_test_main("program/schedule", cases);
}
