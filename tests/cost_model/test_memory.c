#include <math.h>
#include <string.h>

#include "core/units.h"
#include "cost_model/stages.h"
#include "tests/cost_model/fixture.h"

static fixture fsdp, megatron, ddp, deepspeed, moe;

static void test_the_fixtures_load(void)
{
    fixture_make(&fsdp, "llama-3.1-8b", "1x8xh100", "torch-fsdp2", 4096, 64);
    fixture_make(&megatron, "llama-3.1-8b", "1x8xh100", "megatron", 4096, 64);
    fixture_make(&ddp, "llama-3.2-1b", "1x8xh100", "torch-ddp", 4096, 64);
    fixture_make(&deepspeed, "llama-3.1-8b", "1x8xh100", "deepspeed", 4096, 64);
    fixture_make(&moe, "mixtral-8x7b", "2x8xh100", "ndplan", 4096, 64);
}

static nd_memory_breakdown memory(const fixture *f, const char *layout)
{
    return fixture_estimate(f, layout).memory;
}

static double states(const nd_memory_breakdown *m)
{
    return m->weights_bytes + m->grads_bytes + m->optimizer_bytes;
}

static void test_ddp_holds_18_bytes_a_parameter(void)
{
    nd_memory_breakdown m = memory(&ddp, "dp_replicate=8");
    ND_ASSERT_REL(states(&m), 18.0 * (double)ddp.context.params.total, 1e-9);
}

static void test_replicas_do_not_reduce_memory(void)
{
    nd_memory_breakdown two = memory(&ddp, "dp_replicate=2");
    nd_memory_breakdown eight = memory(&ddp, "dp_replicate=8");
    ND_ASSERT_REL(two.allocated_bytes, eight.allocated_bytes, 1e-12);
}

static void test_fsdp_divides_16_bytes_by_the_shard_group(void)
{
    nd_memory_breakdown m = memory(&fsdp, "dp_shard=8,sharding=zero3");
    ND_ASSERT_REL(states(&m), 16.0 * (double)fsdp.context.params.total / 8.0, 1e-9);
}

static void test_context_parallel_ranks_share_the_fsdp_shards(void)
{
    nd_memory_breakdown m = memory(&fsdp, "dp_shard=4,cp=2,sharding=zero3");
    ND_ASSERT_REL(states(&m), 16.0 * (double)fsdp.context.params.total / 8.0, 1e-9);
}

static void test_hsdp_replicas_do_not_shard(void)
{
    nd_memory_breakdown m = memory(&fsdp, "dp_replicate=2,dp_shard=4,sharding=zero3");
    ND_ASSERT_REL(states(&m), 16.0 * (double)fsdp.context.params.total / 4.0, 1e-9);
}

static void test_keeping_gathered_weights_costs_two_bytes_a_parameter(void)
{
    nd_memory_breakdown reshard = memory(&fsdp, "dp_shard=8,sharding=zero3");
    nd_memory_breakdown keep = memory(&fsdp, "dp_shard=8,sharding=zero2");
    ND_ASSERT_REL(keep.weights_bytes - reshard.weights_bytes, 2.0 * (double)fsdp.context.params.total, 1e-9);
}

/* Megatron-LM docs, distributed optimizer: bf16 weights, fp32 gradients: 6 + 12 / d bytes a parameter. */
static void test_megatron_distributed_optimizer_is_6_plus_12_over_d(void)
{
    nd_memory_breakdown m = memory(&megatron, "dp_shard=8,sharding=zero1");
    ND_ASSERT_REL(states(&m), (6.0 + 12.0 / 8.0) * (double)megatron.context.params.total, 1e-9);
}

/* LLaMA-Factory#1221: ZeRO-2 is 2 bytes whole and 14 / d sharded. */
static void test_deepspeed_zero2_is_2_plus_14_over_d(void)
{
    nd_memory_breakdown m = memory(&deepspeed, "dp_shard=8,sharding=zero2");
    ND_ASSERT_REL(m.weights_bytes + m.grads_bytes, (2.0 + 2.0 / 8.0) * (double)deepspeed.context.params.total, 1e-9);
}

