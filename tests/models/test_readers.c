/* Defaults, older and newer key names, nested configs, and what the note says. */
#include "tests/models/model_fixture.h"

static void missing_keys_take_the_default_of_their_family(void)
{
    CU_ASSERT_FALSE(parse_or_fail(TINY("llama", "")).tied_embeddings);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("llama", "")).kv_heads, 8);
    CU_ASSERT_TRUE(parse_or_fail(TINY("gemma2", "")).tied_embeddings);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gemma2", "")).head_dim, 256);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gemma2", "")).kv_heads, 4);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("qwen3", ",\"num_key_value_heads\":4")).head_dim, 128);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("qwen3_moe", "")).head_dim, 8);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("mixtral", "")).experts, 8);
    CU_ASSERT_TRUE(parse_or_fail(TINY("opt", ",\"ffn_dim\":256")).tied_embeddings);
    CU_ASSERT_TRUE(parse_or_fail(TINY("falcon", "")).tied_embeddings);
    CU_ASSERT_FALSE(parse_or_fail(TINY("gpt_neox", "")).tied_embeddings);
    CU_ASSERT_FALSE(parse_or_fail(TINY("phi3", "")).q_bias);
    CU_ASSERT_TRUE(parse_or_fail(TINY("qwen2", ",\"num_key_value_heads\":4")).q_bias);
    CU_ASSERT_FALSE(parse_or_fail(TINY("qwen2", ",\"num_key_value_heads\":4")).o_bias);
}

static void null_is_not_missing(void)
{
    CU_ASSERT_EQUAL(parse_or_fail(TINY("mistral", ",\"num_key_value_heads\":null")).kv_heads, 8);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gemma2", ",\"num_key_value_heads\":null")).kv_heads, 8);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("llama", ",\"head_dim\":null")).head_dim, 8);
    nd_model_spec missing = parse_or_fail(TINY("deepseek_v3", ""));
    nd_model_spec null = parse_or_fail(TINY("deepseek_v3", ",\"q_lora_rank\":null"));
    CU_ASSERT_EQUAL(missing.mla_q_rank, 1536);
    CU_ASSERT_EQUAL(null.mla_q_rank, 0);
}

static void mla_ignores_head_dim(void)
{
    nd_model_spec spec = parse_or_fail(TINY("deepseek_v3", ",\"head_dim\":64"));
    CU_ASSERT_EQUAL(nd_model_qk_dim(&spec), 192);
    CU_ASSERT_EQUAL(spec.kv_heads, 8);
}

static void old_and_new_key_names_mean_the_same(void)
{
    nd_model_spec early = parse_or_fail("{\"model_type\":\"falcon\",\"n_embed\":64,\"n_layer\":4,\"n_head\":8,"
                                        "\"n_head_kv\":2,\"new_decoder_architecture\":true,\"vocab_size\":1000}");
    nd_model_spec late = parse_or_fail(TINY("falcon", ",\"num_kv_heads\":2,\"new_decoder_architecture\":true,"
                                                      "\"ffn_hidden_size\":256"));
    CU_ASSERT_EQUAL(nd_model_params(&early).total, nd_model_params(&late).total);
    CU_ASSERT_EQUAL(early.kv_heads, 2);
    nd_model_spec gpt2 = parse_or_fail("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":4,\"n_head\":8,"
                                       "\"n_positions\":32,\"n_inner\":128,\"vocab_size\":1000}");
    nd_model_spec renamed = parse_or_fail(TINY("gpt2", ",\"max_position_embeddings\":32"));
    CU_ASSERT_EQUAL(nd_model_params(&gpt2).total, nd_model_params(&renamed).total);
    nd_model_spec old_dtype = parse_or_fail(TINY("llama", ",\"torch_dtype\":\"bfloat16\",\"rope_scaling\":null"));
    nd_model_spec new_dtype =
        parse_or_fail(TINY("llama", ",\"dtype\":\"bfloat16\",\"rope_parameters\":{\"rope_type\":\"default\"}"));
    CU_ASSERT_EQUAL(nd_model_params(&old_dtype).total, nd_model_params(&new_dtype).total);
    CU_ASSERT_STRING_EQUAL(old_dtype.note, new_dtype.note);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gpt_oss", ",\"experts_per_token\":2")).experts_topk, 2);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("qwen3_moe", ",\"num_local_experts\":16")).experts, 16);
}

static void multi_query_forces_one_kv_head_in_the_old_falcon(void)
{
    CU_ASSERT_EQUAL(parse_or_fail(TINY("falcon", ",\"num_kv_heads\":4")).kv_heads, 1);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("falcon", ",\"num_kv_heads\":4,\"multi_query\":false")).kv_heads, 4);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("falcon", "")).norms_per_layer, 1);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("falcon", ",\"parallel_attn\":false")).norms_per_layer, 2);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("falcon", ",\"new_decoder_architecture\":true")).norms_per_layer, 2);
}

