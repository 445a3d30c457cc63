/* Summaries of a validation: by group, over all sources, and after one anchor step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/validation.h"

enum { ANCHORS_MAX = 1000 }; /* of one source; more are taken evenly spaced */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double nd_values_quantile(double *values, int64_t count, double q)
{
    if (count == 0) {
        return (double)NAN;
    }
    qsort(values, (size_t)count, sizeof values[0], compare_doubles);
    double position = q * (double)(count - 1);
    int64_t low = (int64_t)position;
    int64_t high = low + 1 < count ? low + 1 : low;
    return values[low] + (values[high] - values[low]) * (position - (double)low);
}

const char *nd_validation_key_name(nd_validation_key key)
{
    static const char *const names[] = {
#define ND_VALIDATION_KEY_NAME(name, text) text,
        ND_VALIDATION_KEY_LIST(ND_VALIDATION_KEY_NAME)
#undef ND_VALIDATION_KEY_NAME
    };
    return names[key];
}

const char *nd_run_class_name(nd_run_class kind)
{
    static const char *const names[ND_RUN_CLASS_COUNT] = {
        [ND_RUNS_ALL] = "all", [ND_RUNS_DENSE] = "dense", [ND_RUNS_HARD] = "hard"};
    return names[kind];
}

/* A scored row and the text that it is grouped by. */
typedef struct keyed_row {
    const char *key;
    const nd_validation_row *row;
} keyed_row;

/* Scored rows sorted by key, and room for as many figures. */
typedef struct keyed_rows {
    keyed_row *rows;
    double *values;
    int64_t count;
} keyed_rows;

static void free_keyed(keyed_rows *keyed)
{
    free(keyed->rows);
    free(keyed->values);
}

static const char *key_of(const nd_measured_run *run, nd_validation_key key)
{
    switch (key) {
    case ND_VALIDATION_BY_GPU:
        return run->cluster.gpu.name;
    case ND_VALIDATION_BY_FRAMEWORK:
        return run->framework[0] != '\0' ? run->framework : "not stated";
    case ND_VALIDATION_BY_MODEL:
        return run->model.name;
    case ND_VALIDATION_BY_SOURCE:
    case ND_VALIDATION_KEY_COUNT:
        break;
    }
    return run->source;
}