static void test_tensor_parallelism_divides_all_but_norms(void)
{
    nd_memory_breakdown one = memory(&megatron, "dp_shard=4");
    nd_memory_breakdown two = memory(&megatron, "dp_shard=4,tp=2,sp=on");
    double ratio = two.weights_bytes / one.weights_bytes;
    CU_ASSERT_TRUE(ratio > 0.5 && ratio < 0.501);
}

/* Korthikanti et al. 2022, table 2: without flash attention s b h (34 + 5 a s / h) bytes a layer; our inventory keeps
 * no dropout masks (2 + ... bytes less), so it must lie below and within 12 %. */
static void test_saved_bytes_follow_the_published_formula(void)
{
    static fixture f;
    fixture_make(&f, "gpt3-175b", "1x8xa100", "megatron", 2048, 8);
    f.train.attention = ND_ATTENTION_MATH;
    nd_layout layout = nd_layout_single();
    double saved = nd_block_saved_bytes(&f.model, &layout, &f.train, &f.stack.style, 0, ND_RECOMPUTE_NONE);
    double s = 2048.0;
    double h = 12288.0;
    double published = s * h * (34.0 + 5.0 * 96.0 * s / h);
    CU_ASSERT_TRUE(saved < published);
    ND_ASSERT_REL(saved, published, 0.12);
}

static void test_full_recompute_keeps_the_layer_input_only(void)
{
    nd_layout layout = fixture_layout(&fsdp, "dp_shard=8");
    double saved = nd_block_saved_bytes(&fsdp.model, &layout, &fsdp.train, &fsdp.stack.style, 0, ND_RECOMPUTE_FULL);
    ND_ASSERT_REL(saved, 2.0 * 4096.0 * 4096.0, 1e-12);
}

static void test_recompute_modes_are_ordered(void)
{
    double none = memory(&fsdp, "dp_shard=8,sharding=zero3").activations_bytes;
    double selective = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=selective").activations_bytes;
    double every = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=every:2").activations_bytes;
    double full = memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full").activations_bytes;
    CU_ASSERT_TRUE(none > selective && selective > full);
    CU_ASSERT_TRUE(none > every && every > full);
}

static void test_pipeline_keeps_pp_micro_batches_on_the_first_stage(void)
{
    nd_memory_breakdown m = memory(&megatron, "pp=4,dp_shard=2,sharding=zero1");
    CU_ASSERT_TRUE(m.stage == 0 || m.stage == 3);
    nd_memory_breakdown few = memory(&megatron, "pp=4,dp_shard=2,sharding=zero1,grad_accum=1");
    CU_ASSERT_TRUE(few.activations_bytes < m.activations_bytes);
}

/* On every stage: m micro-batches of its layers, and less than one beside them for what the backward pass works on. */
static void test_gpipe_keeps_every_micro_batch(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-70b", "4x8xh100", "ndplan", 4096, 64);
    f.context.stack = &f.stack;
    nd_memory_breakdown one = memory(&f, "pp=4,tp=8,sp=on,grad_accum=4");
    CU_ASSERT_EQUAL(one.stage, 0);
    for (int64_t m = 4; m <= 64; m *= 4) {
        char text[96];
        (void)snprintf(text, sizeof text, "pp=4,tp=8,sp=on,schedule=gpipe,grad_accum=%d", (int)m);
        nd_layout layout = fixture_layout(&f, text);
        nd_block_prices prices;
        nd_memory_breakdown first;
        const int64_t counts[ND_LAYER_KINDS_MAX] = {f.model.layers / 4};
        nd_price_blocks(&f.context, &layout, &prices);
        for (int32_t stage = 0; stage < 4; stage++) {
            CU_ASSERT_EQUAL(nd_stage_in_flight(&layout, stage), (double)m);
        }
        nd_estimate_stage_memory(&f.context, &layout, &prices, 1, counts, &first);
        double per_micro_batch = prices.saved_bytes[0] * (double)counts[0] * (1.0 + f.stack.fragmentation_frac);
        CU_ASSERT_TRUE(first.activations_bytes >= (double)m * per_micro_batch);
        CU_ASSERT_TRUE(first.activations_bytes < (double)(m + 1) * per_micro_batch);
    }
}

