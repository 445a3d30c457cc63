/* The accuracy gate: errors on the published runs that the program carries must not become worse than those in
 * data/accuracy_baseline.csv (by source and class) by more than a stated margin. data/accuracy_rows.csv holds the
 * errors of single runs, to show which of them moved. After a change that is meant, ND_UPDATE_BASELINE=1 writes both
 * anew. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fitted.h"
#include "cost_model/measured_table.h"
#include "cost_model/validation.h"
#include "tests/nd_test.h"

#define BASELINE ND_TEST_DATA "/accuracy_baseline.csv"
#define ROWS     ND_TEST_DATA "/accuracy_rows.csv"

static const double margin_frac = 0.01;     /* a median may get worse by one percentage point, */
static const double margin_relative = 0.10; /* or by a tenth of itself, whichever is more */

static nd_run_set set;
static nd_validation validation;
static nd_validation_groups groups;

static void load(void)
{
    static nd_fitted fitted;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_fitted_shipped(&fitted, &err));
    ND_ASSERT_OK(nd_measured_builtin(&csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    ND_ASSERT_OK(nd_run_set_load(csv, &fitted, &set, &err));
    ND_ASSERT_OK(nd_validation_create(&set, &validation, &err));
    ND_ASSERT_OK(nd_validation_group_by(&validation, ND_VALIDATION_BY_SOURCE, &groups, &err));
    nd_csv_free(csv);
    CU_ASSERT_TRUE_FATAL(groups.count > 0);
}

/* One line of the baseline. */
typedef struct expected {
    char source[24];
    nd_run_class kind;
    int64_t rows, memory_rows;
    double median, p90, memory_median, memory_p90; /* NAN: empty */
} expected;

static expected read_expected(const nd_csv *csv, size_t row)
{
    expected e = {.median = nan(""), .p90 = nan(""), .memory_median = nan(""), .memory_p90 = nan("")};
    nd_error err = {.message = ""};
    (void)snprintf(e.source, sizeof e.source, "%s", nd_csv_text(csv, row, "source"));
    e.kind = strcmp(nd_csv_text(csv, row, "class"), "hard") == 0 ? ND_RUNS_HARD : ND_RUNS_DENSE;
    ND_ASSERT_OK(nd_csv_int(csv, row, "rows", 0, INT64_MAX, &e.rows, &err));
    ND_ASSERT_OK(nd_csv_int(csv, row, "memory_rows", 0, INT64_MAX, &e.memory_rows, &err));
    ND_ASSERT_OK(nd_csv_double(csv, row, "median_abs", 0.0, 1e9, &e.median, &err));
    ND_ASSERT_OK(nd_csv_double(csv, row, "p90_abs", 0.0, 1e9, &e.p90, &err));
    ND_ASSERT_OK(nd_csv_double(csv, row, "memory_median_abs", 0.0, 1e9, &e.memory_median, &err));
    ND_ASSERT_OK(nd_csv_double(csv, row, "memory_p90_abs", 0.0, 1e9, &e.memory_p90, &err));
    return e;
}

/* Empty for what does not exist, so that the file reads back. */
static void put(FILE *file, double value)
{
    if (isnan(value)) {
        fputc(',', file);
    } else {
        fprintf(file, ",%.6f", value);
    }
}

static void write_baseline(void)
{
    FILE *file = fopen(BASELINE, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("source,class,rows,median_abs,p90_abs,memory_rows,memory_median_abs,memory_p90_abs\n", file);
    for (int64_t i = 0; i < groups.count; i++) {
        for (int kind = ND_RUNS_DENSE; kind <= ND_RUNS_HARD; kind++) {
            const nd_error_summary *s = &groups.groups[i].of[kind];
            if (s->rows + s->memory_rows > 0) {
                fprintf(file, "%s,%s,%lld", groups.groups[i].name, nd_run_class_name((nd_run_class)kind),
                        (long long)s->rows);
                put(file, s->median_abs);
                put(file, s->p90_abs);
                fprintf(file, ",%lld", (long long)s->memory_rows);
                put(file, s->memory_median_abs);
                put(file, s->memory_p90_abs);
                fputc('\n', file);
            }
        }
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static void write_rows(void)
{
    FILE *file = fopen(ROWS, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("id,error_frac,memory_error_frac\n", file);
    for (int64_t i = 0; i < validation.count; i++) {
        const nd_validation_row *row = &validation.rows[i];
        if (row->scored) {
            fputs(row->run->id, file);
            put(file, row->error_frac);
            put(file, row->memory_error_frac);
            fputc('\n', file);
        }
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static const nd_error_summary *find_summary(const expected *e)
{
    for (int64_t i = 0; i < groups.count; i++) {
        if (strcmp(groups.groups[i].name, e->source) == 0) {
            return &groups.groups[i].of[e->kind];
        }
    }
    return NULL;
}

static const nd_validation_row *find_row(const char *id)
{
    for (int64_t i = 0; i < validation.count; i++) {
        if (strcmp(validation.rows[i].run->id, id) == 0) {
            return &validation.rows[i];
        }
    }
    return NULL;
}

typedef struct moved_row {
    const nd_validation_row *row;
    bool memory;
    double before, now;
} moved_row;

static double worse_by(const moved_row *m)
{
    return fabs(m->now) - fabs(m->before);
}

static int compare_moved(const void *a, const void *b)
{
    double x = worse_by(a);
    double y = worse_by(b);
    return (x < y) - (x > y);
}

/* Add the run's step or memory when it is of the source and class that failed. */
static size_t add_moved(const expected *e, bool memory, const nd_csv *csv, size_t line, moved_row *moved, size_t count)
{
    nd_error err = {.message = ""};
    const nd_validation_row *row = find_row(nd_csv_text(csv, line, "id"));
    double before = nan("");
    ND_ASSERT_OK(nd_csv_double(csv, line, memory ? "memory_error_frac" : "error_frac", -1.0, 1e9, &before, &err));
    if (row == NULL || isnan(before) || strcmp(row->run->source, e->source) != 0 ||
        row->hard != (e->kind == ND_RUNS_HARD)) {
        return count;
    }
    moved[count] = (moved_row){row, memory, before, memory ? row->memory_error_frac : row->error_frac};
    return count + 1;
}

/* The runs behind a median that got worse, those that moved most first. */
static void print_moved(const expected *e, bool memory)
{
    enum { SHOWN = 10 };
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_load(ROWS, &csv, &err));
    if (csv == NULL) {
        return;
    }
    size_t count = 0;
    moved_row *moved = calloc(nd_csv_rows(csv) + 1, sizeof moved[0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(moved);
    for (size_t line = 0; line < nd_csv_rows(csv); line++) {
        count = add_moved(e, memory, csv, line, moved, count);
    }
    qsort(moved, count, sizeof moved[0], compare_moved);
    for (size_t i = 0; i < count && i < SHOWN && worse_by(&moved[i]) > 0.0005; i++) { /* below: rounding of the file */
        fprintf(stderr, "    %s %s: error %+.1f %%, was %+.1f %%\n", moved[i].row->run->id, memory ? "memory" : "step",
                100.0 * moved[i].now, 100.0 * moved[i].before);
    }
    free(moved);
    nd_csv_free(csv);
}

static bool is_worse(double now, double before)
{
    return !(now <= before + fmax(margin_frac, margin_relative * before));
}

static void compare_median(const expected *e, bool memory, double now, double before)
{
    bool worse = isnan(before) != isnan(now) || (!isnan(before) && is_worse(now, before));
    CU_ASSERT_FALSE(worse);
    if (worse) {
        fprintf(stderr, "%s %s: median error of %s is %.2f %%, was %.2f %%\n", e->source, nd_run_class_name(e->kind),
                memory ? "memory" : "step time", 100.0 * now, 100.0 * before);
        print_moved(e, memory);
    }
}

static void compare_source(const expected *e)
{
    const nd_error_summary *now = find_summary(e);
    CU_ASSERT_PTR_NOT_NULL(now);
    if (now == NULL) {
        fprintf(stderr, "source %s is not predicted any more\n", e->source);
        return;
    }
    /* dropping runs is no way to better figures, and new ones belong into the baseline */
    CU_ASSERT_EQUAL(now->rows, e->rows);
    CU_ASSERT_EQUAL(now->memory_rows, e->memory_rows);
    if (now->rows != e->rows || now->memory_rows != e->memory_rows) {
        fprintf(stderr, "%s %s: %lld steps and %lld memory readings are scored, were %lld and %lld\n", e->source,
                nd_run_class_name(e->kind), (long long)now->rows, (long long)now->memory_rows, (long long)e->rows,
                (long long)e->memory_rows);
    }
    compare_median(e, false, now->median_abs, e->median);
    compare_median(e, true, now->memory_median_abs, e->memory_median);
}

static void test_no_source_is_predicted_worse_than_before(void)
{
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    if (getenv("ND_UPDATE_BASELINE") != NULL) {
        write_baseline();
        write_rows();
    }
    ND_ASSERT_OK(nd_csv_load(BASELINE, &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    size_t classes = 0;
    for (int64_t i = 0; i < groups.count; i++) {
        for (int kind = ND_RUNS_DENSE; kind <= ND_RUNS_HARD; kind++) {
            classes += groups.groups[i].of[kind].rows + groups.groups[i].of[kind].memory_rows > 0;
        }
    }
    CU_ASSERT_EQUAL(nd_csv_rows(csv), classes); /* a source that is not in the baseline could hide anything */
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        expected e = read_expected(csv, row);
        compare_source(&e);
    }
    nd_csv_free(csv);
}

static void test_the_margin_lets_noise_pass_and_nothing_more(void)
{
    CU_ASSERT_FALSE(is_worse(0.0399, 0.03));
    CU_ASSERT_TRUE(is_worse(0.0401, 0.03));
    CU_ASSERT_FALSE(is_worse(0.329, 0.30));
    CU_ASSERT_TRUE(is_worse(0.331, 0.30));
    CU_ASSERT_FALSE(is_worse(0.0, 0.30)); /* better is fine */
    CU_ASSERT_TRUE(is_worse(nan(""), 0.30));
}

/* "Reducing Activation Recomputation in Large Transformer Models": full and selective recompute, 22B to 1T. */
static void test_recomputation_paper_step_times_err_at_most_5_percent_on_average(void)
{
    double sum = 0.0;
    int64_t count = 0;
    for (int64_t i = 0; i < validation.count; i++) {
        const nd_validation_row *row = &validation.rows[i];
        if (row->scored && strcmp(row->run->source, "KO") == 0 && !isnan(row->error_frac)) {
            sum += fabs(row->error_frac);
            count++;
        }
    }
    CU_ASSERT_EQUAL(count, 8);
    printf("mean error %.2f %% ", 100.0 * sum / (double)count);
    CU_ASSERT_TRUE(sum / (double)count <= 0.05);
}

static void memory_median_is_at_most_4_percent(const char *source, int64_t rows)
{
    for (int64_t i = 0; i < groups.count; i++) {
        if (strcmp(groups.groups[i].name, source) == 0) {
            const nd_error_summary *s = &groups.groups[i].of[ND_RUNS_ALL];
            CU_ASSERT_EQUAL(s->memory_rows, rows);
            printf("median error %.2f %% ", 100.0 * s->memory_median_abs);
            CU_ASSERT_TRUE(s->memory_median_abs <= 0.04);
            return;
        }
    }
    CU_FAIL("the source is missing");
}

static void test_peak_memory_of_megatron_runs_errs_at_most_4_percent_in_the_median(void)
{
    memory_median_is_at_most_4_percent("SM", 43);
}

static void test_peak_memory_of_torchtitan_runs_errs_at_most_4_percent_in_the_median(void)
{
    memory_median_is_at_most_4_percent("TT", 20);
}

static void release(void)
{
    nd_validation_groups_free(&groups);
    nd_validation_free(&validation);
    nd_run_set_free(&set);
    CU_ASSERT_EQUAL(set.count, 0);
}

int main(void)
{
    static const nd_test_case cases[] = {
        {"the published runs are predicted", load},
        ND_TEST(test_no_source_is_predicted_worse_than_before),
        ND_TEST(test_the_margin_lets_noise_pass_and_nothing_more),
        ND_TEST(test_recomputation_paper_step_times_err_at_most_5_percent_on_average),
        ND_TEST(test_peak_memory_of_megatron_runs_errs_at_most_4_percent_in_the_median),
        ND_TEST(test_peak_memory_of_torchtitan_runs_errs_at_most_4_percent_in_the_median),
        {"everything is freed", release},
        {NULL, NULL},
    };
    return nd_test_main("cost_model/accuracy_gate", cases);
}
