/* Fits to synthetic runs: steps that the model itself predicts with other constants, so that the answer is known. */
#include "cost_model/fit_runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/cost_model/synthetic_runs.h"

/* The constant is `factor` times its prior, within two standard errors. */
static void check_recovered(const nd_run_fit *fit, bool of_stack, const char *owner, const char *key, double factor)
{
    int32_t i = synthetic_find(fit->constants, fit->constants_count, of_stack, owner, key);
    CU_ASSERT_TRUE_FATAL(i >= 0);
    double error = log(fit->result.value[i] / (fit->constants[i].prior * factor));
    CU_ASSERT_TRUE(fit->result.identified[i]);
    CU_ASSERT_TRUE(fit->result.log_sd[i] < fit->constants[i].prior_log_sd);
    if (fabs(error) > 2.0 * fit->result.log_sd[i]) {
        printf("%s %s: %g times its prior, not %g, standard error %g\n", owner, key,
               fit->result.value[i] / fit->constants[i].prior, factor, fit->result.log_sd[i]);
        CU_FAIL("off by more than two standard errors");
    }
}

static void test_altered_constants_are_found_again(void)
{
    static const double scatters[] = {0.0, 0.02};
    for (size_t s = 0; s < sizeof scatters / sizeof scatters[0]; s++) {
        static nd_run_set set;
        static nd_run_fit fit;
        nd_error err = {.message = ""};
        const nd_fit_selection selection = {0};
        const synthetic_table t = synthetic_runs(scatters[s]);
        double before = 0.0;
        double after = 0.0;
        synthetic_load(&t, ROWS, &set);
        for (int i = 0; i < ROWS; i++) {
            before += fabs(log(nd_run_set_step_s(&set, i) / t.step_s[i])) / ROWS;
        }
        ND_ASSERT_OK(nd_fit_runs(&set, &selection, &fit, &err));
        CU_ASSERT_EQUAL(fit.rows, ROWS);
        check_recovered(&fit, false, "h100", "gemm_frac", h100_gemm);
        check_recovered(&fit, false, "a100", "gemm_frac", a100_gemm);
        check_recovered(&fit, true, "torch-fsdp2", "launch_s", fsdp_launch);
        check_recovered(&fit, true, "megatron", "gemm_frac", 1.0);
        for (int i = 0; i < ROWS; i++) { /* the set is left at the fitted values */
            after += fabs(log(nd_run_set_step_s(&set, i) / t.step_s[i])) / ROWS;
        }
        CU_ASSERT_TRUE(after < before / 3.0);
        CU_ASSERT_TRUE(after < 0.01 + scatters[s]);
        nd_run_set_free(&set);
    }
}

static void test_constants_that_the_runs_do_not_use_keep_their_priors(void)
{
    static const char *const unused[] = {"flash1_frac", "fp8_frac", "grouped_frac", "network_frac"};
    static nd_run_set set;
    static nd_run_fit fit;
    nd_error err = {.message = ""};
    const nd_fit_selection selection = {0};
    const synthetic_table t = synthetic_runs(0.02);
    synthetic_load(&t, ROWS, &set);
    ND_ASSERT_OK(nd_fit_runs(&set, &selection, &fit, &err));
    for (size_t k = 0; k < sizeof unused / sizeof unused[0]; k++) {
        int32_t i = synthetic_find(fit.constants, fit.constants_count, false, "h100", unused[k]);
        CU_ASSERT_TRUE_FATAL(i >= 0);
        CU_ASSERT_FALSE(fit.result.identified[i]);
        CU_ASSERT_EQUAL(fit.result.value[i], fit.constants[i].prior);
        CU_ASSERT_EQUAL(fit.result.log_sd[i], fit.constants[i].prior_log_sd);
    }
    for (int32_t i = 0; i < fit.constants_count; i++) {
        const nd_run_constant *c = &fit.constants[i];
        CU_ASSERT_TRUE(fit.result.value[i] >= c->min && fit.result.value[i] <= c->max);
        CU_ASSERT_TRUE(c->of_stack ? strcmp(c->owner, "torch-fsdp2") == 0 || strcmp(c->owner, "megatron") == 0
                                   : strcmp(c->owner, "h100") == 0 || strcmp(c->owner, "a100") == 0);
    }
    nd_run_set_free(&set);
}

