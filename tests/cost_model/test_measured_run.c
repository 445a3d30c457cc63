/* One row of a table of measured runs becomes model, cluster, software, layout, training and what was measured. */
#include "cost_model/measured_run.h"

#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "cost_model/measured_table.h"
#include "tests/nd_test.h"

/* Read the one row of a table with these two lines. */
static nd_status read_row(const char *header, const char *row, nd_measured_run *out, nd_error *err)
{
    char text[2048];
    nd_csv *csv = NULL;
    int length = snprintf(text, sizeof text, "%s\n%s\n", header, row);
    ND_TRY(nd_csv_parse(text, (size_t)length, "runs.csv", &csv, err));
    nd_status status = nd_measured_check(csv, err);
    status = status == ND_OK ? nd_measured_read(csv, 0, out, err) : status;
    nd_csv_free(csv);
    return status;
}

/* The same for a row that must be good. */
static nd_measured_run good_row(const char *header, const char *row)
{
    static nd_measured_run run;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(read_row(header, row, &run, &err));
    return run;
}

static bool assumes(const nd_measured_run *run, nd_run_assumption assumption)
{
    return (run->assumed >> assumption & 1u) != 0;
}

static void test_the_least_that_a_row_can_say_is_predicted_with_stated_assumptions(void)
{
    nd_error err = {.message = ""};
    nd_calibration calibration;
    nd_estimate estimate;
    nd_measured_run run = good_row("model,gpu,gpus", "llama-3.1-8b,H100-80GB,1");
    CU_ASSERT_EQUAL(run.model.layers, 32);
    CU_ASSERT_EQUAL(run.cluster.gpus, 1);
    CU_ASSERT_STRING_EQUAL(run.source, "runs");
    CU_ASSERT_STRING_EQUAL(run.id, "row 1");
    CU_ASSERT_EQUAL(run.step_s, 0.0);
    CU_ASSERT_EQUAL(run.grade, ' ');
    static const nd_run_assumption expected[] = {ND_ASSUMED_STACK,        ND_ASSUMED_SHARDING,  ND_ASSUMED_MICRO_BATCH,
                                                 ND_ASSUMED_GLOBAL_BATCH, ND_ASSUMED_RECOMPUTE, ND_ASSUMED_SEQ_LEN,
                                                 ND_ASSUMED_PRECISION,    ND_ASSUMED_ATTENTION};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CU_ASSERT_TRUE(assumes(&run, expected[i]));
    }
    CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_SHAPE));
    CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_NETWORK));
    ND_ASSERT_OK(nd_calibration_for_gpu(&run.cluster.gpu, &calibration, &err));
    ND_ASSERT_OK(nd_measured_complete(&run, &calibration, &err));
    ND_ASSERT_OK(nd_measured_predict(&run, &calibration, &estimate, &err));
    CU_ASSERT_TRUE(estimate.time.step_s > 0.0);
}

static void test_data_parallelism_takes_the_ranks_that_other_axes_leave(void)
{
    nd_measured_run run = good_row("model,gpu,gpus,tp,pp,zero_stage", "llama-3.1-8b,H100,32,4,2,0");
    CU_ASSERT_EQUAL(run.layout.size[ND_AXIS_DP_REPLICATE], 4);
    CU_ASSERT_TRUE(assumes(&run, ND_ASSUMED_DATA_PARALLEL));
    run = good_row("model,gpu,gpus,framework", "llama-3.1-8b,H100,32,torchtitan FSDP2");
    CU_ASSERT_EQUAL(run.layout.size[ND_AXIS_DP_SHARD], 32); /* what the stack shards */
    run = good_row("model,gpu,gpus,dp_replicate", "llama-3.1-8b,H100,32,32");
    CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_DATA_PARALLEL));
}

