/* ndplan_accuracy RUNS.csv [CALIBRATION.json]: predicts every row and prints errors by source (the prefix of the id).
 * ND_ACCURACY_ROWS=1 prints every row, ND_ACCURACY_SVG=FILE draws docs/accuracy.svg.
 * A measuring program, not a test: tests/cost_model/test_published.c holds the bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cost_model/accuracy_svg.h"
#include "tests/cost_model/published.h"

enum { ROWS_MAX = 4096, SOURCES_MAX = 64 };

typedef struct result {
    char id[32];
    double time_error, memory_error; /* predicted / measured - 1; NAN when not measured */
} result;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, int count, double q)
{
    if (count == 0) {
        return nan("");
    }
    qsort(values, (size_t)count, sizeof values[0], compare);
    double position = q * (double)(count - 1);
    int low = (int)position;
    int high = low + 1 < count ? low + 1 : low;
    return values[low] + (values[high] - values[low]) * (position - low);
}

static void print_source(const result *rows, int count, const char *source, size_t length)
{
    double times[ROWS_MAX];
    double memories[ROWS_MAX];
    int time_count = 0;
    int memory_count = 0;
    double sum = 0.0;
    double bias = 0.0;
    for (int i = 0; i < count; i++) {
        if (strncmp(rows[i].id, source, length) != 0) {
            continue;
        }
        if (!isnan(rows[i].time_error)) {
            times[time_count++] = fabs(rows[i].time_error);
            sum += fabs(rows[i].time_error);
            bias += rows[i].time_error;
        }
        if (!isnan(rows[i].memory_error)) {
            memories[memory_count++] = fabs(rows[i].memory_error);
        }
    }
    printf("%-8.*s time n=%3d mean %5.1f %% median %5.1f %% p90 %5.1f %% bias %+5.1f %%", (int)length, source,
           time_count, 100.0 * sum / time_count, 100.0 * quantile(times, time_count, 0.5),
           100.0 * quantile(times, time_count, 0.9), 100.0 * bias / time_count);
    printf(" | memory n=%3d median %5.1f %% p90 %5.1f %%\n", memory_count,
           100.0 * quantile(memories, memory_count, 0.5), 100.0 * quantile(memories, memory_count, 0.9));
}

static void print_by_source(const result *rows, int count)
{
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(rows[i].id, "-0123456789");
        bool seen = false;
        for (int j = 0; j < i && !seen; j++) {
            seen = strncmp(rows[i].id, rows[j].id, length + 1) == 0;
        }
        if (!seen) {
            print_source(rows, count, rows[i].id, length);
        }
    }
}

static void print_row(const nd_published_run *run, const nd_estimate *e, const result *r)
{
    char layout[256];
    (void)nd_layout_format(&run->layout, layout, sizeof layout);
    printf("%-8s %-18s %-15s step %8.3f s (measured %8.3f, %+5.1f %%)", run->id, run->model.name, run->cluster.gpu.name,
           e->time.step_s, run->step_s, 100.0 * r->time_error);
    printf(" memory %6.2f GiB (measured %6.2f, %+5.1f %%) %s\n", nd_published_memory(run, &e->memory) / 1073741824.0,
           run->peak_bytes / 1073741824.0, 100.0 * r->memory_error, layout);
}

int main(int argc, char **argv)
{
    static nd_published_run run;
    static nd_cost_context context;
    static result rows[ROWS_MAX];
    static nd_accuracy_point points[ROWS_MAX];
    int points_count = 0;
    static nd_calibration own;
    nd_error err;
    char why[256];
    int count = 0;
    int kind;
    bool verbose = getenv("ND_ACCURACY_ROWS") != NULL;
    FILE *csv = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (csv == NULL || (argc > 2 && nd_calibration_load(argv[2], &own, &err) != ND_OK)) {
        fprintf(stderr, "usage: ndplan_accuracy RUNS.csv [CALIBRATION.json]\n");
        return 2;
    }
    while ((kind = nd_published_next(csv, &run, why, sizeof why)) != 0 && count < ROWS_MAX) {
        nd_estimate estimate;
        if (kind < 0) {
            fprintf(stderr, "%s: not predicted: %s\n", run.id, why);
            continue;
        }
        if (argc > 2) {
            run.calibration = own;
        }
        if (nd_cost_context_init(&run.model, &run.cluster, &run.train, &run.stack, &run.calibration, &context, &err) !=
            ND_OK) {
            fprintf(stderr, "%s: not predicted: %s\n", run.id, err.message);
            continue;
        }
        nd_estimate_layout(&context, &run.layout, &estimate);
        result *r = &rows[count++];
        (void)snprintf(r->id, sizeof r->id, "%s", run.id);
        r->time_error = run.step_s > 0.0 ? estimate.time.step_s / run.step_s - 1.0 : nan("");
        r->memory_error =
            run.peak_bytes > 0.0 ? nd_published_memory(&run, &estimate.memory) / run.peak_bytes - 1.0 : nan("");
        if (run.step_s > 0.0) {
            nd_accuracy_point *point = &points[points_count++];
            (void)snprintf(point->source, sizeof point->source, "%.2s", run.id);
            point->measured_s = run.step_s;
            point->predicted_s = estimate.time.step_s;
        }
        if (verbose) {
            print_row(&run, &estimate, r);
        }
    }
    (void)fclose(csv);
    print_by_source(rows, count);
    FILE *svg = getenv("ND_ACCURACY_SVG") != NULL ? fopen(getenv("ND_ACCURACY_SVG"), "w") : NULL;
    if (svg != NULL) {
        nd_accuracy_svg(svg, points, points_count);
        (void)fclose(svg);
    }
    return count > 0 ? 0 : 1;
}
