/* Fits to synthetic runs: steps that the model itself predicts with other constants, so that the answer is known. */
#include "cost_model/fit_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/calibrate.h"
#include "tests/nd_test.h"

enum { ROWS = 36, ROOM = 16384 };

static const char header[] = "id,model,hidden,layers,heads,kv_heads,ffn_hidden,ffn_kind,vocab,gpu,gpus,framework,"
                             "precision,seq_len,micro_batch,global_batch,dp_shard,zero_stage,tp,recompute,step_time_s,"
                             "grade,notes\n";

static const char *const models[] = {
    "llama-3.1-8b,,,,,,,", "House,2048,24,16,16,8192,gelu,51200",
    "Tiny,768,32,12,12,3072,gelu,32000", /* so small that the host decides */
};
static const char *const sources[] = {"AA", "BB", "CC"};

/* Of row `i`: two GPU types, two stacks, three models, three sources, each with each. */
static int row_text(char *out, size_t room, int i, double step_s, char grade, const char *notes)
{
    bool megatron = i / 3 % 2 == 1;
    return snprintf(out, room, "%s-%d,%s,%s,8,%s,bf16,%d,1,%d,%d,%d,%d,%s,%.12g,%c,%s\n", sources[i % 3], i,
                    models[i / 3 % 4 % 3], i / 12 == 2 ? "A100-80GB" : "H100-80GB",
                    megatron ? "Megatron-LM" : "Accelerate FSDP2", i % 2 == 0 ? 1024 : 2048, i % 5 == 0 ? 16 : 32,
                    megatron ? 4 : 8, megatron ? 1 : 3, megatron ? 2 : 1, i % 4 == 0 ? "full" : "none", step_s, grade,
                    notes);
}

typedef struct table {
    double step_s[ROWS];
    char grade[ROWS];
    const char *notes[ROWS];
} table;

/* The table's CSV; free it with nd_csv_free(). */
static nd_csv *csv_of(const table *t, int rows)
{
    static char text[ROOM];
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    size_t length = strlen(header);
    memcpy(text, header, length);
    for (int i = 0; i < rows; i++) {
        length += (size_t)row_text(text + length, sizeof text - length, i, t->step_s[i], t->grade[i], t->notes[i]);
        CU_ASSERT_TRUE_FATAL(length < sizeof text);
    }
    ND_ASSERT_OK(nd_csv_parse(text, length, "runs.csv", &csv, &err));
    return csv;
}

static void load(const table *t, int rows, nd_run_set *set)
{
    nd_error err = {.message = ""};
    nd_csv *csv = csv_of(t, rows);
    ND_ASSERT_OK(nd_run_set_load(csv, NULL, set, &err));
    CU_ASSERT_EQUAL_FATAL(set->count, rows);
    nd_csv_free(csv);
}

/* What the synthetic machine and software are like. */
static const double h100_gemm = 0.9;  /* of the prior's rate */
static const double a100_gemm = 1.05; /* the same */
static const double fsdp_launch = 2.0;

static void set_truth(nd_run_set *set)
{
    for (int32_t i = 0; i < set->calibrations_count; i++) {
        bool h100 = strcmp(set->calibrations[i].gpu, "h100") == 0;
        set->calibrations[i].gemm_frac *= h100 ? h100_gemm : a100_gemm;
    }
    for (int64_t i = 0; i < set->count; i++) {
        bool fsdp = strcmp(set->entries[i].run.stack.name, "torch-fsdp2") == 0;
        set->entries[i].run.stack.launch_s *= fsdp ? fsdp_launch : 1.0;
    }
}

/* Roughly normal with standard deviation 1, the same in every run: twelve uniforms of xorshift64. */
static double noise(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return sum;
}

/* Measurements of the synthetic machine that scatter by `scatter`. */
static table measure(double scatter)
{
    static nd_run_set set;
    table t;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < ROWS; i++) {
        t.step_s[i] = 1.0;
        t.grade[i] = 'A';
        t.notes[i] = "";
    }
    load(&t, ROWS, &set);
    set_truth(&set);
    for (int i = 0; i < ROWS; i++) {
        t.step_s[i] = nd_run_set_step_s(&set, i) * exp(scatter * noise(&state));
    }
    nd_run_set_free(&set);
    return t;
}

static int32_t find(const nd_run_constant *constants, int32_t count, bool of_stack, const char *owner, const char *key)
{
    for (int32_t i = 0; i < count; i++) {
        if (constants[i].of_stack == of_stack && strcmp(constants[i].owner, owner) == 0 &&
            strcmp(constants[i].key, key) == 0) {
            return i;
        }
    }
    return -1;
}

