/* The link rate that hides a layout's communication, checked against the model at that rate. */
#include <math.h>
#include <string.h>

#include "planner/bandwidth.h"
#include "planner/search.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;

static nd_layout layout_of(const char *text)
{
    nd_error err;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, NULL, &layout, NULL, NULL));
    return layout;
}

static const nd_bandwidth_need *need_of(const nd_bandwidth_need *needs, int32_t count, nd_link_class link_class)
{
    for (int32_t i = 0; i < count; i++) {
        if (needs[i].link_class == link_class) {
            return &needs[i];
        }
    }
    CU_FAIL_FATAL("the layout does not use these links");
    return NULL;
}

/* What the layout would need, and what it exposes when the links of a class run at `factor` times their rate. */
static nd_bandwidth_need need_at(const nd_layout *layout, nd_link_class link_class, double factor)
{
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT];
    nd_cluster_spec before = fixture.cluster;
    for (int64_t i = 0; i < fixture.cluster.tiers_count; i++) {
        nd_link_tier *tier = &fixture.cluster.tiers[i];
        bool network = tier->kind == ND_TIER_NETWORK || tier->kind == ND_TIER_SPINE;
        if (network == (link_class == ND_LINK_CLASS_NETWORK)) {
            tier->bytes_per_s *= factor;
        }
    }
    int32_t count = nd_bandwidth_needs(&fixture.context, layout, needs);
    nd_bandwidth_need need = *need_of(needs, count, link_class);
    fixture.cluster = before;
    return need;
}

static void check_tight(const char *text, nd_link_class link_class)
{
    nd_layout layout = layout_of(text);
    nd_bandwidth_need now = need_at(&layout, link_class, 1.0);
    CU_ASSERT_TRUE_FATAL(now.needed_bytes_per_s > 0.0);
    double factor = now.needed_bytes_per_s / now.has_bytes_per_s;
    CU_ASSERT_TRUE(need_at(&layout, link_class, factor).exposed_frac < nd_hidden_frac);
    CU_ASSERT_TRUE(need_at(&layout, link_class, 0.9 * factor).exposed_frac >= nd_hidden_frac);
    CU_ASSERT_EQUAL(factor > 1.0, now.exposed_frac >= nd_hidden_frac);
    /* the answer does not depend on the rate that the links have today; 12 bisections of a factor of 2 */
    ND_ASSERT_REL(need_at(&layout, link_class, 3.0).needed_bytes_per_s, now.needed_bytes_per_s, 0.001);
}

static void test_communication_is_hidden_at_the_rate_and_not_below(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    check_tight("dp_shard=16,micro_batch=1,grad_accum=4,sharding=zero1", ND_LINK_CLASS_NETWORK);
    check_tight("dp_replicate=16,micro_batch=1,grad_accum=4,recompute=full", ND_LINK_CLASS_NETWORK);
    check_tight("dp_replicate=2,dp_shard=8,micro_batch=1,grad_accum=4,sharding=zero3", ND_LINK_CLASS_NETWORK);
    check_tight("dp_replicate=2,dp_shard=8,micro_batch=1,grad_accum=4,sharding=zero2", ND_LINK_CLASS_GPU);
}

static void test_a_layout_that_sends_nothing_needs_nothing(void)
{
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT];
    fixture_init(&fixture, fixture_dense, "h100", "ndplan", 2048, 8);
    nd_layout layout = layout_of("micro_batch=1,grad_accum=8");
    CU_ASSERT_EQUAL(nd_bandwidth_needs(&fixture.context, &layout, needs), 0);
}

static void test_latency_is_hidden_by_no_rate(void)
{
    /* a tiny model over many ranks: hops cost more than bytes */
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT];
    fixture_init(&fixture, fixture_dense, "16x8xh100", "ndplan", 512, 128);
    nd_layout layout = layout_of("dp_shard=128,micro_batch=1,grad_accum=1,sharding=zero3");
    int32_t count = nd_bandwidth_needs(&fixture.context, &layout, needs);
    const nd_bandwidth_need *need = need_of(needs, count, ND_LINK_CLASS_NETWORK);
    CU_ASSERT_EQUAL(need->needed_bytes_per_s, 0.0);
    CU_ASSERT_TRUE(need->least_frac >= nd_hidden_frac);
    CU_ASSERT_TRUE(need->least_frac <= need->exposed_frac);
}

static void test_exposed_parts_are_those_of_the_step(void)
{
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT];
    nd_estimate estimate;
    fixture_init(&fixture, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    nd_layout layout = layout_of(
        "dp_replicate=2,dp_shard=2,cp=2,tp=2,sp=on,micro_batch=1,grad_accum=16,sharding=zero3,recompute=full");
    int32_t count = nd_bandwidth_needs(&fixture.context, &layout, needs);
    nd_estimate_layout(&fixture.context, &layout, &estimate);
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        sum += needs[i].exposed_s;
        ND_ASSERT_REL(needs[i].exposed_frac, needs[i].exposed_s / estimate.time.step_s, 1e-12);
    }
    CU_ASSERT_EQUAL(count, 2);
    ND_ASSERT_REL(sum, estimate.time.exposed_comm_s, 1e-9);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_communication_is_hidden_at_the_rate_and_not_below),
        ND_TEST(test_a_layout_that_sends_nothing_needs_nothing),
        ND_TEST(test_latency_is_hidden_by_no_rate),
        ND_TEST(test_exposed_parts_are_those_of_the_step),
        {NULL, NULL},
    };
    return nd_test_main("planner/bandwidth", cases);
}
