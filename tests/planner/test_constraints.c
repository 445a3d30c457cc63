/* Every hard rule refuses, with its id, the numbers, and a nearest value that is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/constraints.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* about 40 KiB: not on the stack */

static void expect_layout(const nd_layout *layout, const char *rule, const char *message, const char *nearest)
{
    char text[256];
    nd_refusal refusal;
    memset(&refusal, 0, sizeof refusal);
    const char *got = "";
    bool legal = nd_layout_allowed(&fixture.context, NULL, layout, &got, &refusal);
    if (legal != (rule == NULL) || (rule != NULL && strcmp(got, rule) != 0)) {
        (void)nd_layout_format(layout, text, sizeof text);
        fprintf(stderr, "%s: %s %s, expected %s\n", text, legal ? "legal" : "illegal", legal ? "" : got,
                rule != NULL ? rule : "legal");
        CU_FAIL("another verdict or rule");
        return;
    }
    CU_ASSERT_EQUAL(nd_layout_allowed(&fixture.context, NULL, layout, NULL, NULL), legal);
    if (rule != NULL) {
        CU_ASSERT_STRING_EQUAL(refusal.rule, rule);
        ND_ASSERT_CONTAINS(refusal.message, message);
        ND_ASSERT_CONTAINS(refusal.nearest, nearest);
    }
}

static void expect(const char *text, const char *rule, const char *message, const char *nearest)
{
    nd_error err;
    nd_layout layout;
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    expect_layout(&layout, rule, message, nearest);
}

static void test_a_plain_layout_is_legal(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    expect("dp_shard=8,sharding=zero3,grad_accum=2", NULL, "", "");
    expect("dp_replicate=2,dp_shard=2,cp=2,tp=1,sharding=zero3,grad_accum=4", NULL, "", "");
    expect("pp=2,tp=2,dp_replicate=2,grad_accum=8,vpp=3", NULL, "", "");
}

static void test_ranks_equal_gpus(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    expect("dp_shard=4,sharding=zero3,grad_accum=4", "ranks-equal-gpus", "4 ranks", "dp_shard=8");
    expect("dp_shard=3,tp=2,sharding=zero3", "ranks-equal-gpus", "6 ranks", "dp_shard=4");
    expect("cp=2,dp_shard=8,sharding=zero3", "ranks-equal-gpus", "16 ranks", "dp_shard=4");
    expect("tp=3,dp_shard=2,sharding=zero3", "ranks-equal-gpus", "8 GPUs", "");
    nd_layout layout = nd_layout_single();
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        layout.size[axis] = INT32_MAX; /* the product overflows 64 bits */
    }
    expect_layout(&layout, "ranks-equal-gpus", "8 GPUs", "");
}

static void test_counts_below_one_are_refused(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_TP] = 0;
    expect_layout(&layout, "positive-counts", "tp must be at least 1, got 0", "tp=1");
    layout = nd_layout_single();
    layout.grad_accum = -1;
    expect_layout(&layout, "positive-counts", "grad_accum", "grad_accum=1");
    layout = nd_layout_single();
    layout.sharding = (nd_sharding)17;
    expect_layout(&layout, "known-modes", "sharding", "");
}

static void test_tp_divides_heads_and_widths(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 16);
    expect("tp=16", "tp-divides-heads", "tp=16 does not divide the 8 attention heads", "tp=8");
    expect("tp=8,dp_replicate=2,grad_accum=8", NULL, "", ""); /* 4 key-value heads are copied */
    fixture.model.heads = 24;
    fixture.model.kv_heads = 6;
    expect("tp=4,dp_replicate=4,grad_accum=4", "tp-kv-heads", "6 key-value heads", "tp=2");
    fixture.model.kv_heads = 24;
    fixture.model.ffn_hidden = 1538;
    expect("tp=4,dp_replicate=4,grad_accum=4", "tp-divides-ffn", "width 1538", "tp=2");
}

