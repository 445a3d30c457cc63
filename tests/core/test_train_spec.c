#include "core/train_spec.h"

#include "tests/nd_test.h"

static nd_train_spec usual(void)
{
    return (nd_train_spec){.seq_len_tokens = 4096,
                           .global_batch_seqs = 64,
                           .precision = ND_DTYPE_BF16,
                           .optimizer = ND_OPTIMIZER_ADAMW,
                           .attention = ND_ATTENTION_FLASH2,
                           .base_bits = 16};
}

static void test_names_are_read_back(void)
{
    nd_error err;
    for (int i = 0; i < ND_OPTIMIZER_COUNT; i++) {
        nd_optimizer value = ND_OPTIMIZER_COUNT;
        ND_ASSERT_OK(nd_optimizer_parse(nd_optimizer_name((nd_optimizer)i), &value, &err));
        CU_ASSERT_EQUAL((int)value, i);
    }
    for (int i = 0; i < ND_ATTENTION_COUNT; i++) {
        nd_attention value = ND_ATTENTION_COUNT;
        ND_ASSERT_OK(nd_attention_parse(nd_attention_name((nd_attention)i), &value, &err));
        CU_ASSERT_EQUAL((int)value, i);
    }
    for (int i = 0; i < ND_DTYPE_COUNT; i++) {
        nd_dtype value = ND_DTYPE_COUNT;
        ND_ASSERT_OK(nd_precision_parse(nd_dtype_name((nd_dtype)i), &value, &err));
        CU_ASSERT_EQUAL((int)value, i);
    }
}

static void test_unknown_names_list_what_is_allowed(void)
{
    nd_error err;
    nd_optimizer optimizer = ND_OPTIMIZER_LION;
    CU_ASSERT_EQUAL(nd_optimizer_parse("adam", &optimizer, &err), ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "the optimizer must be one of adamw, adamw-8bit, adamw-bf16, sgd, lion, muon, got 'adam'");
    CU_ASSERT_EQUAL(optimizer, ND_OPTIMIZER_LION);
    nd_attention attention = ND_ATTENTION_MATH;
    CU_ASSERT_EQUAL(nd_attention_parse("flash4", &attention, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "flash2, flash3, flash1, math, got 'flash4'");
    nd_dtype dtype = ND_DTYPE_FP8;
    CU_ASSERT_EQUAL(nd_precision_parse("", &dtype, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "bf16, fp16, fp32, fp8, got ''");
}

static void test_optimizer_states(void)
{
    CU_ASSERT_EQUAL(nd_optimizer_state_bytes(ND_OPTIMIZER_ADAMW), 8);
    CU_ASSERT_EQUAL(nd_optimizer_state_bytes(ND_OPTIMIZER_ADAMW_8BIT), 2);
    CU_ASSERT_EQUAL(nd_optimizer_state_bytes(ND_OPTIMIZER_SGD), 4);
}

static void test_lora(void)
{
    nd_error err;
    nd_train_spec spec = usual();
    ND_ASSERT_OK(nd_lora_parse("r=16", &spec, &err));
    CU_ASSERT_EQUAL(spec.lora_rank, 16);
    CU_ASSERT_EQUAL(spec.base_bits, 16);
    ND_ASSERT_OK(nd_lora_parse("r=8,bits=4", &spec, &err));
    CU_ASSERT_EQUAL(spec.lora_rank, 8);
    CU_ASSERT_EQUAL(spec.base_bits, 4);
    ND_ASSERT_OK(nd_lora_parse("bits=8,r=32", &spec, &err));
    CU_ASSERT_EQUAL(spec.lora_rank, 32);
    CU_ASSERT_EQUAL(spec.base_bits, 8);
}

static void test_bad_lora_is_refused(void)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        {"", "unknown LoRA entry ''"},
        {"16", "unknown LoRA entry '16'"},
        {"r=", "the LoRA rank r must be a whole number"},
        {"r=0", "the LoRA rank r must be from 1 to 65536, got 0"},
        {"r=-4", "the LoRA rank r must be from 1 to 65536, got -4"},
        {"r=70000", "the LoRA rank r must be from 1 to 65536"},
        {"bits=4", "LoRA needs its rank"},
        {"r=16,bits=5", "the LoRA base bits must be 4, 8 or 16, got 5"},
        {"r=16,bits=32", "the LoRA base bits must be from 4 to 16"},
        {"r=16,r=8", "the LoRA key r is given twice"},
        {"r=16,", "unknown LoRA entry ''"},
        {"r=16,alpha=8", "unknown LoRA entry 'alpha=8'"},
        {"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr=1", "unknown LoRA entry"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nd_error err = {0};
        nd_train_spec spec = usual();
        spec.lora_rank = 99;
        CU_ASSERT_EQUAL(nd_lora_parse(bad[i].text, &spec, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, bad[i].message);
        CU_ASSERT_EQUAL(spec.lora_rank, 99);
        CU_ASSERT_EQUAL(spec.base_bits, 16);
    }
}

static void check_refused(nd_train_spec spec, const char *message)
{
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_train_spec_check(&spec, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, message);
}

static void test_a_usual_spec_passes(void)
{
    nd_error err;
    nd_train_spec spec = usual();
    ND_ASSERT_OK(nd_train_spec_check(&spec, &err));
    spec.seq_len_tokens = INT64_C(1) << 30;
    spec.global_batch_seqs = INT64_C(1) << 23;
    spec.lora_rank = 16;
    spec.base_bits = 4;
    ND_ASSERT_OK(nd_train_spec_check(&spec, &err));
}

static void test_values_out_of_range_are_refused(void)
{
    nd_train_spec spec = usual();
    spec.seq_len_tokens = 0;
    check_refused(spec, "the sequence length must be from 1 to 1073741824 tokens, got 0");
    spec.seq_len_tokens = INT64_MAX;
    check_refused(spec, "the sequence length must be from 1");
    spec = usual();
    spec.global_batch_seqs = -1;
    check_refused(spec, "the global batch must be from 1 to 1099511627776 sequences, got -1");
    spec.global_batch_seqs = (INT64_C(1) << 40) + 1;
    check_refused(spec, "the global batch must be from 1");
    spec.seq_len_tokens = INT64_C(1) << 30;
    spec.global_batch_seqs = INT64_C(1) << 24;
    check_refused(spec, "tokens of one step");
    spec = usual();
    spec.lora_rank = 65537;
    check_refused(spec, "the LoRA rank must be from 0");
    spec.lora_rank = 16;
    spec.base_bits = 3;
    check_refused(spec, "the base bits must be 4, 8 or 16, got 3");
    spec.lora_rank = 0;
    spec.base_bits = 4;
    check_refused(spec, "4-bit base weights need LoRA");
    spec = usual();
    spec.optimizer = ND_OPTIMIZER_COUNT;
    check_refused(spec, "no known value");
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_names_are_read_back),
        ND_TEST(test_unknown_names_list_what_is_allowed),
        ND_TEST(test_optimizer_states),
        ND_TEST(test_lora),
        ND_TEST(test_bad_lora_is_refused),
        ND_TEST(test_a_usual_spec_passes),
        ND_TEST(test_values_out_of_range_are_refused),
        {NULL, NULL},
    };
    return nd_test_main("core.train_spec", cases);
}
