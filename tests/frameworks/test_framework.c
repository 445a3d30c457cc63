/* Finding frameworks, and the rules that the legality study has no row for. */
#include <stdio.h>
#include <string.h>

#include "frameworks/framework.h"
#include "frameworks/refusal.h"
#include "tests/nd_test.h"

static nd_model_spec llama(void)
{
    nd_model_spec model;
    memset(&model, 0, sizeof model);
    (void)snprintf(model.name, sizeof model.name, "llama-example");
    (void)snprintf(model.family, sizeof model.family, "llama");
    model.heads = 32;
    model.kv_heads = 8;
    model.layers = 32;
    model.tp_plan = ND_TP_PLAN_FULL;
    return model;
}

static const nd_framework *find(const char *name)
{
    nd_error err;
    const nd_framework *framework = NULL;
    ND_ASSERT_OK(nd_framework_find(name, &framework, &err));
    return framework;
}

/* Expect `rule`, or legality when it is NULL, and words in message and nearest. */
static void expect(const char *name, const nd_model_spec *model, const char *text, const char *rule,
                   const char *message, const char *nearest)
{
    nd_error err;
    nd_layout layout;
    nd_train_spec train = {.seq_len_tokens = 8192, .global_batch_seqs = 64, .base_bits = 16};
    const nd_framework *framework = find(name);
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    nd_refusal refusal;
    memset(&refusal, 0, sizeof refusal);
    const char *got = "";
    bool legal = framework->allows(model, &layout, &train, &got, &refusal);
    if (legal != (rule == NULL)) {
        fprintf(stderr, "%s %s: %s %s\n", name, text, legal ? "legal" : "illegal", legal ? "" : got);
        CU_FAIL("another verdict");
        return;
    }
    if (rule != NULL) {
        ND_ASSERT_CONTAINS(got, rule);
        ND_ASSERT_CONTAINS(refusal.message, message);
        ND_ASSERT_CONTAINS(refusal.nearest, nearest);
    }
    CU_ASSERT_EQUAL(framework->allows(model, &layout, &train, NULL, NULL), legal);
}

static void test_names_are_found_in_any_spelling(void)
{
    CU_ASSERT_STRING_EQUAL(find("Accelerate")->name, "accelerate");
    CU_ASSERT_STRING_EQUAL(find("PyTorch_DDP")->name, "pytorch-ddp");
    CU_ASSERT_STRING_EQUAL(find("torchtitan")->version, "0.2.2");
    CU_ASSERT_STRING_EQUAL(find("torchtitan@main")->version, "main");
    CU_ASSERT_STRING_EQUAL(find("torchtitan@v0.2.2")->version, "0.2.2");
    CU_ASSERT_STRING_EQUAL(find("megatron@0.20")->stack, "megatron");
}

