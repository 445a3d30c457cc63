/* What comes and goes within a step: loss, gathered weights, reduction buffers, temporaries; and the interval. */
#include <math.h>

#include "core/units.h"
#include "tests/cost_model/fixture.h"

static fixture fsdp, compiled, megatron, deepspeed, old_fsdp;

static void test_the_fixtures_load(void)
{
    fixture_make(&fsdp, "llama-3.1-8b", "1x8xh100", "torch-fsdp2", 8192, 64);
    fixture_make(&compiled, "llama-3.1-8b", "2x8xh100", "torch-fsdp2-compile", 8192, 64);
    fixture_make(&megatron, "llama-3.1-8b", "1x8xh100", "megatron", 8192, 64);
    fixture_make(&deepspeed, "llama-3.1-8b", "1x8xh100", "deepspeed", 1024, 64);
    fixture_make(&old_fsdp, "llama-3.1-70b", "16x8xh100", "torch-fsdp1", 2048, 128);
}

static nd_memory_breakdown memory(const fixture *f, const char *layout)
{
    return fixture_estimate(f, layout).memory;
}

/* 8,192 tokens x 128,256 columns. */
static double logits(double bytes)
{
    return bytes * 8192.0 * 128256.0;
}

static void test_the_loss_is_counted_when_it_peaks_and_by_its_kind(void)
{
    nd_memory_breakdown eager = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full");
    CU_ASSERT_EQUAL(eager.phase, ND_PHASE_FORWARD);
    ND_ASSERT_REL(eager.logits_bytes, logits(15.0), 1e-12);
    nd_memory_breakdown fused = memory(&megatron, "dp_shard=8,sharding=zero1");
    CU_ASSERT_EQUAL(fused.phase, ND_PHASE_FORWARD);
    ND_ASSERT_REL(fused.logits_bytes, logits(6.0), 1e-12);
}

/* PyTorch's vocabulary-parallel loss is eager even where the rest is compiled. */
static void test_tensor_parallelism_changes_the_loss_of_pytorch(void)
{
    nd_memory_breakdown whole = memory(&compiled, "dp_shard=16,sharding=zero3,recompute=full,micro_batch=4");
    nd_memory_breakdown tp = memory(&compiled, "dp_shard=8,tp=2,sp=on,sharding=zero3,recompute=full,micro_batch=4");
    ND_ASSERT_REL(whole.logits_bytes, logits(4.0 * 4.5), 1e-12);
    ND_ASSERT_REL(tp.logits_bytes, logits(4.0 * 19.0 / 2.0), 1e-12);
}

/* The logits are gone when layers run backward, so the peak is less than the sum of both. */
static void test_loss_and_layers_do_not_peak_together(void)
{
    nd_memory_breakdown m = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full");
    double both = m.phase_bytes[ND_PHASE_FORWARD] + m.phase_bytes[ND_PHASE_BACKWARD] - m.weights_bytes - m.grads_bytes -
                  m.optimizer_bytes;
    CU_ASSERT_TRUE(m.peak_bytes < both);
    ND_ASSERT_REL(m.peak_bytes, fmax(m.phase_bytes[ND_PHASE_FORWARD], m.phase_bytes[ND_PHASE_BACKWARD]), 1e-12);
}

/* Dummy gradients are cached, so they are there in the optimizer phase as well. */
static void test_dummy_gradients_of_transformer_engine_stay(void)
{
    fixture without = megatron;
    without.stack.dummy_wgrad = false;
    without.context.stack = &without.stack;
    double layer = 2.0 * (4096.0 * (4096.0 + 2.0 * 1024.0) + 4096.0 * 4096.0 + 3.0 * 4096.0 * 14336.0);
    double more = memory(&megatron, "dp_shard=8,sharding=zero1").phase_bytes[ND_PHASE_OPTIMIZER] -
                  memory(&without, "dp_shard=8,sharding=zero1").phase_bytes[ND_PHASE_OPTIMIZER];
    ND_ASSERT_REL(more, layer * megatron.stack.reserved_ratio, 1e-3);
}

/* hiyouga/LLaMA-Factory issue 1221: the allocation that failed was one fp32 shard. */
static void test_deepspeed_converts_gradients_in_the_optimizer_step(void)
{
    nd_memory_breakdown m = memory(&deepspeed, "dp_shard=8,sharding=zero2,recompute=full");
    double shard = (double)deepspeed.context.params.total / 8.0;
    CU_ASSERT_EQUAL(m.phase, ND_PHASE_OPTIMIZER);
    ND_ASSERT_REL(m.optimizer_bytes, (12.0 + 8.0) * shard, 1e-9);
    /* two buckets of 5e8 16-bit elements */
    ND_ASSERT_REL(m.gather_buffers_bytes, 2e9, 1e-12);
    /* under ZeRO-3 at most a sub-group of 1e9 parameters at a time, and one bucket */
    nd_memory_breakdown two = memory(&deepspeed, "dp_shard=2,sharding=zero3,recompute=full");
    CU_ASSERT_EQUAL(two.phase, ND_PHASE_OPTIMIZER);
    ND_ASSERT_REL(two.optimizer_bytes, 12.0 * (double)deepspeed.context.params.total / 2.0 + 8e9, 1e-9);
    ND_ASSERT_REL(two.gather_buffers_bytes, 1e9, 1e-12);
}

