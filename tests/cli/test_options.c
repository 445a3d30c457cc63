#include "cli/options.h"

#include <string.h>

#include "tests/nd_test.h"

static const nd_option_id accepted[] = {ND_OPTION_MODEL, ND_OPTION_SEQ_LEN, ND_OPTION_JSON, ND_OPTION_VERBOSE,
                                        ND_OPTION_HELP};
static const nd_command_syntax no_operand = {
    .name = "test",
    .summary = "Test",
    .example = "ndplan test",
    .usage = "ndplan test",
    .options = accepted,
    .options_count = sizeof accepted / sizeof accepted[0],
};

static nd_status parse(const nd_command_syntax *syntax, char *const *argv, nd_options *out, nd_error *err)
{
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    return nd_options_parse(syntax, argc, argv, out, err);
}

#define ARGS(...) ((char *const *)(const char *[]){__VA_ARGS__, NULL})

static void test_blank_and_equals_give_the_same_value(void)
{
    nd_error err;
    nd_options blank = {0};
    nd_options equals = {0};
    ND_ASSERT_OK(parse(&no_operand, ARGS("--seq-len", "8192"), &blank, &err));
    ND_ASSERT_OK(parse(&no_operand, ARGS("--seq-len=8192"), &equals, &err));
    CU_ASSERT_STRING_EQUAL(blank.value[ND_OPTION_SEQ_LEN], "8192");
    CU_ASSERT_STRING_EQUAL(equals.value[ND_OPTION_SEQ_LEN], "8192");
}

static void test_flags_are_empty_texts_and_the_rest_is_absent(void)
{
    nd_error err;
    nd_options options = {0};
    ND_ASSERT_OK(parse(&no_operand, ARGS("--json", "-v"), &options, &err));
    CU_ASSERT_TRUE(nd_options_has(&options, ND_OPTION_JSON));
    CU_ASSERT_TRUE(nd_options_has(&options, ND_OPTION_VERBOSE));
    CU_ASSERT_FALSE(nd_options_has(&options, ND_OPTION_MODEL));
}

static void test_a_negative_number_is_a_value(void)
{
    nd_error err;
    nd_options options = {0};
    ND_ASSERT_OK(parse(&no_operand, ARGS("--seq-len", "-5"), &options, &err));
    CU_ASSERT_STRING_EQUAL(options.value[ND_OPTION_SEQ_LEN], "-5");
}

static void test_help_wins_over_mistakes(void)
{
    nd_error err;
    nd_options options = {0};
    ND_ASSERT_OK(parse(&no_operand, ARGS("--nonsense", "-h"), &options, &err));
    CU_ASSERT_TRUE(nd_options_has(&options, ND_OPTION_HELP));
}

static void test_operands_after_two_dashes_may_look_like_options(void)
{
    nd_error err;
    nd_options options = {0};
    nd_command_syntax syntax = no_operand;
    syntax.operand = "KIND";
    ND_ASSERT_OK(parse(&syntax, ARGS("--json", "--", "--model"), &options, &err));
    CU_ASSERT_STRING_EQUAL(options.operand, "--model");
}

typedef struct refusal_case {
    const char *argv[4];
    const char *message;
} refusal_case;

static void test_refusals_name_the_argument_and_leave_the_output_alone(void)
{
    static const refusal_case cases[] = {
        {{"--sequence-len", "4"}, "unknown option '--sequence-len'"},
        {{"--seqlen=4"}, "did you mean '--seq-len'?"},
        {{"--seq-len"}, "--seq-len needs a value"},
        {{"--seq-len="}, "--seq-len needs a value"},
        {{"--seq-len", "--json"}, "--seq-len needs a value"},
        {{"--json=yes"}, "--json takes no value, got 'yes'"},
        {{"--json", "--json"}, "--json is given twice"},
        {{"stray"}, "unexpected argument 'stray'"},
        {{"--cluster", "h100"}, "--cluster does not belong to `ndplan test`"},
        {{"--html", "x"}, "--html is not available in this version"},
        {{"-x"}, "unknown option '-x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nd_error err = {0};
        nd_options options = {.operand = "untouched"};
        CU_ASSERT_NOT_EQUAL(parse(&no_operand, (char *const *)cases[i].argv, &options, &err), ND_OK);
        ND_ASSERT_CONTAINS(err.message, cases[i].message);
        CU_ASSERT_STRING_EQUAL(options.operand, "untouched");
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_blank_and_equals_give_the_same_value),
        ND_TEST(test_flags_are_empty_texts_and_the_rest_is_absent),
        ND_TEST(test_a_negative_number_is_a_value),
        ND_TEST(test_help_wins_over_mistakes),
        ND_TEST(test_operands_after_two_dashes_may_look_like_options),
        ND_TEST(test_refusals_name_the_argument_and_leave_the_output_alone),
        {NULL, NULL},
    };
    return nd_test_main("options", cases);
}