static void test_widths_of_experts_are_divided_only_without_ep(void)
{
    fixture_init(&fixture, fixture_moe, "1x8xh100", "ndplan", 4096, 16);
    fixture.model.moe_ffn_hidden = 1538;
    expect("tp=4,dp_shard=2,sharding=zero3,grad_accum=8", "tp-divides-ffn", "1538", "tp=2");
    expect("tp=4,dp_shard=2,ep=2,sharding=zero3,grad_accum=8", NULL, "", "");
}

static void test_experts_divide(void)
{
    fixture_init(&fixture, fixture_moe, "3x8xh100", "ndplan", 4096, 24);
    expect("dp_shard=24,ep=3,sharding=zero3", "ep-divides-experts", "8 experts", "ep=2 or ep=4");
    expect("dp_shard=3,dp_replicate=8,ep=2,sharding=zero3", "ep-divides-mesh", "= 3 ranks", "ep=1");
    expect("dp_shard=24,ep=8,sharding=zero3", NULL, "", "");
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    expect("dp_shard=8,ep=2,sharding=zero3,grad_accum=2", "ep-needs-experts", "has none", "ep=1");
}

static void test_sequence_divides_over_cp_and_sp(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4100, 16);
    expect("cp=4,tp=2,sharding=zero3,grad_accum=16", "cp-divides-seq", "8 pieces, which do not divide 4100", "cp=2");
    expect("cp=4,cp_method=ulysses,tp=2,sharding=zero3,grad_accum=16", NULL, "", "");
    expect("tp=8,sp=on,grad_accum=16", "sp-divides-seq", "tp=8", "sp=off");
    expect("tp=4,dp_replicate=2,sp=on,grad_accum=8", NULL, "", "");
    expect("dp_replicate=8,sp=on,grad_accum=2", "sp-needs-tp", "tp is 1", "sp=off");
}

static void test_ulysses_divides_heads(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 16);
    expect("cp=8,cp_method=ulysses,tp=2,sharding=zero3,grad_accum=16", "ulysses-heads", "8 heads", "cp=4");
    expect("cp=8,cp_method=ulysses,dp_shard=2,sharding=zero3,grad_accum=8", NULL, "", "");
    fixture.model.heads = 24;
    fixture.model.kv_heads = 6;
    expect("cp=4,cp_method=ulysses,dp_shard=4,sharding=zero3,grad_accum=4", "ulysses-heads", "6 key-value heads",
           "cp=2");
}

static void test_pipeline_rules(void)
{
    fixture_init(&fixture, fixture_dense, "2x8xh100", "ndplan", 4096, 16);
    expect("pp=16,grad_accum=16", "pp-within-layers", "has 12", "pp=8");
    expect("pp=8,dp_replicate=2,grad_accum=8", NULL, "", ""); /* uneven stages */
    expect("pp=8,dp_replicate=2,grad_accum=8,vpp=2", "vpp-divides-layers", "= 16 equal chunks", "vpp=1");
    expect("pp=2,dp_replicate=8,grad_accum=2,vpp=4", "vpp-divides-layers", "12 layers", "vpp=3 or vpp=6");
    expect("pp=4,dp_replicate=4,grad_accum=4,vpp=3", NULL, "", "");
    expect("pp=4,dp_replicate=4,grad_accum=2,micro_batch=2,vpp=3", "interleaved-accum", "groups of pp=4", "vpp=1");
    expect("dp_replicate=16,schedule=zero_bubble", "zero-bubble-needs-pp", "pp is 1", "schedule=1f1b");
    expect("dp_replicate=16,schedule=gpipe", "gpipe-needs-pp", "pp is 1", "schedule=1f1b");
    expect("pp=4,dp_replicate=4,grad_accum=4,schedule=gpipe", NULL, "", "");
    expect("pp=4,dp_replicate=4,grad_accum=4,vpp=3,schedule=gpipe", "interleaved-is-vpp", "schedule=gpipe",
           "schedule=interleaved or vpp=1");
    expect("pp=2,dp_replicate=8,grad_accum=2,schedule=interleaved", "interleaved-is-vpp", "vpp=1", "vpp=2");
    expect("dp_replicate=16,vpp=2", "vpp-needs-pp", "pp is 1", "vpp=1");
    expect("dp_replicate=16,split=balanced", "split-needs-pp", "pp is 1", "split=even");
    expect("pp=8,dp_replicate=2,grad_accum=8,split=balanced", NULL, "", "");
    expect("pp=4,dp_replicate=4,grad_accum=4,vpp=2,split=balanced", NULL, "", ""); /* 8 unequal chunks of 12 layers */
    expect("pp=8,dp_replicate=2,grad_accum=8,vpp=2,split=balanced", "vpp-within-layers", "16 chunks", "vpp=1");
}