static void test_pytorch_pipelines_keep_what_crosses_stages(void)
{
    fixture frees = compiled;
    frees.stack.stage_buffers = 0.0;
    frees.context.stack = &frees.stack;
    const char *layout = "pp=2,dp_shard=8,sharding=zero2,recompute=full,grad_accum=8";
    double more =
        memory(&compiled, layout).phase_bytes[ND_PHASE_FORWARD] - memory(&frees, layout).phase_bytes[ND_PHASE_FORWARD];
    ND_ASSERT_REL(more, 3.0 * 8.0 * 2.0 * 8192.0 * 4096.0 * compiled.stack.reserved_ratio, 1e-9);
}

static void test_eager_norms_and_gates_keep_more(void)
{
    nd_layout layout = nd_layout_single();
    double eager = nd_block_saved_bytes(&fsdp.model, &layout, &fsdp.train, &fsdp.stack.style, 0, ND_RECOMPUTE_NONE);
    double fused = nd_block_saved_bytes(&fsdp.model, &layout, &fsdp.train, &compiled.stack.style, 0, ND_RECOMPUTE_NONE);
    /* two norms: the input in fp32, not in 16 bit, and the normalised value: 4 bytes more each; the gate 2 */
    ND_ASSERT_REL(eager - fused, 8192.0 * (2.0 * 4.0 * 4096.0 + 2.0 * 14336.0), 1e-12);
    double kept_eager =
        nd_block_saved_bytes(&fsdp.model, &layout, &fsdp.train, &fsdp.stack.style, 0, ND_RECOMPUTE_SELECTIVE);
    double kept_fused =
        nd_block_saved_bytes(&fsdp.model, &layout, &fsdp.train, &compiled.stack.style, 0, ND_RECOMPUTE_SELECTIVE);
    ND_ASSERT_REL(kept_eager, kept_fused, 1e-12);
}

static void test_fp8_of_transformer_engine_keeps_inputs_in_one_byte(void)
{
    fixture fp8 = megatron;
    fp8.train.precision = ND_DTYPE_FP8;
    fp8.context.train = &fp8.train;
    nd_layout layout = nd_layout_single();
    double narrow = nd_block_saved_bytes(&fp8.model, &layout, &fp8.train, &fp8.stack.style, 0, ND_RECOMPUTE_NONE);
    double wide = nd_block_saved_bytes(&fp8.model, &layout, &megatron.train, &fp8.stack.style, 0, ND_RECOMPUTE_NONE);
    /* two norm outputs and the activation's lose a byte, the output projection's own copy gains one */
    ND_ASSERT_REL(wide - narrow, 8192.0 * (2.0 * 4096.0 + 14336.0 - 4096.0), 1e-12);
    double torchao = nd_block_saved_bytes(&fp8.model, &layout, &fp8.train, &compiled.stack.style, 0, ND_RECOMPUTE_NONE);
    ND_ASSERT_REL(torchao, wide, 1e-12);
}

/* Stacks with measured rows have the interval of those rows, others one that grows with what is not state. */
static void test_the_interval_widens_with_what_is_uncertain(void)
{
    nd_memory_breakdown sure = memory(&megatron, "dp_shard=8,sharding=zero1");
    ND_ASSERT_REL(sure.peak_high_bytes, sure.peak_bytes * megatron.calibration.memory_high_frac, 1e-12);
    ND_ASSERT_REL(sure.peak_low_bytes, sure.peak_bytes * megatron.calibration.memory_low_frac, 1e-12);
    nd_memory_breakdown few = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full");
    nd_memory_breakdown many = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full,micro_batch=4");
    CU_ASSERT_TRUE(few.peak_high_bytes > few.peak_bytes * fsdp.calibration.memory_high_frac);
    CU_ASSERT_TRUE(many.peak_high_bytes / many.peak_bytes > few.peak_high_bytes / few.peak_bytes);
    CU_ASSERT_TRUE(many.peak_low_bytes / many.peak_bytes < few.peak_low_bytes / few.peak_bytes);
}

static void test_a_model_that_cannot_be_loaded_whole_is_borderline_under_fsdp1(void)
{
    nd_memory_breakdown m = memory(&old_fsdp, "dp_shard=128,sharding=zero3,recompute=full");
    CU_ASSERT_TRUE(m.peak_high_bytes < m.capacity_bytes);
    CU_ASSERT_TRUE(m.load_whole_bytes > 4.0 * (double)old_fsdp.context.params.total);
    CU_ASSERT_EQUAL(m.verdict, ND_VERDICT_BORDERLINE);
    /* offloaded parameters are loaded on the host */
    nd_memory_breakdown offloaded = memory(&old_fsdp, "dp_shard=128,sharding=zero3,recompute=full,offload=params");
    CU_ASSERT_EQUAL(offloaded.load_whole_bytes, 0.0);
    CU_ASSERT_EQUAL(offloaded.verdict, ND_VERDICT_FITS);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_fixtures_load),
        ND_TEST(test_the_loss_is_counted_when_it_peaks_and_by_its_kind),
        ND_TEST(test_tensor_parallelism_changes_the_loss_of_pytorch),
        ND_TEST(test_loss_and_layers_do_not_peak_together),
        ND_TEST(test_dummy_gradients_of_transformer_engine_stay),
        ND_TEST(test_deepspeed_converts_gradients_in_the_optimizer_step),
        ND_TEST(test_pytorch_pipelines_keep_what_crosses_stages),
        ND_TEST(test_eager_norms_and_gates_keep_more),
        ND_TEST(test_fp8_of_transformer_engine_keeps_inputs_in_one_byte),
        ND_TEST(test_the_interval_widens_with_what_is_uncertain),
        ND_TEST(test_a_model_that_cannot_be_loaded_whole_is_borderline_under_fsdp1),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/memory_buffers", cases);
}
