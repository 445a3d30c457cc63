/* The messages a person gets for a bad config, whole. */
#include "tests/models/model_fixture.h"

typedef struct bad_config {
    const char *text;
    nd_status status;
    const char *message;
} bad_config;

static const bad_config bad_configs[] = {
    {"[1]", ND_EPARSE, "c.json:1:1: a model config is a JSON object, got an array"},
    {"{\"hidden_size\":64}", ND_EPARSE,
     "c.json:1:1: there is no 'model_type': this is not the config.json of a Hugging Face model (or give "
     "--assume-llama)"},
    {"{\"model_type\":7}", ND_EPARSE, "c.json:1:15: 'model_type' must be a string, got 7"},
    {"{\"peft_type\":\"LORA\",\"base_model_name_or_path\":\"meta-llama/Llama-3.1-8B\"}", ND_EPARSE,
     "c.json:1:1: this is a LoRA adapter, not a model; plan its base model: meta-llama/Llama-3.1-8B"},
    {"{\"_class_name\":\"FluxPipeline\"}", ND_EPARSE,
     "c.json:1:1: this is a diffusers pipeline or module, not a language model; give the config.json of a decoder-only "
     "transformer"},
    {TINY("bert", ""), ND_EUNSUPPORTED,
     "c.json:1:15: model_type 'bert' is not supported; supported are deepseek_v2, deepseek_v3, falcon, gemma2, gemma3, "
     "gemma3_text, gpt2, gpt_neox, gpt_oss, granite, llama, llama4, llama4_text, mistral, mixtral, olmo2, olmo3, opt, "
     "phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, smollm3; --assume-llama would read hidden_size, num_hidden_layers, "
     "num_attention_heads, num_key_value_heads, intermediate_size and vocab_size as in Llama (gated feed-forward, "
     "RMSNorm, full attention, no experts)"},
    {"{\"model_type\":\"gemma3\",\"text_config\":7}", ND_EPARSE,
     "c.json:1:38: 'text_config' must be an object, got a whole number"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":[]}}", ND_EPARSE,
     "c.json:1:52: 'model_type' must be a string, got an array"},
    {"{\"model_type\":\"gemma3\",\"hidden_size\":64}", ND_EPARSE, "c.json:1:1: missing key 'text_config'"},
    {"{\"model_type\":\"llama\",\"num_hidden_layers\":4}", ND_EPARSE, "c.json:1:1: missing key 'hidden_size'"},
    {TINY("llama", ",\"num_key_value_heads\":3"), ND_EPARSE,
     "c.json:1:150: num_attention_heads 8 is no multiple of num_key_value_heads 3"},
    {TINY("llama", ",\"num_key_value_heads\":-1"), ND_EPARSE,
     "c.json:1:150: 'num_key_value_heads' must be a whole number from 1 to 65536, got -1"},
    {TINY("llama", ",\"num_key_value_heads\":16"), ND_EPARSE,
     "c.json:1:150: num_attention_heads 8 is no multiple of num_key_value_heads 16"},
    {TINY("llama", ",\"head_dim\":0"), ND_EPARSE,
     "c.json:1:139: 'head_dim' must be a whole number from 1 to 65536, got 0"},
    {TINY("llama", ",\"tie_word_embeddings\":\"yes\""), ND_EPARSE,
     "c.json:1:150: 'tie_word_embeddings' must be true or false, got the string \"yes\""},
    {TINY("llama", ",\"max_position_embeddings\":1e30"), ND_EPARSE,
     "c.json:1:154: 'max_position_embeddings' must be a whole number from 1 to 1000000000, got 1e+30"},
    {TINY("llama", ",\"hidden_size\":64"), ND_EPARSE,
     "c.json:1:128: duplicate object key near '\"hidden_size\"'; keep one of the two"},
    {"{\"model_type\":\"llama\",\"hidden_size\":2000000}", ND_EPARSE,
     "c.json:1:37: 'hidden_size' must be a whole number from 1 to 1000000, got 2000000"},
    {"{\"model_type\":\"llama\",\n\"hidden_size\":64,\n\"num_hidden_layers\":1025}", ND_EPARSE,
     "c.json:3:21: 'num_hidden_layers' must be a whole number from 1 to 1024, got 1025"},
    {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2.5}", ND_EPARSE,
     "c.json:1:60: 'num_hidden_layers' must be a whole number from 1 to 1024, got 2.5"},
    {"{\"model_type\":\"llama\",\"hidden_size\":null}", ND_EPARSE,
     "c.json:1:37: 'hidden_size' must be a whole number from 1 to 1000000, got null"},
    {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":4,\"vocab_size\":200000000}", ND_EPARSE,
     "c.json:1:75: 'vocab_size' must be a whole number from 1 to 100000000, got 200000000"},
    {"{\"model_type\":\"gpt2\",\"n_embd\":100,\"n_layer\":2,\"n_head\":3}", ND_EPARSE,
     "c.json:1:56: the hidden size 100 is no multiple of the 3 attention heads"},
    {"{\"model_type\":\"llama\",\"hidden_size\":100,\"num_hidden_layers\":4,\"num_attention_heads\":8,"
     "\"intermediate_size\":9,\"vocab_size\":9}",
     ND_EPARSE, "c.json:1:85: hidden_size 100 is no multiple of num_attention_heads 8 and there is no head_dim"},
    {TINY("mixtral", ",\"num_experts_per_tok\":9"), ND_EPARSE,
     "c.json:1:152: num_experts_per_tok is 9 but there are only 8 experts; it must not exceed them"},
    {TINY("mixtral", ",\"num_local_experts\":70000"), ND_EPARSE,
     "c.json:1:150: 'num_local_experts' must be a whole number from 1 to 65536, got 70000"},
    {TINY("deepseek_v2", ",\"num_experts_per_tok\":null"), ND_EPARSE,
     "c.json:1:156: 'num_experts_per_tok' must be a whole number from 1 to 65536, got null"},
    {TINY("deepseek_v2", ",\"kv_lora_rank\":0"), ND_EPARSE,
     "c.json:1:149: 'kv_lora_rank' must be a whole number from 1 to 1000000, got 0"},
    {TINY("gemma2", ",\"layer_types\":[\"full_attention\"]"), ND_EPARSE,
     "c.json:1:143: 'layer_types' has 1 entries for 4 layers; give one for each layer"},
    {TINY("llama4_text", ",\"moe_layers\":[4]"), ND_EPARSE,
     "c.json:1:148: 'moe_layers' must be a whole number from 0 to 3, got 4"},
    {TINY("llama4_text", ",\"no_rope_layers\":\"none\""), ND_EPARSE,
     "c.json:1:151: 'no_rope_layers' must be an array of 0 and 1, got a string"},
    {TINY("qwen3_moe", ",\"mlp_only_layers\":3"), ND_EPARSE,
     "c.json:1:150: 'mlp_only_layers' must be an array of layer numbers, got a whole number"},
    {TINY("qwen3_moe", ",\"layer_types\":[\"full_attention\",\"linear_attention\",\"full_attention\","
                       "\"full_attention\"]"),
     ND_EUNSUPPORTED,
     "c.json:1:164: layer_types has 'linear_attention'; supported are full_attention, sliding_attention and "
     "chunked_attention"},
    {TINY("mistral", ",\"sliding_window\":0"), ND_EPARSE,
     "c.json:1:147: 'sliding_window' must be a whole number from 1 to 1000000000, got 0"},
    {TINY("opt", ",\"ffn_dim\":64,\"layer_norm_elementwise_affine\":false"), ND_EUNSUPPORTED,
     "c.json:1:171: layer_norm_elementwise_affine is false: norms without weights are not supported in opt"},
    {"{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":2,\"add_cross_attention\":true}", ND_EUNSUPPORTED,
     "c.json:1:79: add_cross_attention is true: only decoder-only models are planned"},
    {"{\"model_type\":\"llama\",\"hidden_size\":1000000,\"num_hidden_layers\":1000,\"num_attention_heads\":1000,"
     "\"intermediate_size\":10000000,\"vocab_size\":9}",
     ND_EPARSE, "c.json:1:1: these shapes make up to 3.4e+16 parameters, more than the 1e+15 allowed; check them"},
    {"{\"model_type\":\"llama\",", ND_EPARSE, "c.json:1:23: the JSON ends too early; a bracket or quote is not closed"},
    {"", ND_EPARSE, "c.json:1:1: the JSON text is empty"},
};

static bool all_bytes_are(const void *memory, size_t length, unsigned char value)
{
    const unsigned char *bytes = memory;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static void bad_configs_are_refused_with_the_place_and_the_remedy(void)
{
    for (size_t i = 0; i < sizeof bad_configs / sizeof bad_configs[0]; i++) {
        const bad_config *bad = &bad_configs[i];
        nd_model_spec spec;
        nd_error err = {0};
        memset(&spec, 0x5A, sizeof spec);
        CU_ASSERT_EQUAL(nd_model_parse(bad->text, strlen(bad->text), "c.json", false, &spec, &err), bad->status);
        CU_ASSERT_EQUAL(err.status, bad->status);
        CU_ASSERT_TRUE(all_bytes_are(&spec, sizeof spec, 0x5A)); /* outputs untouched */
        if (strcmp(err.message, bad->message) != 0) {
            fprintf(stderr, "got      %s\nexpected %s\n", err.message, bad->message);
            CU_FAIL("message");
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(bad_configs_are_refused_with_the_place_and_the_remedy),
        {NULL, NULL},
    };
    return nd_test_main("models.errors", cases);
}
