/* Seeded random damage to valid input: every result is either accepted and consistent, or refused in one line. */
#include <stdint.h>
#include <stdlib.h>

#include "core/layout.h"
#include "core/train_spec.h"
#include "tests/core/json_check.h"

enum { ROUNDS = 8000, TEXT_MAX = 1024 };

static const char *const documents[] = {
    "{\"a_b\": \"llama\", \"x\": {\"f\": 8.0}, \"l\": [1, -3, 4e2, \"\\u00e9\", true, false, null]}",
    "[[[[]]], {\"a\": {\"b\": {\"c\": []}}}, \"\\\"\\\\\\/\\b\", \"caf\xc3\xa9\", 9223372036854775807, -0.0]",
    "{\"\": {\"\": \"\"}, \"k\": \"v\", \"k2\": [\"]\", \"}\", \"{\", \"[\", \",\", \":\"]}",
};
static const char *const layouts[] = {
    "dp_replicate=2,dp_shard=2,cp=2,tp=2,micro_batch=1,recompute=full",
    "pp=4,vpp=2,schedule=interleaved,sp=on,cp_method=ring,recompute=every:4,sharding=zero3,offload=params",
    "tp=8, ep=16, grad_accum=1024, every:2",
};
static const char interesting[] = "{}[]\":,\\/ \n\t0123456789-+.eE=untrfals\xff\xc3\xa9\x01\x7f";

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t bound)
{
    return (size_t)(next_random(state) % bound);
}

static char random_byte(uint64_t *state, bool nul_allowed)
{
    if (below(state, 2) == 0) {
        return interesting[below(state, sizeof interesting - 1)];
    }
    return (char)(nul_allowed ? below(state, 256) : 1 + below(state, 255));
}

/* Overwrite, insert, delete or repeat at a random place; the new length. */
static size_t mutate(char text[TEXT_MAX], size_t length, bool nul_allowed, uint64_t *state)
{
    size_t at = length > 0 ? below(state, length) : 0;
    size_t count = 1 + below(state, 8);
    count = count < length - at ? count : length - at;
    switch (below(state, 4)) {
    case 0:
        if (length > 0) {
            text[at] = random_byte(state, nul_allowed);
        }
        return length;
    case 1:
        if (length + 1 < TEXT_MAX) {
            memmove(text + at + 1, text + at, length - at);
            text[at] = random_byte(state, nul_allowed);
            return length + 1;
        }
        return length;
    case 2:
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    default:
        if (length + count < TEXT_MAX) {
            memmove(text + at + count, text + at, length - at);
            return length + count;
        }
        return length;
    }
}

static bool is_one_line(const nd_error *err)
{
    size_t length = strlen(err->message);
    return length > 0 && length < ND_ERROR_MESSAGE_MAX && strpbrk(err->message, "\n\r\x1b") == NULL;
}

static bool document_holds(const char *text, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1); /* exact size: a sanitizer sees a byte read too far */
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text, length);
    nd_error err = {0};
    nd_json_doc *doc = NULL;
    nd_status status = nd_json_parse(copy, length, "f.json", &doc, &err);
    bool holds = status == ND_OK ? json_offsets_hold(nd_json_root(doc), copy, length)
                                 : status == ND_EPARSE && is_one_line(&err) && doc == NULL;
    nd_json_free(doc);
    free(copy);
    return holds;
}

static void test_damaged_json_is_read_or_refused(void)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    int accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const char *source = documents[below(&state, sizeof documents / sizeof documents[0])];
        char text[TEXT_MAX];
        size_t length = strlen(source);
        memcpy(text, source, length);
        for (size_t edits = below(&state, 5); edits > 0; edits--) {
            length = mutate(text, length, true, &state);
        }
        CU_ASSERT_TRUE_FATAL(document_holds(text, length));
        nd_json_doc *doc = NULL;
        accepted += nd_json_parse(text, length, "f.json", &doc, NULL) == ND_OK ? 1 : 0;
        nd_json_free(doc);
    }
    CU_ASSERT_TRUE(accepted > ROUNDS / 10); /* both outcomes were seen */
    CU_ASSERT_TRUE(accepted < ROUNDS);
}

static bool layout_holds(const char *text)
{
    nd_error err = {0};
    nd_layout layout = nd_layout_single();
    uint32_t given = 0;
    nd_status status = nd_layout_parse(text, &layout, &given, &err);
    if (status != ND_OK) {
        return status == ND_EINVAL && is_one_line(&err) && given == 0 && nd_layout_ranks(&layout) == 1;
    }
    char written[512];
    char again[512];
    nd_layout back;
    return given != 0 && nd_layout_ranks(&layout) >= 1 && nd_layout_global_batch_seqs(&layout) >= 1 &&
           nd_layout_format(&layout, written, sizeof written) < sizeof written &&
           nd_layout_parse(written, &back, NULL, &err) == ND_OK &&
           nd_layout_format(&back, again, sizeof again) < sizeof again && strcmp(written, again) == 0;
}

static void test_damaged_layouts_are_read_or_refused(void)
{
    uint64_t state = UINT64_C(0xD1B54A32D192ED03);
    nd_layout layout;
    int accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const char *source = layouts[below(&state, sizeof layouts / sizeof layouts[0])];
        char text[TEXT_MAX];
        size_t length = strlen(source);
        memcpy(text, source, length);
        for (size_t edits = below(&state, 4); edits > 0; edits--) {
            length = mutate(text, length, false, &state);
        }
        text[length] = '\0';
        CU_ASSERT_TRUE_FATAL(layout_holds(text));
        accepted += nd_layout_parse(text, &layout, NULL, NULL) == ND_OK ? 1 : 0;
    }
    CU_ASSERT_TRUE(accepted > ROUNDS / 10);
    CU_ASSERT_TRUE(accepted < ROUNDS);
}

static void test_damaged_lora_texts_are_read_or_refused(void)
{
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    for (int round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX] = "r=16,bits=4";
        size_t length = strlen(text);
        for (size_t edits = below(&state, 4); edits > 0; edits--) {
            length = mutate(text, length, false, &state);
        }
        text[length] = '\0';
        nd_error err = {0};
        nd_train_spec spec = {.seq_len_tokens = 1, .global_batch_seqs = 1, .base_bits = 16};
        nd_status status = nd_lora_parse(text, &spec, &err);
        CU_ASSERT_TRUE_FATAL(status == ND_OK ? nd_train_spec_check(&spec, &err) == ND_OK
                                             : is_one_line(&err) && spec.lora_rank == 0);
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_damaged_json_is_read_or_refused),
        ND_TEST(test_damaged_layouts_are_read_or_refused),
        ND_TEST(test_damaged_lora_texts_are_read_or_refused),
        {NULL, NULL},
    };
    return nd_test_main("core.mutations", cases);
}
