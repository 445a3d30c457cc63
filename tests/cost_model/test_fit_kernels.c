#include "cost_model/fit_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/kernels.h"
#include "tests/nd_test.h"

/* Tables made with known constants: what is fitted must be what was put in. */

typedef struct made {
    char *text;
    size_t length, size;
} made;

static nd_gpu_spec gpu;
static nd_calibration truth;

static void test_the_gpu_loads(void)
{
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_gpu_find("h100", &gpu, &err));
    truth = (nd_calibration){.gemm_frac = 0.62,
                             .gemm_burst_frac = 0.81,
                             .gemm_power_s = 4e-4,
                             .gemm_k0 = 190.0,
                             .wave_frac = 0.6,
                             .tile_exponent = 0.12,
                             .gemm_hbm_frac = 0.72,
                             .hbm_frac = 0.72,
                             .kernel_s = 3.4e-6,
                             .grouped_frac = 0.66,
                             .fp8_frac = 0.88};
}

static void append(made *table, const char *line)
{
    size_t length = strlen(line);
    if (table->length + length + 1 > table->size) {
        table->size = 2 * (table->length + length + 1);
        table->text = realloc(table->text, table->size);
        CU_ASSERT_PTR_NOT_NULL_FATAL(table->text);
    }
    memcpy(table->text + table->length, line, length + 1);
    table->length += length;
}

/* Uniform in [0, 1): the generator of C's example rand(), repeatable everywhere. */
static double uniform(uint32_t *state)
{
    *state = *state * 1103515245u + 12345u;
    return (double)(*state >> 8) / 16777216.0;
}

static double seconds_of(const char *dtype, int64_t groups, const int64_t mnk[3])
{
    bool fp8 = strcmp(dtype, "fp8") == 0;
    nd_train_spec train = {.precision = fp8 ? ND_DTYPE_FP8 : ND_DTYPE_BF16};
    nd_kernel_model model = nd_kernel_model_make(&gpu, &truth, &train);
    double m = (double)mnk[0];
    double n = (double)mnk[1];
    double k = (double)mnk[2];
    nd_op op = {.kind = ND_OP_GEMM, .m = mnk[0], .n = mnk[1], .k = mnk[2], .groups = groups, .fp8 = fp8};
    op.hbm_bytes = 2.0 * (m * k + k * n + m * n) * (double)groups;
    return nd_gemm_s(&model, &op);
}

/* `rows` shapes between 128 and 16384; every outlier_every-th (0: none) takes three times as long. */
static nd_csv *make_table(int rows, double noise, int outlier_every, bool grouped, bool fp8)
{
    nd_error err = {.message = ""};
    made table = {NULL, 0, 0};
    uint32_t state = 7;
    char line[160];
    append(&table, "gpu,m,n,k,groups,dtype,seconds\n");
    for (int i = 0; i < rows; i++) {
        int64_t mnk[3];
        for (int side = 0; side < 3; side++) {
            mnk[side] = 32 * (int64_t)(4.0 * pow(128.0, uniform(&state)));
        }
        int64_t groups = grouped && i % 4 >= 2 ? 8 : 1; /* both halves of the split see every kind of row */
        const char *dtype = fp8 && i % 8 >= 4 ? "fp8" : "";
        double seconds = seconds_of(dtype, groups, mnk) * exp(noise * (2.0 * uniform(&state) - 1.0));
        seconds *= outlier_every > 0 && i % outlier_every == 0 ? 3.0 : 1.0;
        (void)snprintf(line, sizeof line, "h100,%lld,%lld,%lld,%lld,%s,%.9e\nother,1,1,1,1,,1\n", (long long)mnk[0],
                       (long long)mnk[1], (long long)mnk[2], (long long)groups, dtype, seconds);
        append(&table, line);
    }
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_parse(table.text, table.length, "table", &csv, &err));
    free(table.text);
    return csv;
}

static nd_gemm_fit fit_of(nd_csv *csv)
{
    nd_error err = {.message = ""};
    nd_gemm_fit fit;
    memset(&fit, 0, sizeof fit);
    ND_ASSERT_OK(nd_fit_gemm(csv, &gpu, &fit, &err));
    nd_csv_free(csv);
    return fit;
}

