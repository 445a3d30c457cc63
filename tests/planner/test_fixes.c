/* Every change is legal, really estimated, and what it is said to save is the difference of two estimates. */
#include "planner/fixes.h"

#include <math.h>
#include <string.h>

#include "planner/constraints.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* about 40 KiB: not on the stack */
static nd_fix fixes[ND_FIXES_MAX];

static nd_layout parse(const char *text)
{
    nd_error err;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    return layout;
}

/* The context in which a change was judged. */
static void context_of(const nd_fix *fix, planner_fixture *out)
{
    nd_error err;
    *out = fixture;
    out->train = fix->train;
    out->stack.style.loss_chunks = fix->loss_chunks;
    if (fix->nodes != fixture.cluster.nodes) {
        ND_ASSERT_OK(nd_cluster_resize(&fixture.cluster, fix->nodes, &out->cluster, &err));
    }
    fixture_refresh(out);
}

static void expect_honest(const nd_layout *layout, const nd_fix *fix)
{
    static planner_fixture changed;
    nd_estimate before;
    nd_estimate after;
    context_of(fix, &changed);
    CU_ASSERT_TRUE(nd_layout_allowed(&changed.context, NULL, &fix->layout, NULL, NULL));
    nd_estimate_layout(&fixture.context, layout, &before);
    nd_estimate_layout(&changed.context, &fix->layout, &after);
    CU_ASSERT_EQUAL(fix->saved_bytes, before.memory.peak_bytes - after.memory.peak_bytes);
    CU_ASSERT_EQUAL(fix->slower_frac, before.tokens_per_s_per_gpu / after.tokens_per_s_per_gpu - 1.0);
    CU_ASSERT_EQUAL(fix->estimate.time.step_s, after.time.step_s);
    CU_ASSERT_EQUAL(fix->layout.micro_batch * fix->layout.grad_accum * nd_layout_data_ranks(&fix->layout),
                    fixture.train.global_batch_seqs);
    CU_ASSERT_TRUE(fix->saved_bytes > 0.0 || after.memory.verdict < before.memory.verdict);
    char change[2 * ND_FIX_TEXT_MAX];
    nd_fix_change(fix, change, sizeof change);
    CU_ASSERT_TRUE(strlen(change) > 0 && strlen(change) < ND_FIX_TEXT_MAX - 1);
}

static const nd_fix *find(int32_t count, nd_fix_kind kind)
{
    for (int32_t i = 0; i < count; i++) {
        if (fixes[i].kind == kind) {
            return &fixes[i];
        }
    }
    return NULL;
}

static void test_fixes_are_legal_and_saved_is_a_difference(void)
{
    static const char *const layouts[] = {
        "dp_replicate=2,dp_shard=4,micro_batch=4,grad_accum=2,sharding=zero2",
        "dp_shard=4,tp=2,micro_batch=2,grad_accum=8,sharding=zero3,sp=on",
        "pp=2,dp_shard=2,cp=2,micro_batch=1,grad_accum=32,sharding=zero1",
    };
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 64);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        nd_layout layout = parse(layouts[i]);
        int32_t count = nd_fixes_find(&fixture.context, NULL, &layout, NULL, fixes);
        CU_ASSERT_TRUE(count > 5);
        for (int32_t f = 0; f < count; f++) {
            expect_honest(&layout, &fixes[f]);
        }
    }
}

static void test_best_ratio_comes_first(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 64);
    nd_layout layout = parse("dp_shard=8,micro_batch=8,grad_accum=1,sharding=zero3");
    int32_t count = nd_fixes_find(&fixture.context, NULL, &layout, NULL, fixes);
    for (int32_t i = 1; i < count; i++) {
        bool before = nd_fix_kind_class(fixes[i - 1].kind) == ND_FIX_CLASS_TRAINING;
        bool after = nd_fix_kind_class(fixes[i].kind) == ND_FIX_CLASS_TRAINING;
        CU_ASSERT_TRUE(before < after ||
                       (before == after && fixes[i - 1].saved_bytes_per_frac >= fixes[i].saved_bytes_per_frac));
        CU_ASSERT_EQUAL(fixes[i].saved_bytes_per_frac == HUGE_VAL, fixes[i].slower_frac <= 0.0);
    }
}

static void test_changes_read_as_they_are_typed(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 64);
    nd_layout layout = parse("dp_shard=8,micro_batch=8,grad_accum=1,sharding=zero2");
    int32_t count = nd_fixes_find(&fixture.context, NULL, &layout, NULL, fixes);
    const nd_fix *fix = find(count, ND_FIX_OPTIMIZER);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(fix->options, "--optimizer adamw-8bit");
    CU_ASSERT_STRING_EQUAL(fix->layout_keys, "");
    fix = find(count, ND_FIX_TP);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(fix->layout_keys, "dp_shard=4,tp=2,grad_accum=2,sp=on");
    fix = find(count, ND_FIX_SEQ_LEN);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(fix->options, "--seq-len 2048");
    fix = find(count, ND_FIX_SHARDING);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(fix->layout_keys, "sharding=zero3");
}

