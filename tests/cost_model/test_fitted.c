/* Tables of fitted constants: the shipped one, the file format and its errors, and what they say of step times. */
#include "cost_model/fitted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cost_model/fixture.h"

/* Two constants of one GPU and two of one stack, one of each not identified. */
static nd_fitted small_table(void)
{
    nd_fitted table = {.source = "made up", .fingerprint = "fnv1a64:0", .runs = 7, .constants_count = 4};
    static const struct {
        bool of_stack, identified;
        const char *owner, *key;
        double prior, value, log_sd;
    } rows[] = {
        {false, true, "h100", "gemm_frac", 0.69, 0.61, 0.04},
        {false, false, "h100", "hbm_frac", 0.869, 0.869, 0.15},
        {true, true, "megatron", "gemm_frac", 1.0, 1.1, 0.05},
        {true, true, "megatron", "launch_s", 5e-6, 1.2345678e-5, 0.3},
    };
    for (int i = 0; i < table.constants_count; i++) {
        nd_run_constant *constant = &table.constants[i];
        constant->of_stack = rows[i].of_stack;
        (void)snprintf(constant->owner, sizeof constant->owner, "%s", rows[i].owner);
        (void)snprintf(constant->key, sizeof constant->key, "%s", rows[i].key);
        constant->prior = rows[i].prior;
        table.value[i] = rows[i].value;
        table.log_sd[i] = rows[i].log_sd;
        table.identified[i] = rows[i].identified;
        table.covariance[i][i] = rows[i].log_sd * rows[i].log_sd;
    }
    table.covariance[0][2] = table.covariance[2][0] = -0.0011;
    table.covariance[0][3] = table.covariance[3][0] = 0.002;
    table.reduced_chi2 = 0.83;
    table.rcond = 0.021;
    table.form_log_sd = 0.071;
    table.hard_form_log_sd = 0.17;
    return table;
}

static void test_the_shipped_table_names_known_owners_and_plausible_values(void)
{
    static nd_fitted shipped;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_fitted_shipped(&shipped, &err));
    CU_ASSERT_TRUE(shipped.constants_count > 40);
    CU_ASSERT_TRUE(shipped.runs > 500);
    CU_ASSERT_TRUE(shipped.form_log_sd > 0.0 && shipped.hard_form_log_sd >= shipped.form_log_sd);
    for (int32_t i = 0; i < shipped.constants_count; i++) {
        const nd_run_constant *constant = &shipped.constants[i];
        nd_stack stack;
        nd_gpu_spec gpu;
        nd_calibration calibration;
        double *place = NULL;
        if (constant->of_stack) {
            ND_ASSERT_OK(nd_stack_find(constant->owner, &stack, &err));
            place = nd_stack_constant(&stack, constant->key);
        } else {
            ND_ASSERT_OK(nd_gpu_find(constant->owner, &gpu, &err));
            ND_ASSERT_OK(nd_calibration_for_gpu(&gpu, &calibration, &err));
            CU_ASSERT_STRING_EQUAL(calibration.gpu, constant->owner); /* its own, not a relative's */
            place = nd_calibration_constant(&calibration, constant->key);
        }
        CU_ASSERT_PTR_NOT_NULL_FATAL(place);
        /* a table's notes may say that a stack ran eagerly: launches then cost what they cost there */
        if (strcmp(constant->key, "launch_s") != 0) {
            ND_ASSERT_REL(constant->prior, *place, 1e-5); /* six digits */
        }
        ND_ASSERT_REL(shipped.covariance[i][i], shipped.log_sd[i] * shipped.log_sd[i], 1e-4);
        if (!shipped.identified[i]) {
            CU_ASSERT_EQUAL(shipped.value[i], constant->prior);
        }
    }
}

static void test_applying_changes_identified_constants_of_their_owner_alone(void)
{
    nd_error err = {.message = ""};
    const nd_fitted table = small_table();
    nd_gpu_spec gpu;
    nd_calibration h100;
    nd_calibration a100;
    nd_stack megatron;
    nd_stack other;
    ND_ASSERT_OK(nd_gpu_find("h100", &gpu, &err));
    ND_ASSERT_OK(nd_calibration_for_gpu(&gpu, &h100, &err));
    ND_ASSERT_OK(nd_gpu_find("a100", &gpu, &err));
    ND_ASSERT_OK(nd_calibration_for_gpu(&gpu, &a100, &err));
    ND_ASSERT_OK(nd_stack_find("megatron", &megatron, &err));
    ND_ASSERT_OK(nd_stack_find("torch-fsdp2", &other, &err));
    nd_calibration h100_expected = h100;
    nd_stack megatron_expected = megatron;
    const nd_calibration a100_before = a100;
    const nd_stack other_before = other;
    h100_expected.gemm_frac = 0.61;
    megatron_expected.gemm_frac = 1.1;
    megatron_expected.launch_s = 1.2345678e-5;
    nd_fitted_apply(&table, &a100, &other);
    CU_ASSERT_EQUAL(memcmp(&a100, &a100_before, sizeof a100), 0);
    CU_ASSERT_EQUAL(memcmp(&other, &other_before, sizeof other), 0);
    nd_fitted_apply(&table, &h100, NULL);
    CU_ASSERT_EQUAL(memcmp(&h100, &h100_expected, sizeof h100), 0);
    nd_fitted_apply(&table, NULL, &megatron);
    CU_ASSERT_EQUAL(memcmp(&megatron, &megatron_expected, sizeof megatron), 0);
}