static void check_constants(const nd_gemm_fit *fit, double tolerance)
{
    const double *value = fit->fit.value;
    ND_ASSERT_REL(value[ND_GEMM_BURST_FRAC], truth.gemm_burst_frac, tolerance);
    ND_ASSERT_REL(fit->gemm_frac, truth.gemm_frac, tolerance);
    ND_ASSERT_REL(value[ND_GEMM_HBM_FRAC], truth.gemm_hbm_frac, tolerance);
    ND_ASSERT_REL(value[ND_GEMM_KERNEL_S], truth.kernel_s, 2.0 * tolerance);
    ND_ASSERT_REL(value[ND_GEMM_K0], truth.gemm_k0, 3.0 * tolerance);
    ND_ASSERT_REL(value[ND_GEMM_WAVE_FRAC], truth.wave_frac, 4.0 * tolerance);
    ND_ASSERT_REL(value[ND_GEMM_TILE_EXPONENT], truth.tile_exponent, 4.0 * tolerance);
    for (int i = ND_GEMM_BURST_FRAC; i <= ND_GEMM_KERNEL_S; i++) {
        CU_ASSERT_TRUE(fit->fit.identified[i]);
        CU_ASSERT_TRUE(fit->fit.log_sd[i] > 0.0 && fit->fit.log_sd[i] < 1.0);
    }
}

static void test_known_constants_are_recovered(void)
{
    nd_gemm_fit fit = fit_of(make_table(400, 0.0, 0, false, false));
    check_constants(&fit, 0.02); /* priors pull by less than their width, and the minimum over tiles has kinks */
    CU_ASSERT_TRUE(fit.train.median_frac < 0.005 && fit.test.median_frac < 0.005);
    CU_ASSERT_EQUAL(fit.train.count + fit.test.count, 400);
    CU_ASSERT_TRUE(fit.test_big.count > 0 && fit.test_big.count < fit.test.count);
}

static void test_groups_and_fp8_are_fitted_when_the_table_has_them(void)
{
    nd_gemm_fit without = fit_of(make_table(200, 0.0, 0, false, false));
    CU_ASSERT_FALSE(without.fit.identified[ND_GEMM_GROUPED_FRAC]);
    CU_ASSERT_FALSE(without.fit.identified[ND_GEMM_FP8_FRAC]);
    nd_gemm_fit with = fit_of(make_table(400, 0.0, 0, true, true));
    CU_ASSERT_TRUE(with.fit.identified[ND_GEMM_GROUPED_FRAC]);
    CU_ASSERT_TRUE(with.fit.identified[ND_GEMM_FP8_FRAC]);
    ND_ASSERT_REL(with.fit.value[ND_GEMM_GROUPED_FRAC], truth.grouped_frac, 0.02);
    ND_ASSERT_REL(with.fit.value[ND_GEMM_FP8_FRAC], truth.fp8_frac, 0.03);
}

static void test_noise_widens_the_errors_but_moves_nothing_far(void)
{
    nd_gemm_fit clean = fit_of(make_table(400, 0.0, 0, false, false));
    nd_gemm_fit noisy = fit_of(make_table(400, 0.2, 0, false, false));
    const double put_in[] = {truth.gemm_burst_frac, truth.gemm_frac / truth.gemm_burst_frac,
                             truth.gemm_power_s,    truth.gemm_k0,
                             truth.wave_frac,       truth.tile_exponent,
                             truth.gemm_hbm_frac,   truth.kernel_s};
    for (int i = ND_GEMM_BURST_FRAC; i <= ND_GEMM_KERNEL_S; i++) {
        /* the stated standard errors are honest: three of them hold the truth */
        CU_ASSERT_TRUE(fabs(log(noisy.fit.value[i] / put_in[i])) <= 3.0 * noisy.fit.log_sd[i]);
    }
    CU_ASSERT_TRUE(noisy.fit.log_sd[ND_GEMM_BURST_FRAC] > clean.fit.log_sd[ND_GEMM_BURST_FRAC]);
    /* uniform errors of up to 20 %: the median is 10 % */
    ND_ASSERT_REL(noisy.test.median_frac, 0.10, 0.25);
    ND_ASSERT_REL(noisy.test.p90_frac, 0.18, 0.25);
}

static void test_outliers_do_not_bend_the_fit(void)
{
    /* every ninth row, so one in nine of both halves, takes three times as long as it should */
    nd_gemm_fit fit = fit_of(make_table(450, 0.02, 9, false, false));
    ND_ASSERT_REL(fit.fit.value[ND_GEMM_BURST_FRAC], truth.gemm_burst_frac, 0.05);
    ND_ASSERT_REL(fit.fit.value[ND_GEMM_HBM_FRAC], truth.gemm_hbm_frac, 0.05);
    CU_ASSERT_TRUE(fit.test.median_frac < 0.05);
    CU_ASSERT_TRUE(fit.test.p90_frac > 0.4); /* the outliers themselves */
}

