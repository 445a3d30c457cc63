#include "cost_model/fit_kernels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/kernels.h"

enum { ROWS_MIN = 8, BIG = 1024 };

/* The same shapes on the same GPU type timed through three serving stacks differ by 3 to 5 % in the median. */
static const double measurement_log_sd = 0.05;

/* Priors are the middle of what A100, H100, H200 and B200 tables give, with their spread (docs/MODEL.md, "GEMM"). */
static const nd_fit_parameter parameters[ND_GEMM_CONSTANT_COUNT] = {
    [ND_GEMM_BURST_FRAC] = {"gemm_burst_frac", 0.8, 0.3, 0.05, 1.2},
    [ND_GEMM_SUSTAINED_RATIO] = {"gemm_frac / gemm_burst_frac", 0.85, 0.3, 0.2, 1.0},
    [ND_GEMM_POWER_S] = {"gemm_power_s", 1e-3, 2.0, 1e-6, 1.0},
    [ND_GEMM_K0] = {"gemm_k0", 120.0, 1.0, 1.0, 4096.0},
    [ND_GEMM_WAVE_FRAC] = {"wave_frac", 0.5, 1.0, 0.01, 1.0},
    [ND_GEMM_TILE_EXPONENT] = {"tile_exponent", 0.05, 1.5, 1e-4, 1.0},
    [ND_GEMM_HBM_FRAC] = {"gemm_hbm_frac", 0.8, 0.3, 0.05, 1.5},
    [ND_GEMM_KERNEL_S] = {"kernel_s", 3e-6, 0.5, 1e-8, 1e-3},
    [ND_GEMM_GROUPED_FRAC] = {"grouped_frac", 0.7, 0.3, 0.05, 1.5},
    [ND_GEMM_FP8_FRAC] = {"fp8_frac", 0.93, 0.2, 0.05, 1.5},
};

typedef struct gemm_row {
    nd_op op;
    nd_dtype dtype;
    double seconds;
} gemm_row;

/* Rows of one GPU: the fitted ones first, the tested ones behind. */
typedef struct gemm_table {
    const nd_gpu_spec *gpu;
    gemm_row *rows;
    int64_t count, train_count;
} gemm_table;

static nd_status read_count(const nd_csv *csv, size_t row, const char *name, int64_t missing, int64_t *out,
                            nd_error *err)
{
    *out = missing;
    ND_TRY(nd_csv_int(csv, row, name, 1, (int64_t)1 << 24, out, err));
    return *out > 0 ? ND_OK : nd_csv_fail(csv, row, err, "%s is missing", name);
}

static nd_status read_dtype(const nd_csv *csv, size_t row, const nd_gpu_spec *gpu, nd_dtype *out, nd_error *err)
{
    const char *text = nd_csv_text(csv, row, "dtype");
    nd_dtype dtype = ND_DTYPE_BF16;
    if (strcmp(text, "fp16") == 0) {
        dtype = ND_DTYPE_FP16;
    } else if (strcmp(text, "fp8") == 0) {
        dtype = ND_DTYPE_FP8;
    } else if (text[0] != '\0' && strcmp(text, "bf16") != 0) {
        return nd_csv_fail(csv, row, err, "dtype must be bf16, fp16 or fp8, got '%s'", text);
    }
    if (gpu->peak_flops_per_s[dtype] <= 0.0 || gpu->peak_flops_per_s[ND_DTYPE_BF16] <= 0.0) {
        return nd_csv_fail(csv, row, err, "gpu %s has no %s rate in its description", gpu->name, nd_dtype_name(dtype));
    }
    *out = dtype;
    return ND_OK;
}