/* Rows that a selection leaves, which owners its fit has, and that other owners stay as they were. */
static void check_selection(nd_fit_selection selection, int64_t rows, bool h100, bool a100, bool fsdp, bool megatron)
{
    static nd_run_set set;
    static nd_run_fit fit;
    nd_error err = {.message = ""};
    const synthetic_table t = synthetic_runs(0.02);
    synthetic_load(&t, ROWS, &set);
    nd_calibration before[2];
    CU_ASSERT_EQUAL_FATAL(set.calibrations_count, 2);
    memcpy(before, set.calibrations, sizeof before);
    ND_ASSERT_OK(nd_fit_runs(&set, &selection, &fit, &err));
    CU_ASSERT_EQUAL(fit.rows, rows);
    const nd_run_constant *c = fit.constants;
    CU_ASSERT_EQUAL(synthetic_find(c, fit.constants_count, false, "h100", "gemm_frac") >= 0, h100);
    CU_ASSERT_EQUAL(synthetic_find(c, fit.constants_count, false, "a100", "gemm_frac") >= 0, a100);
    CU_ASSERT_EQUAL(synthetic_find(c, fit.constants_count, true, "torch-fsdp2", "gemm_frac") >= 0, fsdp);
    CU_ASSERT_EQUAL(synthetic_find(c, fit.constants_count, true, "megatron", "gemm_frac") >= 0, megatron);
    for (int i = 0; i < 2; i++) {
        bool fitted = strcmp(before[i].gpu, "h100") == 0 ? h100 : a100;
        CU_ASSERT_EQUAL(memcmp(&before[i], &set.calibrations[i], sizeof before[i]) == 0, !fitted);
    }
    nd_run_set_free(&set);
}

static void test_selections_decide_which_runs_and_constants_take_part(void)
{
    check_selection((nd_fit_selection){0}, 36, true, true, true, true);
    check_selection((nd_fit_selection){.gpu = "h100"}, 24, true, false, true, true);
    check_selection((nd_fit_selection){.gpu = "a100"}, 12, false, true, true, true);
    check_selection((nd_fit_selection){.stack = "megatron"}, 18, true, true, false, true);
    check_selection((nd_fit_selection){.gpu = "a100", .stack = "torch-fsdp2"}, 6, false, true, true, false);
    check_selection((nd_fit_selection){.without_source = "BB"}, 24, true, true, true, true);
}

static void test_a_fit_near_another_has_the_same_answer(void)
{
    static nd_run_set set;
    static nd_run_fit far_fit;
    static nd_run_fit near_fit;
    nd_error err = {.message = ""};
    const synthetic_table t = synthetic_runs(0.02);
    synthetic_load(&t, ROWS, &set);
    ND_ASSERT_OK(nd_fit_runs(&set, &(nd_fit_selection){0}, &far_fit, &err));
    nd_run_set_free(&set);
    synthetic_load(&t, ROWS, &set); /* priors again */
    ND_ASSERT_OK(nd_fit_runs(&set, &(nd_fit_selection){.near = &far_fit}, &near_fit, &err));
    CU_ASSERT_EQUAL_FATAL(near_fit.constants_count, far_fit.constants_count);
    for (int32_t i = 0; i < far_fit.constants_count; i++) {
        CU_ASSERT_EQUAL(near_fit.result.identified[i], far_fit.result.identified[i]);
        ND_ASSERT_REL(near_fit.result.value[i], far_fit.result.value[i], 0.1 * far_fit.result.log_sd[i]);
    }
    nd_run_set_free(&set);
}