/* The last stage's losses wait for their backward passes, half of their bytes each. */
static void test_gpipe_keeps_the_logits_of_all_micro_batches(void)
{
    static fixture f;
    fixture_make(&f, "gemma-2-2b", "1x8xh100", "ndplan", 4096, 64);
    nd_memory_breakdown one = memory(&f, "pp=2,dp_shard=4,sharding=zero1,grad_accum=16,recompute=full");
    nd_memory_breakdown all = memory(&f, "pp=2,dp_shard=4,sharding=zero1,grad_accum=16,recompute=full,schedule=gpipe");
    CU_ASSERT_EQUAL(one.stage, 1);
    CU_ASSERT_EQUAL(all.stage, 1);
    ND_ASSERT_REL(all.logits_bytes, one.logits_bytes * (1.0 + 15.0 / 2.0), 1e-12);
}

/* The few stages that are looked at must include the one that all stages together would name. */
static void test_the_peak_stage_is_found_among_all_stages(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-405b", "64x8xh100", "megatron", 8192, 512); /* 126 layers: unequal stages */
    for (int32_t pp = 2; pp <= 64; pp *= 2) {
        nd_layout layout = nd_layout_single();
        nd_memory_breakdown peak;
        nd_block_prices prices;
        layout.size[ND_AXIS_PP] = pp;
        layout.size[ND_AXIS_TP] = 8;
        layout.size[ND_AXIS_DP_SHARD] = 64 / pp;
        layout.sharding = ND_SHARDING_ZERO1;
        layout.sequence_parallel = true;
        layout.grad_accum = 512 / layout.size[ND_AXIS_DP_SHARD];
        nd_price_blocks(&f.context, &layout, &prices);
        nd_estimate_memory(&f.context, &layout, &prices, &peak);
        nd_stage_split split;
        int32_t stages[ND_STAGE_CANDIDATES_MAX];
        nd_split_stages(&f.context, &layout, &prices, &split);
        int32_t count = nd_stage_candidates(&f.context, &split, stages);
        double most = 0.0;
        for (int32_t stage = 0; stage < pp; stage++) { /* saved activations and weights of every stage */
            int64_t counts[ND_LAYER_KINDS_MAX];
            nd_stage_layers(&f.context, &split, stage, counts);
            double weights = 6.0 * prices.params_dense[0] * (double)counts[0];
            double saved = nd_stage_in_flight(&layout, stage) * prices.saved_bytes[0] * (double)counts[0];
            most = stage > 0 && stage < pp - 1 ? fmax(most, weights + saved) : most;
        }
        double seen = 0.0;
        for (int32_t i = 0; i < count; i++) {
            int64_t counts[ND_LAYER_KINDS_MAX];
            nd_stage_layers(&f.context, &split, stages[i], counts);
            double weights = 6.0 * prices.params_dense[0] * (double)counts[0];
            seen = fmax(seen,
                        weights + nd_stage_in_flight(&layout, stages[i]) * prices.saved_bytes[0] * (double)counts[0]);
        }
        CU_ASSERT_TRUE(seen >= most);
        CU_ASSERT_TRUE(peak.stage >= 0 && peak.stage < pp);
    }
}

