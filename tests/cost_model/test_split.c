#include "cost_model/split.h"

#include <math.h>
#include <string.h>

#include "cost_model/stage_work.h"
#include "cost_model/stages.h"
#include "cost_model/time.h"
#include "tests/cost_model/fixture.h"

static fixture llama, deepseek, gemma;

static void test_the_fixtures_load(void)
{
    fixture_make(&llama, "llama-3.1-70b", "16x8xh100", "ndplan", 4096, 512);
    fixture_make(&deepseek, "deepseek-v3", "64x8xh100", "ndplan", 4096, 512);
    fixture_make(&gemma, "gemma-2-2b", "1x8xh100", "ndplan", 4096, 64);
}

/* A model of `layers` layers whose kinds follow the bits of `pattern`, with prices of their own. */
static void make_small(fixture *f, int64_t layers, uint32_t pattern)
{
    *f = llama;
    f->context.model = &f->model;
    f->model.layers = layers;
    f->model.layer_kinds_count = 2;
    memset(f->context.layers_before, 0, sizeof f->context.layers_before);
    for (int64_t layer = 0; layer < layers; layer++) {
        uint8_t kind = (uint8_t)(pattern >> layer & 1u);
        f->model.kind_of_layer[layer] = kind;
        for (uint8_t k = 0; k < 2; k++) {
            f->context.layers_before[k][layer + 1] = f->context.layers_before[k][layer] + (k == kind);
        }
    }
}

static void make_prices(double dense_s, double moe_s, double embedding_s, double head_s, nd_block_prices *out)
{
    memset(out, 0, sizeof *out);
    out->layer[0].gemm_s[ND_PASS_FORWARD] = dense_s;
    out->layer[1].gemm_s[ND_PASS_FORWARD] = moe_s;
    out->embedding.gemm_s[ND_PASS_FORWARD] = embedding_s;
    out->head.gemm_s[ND_PASS_FORWARD] = head_s;
    out->saved_bytes[0] = out->saved_bytes[1] = 1e9;
}

static double stage_s(const fixture *f, const nd_layout *layout, const nd_block_prices *prices,
                      const nd_stage_split *split, int32_t stage)
{
    int64_t counts[ND_LAYER_KINDS_MAX];
    nd_stage_layers(&f->context, split, stage, counts);
    nd_stage_work work = nd_stage_work_of(&f->context, layout, prices, counts, stage == 0, stage == split->stages - 1);
    return nd_stage_work_s(&work);
}

static double pace_s(const fixture *f, const nd_layout *layout, const nd_block_prices *prices,
                     const nd_stage_split *split)
{
    double slowest = 0.0;
    for (int32_t stage = 0; stage < split->stages; stage++) {
        slowest = fmax(slowest, stage_s(f, layout, prices, split, stage));
    }
    return slowest;
}

/* The fastest pace over all contiguous partitions into chunks with a layer at least, by trying every one. */
static double best_pace_s(const fixture *f, const nd_layout *layout, const nd_block_prices *prices,
                          nd_stage_split *split, int32_t chunk)
{
    int32_t layers = (int32_t)f->model.layers;
    if (chunk == split->chunks) {
        split->start[chunk] = layers;
        return pace_s(f, layout, prices, split);
    }
    double best = (double)INFINITY;
    int32_t first = chunk == 0 ? 0 : split->start[chunk - 1] + 1;
    int32_t last = chunk == 0 ? 0 : layers - (split->chunks - chunk);
    for (int32_t start = first; start <= last; start++) {
        split->start[chunk] = start;
        best = fmin(best, best_pace_s(f, layout, prices, split, chunk + 1));
    }
    return best;
}

static uint32_t draw(uint32_t *state, uint32_t count)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % count;
}

static nd_layout balanced_layout(int32_t pp, int32_t vpp)
{
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_PP] = pp;
    layout.vpp = vpp;
    layout.schedule = vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B;
    layout.split = ND_SPLIT_BALANCED;
    return layout;
}