static void write_table(const char *path, const nd_fitted *table)
{
    const nd_fitted_residual residuals[] = {{"A-1", 0.01, nan(""), 1.0}, {"B-\"2\"", -0.3, 0.25, 0.4}};
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    nd_fitted_write(file, table, residuals, 2);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fputs(text, file) >= 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* A file of this test alone, in the folder of the build. */
static const char *scratch(void)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "test_fitted.%ld.json", (long)getpid());
    return path;
}

static void test_a_table_that_was_written_reads_back_to_six_digits(void)
{
    static nd_fitted back;
    nd_error err = {.message = ""};
    const nd_fitted table = small_table();
    write_table(scratch(), &table);
    ND_ASSERT_OK(nd_fitted_load(scratch(), &back, &err));
    CU_ASSERT_STRING_EQUAL(back.name, scratch());
    CU_ASSERT_STRING_EQUAL(back.source, table.source);
    CU_ASSERT_STRING_EQUAL(back.fingerprint, table.fingerprint);
    CU_ASSERT_EQUAL(back.runs, table.runs);
    CU_ASSERT_EQUAL_FATAL(back.constants_count, table.constants_count);
    ND_ASSERT_REL(back.reduced_chi2, table.reduced_chi2, 1e-5);
    ND_ASSERT_REL(back.rcond, table.rcond, 1e-5);
    ND_ASSERT_REL(back.form_log_sd, table.form_log_sd, 1e-5);
    ND_ASSERT_REL(back.hard_form_log_sd, table.hard_form_log_sd, 1e-5);
    for (int32_t i = 0; i < table.constants_count; i++) {
        CU_ASSERT_EQUAL(back.constants[i].of_stack, table.constants[i].of_stack);
        CU_ASSERT_STRING_EQUAL(back.constants[i].owner, table.constants[i].owner);
        CU_ASSERT_STRING_EQUAL(back.constants[i].key, table.constants[i].key);
        CU_ASSERT_EQUAL(back.identified[i], table.identified[i]);
        ND_ASSERT_REL(back.value[i], table.value[i], 5e-6);
        ND_ASSERT_REL(back.log_sd[i], table.log_sd[i], 5e-6);
        for (int32_t j = 0; j < table.constants_count; j++) {
            CU_ASSERT_DOUBLE_EQUAL(back.covariance[i][j], table.covariance[i][j], 1e-7);
        }
    }
    (void)remove(scratch());
}

#define HEAD                                                                                                           \
    "{\"schema\": \"ndplan-fitted-1\", \"source\": \"s\", \"fingerprint\": \"f\", \"runs\": 1,\n"                      \
    "\"reduced_chi2\": 1, \"rcond\": 1, \"form_log_sd\": 0, \"hard_form_log_sd\": 0,\n"
#define ENTRY(kind, key)                                                                                               \
    "{\"kind\": \"" kind "\", \"owner\": \"h100\", \"key\": \"" key                                                    \
    "\", \"prior\": 0.7, \"fitted\": 0.6, \"log_sd\": 0.1, \"identified\": true}"

