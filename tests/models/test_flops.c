/* FLOPs per token in both conventions, against values worked out by hand. */
#include "tests/models/model_fixture.h"

static void llama_3_8b_needs_58_gflop_a_token_at_8192(void)
{
    nd_model_spec spec = load_or_fail("llama-3-8b");
    /* 6 x (8,030,261,248 - 128,256 x 4,096) + 12 x 32 layers x 8,192 x 32 heads x 128 */
    double matrices = 6.0 * 7504924672.0;
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 8192, ND_FLOPS_FULL), matrices + 12884901888.0, 1e-12);
    /* keys per query on average: 4,096.5 */
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 8192, ND_FLOPS_CAUSAL), matrices + 12.0 * 32 * 4096.5 * 4096, 1e-12);
    double difference =
        nd_model_flops_per_token(&spec, 8192, ND_FLOPS_FULL) - nd_model_flops_per_token(&spec, 8192, ND_FLOPS_CAUSAL);
    ND_ASSERT_REL(difference, 6.44e9, 0.001);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 8192, ND_FLOPS_FULL), 57.9e9, 0.001);
}

static void a_tied_matrix_counts_once_and_a_position_table_never(void)
{
    nd_model_spec spec = load_or_fail("gpt2");
    double matrices = 6.0 * (124439808.0 - 1024.0 * 768.0);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 1024, ND_FLOPS_FULL), matrices + 12.0 * 12 * 1024 * 768, 1e-12);
    nd_model_spec opt = load_or_fail("opt-350m"); /* its embedding projections multiply, its positions do not */
    matrices = 6.0 * (331196416.0 - 2050.0 * 1024.0);
    ND_ASSERT_REL(nd_model_flops_per_token(&opt, 2048, ND_FLOPS_FULL), matrices + 12.0 * 24 * 2048 * 1024, 1e-12);
}

static void pairs_are_the_square_the_triangle_or_the_band(void)
{
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 0, ND_FLOPS_FULL), 64.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 3, ND_FLOPS_FULL), 64.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 0, ND_FLOPS_CAUSAL), 36.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 3, ND_FLOPS_CAUSAL), 1.0 + 2 + 3 * 6);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 1, ND_FLOPS_CAUSAL), 8.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 8, ND_FLOPS_CAUSAL), 36.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(8, 100, ND_FLOPS_CAUSAL), 36.0);
    CU_ASSERT_EQUAL(nd_attention_pairs(1, 0, ND_FLOPS_CAUSAL), 1.0);
}

static void the_band_equals_a_count_query_by_query(void)
{
    for (int64_t window = 1; window < 20; window++) {
        for (int64_t seq = 1; seq < 40; seq++) {
            nd_layer_kind band = {.window_tokens = window, .layers = 1};
            nd_layer_kind chunk = {.window_tokens = window, .layers = 1, .chunked = true};
            double in_band = 0;
            double in_chunk = 0;
            for (int64_t query = 0; query < seq; query++) {
                in_band += (double)(query + 1 < window ? query + 1 : window);
                in_chunk += (double)(query % window + 1);
            }
            CU_ASSERT_EQUAL(nd_layer_kind_pairs(&band, seq, ND_FLOPS_CAUSAL), in_band);
            CU_ASSERT_EQUAL(nd_layer_kind_pairs(&chunk, seq, ND_FLOPS_CAUSAL), in_chunk);
            CU_ASSERT_EQUAL(nd_layer_kind_pairs(&chunk, seq, ND_FLOPS_FULL), (double)(seq * seq));
        }
    }
}

static void windows_save_only_in_the_causal_convention(void)
{
    nd_model_spec spec = load_or_fail("gemma-3-1b"); /* 22 of 26 layers see 512 keys; 4 heads of 256 */
    double matrices = 6.0 * 999885952.0;
    double full = 4096.5;
    double windowed = (512.0 * 513.0 / 2 + (8192.0 - 512.0) * 512.0) / 8192.0;
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 8192, ND_FLOPS_FULL), matrices + 12.0 * 26 * 8192 * 1024, 1e-12);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 8192, ND_FLOPS_CAUSAL),
                  matrices + 12.0 * 1024 * (4 * full + 22 * windowed), 1e-12);
}

static void llama_4_chunks_count_their_triangles(void)
{
    nd_model_spec spec = load_or_fail("llama-4-scout"); /* at 32,768: 36 layers in 4 chunks of 8,192, 12 full */
    double matrices = 6.0 * (17172894720.0 - 202048.0 * 5120.0);
    double attention = 12.0 * 40 * 128 * (36 * 4096.5 + 12 * 16384.5);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 32768, ND_FLOPS_CAUSAL), matrices + attention, 1e-12);
}

static void mla_multiplies_its_two_head_sizes(void)
{
    nd_model_spec spec = load_or_fail("deepseek-v2-lite"); /* 16 heads, 128 + 64 for scores, 128 for values */
    CU_ASSERT_EQUAL(nd_model_qk_dim(&spec), 192);
    CU_ASSERT_EQUAL(nd_model_v_dim(&spec), 128);
    double matrices = 6.0 * (2661150208.0 - 102400.0 * 2048.0);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 4096, ND_FLOPS_FULL), matrices + 6.0 * 27 * 4096 * 16 * 320, 1e-12);
}

static void experts_count_by_top_k(void)
{
    nd_model_spec spec = load_or_fail("mixtral-8x7b");
    double matrices = 6.0 * (12879925248.0 - 32000.0 * 4096.0);
    ND_ASSERT_REL(nd_model_flops_per_token(&spec, 4096, ND_FLOPS_FULL), matrices + 12.0 * 32 * 4096 * 4096, 1e-12);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(llama_3_8b_needs_58_gflop_a_token_at_8192),
        ND_TEST(a_tied_matrix_counts_once_and_a_position_table_never),
        ND_TEST(pairs_are_the_square_the_triangle_or_the_band),
        ND_TEST(the_band_equals_a_count_query_by_query),
        ND_TEST(windows_save_only_in_the_causal_convention),
        ND_TEST(llama_4_chunks_count_their_triangles),
        ND_TEST(mla_multiplies_its_two_head_sizes),
        ND_TEST(experts_count_by_top_k),
        {NULL, NULL},
    };
    return nd_test_main("models.flops", cases);
}