/* The constant is `factor` times its prior, within two standard errors. */
static void check_recovered(const nd_run_fit *fit, bool of_stack, const char *owner, const char *key, double factor)
{
    int32_t i = find(fit->constants, fit->constants_count, of_stack, owner, key);
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
        const table t = measure(scatters[s]);
        double before = 0.0;
        double after = 0.0;
        load(&t, ROWS, &set);
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
    const table t = measure(0.02);
    load(&t, ROWS, &set);
    ND_ASSERT_OK(nd_fit_runs(&set, &selection, &fit, &err));
    for (size_t k = 0; k < sizeof unused / sizeof unused[0]; k++) {
        int32_t i = find(fit.constants, fit.constants_count, false, "h100", unused[k]);
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
    const table t = measure(0.02);
    load(&t, ROWS, &set);
    nd_calibration before[2];
    CU_ASSERT_EQUAL_FATAL(set.calibrations_count, 2);
    memcpy(before, set.calibrations, sizeof before);
    ND_ASSERT_OK(nd_fit_runs(&set, &selection, &fit, &err));
    CU_ASSERT_EQUAL(fit.rows, rows);
    const nd_run_constant *c = fit.constants;
    CU_ASSERT_EQUAL(find(c, fit.constants_count, false, "h100", "gemm_frac") >= 0, h100);
    CU_ASSERT_EQUAL(find(c, fit.constants_count, false, "a100", "gemm_frac") >= 0, a100);
    CU_ASSERT_EQUAL(find(c, fit.constants_count, true, "torch-fsdp2", "gemm_frac") >= 0, fsdp);
    CU_ASSERT_EQUAL(find(c, fit.constants_count, true, "megatron", "gemm_frac") >= 0, megatron);
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
    const table t = measure(0.02);
    load(&t, ROWS, &set);
    ND_ASSERT_OK(nd_fit_runs(&set, &(nd_fit_selection){0}, &far_fit, &err));
    nd_run_set_free(&set);
    load(&t, ROWS, &set); /* priors again */
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
    table t = measure(0.0);
    t.grade[0] = 'C';
    t.notes[1] = "FLAG: two figures for one run";
    t.grade[2] = 'B';
    load(&t, 4, &set);
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
    table t = measure(0.02);
    for (size_t i = 0; i < 3; i++) {
        t.step_s[spoiled[i]] *= i == 1 ? 0.5 : 2.0;
    }
    load(&t, ROWS, &set);
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

static nd_calibration_result calibrate(const table *t, int rows, bool skip_left_out)
{
    static nd_calibration_result result;
    nd_error err = {.message = ""};
    nd_csv *csv = csv_of(t, rows);
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
    const table t = measure(0.02);
    nd_calibration_result result = calibrate(&t, ROWS, false);
    bool differs = false; /* from the errors of the fit to all */
    CU_ASSERT_EQUAL(result.sources, 3);
    for (int s = 0; s < 3; s++) {
        static nd_run_set set;
        static nd_run_fit without;
        nd_error err = {.message = ""};
        load(&t, ROWS, &set);
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
    const table t = measure(0.02);
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
    table t = measure(0.02);
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
    const table t = measure(0.02);
    nd_calibration_result first = calibrate(&t, ROWS, true);
    nd_csv *csv = csv_of(&t, ROWS);
    const nd_calibrate_request request = {.csv = csv, .skip_left_out = true, .start = &first.fitted};
    ND_ASSERT_OK(nd_calibrate_from_runs(&request, &second, &err));
    int32_t i = find(first.fitted.constants, first.fitted.constants_count, false, "h100", "gemm_frac");
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
        table t = measure(0.0);
        memset(t.grade, requests[r].only_c ? 'C' : 'A', sizeof t.grade);
        nd_csv *csv = csv_of(&t, ROWS);
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
        ND_TEST(test_altered_constants_are_found_again),
        ND_TEST(test_constants_that_the_runs_do_not_use_keep_their_priors),
        ND_TEST(test_selections_decide_which_runs_and_constants_take_part),
        ND_TEST(test_a_fit_near_another_has_the_same_answer),
        ND_TEST(test_runs_that_say_nothing_or_contradict_themselves_are_not_used),
        ND_TEST(test_gpus_that_borrow_constants_take_no_part_beside_their_owners),
        ND_TEST(test_spoiled_rows_weigh_little),
        ND_TEST(test_each_source_is_predicted_by_a_fit_that_did_not_see_it),
        ND_TEST(test_fewer_than_three_sources_say_nothing_of_the_models_form),
        ND_TEST(test_the_form_error_follows_how_far_left_out_sources_are_off),
        ND_TEST(test_priors_may_be_those_of_an_earlier_fit),
        ND_TEST(test_a_calibration_without_runs_says_what_the_table_has),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/fit_runs", cases);
}