static void test_batch_names_the_nearest_that_divide(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 63);
    expect("dp_replicate=4,tp=2,grad_accum=15", "global-batch", "63 sequences is no multiple",
           "--global-batch 60 or 64");
    expect("tp=8,grad_accum=9,micro_batch=3", "global-batch", "micro_batch 3 x grad_accum 9", "grad_accum=21");
    expect("tp=8,grad_accum=21,micro_batch=3", NULL, "", "");
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 1);
    expect("dp_shard=8,sharding=zero3", "global-batch", "= 8", "--global-batch 8");
}

static void test_sharding_rules(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    expect("dp_shard=8,grad_accum=2", "sharding-none", "dp_shard=8", "sharding=zero3");
    expect("dp_replicate=8,grad_accum=2,sharding=zero3", NULL, "", ""); /* nothing to shard: the same as none */
    expect("cp=8,grad_accum=16", NULL, "", "");
}

static void test_recompute_rules(void)
{
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    expect("dp_replicate=8,grad_accum=2,recompute=every:1", "recompute-every", "2 to 12 layers", "recompute=full");
    expect("dp_replicate=8,grad_accum=2,recompute=every:13", "recompute-every", "every:13", "recompute=every:12");
    expect("dp_replicate=8,grad_accum=2,recompute=every:12", NULL, "", "");
}

static void test_stacks_refuse_what_they_cannot_run(void)
{
    fixture_init(&fixture, fixture_moe, "1x8xh100", "torch-ddp", 4096, 16);
    expect("dp_replicate=8,grad_accum=2", NULL, "", "");
    expect("tp=2,dp_replicate=4,grad_accum=4", "stack-tp", "torch-ddp", "tp=1");
    expect("cp=2,dp_replicate=4,grad_accum=4", "stack-cp", "torch-ddp", "cp=1");
    expect("pp=2,dp_replicate=4,grad_accum=4", "stack-pp", "torch-ddp", "pp=1");
    expect("dp_shard=8,sharding=zero3,grad_accum=2", "stack-dp-shard", "dp_shard=8", "dp_shard=1");
    fixture_init(&fixture, fixture_dense, "1x8xh100", "megatron", 4096, 16);
    expect("dp_shard=8,sharding=zero3,grad_accum=2", "stack-sharding", "zero3", "sharding=zero1");
    expect("pp=2,dp_replicate=4,grad_accum=4,schedule=zero_bubble", "stack-schedule", "zero_bubble", "1f1b");
    expect("pp=2,dp_replicate=4,grad_accum=4,schedule=gpipe", "stack-schedule", "schedule=gpipe", "1f1b");
    expect("pp=2,dp_replicate=4,grad_accum=4,split=balanced", NULL, "", "");
    fixture.stack.splits = 1u << ND_SPLIT_EVEN;
    expect("pp=2,dp_replicate=4,grad_accum=4,split=balanced", "stack-split", "split=balanced", "split=even");
    expect("dp_replicate=8,grad_accum=2,offload=params", "stack-offload", "params", "offload=optimizer");
    expect("dp_replicate=8,grad_accum=2,offload=optimizer", NULL, "", "");
    fixture_init(&fixture, fixture_dense, "1x8xh100", "deepspeed", 4096, 16);
    expect("cp=2,dp_shard=4,sharding=zero3,grad_accum=4", "stack-cp-method", "ring", "cp_method=ulysses");
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    fixture.stack.tp_implies_sp = true;
    expect("tp=2,dp_replicate=4,grad_accum=4", "stack-tp-implies-sp", "tp=2", "sp=on");
    fixture.stack.recomputes = 1u << ND_RECOMPUTE_NONE;
    expect("dp_replicate=8,grad_accum=2,recompute=full", "stack-recompute", "full", "recompute=none");
    fixture.stack.expert_parallel = false;
    fixture.model.experts = 8;
    expect("dp_shard=8,ep=2,sharding=zero3,grad_accum=2", "stack-ep", "ep=2", "ep=1");
}

