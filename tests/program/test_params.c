#include "program/params.h"

#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"

static int by_name(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static bool names_differ(const nd_param_list *list)
{
    const char **names = calloc((size_t)list->count, sizeof *names);
    CU_ASSERT_PTR_NOT_NULL_FATAL(names);
    for (int32_t i = 0; i < list->count; i++) {
        names[i] = list->params[i].name;
    }
    qsort(names, (size_t)list->count, sizeof *names, by_name);
    bool differ = true;
    for (int32_t i = 1; i < list->count; i++) {
        differ = differ && strcmp(names[i - 1], names[i]) != 0;
    }
    free(names);
    return differ;
}

static int64_t elements(const nd_param_list *list)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < list->count; i++) {
        sum += list->params[i].rows * list->params[i].cols;
    }
    return sum;
}

static void test_elements_add_up_to_the_models_count_and_names_differ(void)
{
    int listed = 0;
    for (size_t i = 0; i < nd_model_builtin_count(); i++) {
        nd_error err = {0};
        nd_model_spec model;
        nd_param_list list;
        ND_ASSERT_OK(nd_model_load(nd_model_builtin_name(i), false, &model, &err));
        nd_status status = nd_param_list_create(&model, &list, &err);
        if (status != ND_OK) {
            CU_ASSERT_EQUAL(status, ND_EUNSUPPORTED);
            ND_ASSERT_CONTAINS(err.message, model.name);
            ND_ASSERT_CONTAINS(err.message, "cannot be executed");
            continue;
        }
        CU_ASSERT_EQUAL(elements(&list), nd_model_params(&model).total);
        CU_ASSERT_TRUE(names_differ(&list));
        nd_param_list_free(&list);
        listed++;
    }
    /* Llama, Qwen, Mistral, Mixtral, Gemma, DeepSeek and GPT-2 families: most of the built-in models */
    CU_ASSERT_TRUE(listed >= (int)nd_model_builtin_count() / 2);
}

static void expect_refused(nd_model_spec model, const char *part)
{
    nd_error err = {0};
    nd_param_list list;
    CU_ASSERT_EQUAL(nd_param_list_create(&model, &list, &err), ND_EUNSUPPORTED);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_parts_without_a_kernel_are_refused_by_name(void)
{
    nd_error err = {0};
    nd_model_spec model;
    ND_ASSERT_OK(nd_model_load("llama-3.1-8b", false, &model, &err));
    nd_model_spec other = model;
    other.attention_sinks = true;
    expect_refused(other, "attention sinks");
    other = model;
    other.expert_bias = true;
    expect_refused(other, "biases of experts");
    other = model;
    other.embed_dim = model.hidden / 2;
    expect_refused(other, "embedding narrower");
    other = model;
    other.norms_per_layer = 1;
    expect_refused(other, "one norm");
    other = model;
    other.qk_norm = ND_QK_NORM_FULL;
    expect_refused(other, "whole queries and keys");
    other = model;
    other.final_norm = false;
    expect_refused(other, "final norm");
}

/* Of a parameter that every tp rank holds whole: where it is used decides who has which part of its gradient. */
static nd_param_partial expected_partial(const nd_param *param)
{
    switch ((int)param->role) {
    case ND_ROLE_Q_NORM:
    case ND_ROLE_K_NORM:
    case ND_ROLE_Q_DOWN:
    case ND_ROLE_Q_DOWN_NORM:
    case ND_ROLE_KV_DOWN:
    case ND_ROLE_KV_DOWN_NORM:
    case ND_ROLE_ROUTER:
    case ND_ROLE_ROUTER_BIAS:
    case ND_ROLE_SHARED_SCALE:
        return ND_PARTIAL_ALWAYS;
    default:
        return param->split == ND_PARAM_WHOLE ? ND_PARTIAL_SP : ND_PARTIAL_NEVER;
    }
}

static bool biases_follow_their_matrix(const nd_param *param)
{
    switch ((int)param->role) {
    case ND_ROLE_Q_BIAS:
    case ND_ROLE_UP_BIAS:
        return param->split == ND_PARAM_ROWS;
    case ND_ROLE_K_BIAS:
    case ND_ROLE_V_BIAS:
        return param->split == ND_PARAM_KV_HEADS;
    case ND_ROLE_O_BIAS:
    case ND_ROLE_DOWN_BIAS:
        return param->split == ND_PARAM_WHOLE;
    default:
        return true;
    }
}

static void test_partial_gradients_and_splits_follow_where_a_parameter_is_used(void)
{
    static const char *const names[] = {"llama-3.1-8b", "qwen3-8b",   "qwen2.5-7b", "mixtral-8x7b",
                                        "deepseek-v3",  "gemma-2-9b", "gpt2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        nd_error err = {0};
        nd_model_spec model;
        nd_param_list list;
        ND_ASSERT_OK(nd_model_load(names[i], false, &model, &err));
        nd_status status = nd_param_list_create(&model, &list, &err);
        CU_ASSERT_EQUAL_FATAL(status, ND_OK);
        for (int32_t p = 0; p < list.count; p++) {
            const nd_param *param = &list.params[p];
            CU_ASSERT_EQUAL(param->partial, expected_partial(param));
            CU_ASSERT_TRUE(biases_follow_their_matrix(param));
            CU_ASSERT_EQUAL(param->decay, param->rows > 1 || param->role == ND_ROLE_SHARED_SCALE);
            CU_ASSERT_EQUAL(param->decay, param->init == ND_INIT_NORMAL);
        }
        nd_param_list_free(&list);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_elements_add_up_to_the_models_count_and_names_differ),
        ND_TEST(test_parts_without_a_kernel_are_refused_by_name),
        ND_TEST(test_partial_gradients_and_splits_follow_where_a_parameter_is_used),
        {NULL, NULL},
    };
    return nd_test_main("program/params", cases);
}