static void test_a_full_row_needs_no_assumption(void)
{
    nd_measured_run run = good_row(
        "id,model,gpu,gpus,gpus_per_node,framework,precision,seq_len,micro_batch,global_batch,dp_shard,zero_stage,tp,"
        "sp,recompute,flash_attn,step_time_s,peak_mem_gib,mem_kind,grade",
        "TT-001,Llama-3-8B,H100-80GB,8,8,torchtitan FSDP2,bf16,8192,2,16,4,3,2,1,full,1,2.5,40,peak reserved,A");
    CU_ASSERT_EQUAL(run.assumed, 0);
    CU_ASSERT_STRING_EQUAL(run.id, "TT-001");
    CU_ASSERT_STRING_EQUAL(run.source, "TT");
    CU_ASSERT_STRING_EQUAL(run.framework, "torchtitan FSDP2");
    CU_ASSERT_EQUAL(run.layout.size[ND_AXIS_DP_SHARD], 4);
    CU_ASSERT_EQUAL(run.layout.size[ND_AXIS_TP], 2);
    CU_ASSERT_EQUAL(run.layout.micro_batch, 2);
    CU_ASSERT_EQUAL(run.layout.grad_accum, 2); /* 16 / (2 x 4) */
    CU_ASSERT_EQUAL(run.layout.sharding, ND_SHARDING_ZERO3);
    CU_ASSERT_EQUAL(run.layout.recompute, ND_RECOMPUTE_FULL);
    CU_ASSERT_TRUE(run.layout.sequence_parallel);
    CU_ASSERT_EQUAL(run.train.seq_len_tokens, 8192);
    CU_ASSERT_EQUAL(run.train.global_batch_seqs, 16);
    CU_ASSERT_EQUAL(run.step_s, 2.5);
    CU_ASSERT_EQUAL(run.peak_bytes, 40.0 * ND_GIB);
    CU_ASSERT_EQUAL(run.memory_kind, ND_MEMORY_RESERVED);
    CU_ASSERT_EQUAL(run.grade, 'A');
    CU_ASSERT_FALSE(run.contradictory);
    CU_ASSERT_FALSE(nd_measured_is_hard(&run));
}

static void test_a_model_that_no_built_in_knows_comes_from_its_shape(void)
{
    nd_measured_run run =
        good_row("model,hidden,layers,heads,kv_heads,ffn_hidden,ffn_kind,vocab,tied_embeddings,gpu,gpus",
                 "House-2B,2048,10,16,4,8192,swiglu,32000,0,A100-80GB-SXM,8");
    CU_ASSERT_EQUAL(run.model.layers, 10);
    CU_ASSERT_EQUAL(run.model.kv_heads, 4);
    CU_ASSERT_EQUAL(run.model.head_dim, 128);
    CU_ASSERT_EQUAL(run.model.ffn, ND_FFN_SWIGLU);
    CU_ASSERT_EQUAL(run.model.ffn_hidden, 8192);
    CU_ASSERT_FALSE(run.model.tied_embeddings);
    CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_SHAPE));
}

static void test_missing_parts_of_a_shape_are_the_usual_ones_and_are_marked(void)
{
    nd_measured_run run = good_row("model,hidden,layers,gpu,gpus", "House-GPT,4096,10,V100-32GB,4");
    CU_ASSERT_EQUAL(run.model.heads, 32); /* of 128 */
    CU_ASSERT_EQUAL(run.model.kv_heads, 32);
    CU_ASSERT_EQUAL(run.model.ffn_hidden, 16384);
    CU_ASSERT_TRUE(run.model.tied_embeddings);
    CU_ASSERT_TRUE(assumes(&run, ND_ASSUMED_SHAPE));
    run = good_row("model,params_b,hidden,vocab,gpu,gpus", "House-GPT,24.3,12288,51200,V100-32GB,4");
    CU_ASSERT_EQUAL(run.model.layers, 13); /* (24.3e9 - 51200 h) / (12 h^2) */
    CU_ASSERT_TRUE(assumes(&run, ND_ASSUMED_SHAPE));
}

static void test_a_cut_model_keeps_its_kind_and_has_fewer_layers(void)
{
    nd_measured_run run = good_row("model,layers,gpu,gpus", "Llama-3.1-405B-4L,4,B200-180GB,8");
    CU_ASSERT_EQUAL(run.model.layers, 4);
    CU_ASSERT_EQUAL(run.model.hidden, 16384);
    CU_ASSERT_STRING_EQUAL(run.model.name, "Llama-3.1-405B-4L");
    run = good_row("model,layers,kv_heads,gpu,gpus", "Llama-3.1-405B-4L,4,16,B200-180GB,8");
    CU_ASSERT_EQUAL(run.model.kv_heads, 16); /* the row's own figure wins */
}

static void test_a_built_in_of_another_width_is_not_taken(void)
{
    nd_measured_run run = good_row("model,hidden,layers,heads,ffn_hidden,ffn_kind,vocab,gpu,gpus",
                                   "llama-3.1-8b,2048,4,16,8192,swiglu,128256,h100,8");
    CU_ASSERT_EQUAL(run.model.hidden, 2048);
    CU_ASSERT_EQUAL(run.model.layers, 4);
}

