#include "program/block.h"

#include <string.h>

#include "tests/nd_test.h"

static nd_model_spec llama, mixtral, deepseek, gemma;
static nd_train_spec train = {.seq_len_tokens = 4096,
                              .global_batch_seqs = 64,
                              .precision = ND_DTYPE_BF16,
                              .optimizer = ND_OPTIMIZER_ADAMW,
                              .attention = ND_ATTENTION_FLASH2,
                              .base_bits = 16};
static const nd_block_style fused = {.fused_elementwise = true,
                                     .accumulate_wgrad_fp32 = true,
                                     .gathers_sp_in_backward = true,
                                     .logit_bytes = 8.0,
                                     .loss_traffic_bytes = 20.0,
                                     .loss_chunks = 1.0};
static const nd_block_style per_op = {.selective_is_per_op = true, .loss_traffic_bytes = 34.0, .loss_chunks = 1.0};

static void test_the_models_load(void)
{
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_model_load("llama-3.1-8b", false, &llama, &err));
    ND_ASSERT_OK(nd_model_load("mixtral-8x7b", false, &mixtral, &err));
    ND_ASSERT_OK(nd_model_load("deepseek-v3", false, &deepseek, &err));
    ND_ASSERT_OK(nd_model_load("gemma-2-9b", false, &gemma, &err));
}

static nd_layout layout_of(const char *text)
{
    nd_error err = {.message = ""};
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    return layout;
}

static double flops_of(const nd_model_spec *model, const nd_layout *layout, nd_part_kind part, int32_t kind,
                       nd_pass pass, nd_op_kind op_kind)
{
    nd_op_list list;
    double flops = 0.0;
    nd_block_ops(model, layout, &train, &fused, part, kind, pass, &list);
    for (int32_t i = 0; i < list.count; i++) {
        flops += list.ops[i].kind == op_kind ? list.ops[i].flops : 0.0;
    }
    return flops;
}

static int count_collectives(const nd_layout *layout, nd_pass pass, nd_collective collective, nd_group_kind group)
{
    nd_op_list list;
    int count = 0;
    nd_block_ops(&llama, layout, &train, &fused, ND_PART_LAYER, 0, pass, &list);
    for (int32_t i = 0; i < list.count; i++) {
        const nd_op *op = &list.ops[i];
        count += op->kind == ND_OP_COLLECTIVE && op->collective == collective && op->group == group;
    }
    return count;
}

/* All layers and the head together must be the model's FLOPs per token: forward is a third of them without attention's
 * backward surplus. */
static double model_gemm_flops(const nd_model_spec *model, nd_pass pass)
{
    nd_layout one = layout_of("micro_batch=1");
    double flops = flops_of(model, &one, ND_PART_HEAD, 0, pass, ND_OP_GEMM);
    for (int32_t kind = 0; kind < (int32_t)model->layer_kinds_count; kind++) {
        flops += (double)model->layer_kinds[kind].layers * flops_of(model, &one, ND_PART_LAYER, kind, pass, ND_OP_GEMM);
    }
    return flops;
}

static void test_gemm_flops_are_two_per_active_parameter_and_token(void)
{
    const nd_model_spec *const models[] = {&llama, &mixtral, &deepseek, &gemma};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        nd_param_counts counts = nd_model_params(models[i]);
        /* the embedding lookup multiplies nothing; norms and biases are no GEMM (below 0.1 %) */
        double params = (double)(counts.active - counts.input_embedding) +
                        (models[i]->tied_embeddings ? (double)counts.input_embedding : 0.0);
        double forward = model_gemm_flops(models[i], ND_PASS_FORWARD) / 4096.0;
        ND_ASSERT_REL(forward, 2.0 * params, 1e-3);
        ND_ASSERT_REL(model_gemm_flops(models[i], ND_PASS_BACKWARD) / 4096.0, 2.0 * forward, 1e-12);
    }
}

