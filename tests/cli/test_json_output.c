/* What programs parse: the JSON of the real binary, read back with our own parser. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/json.h"
#include "tests/nd_test.h"

enum { OUTPUT_MAX = 8 << 20 };

/* Run `ndplan arguments`; the document of its stdout and its exit status. */
static nd_json_doc *run(const char *arguments, int *exit_status)
{
    char command[2048];
    (void)snprintf(command, sizeof command, "'%s' %s", ND_TEST_NDPLAN, arguments);
    char *text = malloc(OUTPUT_MAX);
    FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c): the program under test
    if (text == NULL || pipe == NULL) {
        abort();
    }
    size_t length = fread(text, 1, OUTPUT_MAX, pipe);
    int status = pclose(pipe);
    *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    nd_error err;
    nd_json_doc *doc = NULL;
    ND_ASSERT_OK(nd_json_parse(text, length, arguments, &doc, &err));
    free(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    return doc;
}

static nd_json member(nd_json object, const char *key)
{
    nd_json value = {0};
    CU_ASSERT_TRUE_FATAL(nd_json_find(object, key, &value));
    return value;
}

static int64_t integer(nd_json object, const char *key)
{
    nd_error err;
    int64_t value = -1;
    ND_ASSERT_OK(nd_json_need_int(object, key, 0, INT64_MAX, &value, &err));
    return value;
}

static double number(nd_json object, const char *key)
{
    nd_error err;
    double value = -1.0;
    ND_ASSERT_OK(nd_json_need_double(object, key, -1e30, 1e30, &value, &err));
    return value;
}

static const char *text(nd_json object, const char *key)
{
    nd_error err;
    const char *value = "";
    ND_ASSERT_OK(nd_json_need_string(object, key, &value, &err));
    return value;
}

static int64_t data_ranks(nd_json layout)
{
    return integer(layout, "dp_replicate") * integer(layout, "dp_shard");
}

static int64_t ranks(nd_json layout)
{
    return data_ranks(layout) * integer(layout, "pp") * integer(layout, "cp") * integer(layout, "tp");
}

static void expect_sums(nd_json estimate)
{
    static const char *const memory_terms[] = {"weights_bytes",     "grads_bytes",          "optimizer_bytes",
                                               "activations_bytes", "gather_buffers_bytes", "logits_bytes",
                                               "overhead_bytes"};
    static const char *const time_terms[] = {"compute_s", "recompute_s", "exposed_comm_s",
                                             "bubble_s",  "optimizer_s", "other_s"};
    nd_json memory = member(estimate, "memory");
    nd_json time = member(estimate, "time");
    double bytes = 0.0;
    double seconds = 0.0;
    for (size_t i = 0; i < sizeof memory_terms / sizeof memory_terms[0]; i++) {
        bytes += number(memory, memory_terms[i]);
    }
    for (size_t i = 0; i < sizeof time_terms / sizeof time_terms[0]; i++) {
        seconds += number(time, time_terms[i]);
    }
    /* sums of at most seven doubles */
    ND_ASSERT_REL(bytes, number(memory, "peak_bytes"), 1e-12);
    ND_ASSERT_REL(seconds, number(time, "step_s"), 1e-12);
}

static void test_suggested_plans_use_all_ranks_and_the_whole_batch(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model '" ND_TEST_DATA "/llama-8b/config.json' --cluster 2x8xh100 --seq-len 8192 "
                           "--global-batch 64 --json",
                           &status);
    nd_json root = nd_json_root(doc);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_STRING_EQUAL(text(root, "schema"), "ndplan/suggest/1");
    CU_ASSERT_EQUAL(integer(member(root, "model"), "params_count"), INT64_C(8030261248));
    CU_ASSERT_EQUAL(integer(member(root, "cluster"), "gpus"), 16);
    nd_json plans = member(root, "plans");
    CU_ASSERT_EQUAL(nd_json_size(plans), 100);
    double last_s = 0.0;
    bool doubtful = false; /* plans whose expected peak is above the memory come last */
    for (size_t i = 0; i < nd_json_size(plans); i++) {
        nd_json plan = nd_json_at(plans, i);
        nd_json layout = member(plan, "layout");
        CU_ASSERT_EQUAL(integer(plan, "rank"), (int64_t)i + 1);
        CU_ASSERT_EQUAL(ranks(layout), 16);
        CU_ASSERT_EQUAL(integer(layout, "micro_batch") * integer(layout, "grad_accum") * data_ranks(layout), 64);
        nd_json estimate = member(plan, "estimate");
        CU_ASSERT_STRING_NOT_EQUAL(text(member(estimate, "memory"), "verdict"), "no");
        double step_s = number(member(estimate, "time"), "step_s");
        bool doubt =
            number(member(estimate, "memory"), "peak_bytes") > number(member(estimate, "memory"), "capacity_bytes");
        CU_ASSERT_TRUE(doubt == doubtful ? step_s >= last_s : doubt);
        doubtful = doubt;
        last_s = step_s;
        ND_ASSERT_REL(number(estimate, "tokens_per_s"), 64.0 * 8192.0 / step_s, 1e-9);
        expect_sums(estimate);
    }
    nd_json_free(doc);
}

