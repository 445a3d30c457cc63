/* collectives_accuracy FILE.csv [--constants]: how well the model fits measured collectives.
 *
 * Prints, for a table with the columns of cost_model/measurements/collectives.csv, the errors with shipped constants,
 * with constants fitted to all of it, and with constants fitted without the system at hand; per series, family and
 * link.
 * --constants prints the fitted constants with their standard errors instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fit_collectives.h"

static const double large_bytes = 1048576.0;

/* Which points a line of the report is about. */
typedef struct selection {
    const nd_collective_model *model;
    const bool *covered;                  /* NULL: all */
    int32_t family, link, system, series; /* -1: any; link -2: own links */
    int32_t collective;                   /* -1: any */
    double min_bytes;
} selection;

static bool selected(const nd_collective_data *data, int64_t point, const void *user)
{
    const selection *s = user;
    int32_t index = data->points[point].series;
    const nd_collective_series *series = &data->series[index];
    int32_t link = nd_collective_series_link(data, s->model, index);
    return (s->series < 0 || s->series == index) && (s->family < 0 || s->family == series->family) &&
           (s->system < 0 || s->system == series->system) && data->points[point].bytes >= s->min_bytes &&
           (s->collective < 0 || s->collective == (int32_t)series->collective) &&
           (s->link == -1 || (s->link == -2 ? link < 0 : link == s->link)) && (s->covered == NULL || s->covered[point]);
}

typedef struct report {
    const nd_collective_data *data;
    const nd_collective_model *model;
    double *shipped, *fitted, *left_out;
    bool *covered;
} report;

static void print_pair(const report *r, const double *seconds, selection s, const bool *covered)
{
    double median = nan("");
    double p90 = nan("");
    s.covered = covered;
    int64_t count = nd_collective_errors(r->data, seconds, selected, &s, &median, &p90);
    if (count > 0) {
        (void)printf(" %7.1f /%6.1f", median * 100.0, p90 * 100.0);
    } else {
        (void)printf(" %15s", "-");
    }
}

static void print_line(const report *r, const char *name, selection s)
{
    double median = nan("");
    double p90 = nan("");
    s.model = r->model;
    s.covered = NULL;
    int64_t count = nd_collective_errors(r->data, r->shipped, selected, &s, &median, &p90);
    if (count == 0) {
        return;
    }
    (void)printf("%-58s %5lld", name, (long long)count);
    print_pair(r, r->shipped, s, NULL);
    print_pair(r, r->fitted, s, NULL);
    print_pair(r, r->left_out, s, r->covered);
    s.min_bytes = large_bytes;
    print_pair(r, r->fitted, s, NULL);
    print_pair(r, r->left_out, s, r->covered);
    (void)printf("\n");
}

static void print_families(const report *r, selection all)
{
    for (int32_t i = 0; i < r->data->families_count; i++) {
        char name[96];
        selection one = all;
        one.family = i;
        (void)snprintf(name, sizeof name, "family %s", r->model->families[i].name);
        print_line(r, name, one);
        one.link = -2;
        (void)snprintf(name, sizeof name, "family %s, own links", r->model->families[i].name);
        print_line(r, name, one);
        for (one.collective = 0; one.collective < ND_COLLECTIVE_COUNT; one.collective++) {
            (void)snprintf(name, sizeof name, "family %s, own links, %s", r->model->families[i].name,
                           nd_collective_name((nd_collective)one.collective));
            print_line(r, name, one);
        }
    }
}

static void print_report(const report *r)
{
    const selection all = {r->model, NULL, -1, -1, -1, -1, -1, 0.0};
    (void)printf("|error| in %%, median / 90th percentile%21s%5s%16s%16s%16s%16s%16s\n", "", "rows", "shipped",
                 "fitted", "left out", "fitted >=1MiB", "left out >=1MiB");
    for (int32_t i = 0; i < r->data->series_count; i++) {
        const nd_collective_series *s = &r->data->series[i];
        char name[192];
        selection one = all;
        one.series = i;
        (void)snprintf(name, sizeof name, "%-18.18s %-14s %5lld GPUs %4lld nodes %s", r->data->systems[s->system].name,
                       nd_collective_name(s->collective), (long long)s->group.ranks, (long long)s->nodes, s->version);
        print_line(r, name, one);
    }
    for (int32_t i = 0; i < r->data->systems_count; i++) {
        char name[160];
        selection one = all;
        one.system = i;
        (void)snprintf(name, sizeof name, "system %s", r->data->systems[i].name);
        print_line(r, name, one);
    }
    print_families(r, all);
    for (int32_t i = 0; i < r->model->links_count; i++) {
        char name[96];
        selection one = all;
        one.link = i;
        (void)snprintf(name, sizeof name, "link %s", r->model->links[i].type);
        print_line(r, name, one);
    }
    print_line(r, "all", all);
    for (int32_t i = 0; i < r->data->skips_count; i++) {
        const nd_collective_skip *skip = &r->data->skips[i];
        (void)printf("left out: %lld rows of %s: %s\n", (long long)skip->rows, skip->cluster, skip->reason);
    }
}