static int compare_keys(const void *a, const void *b)
{
    const keyed_row *x = a;
    const keyed_row *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

static nd_status sort_by_key(const nd_validation *validation, nd_validation_key key, keyed_rows *out, nd_error *err)
{
    keyed_rows keyed = {
        .rows = calloc((size_t)validation->count + 1, sizeof keyed.rows[0]),
        .values = calloc((size_t)validation->count + 1, sizeof keyed.values[0]),
    };
    if (keyed.rows == NULL || keyed.values == NULL) {
        free_keyed(&keyed);
        return nd_fail(err, ND_ENOMEM, "out of memory for the summary of %lld runs", (long long)validation->count);
    }
    for (int64_t i = 0; i < validation->count; i++) {
        const nd_validation_row *row = &validation->rows[i];
        if (row->scored) {
            keyed.rows[keyed.count++] = (keyed_row){key_of(row->run, key), row};
        }
    }
    qsort(keyed.rows, (size_t)keyed.count, sizeof keyed.rows[0], compare_keys);
    *out = keyed;
    return ND_OK;
}

static int64_t end_of_group(const keyed_rows *keyed, int64_t first)
{
    int64_t end = first;
    while (end < keyed->count && strcmp(keyed->rows[end].key, keyed->rows[first].key) == 0) {
        end++;
    }
    return end;
}

static bool in_class(const nd_validation_row *row, nd_run_class kind)
{
    return kind == ND_RUNS_ALL || row->hard == (kind == ND_RUNS_HARD);
}

typedef double (*row_figure)(const nd_validation_row *row); /* NAN: the row has none */

static double signed_error(const nd_validation_row *row)
{
    return row->error_frac;
}

static double abs_error(const nd_validation_row *row)
{
    return fabs(row->error_frac);
}

static double signed_memory_error(const nd_validation_row *row)
{
    return row->memory_error_frac;
}

static double abs_memory_error(const nd_validation_row *row)
{
    return fabs(row->memory_error_frac);
}

static double inside(double value, double low, double high)
{
    return value >= low && value <= high ? 1.0 : 0.0;
}

static double is_covered(const nd_validation_row *row)
{
    return isnan(row->error_frac) ? (double)NAN : inside(row->run->step_s, row->low_s, row->high_s);
}

static double is_memory_covered(const nd_validation_row *row)
{
    return isnan(row->memory_error_frac) ? (double)NAN
                                         : inside(row->run->peak_bytes, row->peak_low_bytes, row->peak_high_bytes);
}

/* Collect a figure of the rows [first, end) of a class into keyed->values. */
static int64_t collect(keyed_rows *keyed, int64_t first, int64_t end, nd_run_class kind, row_figure figure)
{
    int64_t count = 0;
    for (int64_t i = first; i < end; i++) {
        double value = in_class(keyed->rows[i].row, kind) ? figure(keyed->rows[i].row) : (double)NAN;
        if (!isnan(value)) {
            keyed->values[count++] = value;
        }
    }
    return count;
}

static double mean(const double *values, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

static nd_error_summary summarise(keyed_rows *keyed, int64_t first, int64_t end, nd_run_class kind)
{
    nd_error_summary s;
    s.rows = collect(keyed, first, end, kind, abs_error);
    s.median_abs = nd_values_quantile(keyed->values, s.rows, 0.5);
    s.p90_abs = nd_values_quantile(keyed->values, s.rows, 0.9);
    s.bias = nd_values_quantile(keyed->values, collect(keyed, first, end, kind, signed_error), 0.5);
    s.coverage = mean(keyed->values, collect(keyed, first, end, kind, is_covered));
    s.memory_rows = collect(keyed, first, end, kind, abs_memory_error);
    s.memory_median_abs = nd_values_quantile(keyed->values, s.memory_rows, 0.5);
    s.memory_p90_abs = nd_values_quantile(keyed->values, s.memory_rows, 0.9);
    s.memory_bias = nd_values_quantile(keyed->values, collect(keyed, first, end, kind, signed_memory_error), 0.5);
    s.memory_coverage = mean(keyed->values, collect(keyed, first, end, kind, is_memory_covered));
    return s;
}

nd_status nd_validation_group_by(const nd_validation *validation, nd_validation_key key, nd_validation_groups *out,
                                 nd_error *err)
{
    keyed_rows keyed = {0};
    ND_TRY(sort_by_key(validation, key, &keyed, err));
    nd_validation_groups groups = {.groups = calloc((size_t)keyed.count + 1, sizeof groups.groups[0])};
    if (groups.groups == NULL) {
        free_keyed(&keyed);
        return nd_fail(err, ND_ENOMEM, "out of memory for the groups of %lld runs", (long long)keyed.count);
    }
    for (int64_t first = 0; first < keyed.count;) {
        int64_t end = end_of_group(&keyed, first);
        nd_validation_group *group = &groups.groups[groups.count++];
        (void)snprintf(group->name, sizeof group->name, "%s", keyed.rows[first].key);
        for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
            group->of[kind] = summarise(&keyed, first, end, (nd_run_class)kind);
        }
        first = end;
    }
    free_keyed(&keyed);
    *out = groups;
    return ND_OK;
}

void nd_validation_groups_free(nd_validation_groups *groups)
{
    free(groups->groups);
    memset(groups, 0, sizeof *groups);
}

static void add_source(nd_class_score *score, const nd_error_summary *source)
{
    if (source->rows > 0) {
        score->sources++;
        score->mean_of_medians += source->median_abs;
        score->mean_of_p90s += source->p90_abs;
    }
    if (source->memory_rows > 0) {
        score->memory_sources++;
        score->mean_of_memory_medians += source->memory_median_abs;
        score->mean_of_memory_p90s += source->memory_p90_abs;
    }
}

static double divided(double sum, int64_t count)
{
    return count > 0 ? sum / (double)count : (double)NAN;
}

static nd_class_score score_class(keyed_rows *keyed, nd_run_class kind)
{
    nd_class_score score = {.pooled = summarise(keyed, 0, keyed->count, kind)};
    for (int64_t first = 0; first < keyed->count;) {
        int64_t end = end_of_group(keyed, first);
        nd_error_summary source = summarise(keyed, first, end, kind);
        add_source(&score, &source);
        first = end;
    }
    score.mean_of_medians = divided(score.mean_of_medians, score.sources);
    score.mean_of_p90s = divided(score.mean_of_p90s, score.sources);
    score.mean_of_memory_medians = divided(score.mean_of_memory_medians, score.memory_sources);
    score.mean_of_memory_p90s = divided(score.mean_of_memory_p90s, score.memory_sources);
    return score;
}

nd_status nd_validation_score_all(const nd_validation *validation, nd_validation_score *out, nd_error *err)
{
    nd_validation_score score;
    keyed_rows keyed = {0};
    ND_TRY(nd_validation_rank(validation, &score.ranking, err));
    ND_TRY(sort_by_key(validation, ND_VALIDATION_BY_SOURCE, &keyed, err));
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        score.of[kind] = score_class(&keyed, (nd_run_class)kind);
    }
    free_keyed(&keyed);
    *out = score;
    return ND_OK;
}

