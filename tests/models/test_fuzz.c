/* Damaged configs: whatever is changed, parsing ends in a spec that adds up or in a one-line message. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/models/model_fixture.h"

enum { MUTANTS_PER_CONFIG = 400, TEXT_BYTES = 8192 };

static uint64_t random_state;

/* xorshift64*: the same sequence everywhere, so that a failure can be repeated. */
static uint64_t next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static size_t below(size_t bound)
{
    return bound == 0 ? 0 : (size_t)(next_random() % bound);
}

/* Replaces [at, at + removed) by `with`, when that fits. */
static size_t splice(char *text, size_t length, size_t at, size_t removed, const char *with)
{
    size_t added = strlen(with);
    if (at + removed > length || length - removed + added >= TEXT_BYTES) {
        return length;
    }
    memmove(text + at + added, text + at + removed, length - at - removed);
    for (size_t i = 0; i < added; i++) {
        text[at + i] = with[i];
    }
    return length - removed + added;
}

/* Replace a run of digits, which keeps the text JSON and reaches the readers. */
static size_t change_number(char *text, size_t length)
{
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "3",
                                          "1e300",
                                          "null",
                                          "true",
                                          "[]",
                                          "{}",
                                          "\"8\"",
                                          "2.5",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "1000000",
                                          "65536",
                                          "1024"};
    size_t at = below(length);
    while (at < length && (text[at] < '0' || text[at] > '9')) {
        at++;
    }
    size_t run = 0;
    while (at + run < length && text[at + run] >= '0' && text[at + run] <= '9') {
        run++;
    }
    return splice(text, length, at, run, numbers[below(sizeof numbers / sizeof numbers[0])]);
}

static size_t mutate(char *text, size_t length)
{
    static const char *const pieces[] = {"{", "}", "[", "]", "\"", ",", ":", "null", "\\u0000", "\xff", "true", "\n"};
    switch (below(6)) {
    case 0:
        text[below(length)] = (char)below(256);
        return length;
    case 1:
        return splice(text, length, below(length), below(8), "");
    case 2:
        return splice(text, length, below(length), 0, pieces[below(sizeof pieces / sizeof pieces[0])]);
    default:
        return change_number(text, length);
    }
}

static void assert_outcome(const char *text, size_t length, bool assume_llama)
{
    nd_model_spec spec;
    nd_error err = {0};
    nd_status status = nd_model_parse(text, length, "fuzz.json", assume_llama, &spec, &err);
    if (status == ND_OK) {
        nd_param_counts n = nd_model_params(&spec);
        bool sane = nd_model_check(&spec, &err) == ND_OK && n.total > 0 && n.active > 0 && n.active <= n.total &&
                    nd_model_flops_per_token(&spec, 4096, ND_FLOPS_CAUSAL) > 0;
        CU_ASSERT_TRUE(sane);
        if (!sane) {
            fprintf(stderr, "%.*s\n", (int)length, text);
        }
        return;
    }
    CU_ASSERT_EQUAL(err.status, status);
    CU_ASSERT_TRUE(strncmp(err.message, "fuzz.json:", 10) == 0);
    CU_ASSERT_PTR_NULL(strchr(err.message, '\n'));
    CU_ASSERT_TRUE(strlen(err.message) < ND_ERROR_MESSAGE_MAX - 1);
}

static void fuzz_config(const char *text, size_t length)
{
    char mutant[TEXT_BYTES];
    for (int i = 0; i < MUTANTS_PER_CONFIG; i++) {
        size_t size = length;
        memcpy(mutant, text, length);
        for (size_t changes = 1 + below(4); changes > 0 && size > 0; changes--) {
            size = mutate(mutant, size);
        }
        assert_outcome(mutant, size, i % 4 == 0);
    }
}

static size_t read_config(const char *name, char *out)
{
    char path[256 + sizeof ND_TEST_DATA];
    (void)snprintf(path, sizeof path, "%s/../../../models/configs/%s.json", ND_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t length = fread(out, 1, TEXT_BYTES / 2, file);
    fclose(file);
    return length;
}

static void mutants_of_every_builtin_parse_or_say_why_not(void)
{
    char text[TEXT_BYTES];
    random_state = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < nd_model_builtin_count(); i++) {
        size_t length = read_config(nd_model_builtin_name(i), text);
        CU_ASSERT_TRUE(length > 100);
        fuzz_config(text, length);
    }
}

static void every_prefix_of_a_config_is_refused(void)
{
    char text[TEXT_BYTES];
    nd_model_spec spec;
    nd_error err = {0};
    size_t length = read_config("deepseek-v3", text);
    while (length > 0 && text[length - 1] != '}') {
        length--;
    }
    for (size_t cut = 0; cut < length; cut++) {
        CU_ASSERT_NOT_EQUAL(nd_model_parse(text, cut, "cut.json", false, &spec, &err), ND_OK);
    }
}

static void largest_allowed_shapes_do_not_overflow(void)
{
    const char *text = "{\"model_type\":\"llama\",\"hidden_size\":1000000,\"num_hidden_layers\":1024,"
                       "\"num_attention_heads\":65536,\"head_dim\":65536,\"intermediate_size\":10000000,"
                       "\"vocab_size\":100000000}";
    assert_outcome(text, strlen(text), false);
    nd_model_spec spec;
    CU_ASSERT_EQUAL(nd_model_parse(text, strlen(text), "x", false, &spec, NULL), ND_EPARSE);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(mutants_of_every_builtin_parse_or_say_why_not),
        ND_TEST(every_prefix_of_a_config_is_refused),
        ND_TEST(largest_allowed_shapes_do_not_overflow),
        {NULL, NULL},
    };
    return nd_test_main("models.fuzz", cases);
}
