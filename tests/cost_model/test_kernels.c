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
    double sustained = f.cluster.gpu.peak_flops_per_s[ND_DTYPE_BF16] * f.calibration.gemm_frac;
    /* k0 / k and a partial wave cost at most 3 % at this size */
    ND_ASSERT_REL(rate, sustained, 0.03);
    CU_ASSERT_TRUE(rate < sustained);
}

static void test_short_kernels_burst_and_long_ones_reach_the_power_limit(void)
{
    nd_calibration calibration = f.calibration;
    calibration.gemm_frac = 0.4;
    calibration.gemm_burst_frac = 0.8;
    calibration.gemm_power_s = 1e-3;
    nd_kernel_model limited = nd_kernel_model_make(&f.cluster.gpu, &calibration, &f.train);
    calibration.gemm_frac = 0.8;
    nd_kernel_model burst = nd_kernel_model_make(&f.cluster.gpu, &calibration, &f.train);
    nd_op small = gemm(2048, 2048, 2048);
    nd_op large = gemm(65536, 16384, 65536);
    /* 22 us of work against 1 ms: 2 % slower; 0.2 s against 1 ms: the sustained rate, half of the burst rate */
    ND_ASSERT_REL(nd_gemm_s(&limited, &small), nd_gemm_s(&burst, &small), 0.03);
    ND_ASSERT_REL(nd_gemm_s(&limited, &large), 2.0 * nd_gemm_s(&burst, &large), 0.01);
    /* on a machine that is always busy, every kernel runs at the sustained rate; only memory does not slow down */
    calibration.gemm_frac = 0.4;
    calibration.gemm_power_s = 0.0;
    nd_kernel_model busy = nd_kernel_model_make(&f.cluster.gpu, &calibration, &f.train);
    ND_ASSERT_REL(nd_gemm_s(&busy, &small) - busy.kernel_s, 2.0 * (nd_gemm_s(&burst, &small) - burst.kernel_s), 0.02);
}

static void test_idle_sms_take_parts_of_a_long_k(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    /* one 128 x 128 output on 132 SMs: without a split k one SM would do all the work */
    nd_op op = gemm(128, 128, 65536);
    double one_sm_s = op.flops / (model.matrix.burst_flops_per_s / model.sm_count);
    CU_ASSERT_TRUE(nd_gemm_s(&model, &op) < one_sm_s / 10.0);
    CU_ASSERT_TRUE(nd_gemm_s(&model, &op) > one_sm_s / model.sm_count);
}

static void test_a_grouped_gemm_pays_its_own_efficiency(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    nd_op op = gemm(4096, 4096, 4096);
    double plain_s = nd_gemm_s(&model, &op) - model.kernel_s;
    op.groups = 8;
    op.hbm_bytes *= 8.0;
    op.flops *= 8.0;
    double grouped_s = nd_gemm_s(&model, &op) - model.kernel_s;
    /* eight times the tiles: only the partial wave differs (512 tiles on 132 SMs lose less than one in eight) */
    ND_ASSERT_REL(grouped_s, 8.0 * plain_s / f.calibration.grouped_frac, 0.12);
}

static void test_thin_gemm_is_bound_by_memory(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_BF16);
    nd_op op = gemm(16, 8192, 8192);
    /* tensor cores are idle for most of it and hide nearly all of their own time */
    double memory_s = op.hbm_bytes / model.gemm_hbm_bytes_per_s;
    ND_ASSERT_REL(nd_gemm_s(&model, &op) - model.kernel_s, memory_s, 0.05);
    CU_ASSERT_TRUE(nd_gemm_s(&model, &op) - model.kernel_s > memory_s);
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

