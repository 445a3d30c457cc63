#include "reports/json_report.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "tests/nd_test.h"
#include "tests/reports/capture.h"
#include "tests/reports/fixture.h"

static nd_json_doc *parse(const char *text)
{
    nd_error err;
    nd_json_doc *doc = NULL;
    ND_ASSERT_OK(nd_json_parse(text, strlen(text), "report", &doc, &err));
    return doc;
}

/* All `keys` (ends with NULL) are there, in any order. */
static void expect_keys(nd_json object, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        nd_json value;
        bool found = nd_json_find(object, *keys, &value);
        CU_ASSERT_TRUE(found);
        if (!found) {
            fprintf(stderr, "missing key: %s\n", *keys);
        }
    }
}

static nd_json member(nd_json object, const char *key)
{
    nd_json value = {0};
    CU_ASSERT_TRUE_FATAL(nd_json_find(object, key, &value));
    return value;
}

static void expect_estimate(nd_json estimate)
{
    static const char *const keys[] = {"memory",   "time",     "tokens_per_s",    "tokens_per_s_per_gpu",
                                       "mfu_frac", "hfu_frac", "flops_per_token", "bound_by",
                                       NULL};
    static const char *const memory[] = {
        "weights_bytes",  "grads_bytes", "optimizer_bytes", "activations_bytes", "gather_buffers_bytes", "logits_bytes",
        "overhead_bytes", "peak_bytes",  "peak_low_bytes",  "peak_high_bytes",   "capacity_bytes",       "host_bytes",
        "verdict",        NULL};
    static const char *const time[] = {"step_s",         "step_low_s", "step_high_s", "compute_s", "recompute_s",
                                       "exposed_comm_s", "bubble_s",   "optimizer_s", "other_s",   NULL};
    expect_keys(estimate, keys);
    expect_keys(member(estimate, "memory"), memory);
    expect_keys(member(estimate, "time"), time);
}

static void test_suggest_has_the_promised_keys(void)
{
    static const char *const keys[] = {"schema",   "model",    "cluster",   "assumed", "plans",
                                       "searched", "rejected", "elapsed_s", NULL};
    static const char *const plan_keys[] = {"rank", "layout", "estimate", "notes", NULL};
    static const char *const layout_keys[] = {"pp", "dp_replicate", "dp_shard",   "cp",       "tp",        "ep", "vpp",
                                              "sp", "micro_batch",  "grad_accum", "sharding", "recompute", NULL};
    static const char *const rejected_keys[] = {"reason", "count", "nearest", NULL};
    fixture f;
    fixture_init(&f);
    capture out;
    capture_begin(&out);
    nd_json_plans(out.stream, &f.context, &f.list);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_json root = nd_json_root(doc);
    expect_keys(root, keys);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "plans")), 2);
    nd_json plan = nd_json_at(member(root, "plans"), 0);
    expect_keys(plan, plan_keys);
    expect_keys(member(plan, "layout"), layout_keys);
    expect_estimate(member(plan, "estimate"));
    expect_keys(nd_json_at(member(root, "rejected"), 0), rejected_keys);
    nd_json_free(doc);
    capture_free(&out);
}

static void test_numbers_are_in_base_units(void)
{
    fixture f;
    fixture_init(&f);
    capture out;
    capture_begin(&out);
    nd_json_plans(out.stream, &f.context, &f.list);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_error err;
    double value = 0.0;
    nd_json estimate = member(nd_json_at(member(nd_json_root(doc), "plans"), 0), "estimate");
    ND_ASSERT_OK(nd_json_need_double(member(estimate, "memory"), "peak_bytes", 0.0, 1e15, &value, &err));
    CU_ASSERT_EQUAL(value, 40.0 * ND_GIB);
    ND_ASSERT_OK(nd_json_need_double(member(estimate, "time"), "step_s", 0.0, 1e15, &value, &err));
    CU_ASSERT_EQUAL(value, 1.25);
    nd_json_free(doc);
    capture_free(&out);
}

