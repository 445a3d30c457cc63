#include "reports/validation_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "reports/format.h"

void nd_format_assumptions(const nd_measured_run *run, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < ND_ASSUMPTION_COUNT && used < out_bytes; i++) {
        if ((run->assumed >> i & 1u) != 0) {
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used > 0 ? ", " : "",
                                     nd_run_assumption_name((nd_run_assumption)i));
        }
    }
}

static nd_text percent(double fraction)
{
    nd_text none = {"-"};
    return isnan(fraction) ? none : nd_format_percent(fraction);
}

static nd_text signed_percent(double fraction)
{
    nd_text out = {"-"};
    if (!isnan(fraction)) {
        (void)snprintf(out.text, sizeof out.text, "%+.1f", fraction * 100.0);
    }
    return out;
}

static void add_summary(nd_table *table, const nd_error_summary *s)
{
    nd_table_add(table, nd_format_count(s->rows).text);
    nd_table_add(table, percent(s->median_abs).text);
    nd_table_add(table, percent(s->p90_abs).text);
    nd_table_add(table, signed_percent(s->bias).text);
    nd_table_add(table, percent(s->coverage).text);
    nd_table_add(table, s->memory_rows > 0 ? nd_format_count(s->memory_rows).text : "-");
    nd_table_add(table, percent(s->memory_median_abs).text);
    nd_table_add(table, percent(s->memory_p90_abs).text);
}

static const nd_column summary_columns[] = {
    {NULL, NULL, ND_ALIGN_LEFT, 0, 14},    {"class", NULL, ND_ALIGN_LEFT, 0, 0},
    {"steps", NULL, ND_ALIGN_RIGHT, 0, 0}, {"median", "%", ND_ALIGN_RIGHT, 0, 0},
    {"p90", "%", ND_ALIGN_RIGHT, 0, 0},    {"bias", "%", ND_ALIGN_RIGHT, 0, 0},
    {"inside", "%", ND_ALIGN_RIGHT, 0, 0}, {"memory", NULL, ND_ALIGN_RIGHT, 0, 0},
    {"median", "%", ND_ALIGN_RIGHT, 0, 0}, {"p90", "%", ND_ALIGN_RIGHT, 0, 0},
};
enum { SUMMARY_COLUMNS = sizeof summary_columns / sizeof summary_columns[0] };

static nd_table *create_summary_table(const char *title)
{
    nd_column columns[SUMMARY_COLUMNS];
    memcpy(columns, summary_columns, sizeof columns);
    columns[0].title = title;
    return nd_table_create(columns, SUMMARY_COLUMNS);
}

static nd_status print_and_free(nd_table *table, FILE *stream, const nd_report_style *style, nd_error *err)
{
    nd_status status = nd_table_print(table, stream, style, 0, err);
    nd_table_free(table);
    return status;
}

static nd_status fail_memory(nd_error *err)
{
    return nd_fail(err, ND_ENOMEM, "out of memory while laying out the validation");
}

static nd_status print_groups(FILE *stream, const nd_report_style *style, const nd_validation_view *view, nd_error *err)
{
    nd_table *table = create_summary_table(nd_validation_key_name(view->by));
    if (table == NULL) {
        return fail_memory(err);
    }
    for (int64_t i = 0; i < view->groups->count; i++) {
        const nd_validation_group *group = &view->groups->groups[i];
        for (int kind = ND_RUNS_DENSE; kind <= ND_RUNS_HARD; kind++) {
            const nd_error_summary *summary = &group->of[kind];
            if (summary->rows > 0 || summary->memory_rows > 0) {
                nd_table_add(table, group->name);
                nd_table_add(table, nd_run_class_name((nd_run_class)kind));
                add_summary(table, summary);
            }
        }
    }
    fputc('\n', stream);
    return print_and_free(table, stream, style, err);
}

/* All sources together: pooled rows, then sources weighted equally. */
static nd_status print_score(FILE *stream, const nd_report_style *style, const nd_validation_view *view, nd_error *err)
{
    nd_table *table = create_summary_table("over all");
    if (table == NULL) {
        return fail_memory(err);
    }
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        const nd_class_score *score = &view->score->of[kind];
        nd_table_add(table, "runs");
        nd_table_add(table, nd_run_class_name((nd_run_class)kind));
        add_summary(table, &score->pooled);
    }
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        const nd_class_score *score = &view->score->of[kind];
        nd_table_add(table, "mean of sources");
        nd_table_add(table, nd_run_class_name((nd_run_class)kind));
        nd_table_add(table, nd_format_count(score->sources).text);
        nd_table_add(table, percent(score->mean_of_medians).text);
        nd_table_add(table, percent(score->mean_of_p90s).text);
        nd_table_add(table, "-");
        nd_table_add(table, "-");
        nd_table_add(table, score->memory_sources > 0 ? nd_format_count(score->memory_sources).text : "-");
        nd_table_add(table, percent(score->mean_of_memory_medians).text);
        nd_table_add(table, percent(score->mean_of_memory_p90s).text);
    }
    fputc('\n', stream);
    return print_and_free(table, stream, style, err);
}