static void test_terms_add_up_and_phases_bound_the_peak(void)
{
    const char *const layouts[] = {"dp_shard=16,sharding=zero3", "pp=2,dp_shard=8,sharding=zero1",
                                   "tp=2,sp=on,dp_shard=8,ep=8,sharding=zero3"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        nd_memory_breakdown m = memory(&moe, layouts[i]);
        double sum = m.weights_bytes + m.grads_bytes + m.optimizer_bytes + m.activations_bytes +
                     m.gather_buffers_bytes + m.logits_bytes;
        ND_ASSERT_REL(sum, m.allocated_bytes, 1e-12);
        ND_ASSERT_REL(m.allocated_bytes + m.overhead_bytes, m.peak_bytes, 1e-12);
        for (int phase = 0; phase < ND_PHASE_COUNT; phase++) {
            CU_ASSERT_TRUE(m.phase_bytes[phase] > 0.0 && m.phase_bytes[phase] <= m.peak_bytes);
        }
        CU_ASSERT_TRUE(m.peak_low_bytes < m.peak_bytes && m.peak_bytes < m.peak_high_bytes);
    }
}

static void test_expert_parallelism_divides_experts_not_attention(void)
{
    nd_memory_breakdown without = memory(&moe, "dp_shard=16,sharding=zero1");
    nd_memory_breakdown with = memory(&moe, "dp_shard=16,ep=8,sharding=zero1");
    double experts = (double)moe.context.params.experts_total;
    double saved = without.weights_bytes - with.weights_bytes;
    ND_ASSERT_REL(saved, 2.0 * experts * 7.0 / 8.0, 1e-9);
}

static void test_lora_trains_adapters_only(void)
{
    static fixture f;
    nd_error err = {.message = ""};
    fixture_make(&f, "llama-3.1-8b", "1x8xh100", "torch-fsdp2", 4096, 64);
    ND_ASSERT_OK(nd_lora_parse("r=16", &f.train, &err));
    ND_ASSERT_OK(nd_cost_context_init(&f.model, &f.cluster, &f.train, &f.stack, &f.calibration, &f.context, &err));
    /* r x (in + out) over q, k, v, o, gate, up, down of Llama-3.1-8B */
    double expected = 32.0 * 16.0 * ((4096 + 4096) + 2 * (4096 + 1024) + (4096 + 4096) + 3 * (4096 + 14336));
    ND_ASSERT_REL(f.context.lora_params, expected, 1e-12);
    nd_memory_breakdown lora = memory(&f, "dp_shard=8,sharding=zero3");
    CU_ASSERT_TRUE(lora.optimizer_bytes < 0.01 * memory(&fsdp, "dp_shard=8,sharding=zero3").optimizer_bytes);
    ND_ASSERT_OK(nd_lora_parse("r=16,bits=4", &f.train, &err));
    nd_memory_breakdown quantised = memory(&f, "dp_replicate=8");
    f.train.base_bits = 16;
    nd_memory_breakdown whole = memory(&f, "dp_replicate=8");
    CU_ASSERT_TRUE(quantised.weights_bytes < 0.5 * whole.weights_bytes);
}

static void test_offload_moves_states_to_the_host(void)
{
    nd_memory_breakdown gpu = memory(&deepspeed, "dp_shard=8,sharding=zero3");
    nd_memory_breakdown host = memory(&deepspeed, "dp_shard=8,sharding=zero3,offload=optimizer");
    CU_ASSERT_EQUAL(host.optimizer_bytes, 0.0);
    CU_ASSERT_TRUE(host.host_bytes - gpu.host_bytes >= 12.0 * (double)deepspeed.context.params.total);
    CU_ASSERT_TRUE(memory(&deepspeed, "dp_shard=8,sharding=zero3,offload=params").peak_bytes < host.peak_bytes);
}

