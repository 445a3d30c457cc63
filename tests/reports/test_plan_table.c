#include "reports/plan_table.h"

#include <string.h>

#include "reports/rejections.h"
#include "reports/terms.h"
#include "tests/nd_test.h"
#include "tests/reports/capture.h"
#include "tests/reports/fixture.h"

static void print(fixture *f, capture *out)
{
    nd_error err;
    capture_begin(out);
    ND_ASSERT_OK(nd_report_plans(out->stream, &f->context, &f->list, ND_OBJECTIVE_THROUGHPUT, &err));
    (void)capture_end(out);
}

static void test_the_first_plan_is_explained_by_the_term_that_differs_most(void)
{
    fixture f;
    fixture_init(&f);
    capture out;
    print(&f, &out);
    /* 0.25 of 1.5 s */
    ND_ASSERT_CONTAINS(out.text, "#1 before #2: its step is 16.7 % (250 ms) shorter");
    ND_ASSERT_CONTAINS(out.text, "parallel: 250 ms against 500 ms");
    capture_free(&out);
}

static void test_equal_steps_are_explained_by_memory(void)
{
    fixture f;
    fixture_init(&f);
    f.plans[1] = f.plans[0];
    f.plans[1].estimate.memory.peak_bytes = 50.0 * ND_GIB;
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "the same step time; it needs 40.0 GiB instead of 50.0 GiB");
    capture_free(&out);
}

static void test_what_all_plans_share_is_said_once(void)
{
    fixture f;
    fixture_init(&f);
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "In every plan: ");
    ND_ASSERT_CONTAINS(out.text, "sharding zero3");
    CU_ASSERT_PTR_NULL(strstr(out.text, "cp_method")); /* there is no cp */
    capture_free(&out);
}

static void test_assumptions_come_before_the_table(void)
{
    fixture f;
    fixture_init(&f);
    capture out;
    print(&f, &out);
    const char *assumed = strstr(out.text, "Assumed    --optimizer adamw: the usual choice");
    const char *table = strstr(out.text, "memory");
    CU_ASSERT_PTR_NOT_NULL(assumed);
    CU_ASSERT_TRUE(assumed != NULL && table != NULL && assumed < table);
    capture_free(&out);
}

static void test_no_line_is_wider_than_80_columns_with_every_axis_in_use(void)
{
    fixture f;
    fixture_init(&f);
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        f.plans[0].layout.size[axis] = 1024;
    }
    f.plans[0].layout.ep = 128;
    f.plans[0].layout.vpp = 4;
    f.plans[0].layout.recompute = ND_RECOMPUTE_SELECTIVE;
    f.plans[0].layout.offload = ND_OFFLOAD_ACTIVATIONS;
    f.plans[0].estimate.memory.verdict = ND_VERDICT_BORDERLINE;
    f.plans[0].estimate.bound_by = "pipeline bubble";
    capture out;
    print(&f, &out);
    for (char *line = strtok(out.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        CU_ASSERT_TRUE(strlen(line) <= 80 || strncmp(line, "  --layout ", 11) == 0); /* which is copied */
    }
    capture_free(&out);
}

static void test_the_first_plan_that_fits_for_sure_is_named(void)
{
    fixture f;
    fixture_init(&f);
    f.plans[0].estimate.memory.verdict = ND_VERDICT_BORDERLINE;
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "fits for sure is #2.");
    ND_ASSERT_CONTAINS(out.text, "#1 borderline: the peak is between 38.0 and 44.0 GiB");
    capture_free(&out);
}