static void check_partition(const fixture *f, const nd_stage_split *split)
{
    CU_ASSERT_EQUAL(nd_split_start(split, 0), 0);
    CU_ASSERT_EQUAL(nd_split_start(split, split->chunks), f->model.layers);
    for (int32_t chunk = 0; chunk < split->chunks; chunk++) {
        CU_ASSERT_TRUE(nd_split_start(split, chunk + 1) > nd_split_start(split, chunk));
    }
}

/* Layers of two kinds in any order, embedding and head of any weight: no contiguous partition is faster. */
static void test_no_contiguous_partition_is_faster(void)
{
    static fixture f;
    uint32_t state = 7;
    for (int trial = 0; trial < 400; trial++) {
        int64_t layers = 3 + draw(&state, 8);
        int32_t pp = 2 + (int32_t)draw(&state, (uint32_t)(layers < 5 ? layers - 1 : 4));
        make_small(&f, layers, draw(&state, 1u << layers));
        nd_layout layout = balanced_layout(pp, 1);
        nd_block_prices prices;
        make_prices(1.0 + draw(&state, 5), 1.0 + draw(&state, 9), draw(&state, 4) / 2.0, draw(&state, 16) / 3.0,
                    &prices);
        nd_stage_split split;
        nd_split_stages(&f.context, &layout, &prices, &split);
        nd_stage_split any = split;
        check_partition(&f, &split);
        ND_ASSERT_REL(pace_s(&f, &layout, &prices, &split), best_pace_s(&f, &layout, &prices, &any, 0), 1e-12);
    }
}

/* The same with chunks, where all layers cost the same. */
static void test_chunks_of_equal_layers_are_optimal(void)
{
    static fixture f;
    uint32_t state = 11;
    for (int trial = 0; trial < 150; trial++) {
        int32_t pp = 2 + (int32_t)draw(&state, 2);
        int64_t layers = 2 * pp + draw(&state, 6);
        make_small(&f, layers, 0);
        nd_layout layout = balanced_layout(pp, 2);
        nd_block_prices prices;
        make_prices(1.0, 1.0, draw(&state, 4) / 2.0, draw(&state, 16) / 3.0, &prices);
        nd_stage_split split;
        nd_split_stages(&f.context, &layout, &prices, &split);
        nd_stage_split any = split;
        check_partition(&f, &split);
        ND_ASSERT_REL(pace_s(&f, &layout, &prices, &split), best_pace_s(&f, &layout, &prices, &any, 0), 1e-12);
    }
}

/* Chunks of unlike layers share their stage's budget, which is no exact method; it is never worse than even. */
static void test_chunks_of_unlike_layers_are_never_worse_than_even(void)
{
    static fixture f;
    uint32_t state = 13;
    for (int trial = 0; trial < 400; trial++) {
        int32_t pp = 2 + (int32_t)draw(&state, 3);
        int64_t layers = 3 * pp + draw(&state, 10);
        make_small(&f, layers, draw(&state, 1u << layers));
        nd_layout layout = balanced_layout(pp, 2 + (int32_t)draw(&state, 2));
        nd_block_prices prices;
        make_prices(1.0, 1.0 + draw(&state, 6), draw(&state, 3), draw(&state, 5), &prices);
        nd_stage_split split;
        nd_stage_split even;
        nd_split_stages(&f.context, &layout, &prices, &split);
        layout.split = ND_SPLIT_EVEN;
        nd_split_stages(&f.context, &layout, &prices, &even);
        check_partition(&f, &split);
        CU_ASSERT_TRUE(pace_s(&f, &layout, &prices, &split) <= pace_s(&f, &layout, &prices, &even) * (1.0 + 1e-12));
    }
}