/* Median over the series of each series' own median. */
static void print_series_median(const report *r)
{
    double sum[3] = {0.0, 0.0, 0.0};
    int32_t good[3] = {0, 0, 0};
    for (int32_t i = 0; i < r->data->series_count; i++) {
        const double *seconds[3] = {r->shipped, r->fitted, r->left_out};
        for (int k = 0; k < 3; k++) {
            double median = nan("");
            double p90 = nan("");
            selection one = {r->model, NULL, -1, -1, -1, i, -1, 0.0};
            (void)nd_collective_errors(r->data, seconds[k], selected, &one, &median, &p90);
            sum[k] += median;
            good[k] += median <= 0.05;
        }
    }
    (void)printf(
        "%d series: mean of medians %.1f %% shipped, %.1f %% fitted, %.1f %% left out; at most 5 %%: %d, %d, %d\n",
        r->data->series_count, sum[0] / r->data->series_count * 100.0, sum[1] / r->data->series_count * 100.0,
        sum[2] / r->data->series_count * 100.0, good[0], good[1], good[2]);
}

static void print_constants(const nd_collective_model *model)
{
    for (int32_t i = 0; i < model->fitted_count; i++) {
        const nd_fitted_constant *c = &model->fitted[i];
        (void)printf("%-48s %12.4g +- %5.1f %%%s\n", c->name, c->value, c->log_sd * 100.0,
                     c->identified ? "" : "  not identified, kept");
    }
}

static nd_status run(const char *path, bool constants, nd_error *err)
{
    nd_csv *csv = NULL;
    nd_collective_data *data = NULL;
    nd_collective_model *shipped = calloc(1, sizeof *shipped);
    nd_collective_model *fitted = calloc(1, sizeof *fitted);
    double *seconds = NULL;
    bool *covered = NULL;
    nd_status status = shipped == NULL || fitted == NULL ? nd_fail(err, ND_ENOMEM, "out of memory") : ND_OK;
    status = status == ND_OK ? nd_csv_load(path, &csv, err) : status;
    status = status == ND_OK ? nd_collective_data_read(csv, &data, err) : status;
    if (status == ND_OK) {
        seconds = calloc((size_t)data->points_count * 3, sizeof *seconds);
        covered = calloc((size_t)data->points_count, sizeof *covered);
        status = seconds == NULL || covered == NULL ? nd_fail(err, ND_ENOMEM, "out of memory") : ND_OK;
    }
    status = status == ND_OK ? nd_collective_model_shipped(data, shipped, err) : status;
    if (status == ND_OK) {
        memcpy(fitted, shipped, sizeof *fitted);
        status = nd_collective_fit(data, fitted, err);
    }
    if (status == ND_OK && constants) {
        print_constants(fitted);
    } else if (status == ND_OK) {
        int64_t n = data->points_count;
        report r = {data, fitted, seconds, seconds + n, seconds + 2 * n, covered};
        status = nd_collective_model_predict(data, shipped, r.shipped, err);
        status = status == ND_OK ? nd_collective_model_predict(data, fitted, r.fitted, err) : status;
        status = status == ND_OK ? nd_collective_leave_one_out(data, shipped, r.left_out, covered, err) : status;
        if (status == ND_OK) {
            print_report(&r);
            print_series_median(&r);
        }
    }
    free(seconds);
    free(covered);
    free(shipped);
    free(fitted);
    nd_collective_data_free(data);
    nd_csv_free(csv);
    return status;
}

int main(int argc, char **argv)
{
    nd_error err = {.message = ""};
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--constants") != 0)) {
        (void)fprintf(stderr, "usage: collectives_accuracy FILE.csv [--constants]\n");
        return 2;
    }
    if (run(argv[1], argc == 3, &err) != ND_OK) {
        (void)fprintf(stderr, "collectives_accuracy: %s\n", err.message);
        return 1;
    }
    return 0;
}
