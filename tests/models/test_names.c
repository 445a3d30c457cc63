/* What `--model` accepts: built-in names in every spelling, files, directories. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "tests/models/model_fixture.h"

static void assert_resolves(const char *given, const char *builtin)
{
    nd_model_spec spec = load_or_fail(given);
    CU_ASSERT_STRING_EQUAL(spec.name, builtin);
}

static void spellings_of_one_name_resolve_alike(void)
{
    assert_resolves("llama-3.1-8b", "llama-3.1-8b");
    assert_resolves("meta-llama/Llama-3.1-8B", "llama-3.1-8b");
    assert_resolves("Llama 3.1 8B", "llama-3.1-8b");
    assert_resolves("LLAMA_3_1_8B", "llama-3.1-8b");
    assert_resolves("EleutherAI/gpt-neox-20b", "gpt-neox-20b");
    assert_resolves("GPT3-175B", "gpt3-175b");
}

static void names_that_differ_by_a_dot_stay_apart(void)
{
    assert_resolves("opt-1.3b", "opt-1.3b");
    assert_resolves("facebook/opt-13b", "opt-13b");
}

static void words_that_say_nothing_of_the_shape_are_dropped_and_noted(void)
{
    assert_resolves("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b");
    assert_resolves("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b");
    assert_resolves("google/gemma-2-9b-it", "gemma-2-9b");
    assert_resolves("Qwen/Qwen3-8B-Base", "qwen3-8b");
    assert_resolves("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3");
    assert_resolves("mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2");
    assert_resolves("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b");
    assert_resolves("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout");
    assert_resolves("allenai/OLMo-2-1124-13B-Instruct", "olmo-2-13b");
    nd_model_spec spec = load_or_fail("Llama-3.1-8B-Instruct");
    CU_ASSERT_STRING_EQUAL(spec.note, "'instruct' in the name ignored: same shapes as llama-3.1-8b");
    CU_ASSERT_STRING_EQUAL(load_or_fail("llama-3.1-8b").note, "");
}

static void unknown_names_suggest_the_nearest(void)
{
    nd_model_spec spec;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_model_load("lama-3.1-8b", false, &spec, &err), ND_ENOTFOUND);
    CU_ASSERT_STRING_EQUAL(err.message, "no model is called 'lama-3.1-8b'; did you mean 'llama-3.1-8b'; see `ndplan "
                                        "list models`, or give the path of a config.json");
    CU_ASSERT_EQUAL(nd_model_load("xyzzyplugh", false, &spec, &err), ND_ENOTFOUND);
    CU_ASSERT_STRING_EQUAL(err.message, "no model is called 'xyzzyplugh'; see `ndplan list models`, or give the path "
                                        "of a config.json");
    CU_ASSERT_EQUAL(nd_model_load("instruct", false, &spec, &err), ND_ENOTFOUND);
    CU_ASSERT_EQUAL(nd_model_load("", false, &spec, &err), ND_EINVAL);
    char huge[5000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    CU_ASSERT_EQUAL(nd_model_load(huge, false, &spec, &err), ND_ENOTFOUND);
}

static void builtin_names_are_unique_sorted_and_load_by_themselves(void)
{
    char previous[ND_MODEL_NAME_MAX] = "";
    for (size_t i = 0; i < nd_model_builtin_count(); i++) {
        const char *name = nd_model_builtin_name(i);
        CU_ASSERT_STRING_NOT_EQUAL(name, previous);
        assert_resolves(name, name);
        (void)snprintf(previous, sizeof previous, "%s", name);
    }
}

/* A directory of the test's own, gone at the end. */
typedef struct scratch {
    char directory[64];
    char file[128];
} scratch;

static scratch make_scratch(const char *file, const char *text)
{
    scratch s = {.directory = "/tmp/nd_models_XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(s.directory));
    s.file[0] = '\0';
    if (file != NULL) {
        (void)snprintf(s.file, sizeof s.file, "%s/%s", s.directory, file);
        FILE *out = fopen(s.file, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        CU_ASSERT_TRUE(fputs(text, out) >= 0);
        CU_ASSERT_EQUAL(fclose(out), 0);
    }
    return s;
}

static void remove_scratch(const scratch *s)
{
    if (s->file[0] != '\0') {
        CU_ASSERT_EQUAL(unlink(s->file), 0);
    }
    CU_ASSERT_EQUAL(rmdir(s->directory), 0);
}

static void files_and_directories_load(void)
{
    scratch s = make_scratch("config.json", TINY("llama", ""));
    CU_ASSERT_EQUAL(load_or_fail(s.directory).hidden, 64);
    CU_ASSERT_EQUAL(load_or_fail(s.file).hidden, 64);
    CU_ASSERT_STRING_EQUAL(load_or_fail(s.file).name, s.file);
    remove_scratch(&s);
}

static void assert_directory_error(const char *file, const char *part)
{
    scratch s = make_scratch(file, "{}");
    nd_model_spec spec;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_model_load(s.directory, false, &spec, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, s.directory);
    ND_ASSERT_CONTAINS(err.message, part);
    remove_scratch(&s);
}

static void a_directory_without_config_says_what_it_holds(void)
{
    assert_directory_error(NULL, "has no config.json; give the directory of a model or a config.json");
    assert_directory_error("adapter_config.json", "it holds a LoRA adapter; give its base model");
    assert_directory_error("model_index.json", "it holds a diffusers pipeline");
}

static void errors_in_a_file_name_file_line_and_column(void)
{
    scratch s = make_scratch("config.json", "{\"model_type\": \"llama\",\n \"hidden_size\": \"big\"}");
    nd_model_spec spec;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_model_load(s.directory, false, &spec, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "/config.json:2:17: 'hidden_size' must be a whole number from 1 to 1000000");
    remove_scratch(&s);
}

static void a_missing_file_is_no_mistyped_name(void)
{
    nd_model_spec spec;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_model_load("./nowhere/config.json", false, &spec, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "./nowhere/config.json");
    CU_ASSERT_EQUAL(nd_model_load("/dev/null", false, &spec, &err), ND_EIO);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(spellings_of_one_name_resolve_alike),
        ND_TEST(names_that_differ_by_a_dot_stay_apart),
        ND_TEST(words_that_say_nothing_of_the_shape_are_dropped_and_noted),
        ND_TEST(unknown_names_suggest_the_nearest),
        ND_TEST(builtin_names_are_unique_sorted_and_load_by_themselves),
        ND_TEST(files_and_directories_load),
        ND_TEST(a_directory_without_config_says_what_it_holds),
        ND_TEST(errors_in_a_file_name_file_line_and_column),
        ND_TEST(a_missing_file_is_no_mistyped_name),
        {NULL, NULL},
    };
    return nd_test_main("models.names", cases);
}
