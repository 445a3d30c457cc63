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

static void test_a_pipeline_says_what_its_stages_hold(void)
{
    int status = -1;
    int64_t layers = 0;
    nd_error err;
    nd_json_doc *doc = run("estimate --model gemma-2-9b --cluster 1x8xh100 --seq-len 4096 --json --layout "
                           "pp=4,vpp=2,tp=2,grad_accum=16,split=balanced",
                           &status);
    nd_json root = nd_json_root(doc);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_STRING_EQUAL(text(member(root, "layout"), "split"), "balanced");
    CU_ASSERT_EQUAL(nd_json_size(member(root, "stage_layers")), 4);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "stage_bubble_s")), 4);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "chunk_layers")), 8);
    for (size_t i = 0; i < 8; i++) {
        int64_t chunk = 0;
        ND_ASSERT_OK(nd_json_as_int(nd_json_at(member(root, "chunk_layers"), i), "chunk_layers", 1, 42, &chunk, &err));
        layers += chunk;
    }
    CU_ASSERT_EQUAL(layers, 42);
    double closed_s = number(member(member(root, "estimate"), "time"), "step_s");
    double simulated_s = number(root, "simulated_step_s");
    CU_ASSERT_TRUE(simulated_s > 0.7 * closed_s && simulated_s < 1.3 * closed_s);
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

/* Exactly these keys: a program that reads them must not be surprised. */
static void expect_keys(nd_json object, const char *const *keys, size_t count)
{
    CU_ASSERT_EQUAL(nd_json_size(object), count);
    for (size_t i = 0; i < count; i++) {
        nd_json value;
        CU_ASSERT_TRUE(nd_json_find(object, keys[i], &value));
    }
}

static const char *const run_keys[] = {
    "tokens",         "steps",        "steady_s",   "wall_s",          "wall_low_s",
    "wall_high_s",    "goodput_frac", "mtbf_s",     "failures",        "gpu_hours",
    "price",          "usd",          "usd_low",    "usd_high",        "usd_per_million_tokens",
    "tokens_per_usd", "gpu_joule",    "site_joule", "joule_per_token", "checkpoint"};
static const char *const checkpoint_keys[] = {"weights_bytes",       "optimizer_bytes", "rank_bytes",
                                              "storage_bytes_per_s", "copy_s",          "write_s",
                                              "restart_s",           "blocking",        "asynchronous"};
static const char *const save_keys[] = {"blocking_s", "interval_s", "best_interval_s", "goodput_frac"};
enum {
    RUN_KEYS = sizeof run_keys / sizeof run_keys[0],
    CHECKPOINT_KEYS = sizeof checkpoint_keys / sizeof checkpoint_keys[0],
    SAVE_KEYS = sizeof save_keys / sizeof save_keys[0]
};

static void test_a_run_has_its_keys_and_adds_up(void)
{
    int status = -1;
    nd_json_doc *doc = run("estimate --model llama-3.1-8b --cluster p5.48xlarge:2 --layout dp_shard=16 --tokens 1T "
                           "--checkpoint-interval 1h --json",
                           &status);
    CU_ASSERT_EQUAL(status, 0);
    nd_json estimate = member(nd_json_root(doc), "estimate");
    nd_json whole = member(estimate, "run");
    expect_keys(whole, run_keys, RUN_KEYS);
    expect_keys(member(whole, "checkpoint"), checkpoint_keys, CHECKPOINT_KEYS);
    expect_keys(member(member(whole, "checkpoint"), "asynchronous"), save_keys, SAVE_KEYS);
    nd_json blocking = member(member(whole, "checkpoint"), "blocking");
    expect_keys(blocking, save_keys, SAVE_KEYS);
    CU_ASSERT_EQUAL(number(blocking, "interval_s"), 3600.0);
    CU_ASSERT_EQUAL(number(blocking, "goodput_frac"), number(whole, "goodput_frac"));
    nd_json price = member(whole, "price");
    CU_ASSERT_STRING_EQUAL(text(price, "date"), "2026-07-20");
    ND_ASSERT_CONTAINS(text(price, "source"), "https://");
    CU_ASSERT_EQUAL(number(whole, "tokens"), 1e12);
    ND_ASSERT_REL(number(whole, "steady_s"), number(whole, "steps") * number(member(estimate, "time"), "step_s"), 1e-9);
    ND_ASSERT_REL(number(whole, "wall_s") * number(whole, "goodput_frac"), number(whole, "steady_s"), 1e-9);
    ND_ASSERT_REL(number(whole, "gpu_hours"), number(whole, "wall_s") / 3600.0 * 16.0, 1e-9);
    ND_ASSERT_REL(number(whole, "usd"), number(whole, "gpu_hours") * number(price, "usd_per_gpu_hour"), 1e-9);
    ND_ASSERT_REL(number(whole, "gpu_joule"), number(whole, "gpu_hours") * 3600.0 * 700.0, 1e-9);
    nd_json_free(doc);
}

