/* Published measurements as a bound on the model: step times of "Reducing Activation Recomputation in Large Transformer
 * Models" (rows KO) and peak memory of SimuMax's and torchtitan's tables (rows SM, TT). Sources in the CSV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cost_model/published.h"
#include "tests/nd_test.h"

enum { ROWS_MAX = 256 };

static double ko_errors[ROWS_MAX], sm_errors[ROWS_MAX], tt_errors[ROWS_MAX];
static int ko_count, sm_count, tt_count;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void predict(const nd_published_run *run)
{
    static nd_cost_context context;
    nd_error err = {.message = ""};
    nd_estimate estimate;
    ND_ASSERT_OK(
        nd_cost_context_init(&run->model, &run->cluster, &run->train, &run->stack, &run->calibration, &context, &err));
    nd_estimate_layout(&context, &run->layout, &estimate);
    if (strncmp(run->id, "KO", 2) == 0) {
        ko_errors[ko_count++] = fabs(estimate.time.step_s / run->step_s - 1.0);
    }
    double memory_error = fabs(nd_published_memory(run, &estimate.memory) / run->peak_bytes - 1.0);
    if (run->peak_bytes > 0.0 && strncmp(run->id, "SM", 2) == 0) {
        sm_errors[sm_count++] = memory_error;
    } else if (run->peak_bytes > 0.0 && strncmp(run->id, "TT", 2) == 0) {
        tt_errors[tt_count++] = memory_error;
    }
}

static void test_every_row_is_predicted(void)
{
    static nd_published_run run;
    char why[256];
    int kind;
    FILE *csv = fopen(ND_TEST_DATA "/published_runs.csv", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    while ((kind = nd_published_next(csv, &run, why, sizeof why)) != 0) {
        if (kind < 0) {
            fprintf(stderr, "%s: %s\n", run.id, why);
        }
        CU_ASSERT_EQUAL(kind, 1);
        if (kind == 1) {
            predict(&run);
        }
    }
    (void)fclose(csv);
    CU_ASSERT_EQUAL(ko_count, 8);
    CU_ASSERT_EQUAL(sm_count, 43);
    CU_ASSERT_EQUAL(tt_count, 20);
}

static void test_recomputation_paper_step_times_err_at_most_5_percent_on_average(void)
{
    double sum = 0.0;
    for (int i = 0; i < ko_count; i++) {
        sum += ko_errors[i];
    }
    printf("mean error %.2f %% ", 100.0 * sum / ko_count);
    CU_ASSERT_TRUE(sum / ko_count <= 0.05);
}

static void median_is_at_most_4_percent(double *errors, int count)
{
    qsort(errors, (size_t)count, sizeof errors[0], compare);
    double median = (errors[(count - 1) / 2] + errors[count / 2]) / 2.0;
    printf("median error %.2f %% ", 100.0 * median);
    CU_ASSERT_TRUE(median <= 0.04);
}

static void test_peak_memory_of_megatron_runs_errs_at_most_4_percent_in_the_median(void)
{
    median_is_at_most_4_percent(sm_errors, sm_count);
}

static void test_peak_memory_of_torchtitan_runs_errs_at_most_4_percent_in_the_median(void)
{
    median_is_at_most_4_percent(tt_errors, tt_count);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_row_is_predicted),
        ND_TEST(test_recomputation_paper_step_times_err_at_most_5_percent_on_average),
        ND_TEST(test_peak_memory_of_megatron_runs_errs_at_most_4_percent_in_the_median),
        ND_TEST(test_peak_memory_of_torchtitan_runs_errs_at_most_4_percent_in_the_median),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/published", cases);
}