static nd_stage_split split_of(const fixture *f, const char *text, nd_block_prices *prices, nd_layout *layout)
{
    nd_stage_split split;
    *layout = fixture_layout(f, text);
    nd_price_blocks(&f->context, layout, prices);
    nd_split_stages(&f->context, layout, prices, &split);
    check_partition(f, &split);
    return split;
}

/* A dense layer of DeepSeek-V3 is a fraction of a MoE layer, so the stage with the three dense ones holds more. */
static void test_the_first_stage_of_deepseek_holds_its_dense_layers_and_more(void)
{
    nd_layout layout;
    nd_block_prices prices;
    nd_stage_split split =
        split_of(&deepseek, "pp=16,dp_shard=32,ep=32,sharding=zero1,grad_accum=64,split=balanced", &prices, &layout);
    CU_ASSERT_TRUE(nd_stage_layers_count(&split, 0) > nd_stage_layers_count(&split, 1));
    CU_ASSERT_TRUE(nd_stage_layers_count(&split, 0) >= 3);
    CU_ASSERT_TRUE(nd_stage_layers_count(&split, 15) < nd_stage_layers_count(&split, 14)); /* the head */
}

/* With a vocabulary of 256,000 the head of Gemma-2-2B outweighs its layers. */
static void test_a_heavy_head_leaves_its_stage_few_layers(void)
{
    nd_layout layout;
    nd_block_prices prices;
    nd_stage_split split = split_of(&gemma, "pp=8,grad_accum=64,split=balanced", &prices, &layout);
    nd_layout even = layout;
    nd_stage_split equal;
    even.split = ND_SPLIT_EVEN;
    nd_split_stages(&gemma.context, &even, &prices, &equal);
    CU_ASSERT_EQUAL(nd_stage_layers_count(&split, 7), 1);
    CU_ASSERT_TRUE(pace_s(&gemma, &layout, &prices, &split) < 0.9 * pace_s(&gemma, &layout, &prices, &equal));
    CU_ASSERT_FALSE(nd_stage_split_same(&split, &equal));
    nd_time_breakdown balanced_time;
    nd_time_breakdown even_time;
    nd_estimate_time(&gemma.context, &layout, &prices, &balanced_time);
    nd_estimate_time(&gemma.context, &even, &prices, &even_time);
    CU_ASSERT_TRUE(balanced_time.step_s < 0.9 * even_time.step_s);
}

static void test_as_many_stages_as_layers_hold_one_each(void)
{
    static fixture f;
    make_small(&f, 8, 0x0f);
    nd_layout layout = balanced_layout(8, 1);
    nd_block_prices prices;
    make_prices(1.0, 2.0, 0.5, 3.0, &prices);
    nd_stage_split split;
    nd_split_stages(&f.context, &layout, &prices, &split);
    for (int32_t stage = 0; stage < 8; stage++) {
        CU_ASSERT_EQUAL(nd_stage_layers_count(&split, stage), 1);
    }
}

/* 30 equal layers on 4 stages: 8 are needed somewhere, so two stages may hold less; those are the early ones. */
static void test_of_equal_paces_early_stages_hold_less(void)
{
    static fixture f;
    make_small(&f, 30, 0);
    nd_layout layout = balanced_layout(4, 1);
    nd_block_prices prices;
    make_prices(1.0, 1.0, 0.0, 0.0, &prices);
    nd_stage_split split;
    nd_split_stages(&f.context, &layout, &prices, &split);
    const int64_t expected[] = {6, 8, 8, 8};
    for (int32_t stage = 0; stage < 4; stage++) {
        CU_ASSERT_EQUAL(nd_stage_layers_count(&split, stage), expected[stage]);
    }
    nd_stage_runs runs = nd_stage_runs_of(&split);
    CU_ASSERT_EQUAL(runs.count, 2);
    CU_ASSERT_EQUAL(runs.runs[0].layers, 6);
    CU_ASSERT_EQUAL(runs.runs[1].stages, 3);
    CU_ASSERT_FALSE(runs.more);
}