static void test_runs_that_say_nothing_or_contradict_themselves_are_not_used(void)
{
    static nd_run_set set;
    static nd_run_fit fit;
    nd_error err = {.message = ""};
    synthetic_table t = synthetic_runs(0.0);
    t.grade[0] = 'C';
    t.notes[1] = "FLAG: two figures for one run";
    t.grade[2] = 'B';
    synthetic_load(&t, 4, &set);
    set.entries[3].run.step_s = 0.0; /* memory alone was reported */
    CU_ASSERT_FALSE(nd_run_is_usable(&set.entries[0].run));
    CU_ASSERT_FALSE(nd_run_is_usable(&set.entries[1].run));
    CU_ASSERT_TRUE(nd_run_is_usable(&set.entries[2].run));
    CU_ASSERT_FALSE(nd_run_is_usable(&set.entries[3].run));
    ND_ASSERT_OK(nd_fit_runs(&set, &(nd_fit_selection){0}, &fit, &err));
    CU_ASSERT_EQUAL(fit.rows, 1);
    set.entries[2].run.step_s = 0.0;
    memset(&fit, 0x5a, sizeof fit);
    const int64_t untouched = fit.rows;
    CU_ASSERT_EQUAL(nd_fit_runs(&set, &(nd_fit_selection){0}, &fit, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "no run to fit");
    CU_ASSERT_EQUAL(fit.rows, untouched);
    nd_run_set_free(&set);
}

static void test_gpus_that_borrow_constants_take_no_part_beside_their_owners(void)
{
    static const char text[] = "id,model,gpu,gpus,step_time_s\nA-1,llama-3.1-8b,H100,8,1\nA-2,llama-3.1-8b,L40S,8,9\n";
    static nd_run_set set;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_parse(text, sizeof text - 1, "runs.csv", &csv, &err));
    ND_ASSERT_OK(nd_run_set_load(csv, NULL, &set, &err));
    CU_ASSERT_EQUAL_FATAL(set.count, 2);
    CU_ASSERT_TRUE_FATAL(set.calibrations[set.entries[1].calibration].borrowed);
    CU_ASSERT_TRUE(nd_run_is_selected(&set, &set.entries[0], &(nd_fit_selection){0}));
    CU_ASSERT_FALSE(nd_run_is_selected(&set, &set.entries[1], &(nd_fit_selection){0}));
    set.some_own = false; /* alone, they are all there is */
    CU_ASSERT_TRUE(nd_run_is_selected(&set, &set.entries[1], &(nd_fit_selection){0}));
    nd_run_set_free(&set);
    nd_csv_free(csv);
}

static void test_spoiled_rows_weigh_little(void)
{
    static const int spoiled[] = {4, 17, 30};
    static nd_run_set set;
    static nd_run_fit fit;
    double weights[ROWS];
    nd_error err = {.message = ""};
    synthetic_table t = synthetic_runs(0.02);
    for (size_t i = 0; i < 3; i++) {
        t.step_s[spoiled[i]] *= i == 1 ? 0.5 : 2.0;
    }
    synthetic_load(&t, ROWS, &set);
    ND_ASSERT_OK(nd_fit_runs_weighted(&set, &(nd_fit_selection){0}, &fit, weights, &err));
    for (int i = 0; i < ROWS; i++) {
        bool bad = i == spoiled[0] || i == spoiled[1] || i == spoiled[2];
        CU_ASSERT_TRUE(bad ? weights[i] < 0.25 : weights[i] > 0.6);
        /* the others are predicted as if these were not there */
        CU_ASSERT_TRUE(bad || fabs(log(nd_run_set_step_s(&set, i) / t.step_s[i])) < 0.1);
    }
    check_recovered(&fit, true, "torch-fsdp2", "launch_s", fsdp_launch);
    nd_run_set_free(&set);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_altered_constants_are_found_again),
        ND_TEST(test_constants_that_the_runs_do_not_use_keep_their_priors),
        ND_TEST(test_selections_decide_which_runs_and_constants_take_part),
        ND_TEST(test_a_fit_near_another_has_the_same_answer),
        ND_TEST(test_runs_that_say_nothing_or_contradict_themselves_are_not_used),
        ND_TEST(test_gpus_that_borrow_constants_take_no_part_beside_their_owners),
        ND_TEST(test_spoiled_rows_weigh_little),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/fit_runs", cases);
}