static void test_latent_attention_and_leading_dense_layers_survive_a_cut(void)
{
    nd_measured_run run = good_row("model,layers,gpu,gpus", "DeepSeek-V3-4L,4,B200-180GB,8");
    nd_measured_run whole = good_row("model,gpu,gpus", "DeepSeek-V3,B200-180GB,8");
    CU_ASSERT_EQUAL(run.model.layers, 4);
    CU_ASSERT_EQUAL(run.model.experts, 256);
    CU_ASSERT_EQUAL(run.model.mla_kv_rank, 512);
    CU_ASSERT_EQUAL(whole.model.layers, 61);
    CU_ASSERT_FALSE(run.model.layer_kinds[run.model.kind_of_layer[0]].moe);
    for (int64_t i = 1; i < run.model.layers; i++) { /* 1 of the 3 leading dense layers is left */
        CU_ASSERT_TRUE(run.model.layer_kinds[run.model.kind_of_layer[i]].moe);
    }
    CU_ASSERT_TRUE(nd_measured_is_hard(&run));
}

static void test_experts_come_from_the_row(void)
{
    nd_measured_run run = good_row("model,hidden,layers,heads,kv_heads,ffn_kind,vocab,experts,experts_topk,"
                                   "moe_ffn_hidden,gpu,gpus,dp_shard,ep",
                                   "House-MoE,2048,16,16,4,swiglu,32000,64,8,1024,H100-80GB,8,8,4");
    CU_ASSERT_EQUAL(run.model.experts, 64);
    CU_ASSERT_EQUAL(run.model.experts_topk, 8);
    CU_ASSERT_EQUAL(run.model.moe_ffn_hidden, 1024);
    CU_ASSERT_EQUAL(run.layout.ep, 4);
    CU_ASSERT_TRUE(nd_measured_is_hard(&run));
    run = good_row("model,gpu,gpus,dp_shard,ep", "llama-3.1-8b,H100-80GB,8,8,4");
    CU_ASSERT_EQUAL(run.layout.ep, 1); /* nothing to divide */
}

static void test_names_of_gpus_as_sources_write_them(void)
{
    static const char *const names[][2] = {
        {"A100-80GB-SXM", "a100"},
        {"A100-40GB", "a100-40gb"},
        {"A800-80GB", "a800"},
        {"H100-80GB-SXM", "h100"},
        {"H200-141GB", "h200"},
        {"H100-96GB-HBM2e-500W", "h100-96gb-500w"},
        {"V100-32GB", "v100-32gb"},
        {"V100-16GB", "v100-16gb"},
        {"B200-180GB", "b200"},
        {"GB200", "gb200"},
        {"B300", "b300"},
        {"GB300", "gb300"},
        {"A100-PCIE-40GB", "a100-pcie-40gb"},
        {"mi300x", "mi300x"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char row[96];
        (void)snprintf(row, sizeof row, "llama-3.1-8b,%s,4,4", names[i][0]);
        nd_measured_run run = good_row("model,gpu,gpus,gpus_per_node", row);
        CU_ASSERT_STRING_EQUAL(run.cluster.gpu.name, names[i][1]);
    }
    CU_ASSERT_EQUAL(good_row("model,gpu,gpus", "llama-3.1-8b,GB200,8").cluster.gpus_per_node, 4); /* a tray */
    CU_ASSERT_EQUAL(good_row("model,gpu,gpus", "llama-3.1-8b,H100,16").cluster.gpus_per_node, 8);
}

static nd_measured_run on_network(const char *network)
{
    char row[128];
    (void)snprintf(row, sizeof row, "llama-3.1-8b,A100-80GB,16,8,%s", network);
    return good_row("model,gpu,gpus,gpus_per_node,inter_node_network", row);
}

static void test_networks_as_sources_write_them(void)
{
    static const struct {
        const char *text;
        int64_t nics;
        double nic_gb_per_s;
        const char *network;
    } cases[] = {
        {"4 x 100 Gb/s RoCE per node", 4, 12.5, "roce"},
        {"RoCE 1600 Gb/s per node", 8, 25.0, "roce"},
        {"400 Gb/s per node", 8, 6.25, "ib"},
        {"400 Gb/s RDMA per GPU", 8, 50.0, "ib"},
        {"2 x 200 Gb/s EFA", 2, 25.0, "efa"},
        {"EFA 4x100 Gb/s per node", 4, 12.5, "efa"},
        {"Jean Zay, InfiniBand/OPA (link rate not stated)", 4, 12.5, "ib"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char quoted[96];
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", cases[i].text);
        nd_measured_run run = on_network(quoted);
        CU_ASSERT_EQUAL(run.cluster.facts.nics_per_node, cases[i].nics);
        ND_ASSERT_REL(run.cluster.facts.nic_bytes_per_s, cases[i].nic_gb_per_s * 1e9, 1e-12);
        CU_ASSERT_STRING_EQUAL(run.cluster.network, cases[i].network);
        CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_NETWORK));
    }
    nd_measured_run silent = on_network("");
    CU_ASSERT_TRUE(assumes(&silent, ND_ASSUMED_NETWORK));
    static const char *const odd_texts[] = {"0 Gb/s", "0 x 100 Gb/s", "x 100 Gb/s", "1e300 Gb/s",
                                            "99999999999999 Gb/s"};
    for (size_t i = 0; i < sizeof odd_texts / sizeof odd_texts[0]; i++) {
        nd_measured_run odd = on_network(odd_texts[i]);
        CU_ASSERT_TRUE(assumes(&odd, ND_ASSUMED_NETWORK) || odd.cluster.facts.nic_bytes_per_s < 1e13);
    }
}