/* The memory of a balanced layout is that of its stages: its peak is the largest over all of them. */
static void test_memory_follows_the_split(void)
{
    nd_layout layout;
    nd_block_prices prices;
    nd_stage_split split = split_of(&gemma, "pp=8,grad_accum=64,split=balanced", &prices, &layout);
    nd_layout even = layout;
    nd_memory_breakdown balanced_memory;
    nd_memory_breakdown even_memory;
    even.split = ND_SPLIT_EVEN;
    nd_estimate_memory(&gemma.context, &layout, &prices, &balanced_memory);
    nd_estimate_memory(&gemma.context, &even, &prices, &even_memory);
    CU_ASSERT_TRUE(balanced_memory.peak_bytes < even_memory.peak_bytes);
    int32_t stages[ND_STAGE_CANDIDATES_MAX];
    int32_t count = nd_stage_candidates(&gemma.context, &split, stages);
    for (int32_t stage = 0; stage < 8; stage++) { /* every stage has a candidate like it, no later than itself */
        bool found = false;
        int64_t counts[ND_LAYER_KINDS_MAX];
        nd_stage_layers(&gemma.context, &split, stage, counts);
        for (int32_t i = 0; i < count; i++) {
            int64_t like[ND_LAYER_KINDS_MAX];
            nd_stage_layers(&gemma.context, &split, stages[i], like);
            found = found || (stages[i] <= stage && memcmp(like, counts, sizeof like) == 0);
        }
        CU_ASSERT_TRUE(found);
    }
}

/* Layouts that differ only in data parallelism share the pipeline. */
static void test_the_pipeline_is_the_same_for_all_data_parallel_variants(void)
{
    const char *const layouts[] = {
        "pp=8,tp=8,sp=on,dp_shard=2,sharding=zero1,grad_accum=64",
        "pp=8,tp=8,sp=on,dp_replicate=2,grad_accum=32",
        "pp=8,tp=8,sp=on,dp_shard=2,sharding=zero2,grad_accum=16",
    };
    nd_pipeline first;
    for (size_t i = 0; i < 3; i++) {
        nd_pipeline pipeline;
        nd_block_prices prices;
        nd_layout layout = fixture_layout(&llama, layouts[i]);
        memset(&pipeline, 0, sizeof pipeline);
        nd_price_blocks(&llama.context, &layout, &prices);
        nd_price_pipeline(&llama.context, &layout, &prices, &pipeline);
        first = i == 0 ? pipeline : first;
        CU_ASSERT_EQUAL(pipeline.sum_s, first.sum_s);
        CU_ASSERT_EQUAL(pipeline.bubble_s, first.bubble_s);
        CU_ASSERT_EQUAL(pipeline.send_s, first.send_s);
        CU_ASSERT_EQUAL(pipeline.busiest_stage, first.busiest_stage);
        CU_ASSERT_EQUAL(nd_stage_work_s(&pipeline.busiest), nd_stage_work_s(&first.busiest));
    }
}

static const nd_test_case cases[] = {
    ND_TEST(test_the_fixtures_load),
    ND_TEST(test_no_contiguous_partition_is_faster),
    ND_TEST(test_chunks_of_equal_layers_are_optimal),
    ND_TEST(test_chunks_of_unlike_layers_are_never_worse_than_even),
    ND_TEST(test_the_first_stage_of_deepseek_holds_its_dense_layers_and_more),
    ND_TEST(test_a_heavy_head_leaves_its_stage_few_layers),
    ND_TEST(test_as_many_stages_as_layers_hold_one_each),
    ND_TEST(test_of_equal_paces_early_stages_hold_less),
    ND_TEST(test_memory_follows_the_split),
    ND_TEST(test_the_pipeline_is_the_same_for_all_data_parallel_variants),
    {NULL, NULL},
};

int main(void)
{
    return nd_test_main("cost_model/split", cases);
}
