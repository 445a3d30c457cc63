/* A validation for programs: JSON and CSV. */
#include <math.h>

#include "core/json_writer.h"
#include "reports/csv_report.h"
#include "reports/validation_report.h"

static double or_none(double value)
{
    return value > 0.0 ? value : (double)NAN; /* written as null, or as an empty cell */
}

static const char *grade_of(const nd_measured_run *run, char text[2])
{
    text[0] = run->grade == ' ' ? '\0' : run->grade;
    text[1] = '\0';
    return text;
}

static void put_assumed(nd_json_writer *json, const nd_measured_run *run)
{
    nd_json_key(json, "assumed");
    nd_json_begin_array(json);
    for (int i = 0; i < ND_ASSUMPTION_COUNT; i++) {
        if ((run->assumed >> i & 1u) != 0) {
            nd_json_string(json, nd_run_assumption_name((nd_run_assumption)i));
        }
    }
    nd_json_end_array(json);
}

static void put_row(nd_json_writer *json, const nd_validation_row *row)
{
    const nd_measured_run *run = row->run;
    char layout[512];
    char grade[2];
    (void)nd_layout_format(&run->layout, layout, sizeof layout);
    nd_json_begin_object(json);
    nd_json_put_string(json, "id", run->id);
    nd_json_put_string(json, "source", run->source);
    nd_json_put_string(json, "model", run->model.name);
    nd_json_put_string(json, "gpu", run->cluster.gpu.name);
    nd_json_put_int(json, "gpus", run->cluster.gpus);
    nd_json_put_string(json, "framework", run->framework);
    nd_json_put_string(json, "stack", run->stack.name);
    nd_json_put_string(json, "layout", layout);
    nd_json_put_double(json, "measured_step_s", or_none(run->step_s));
    nd_json_put_double(json, "predicted_step_s", row->predicted_s);
    nd_json_put_double(json, "low_s", row->low_s);
    nd_json_put_double(json, "high_s", row->high_s);
    nd_json_put_double(json, "error_frac", row->error_frac);
    nd_json_put_double(json, "measured_peak_bytes", or_none(run->peak_bytes));
    nd_json_put_double(json, "predicted_peak_bytes", row->predicted_peak_bytes);
    nd_json_put_double(json, "peak_low_bytes", row->peak_low_bytes);
    nd_json_put_double(json, "peak_high_bytes", row->peak_high_bytes);
    nd_json_put_double(json, "memory_error_frac", row->memory_error_frac);
    put_assumed(json, run);
    nd_json_put_string(json, "grade", grade_of(run, grade));
    nd_json_put_bool(json, "contradictory", run->contradictory);
    nd_json_put_bool(json, "hard", row->hard);
    nd_json_put_bool(json, "scored", row->scored);
    nd_json_key(json, "skipped");
    nd_json_null(json);
    nd_json_end_object(json);
}

static void put_skipped(nd_json_writer *json, const nd_skipped_row *row)
{
    static const char *const figures[] = {
        "measured_step_s",      "predicted_step_s", "low_s", "high_s", "error_frac", "measured_peak_bytes",
        "predicted_peak_bytes", "memory_error_frac"};
    nd_json_begin_object(json);
    nd_json_put_string(json, "id", row->id);
    nd_json_put_string(json, "source", row->source);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        nd_json_key(json, figures[i]);
        nd_json_null(json);
    }
    nd_json_put_bool(json, "scored", false);
    nd_json_put_string(json, "skipped", row->reason);
    nd_json_end_object(json);
}

static void put_rows(nd_json_writer *json, const nd_validation *validation)
{
    nd_json_key(json, "rows");
    nd_json_begin_array(json);
    for (int64_t i = 0; i < validation->count; i++) {
        put_row(json, &validation->rows[i]);
    }
    for (int64_t i = 0; i < validation->set->skipped_count; i++) {
        put_skipped(json, &validation->set->skipped[i]);
    }
    nd_json_end_array(json);
}