static void test_expert_parallelism_is_offered_to_experts_only(void)
{
    nd_layout layout = parse("dp_shard=8,micro_batch=1,grad_accum=8,sharding=zero1");
    nd_fix_options ep = {.kinds = 1u << ND_FIX_EP};
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 64);
    CU_ASSERT_EQUAL(nd_fixes_find(&fixture.context, NULL, &layout, &ep, fixes), 0);
    fixture_init(&fixture, "mixtral-8x7b", "1x8xh100", "ndplan", 4096, 64);
    CU_ASSERT_EQUAL(nd_fixes_find(&fixture.context, NULL, &layout, &ep, fixes), 1);
    CU_ASSERT_EQUAL(fixes[0].layout.ep, 2);
}

static void test_more_nodes_are_one_change(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4096, 64);
    nd_layout layout = parse("dp_shard=8,micro_batch=1,grad_accum=8,sharding=zero3");
    nd_fix_options nodes = {.kinds = 1u << ND_FIX_NODES};
    CU_ASSERT_EQUAL(nd_fixes_find(&fixture.context, NULL, &layout, &nodes, fixes), 1);
    CU_ASSERT_STRING_EQUAL(fixes[0].options, "--cluster 2x8xh100");
    CU_ASSERT_STRING_EQUAL(fixes[0].layout_keys, "dp_shard=16,grad_accum=4");
}

/* 8 B parameters with Adam do not fit eight GPUs that hold all states each; sharding them is enough. */
static void test_one_change_comes_before_two(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4096, 64);
    nd_layout layout = parse("dp_replicate=8,micro_batch=1,grad_accum=8,recompute=full");
    nd_fix fix;
    CU_ASSERT_TRUE_FATAL(nd_fixes_smallest_that_fits(&fixture.context, NULL, &layout, ND_VERDICT_FITS, &fix));
    CU_ASSERT_EQUAL(fix.second, ND_FIX_COUNT);
    CU_ASSERT_EQUAL(nd_fix_kind_class(fix.kind) <= ND_FIX_CLASS_SOFTWARE, true);
    CU_ASSERT_EQUAL(fix.estimate.memory.verdict, ND_VERDICT_FITS);
    nd_fix_options fitting = {.kinds = (1u << ND_FIX_NODES) - 1u, .only_fitting = true};
    int32_t count = nd_fixes_find(&fixture.context, NULL, &layout, &fitting, fixes);
    for (int32_t i = 0; i < count; i++) { /* none that fits as surely is faster */
        CU_ASSERT_TRUE(fixes[i].estimate.memory.verdict != ND_VERDICT_FITS || fixes[i].slower_frac >= fix.slower_frac);
    }
}

static void test_two_changes_where_one_does_not_suffice(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 32768, 64);
    nd_layout layout = parse("dp_replicate=8,micro_batch=2,grad_accum=4");
    nd_fix_options same = {.kinds = (1u << ND_FIX_NODES) - 1u, .only_fitting = true};
    CU_ASSERT_EQUAL(nd_fixes_find(&fixture.context, NULL, &layout, &same, fixes), 0);
    nd_fix fix;
    CU_ASSERT_TRUE_FATAL(nd_fixes_smallest_that_fits(&fixture.context, NULL, &layout, ND_VERDICT_BORDERLINE, &fix));
    CU_ASSERT_TRUE(fix.second != ND_FIX_COUNT && fix.second != fix.kind);
    CU_ASSERT_TRUE(fix.estimate.memory.peak_bytes <= fix.estimate.memory.capacity_bytes);
}

static void test_hopeless_layouts_get_no_change(void)
{
    fixture_init(&fixture, "llama-3.1-405b", "h100", "ndplan", 131072, 1);
    nd_layout layout = nd_layout_single();
    nd_fix fix = {.kind = ND_FIX_COUNT};
    CU_ASSERT_FALSE(nd_fixes_smallest_that_fits(&fixture.context, NULL, &layout, ND_VERDICT_BORDERLINE, &fix));
    CU_ASSERT_EQUAL(fix.kind, ND_FIX_COUNT);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_fixes_are_legal_and_saved_is_a_difference),
        ND_TEST(test_best_ratio_comes_first),
        ND_TEST(test_changes_read_as_they_are_typed),
        ND_TEST(test_expert_parallelism_is_offered_to_experts_only),
        ND_TEST(test_more_nodes_are_one_change),
        ND_TEST(test_one_change_comes_before_two),
        ND_TEST(test_two_changes_where_one_does_not_suffice),
        ND_TEST(test_hopeless_layouts_get_no_change),
        {NULL, NULL},
    };
    return nd_test_main("planner.fixes", cases);
}
