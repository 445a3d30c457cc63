/** What the tests of models/ share. */
#ifndef ND_TESTS_MODELS_MODEL_FIXTURE_H
#define ND_TESTS_MODELS_MODEL_FIXTURE_H

#include <string.h>

#include "models/model_spec.h"
#include "tests/nd_test.h"

/* A Llama of 4 layers, to which `extra` keys can be added; `type` is the model_type. */
#define TINY(type, extra)                                                                                              \
    "{\"model_type\":\"" type "\",\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":8,"               \
    "\"intermediate_size\":128,\"vocab_size\":1000" extra "}"

static inline nd_model_spec parse_or_fail(const char *text)
{
    nd_model_spec spec;
    nd_error err = {0};
    memset(&spec, 0, sizeof spec);
    ND_ASSERT_OK(nd_model_parse(text, strlen(text), "test.json", false, &spec, &err));
    return spec;
}

static inline nd_model_spec load_or_fail(const char *name)
{
    nd_model_spec spec;
    nd_error err = {0};
    memset(&spec, 0, sizeof spec);
    ND_ASSERT_OK(nd_model_load(name, false, &spec, &err));
    return spec;
}

#endif