static void test_a_malformed_file_is_one_line_with_its_place(void)
{
    static const struct {
        const char *text, *place, *words;
    } files[] = {
        {"[]", ":1:1: ", "schema"},
        {"{\"name\": \"h100\"}", ":1:1: ", "`ndplan calibrate` writes such files"},
        {"{\"schema\": \"ndplan-fitted-2\"}", ":1:1: ", "schema is ndplan-fitted-2, not 'ndplan-fitted-1'"},
        {"{\"schema\": 1}", ":1:12: ", "schema"},
        {"{\"schema\": \"ndplan-fitted-1\"}", ":1:1: ", "missing key 'source'"},
        {"{\"schema\": \"ndplan-fitted-1\", \"source\": 5}", ":1:41: ", "'source'"},
        {HEAD "\"constants\": []}", ":1:1: ", "missing key 'covariance'"},
        {HEAD "\"constants\": 5, \"covariance\": []}", ":3:14: ", "'constants' must be an array, got a whole number"},
        {HEAD "\"constants\": {\"a\": {}}, \"covariance\": []}", ":3:14: ", "must be an array, got an object"},
        {HEAD "\"constants\": [7], \"covariance\": [[1]]}", ":3:15: ", "expected an object with the key 'kind'"},
        {HEAD "\"constants\": [" ENTRY("cpu", "gemm_frac") "],\n\"covariance\": [[1]]}", ":3:15: ", "got 'cpu'"},
        {HEAD "\"constants\": [" ENTRY("gpu", "launch_s") "],\n\"covariance\": [[1]]}",
         ":3:15: ", "'launch_s' is no constant of a GPU"},
        {HEAD "\"constants\": [" ENTRY("stack", "hbm_frac") "],\n\"covariance\": [[1]]}",
         ":3:15: ", "'hbm_frac' is no constant of a stack"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") ",\n" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": []}",
         ":4:1: ", "gemm_frac of 'h100' is there twice"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": []}", ":4:15: ", "1 constants, got 0"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": [[]]}", ":4:16: ", "row 1"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": [[1, 2]]}", ":4:16: ", "got 2"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": [{\"a\": 1}]}", ":4:16: ", "row 1"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": [[\"x\"]]}", ":4:17: ", "covariance"},
        {HEAD "\"constants\": [" ENTRY("gpu", "gemm_frac") "],\n\"covariance\": [[1e9]]}", ":4:17: ", "covariance"},
        {HEAD "\"constants\": [{\"kind\": \"gpu\", \"owner\": \"h100\", \"key\": \"gemm_frac\", \"prior\": -1}],\n"
              "\"covariance\": []}",
         ":3:77: ", "'prior'"},
        {HEAD "\"constants\": [{\"kind\": \"gpu\", \"owner\": \"h100\", \"key\": \"gemm_frac\", \"prior\": 1,\n"
              "\"fitted\": 1, \"log_sd\": 1, \"identified\": 1}],\n\"covariance\": []}",
         ":4:41: ", "'identified'"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        nd_error err = {.message = ""};
        char place[96];
        static nd_fitted out;
        memset(&out, 0x5a, sizeof out);
        const int64_t untouched = out.runs;
        write_text(scratch(), files[i].text);
        CU_ASSERT_EQUAL(nd_fitted_load(scratch(), &out, &err), ND_EPARSE);
        (void)snprintf(place, sizeof place, "%s%s", scratch(), files[i].place);
        ND_ASSERT_CONTAINS(err.message, place);
        ND_ASSERT_CONTAINS(err.message, files[i].words);
        CU_ASSERT_PTR_NULL(strchr(err.message, '\n'));
        CU_ASSERT_EQUAL(out.runs, untouched);
    }
    (void)remove(scratch());
}

static void test_a_file_that_is_not_there_is_named(void)
{
    static nd_fitted out;
    nd_error err = {.message = ""};
    CU_ASSERT_EQUAL(nd_fitted_load("no/such/table.json", &out, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "no/such/table.json");
}

/* What small_table() says of h100 and megatron: GEMM rates of both in one factor, a rate and a cost of opposite signs,
 * and the prior where nothing was identified. */
static void test_covariance_of_constants_becomes_that_of_factors_with_signs(void)
{
    nd_error err = {.message = ""};
    const nd_fitted table = small_table();
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "8xh100", "megatron", 4096, 64);
    nd_time_uncertainty u = nd_fitted_uncertainty(&table, &f.calibration, &f.stack);
    const nd_time_uncertainty prior = nd_time_uncertainty_prior(false);
    ND_ASSERT_REL(u.covariance[ND_FACTOR_GEMM][ND_FACTOR_GEMM], 0.04 * 0.04 + 0.05 * 0.05 - 2.0 * 0.0011, 1e-12);
    ND_ASSERT_REL(u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_LAUNCH], 0.09, 1e-12);
    ND_ASSERT_REL(u.covariance[ND_FACTOR_GEMM][ND_FACTOR_LAUNCH], -0.002, 1e-12);
    ND_ASSERT_REL(u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_GEMM], -0.002, 1e-12);
    CU_ASSERT_EQUAL(u.covariance[ND_FACTOR_MEMORY][ND_FACTOR_MEMORY],
                    prior.covariance[ND_FACTOR_MEMORY][ND_FACTOR_MEMORY]);
    CU_ASSERT_EQUAL(u.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS], prior.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS]);
    CU_ASSERT_EQUAL(u.form_log_sd, 0.071);
    CU_ASSERT_EQUAL(u.hard_form_log_sd, 0.17);
    ND_ASSERT_OK(nd_stack_find("torch-fsdp2", &f.stack, &err));
    u = nd_fitted_uncertainty(&table, &f.calibration, &f.stack); /* the stack's constants are another's now */
    ND_ASSERT_REL(u.covariance[ND_FACTOR_GEMM][ND_FACTOR_GEMM], 0.04 * 0.04, 1e-12);
    CU_ASSERT_EQUAL(u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_LAUNCH],
                    prior.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_LAUNCH]);
}