static void test_frameworks_choose_the_software_stack(void)
{
    static const char *const frameworks[][2] = {
        {"llm-foundry/Composer FSDP1", "torch-fsdp1"},
        {"PyTorch FSDP1 (FMS)", "torch-fsdp1"},
        {"torchtitan FSDP2", "torch-fsdp2-compile"},
        {"Megatron-Bridge (Megatron-Core)", "nemo"},
        {"NeMo/Megatron-Core", "nemo"},
        {"NeMo AutoModel (PyTorch FSDP2)", "torch-fsdp2-compile"},
        {"Megatron-Core r0.12", "nemo"},
        {"InternEvo", "internevo"},
        {"Megatron-LM", "megatron"},
        {"Megatron-DeepSpeed", "megatron-deepspeed"},
        {"HF Trainer + DeepSpeed", "deepspeed"},
        {"PyTorch DDP", "torch-ddp"},
        {"axolotl 0.18", "torch-fsdp2"},
        {"ndplan", "ndplan"},
    };
    for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++) {
        char row[128];
        (void)snprintf(row, sizeof row, "llama-3.1-8b,H100,8,8,%s", frameworks[i][0]);
        nd_measured_run run = good_row("model,gpu,gpus,dp_replicate,framework", row);
        CU_ASSERT_STRING_EQUAL(run.stack.name, frameworks[i][1]);
        CU_ASSERT_FALSE(assumes(&run, ND_ASSUMED_STACK));
    }
    nd_measured_run old = good_row("model,gpu,gpus,tp,framework,flash_attn", "gpt3-175b,A100,8,8,Megatron-LM,0");
    CU_ASSERT_STRING_EQUAL(old.stack.name, "megatron-2022");
    CU_ASSERT_EQUAL(old.train.attention, ND_ATTENTION_MATH);
    nd_measured_run unknown = good_row("model,gpu,gpus,tp,framework", "llama-3.1-8b,H100,8,8,House trainer");
    CU_ASSERT_STRING_EQUAL(unknown.stack.name, "ndplan");
    CU_ASSERT_TRUE(assumes(&unknown, ND_ASSUMED_STACK));
}

static void test_notes_change_the_software(void)
{
    const char *header = "model,gpu,gpus,dp_shard,framework,notes";
    nd_measured_run compiled = good_row(header, "llama-3.1-8b,H100,8,8,torchtitan FSDP2,");
    nd_measured_run eager = good_row(header, "llama-3.1-8b,H100,8,8,torchtitan FSDP2,eager");
    CU_ASSERT_TRUE(compiled.stack.style.fused_elementwise);
    CU_ASSERT_FALSE(eager.stack.style.fused_elementwise);
    nd_measured_run apart = good_row(header, "llama-3.1-8b,H100,8,8,Megatron-LM,communication overlap options off");
    CU_ASSERT_FALSE(apart.stack.overlaps_dp);
    nd_measured_run adapters = good_row(header, "llama-3.1-8b,H100,8,8,torchtitan FSDP2,LoRA");
    CU_ASSERT_EQUAL(adapters.train.lora_rank, 16);
    CU_ASSERT_TRUE(assumes(&adapters, ND_ASSUMED_LORA));
    nd_measured_run flagged = good_row(header, "llama-3.1-8b,H100,8,8,torchtitan FSDP2,FLAG: text says 16 GPUs");
    CU_ASSERT_TRUE(flagged.contradictory);
}

