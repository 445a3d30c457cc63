/* From a table of runs to constants: sources left out one by one, the form's error, and tables that say nothing. */
#include "cost_model/calibrate.h"

#include <math.h>
#include <string.h>

#include "tests/cost_model/synthetic_runs.h"

static nd_calibration_result calibrate(const synthetic_table *t, int rows, bool skip_left_out)
{
    static nd_calibration_result result;
    nd_error err = {.message = ""};
    nd_csv *csv = synthetic_csv(t, rows);
    const nd_calibrate_request request = {.csv = csv, .skip_left_out = skip_left_out};
    ND_ASSERT_OK(nd_calibrate_from_runs(&request, &result, &err));
    CU_ASSERT_STRING_EQUAL(result.fitted.fingerprint, nd_csv_fingerprint(csv));
    CU_ASSERT_EQUAL(result.fitted.runs, rows);
    CU_ASSERT_EQUAL_FATAL(result.residuals_count, rows);
    nd_csv_free(csv);
    return result;
}

static void test_each_source_is_predicted_by_a_fit_that_did_not_see_it(void)
{
    const synthetic_table t = synthetic_runs(0.02);
    nd_calibration_result result = calibrate(&t, ROWS, false);
    bool differs = false; /* from the errors of the fit to all */
    CU_ASSERT_EQUAL(result.sources, 3);
    for (int s = 0; s < 3; s++) {
        static nd_run_set set;
        static nd_run_fit without;
        nd_error err = {.message = ""};
        synthetic_load(&t, ROWS, &set);
        ND_ASSERT_OK(nd_fit_runs(&set, &(nd_fit_selection){.without_source = sources[s]}, &without, &err));
        for (int i = 0; i < ROWS; i++) {
            const nd_fitted_residual *residual = &result.residuals[i];
            CU_ASSERT_STRING_EQUAL(residual->id, set.entries[i].run.id);
            if (i % 3 == s) {
                double error = log(nd_run_set_step_s(&set, i) / t.step_s[i]);
                CU_ASSERT_DOUBLE_EQUAL(residual->left_out_log_error, error, 2e-3);
                differs = differs || fabs(residual->left_out_log_error - residual->log_error) > 4e-3;
            }
        }
        nd_run_set_free(&set);
    }
    CU_ASSERT_TRUE(differs);
    nd_calibration_result_free(&result);
    CU_ASSERT_PTR_NULL(result.residuals);
}

static void test_fewer_than_three_sources_say_nothing_of_the_models_form(void)
{
    const synthetic_table t = synthetic_runs(0.02);
    nd_calibration_result two = calibrate(&t, 2, false);
    nd_calibration_result skipped = calibrate(&t, ROWS, true);
    const nd_calibration_result *const results[] = {&two, &skipped};
    for (int r = 0; r < 2; r++) {
        CU_ASSERT_EQUAL(results[r]->sources, 0);
        CU_ASSERT_EQUAL(results[r]->fitted.form_log_sd, 0.0);
        CU_ASSERT_EQUAL(results[r]->fitted.hard_form_log_sd, 0.0);
        for (int64_t i = 0; i < results[r]->residuals_count; i++) {
            CU_ASSERT_TRUE(isnan(results[r]->residuals[i].left_out_log_error));
        }
    }
    nd_calibration_result_free(&two);
    nd_calibration_result_free(&skipped);
}

static void test_the_form_error_follows_how_far_left_out_sources_are_off(void)
{
    synthetic_table t = synthetic_runs(0.02);
    nd_calibration_result good = calibrate(&t, ROWS, false);
    ND_ASSERT_REL(good.fitted.form_log_sd, nd_run_scatter_log_sd(false), 1e-9); /* never less, however good */
    CU_ASSERT_EQUAL(good.fitted.hard_form_log_sd, 0.0);                         /* no such run */
    for (int i = 2; i < ROWS; i += 3) {
        t.step_s[i] *= 1.4; /* a source that measures something else */
    }
    nd_calibration_result bad = calibrate(&t, ROWS, false);
    /* 80 % of three sources: all of them must be covered, log(1.4) = 0.34 at 1.28 standard deviations and less */
    CU_ASSERT_TRUE(bad.fitted.form_log_sd > 0.1 && bad.fitted.form_log_sd < 0.35);
    nd_calibration_result_free(&good);
    nd_calibration_result_free(&bad);
}

static void test_priors_may_be_those_of_an_earlier_fit(void)
{
    static nd_calibration_result second;
    nd_error err = {.message = ""};
    const synthetic_table t = synthetic_runs(0.02);
    nd_calibration_result first = calibrate(&t, ROWS, true);
    nd_csv *csv = synthetic_csv(&t, ROWS);
    const nd_calibrate_request request = {.csv = csv, .skip_left_out = true, .start = &first.fitted};
    ND_ASSERT_OK(nd_calibrate_from_runs(&request, &second, &err));
    int32_t i = synthetic_find(first.fitted.constants, first.fitted.constants_count, false, "h100", "gemm_frac");
    CU_ASSERT_TRUE_FATAL(i >= 0);
    CU_ASSERT_EQUAL(second.fitted.constants[i].prior, first.fitted.value[i]);
    /* nearer to the truth than the first, whose prior drew it back */
    double truth = first.fitted.constants[i].prior * h100_gemm;
    CU_ASSERT_TRUE(fabs(log(second.fitted.value[i] / truth)) < fabs(log(first.fitted.value[i] / truth)) + 0.01);
    nd_calibration_result_free(&first);
    nd_calibration_result_free(&second);
    nd_csv_free(csv);
}

static void test_a_calibration_without_runs_says_what_the_table_has(void)
{
    static const struct {
        const char *gpu, *stack, *words;
        bool only_c;
    } requests[] = {
        {"v100", NULL, "none of the 36 usable runs is of GPU v100; run AA-0, for example, is of GPU h100", false},
        {NULL, "nemo", "none of the 36 usable runs is of stack nemo; run AA-0", false},
        {"a100", "nemo", "is of GPU a100 and stack nemo; run AA-0", false},
        {NULL, NULL, "none of the 36 has a measured step, a grade other than C and no FLAG", true},
    };
    for (size_t r = 0; r < sizeof requests / sizeof requests[0]; r++) {
        nd_error err = {.message = ""};
        nd_calibration_result result = {.residuals_count = 42};
        synthetic_table t = synthetic_runs(0.0);
        memset(t.grade, requests[r].only_c ? 'C' : 'A', sizeof t.grade);
        nd_csv *csv = synthetic_csv(&t, ROWS);
        const nd_calibrate_request request = {.csv = csv, .gpu = requests[r].gpu, .stack = requests[r].stack};
        CU_ASSERT_EQUAL(nd_calibrate_from_runs(&request, &result, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, requests[r].words);
        CU_ASSERT_EQUAL(result.residuals_count, 42);
        nd_csv_free(csv);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_each_source_is_predicted_by_a_fit_that_did_not_see_it),
        ND_TEST(test_fewer_than_three_sources_say_nothing_of_the_models_form),
        ND_TEST(test_the_form_error_follows_how_far_left_out_sources_are_off),
        ND_TEST(test_priors_may_be_those_of_an_earlier_fit),
        ND_TEST(test_a_calibration_without_runs_says_what_the_table_has),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/calibrate", cases);
}
