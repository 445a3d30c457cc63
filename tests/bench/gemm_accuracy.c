/* gemm_accuracy TABLE.csv [GPU...]: fits the GEMM constants of every GPU of a table of measured times (columns of
 * cost_model/fit_kernels.h) and prints constants, errors, and the cost of one prediction. A measuring program, not a
 * test; docs/MODEL.md, "GEMM", quotes it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cost_model/fit_kernels.h"
#include "cost_model/kernels.h"

enum { GPUS_MAX = 32, TIMED_CALLS = 2000000 };

static void print_errors(const char *name, const nd_gemm_errors *e)
{
    printf("  %-22s n=%4lld  median %5.1f %%  p90 %5.1f %%\n", name, (long long)e->count, 100.0 * e->median_frac,
           100.0 * e->p90_frac);
}

static void print_fit(const char *gpu, const nd_gemm_fit *fit)
{
    printf("%s: %d rounds, reduced chi2 %.2f, rcond %.1e\n", gpu, (int)fit->fit.rounds, fit->fit.reduced_chi2,
           fit->fit.rcond);
    for (int i = 0; i < ND_GEMM_CONSTANT_COUNT; i++) {
        printf("  %-28s %-10.4g +- %4.1f %%%s\n", nd_gemm_constant_name((nd_gemm_constant)i), fit->fit.value[i],
               100.0 * fit->fit.log_sd[i], fit->fit.identified[i] ? "" : "  not identified, prior kept");
    }
    printf("  %-28s %-10.4g +- %4.1f %%\n", "gemm_frac", fit->gemm_frac, 100.0 * fit->gemm_frac_log_sd);
    print_errors("train", &fit->train);
    print_errors("train, m n k >= 1024", &fit->train_big);
    print_errors("test", &fit->test);
    print_errors("test, m n k >= 1024", &fit->test_big);
}

static int fit_gpu(const nd_csv *csv, const char *name)
{
    nd_error err;
    nd_gpu_spec gpu;
    nd_gemm_fit fit;
    if (nd_gpu_find(name, &gpu, &err) != ND_OK || nd_fit_gemm(csv, &gpu, &fit, &err) != ND_OK) {
        fprintf(stderr, "gemm_accuracy: %s\n", err.message);
        return 1;
    }
    print_fit(name, &fit);
    return 0;
}

static void print_cost_of_prediction(void)
{
    nd_error err;
    nd_gpu_spec gpu;
    nd_calibration calibration;
    if (nd_gpu_find("h100", &gpu, &err) != ND_OK || nd_calibration_for_gpu(&gpu, &calibration, &err) != ND_OK) {
        return;
    }
    nd_train_spec train = {.precision = ND_DTYPE_BF16};
    nd_kernel_model model = nd_kernel_model_make(&gpu, &calibration, &train);
    nd_op op = {.kind = ND_OP_GEMM, .n = 4096, .k = 4096, .groups = 1};
    double sum = 0.0;
    clock_t start = clock();
    for (int64_t i = 0; i < TIMED_CALLS; i++) {
        op.m = 64 + (i & 8191); /* small outputs take the longer way through split k */
        op.hbm_bytes = 2.0 * (double)(op.m * (op.n + op.k) + op.n * op.k);
        sum += nd_gemm_s(&model, &op);
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("nd_gemm_s: %.0f ns per call (mean prediction %.3g s)\n", 1e9 * seconds / TIMED_CALLS, sum / TIMED_CALLS);
}

/* Names of the table's GPUs in order of appearance. */
static int list_gpus(const nd_csv *csv, const char *names[GPUS_MAX])
{
    int count = 0;
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        const char *name = nd_csv_text(csv, row, "gpu");
        bool seen = false;
        for (int i = 0; i < count && !seen; i++) {
            seen = strcmp(names[i], name) == 0;
        }
        if (!seen && count < GPUS_MAX) {
            names[count++] = name;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    nd_error err = {.message = "usage: gemm_accuracy TABLE.csv [GPU...]"};
    nd_csv *csv = NULL;
    if (argc < 2 || nd_csv_load(argv[1], &csv, &err) != ND_OK) {
        fprintf(stderr, "gemm_accuracy: %s\n", err.message);
        return 2;
    }
    const char *names[GPUS_MAX];
    int count = list_gpus(csv, names);
    int failed = 0;
    for (int i = 0; i < (argc > 2 ? argc - 2 : count); i++) {
        failed += fit_gpu(csv, argc > 2 ? argv[2 + i] : names[i]);
    }
    nd_csv_free(csv);
    print_cost_of_prediction();
    return failed > 0 ? 1 : 0;
}