static void test_owners_that_a_table_lacks_keep_their_priors(void)
{
    nd_fitted table = small_table();
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "8xa100", "torch-fsdp2", 4096, 64);
    table.form_log_sd = table.hard_form_log_sd = 0.0; /* not known */
    const nd_time_uncertainty u = nd_fitted_uncertainty(&table, &f.calibration, &f.stack);
    const nd_time_uncertainty prior = nd_time_uncertainty_prior(false);
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        for (int j = 0; j < ND_TIME_FACTOR_COUNT; j++) {
            CU_ASSERT_EQUAL(u.covariance[i][j], prior.covariance[i][j]);
        }
    }
    CU_ASSERT_EQUAL(u.form_log_sd, prior.form_log_sd);
    CU_ASSERT_EQUAL(u.hard_form_log_sd, prior.hard_form_log_sd);
}

static void test_borrowed_constants_are_less_certain(void)
{
    const nd_fitted table = small_table();
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "8xh100", "megatron", 4096, 64);
    const nd_time_uncertainty own = nd_fitted_uncertainty(&table, &f.calibration, &f.stack);
    f.calibration.borrowed = true;
    const nd_time_uncertainty borrowed = nd_fitted_uncertainty(&table, &f.calibration, &f.stack);
    for (int i = ND_FACTOR_GEMM; i <= ND_FACTOR_MEMORY; i++) {
        CU_ASSERT_TRUE(borrowed.covariance[i][i] > own.covariance[i][i] + 0.05); /* 25 % of a relative, squared */
    }
    CU_ASSERT_EQUAL(borrowed.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS],
                    own.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS]);
}

static void test_log_sd_is_the_quadratic_form_of_shares(void)
{
    nd_time_uncertainty u = {.form_log_sd = 0.06, .hard_form_log_sd = 0.15};
    u.covariance[ND_FACTOR_GEMM][ND_FACTOR_GEMM] = 0.01;
    u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_LAUNCH] = 0.25;
    u.covariance[ND_FACTOR_GEMM][ND_FACTOR_LAUNCH] = u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_GEMM] = -0.02;
    const double shares[ND_TIME_FACTOR_COUNT] = {[ND_FACTOR_GEMM] = 0.5, [ND_FACTOR_LAUNCH] = 0.1};
    /* 0.25 x 0.01 + 0.01 x 0.25 - 2 x 0.05 x 0.02 = 0.003; + 0.06^2 = 0.0066; + 0.15^2 = 0.0255 */
    ND_ASSERT_REL(nd_time_log_sd(&u, shares, false), sqrt(0.0066), 1e-12);
    ND_ASSERT_REL(nd_time_log_sd(&u, shares, true), sqrt(0.0255), 1e-12);
    u.covariance[ND_FACTOR_GEMM][ND_FACTOR_LAUNCH] = u.covariance[ND_FACTOR_LAUNCH][ND_FACTOR_GEMM] = -9.0;
    CU_ASSERT_EQUAL(nd_time_log_sd(&u, shares, false), 0.0); /* no variance: not NaN */
}

static void test_intervals_widen_with_the_form_error_and_are_even_in_logarithms(void)
{
    static fixture f;
    double before = 0.0;
    fixture_make(&f, "llama-3.1-8b", "2x8xh100", "megatron", 4096, 64);
    for (double form = 0.0; form < 0.5; form += 0.1) {
        f.context.uncertainty.form_log_sd = form;
        const nd_time_breakdown time = fixture_estimate(&f, "tp=2,dp_shard=8,micro_batch=1").time;
        double up = log(time.step_high_s / time.step_s);
        double down = log(time.step_s / time.step_low_s);
        ND_ASSERT_REL(up, down, 1e-9);
        CU_ASSERT_TRUE(up > before && up >= nd_interval80_sd * form);
        before = up;
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_shipped_table_names_known_owners_and_plausible_values),
        ND_TEST(test_applying_changes_identified_constants_of_their_owner_alone),
        ND_TEST(test_a_table_that_was_written_reads_back_to_six_digits),
        ND_TEST(test_a_malformed_file_is_one_line_with_its_place),
        ND_TEST(test_a_file_that_is_not_there_is_named),
        ND_TEST(test_covariance_of_constants_becomes_that_of_factors_with_signs),
        ND_TEST(test_owners_that_a_table_lacks_keep_their_priors),
        ND_TEST(test_borrowed_constants_are_less_certain),
        ND_TEST(test_log_sd_is_the_quadratic_form_of_shares),
        ND_TEST(test_intervals_widen_with_the_form_error_and_are_even_in_logarithms),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/fitted", cases);
}