static void test_optimizer_states_are_sharded_over_all_data_ranks_or_a_group(void)
{
    const char *header = "model,gpu,gpus,dp_replicate,zero_stage,framework,notes";
    nd_measured_run all =
        good_row(header, "llama-2-7b,A100,64,64,1,InternEvo,optimizer-state sharding group: all ranks");
    CU_ASSERT_EQUAL(all.layout.size[ND_AXIS_DP_SHARD], 64);
    CU_ASSERT_EQUAL(all.layout.size[ND_AXIS_DP_REPLICATE], 1);
    CU_ASSERT_EQUAL(all.layout.sharding, ND_SHARDING_ZERO1);
    nd_measured_run node =
        good_row(header, "llama-2-7b,A100,64,64,1,InternEvo,optimizer-state sharding group: 8 ranks");
    CU_ASSERT_EQUAL(node.layout.size[ND_AXIS_DP_SHARD], 8);
    CU_ASSERT_EQUAL(node.layout.size[ND_AXIS_DP_REPLICATE], 8);
    nd_measured_run odd = good_row(header, "llama-2-7b,A100,64,64,1,InternEvo,optimizer-state sharding group: 7 ranks");
    CU_ASSERT_EQUAL(odd.layout.size[ND_AXIS_DP_SHARD], 64); /* 7 does not divide 64 */
    nd_measured_run none = good_row(header, "llama-2-7b,A100,64,64,0,Megatron-LM,");
    CU_ASSERT_EQUAL(none.layout.size[ND_AXIS_DP_REPLICATE], 64);
    CU_ASSERT_EQUAL(none.layout.sharding, ND_SHARDING_NONE);
}

static void test_recompute_modes(void)
{
    static const struct {
        const char *text;
        nd_recompute recompute;
        bool assumed;
    } cases[] = {{"none", ND_RECOMPUTE_NONE, false},  {"selective", ND_RECOMPUTE_SELECTIVE, false},
                 {"full", ND_RECOMPUTE_FULL, false},  {"partial", ND_RECOMPUTE_EVERY, false},
                 {"yes", ND_RECOMPUTE_FULL, false},   {"activation_checkpointing", ND_RECOMPUTE_FULL, false},
                 {"False", ND_RECOMPUTE_NONE, false}, {"", ND_RECOMPUTE_NONE, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "llama-3.1-8b,H100,8,8,%s", cases[i].text);
        nd_measured_run run = good_row("model,gpu,gpus,dp_shard,recompute", row);
        CU_ASSERT_EQUAL(run.layout.recompute, cases[i].recompute);
        CU_ASSERT_EQUAL(assumes(&run, ND_ASSUMED_RECOMPUTE), cases[i].assumed);
        CU_ASSERT_EQUAL(assumes(&run, ND_ASSUMED_PARTIAL), cases[i].recompute == ND_RECOMPUTE_EVERY);
    }
}

static void test_every_other_layer_is_what_layouts_call_it(void)
{
    nd_measured_run run = good_row("model,gpu,gpus,dp_shard,recompute", "llama-3.1-8b,H100,8,8,every:4");
    CU_ASSERT_EQUAL(run.layout.recompute, ND_RECOMPUTE_EVERY);
    CU_ASSERT_EQUAL(run.layout.recompute_every, 4);
}

static void test_a_silent_run_recomputes_only_when_it_cannot_have_fitted_without(void)
{
    nd_error err = {.message = ""};
    nd_calibration calibration;
    const char *header = "model,gpu,gpus,dp_shard,zero_stage,framework,seq_len,micro_batch,global_batch";
    nd_measured_run small = good_row(header, "llama-3.2-1b,H100,8,8,3,torchtitan FSDP2,2048,1,8");
    nd_measured_run large = good_row(header, "llama-3.1-8b,H100,8,8,3,torchtitan FSDP2,32768,4,32");
    ND_ASSERT_OK(nd_calibration_for_gpu(&small.cluster.gpu, &calibration, &err));
    ND_ASSERT_OK(nd_measured_complete(&small, &calibration, &err));
    ND_ASSERT_OK(nd_measured_complete(&large, &calibration, &err));
    CU_ASSERT_EQUAL(small.layout.recompute, ND_RECOMPUTE_NONE);
    CU_ASSERT_EQUAL(large.layout.recompute, ND_RECOMPUTE_FULL);
}

static void test_an_open_micro_batch_keeps_the_global_batch(void)
{
    nd_error err = {.message = ""};
    nd_calibration calibration;
    nd_measured_run run = good_row("model,gpu,gpus,dp_shard,framework,seq_len,global_batch,recompute",
                                   "llama-3.2-1b,H100,8,8,torchtitan FSDP2,2048,64,none");
    CU_ASSERT_TRUE(assumes(&run, ND_ASSUMED_MICRO_BATCH));
    ND_ASSERT_OK(nd_calibration_for_gpu(&run.cluster.gpu, &calibration, &err));
    ND_ASSERT_OK(nd_measured_complete(&run, &calibration, &err));
    CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&run.layout), 64);
}