static void test_unknown_names_and_versions_say_what_is_known(void)
{
    nd_error err;
    const nd_framework *framework = NULL;
    CU_ASSERT_EQUAL(nd_framework_find("acelerate", &framework, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, "did you mean 'accelerate'");
    CU_ASSERT_EQUAL(nd_framework_find("torchtitan@9", &framework, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, "0.2.2, main");
    CU_ASSERT_EQUAL(nd_framework_find("", &framework, &err), ND_ENOTFOUND);
    CU_ASSERT_EQUAL(nd_framework_find("@1", &framework, &err), ND_ENOTFOUND);
    CU_ASSERT_EQUAL(nd_framework_find("accelerate@", &framework, &err), ND_ENOTFOUND);
    char endless[4096];
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    CU_ASSERT_EQUAL(nd_framework_find(endless, &framework, &err), ND_ENOTFOUND);
    CU_ASSERT_PTR_NULL(framework);
}

static void test_every_table_is_complete(void)
{
    CU_ASSERT_EQUAL(nd_framework_count(), 9);
    for (size_t i = 0; i < nd_framework_count(); i++) {
        const nd_framework *framework = nd_framework_at(i);
        CU_ASSERT_TRUE(strlen(framework->name) > 0 && strlen(framework->title) > 0);
        CU_ASSERT_TRUE(strlen(framework->version) > 0 && strlen(framework->stack) > 0);
        CU_ASSERT_TRUE(strlen(framework->source) > 0);
        CU_ASSERT_PTR_NOT_NULL(framework->allows);
        for (size_t j = 0; j < i; j++) {
            bool same = strcmp(nd_framework_at(j)->name, framework->name) == 0 &&
                        strcmp(nd_framework_at(j)->version, framework->version) == 0;
            CU_ASSERT_FALSE(same);
        }
    }
}

static void test_one_rank_is_legal_everywhere(void)
{
    nd_model_spec model = llama();
    for (size_t i = 0; i < nd_framework_count(); i++) {
        nd_layout layout = nd_layout_single();
        nd_train_spec train = {.seq_len_tokens = 8192, .global_batch_seqs = 1, .base_bits = 16};
        CU_ASSERT_TRUE(nd_framework_at(i)->allows(&model, &layout, &train, NULL, NULL));
    }
}

static void test_accelerate_has_no_pipeline_and_no_experts(void)
{
    nd_model_spec model = llama();
    model.experts = 8;
    expect("accelerate", &model, "pp=4", "accelerate.no-pp", "Accelerate 1.15 has no pipeline axis: pp=4", "pp=1");
    expect("accelerate", &model, "dp_shard=4,ep=2,sharding=zero3", "accelerate.no-ep", "ep=2", "ep=1");
}

static void test_accelerate_names_the_method_sharding_and_modes_that_it_lacks(void)
{
    nd_model_spec model = llama();
    expect("accelerate", &model, "cp=2,cp_method=ulysses,sharding=zero3", "accelerate.cp-method", "DeepSpeed",
           "cp_method=allgather");
    expect("accelerate", &model, "cp=2", "accelerate.sharding", "cp=2", "sharding=zero3");
    expect("accelerate", &model, "dp_shard=2,sharding=zero1", "accelerate.sharding", "no sharding=zero1", "zero2");
    expect("accelerate", &model, "dp_replicate=2,sharding=zero3", "accelerate.fsdp-needs-shard-mesh", "dp_replicate=2",
           "sharding=none");
    expect("accelerate", &model, "dp_shard=2,sharding=zero3,recompute=every:2", "accelerate.recompute", "every",
           "recompute=full");
    expect("accelerate", &model, "dp_shard=2,sharding=zero3,offload=optimizer", "accelerate.offload", "alone",
           "offload=params");
    expect("accelerate", &model, "dp_shard=2,tp=2,sp=on,sharding=zero3", "accelerate.no-sp", "tp=2", "sp=off");
    expect("accelerate", &model, "dp_shard=2,sharding=zero3,offload=params", NULL, "", "");
    expect("accelerate", &model, "dp_shard=2,sharding=zero3,offload=activations,recompute=full",
           "accelerate.offload-activations", "no option", "offload=none,recompute=full");
}

static void test_tensor_parallelism_needs_a_plan_in_transformers(void)
{
    nd_model_spec model = llama();
    model.tp_plan = ND_TP_PLAN_NONE;
    (void)snprintf(model.family, sizeof model.family, "gpt2");
    expect("accelerate", &model, "dp_shard=2,tp=2,sharding=zero3", "accelerate.tp-plan", "gpt2 models have none",
           "tp=1");
    expect("axolotl", &model, "dp_shard=2,tp=2,sharding=zero3", "axolotl.tp-plan", "tp=2", "tp=1");
    expect("megatron", &model, "dp_shard=2,tp=2,sharding=zero1", NULL, "", "");
}

static void test_kv_heads_bind_only_plans_that_divide_attention(void)
{
    nd_model_spec model = llama();
    model.kv_heads = 2;
    expect("accelerate", &model, "tp=4", "accelerate.tp-kv-heads", "2 key-value heads", "tp=2");
    model.tp_plan = ND_TP_PLAN_GATHERED;
    expect("accelerate", &model, "tp=4", NULL, "", "");
}

static void test_axolotl_keeps_experts_and_other_axes_apart(void)
{
    nd_model_spec model = llama();
    model.experts = 8;
    expect("axolotl", &model, "dp_shard=4,tp=2,ep=2,sharding=zero3", "axolotl.ep-alone", "tp=2", "ep=1");
    expect("axolotl", &model, "pp=2", "axolotl.no-pp", "pp=2", "pp=1");
    expect("axolotl", &model, "cp=2,cp_method=ulysses,sharding=zero3", "axolotl.cp-method", "cp=2", "cp_method=ring");
    expect("axolotl", &model, "dp_replicate=2,tp=2", "axolotl.replicate-needs-shard", "dp_replicate=2",
           "dp_replicate=1,dp_shard=2");
    expect("axolotl", &model, "dp_shard=2,sharding=zero3,recompute=every:2", "axolotl.recompute", "every:2",
           "recompute=full");
    expect("axolotl", &model, "dp_shard=2,sharding=zero3,offload=activations", "axolotl.offload",
           "gradient_checkpointing", "recompute=full");
}

static void test_torchtitan_release_and_main_differ(void)
{
    nd_model_spec model = llama();
    expect("torchtitan", &model, "dp_shard=2,tp=2,sp=off,sharding=zero3", "torchtitan.tp-implies-sp", "tp=2", "sp=on");
    expect("torchtitan@main", &model, "dp_shard=2,tp=2,sp=off,sharding=zero3", NULL, "", "");
    expect("torchtitan", &model, "dp_shard=2,sharding=zero3,recompute=every:2", NULL, "", "");
    expect("torchtitan@main", &model, "dp_shard=2,sharding=zero3,recompute=every:2", "torchtitan.recompute", "every:2",
           "recompute=selective");
    expect("torchtitan", &model, "dp_replicate=2,pp=2", "torchtitan.ddp-alone", "pp=2", "dp_shard=2");
    expect("torchtitan@main", &model, "dp_replicate=2,pp=2", NULL, "", "");
    expect("torchtitan", &model, "cp=2,cp_method=ulysses,sharding=zero3", "torchtitan.cp-method", "cp=2", "ring");
    model.experts = 6;
    expect("torchtitan", &model, "dp_shard=4,ep=4,sharding=zero3", "torchtitan.ep-divides-experts", "6 experts",
           "ep=3 or ep=6");
}

static void test_megatron_needs_sequence_parallelism_for_experts_with_tp(void)
{
    nd_model_spec model = llama();
    model.experts = 8;
    expect("megatron", &model, "dp_shard=4,tp=2,ep=2,sharding=zero1", "megatron.ep-needs-sp", "ep=2 with tp=2",
           "sp=on");
    expect("megatron", &model, "dp_shard=4,tp=2,sp=on,ep=2,sharding=zero1", NULL, "", "");
    expect("megatron", &model, "dp_shard=3,ep=3,sharding=zero1", "megatron.ep-experts", "8 experts", "ep=2 or ep=4");
    expect("megatron", &model, "tp=5", "megatron.tp-heads", "32 attention heads", "tp=4 or tp=8");
    expect("megatron", &model, "pp=2,offload=activations", "megatron.offload", "pp=2", "offload=none");
}

static void test_deepspeed_has_ulysses_and_mics(void)
{
    nd_model_spec model = llama();
    expect("deepspeed", &model, "pp=2", "deepspeed.no-pp", "pp=2", "pp=1");
    expect("deepspeed", &model, "cp=2,cp_method=ring,sharding=zero3", "deepspeed.cp-method", "cp_method=ring",
           "ulysses");
    expect("deepspeed", &model, "dp_replicate=2,dp_shard=4,sharding=zero2", "deepspeed.mics-zero3", "zero2",
           "sharding=zero3");
    expect("deepspeed", &model, "dp_replicate=2,dp_shard=4,sharding=zero3", NULL, "", "");
    expect("deepspeed", &model, "tp=2,sp=on", "deepspeed.no-sp", "tp=2", "sp=off");
    expect("deepspeed", &model, "dp_shard=2,sharding=zero2,offload=params", "deepspeed.offload-param", "zero2",
           "zero3");
    model.kv_heads = 3;
    expect("deepspeed", &model, "cp=4,cp_method=ulysses,sharding=zero3", "deepspeed.ulysses-kv-heads", "3 key-value",
           "cp=3");
    model.experts = 8;
    expect("deepspeed", &model, "dp_shard=4,tp=2,ep=2,sharding=zero3", "deepspeed.autoep-zero3", "tp=2", "zero2");
}

static void test_nanotron_and_ddp_are_narrow(void)
{
    nd_model_spec model = llama();
    expect("nanotron", &model, "dp_shard=2,sharding=zero3", "nanotron.zero1", "zero3", "sharding=zero1");
    expect("nanotron", &model, "dp_shard=2,dp_replicate=2,sharding=zero1", "nanotron.one-dp-axis", "dp_replicate=2",
           "dp_shard=4");
    expect("nanotron", &model, "pp=2,vpp=2", "nanotron.schedule", "vpp=2", "vpp=1");
    expect("nanotron", &model, "pp=2,split=balanced", "nanotron.split", "split=balanced", "split=even");
    expect("nanotron", &model, "recompute=selective", "nanotron.recompute", "selective", "recompute=full");
    expect("nanotron", &model, "cp=2,cp_method=ulysses", "nanotron.cp-method", "cp=2", "ring");
    expect("nanotron", &model, "tp=3", "nanotron.tp-heads", "32", "tp=2 or tp=4");
    expect("pytorch-ddp", &model, "dp_replicate=8", NULL, "", "");
    expect("pytorch-ddp", &model, "dp_replicate=4,tp=2", "pytorch-ddp.one-axis", "tp=2", "dp_replicate=8");
    expect("pytorch-ddp", &model, "dp_replicate=4,sharding=zero1", "pytorch-ddp.no-sharding", "zero1", "sharding=none");
}

static void test_refusals_are_cut_and_never_overflow(void)
{
    char endless[1024];
    memset(endless, 'y', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    nd_refusal refusal;
    CU_ASSERT_FALSE(nd_refuse(NULL, &refusal, "a.rule", "%s", endless));
    CU_ASSERT_FALSE(nd_refuse_nearest(&refusal, "%s", endless));
    CU_ASSERT_EQUAL(strlen(refusal.message), sizeof refusal.message - 1);
    CU_ASSERT_EQUAL(strlen(refusal.nearest), sizeof refusal.nearest - 1);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_names_are_found_in_any_spelling),
        ND_TEST(test_unknown_names_and_versions_say_what_is_known),
        ND_TEST(test_every_table_is_complete),
        ND_TEST(test_one_rank_is_legal_everywhere),
        ND_TEST(test_accelerate_has_no_pipeline_and_no_experts),
        ND_TEST(test_accelerate_names_the_method_sharding_and_modes_that_it_lacks),
        ND_TEST(test_tensor_parallelism_needs_a_plan_in_transformers),
        ND_TEST(test_kv_heads_bind_only_plans_that_divide_attention),
        ND_TEST(test_axolotl_keeps_experts_and_other_axes_apart),
        ND_TEST(test_torchtitan_release_and_main_differ),
        ND_TEST(test_megatron_needs_sequence_parallelism_for_experts_with_tp),
        ND_TEST(test_deepspeed_has_ulysses_and_mics),
        ND_TEST(test_nanotron_and_ddp_are_narrow),
        ND_TEST(test_refusals_are_cut_and_never_overflow),
        {NULL, NULL},
    };
    return nd_test_main("frameworks.framework", cases);
}