static void test_the_framework_speaks_last(void)
{
    nd_error err;
    nd_layout layout;
    const nd_framework *accelerate = NULL;
    const char *rule = "";
    fixture_init(&fixture, fixture_dense, "1x8xh100", "ndplan", 4096, 16);
    ND_ASSERT_OK(nd_framework_find("accelerate", &accelerate, &err));
    ND_ASSERT_OK(nd_layout_parse("pp=2,dp_replicate=4,grad_accum=4", &layout, NULL, &err));
    CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, NULL, &layout, NULL, NULL));
    CU_ASSERT_FALSE(nd_layout_allowed(&fixture.context, accelerate, &layout, &rule, NULL));
    CU_ASSERT_STRING_EQUAL(rule, "accelerate.no-pp");
    layout.size[ND_AXIS_PP] = 4;
    CU_ASSERT_FALSE(nd_layout_allowed(&fixture.context, accelerate, &layout, &rule, NULL));
    CU_ASSERT_STRING_EQUAL(rule, "ranks-equal-gpus");
}

/* A fixed linear congruential generator: the same layouts on every machine. */
static int32_t draw(uint32_t *state, int32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (int32_t)((*state >> 16) % (uint32_t)below);
}

static void test_any_layout_gets_an_answer_and_a_reason(void)
{
    uint32_t state = 7;
    fixture_init(&fixture, fixture_moe, "1x8xh100", "ndplan", 4096, 16);
    for (int i = 0; i < 20000; i++) {
        nd_layout layout = nd_layout_single();
        for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
            layout.size[axis] = draw(&state, 5);
        }
        layout.ep = draw(&state, 10);
        layout.vpp = draw(&state, 4);
        layout.micro_batch = draw(&state, 4);
        layout.grad_accum = draw(&state, 20);
        layout.sequence_parallel = draw(&state, 2) == 1;
        layout.cp_method = (nd_cp_method)draw(&state, ND_CP_METHOD_COUNT);
        layout.schedule = (nd_schedule)draw(&state, ND_SCHEDULE_COUNT);
        layout.sharding = (nd_sharding)draw(&state, ND_SHARDING_COUNT);
        layout.recompute = (nd_recompute)draw(&state, ND_RECOMPUTE_COUNT);
        layout.recompute_every = draw(&state, 6);
        layout.offload = (nd_offload)draw(&state, ND_OFFLOAD_COUNT);
        const char *rule = NULL;
        nd_refusal refusal;
        memset(&refusal, 0, sizeof refusal);
        bool legal = nd_layout_allowed(&fixture.context, NULL, &layout, &rule, &refusal);
        bool explained = rule != NULL && strlen(refusal.message) > 10 && refusal.rule == rule;
        if (!legal && !explained) {
            CU_FAIL("a refusal without rule or message");
            return;
        }
        if (legal && nd_layout_ranks(&layout) != 8) {
            CU_FAIL("a legal layout with another number of ranks");
            return;
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_a_plain_layout_is_legal),
        ND_TEST(test_ranks_equal_gpus),
        ND_TEST(test_counts_below_one_are_refused),
        ND_TEST(test_tp_divides_heads_and_widths),
        ND_TEST(test_widths_of_experts_are_divided_only_without_ep),
        ND_TEST(test_experts_divide),
        ND_TEST(test_sequence_divides_over_cp_and_sp),
        ND_TEST(test_ulysses_divides_heads),
        ND_TEST(test_pipeline_rules),
        ND_TEST(test_batch_names_the_nearest_that_divide),
        ND_TEST(test_sharding_rules),
        ND_TEST(test_recompute_rules),
        ND_TEST(test_stacks_refuse_what_they_cannot_run),
        ND_TEST(test_the_framework_speaks_last),
        ND_TEST(test_any_layout_gets_an_answer_and_a_reason),
        {NULL, NULL},
    };
    return nd_test_main("planner.constraints", cases);
}