static void put_summary(nd_json_writer *json, const nd_error_summary *summary)
{
    nd_json_put_int(json, "rows", summary->rows);
    nd_json_put_double(json, "median_abs", summary->median_abs);
    nd_json_put_double(json, "p90_abs", summary->p90_abs);
    nd_json_put_double(json, "bias", summary->bias);
    nd_json_put_double(json, "coverage", summary->coverage);
    nd_json_put_int(json, "memory_rows", summary->memory_rows);
    nd_json_put_double(json, "memory_median_abs", summary->memory_median_abs);
    nd_json_put_double(json, "memory_p90_abs", summary->memory_p90_abs);
    nd_json_put_double(json, "memory_bias", summary->memory_bias);
    nd_json_put_double(json, "memory_coverage", summary->memory_coverage);
}

static void put_groups(nd_json_writer *json, nd_validation_key key, const nd_validation_groups *groups)
{
    char name[32];
    (void)snprintf(name, sizeof name, "by_%s", nd_validation_key_name(key));
    nd_json_key(json, name);
    nd_json_begin_array(json);
    for (int64_t i = 0; i < groups->count; i++) {
        const nd_validation_group *group = &groups->groups[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, nd_validation_key_name(key), group->name);
        put_summary(json, &group->of[ND_RUNS_ALL]);
        for (int kind = ND_RUNS_DENSE; kind <= ND_RUNS_HARD; kind++) {
            nd_json_key(json, nd_run_class_name((nd_run_class)kind));
            nd_json_begin_object(json);
            put_summary(json, &group->of[kind]);
            nd_json_end_object(json);
        }
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

static void put_class(nd_json_writer *json, const nd_class_score *score)
{
    put_summary(json, &score->pooled);
    nd_json_put_int(json, "sources", score->sources);
    nd_json_put_double(json, "mean_of_source_medians", score->mean_of_medians);
    nd_json_put_double(json, "mean_of_source_p90s", score->mean_of_p90s);
    nd_json_put_int(json, "memory_sources", score->memory_sources);
    nd_json_put_double(json, "mean_of_source_memory_medians", score->mean_of_memory_medians);
    nd_json_put_double(json, "mean_of_source_memory_p90s", score->mean_of_memory_p90s);
}

static void put_anchored(nd_json_writer *json, const nd_anchored_score *anchored)
{
    nd_json_key(json, "anchored");
    if (anchored == NULL) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    for (int kind = 0; kind < ND_RUN_CLASS_COUNT; kind++) {
        bool any = anchored->sources[kind] > 0;
        nd_json_key(json, nd_run_class_name((nd_run_class)kind));
        nd_json_begin_object(json);
        nd_json_put_int(json, "sources", anchored->sources[kind]);
        nd_json_put_double(json, "median_abs", any ? anchored->median_abs[kind] : (double)NAN);
        nd_json_put_double(json, "p90_abs", any ? anchored->p90_abs[kind] : (double)NAN);
        nd_json_end_object(json);
    }
    nd_json_end_object(json);
}

static void put_score(nd_json_writer *json, const nd_validation_view *view)
{
    const nd_validation *v = view->validation;
    const nd_ranking_score *ranking = &view->score->ranking;
    nd_json_key(json, "summary");
    nd_json_begin_object(json);
    put_class(json, &view->score->of[ND_RUNS_ALL]);
    for (int kind = ND_RUNS_DENSE; kind <= ND_RUNS_HARD; kind++) {
        nd_json_key(json, nd_run_class_name((nd_run_class)kind));
        nd_json_begin_object(json);
        put_class(json, &view->score->of[kind]);
        nd_json_end_object(json);
    }
    nd_json_put_int(json, "pairs", ranking->pairs);
    nd_json_put_int(json, "pairs_ranked_right", ranking->pairs_right);
    nd_json_put_int(json, "choices", ranking->groups);
    nd_json_put_double(json, "regret_mean", ranking->regret_mean);
    nd_json_put_double(json, "regret_median", ranking->regret_median);
    nd_json_put_double(json, "regret_worst", ranking->regret_worst);
    nd_json_put_int(json, "scored", v->scored);
    nd_json_put_int(json, "contradictory", v->contradictory);
    nd_json_put_int(json, "grade_c", v->grade_c);
    nd_json_put_int(json, "skipped", v->set->skipped_count);
    nd_json_end_object(json);
}

void nd_json_validation(FILE *stream, const nd_validation_view *view)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", "ndplan/validate/1");
    nd_json_put_string(&json, "runs", view->origin);
    nd_json_key(&json, "calibration");
    if (view->calibration != NULL) {
        nd_json_string(&json, view->calibration);
    } else {
        nd_json_null(&json);
    }
    nd_json_put_bool(&json, "leave_one_out", view->leave_one_out);
    put_rows(&json, view->validation);
    put_groups(&json, ND_VALIDATION_BY_SOURCE, view->sources);
    if (view->by != ND_VALIDATION_BY_SOURCE) {
        put_groups(&json, view->by, view->groups);
    }
    put_score(&json, view);
    put_anchored(&json, view->anchored);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

static void csv_row(nd_csv_writer *csv, const nd_validation_row *row)
{
    const nd_measured_run *run = row->run;
    char layout[512];
    char assumed[160];
    char grade[2];
    (void)nd_layout_format(&run->layout, layout, sizeof layout);
    nd_format_assumptions(run, assumed, sizeof assumed);
    nd_csv_writer_text(csv, run->id);
    nd_csv_writer_text(csv, run->source);
    nd_csv_writer_text(csv, run->model.name);
    nd_csv_writer_text(csv, run->cluster.gpu.name);
    nd_csv_writer_int(csv, run->cluster.gpus);
    nd_csv_writer_text(csv, run->framework);
    nd_csv_writer_text(csv, run->stack.name);
    nd_csv_writer_text(csv, layout);
    nd_csv_writer_double(csv, or_none(run->step_s));
    nd_csv_writer_double(csv, row->predicted_s);
    nd_csv_writer_double(csv, row->low_s);
    nd_csv_writer_double(csv, row->high_s);
    nd_csv_writer_double(csv, row->error_frac);
    nd_csv_writer_double(csv, or_none(run->peak_bytes));
    nd_csv_writer_double(csv, row->predicted_peak_bytes);
    nd_csv_writer_double(csv, row->peak_low_bytes);
    nd_csv_writer_double(csv, row->peak_high_bytes);
    nd_csv_writer_double(csv, row->memory_error_frac);
    nd_csv_writer_text(csv, assumed);
    nd_csv_writer_text(csv, grade_of(run, grade));
    nd_csv_writer_text(csv, run->contradictory ? "true" : "false");
    nd_csv_writer_text(csv, row->hard ? "true" : "false");
    nd_csv_writer_text(csv, row->scored ? "true" : "false");
    nd_csv_writer_text(csv, "");
    nd_csv_writer_end_row(csv);
}

void nd_csv_validation(FILE *stream, const nd_validation_view *view)
{
    static const char *const names[] = {
        "id",
        "source",
        "model",
        "gpu",
        "gpus",
        "framework",
        "stack",
        "layout",
        "measured_step_s",
        "predicted_step_s",
        "low_s",
        "high_s",
        "error_frac",
        "measured_peak_bytes",
        "predicted_peak_bytes",
        "peak_low_bytes",
        "peak_high_bytes",
        "memory_error_frac",
        "assumed",
        "grade",
        "contradictory",
        "hard",
        "scored",
        "skipped",
    };
    const size_t names_count = sizeof names / sizeof names[0];
    nd_csv_writer csv = {.stream = stream};
    for (size_t i = 0; i < names_count; i++) {
        nd_csv_writer_text(&csv, names[i]);
    }
    nd_csv_writer_end_row(&csv);
    for (int64_t i = 0; i < view->validation->count; i++) {
        csv_row(&csv, &view->validation->rows[i]);
    }
    const nd_run_set *set = view->validation->set;
    for (int64_t i = 0; i < set->skipped_count; i++) {
        nd_csv_writer_text(&csv, set->skipped[i].id);
        nd_csv_writer_text(&csv, set->skipped[i].source);
        for (size_t empty = 2; empty + 2 < names_count; empty++) {
            nd_csv_writer_text(&csv, "");
        }
        nd_csv_writer_text(&csv, "false");
        nd_csv_writer_text(&csv, set->skipped[i].reason);
        nd_csv_writer_end_row(&csv);
    }
}