static void check_refused(const char *text, nd_status status, const char *message)
{
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    nd_gemm_fit fit;
    memset(&fit, 0x5a, sizeof fit);
    nd_gemm_fit before = fit;
    ND_ASSERT_OK(nd_csv_parse(text, strlen(text), "t.csv", &csv, &err));
    CU_ASSERT_EQUAL(nd_fit_gemm(csv, &gpu, &fit, &err), status);
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_EQUAL(memcmp(&fit, &before, sizeof fit), 0);
    nd_csv_free(csv);
}

#define EIGHT_ROWS(first)                                                                                              \
    "gpu,m,n,k,seconds,dtype\n" first "h100,512,512,512,1e-5,\nh100,512,512,1024,1e-5,\nh100,512,512,2048,1e-5,\n"     \
    "h100,512,1024,512,1e-5,\nh100,512,1024,1024,1e-5,\nh100,1024,512,512,1e-5,\nh100,1024,1024,1024,1e-5,\n"

static void test_a_bad_table_is_named_with_its_line(void)
{
    check_refused("gpu,m,n,k\nh100,1,1,1\n", ND_EPARSE, "seconds");
    check_refused("gpu,m,n,k,second\nh100,1,1,1,1\n", ND_EPARSE, "second");
    check_refused("gpu,m,n,k,seconds\n", ND_EINVAL,
                  "t.csv: a fit of gpu 'h100' needs at least 8 rows, the table has 0");
    check_refused("gpu,m,n,k,seconds\na100,512,512,512,1e-5\n", ND_EINVAL, "the table has 0");
    check_refused(EIGHT_ROWS("h100,0,512,512,1e-5,\n"), ND_EPARSE, "t.csv:2");
    check_refused(EIGHT_ROWS("h100,,512,512,1e-5,\n"), ND_EPARSE, "t.csv:2: m is missing");
    check_refused(EIGHT_ROWS("h100,512,512,512,,\n"), ND_EPARSE, "t.csv:2: seconds is missing");
    check_refused(EIGHT_ROWS("h100,512,512,512,-1,\n"), ND_EPARSE, "t.csv:2");
    check_refused(EIGHT_ROWS("h100,512,512,512,soon,\n"), ND_EPARSE, "t.csv:2");
    check_refused(EIGHT_ROWS("h100,512,512,512,1e-5,int8\n"), ND_EPARSE,
                  "t.csv:2: dtype must be bf16, fp16 or fp8, got 'int8'");
}

static void test_a_precision_that_the_gpu_lacks_is_refused(void)
{
    nd_gpu_spec hopper = gpu;
    nd_error err = {.message = ""};
    gpu.peak_flops_per_s[ND_DTYPE_FP8] = 0.0;
    check_refused(EIGHT_ROWS("h100,512,512,512,1e-5,fp8\n"), ND_EPARSE, "t.csv:2: gpu h100 has no fp8 rate");
    gpu = hopper;
    ND_ASSERT_OK(nd_gpu_find("h100", &gpu, &err));
}

static void test_few_rows_keep_what_they_cannot_say_at_the_prior(void)
{
    nd_gemm_fit fit = fit_of(make_table(8, 0.0, 0, false, false));
    CU_ASSERT_FALSE(fit.fit.identified[ND_GEMM_GROUPED_FRAC]);
    ND_ASSERT_REL(fit.fit.value[ND_GEMM_GROUPED_FRAC], 0.7, 1e-12);
    CU_ASSERT_EQUAL(fit.train.count, 4);
    CU_ASSERT_EQUAL(fit.test.count, 4);
    CU_ASSERT_TRUE(isfinite(fit.gemm_frac) && fit.gemm_frac > 0.0);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_gpu_loads),
        ND_TEST(test_known_constants_are_recovered),
        ND_TEST(test_groups_and_fp8_are_fitted_when_the_table_has_them),
        ND_TEST(test_noise_widens_the_errors_but_moves_nothing_far),
        ND_TEST(test_outliers_do_not_bend_the_fit),
        ND_TEST(test_a_bad_table_is_named_with_its_line),
        ND_TEST(test_a_precision_that_the_gpu_lacks_is_refused),
        ND_TEST(test_few_rows_keep_what_they_cannot_say_at_the_prior),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/fit_kernels", cases);
}
