#include "cost_model/kernels.h"

#include "tests/cost_model/fixture.h"

static fixture f;

static void test_the_fixture_loads(void)
{
    fixture_make(&f, "llama-3.1-8b", "1x8xh100", "ndplan", 8192, 64);
}

static nd_op gemm(int64_t m, int64_t n, int64_t k)
{
    return (nd_op){.kind = ND_OP_GEMM,
                   .m = m,
                   .n = n,
                   .k = k,
                   .groups = 1,
                   .kernels = 1,
                   .flops = 2.0 * (double)m * (double)n * (double)k,
                   .hbm_bytes = 2.0 * ((double)m * (double)n + (double)m * (double)k + (double)k * (double)n)};
}

static nd_kernel_model model_of(nd_dtype precision)
{
    nd_train_spec train = f.train;
    train.precision = precision;
    return nd_kernel_model_make(&f.cluster.gpu, &f.calibration, &train);
}

static void test_large_gemm_reaches_the_fitted_efficiency(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    nd_op op = gemm(16384, 16384, 16384);
    double rate = op.flops / nd_gemm_s(&model, &op);
    /* k0 / k and a partial wave cost at most 3 % at this size */
    ND_ASSERT_REL(rate, model.matrix_flops_per_s, 0.03);
    CU_ASSERT_TRUE(rate < model.matrix_flops_per_s);
}

static void test_thin_gemm_is_bound_by_memory(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    nd_op op = gemm(16, 8192, 8192);
    ND_ASSERT_REL(nd_gemm_s(&model, &op) - model.kernel_s, op.hbm_bytes / model.hbm_bytes_per_s, 1e-12);
}

static void test_gemm_time_never_falls_when_a_side_grows(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    double last = 0.0;
    for (int64_t k = 64; k <= 65536; k *= 2) {
        nd_op op = gemm(4096, 4096, k);
        double seconds = nd_gemm_s(&model, &op);
        CU_ASSERT_TRUE(seconds >= last);
        last = seconds;
    }
}

static void test_fp8_is_faster_but_less_than_twice(void)
{
    nd_kernel_model bf16 = model_of(ND_DTYPE_BF16);
    nd_kernel_model fp8 = model_of(ND_DTYPE_FP8);
    nd_op op = gemm(8192, 8192, 8192);
    op.fp8 = true;
    double gain = nd_gemm_s(&bf16, &op) / nd_gemm_s(&fp8, &op);
    CU_ASSERT_TRUE(gain > 1.3 && gain < 2.0);
    op.fp8 = false; /* head and router stay in 16 bit */
    ND_ASSERT_REL(nd_gemm_s(&fp8, &op), nd_gemm_s(&bf16, &op), 1e-12);
}

static nd_op attention(int64_t seq, bool backward)
{
    double pairs = nd_attention_pairs(seq, 0, ND_FLOPS_CAUSAL);
    return (nd_op){.kind = ND_OP_ATTENTION,
                   .batch = 4,
                   .q_len = seq,
                   .kv_len = seq,
                   .heads = 33,
                   .qk_dim = 128,
                   .v_dim = 128,
                   .pairs = pairs,
                   .backward = backward,
                   .kernels = 1,
                   .flops = 2.0 * 4.0 * 33.0 * pairs * 256.0 * (backward ? 2.5 : 1.0)};
}

static void test_attention_efficiency_rises_with_sequence(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    double last = 0.0;
    for (int64_t seq = 1024; seq <= 65536; seq *= 2) {
        nd_op op = attention(seq, false);
        double rate = op.flops / nd_attention_s(&model, &op);
        CU_ASSERT_TRUE(rate > last);
        last = rate;
    }
    CU_ASSERT_TRUE(last < model.attention_flops_per_s);
}

static void test_attention_backward_costs_2_5_forwards_and_more(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    nd_op forward = attention(16384, false);
    nd_op backward = attention(16384, true);
    double ratio = nd_attention_s(&model, &backward) / nd_attention_s(&model, &forward);
    ND_ASSERT_REL(ratio, 2.5 / f.calibration.attention_bwd_frac, 1e-3); /* launches differ by 4 us */
}

static void test_flash2_is_slower_on_hopper(void)
{
    nd_train_spec train = f.train;
    train.attention = ND_ATTENTION_FLASH3;
    nd_kernel_model flash3 = nd_kernel_model_make(&f.cluster.gpu, &f.calibration, &train);
    train.attention = ND_ATTENTION_FLASH2;
    nd_kernel_model flash2 = nd_kernel_model_make(&f.cluster.gpu, &f.calibration, &train);
    CU_ASSERT_TRUE(flash2.attention_flops_per_s < flash3.attention_flops_per_s);
}

static void test_elementwise_is_launches_plus_bytes(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    ND_ASSERT_REL(nd_elementwise_s(&model, 1e9, 3), 3.0 * model.kernel_s + 1e9 / model.hbm_bytes_per_s, 1e-15);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_fixture_loads),
        ND_TEST(test_large_gemm_reaches_the_fitted_efficiency),
        ND_TEST(test_thin_gemm_is_bound_by_memory),
        ND_TEST(test_gemm_time_never_falls_when_a_side_grows),
        ND_TEST(test_fp8_is_faster_but_less_than_twice),
        ND_TEST(test_attention_efficiency_rises_with_sequence),
        ND_TEST(test_attention_backward_costs_2_5_forwards_and_more),
        ND_TEST(test_flash2_is_slower_on_hopper),
        ND_TEST(test_elementwise_is_launches_plus_bytes),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/kernels", cases);
}
