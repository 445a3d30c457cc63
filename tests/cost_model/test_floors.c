/* No layout is below the floors of its branch, and prices of one recompute mode become those of another. */
#include <string.h>

#include "cost_model/floors.h"
#include "tests/cost_model/fixture.h"

static fixture f;
/* Floors and estimates add the same terms in another order. */
static const double rounding = 1.0 + 1e-9;

static int64_t checked;

static int64_t bounded; /* of those checked, where there is a floor of any split */

static void check_memory(const nd_memory_floor *floor, const nd_memory_breakdown *memory)
{
    CU_ASSERT_TRUE(floor->peak_bytes <= memory->peak_bytes * rounding);
    CU_ASSERT_TRUE(floor->peak_low_bytes <= memory->peak_low_bytes * rounding);
    CU_ASSERT_TRUE(floor->peak_high_bytes <= memory->peak_high_bytes * rounding);
}

/* Every way to divide the data ranks and to shard over them. */
static void check_data(nd_layout layout, const nd_block_prices *prices, int64_t data_ranks)
{
    nd_stage_split split;
    nd_pipeline pipeline;
    nd_memory_breakdown memory;
    nd_time_breakdown time;
    layout.size[ND_AXIS_DP_REPLICATE] = 1;
    layout.size[ND_AXIS_DP_SHARD] = (int32_t)data_ranks;
    nd_split_stages(&f.context, &layout, prices, &split);
    nd_memory_floor floor = nd_memory_floor_of(&f.context, &layout, prices, &split, data_ranks);
    nd_memory_floor any_split = nd_memory_floor_any_split(&f.context, &layout, prices, data_ranks);
    nd_layout plain = layout;
    plain.vpp = 1;
    nd_memory_floor any_chunks = nd_memory_floor_any_split(&f.context, &plain, prices, data_ranks);
    double work_s = nd_work_floor_s(&f.context, prices) + nd_rework_floor_s(&f.context, &layout, prices);
    for (int32_t shard = 1; shard <= data_ranks; shard *= 2) {
        for (int mode = shard > 1 ? ND_SHARDING_ZERO1 : ND_SHARDING_NONE; mode < ND_SHARDING_COUNT; mode++) {
            layout.size[ND_AXIS_DP_SHARD] = shard;
            layout.size[ND_AXIS_DP_REPLICATE] = (int32_t)(data_ranks / shard);
            layout.sharding = (nd_sharding)mode;
            nd_estimate_memory_split(&f.context, &layout, prices, &split, &memory);
            nd_price_pipeline_split(&f.context, &layout, prices, &split, &pipeline);
            nd_estimate_time_piped(&f.context, &layout, prices, &pipeline, &time);
            check_memory(&floor, &memory);
            check_memory(&any_split, &memory);
            check_memory(&any_chunks, &memory);
            bounded += any_split.peak_bytes > 0.0;
            double pipeline_s = nd_pipeline_floor_s(&f.context, &layout, &pipeline);
            CU_ASSERT_TRUE(pipeline_s <= time.step_s * rounding);
            CU_ASSERT_TRUE(nd_filling_floor_s(&f.context, &layout, work_s) <= pipeline_s * rounding);
            checked++;
        }
    }
}

static void check_stack(const char *model, const char *cluster, const char *stack)
{
    static const char *const texts[] = {"pp=1",
                                        "pp=2",
                                        "pp=4",
                                        "pp=4,vpp=2",
                                        "pp=4,schedule=zero_bubble",
                                        "pp=4,schedule=gpipe",
                                        "pp=4,split=balanced",
                                        "pp=4,vpp=3,split=balanced",
                                        "pp=16,split=balanced,micro_batch=2",
                                        "pp=8,vpp=2,split=balanced",
                                        "pp=16,tp=2",
                                        "pp=2,tp=4,sp=on",
                                        "tp=2,cp=2",
                                        "pp=8,micro_batch=2"};
    fixture_make(&f, model, cluster, stack, 4096, 128);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int mode = 0; mode < ND_RECOMPUTE_COUNT; mode++) {
            nd_block_prices prices;
            nd_layout layout = fixture_layout(&f, texts[i]);
            layout.schedule = layout.vpp > 1 ? ND_SCHEDULE_INTERLEAVED : layout.schedule;
            layout.recompute = (nd_recompute)mode;
            layout.recompute_every = mode == ND_RECOMPUTE_EVERY ? 2 : 1;
            int64_t data_ranks = f.cluster.gpus / nd_layout_ranks(&layout);
            layout.grad_accum = 128 / (layout.micro_batch * data_ranks);
            nd_price_blocks(&f.context, &layout, &prices);
            check_data(layout, &prices, data_ranks);
        }
    }
}

static void test_nothing_is_below_its_floor(void)
{
    checked = 0;
    bounded = 0;
    check_stack("llama-3.1-8b", "8x8xh100", "ndplan");
    check_stack("llama-3.1-70b", "8x8xa100", "megatron");
    check_stack("mixtral-8x7b", "4x8xh100", "ndplan");
    check_stack("gemma-2-9b", "4x8xh100", "torch-fsdp2-compile");
    check_stack("deepseek-v2-lite", "4x8xh100", "deepspeed");
    CU_ASSERT_TRUE(checked > 1000);
    CU_ASSERT_TRUE(bounded > checked / 2);
}

static void test_recompute_prices_are_those_priced_at_once(void)
{
    static const char *const models[] = {"llama-3.1-8b", "deepseek-v3"};
    for (size_t m = 0; m < 2; m++) {
        fixture_make(&f, models[m], "8x8xh100", "ndplan", 4096, 128);
        nd_layout layout = fixture_layout(&f, "tp=2,sp=on,cp=2");
        nd_block_prices turned;
        nd_price_blocks(&f.context, &layout, &turned);
        static const nd_recompute order[] = {ND_RECOMPUTE_FULL, ND_RECOMPUTE_SELECTIVE, ND_RECOMPUTE_EVERY,
                                             ND_RECOMPUTE_NONE};
        for (size_t i = 0; i < 4; i++) {
            nd_block_prices whole;
            layout.recompute = order[i];
            layout.recompute_every = order[i] == ND_RECOMPUTE_EVERY ? 3 : 1;
            nd_price_recompute(&f.context, &layout, &turned);
            nd_price_blocks(&f.context, &layout, &whole);
            CU_ASSERT_EQUAL(memcmp(&whole, &turned, sizeof whole), 0);
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_nothing_is_below_its_floor),
        ND_TEST(test_recompute_prices_are_those_priced_at_once),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/floors", cases);
}