static nd_status read_row(const nd_csv *csv, size_t row, const nd_gpu_spec *gpu, gemm_row *out, nd_error *err)
{
    nd_op op = {.kind = ND_OP_GEMM, .kernels = 1, .repeats = 1};
    ND_TRY(read_count(csv, row, "m", 0, &op.m, err));
    ND_TRY(read_count(csv, row, "n", 0, &op.n, err));
    ND_TRY(read_count(csv, row, "k", 0, &op.k, err));
    ND_TRY(read_count(csv, row, "groups", 1, &op.groups, err));
    ND_TRY(read_dtype(csv, row, gpu, &out->dtype, err));
    out->seconds = 0.0;
    ND_TRY(nd_csv_double(csv, row, "seconds", 1e-9, 1e4, &out->seconds, err));
    if (out->seconds <= 0.0) {
        return nd_csv_fail(csv, row, err, "seconds is missing");
    }
    double m = (double)op.m;
    double n = (double)op.n;
    double k = (double)op.k;
    op.flops = 2.0 * m * n * k * (double)op.groups;
    op.hbm_bytes = 2.0 * (m * k + k * n + m * n) * (double)op.groups;
    op.fp8 = out->dtype == ND_DTYPE_FP8;
    out->op = op;
    return ND_OK;
}

static bool is_of(const nd_csv *csv, size_t row, const nd_gpu_spec *gpu)
{
    return strcmp(nd_csv_text(csv, row, "gpu"), gpu->name) == 0;
}

static nd_status check_columns(const nd_csv *csv, nd_error *err)
{
    static const char *const known[] = {"gpu", "m", "n", "k", "seconds", "groups", "dtype"};
    ND_TRY(nd_csv_check_columns(csv, known, sizeof known / sizeof known[0], err));
    for (int i = 0; i < 5; i++) {
        ND_TRY(nd_csv_need_column(csv, known[i], err));
    }
    return ND_OK;
}

static nd_status read_table(const nd_csv *csv, gemm_table *table, nd_error *err)
{
    int64_t seen = 0;
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        if (!is_of(csv, row, table->gpu)) {
            continue;
        }
        /* every second row is kept out of the fit */
        int64_t place = seen % 2 == 0 ? seen / 2 : table->train_count + seen / 2;
        ND_TRY(read_row(csv, row, table->gpu, &table->rows[place], err));
        seen++;
    }
    return ND_OK;
}

static nd_status count_rows(const nd_csv *csv, gemm_table *table, nd_error *err)
{
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        table->count += is_of(csv, row, table->gpu) ? 1 : 0;
    }
    table->train_count = (table->count + 1) / 2;
    if (table->count < ROWS_MIN) {
        return nd_fail(err, ND_EINVAL, "%s: a fit of gpu '%s' needs at least %d rows, the table has %lld",
                       nd_csv_origin(csv), table->gpu->name, (int)ROWS_MIN, (long long)table->count);
    }
    return ND_OK;
}

static void predict_rows(const gemm_table *table, const double *values, int64_t first, int64_t count, double *predicted)
{
    nd_calibration calibration = {
        .gemm_frac = values[ND_GEMM_BURST_FRAC] * values[ND_GEMM_SUSTAINED_RATIO],
        .gemm_burst_frac = values[ND_GEMM_BURST_FRAC],
        .gemm_power_s = values[ND_GEMM_POWER_S],
        .gemm_k0 = values[ND_GEMM_K0],
        .wave_frac = values[ND_GEMM_WAVE_FRAC],
        .tile_exponent = values[ND_GEMM_TILE_EXPONENT],
        .gemm_hbm_frac = values[ND_GEMM_HBM_FRAC],
        .hbm_frac = values[ND_GEMM_HBM_FRAC],
        .kernel_s = values[ND_GEMM_KERNEL_S],
        .grouped_frac = values[ND_GEMM_GROUPED_FRAC],
        .fp8_frac = values[ND_GEMM_FP8_FRAC],
    };
    nd_train_spec train = {.precision = ND_DTYPE_FP8}; /* has the bf16 rate too */
    nd_kernel_model bf16_and_fp8 = nd_kernel_model_make(table->gpu, &calibration, &train);
    train.precision = ND_DTYPE_FP16;
    nd_kernel_model fp16 = nd_kernel_model_make(table->gpu, &calibration, &train);
    for (int64_t i = 0; i < count; i++) {
        const gemm_row *row = &table->rows[first + i];
        predicted[i] = nd_gemm_s(row->dtype == ND_DTYPE_FP16 ? &fp16 : &bf16_and_fp8, &row->op);
    }
}