static void test_casts_to_fp8_cost_their_bytes(void)
{
    nd_kernel_model model = model_of(ND_DTYPE_FP8);
    nd_op op = gemm(8192, 8192, 8192);
    op.fp8 = true;
    double without_s = nd_gemm_s(&model, &op);
    op.cast_activations = 1e9;
    op.cast_weights = 1e8;
    double bytes = 1e9 * f.calibration.fp8_cast_bytes + 1e8 * f.calibration.fp8_weight_cast_bytes;
    ND_ASSERT_REL(nd_gemm_s(&model, &op) - without_s, bytes / model.hbm_bytes_per_s, 1e-9);
    op.fp8 = false;
    op.cast_activations = 0.0;
    double sixteen_bit_s = nd_gemm_s(&model, &op);
    op.cast_activations = 1e9;
    CU_ASSERT_EQUAL(nd_gemm_s(&model, &op), sixteen_bit_s);
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

static nd_kernel_model attention_model(const char *gpu_name, nd_attention attention, double attention_frac)
{
    nd_error err = {.message = ""};
    nd_gpu_spec gpu;
    nd_calibration calibration;
    ND_ASSERT_OK(nd_gpu_find(gpu_name, &gpu, &err));
    ND_ASSERT_OK(nd_calibration_for_gpu(&gpu, &calibration, &err));
    calibration.attention_frac = attention_frac;
    nd_train_spec train = f.train;
    train.attention = attention;
    return nd_kernel_model_make(&gpu, &calibration, &train);
}

static void test_newer_generations_of_flash_attention_are_faster_on_hopper(void)
{
    nd_kernel_model flash1 = attention_model("h100", ND_ATTENTION_FLASH1, 0.6);
    nd_kernel_model flash2 = attention_model("h100", ND_ATTENTION_FLASH2, 0.6);
    nd_kernel_model flash3 = attention_model("h100", ND_ATTENTION_FLASH3, 0.6);
    CU_ASSERT_TRUE(flash1.attention_flops_per_s < flash2.attention_flops_per_s);
    CU_ASSERT_TRUE(flash2.attention_flops_per_s < flash3.attention_flops_per_s);
    /* no newer kernel exists for Ampere */
    flash2 = attention_model("a100", ND_ATTENTION_FLASH2, 0.6);
    flash3 = attention_model("a100", ND_ATTENTION_FLASH3, 0.6);
    CU_ASSERT_EQUAL(flash2.attention_flops_per_s, flash3.attention_flops_per_s);
}

/* The benchmark of the FlashAttention papers: 16k tokens, 2048 columns of heads, causal. */
static double paper_rate(const nd_kernel_model *model, int64_t seq, int64_t head_dim, bool backward)
{
    nd_op op = attention(seq, backward);
    op.batch = 16384 / seq;
    op.heads = 2048 / head_dim;
    op.qk_dim = head_dim;
    op.v_dim = head_dim;
    op.flops = 4.0 * (double)(op.batch * op.heads * head_dim) * op.pairs * (backward ? 2.5 : 1.0);
    return op.flops / nd_attention_s(model, &op) / 1e12;
}

static void test_published_rates_of_flash_attention_follow_from_the_priors(void)
{
    /* arXiv 2407.08608, figures for H100 SXM5, TFLOP/s at 1k, 4k and 16k; the priors of docs/MODEL.md, "Attention" */
    nd_kernel_model flash2 = attention_model("h100", ND_ATTENTION_FLASH2, 0.63);
    ND_ASSERT_REL(paper_rate(&flash2, 1024, 128, false), 260.0, 0.12);
    ND_ASSERT_REL(paper_rate(&flash2, 4096, 128, false), 319.0, 0.08);
    ND_ASSERT_REL(paper_rate(&flash2, 16384, 128, false), 335.0, 0.08);
    ND_ASSERT_REL(paper_rate(&flash2, 16384, 64, false), 299.0, 0.08);
    nd_kernel_model flash3 = attention_model("h100", ND_ATTENTION_FLASH3, 0.63);
    /* between FlashAttention-3 (423, 579, 616) and cuDNN (410, 518, 539) */
    ND_ASSERT_REL(paper_rate(&flash3, 1024, 128, false), 416.0, 0.08);
    ND_ASSERT_REL(paper_rate(&flash3, 4096, 128, false), 548.0, 0.08);
    ND_ASSERT_REL(paper_rate(&flash3, 16384, 128, false), 577.0, 0.08);
    /* 473 and 388 with head size 64; backward 561 and 516 without a mask, a little less with one */
    ND_ASSERT_REL(paper_rate(&flash3, 16384, 64, false), 430.0, 0.12);
    ND_ASSERT_REL(paper_rate(&flash3, 16384, 128, true), 530.0, 0.08);
}

static void test_a_window_costs_as_much_as_the_keys_in_it(void)
{
    nd_kernel_model model = attention_model("h100", ND_ATTENTION_FLASH3, 0.6);
    nd_op causal = attention(32768, false);
    nd_op window = causal;
    window.pairs = nd_attention_pairs(32768, 4096, ND_FLOPS_CAUSAL);
    window.kv_len = 4096;
    window.flops = causal.flops * window.pairs / causal.pairs;
    double ratio = nd_attention_s(&model, &window) / nd_attention_s(&model, &causal);
    CU_ASSERT_TRUE(ratio > window.pairs / causal.pairs);
    ND_ASSERT_REL(ratio, window.pairs / causal.pairs, 0.06); /* s0 over twice the window */
}

static void test_narrow_heads_are_slower_and_wide_ones_are_not(void)
{
    nd_kernel_model model = attention_model("b200", ND_ATTENTION_FLASH3, 0.6);
    double whole = paper_rate(&model, 8192, 128, false);
    ND_ASSERT_REL(paper_rate(&model, 8192, 64, false) / whole, model.head_dim64_frac, 0.03);
    double last = 0.0;
    for (int64_t head_dim = 32; head_dim <= 128; head_dim *= 2) {
        CU_ASSERT_TRUE(paper_rate(&model, 8192, head_dim, false) > last);
        last = paper_rate(&model, 8192, head_dim, false);
    }
    ND_ASSERT_REL(paper_rate(&model, 8192, 256, false), whole, 0.06); /* fewer heads: another partial wave */
    double wide = paper_rate(&model, 8192, 256, true) / paper_rate(&model, 8192, 256, false);
    ND_ASSERT_REL(wide, model.attention_bwd_frac * model.wide_head_bwd_frac, 0.01);
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
        ND_TEST(test_short_kernels_burst_and_long_ones_reach_the_power_limit),
        ND_TEST(test_idle_sms_take_parts_of_a_long_k),
        ND_TEST(test_a_grouped_gemm_pays_its_own_efficiency),
        ND_TEST(test_thin_gemm_is_bound_by_memory),
        ND_TEST(test_gemm_time_never_falls_when_a_side_grows),
        ND_TEST(test_fp8_is_faster_but_less_than_twice),
        ND_TEST(test_casts_to_fp8_cost_their_bytes),
        ND_TEST(test_attention_efficiency_rises_with_sequence),
        ND_TEST(test_attention_backward_costs_2_5_forwards_and_more),
        ND_TEST(test_newer_generations_of_flash_attention_are_faster_on_hopper),
        ND_TEST(test_published_rates_of_flash_attention_follow_from_the_priors),
        ND_TEST(test_a_window_costs_as_much_as_the_keys_in_it),
        ND_TEST(test_narrow_heads_are_slower_and_wide_ones_are_not),
        ND_TEST(test_elementwise_is_launches_plus_bytes),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/kernels", cases);
}