static void test_the_step_follows_from_whatever_speed_is_stated(void)
{
    const char *header = "model,gpu,gpus,dp_shard,seq_len,micro_batch,global_batch,tokens_per_s_per_gpu,tflops_per_gpu,"
                         "step_time_s,flops_convention";
    double tokens = 16.0 * 4096.0;
    nd_measured_run direct = good_row(header, "llama-3.1-8b,H100,8,8,4096,2,16,9999,888,1.5,");
    CU_ASSERT_EQUAL(direct.step_s, 1.5); /* printed steps come first */
    nd_measured_run speed = good_row(header, "llama-3.1-8b,H100,8,8,4096,2,16,4096,888,,");
    ND_ASSERT_REL(speed.step_s, tokens / (4096.0 * 8.0), 1e-12);
    nd_measured_run causal = good_row(header, "llama-3.1-8b,H100,8,8,4096,2,16,,400,,model-causal");
    double causal_flops = nd_model_flops_per_token(&causal.model, 4096, ND_FLOPS_CAUSAL);
    ND_ASSERT_REL(causal.step_s, tokens * causal_flops / (400e12 * 8.0), 1e-12);
    nd_measured_run full = good_row(header, "llama-3.1-8b,H100,8,8,4096,2,16,,400,,model-full");
    CU_ASSERT_TRUE(full.step_s > causal.step_s);
    nd_measured_run unknown = good_row(header, "llama-3.1-8b,H100,8,8,4096,2,16,,400,,not stated");
    CU_ASSERT_EQUAL(unknown.step_s, 0.0); /* no convention, no step */
}

static void test_memory_readings_compare_with_their_own_kind(void)
{
    const nd_memory_breakdown memory = {.allocated_bytes = 10.0, .peak_bytes = 16.0};
    const char *header = "model,gpu,gpus,mem_kind";
    nd_measured_run run = good_row(header, "llama-3.1-8b,H100,1,\"peak allocated, maximum over ranks\"");
    CU_ASSERT_EQUAL(nd_measured_memory(&run, &memory), 10.0);
    run = good_row(header, "llama-3.1-8b,H100,1,peak reserved");
    CU_ASSERT_EQUAL(nd_measured_memory(&run, &memory), 10.0 * run.stack.reserved_ratio);
    run = good_row(header, "llama-3.1-8b,H100,1,nvidia-smi");
    CU_ASSERT_EQUAL(nd_measured_memory(&run, &memory), 16.0);
}

static void test_pipelines_of_torchtitan_keep_weights_and_split_the_batch_by_stages(void)
{
    nd_measured_run run = good_row("model,gpu,gpus,dp_shard,zero_stage,pp,global_batch,framework,notes",
                                   "Llama-3.1-405B,H100,64,8,3,8,128,torchtitan FSDP2,interleaved 1F1B");
    CU_ASSERT_EQUAL(run.layout.sharding, ND_SHARDING_ZERO2);
    CU_ASSERT_EQUAL(run.layout.vpp, 2);
    CU_ASSERT_EQUAL(run.layout.schedule, ND_SCHEDULE_INTERLEAVED);
    CU_ASSERT_EQUAL(run.layout.micro_batch, 1); /* 16 sequences over 16 chunks */
    CU_ASSERT_EQUAL(run.layout.grad_accum, 16);
}