static void print_ranking(FILE *stream, const nd_report_style *style, const nd_ranking_score *ranking)
{
    fputc('\n', stream);
    if (ranking->pairs > 0) {
        nd_report_paragraph(stream, style, 0, 11,
                            "Ranking    %s of %s pairs of layouts that were measured more than 3 %% apart are in the "
                            "right order (%s %%)",
                            nd_format_count(ranking->pairs_right).text, nd_format_count(ranking->pairs).text,
                            nd_format_percent((double)ranking->pairs_right / (double)ranking->pairs).text);
    } else {
        nd_report_paragraph(stream, style, 0, 11, "Ranking    no two layouts of one task to compare");
    }
    if (ranking->groups > 0) {
        nd_report_paragraph(stream, style, 0, 11,
                            "Regret     the first choice in %s tasks is %s %% slower than the best measured in the "
                            "mean, %s %% in the median, %s %% at worst (%s)",
                            nd_format_count(ranking->groups).text, nd_format_percent(ranking->regret_mean).text,
                            nd_format_percent(ranking->regret_median).text,
                            nd_format_percent(ranking->regret_worst).text, ranking->worst->id);
    }
}

static void print_anchored(FILE *stream, const nd_report_style *style, const nd_anchored_score *anchored)
{
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        if (anchored->sources[kind] > 0) {
            nd_report_paragraph(stream, style, 0, 11,
                                "%s%s: median %s %%, p90 %s %%, mean of %s source%s scaled by one of their own steps",
                                kind == 0 ? "Anchored   " : "           ", nd_run_class_name((nd_run_class)kind),
                                nd_format_percent(anchored->median_abs[kind]).text,
                                nd_format_percent(anchored->p90_abs[kind]).text,
                                nd_format_count(anchored->sources[kind]).text, anchored->sources[kind] == 1 ? "" : "s");
        }
    }
    if (anchored->sources[ND_RUNS_ALL] == 0) {
        nd_report_paragraph(stream, style, 0, 11, "Anchored   no source has two measured steps");
    }
}

static void print_head(FILE *stream, const nd_report_style *style, const nd_validation_view *view)
{
    const nd_validation *v = view->validation;
    nd_report_paragraph(stream, style, 0, 11, "Runs       %s: %s row%s", view->origin,
                        nd_format_count(v->count + v->set->skipped_count).text,
                        nd_text_plural(v->count + v->set->skipped_count));
    nd_report_paragraph(stream, style, 11, 11,
                        "%s scored; apart: %s that contradict themselves (FLAG), %s of grade C; %s not predicted",
                        nd_format_count(v->scored).text, nd_format_count(v->contradictory).text,
                        nd_format_count(v->grade_c).text, nd_format_count(v->set->skipped_count).text);
    if (view->leave_one_out) {
        nd_report_paragraph(stream, style, 0, 11,
                            "Constants  fitted for each source on all the others (leave-one-source-out)");
    } else {
        nd_report_paragraph(stream, style, 0, 11, "Constants  %s",
                            view->calibration != NULL ? view->calibration : "built-in");
    }
    nd_report_paragraph(stream, style, 0, 11,
                        "Errors     predicted / measured - 1; inside: measured steps within the 80 %% interval; hard: "
                        "mixtures of experts and fp8");
}

/* Why runs were skipped, with how many rows share the reason. */
static void print_skipped(FILE *stream, const nd_report_style *style, const nd_run_set *set)
{
    if (set->skipped_count == 0) {
        return;
    }
    nd_report_heading(stream, style, "Not predicted");
    for (int64_t i = 0; i < set->skipped_count; i++) {
        int64_t same = 0;
        bool first = true;
        for (int64_t j = 0; j < set->skipped_count && first; j++) {
            bool equal = strcmp(set->skipped[j].reason, set->skipped[i].reason) == 0;
            first = j >= i || !equal;
            same += equal;
        }
        if (first) {
            nd_report_paragraph(stream, style, 2, 4, "%s%s%s: %s", set->skipped[i].id, same > 1 ? " and " : "",
                                same > 1 ? nd_format_count(same - 1).text : "", set->skipped[i].reason);
        }
    }
}

static double size_of_error(const nd_validation_row *row)
{
    return fmax(isnan(row->error_frac) ? 0.0 : fabs(row->error_frac),
                isnan(row->memory_error_frac) ? 0.0 : fabs(row->memory_error_frac));
}