static void test_figures_that_are_not_finite_leave_the_document_valid(void)
{
    fixture f;
    fixture_init(&f);
    f.plans[0].estimate.time.step_s = (double)NAN;
    f.plans[0].estimate.mfu_frac = (double)INFINITY;
    (void)strcpy(f.model.name, "quote\" and \\ and \xff");
    capture out;
    capture_begin(&out);
    nd_json_plans(out.stream, &f.context, &f.list);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL(doc);
    nd_json_free(doc);
    capture_free(&out);
}

static void test_the_closest_layout_is_given_when_nothing_fits(void)
{
    fixture f;
    fixture_init(&f);
    f.list.count = 0;
    f.list.fitting = 0;
    f.list.has_closest = true;
    f.list.closest = fixture_plan(8, 2.0);
    f.list.closest.estimate.memory.verdict = ND_VERDICT_NO;
    capture out;
    capture_begin(&out);
    nd_json_plans(out.stream, &f.context, &f.list);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_json root = nd_json_root(doc);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "plans")), 0);
    nd_json closest = member(root, "closest");
    CU_ASSERT_EQUAL(nd_json_typeof(closest), ND_JSON_OBJECT);
    CU_ASSERT_EQUAL(nd_json_size(member(closest, "notes")), 1);
    nd_json_free(doc);
    capture_free(&out);
}

static void test_an_illegal_layout_says_so_with_its_rule(void)
{
    fixture f;
    fixture_init(&f);
    nd_refusal refusal = {"tp-divides-heads", "tp=16 does not divide 8 heads", "tp=8"};
    capture out;
    capture_begin(&out);
    nd_json_illegal(out.stream, &f.context, &f.plans[0].layout, &refusal);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_error err;
    bool legal = true;
    const char *text = NULL;
    nd_json root = nd_json_root(doc);
    ND_ASSERT_OK(nd_json_opt_bool(root, "legal", &legal, &err));
    CU_ASSERT_FALSE(legal);
    ND_ASSERT_OK(nd_json_need_string(root, "rule", &text, &err));
    CU_ASSERT_STRING_EQUAL(text, "tp-divides-heads");
    ND_ASSERT_OK(nd_json_need_string(root, "nearest", &text, &err));
    CU_ASSERT_STRING_EQUAL(text, "tp=8");
    nd_json_free(doc);
    capture_free(&out);
}

static void test_estimate_has_every_part(void)
{
    static const char *const keys[] = {"schema", "legal",         "layout",        "estimate",
                                       "batch",  "communication", "checkpointing", NULL};
    fixture f;
    fixture_init(&f);
    nd_estimate_view view = {.layout = f.plans[0].layout, .estimate = f.plans[0].estimate};
    view.comm.count = 1;
    view.comm.lines[0] = (nd_comm_line){.name = "tp all-reduce", .group = {2, 1}, .link = "nvlink"};
    capture out;
    capture_begin(&out);
    nd_json_estimate(out.stream, &f.context, &view);
    nd_json_doc *doc = parse(capture_end(&out));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    nd_json root = nd_json_root(doc);
    expect_keys(root, keys);
    expect_estimate(member(root, "estimate"));
    CU_ASSERT_EQUAL(nd_json_size(member(root, "communication")), 1);
    CU_ASSERT_EQUAL(nd_json_size(member(root, "checkpointing")), ND_CHECKPOINT_ROWS);
    nd_json_free(doc);
    capture_free(&out);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_suggest_has_the_promised_keys),
        ND_TEST(test_numbers_are_in_base_units),
        ND_TEST(test_figures_that_are_not_finite_leave_the_document_valid),
        ND_TEST(test_the_closest_layout_is_given_when_nothing_fits),
        ND_TEST(test_an_illegal_layout_says_so_with_its_rule),
        ND_TEST(test_estimate_has_every_part),
        {NULL, NULL},
    };
    return nd_test_main("json_report", cases);
}