static void test_verdict_has_three_values(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-70b", "1x8xh100", "torch-fsdp2", 4096, 64);
    CU_ASSERT_EQUAL(memory(&f, "dp_shard=8,sharding=zero3").verdict, ND_VERDICT_NO);
    CU_ASSERT_EQUAL(memory(&fsdp, "dp_shard=8,sharding=zero3,recompute=full").verdict, ND_VERDICT_FITS);
    f.cluster.gpu.memory_bytes = (int64_t)memory(&f, "dp_shard=8,sharding=zero3").peak_bytes;
    CU_ASSERT_EQUAL(memory(&f, "dp_shard=8,sharding=zero3").verdict, ND_VERDICT_BORDERLINE);
}

static void test_optimizers_differ_by_their_state_bytes(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "1x8xh100", "torch-fsdp2", 4096, 64);
    double adam = memory(&f, "dp_shard=8,sharding=zero3").optimizer_bytes;
    f.train.optimizer = ND_OPTIMIZER_ADAMW_8BIT;
    ND_ASSERT_REL(memory(&f, "dp_shard=8,sharding=zero3").optimizer_bytes, adam / 4.0, 1e-12);
    f.train.optimizer = ND_OPTIMIZER_SGD;
    ND_ASSERT_REL(memory(&f, "dp_shard=8,sharding=zero3").optimizer_bytes, adam / 2.0, 1e-12);
}

/* PyTorch's Adam keeps its states in the dtype of the weights, Megatron's has fp32 masters beside 16-bit states. */
static void test_16_bit_adam_means_16_bit_weights_in_pytorch(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "1x8xh100", "torch-fsdp2", 4096, 64);
    f.train.optimizer = ND_OPTIMIZER_ADAMW_BF16;
    nd_memory_breakdown m = memory(&f, "dp_shard=8,sharding=zero3");
    ND_ASSERT_REL(states(&m), 8.0 * (double)f.context.params.total / 8.0, 1e-9);
    fixture_make(&f, "llama-3.1-8b", "1x8xh100", "megatron", 4096, 64);
    f.train.optimizer = ND_OPTIMIZER_ADAMW_BF16;
    m = memory(&f, "dp_shard=8,sharding=zero1");
    ND_ASSERT_REL(states(&m), (6.0 + 8.0 / 8.0) * (double)f.context.params.total, 1e-9);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_fixtures_load),
        ND_TEST(test_ddp_holds_18_bytes_a_parameter),
        ND_TEST(test_replicas_do_not_reduce_memory),
        ND_TEST(test_fsdp_divides_16_bytes_by_the_shard_group),
        ND_TEST(test_context_parallel_ranks_share_the_fsdp_shards),
        ND_TEST(test_hsdp_replicas_do_not_shard),
        ND_TEST(test_keeping_gathered_weights_costs_two_bytes_a_parameter),
        ND_TEST(test_megatron_distributed_optimizer_is_6_plus_12_over_d),
        ND_TEST(test_deepspeed_zero2_is_2_plus_14_over_d),
        ND_TEST(test_tensor_parallelism_divides_all_but_norms),
        ND_TEST(test_saved_bytes_follow_the_published_formula),
        ND_TEST(test_full_recompute_keeps_the_layer_input_only),
        ND_TEST(test_recompute_modes_are_ordered),
        ND_TEST(test_pipeline_keeps_pp_micro_batches_on_the_first_stage),
        ND_TEST(test_gpipe_keeps_every_micro_batch),
        ND_TEST(test_gpipe_keeps_the_logits_of_all_micro_batches),
        ND_TEST(test_the_peak_stage_is_found_among_all_stages),
        ND_TEST(test_terms_add_up_and_phases_bound_the_peak),
        ND_TEST(test_expert_parallelism_divides_experts_not_attention),
        ND_TEST(test_lora_trains_adapters_only),
        ND_TEST(test_offload_moves_states_to_the_host),
        ND_TEST(test_verdict_has_three_values),
        ND_TEST(test_optimizers_differ_by_their_state_bytes),
        ND_TEST(test_16_bit_adam_means_16_bit_weights_in_pytorch),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/memory", cases);
}