static void test_malformed_cells_name_file_line_and_column(void)
{
    static const char *const cases[][3] = {
        {"model,gpu,gpus", "llama-3.1-8b,H100,many", "runs.csv:2: gpus"},
        {"model,gpu,gpus", "llama-3.1-8b,H100,-8", "runs.csv:2: gpus"},
        {"model,gpu,gpus", "llama-3.1-8b,H100,8.5", "runs.csv:2: gpus"},
        {"model,gpu,gpus", "llama-3.1-8b,H100,99999999999999999999", "runs.csv:2: gpus"},
        {"model,gpu,gpus,tp", "llama-3.1-8b,H100,8,two", "runs.csv:2: tp"},
        {"model,gpu,gpus,step_time_s", "llama-3.1-8b,H100,8,fast", "runs.csv:2: step_time_s"},
        {"model,gpu,gpus,step_time_s", "llama-3.1-8b,H100,8,nan", "runs.csv:2: step_time_s"},
        {"model,gpu,gpus,step_time_s", "llama-3.1-8b,H100,8,1e400", "runs.csv:2: step_time_s"},
        {"model,gpu,gpus,peak_mem_gib", "llama-3.1-8b,H100,8,-1", "runs.csv:2: peak_mem_gib"},
        {"model,gpu,gpus,dp_shard,seq_len", "llama-3.1-8b,H100,8,8,4k", "runs.csv:2: seq_len"},
        {"model,gpu,gpus,dp_shard,zero_stage", "llama-3.1-8b,H100,8,8,7", "runs.csv:2: zero_stage"},
        {"model,gpu,gpus,dp_shard,micro_batch", "llama-3.1-8b,H100,8,8,1099511627776", "runs.csv:2: micro_batch"},
        {"model,gpu,gpus,dp_shard,layers", "llama-3.1-8b,H100,8,8,100000", "runs.csv:2: layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static nd_measured_run run;
        nd_error err = {.message = ""};
        CU_ASSERT_EQUAL(read_row(cases[i][0], cases[i][1], &run, &err), ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, cases[i][2]);
    }
}

static void test_rows_that_cannot_be_predicted_say_why(void)
{
    static const char *const cases[][3] = {
        {"model,gpu,gpus,dp_shard", "llama-3.1-8b,H100,8,4", "the degrees multiply to 4 ranks, not to 8 GPUs"},
        {"model,gpu,gpus,tp,pp,cp,dp_shard,dp_replicate", "llama-3.1-8b,H100,8,1048576,1048576,1048576,1048576,1048576",
         "not to 8 GPUs"},
        {"model,gpu,gpus", "llama-3.1-8b,H900,8", "H900"},
        {"model,gpu,gpus", "House-9B,H100,8", "no built-in is called 'House-9B'"},
        {"model,gpu,gpus,gpus_per_node", "llama-3.1-8b,H100,12,8", "12 GPUs are no whole nodes of 8"},
        {"model,gpu,gpus,gpus_per_node", "llama-3.1-8b,H100,8,0", "8 GPUs are no whole nodes of 0"},
        {"model,gpu,gpus", "llama-3.1-8b,H100,0", "0 GPUs"},
        {"model,gpu,gpus,dp_shard,precision", "llama-3.1-8b,B200,8,8,nvfp4", "precision 'nvfp4' is not modelled"},
        {"model,gpu,gpus,tp,dp_shard", "llama-3.1-8b,H100,24,3,8", "tp=3 does not divide the 32 heads"},
        {"model,gpu,gpus,pp", "llama-3.1-8b,H100,64,64", "64 chunks are more than the 32 layers"},
        {"model,gpu,gpus,pp,vpp", "llama-3.1-8b,H100,8,8,1048576", "chunks are more than the 32 layers"},
        {"model,gpu,gpus,dp_shard,ep", "mixtral-8x7b,H100,8,8,3", "ep=3 does not divide the 8 experts"},
        {"model,gpu,gpus,cp,seq_len", "llama-3.1-8b,H100,8,8,1", "too short for cp=8"},
        {"model,gpu,gpus,dp_shard", "/dev/null,H100,8,8", "/dev/null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static nd_measured_run run;
        nd_error err = {.message = ""};
        CU_ASSERT_EQUAL(read_row(cases[i][0], cases[i][1], &run, &err), ND_EUNSUPPORTED);
        ND_ASSERT_CONTAINS(err.message, cases[i][2]);
        CU_ASSERT_STRING_EQUAL(run.id, "row 1");
    }
}

static void test_words_are_read_in_any_case_and_names_state_their_cut(void)
{
    nd_measured_run run = good_row("model,gpu,gpus,dp_shard,precision,recompute,optimizer,grade",
                                   "llama-3.1-8b-12L,H100,8,8,FP16,Full,Lion (paged),c");
    CU_ASSERT_EQUAL(run.model.layers, 12);
    CU_ASSERT_EQUAL(run.train.precision, ND_DTYPE_FP16);
    CU_ASSERT_EQUAL(run.layout.recompute, ND_RECOMPUTE_FULL);
    CU_ASSERT_EQUAL(run.train.optimizer, ND_OPTIMIZER_LION);
    CU_ASSERT_EQUAL(run.grade, 'C');
    nd_measured_run small = good_row("model,gpu,gpus,dp_shard,micro_batch,global_batch", "llama-3.1-8b,H100,8,8,64,8");
    CU_ASSERT_TRUE(assumes(&small, ND_ASSUMED_GLOBAL_BATCH));
}

/* Check a whole table. */
static void check_table(const char *text, const char *message)
{
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    nd_status status = nd_csv_parse(text, strlen(text), "runs.csv", &csv, &err);
    status = status == ND_OK ? nd_measured_check_table(csv, &err) : status;
    nd_csv_free(csv);
    CU_ASSERT_EQUAL(status, message == NULL ? ND_OK : ND_EPARSE);
    if (message != NULL) {
        ND_ASSERT_CONTAINS(err.message, message);
    }
}

static void test_tables_are_checked_as_a_whole(void)
{
    check_table("model,gpu,gpus\nllama-3.1-8b,H100,8\nllama-3.1-8b,H100,8\n", NULL); /* no ids, none twice */
    check_table("id,model,gpu,gpus\nA-1,llama-3.1-8b,H100,8\nA-2,x,H100,8\nA-1,y,H100,8\n",
                "runs.csv:4: id 'A-1' is there twice");
    check_table("", "runs.csv: the table is empty");
    check_table("model,gpu,gpus\n", "runs.csv: the table has columns but no runs");
    check_table("model,gpu\nx,H100\n", "runs.csv:1: the table has no column 'gpus'");
    check_table("model,gpu,gpus,secs\nx,H100,8,1\n", "runs.csv:1: unknown column 'secs'");
    check_table("model,gpu,gpus,step_times\nx,H100,8,1\n", "did you mean 'step_time_s'?");
    check_table("model,gpu,gpus\nx,H100,8\nmeasured in May\n", "runs.csv:3: the row has no gpu");
    check_table("model,gpu,gpus\nx,H100,\n", "runs.csv:2: the row has no gpus");
}

static void test_the_published_runs_are_a_good_table(void)
{
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_measured_builtin(&csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    CU_ASSERT_EQUAL(nd_csv_rows(csv), 842);
    ND_ASSERT_OK(nd_measured_check_table(csv, &err));
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        static nd_measured_run run;
        nd_status status = nd_measured_read(csv, row, &run, &err);
        CU_ASSERT_TRUE(status == ND_OK || status == ND_EUNSUPPORTED);
        CU_ASSERT_TRUE(strlen(run.source) == 2);
        CU_ASSERT_TRUE(nd_csv_text(csv, row, "source")[0] != '\0');
        CU_ASSERT_TRUE(nd_csv_text(csv, row, "source_locator")[0] != '\0');
    }
    nd_csv_free(csv);
}

static void test_every_assumption_has_a_name(void)
{
    for (int i = 0; i < ND_ASSUMPTION_COUNT; i++) {
        CU_ASSERT_TRUE(strlen(nd_run_assumption_name((nd_run_assumption)i)) > 0);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_least_that_a_row_can_say_is_predicted_with_stated_assumptions),
        ND_TEST(test_data_parallelism_takes_the_ranks_that_other_axes_leave),
        ND_TEST(test_a_full_row_needs_no_assumption),
        ND_TEST(test_a_model_that_no_built_in_knows_comes_from_its_shape),
        ND_TEST(test_missing_parts_of_a_shape_are_the_usual_ones_and_are_marked),
        ND_TEST(test_a_cut_model_keeps_its_kind_and_has_fewer_layers),
        ND_TEST(test_a_built_in_of_another_width_is_not_taken),
        ND_TEST(test_latent_attention_and_leading_dense_layers_survive_a_cut),
        ND_TEST(test_experts_come_from_the_row),
        ND_TEST(test_names_of_gpus_as_sources_write_them),
        ND_TEST(test_networks_as_sources_write_them),
        ND_TEST(test_frameworks_choose_the_software_stack),
        ND_TEST(test_notes_change_the_software),
        ND_TEST(test_optimizer_states_are_sharded_over_all_data_ranks_or_a_group),
        ND_TEST(test_recompute_modes),
        ND_TEST(test_every_other_layer_is_what_layouts_call_it),
        ND_TEST(test_a_silent_run_recomputes_only_when_it_cannot_have_fitted_without),
        ND_TEST(test_an_open_micro_batch_keeps_the_global_batch),
        ND_TEST(test_the_step_follows_from_whatever_speed_is_stated),
        ND_TEST(test_memory_readings_compare_with_their_own_kind),
        ND_TEST(test_pipelines_of_torchtitan_keep_weights_and_split_the_batch_by_stages),
        ND_TEST(test_malformed_cells_name_file_line_and_column),
        ND_TEST(test_rows_that_cannot_be_predicted_say_why),
        ND_TEST(test_words_are_read_in_any_case_and_names_state_their_cut),
        ND_TEST(test_tables_are_checked_as_a_whole),
        ND_TEST(test_the_published_runs_are_a_good_table),
        ND_TEST(test_every_assumption_has_a_name),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/measured_run", cases);
}