static void test_nothing_fits_names_the_closest_layout_and_what_it_lacks(void)
{
    fixture f;
    fixture_init(&f);
    f.list.count = 0;
    f.list.fitting = 0;
    f.list.has_closest = true;
    f.list.closest = fixture_plan(8, 2.0);
    f.list.closest.estimate.memory.peak_bytes = 100.0 * ND_GIB;
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "Nothing fits on 16 GPUs: the closest, dp_shard=2,tp=8, needs 100 of 80.0 GiB a");
    ND_ASSERT_CONTAINS(out.text, "Closest: ");
    ND_ASSERT_CONTAINS(out.text, "20.0 GiB too much");
    ND_ASSERT_CONTAINS(out.text, "tp-divides-heads");
    capture_free(&out);
}

static void test_no_legal_layout_shows_the_rules(void)
{
    fixture f;
    fixture_init(&f);
    f.list.count = 0;
    f.list.fitting = 0;
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "No layout of 16 GPUs is legal here: tp=16 does not divide 8 heads; nearest:");
    ND_ASSERT_CONTAINS(out.text, "refused by");
    capture_free(&out);
}

static void test_the_rule_that_an_option_lifts_comes_first(void)
{
    fixture f;
    fixture_init(&f);
    f.list.count = 0;
    f.list.fitting = 0;
    f.list.rejections[1] = (nd_rejection){"global-batch", 1, "a batch of 3 divides nowhere", "--global-batch 4"};
    f.list.rejections[2] = (nd_rejection){"other", 1, "another rule", "tp=2"};
    f.list.rejections_count = 3;
    CU_ASSERT_PTR_EQUAL(nd_rejection_telling(&f.list), &f.list.rejections[1]);
    capture out;
    print(&f, &out);
    ND_ASSERT_CONTAINS(out.text, "No layout of 16 GPUs is legal here: a batch of 3 divides nowhere; nearest:");
    const char *batch = strstr(out.text, "1  global-batch");
    const char *heads = strstr(out.text, "7  tp-divides-heads");
    CU_ASSERT_PTR_NOT_NULL_FATAL(batch);
    CU_ASSERT_PTR_NOT_NULL_FATAL(heads);
    CU_ASSERT_TRUE(batch < heads);
    CU_ASSERT_PTR_NULL(strstr(batch + 1, "1  global-batch")); /* once */
    f.list.rejections_count = 0;
    CU_ASSERT_PTR_NULL(nd_rejection_telling(&f.list));
    capture_free(&out);
}

static void test_quiet_prints_the_table_alone(void)
{
    fixture f;
    fixture_init(&f);
    f.context.quiet = true;
    capture out;
    print(&f, &out);
    CU_ASSERT_PTR_NULL(strstr(out.text, "Assumed"));
    CU_ASSERT_PTR_NULL(strstr(out.text, "#1 before"));
    CU_ASSERT_PTR_NULL(strstr(out.text, "Searched"));
    ND_ASSERT_CONTAINS(out.text, "1.25");
    capture_free(&out);
}

static void test_the_terms_of_time_add_up_as_promised(void)
{
    fixture f;
    fixture_init(&f);
    double sum_s = 0.0;
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        sum_s += term->part ? 0.0 : nd_time_term(&f.plans[0].estimate.time, term);
    }
    CU_ASSERT_EQUAL(sum_s, f.plans[0].estimate.time.step_s);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_first_plan_is_explained_by_the_term_that_differs_most),
        ND_TEST(test_equal_steps_are_explained_by_memory),
        ND_TEST(test_what_all_plans_share_is_said_once),
        ND_TEST(test_assumptions_come_before_the_table),
        ND_TEST(test_no_line_is_wider_than_80_columns_with_every_axis_in_use),
        ND_TEST(test_the_first_plan_that_fits_for_sure_is_named),
        ND_TEST(test_nothing_fits_names_the_closest_layout_and_what_it_lacks),
        ND_TEST(test_no_legal_layout_shows_the_rules),
        ND_TEST(test_the_rule_that_an_option_lifts_comes_first),
        ND_TEST(test_quiet_prints_the_table_alone),
        ND_TEST(test_the_terms_of_time_add_up_as_promised),
        {NULL, NULL},
    };
    return nd_test_main("plan_table", cases);
}
