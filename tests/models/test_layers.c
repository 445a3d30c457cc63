/* Which layers see a window and which have experts. */
#include "tests/models/model_fixture.h"

static const nd_layer_kind *kind_at(const nd_model_spec *spec, int64_t layer)
{
    return &spec->layer_kinds[spec->kind_of_layer[layer]];
}

static int64_t window_at(const nd_model_spec *spec, int64_t layer)
{
    return kind_at(spec, layer)->window_tokens;
}

static void gemma3_has_five_windowed_layers_for_each_full_one(void)
{
    nd_model_spec spec = load_or_fail("gemma-3-4b");
    for (int64_t i = 0; i < spec.layers; i++) {
        CU_ASSERT_EQUAL(window_at(&spec, i), i % 6 == 5 ? 0 : 1024);
    }
    CU_ASSERT_EQUAL(spec.layer_kinds_count, 2);
    CU_ASSERT_EQUAL(spec.layer_kinds[0].layers + spec.layer_kinds[1].layers, 34);
}

static void gemma2_and_gpt_oss_alternate_and_start_with_the_window(void)
{
    nd_model_spec gemma = load_or_fail("gemma-2-9b");
    nd_model_spec oss = load_or_fail("gpt-oss-20b");
    for (int64_t i = 0; i < 24; i++) {
        CU_ASSERT_EQUAL(window_at(&gemma, i), i % 2 == 0 ? 4096 : 0);
        CU_ASSERT_EQUAL(window_at(&oss, i), i % 2 == 0 ? 128 : 0);
        CU_ASSERT_TRUE(kind_at(&oss, i)->moe);
    }
}

static void mistral_has_a_window_when_the_key_is_missing_and_none_when_it_is_null(void)
{
    nd_model_spec missing = parse_or_fail(TINY("mistral", ""));
    nd_model_spec null = parse_or_fail(TINY("mistral", ",\"sliding_window\":null"));
    CU_ASSERT_EQUAL(window_at(&missing, 0), 4096);
    CU_ASSERT_EQUAL(window_at(&null, 0), 0);
    CU_ASSERT_EQUAL(missing.kv_heads, 8);
}

static void qwen2_slides_from_max_window_layers_on_when_told_to(void)
{
    nd_model_spec off = parse_or_fail(TINY("qwen2", ",\"num_key_value_heads\":8,\"sliding_window\":32,"
                                                    "\"max_window_layers\":1"));
    nd_model_spec on = parse_or_fail(TINY("qwen2", ",\"num_key_value_heads\":8,\"sliding_window\":32,"
                                                   "\"max_window_layers\":1,\"use_sliding_window\":true"));
    CU_ASSERT_EQUAL(window_at(&off, 3), 0);
    CU_ASSERT_EQUAL(window_at(&on, 0), 0);
    CU_ASSERT_EQUAL(window_at(&on, 1), 32);
    CU_ASSERT_EQUAL(window_at(&on, 3), 32);
}

static void layer_types_win_over_the_pattern(void)
{
    nd_model_spec spec = parse_or_fail(
        TINY("gemma3_text", ",\"sliding_window\":16,\"layer_types\":[\"full_attention\",\"sliding_attention\","
                            "\"full_attention\",\"sliding_attention\"]"));
    CU_ASSERT_EQUAL(window_at(&spec, 0), 0);
    CU_ASSERT_EQUAL(window_at(&spec, 1), 16);
    CU_ASSERT_EQUAL(window_at(&spec, 3), 16);
}

static void llama4_chunks_three_layers_of_four(void)
{
    nd_model_spec scout = load_or_fail("llama-4-scout");
    nd_model_spec maverick = load_or_fail("llama-4-maverick");
    CU_ASSERT_EQUAL(scout.layer_kinds_count, 2);
    CU_ASSERT_EQUAL(maverick.layer_kinds_count, 3);
    for (int64_t i = 0; i < 48; i++) {
        CU_ASSERT_EQUAL(window_at(&scout, i), i % 4 == 3 ? 0 : 8192);
        CU_ASSERT_EQUAL(kind_at(&scout, i)->chunked, i % 4 != 3);
        CU_ASSERT_TRUE(kind_at(&scout, i)->moe);
        CU_ASSERT_EQUAL(kind_at(&maverick, i)->moe, i % 2 == 1);
    }
    CU_ASSERT_EQUAL(maverick.ffn_hidden, 16384);
    CU_ASSERT_EQUAL(maverick.moe_ffn_hidden, 8192);
    CU_ASSERT_EQUAL(maverick.shared_ffn_hidden, 8192);
}

static void llama4_takes_lists_of_moe_and_rope_layers(void)
{
    nd_model_spec spec = parse_or_fail(TINY("llama4_text", ",\"head_dim\":8,\"moe_layers\":[0,3],"
                                                           "\"no_rope_layers\":[1,0,1,0],"
                                                           "\"attention_chunk_size\":100"));
    CU_ASSERT_TRUE(kind_at(&spec, 0)->moe && kind_at(&spec, 3)->moe);
    CU_ASSERT_TRUE(!kind_at(&spec, 1)->moe && !kind_at(&spec, 2)->moe);
    CU_ASSERT_EQUAL(window_at(&spec, 0), 100);
    CU_ASSERT_EQUAL(window_at(&spec, 1), 0);
    CU_ASSERT_EQUAL(spec.layer_kinds_count, 4);
}

static void deepseek_starts_with_dense_layers(void)
{
    nd_model_spec spec = load_or_fail("deepseek-v3");
    for (int64_t i = 0; i < spec.layers; i++) {
        CU_ASSERT_EQUAL(kind_at(&spec, i)->moe, i >= 3);
    }
    CU_ASSERT_EQUAL(spec.shared_ffn_hidden, 2048);
    CU_ASSERT_EQUAL(spec.tp_plan, ND_TP_PLAN_MLP_ONLY);
}

static void qwen_moe_mixes_dense_layers_by_step_and_list(void)
{
    nd_model_spec spec = parse_or_fail(TINY("qwen3_moe", ",\"decoder_sparse_step\":2,\"mlp_only_layers\":[3]"));
    CU_ASSERT_FALSE(kind_at(&spec, 0)->moe);
    CU_ASSERT_TRUE(kind_at(&spec, 1)->moe);
    CU_ASSERT_FALSE(kind_at(&spec, 3)->moe);
    CU_ASSERT_EQUAL(nd_model_params(&spec).moe_layers, 1);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(gemma3_has_five_windowed_layers_for_each_full_one),
        ND_TEST(gemma2_and_gpt_oss_alternate_and_start_with_the_window),
        ND_TEST(mistral_has_a_window_when_the_key_is_missing_and_none_when_it_is_null),
        ND_TEST(qwen2_slides_from_max_window_layers_on_when_told_to),
        ND_TEST(layer_types_win_over_the_pattern),
        ND_TEST(llama4_chunks_three_layers_of_four),
        ND_TEST(llama4_takes_lists_of_moe_and_rope_layers),
        ND_TEST(deepseek_starts_with_dense_layers),
        ND_TEST(qwen_moe_mixes_dense_layers_by_step_and_list),
        {NULL, NULL},
    };
    return nd_test_main("models.layers", cases);
}