static void test_the_same_question_has_the_same_answer(void)
{
    static const char question[] = "suggest --model llama-3.1-8b --cluster 8xa100 --global-batch 16 --json --top 3";
    int status = -1;
    nd_json_doc *docs[2] = {run(question, &status), run(question, &status)};
    for (size_t i = 0; i < 3; i++) {
        const char *layouts[2];
        for (int k = 0; k < 2; k++) {
            layouts[k] = text(member(nd_json_at(member(nd_json_root(docs[k]), "plans"), i), "layout"), "text");
        }
        CU_ASSERT_STRING_EQUAL(layouts[0], layouts[1]);
    }
    nd_json_free(docs[0]);
    nd_json_free(docs[1]);
}

static void test_a_pinned_layout_is_in_the_list(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --json "
                           "--pin dp_replicate=2,dp_shard=2,cp=2,tp=2,pp=1",
                           &status);
    nd_json plans = member(nd_json_root(doc), "plans");
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_TRUE_FATAL(nd_json_size(plans) > 0);
    nd_json layout = member(nd_json_at(plans, 0), "layout");
    CU_ASSERT_EQUAL(integer(layout, "dp_replicate"), 2);
    CU_ASSERT_EQUAL(integer(layout, "dp_shard"), 2);
    CU_ASSERT_EQUAL(integer(layout, "cp"), 2);
    CU_ASSERT_EQUAL(integer(layout, "tp"), 2);
    nd_json_free(doc);
}

static void test_estimate_agrees_with_the_plan_that_suggest_printed(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 4096 --global-batch 32 --json "
                           "--top 1",
                           &status);
    nd_json plan = nd_json_at(member(nd_json_root(doc), "plans"), 0);
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 4096 --json --layout '%s'",
                   text(member(plan, "layout"), "text"));
    nd_json_doc *again = run(command, &status);
    CU_ASSERT_EQUAL(status, 0);
    nd_json root = nd_json_root(again);
    CU_ASSERT_EQUAL(number(member(member(plan, "estimate"), "time"), "step_s"),
                    number(member(member(root, "estimate"), "time"), "step_s"));
    CU_ASSERT_EQUAL(number(member(member(plan, "estimate"), "memory"), "peak_bytes"),
                    number(member(member(root, "estimate"), "memory"), "peak_bytes"));
    CU_ASSERT_EQUAL(integer(member(root, "batch"), "effective_batch_seqs"), 32);
    nd_json_free(again);
    nd_json_free(doc);
}

static void test_why_calls_the_first_plan_first(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 4096 --global-batch 32 --json "
                           "--top 1",
                           &status);
    nd_json plan = nd_json_at(member(nd_json_root(doc), "plans"), 0);
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 4096 --json --layout '%s'",
                   text(member(plan, "layout"), "text"));
    nd_json_doc *why = run(command, &status);
    nd_json root = nd_json_root(why);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_STRING_EQUAL(text(root, "schema"), "ndplan/why/1");
    CU_ASSERT_STRING_NOT_EQUAL(text(root, "answer"), "not_first");
    CU_ASSERT_EQUAL(integer(member(root, "place"), "rank"), 1);
    nd_json terms = member(member(root, "comparison"), "terms");
    double lost_s = 0.0;
    for (size_t i = 0; i < nd_json_size(terms); i++) {
        lost_s += number(nd_json_at(terms, i), "lost_s");
    }
    double step_s = number(member(root, "comparison"), "slower_step_s");
    double gap_s = number(member(root, "comparison"), "lost_s");
    CU_ASSERT_TRUE(lost_s - gap_s < 1e-9 * step_s && gap_s - lost_s < 1e-9 * step_s); /* sums of doubles */
    nd_json_free(why);
    nd_json_free(doc);
}

