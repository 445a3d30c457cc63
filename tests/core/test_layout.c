#include "core/layout.h"

#include "tests/nd_test.h"

static nd_layout seeds_layout(void)
{
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_DP_REPLICATE] = 2;
    layout.size[ND_AXIS_DP_SHARD] = 3;
    layout.size[ND_AXIS_CP] = 5;
    layout.size[ND_AXIS_TP] = 7;
    layout.size[ND_AXIS_PP] = 11;
    layout.micro_batch = 13;
    layout.grad_accum = 17;
    return layout;
}

static void test_single_is_one_rank_with_nothing_divided(void)
{
    nd_layout layout = nd_layout_single();
    CU_ASSERT_EQUAL(nd_layout_ranks(&layout), 1);
    CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&layout), 1);
    CU_ASSERT_EQUAL(layout.ep, 1);
    CU_ASSERT_EQUAL(layout.vpp, 1);
    CU_ASSERT_EQUAL(layout.recompute_every, 1);
    CU_ASSERT_EQUAL(layout.sharding, ND_SHARDING_NONE);
    CU_ASSERT_EQUAL(layout.recompute, ND_RECOMPUTE_NONE);
    CU_ASSERT_EQUAL(layout.offload, ND_OFFLOAD_NONE);
    CU_ASSERT_FALSE(layout.sequence_parallel);
}

static void test_products(void)
{
    nd_layout layout = seeds_layout();
    CU_ASSERT_EQUAL(nd_layout_ranks(&layout), 2 * 3 * 5 * 7 * 11);
    CU_ASSERT_EQUAL(nd_layout_data_ranks(&layout), 2 * 3);
    CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&layout), 13 * 17 * 2 * 3);
}

static void test_nothing_is_sharded_without_a_sharding(void)
{
    nd_layout layout = seeds_layout();
    CU_ASSERT_EQUAL(nd_layout_shard_ranks(&layout), 1);
    layout.sharding = ND_SHARDING_ZERO1;
    CU_ASSERT_EQUAL(nd_layout_shard_ranks(&layout), 3 * 5);
}

static void test_products_do_not_overflow_at_32_bits(void)
{
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_DP_REPLICATE] = 1 << 20;
    layout.size[ND_AXIS_DP_SHARD] = 1 << 20;
    layout.sharding = ND_SHARDING_ZERO3;
    layout.size[ND_AXIS_CP] = 1 << 12;
    CU_ASSERT_EQUAL(nd_layout_data_ranks(&layout), INT64_C(1) << 40);
    CU_ASSERT_EQUAL(nd_layout_shard_ranks(&layout), INT64_C(1) << 32);
    CU_ASSERT_EQUAL(nd_layout_ranks(&layout), INT64_C(1) << 52);
}

static void test_names_are_those_of_the_command_line(void)
{
    CU_ASSERT_STRING_EQUAL(nd_axis_name(ND_AXIS_DP_REPLICATE), "dp_replicate");
    CU_ASSERT_STRING_EQUAL(nd_sharding_name(ND_SHARDING_ZERO3), "zero3");
    CU_ASSERT_STRING_EQUAL(nd_recompute_name(ND_RECOMPUTE_SELECTIVE), "selective");
    CU_ASSERT_STRING_EQUAL(nd_cp_method_name(ND_CP_METHOD_ULYSSES), "ulysses");
    CU_ASSERT_STRING_EQUAL(nd_schedule_name(ND_SCHEDULE_ZERO_BUBBLE), "zero_bubble");
    CU_ASSERT_STRING_EQUAL(nd_schedule_name(ND_SCHEDULE_GPIPE), "gpipe");
    CU_ASSERT_STRING_EQUAL(nd_offload_name(ND_OFFLOAD_PARAMS), "params");
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        CU_ASSERT_PTR_NOT_NULL(nd_layout_key_name((nd_layout_key)key));
    }
}

/* Two layouts can be compared key by key: each key has a value, and a change of the key changes it. */
static void test_each_key_has_a_value(void)
{
    static const char *const texts[ND_LAYOUT_KEY_COUNT] = {
        [ND_LAYOUT_KEY_PP] = "pp=2",
        [ND_LAYOUT_KEY_DP_REPLICATE] = "dp_replicate=2",
        [ND_LAYOUT_KEY_DP_SHARD] = "dp_shard=2",
        [ND_LAYOUT_KEY_CP] = "cp=2",
        [ND_LAYOUT_KEY_TP] = "tp=2",
        [ND_LAYOUT_KEY_EP] = "ep=2",
        [ND_LAYOUT_KEY_VPP] = "vpp=2",
        [ND_LAYOUT_KEY_SP] = "sp=on",
        [ND_LAYOUT_KEY_CP_METHOD] = "cp_method=ulysses",
        [ND_LAYOUT_KEY_SCHEDULE] = "schedule=zero_bubble",
        [ND_LAYOUT_KEY_SPLIT] = "split=balanced",
        [ND_LAYOUT_KEY_MICRO_BATCH] = "micro_batch=2",
        [ND_LAYOUT_KEY_GRAD_ACCUM] = "grad_accum=2",
        [ND_LAYOUT_KEY_SHARDING] = "sharding=zero1",
        [ND_LAYOUT_KEY_RECOMPUTE] = "recompute=full",
        [ND_LAYOUT_KEY_OFFLOAD] = "offload=params",
    };
    nd_error err;
    nd_layout single = nd_layout_single();
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        nd_layout layout;
        uint32_t given = 0;
        ND_ASSERT_OK(nd_layout_parse(texts[key], &layout, &given, &err));
        CU_ASSERT_EQUAL(given, 1u << key);
        CU_ASSERT_NOT_EQUAL(nd_layout_key_value(&layout, (nd_layout_key)key),
                            nd_layout_key_value(&single, (nd_layout_key)key));
    }
    nd_layout third;
    nd_layout fourth;
    ND_ASSERT_OK(nd_layout_parse("recompute=every:3", &third, NULL, &err));
    ND_ASSERT_OK(nd_layout_parse("recompute=every:4", &fourth, NULL, &err));
    CU_ASSERT_NOT_EQUAL(nd_layout_key_value(&third, ND_LAYOUT_KEY_RECOMPUTE),
                        nd_layout_key_value(&fourth, ND_LAYOUT_KEY_RECOMPUTE));
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_single_is_one_rank_with_nothing_divided),
        ND_TEST(test_products),
        ND_TEST(test_nothing_is_sharded_without_a_sharding),
        ND_TEST(test_products_do_not_overflow_at_32_bits),
        ND_TEST(test_names_are_those_of_the_command_line),
        ND_TEST(test_each_key_has_a_value),
        {NULL, NULL},
    };
    return nd_test_main("core.layout", cases);
}