static void test_attention_flops_follow_the_causal_triangle(void)
{
    nd_layout one = layout_of("micro_batch=1");
    double flops = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_ATTENTION);
    ND_ASSERT_REL(flops, 2.0 * 32.0 * (4096.0 * 4097.0 / 2.0) * 256.0, 1e-12);
    double backward = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_BACKWARD, ND_OP_ATTENTION);
    ND_ASSERT_REL(backward, 2.5 * flops, 1e-12);
}

static void test_windows_cut_attention(void)
{
    nd_layout one = layout_of("micro_batch=1");
    int32_t windowed = gemma.layer_kinds[0].window_tokens > 0 ? 0 : 1;
    train.seq_len_tokens = 16384;
    double local = flops_of(&gemma, &one, ND_PART_LAYER, windowed, ND_PASS_FORWARD, ND_OP_ATTENTION);
    double global = flops_of(&gemma, &one, ND_PART_LAYER, 1 - windowed, ND_PASS_FORWARD, ND_OP_ATTENTION);
    train.seq_len_tokens = 4096;
    CU_ASSERT_TRUE(local < 0.5 * global);
}

static void test_tensor_parallel_ranks_share_the_flops(void)
{
    nd_layout one = layout_of("micro_batch=1");
    nd_layout eight = layout_of("tp=8,sp=on");
    double whole = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_GEMM);
    ND_ASSERT_REL(flops_of(&llama, &eight, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_GEMM), whole / 8.0, 1e-12);
}

static void test_context_parallel_methods_share_the_attention(void)
{
    nd_layout one = layout_of("micro_batch=1");
    double whole = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_ATTENTION);
    const char *const layouts[] = {"cp=4,cp_method=ring", "cp=4,cp_method=allgather", "cp=4,cp_method=ulysses"};
    for (size_t i = 0; i < 3; i++) {
        nd_layout layout = layout_of(layouts[i]);
        double part = flops_of(&llama, &layout, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_ATTENTION);
        ND_ASSERT_REL(part, whole / 4.0, 1e-12);
    }
}

static void test_tensor_parallel_collectives_are_megatrons(void)
{
    nd_layout plain = layout_of("tp=4,sp=off");
    nd_layout sp = layout_of("tp=4,sp=on");
    CU_ASSERT_EQUAL(count_collectives(&plain, ND_PASS_FORWARD, ND_ALL_REDUCE, ND_GROUP_TP), 2);
    CU_ASSERT_EQUAL(count_collectives(&plain, ND_PASS_BACKWARD, ND_ALL_REDUCE, ND_GROUP_TP), 2);
    CU_ASSERT_EQUAL(count_collectives(&sp, ND_PASS_FORWARD, ND_ALL_GATHER, ND_GROUP_TP), 2);
    CU_ASSERT_EQUAL(count_collectives(&sp, ND_PASS_FORWARD, ND_REDUCE_SCATTER, ND_GROUP_TP), 2);
    CU_ASSERT_EQUAL(count_collectives(&sp, ND_PASS_BACKWARD, ND_REDUCE_SCATTER, ND_GROUP_TP), 2);
    /* two for the gradients, two to gather the saved inputs again */
    CU_ASSERT_EQUAL(count_collectives(&sp, ND_PASS_BACKWARD, ND_ALL_GATHER, ND_GROUP_TP), 4);
}

static void test_recompute_lists_what_its_mode_repeats(void)
{
    nd_op_list list;
    nd_layout layout = layout_of("tp=4,sp=on");
    nd_block_ops(&llama, &layout, &train, &fused, ND_PART_LAYER, 0, ND_PASS_RECOMPUTE, &list);
    CU_ASSERT_EQUAL(list.count, 0);
    layout.recompute = ND_RECOMPUTE_SELECTIVE; /* core attention */
    nd_block_ops(&llama, &layout, &train, &fused, ND_PART_LAYER, 0, ND_PASS_RECOMPUTE, &list);
    CU_ASSERT_EQUAL(list.count, 1);
    CU_ASSERT_EQUAL(list.ops[0].kind, ND_OP_ATTENTION);
    layout.recompute = ND_RECOMPUTE_FULL;
    nd_op_list forward;
    nd_block_ops(&llama, &layout, &train, &fused, ND_PART_LAYER, 0, ND_PASS_RECOMPUTE, &list);
    nd_block_ops(&llama, &layout, &train, &fused, ND_PART_LAYER, 0, ND_PASS_FORWARD, &forward);
    CU_ASSERT_EQUAL(list.count, forward.count);
}