/* Errors of the other rows once `anchor` has set the scale; `errors` holds the signed ones. */
static void anchored_by(const double *errors, int64_t count, int64_t anchor, double *others)
{
    int64_t next = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i != anchor) {
            others[next++] = fabs((1.0 + errors[i]) / (1.0 + errors[anchor]) - 1.0);
        }
    }
}

/* Mean over the anchors of median and p90, added to the score of the class. */
static void anchor_source(const double *errors, int64_t count, double *others, nd_run_class kind,
                          nd_anchored_score *score)
{
    int64_t anchors = count < ANCHORS_MAX ? count : ANCHORS_MAX;
    double median = 0.0;
    double p90 = 0.0;
    if (count < 2) {
        return;
    }
    for (int64_t i = 0; i < anchors; i++) {
        anchored_by(errors, count, i * count / anchors, others);
        median += nd_values_quantile(others, count - 1, 0.5) / (double)anchors;
        p90 += nd_values_quantile(others, count - 1, 0.9) / (double)anchors;
    }
    score->sources[kind]++;
    score->median_abs[kind] += median;
    score->p90_abs[kind] += p90;
}

nd_status nd_validation_anchor(const nd_validation *validation, nd_anchored_score *out, nd_error *err)
{
    nd_anchored_score score = {0};
    keyed_rows keyed = {0};
    ND_TRY(sort_by_key(validation, ND_VALIDATION_BY_SOURCE, &keyed, err));
    double *others = calloc((size_t)keyed.count + 1, sizeof *others);
    if (others == NULL) {
        free_keyed(&keyed);
        return nd_fail(err, ND_ENOMEM, "out of memory for the anchors of %lld runs", (long long)keyed.count);
    }
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        for (int64_t first = 0; first < keyed.count;) {
            int64_t end = end_of_group(&keyed, first);
            int64_t count = collect(&keyed, first, end, (nd_run_class)kind, signed_error);
            anchor_source(keyed.values, count, others, (nd_run_class)kind, &score);
            first = end;
        }
        score.median_abs[kind] = divided(score.median_abs[kind], score.sources[kind]);
        score.p90_abs[kind] = divided(score.p90_abs[kind], score.sources[kind]);
    }
    free(others);
    free_keyed(&keyed);
    *out = score;
    return ND_OK;
}