static void predict_train(const double *values, double *predicted, void *user)
{
    const gemm_table *table = user;
    predict_rows(table, values, 0, table->train_count, predicted);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between ranks; `values` is sorted. */
static double quantile(const double *values, int64_t count, double q)
{
    double position = q * (double)(count - 1);
    int64_t low = (int64_t)position;
    int64_t high = low + 1 < count ? low + 1 : low;
    return values[low] + (values[high] - values[low]) * (position - (double)low);
}

/* Errors of rows first..first+count; `scratch` holds as many values twice. */
static nd_gemm_errors errors_of(const gemm_table *table, const double *values, int64_t first, int64_t count,
                                bool only_big, double *scratch)
{
    nd_gemm_errors errors = {0, 0.0, 0.0};
    double *kept = scratch + count;
    predict_rows(table, values, first, count, scratch);
    for (int64_t i = 0; i < count; i++) {
        const gemm_row *row = &table->rows[first + i];
        if (!only_big || (row->op.m >= BIG && row->op.n >= BIG && row->op.k >= BIG)) {
            kept[errors.count++] = fabs(scratch[i] / row->seconds - 1.0);
        }
    }
    if (errors.count > 0) {
        qsort(kept, (size_t)errors.count, sizeof kept[0], compare);
        errors.median_frac = quantile(kept, errors.count, 0.5);
        errors.p90_frac = quantile(kept, errors.count, 0.9);
    }
    return errors;
}

/* `scratch`: 2 x table->count values. */
static nd_status fit_table(gemm_table *table, double *scratch, nd_gemm_fit *out, nd_error *err)
{
    double *measured = scratch;
    double *log_sd = scratch + table->train_count;
    for (int64_t i = 0; i < table->train_count; i++) {
        measured[i] = table->rows[i].seconds;
        log_sd[i] = measurement_log_sd;
    }
    nd_fit_problem problem = {
        .parameters = parameters,
        .parameters_count = ND_GEMM_CONSTANT_COUNT,
        .measured = measured,
        .log_sd = log_sd,
        .measured_count = table->train_count,
        .model = predict_train,
        .user = table,
    };
    nd_gemm_fit fit;
    memset(&fit, 0, sizeof fit);
    ND_TRY(nd_fit(&problem, &fit.fit, NULL, NULL, err));
    const double *value = fit.fit.value;
    double variance = fit.fit.covariance[ND_GEMM_BURST_FRAC][ND_GEMM_BURST_FRAC] +
                      fit.fit.covariance[ND_GEMM_SUSTAINED_RATIO][ND_GEMM_SUSTAINED_RATIO] +
                      2.0 * fit.fit.covariance[ND_GEMM_BURST_FRAC][ND_GEMM_SUSTAINED_RATIO];
    fit.gemm_frac = value[ND_GEMM_BURST_FRAC] * value[ND_GEMM_SUSTAINED_RATIO];
    fit.gemm_frac_log_sd = sqrt(fmax(0.0, variance));
    int64_t train = table->train_count;
    int64_t test = table->count - train;
    fit.train = errors_of(table, value, 0, train, false, scratch);
    fit.train_big = errors_of(table, value, 0, train, true, scratch);
    fit.test = errors_of(table, value, train, test, false, scratch);
    fit.test_big = errors_of(table, value, train, test, true, scratch);
    *out = fit;
    return ND_OK;
}

nd_status nd_fit_gemm(const nd_csv *csv, const nd_gpu_spec *gpu, nd_gemm_fit *out, nd_error *err)
{
    gemm_table table = {.gpu = gpu};
    ND_TRY(check_columns(csv, err));
    ND_TRY(count_rows(csv, &table, err));
    table.rows = calloc((size_t)table.count + 1, sizeof table.rows[0]);
    double *scratch = calloc(2 * ((size_t)table.count + 1), sizeof scratch[0]);
    nd_status status = table.rows == NULL || scratch == NULL
                           ? nd_fail(err, ND_ENOMEM, "out of memory for %lld rows", (long long)table.count)
                           : read_table(csv, &table, err);
    if (status == ND_OK) {
        status = fit_table(&table, scratch, out, err);
    }
    free(scratch);
    free(table.rows);
    return status;
}

const char *nd_gemm_constant_name(nd_gemm_constant constant)
{
    assert(constant < ND_GEMM_CONSTANT_COUNT);
    return parameters[constant].name;
}