static void nested_configs_fill_in_what_hub_files_leave_out(void)
{
    nd_model_spec spec = parse_or_fail("{\"model_type\":\"gemma3\",\"vision_config\":{\"hidden_size\":1152},"
                                       "\"text_config\":{\"num_hidden_layers\":7}}");
    CU_ASSERT_EQUAL(spec.hidden, 2304);
    CU_ASSERT_EQUAL(spec.layers, 7);
    CU_ASSERT_EQUAL(spec.vocab, 262208);
    CU_ASSERT_TRUE(spec.tied_embeddings);
    CU_ASSERT_EQUAL(spec.norms_per_layer, 4);
    CU_ASSERT_STRING_EQUAL(spec.family, "gemma3");
    ND_ASSERT_CONTAINS(spec.note, "vision");
}

static void ties_come_from_the_inner_object_then_from_the_outer_one(void)
{
    CU_ASSERT_FALSE(parse_or_fail("{\"model_type\":\"gemma3\",\"tie_word_embeddings\":true,"
                                  "\"text_config\":{\"tie_word_embeddings\":false}}")
                        .tied_embeddings);
    CU_ASSERT_FALSE(
        parse_or_fail("{\"model_type\":\"gemma3\",\"tie_word_embeddings\":false,\"text_config\":{}}").tied_embeddings);
}

static void the_text_model_of_an_unknown_vision_model_is_read(void)
{
    nd_model_spec spec = parse_or_fail("{\"model_type\":\"llava\",\"text_config\":" TINY("llama", "") "}");
    CU_ASSERT_EQUAL(spec.hidden, 64);
    CU_ASSERT_STRING_EQUAL(spec.family, "llama");
    ND_ASSERT_CONTAINS(spec.note, "'llava'");
}

static void an_unknown_type_is_read_as_llama_only_when_asked(void)
{
    const char *text = TINY("starcoder9", ",\"num_key_value_heads\":2");
    nd_model_spec spec;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_model_parse(text, strlen(text), "c.json", false, &spec, &err), ND_EUNSUPPORTED);
    CU_ASSERT_EQUAL(err.status, ND_EUNSUPPORTED);
    ND_ASSERT_OK(nd_model_parse(text, strlen(text), "c.json", true, &spec, &err));
    CU_ASSERT_EQUAL(spec.kv_heads, 2);
    CU_ASSERT_STRING_EQUAL(spec.note, "model_type 'starcoder9' read as llama (--assume-llama)");
    const char *experts = TINY("starcoder9", ",\"num_experts\":8");
    CU_ASSERT_EQUAL(nd_model_parse(experts, strlen(experts), "c.json", true, &spec, &err), ND_EUNSUPPORTED);
}

static void a_quantized_checkpoint_is_noted(void)
{
    nd_model_spec spec = parse_or_fail(TINY("llama", ",\"quantization_config\":{\"quant_method\":\"gptq\"}"));
    CU_ASSERT_STRING_EQUAL(spec.note,
                           "quantized checkpoint (gptq): planned as unquantized, train from its bf16 weights");
    CU_ASSERT_STRING_EQUAL(parse_or_fail(TINY("llama", "")).note, "");
}

static void the_name_comes_from_the_config_or_else_from_the_file(void)
{
    CU_ASSERT_STRING_EQUAL(parse_or_fail(TINY("llama", "")).name, "test.json");
    CU_ASSERT_STRING_EQUAL(parse_or_fail(TINY("llama", ",\"_name_or_path\":\"\"")).name, "test.json");
    CU_ASSERT_STRING_EQUAL(parse_or_fail(TINY("llama", ",\"_name_or_path\":\"a\\u001b[31m\"")).name, "a?[31m");
}

static void activations_choose_the_kind_of_gate(void)
{
    CU_ASSERT_EQUAL(parse_or_fail(TINY("llama", "")).ffn, ND_FFN_SWIGLU);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("llama", ",\"hidden_act\":\"gelu\"")).ffn, ND_FFN_GEGLU);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gemma2", "")).ffn, ND_FFN_GEGLU);
    CU_ASSERT_EQUAL(parse_or_fail(TINY("gpt_neox", "")).ffn, ND_FFN_GELU);
    CU_ASSERT_EQUAL(nd_ffn_matrices(ND_FFN_GELU), 2);
    CU_ASSERT_EQUAL(nd_ffn_matrices(ND_FFN_GEGLU), 3);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(missing_keys_take_the_default_of_their_family),
        ND_TEST(null_is_not_missing),
        ND_TEST(mla_ignores_head_dim),
        ND_TEST(old_and_new_key_names_mean_the_same),
        ND_TEST(multi_query_forces_one_kv_head_in_the_old_falcon),
        ND_TEST(nested_configs_fill_in_what_hub_files_leave_out),
        ND_TEST(ties_come_from_the_inner_object_then_from_the_outer_one),
        ND_TEST(the_text_model_of_an_unknown_vision_model_is_read),
        ND_TEST(an_unknown_type_is_read_as_llama_only_when_asked),
        ND_TEST(a_quantized_checkpoint_is_noted),
        ND_TEST(the_name_comes_from_the_config_or_else_from_the_file),
        ND_TEST(activations_choose_the_kind_of_gate),
        {NULL, NULL},
    };
    return nd_test_main("models.readers", cases);
}