static int compare_errors(const void *a, const void *b)
{
    const nd_validation_row *x = *(const nd_validation_row *const *)a;
    const nd_validation_row *y = *(const nd_validation_row *const *)b;
    double p = size_of_error(x);
    double q = size_of_error(y);
    return p != q ? (p < q) - (p > q) : (x > y) - (x < y);
}

static void add_row(nd_table *table, const nd_validation_row *row)
{
    const nd_measured_run *run = row->run;
    char assumed[160];
    bool timed = run->step_s > 0.0;
    bool weighed = run->peak_bytes > 0.0;
    nd_format_assumptions(run, assumed, sizeof assumed);
    nd_table_add(table, run->id);
    nd_table_add(table, run->model.name);
    nd_table_add(table, run->cluster.gpu.name);
    nd_table_add(table, nd_format_count(run->cluster.gpus).text);
    nd_table_add(table, timed ? nd_format_number(run->step_s).text : "-");
    nd_table_add(table, nd_format_number(row->predicted_s).text);
    nd_table_add(table, signed_percent(row->error_frac).text);
    nd_table_add(table, weighed ? nd_format_gib(run->peak_bytes).text : "-");
    nd_table_add(table, nd_format_gib(row->predicted_peak_bytes).text);
    nd_table_add(table, signed_percent(row->memory_error_frac).text);
    nd_table_add(table, assumed);
}

static nd_status print_row_table(FILE *stream, const nd_report_style *style, const nd_validation_row *const *rows,
                                 int64_t count, nd_error *err)
{
    static const nd_column columns[] = {
        {"run", NULL, ND_ALIGN_LEFT, 0, 0},         {"model", NULL, ND_ALIGN_LEFT, 2, 0},
        {"GPU", NULL, ND_ALIGN_LEFT, 3, 0},         {"GPUs", NULL, ND_ALIGN_RIGHT, 1, 0},
        {"step", "s", ND_ALIGN_RIGHT, 0, 0},        {"predicted", "s", ND_ALIGN_RIGHT, 0, 0},
        {"error", "%", ND_ALIGN_RIGHT, 0, 0},       {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"predicted", "GiB", ND_ALIGN_RIGHT, 0, 0}, {"error", "%", ND_ALIGN_RIGHT, 0, 0},
        {"assumed", NULL, ND_ALIGN_LEFT, 0, 12},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return fail_memory(err);
    }
    for (int64_t i = 0; i < count; i++) {
        add_row(table, rows[i]);
    }
    return print_and_free(table, stream, style, err);
}

/* Rows that are scored, or those that stand apart: all of them in the table's order, or the worst. */
static nd_status print_some_rows(FILE *stream, const nd_report_style *style, const nd_validation_view *view,
                                 bool scored, nd_error *err)
{
    const nd_validation *v = view->validation;
    const nd_validation_row **rows = calloc((size_t)v->count + 1, sizeof(const nd_validation_row *));
    int64_t count = 0;
    if (rows == NULL) {
        return fail_memory(err);
    }
    for (int64_t i = 0; i < v->count; i++) {
        if (v->rows[i].scored == scored && (view->rows || size_of_error(&v->rows[i]) > 0.0)) {
            rows[count++] = &v->rows[i];
        }
    }
    if (!view->rows) {
        qsort((void *)rows, (size_t)count, sizeof(const nd_validation_row *), compare_errors);
        count = count < view->worst ? count : view->worst;
    }
    nd_status status = ND_OK;
    if (count > 0) {
        char title[64];
        (void)snprintf(title, sizeof title, "%s%s", view->rows ? "Runs" : "Largest errors",
                       scored ? "" : " apart (contradictory or grade C, not scored)");
        nd_report_heading(stream, style, title);
        status = print_row_table(stream, style, rows, count, err);
    }
    free((void *)rows);
    return status;
}

static void print_bound(FILE *stream, const nd_report_style *style, const nd_validation_view *view)
{
    if (isnan(view->bound)) {
        return;
    }
    nd_report_paragraph(stream, style, 0, 11, "Bound      mean of the source medians at most %.4g %%: %s with %s %%",
                        100.0 * view->bound, view->bound_holds ? "kept" : "missed",
                        percent(view->score->of[ND_RUNS_ALL].mean_of_medians).text);
}

nd_status nd_report_validation(FILE *stream, const nd_report_style *style, const nd_validation_view *view,
                               nd_error *err)
{
    print_head(stream, style, view);
    ND_TRY(print_groups(stream, style, view, err));
    ND_TRY(print_score(stream, style, view, err));
    print_ranking(stream, style, &view->score->ranking);
    if (view->anchored != NULL) {
        print_anchored(stream, style, view->anchored);
    }
    print_bound(stream, style, view);
    if (view->rows || view->worst > 0) {
        ND_TRY(print_some_rows(stream, style, view, true, err));
        ND_TRY(print_some_rows(stream, style, view, false, err));
    }
    print_skipped(stream, style, view->validation->set);
    return ND_OK;
}