/* What why tells people to type does what it says. */
static void test_a_change_can_be_typed(void)
{
    int status = -1;
    nd_json_doc *doc = run("why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --json --layout "
                           "dp_shard=16,micro_batch=4",
                           &status);
    nd_json root = nd_json_root(doc);
    CU_ASSERT_EQUAL(status, 1);
    CU_ASSERT_STRING_EQUAL(text(root, "answer"), "unfit");
    nd_json changes = member(root, "changes");
    size_t typed = 0;
    for (size_t i = 0; i < nd_json_size(changes); i++) {
        nd_json change = nd_json_at(changes, i);
        char words[512];
        (void)snprintf(words, sizeof words, "%s", text(change, "change"));
        const char *options = strstr(words, "--");
        if (strncmp(text(change, "kind"), "loss", 4) == 0) {
            continue; /* a kernel, not an option */
        }
        bool cluster = options != NULL && strstr(options, "--cluster") != NULL;
        bool sequence = options != NULL && strstr(options, "--seq-len") != NULL;
        char command[1024];
        (void)snprintf(command, sizeof command, "estimate --model llama-3.1-8b %s %s %s --json --layout '%s'",
                       cluster ? "" : "--cluster 2x8xh100", sequence ? "" : "--seq-len 8192",
                       options != NULL ? options : "", text(member(change, "layout"), "text"));
        nd_json_doc *estimate = run(command, &status);
        nd_json memory = member(member(nd_json_root(estimate), "estimate"), "memory");
        CU_ASSERT_EQUAL(number(memory, "peak_bytes"), number(change, "peak_bytes"));
        nd_json_free(estimate);
        typed++;
    }
    CU_ASSERT_TRUE(typed > 8);
    nd_json_free(doc);
}

static void test_an_illegal_layout_is_a_document_too(void)
{
    int status = -1;
    nd_json_doc *doc = run("estimate --model llama-3.1-8b --cluster 8x8xh100 --json --layout tp=64", &status);
    nd_json root = nd_json_root(doc);
    bool legal = true;
    nd_error err;
    CU_ASSERT_EQUAL(status, 1);
    ND_ASSERT_OK(nd_json_opt_bool(root, "legal", &legal, &err));
    CU_ASSERT_FALSE(legal);
    CU_ASSERT_TRUE(strlen(text(root, "message")) > 0);
    nd_json_free(doc);
}

static void test_nothing_fits_is_a_document_with_reasons(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model llama-3.1-70b --cluster 1xh100 --json", &status);
    nd_json root = nd_json_root(doc);
    CU_ASSERT_EQUAL(status, 1);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "plans")), 0);
    CU_ASSERT_TRUE(nd_json_size(member(root, "rejected")) > 0);
    CU_ASSERT_EQUAL(nd_json_typeof(member(root, "closest")), ND_JSON_OBJECT);
    nd_json_free(doc);
}

static void test_every_list_is_a_document_with_items(void)
{
    static const char *const kinds[] = {"models", "gpus", "clusters", "frameworks", "stacks"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char command[64];
        int status = -1;
        (void)snprintf(command, sizeof command, "list %s --json", kinds[i]);
        nd_json_doc *doc = run(command, &status);
        nd_json root = nd_json_root(doc);
        CU_ASSERT_EQUAL(status, 0);
        CU_ASSERT_STRING_EQUAL(text(root, "schema"), "ndplan/list/1");
        CU_ASSERT_STRING_EQUAL(text(root, "kind"), kinds[i]);
        CU_ASSERT_TRUE(nd_json_size(member(root, "items")) > 3);
        CU_ASSERT_TRUE(strlen(text(nd_json_at(member(root, "items"), 0), "name")) > 0);
        nd_json_free(doc);
    }
}

/* The guide's ND-parallel example must be among the plans of a plain question. */
static void test_the_layout_of_the_guide_is_in_the_list(void)
{
    int status;
    bool found = false;
    nd_json_doc *doc =
        run("suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --json", &status);
    nd_json plans = member(nd_json_root(doc), "plans");
    CU_ASSERT_EQUAL(status, 0);
    for (size_t i = 0; i < nd_json_size(plans); i++) {
        nd_json layout = member(nd_json_at(plans, i), "layout");
        found |= integer(layout, "dp_replicate") == 2 && integer(layout, "dp_shard") == 2 &&
                 integer(layout, "cp") == 2 && integer(layout, "tp") == 2;
    }
    CU_ASSERT_TRUE(found);
    nd_json_free(doc);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_suggested_plans_use_all_ranks_and_the_whole_batch),
        ND_TEST(test_the_same_question_has_the_same_answer),
        ND_TEST(test_a_pinned_layout_is_in_the_list),
        ND_TEST(test_estimate_agrees_with_the_plan_that_suggest_printed),
        ND_TEST(test_why_calls_the_first_plan_first),
        ND_TEST(test_a_change_can_be_typed),
        ND_TEST(test_an_illegal_layout_is_a_document_too),
        ND_TEST(test_nothing_fits_is_a_document_with_reasons),
        ND_TEST(test_every_list_is_a_document_with_items),
        ND_TEST(test_the_layout_of_the_guide_is_in_the_list),
        {NULL, NULL},
    };
    return nd_test_main("json_output", cases);
}