static void test_per_op_selective_repeats_part_of_the_matmuls(void)
{
    nd_op_list list;
    nd_layout layout = layout_of("recompute=selective");
    double flops = 0.0;
    nd_block_ops(&llama, &layout, &train, &per_op, ND_PART_LAYER, 0, ND_PASS_RECOMPUTE, &list);
    for (int32_t i = 0; i < list.count; i++) {
        CU_ASSERT_NOT_EQUAL(list.ops[i].kind, ND_OP_ATTENTION); /* its output is kept */
        flops += list.ops[i].flops;
    }
    double forward = flops_of(&llama, &layout, ND_PART_LAYER, 0, ND_PASS_FORWARD, ND_OP_GEMM);
    /* k, out and one of gate and up: (4 + 16.8 + 58.7) of 218 M weights */
    ND_ASSERT_REL(flops / forward, 0.365, 0.01);
}

static void test_experts_see_their_share_of_the_tokens(void)
{
    nd_op_list list;
    nd_layout layout = layout_of("dp_shard=8,ep=8");
    nd_block_ops(&mixtral, &layout, &train, &fused, ND_PART_LAYER, 0, ND_PASS_FORWARD, &list);
    int dispatches = 0;
    for (int32_t i = 0; i < list.count; i++) {
        const nd_op *op = &list.ops[i];
        if (op->kind == ND_OP_GEMM && strcmp(op->name, "expert_up") == 0) {
            CU_ASSERT_EQUAL(op->groups, 1);
            CU_ASSERT_EQUAL(op->m, 2 * 4096);
            CU_ASSERT_EQUAL(op->n, 2 * 14336);
        }
        dispatches += op->kind == ND_OP_COLLECTIVE && op->collective == ND_ALL_TO_ALL;
    }
    CU_ASSERT_EQUAL(dispatches, 2);
}

static void test_lora_skips_weight_gradients_of_the_base(void)
{
    nd_layout one = layout_of("micro_batch=1");
    double full = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_BACKWARD, ND_OP_GEMM);
    train.lora_rank = 16;
    double lora = flops_of(&llama, &one, ND_PART_LAYER, 0, ND_PASS_BACKWARD, ND_OP_GEMM);
    train.lora_rank = 0;
    CU_ASSERT_TRUE(lora > 0.5 * full && lora < 0.55 * full);
}

static void test_kv_heads_are_replicated_when_tp_exceeds_them(void)
{
    nd_layout layout = layout_of("tp=16");
    CU_ASSERT_EQUAL(nd_block_kv_heads(&llama, &layout), 1);
    CU_ASSERT_EQUAL(nd_block_heads(&llama, &layout), 2);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_models_load),
        ND_TEST(test_gemm_flops_are_two_per_active_parameter_and_token),
        ND_TEST(test_attention_flops_follow_the_causal_triangle),
        ND_TEST(test_windows_cut_attention),
        ND_TEST(test_tensor_parallel_ranks_share_the_flops),
        ND_TEST(test_context_parallel_methods_share_the_attention),
        ND_TEST(test_tensor_parallel_collectives_are_megatrons),
        ND_TEST(test_recompute_lists_what_its_mode_repeats),
        ND_TEST(test_per_op_selective_repeats_part_of_the_matmuls),
        ND_TEST(test_experts_see_their_share_of_the_tokens),
        ND_TEST(test_lora_skips_weight_gradients_of_the_base),
        ND_TEST(test_kv_heads_are_replicated_when_tp_exceeds_them),
        {NULL, NULL},
    };
    return nd_test_main("program/block", cases);
}