static void test_a_run_that_nobody_asked_for_is_null(void)
{
    int status = -1;
    nd_json_doc *doc = run("suggest --model llama-3.1-8b --cluster 8xh100 --global-batch 16 --json --top 1", &status);
    nd_json estimate = member(nd_json_at(member(nd_json_root(doc), "plans"), 0), "estimate");
    CU_ASSERT_EQUAL(nd_json_typeof(member(estimate, "run")), ND_JSON_NULL);
    nd_json_free(doc);
    doc = run("suggest --model llama-3.1-8b --cluster 8xh100 --global-batch 16 --json --top 1 --price 2", &status);
    estimate = member(nd_json_at(member(nd_json_root(doc), "plans"), 0), "estimate");
    nd_json whole = member(estimate, "run");
    expect_keys(whole, run_keys, RUN_KEYS);
    CU_ASSERT_EQUAL(nd_json_typeof(member(whole, "tokens")), ND_JSON_NULL);
    CU_ASSERT_EQUAL(nd_json_typeof(member(whole, "usd")), ND_JSON_NULL);
    CU_ASSERT_TRUE(number(whole, "usd_per_million_tokens") > 0.0);
    nd_json_free(doc);
}

static void test_plans_of_several_sizes_say_their_gpus(void)
{
    static const char *const goals[] = {"--objective cost --price 2", "--objective gpus", "--pareto"};
    for (size_t g = 0; g < 3; g++) {
        char question[256];
        int status = -1;
        (void)snprintf(question, sizeof question,
                       "suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --json --top 8 %s", goals[g]);
        nd_json_doc *doc = run(question, &status);
        nd_json plans = member(nd_json_root(doc), "plans");
        nd_json sizes = member(nd_json_root(doc), "sizes");
        CU_ASSERT_EQUAL(status, 0);
        CU_ASSERT_TRUE(nd_json_size(plans) > 1);
        CU_ASSERT_TRUE(nd_json_size(sizes) > 1);
        for (size_t i = 0; i < nd_json_size(plans); i++) {
            nd_json plan = nd_json_at(plans, i);
            CU_ASSERT_EQUAL(integer(plan, "gpus"), ranks(member(plan, "layout")));
            expect_sums(member(plan, "estimate"));
        }
        nd_json_free(doc);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_suggested_plans_use_all_ranks_and_the_whole_batch),
        ND_TEST(test_the_same_question_has_the_same_answer),
        ND_TEST(test_a_pinned_layout_is_in_the_list),
        ND_TEST(test_estimate_agrees_with_the_plan_that_suggest_printed),
        ND_TEST(test_a_pipeline_says_what_its_stages_hold),
        ND_TEST(test_why_calls_the_first_plan_first),
        ND_TEST(test_a_change_can_be_typed),
        ND_TEST(test_an_illegal_layout_is_a_document_too),
        ND_TEST(test_nothing_fits_is_a_document_with_reasons),
        ND_TEST(test_every_list_is_a_document_with_items),
        ND_TEST(test_the_layout_of_the_guide_is_in_the_list),
        ND_TEST(test_a_run_has_its_keys_and_adds_up),
        ND_TEST(test_a_run_that_nobody_asked_for_is_null),
        ND_TEST(test_plans_of_several_sizes_say_their_gpus),
        {NULL, NULL},
    };
    return nd_test_main("json_output", cases);
}
