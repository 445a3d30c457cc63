#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/plot_file.h"
#include "core/text.h"
#include "cost_model/fitted.h"
#include "cost_model/measured_table.h"
#include "reports/validation_report.h"

static const nd_option_id validate_options[] = {
    ND_OPTION_RUNS, ND_OPTION_CALIBRATION,   ND_OPTION_BY,       ND_OPTION_WORST,
    ND_OPTION_ROWS, ND_OPTION_LEAVE_ONE_OUT, ND_OPTION_ANCHORED, ND_OPTION_MAX_MEDIAN_ERROR,
    ND_OPTION_PLOT, ND_OPTION_JSON,          ND_OPTION_CSV,      ND_OPTION_HELP,
};

static const nd_command_syntax validate_syntax = {
    .name = "validate",
    .summary =
        "Predict measured runs and show the errors: by source, with intervals, memory and the ranking of\nlayouts",
    .example = "ndplan validate --worst 10",
    .usage = "ndplan validate [--runs FILE.csv] [options]",
    .options = validate_options,
    .options_count = sizeof validate_options / sizeof validate_options[0],
    .notes = "Without --runs: the published runs that ndplan carries. Scored are rows whose grade is not C and whose\n"
             "notes carry no FLAG. Columns of a CSV, in any order; only model, gpu and gpus must be there, and what a\n"
             "row leaves open is assumed and marked: id source source_locator year model params_b hidden layers heads\n"
             "kv_heads ffn_hidden ffn_kind vocab tied_embeddings experts experts_topk moe_ffn_hidden gpu gpus\n"
             "gpus_per_node inter_node_network framework precision seq_len micro_batch global_batch dp_replicate\n"
             "dp_shard zero_stage tp sp cp pp vpp ep recompute flash_attn optimizer tokens_per_s_per_gpu\n"
             "tflops_per_gpu mfu_pct step_time_s peak_mem_gib mem_kind flops_convention notes grade.\n"
             "Exit status: 0 done, 1 --max-median-error is missed, 2 usage or input error.",
};

/* Everything that a validation holds; zeroed, then freed as a whole. */
typedef struct validate_state {
    nd_csv *csv;
    nd_fitted fitted; /* the project's own fit, which intervals take their form from */
    nd_fitted own;    /* the user's, over that */
    nd_run_set set;
    nd_validation validation;
    nd_validation_score score;
    nd_validation_groups sources, groups;
    nd_anchored_score anchored;
    nd_validation_view view;
    nd_report_format format;
} validate_state;

static void free_state(validate_state *s)
{
    nd_validation_groups_free(&s->groups);
    nd_validation_groups_free(&s->sources);
    nd_validation_free(&s->validation);
    nd_run_set_free(&s->set);
    nd_csv_free(s->csv);
}

static const char *key_name(int value)
{
    return nd_validation_key_name((nd_validation_key)value);
}

static nd_status read_options(const nd_options *options, validate_state *s, nd_error *err)
{
    const char *by = options->value[ND_OPTION_BY];
    const char *worst = options->value[ND_OPTION_WORST];
    const char *bound = options->value[ND_OPTION_MAX_MEDIAN_ERROR];
    int key = ND_VALIDATION_BY_SOURCE;
    double percent = 0.0;
    ND_TRY(nd_command_format(options, &s->format, err));
    ND_TRY(nd_plot_path_check(options->value[ND_OPTION_PLOT], err));
    if (by != NULL) {
        ND_TRY(nd_text_choice(by, "--by", key_name, ND_VALIDATION_KEY_COUNT, &key, err));
    }
    if (worst != NULL) {
        ND_TRY(nd_text_int(worst, "--worst", 1, ND_MEASURED_ROWS_MAX, &s->view.worst, err));
    }
    if (bound != NULL) {
        ND_TRY(nd_text_double(bound, "--max-median-error", 0.0, 1000.0, &percent, err));
    }
    s->view.by = (nd_validation_key)key;
    s->view.bound = bound != NULL ? percent / 100.0 : (double)NAN;
    s->view.rows = nd_options_has(options, ND_OPTION_ROWS);
    s->view.leave_one_out = nd_options_has(options, ND_OPTION_LEAVE_ONE_OUT);
    if (s->view.leave_one_out && options->value[ND_OPTION_CALIBRATION] != NULL) {
        return nd_fail(err, ND_EINVAL, "--leave-one-out fits constants of its own; leave --calibration out");
    }
    return ND_OK;
}

/* The user's constants over the project's, as the other commands lay them. */
static void apply_own(validate_state *s)
{
    nd_fitted *own = &s->own;
    own->form_log_sd = own->form_log_sd > 0.0 ? own->form_log_sd : s->fitted.form_log_sd;
    own->hard_form_log_sd = own->hard_form_log_sd > 0.0 ? own->hard_form_log_sd : s->fitted.hard_form_log_sd;
    for (int32_t i = 0; i < s->set.calibrations_count; i++) {
        nd_fitted_apply(own, &s->set.calibrations[i], NULL);
    }
    for (int64_t i = 0; i < s->set.count; i++) {
        nd_run_entry *entry = &s->set.entries[i];
        nd_fitted_apply(own, NULL, &entry->run.stack);
        entry->context.uncertainty =
            nd_fitted_uncertainty(own, &s->set.calibrations[entry->calibration], &entry->run.stack);
    }
}

static nd_status load_runs(const nd_options *options, validate_state *s, nd_error *err)
{
    const char *runs = options->value[ND_OPTION_RUNS];
    const char *calibration = options->value[ND_OPTION_CALIBRATION];
    s->view.origin = runs != NULL ? runs : "the published runs that ndplan carries";
    s->view.calibration = calibration;
    ND_TRY(runs != NULL ? nd_csv_load(runs, &s->csv, err) : nd_measured_builtin(&s->csv, err));
    ND_TRY(nd_measured_check_table(s->csv, err));
    ND_TRY(nd_fitted_shipped(&s->fitted, err));
    if (calibration != NULL) {
        ND_TRY(nd_fitted_load(calibration, &s->own, err));
    }
    /* what a source is predicted with must not have been fitted on it: bare priors to start from */
    ND_TRY(nd_run_set_load(s->csv, s->view.leave_one_out ? NULL : &s->fitted, &s->set, err));
    if (calibration != NULL) {
        apply_own(s);
    }
    if (s->set.count == 0) {
        return nd_fail(err, ND_EUNSUPPORTED, "%s: none of the %lld runs can be predicted; the first, %s: %.200s",
                       s->view.origin, (long long)s->set.skipped_count, s->set.skipped[0].id, s->set.skipped[0].reason);
    }
    return ND_OK;
}

static void show_progress(int64_t done, int64_t sources, void *user)
{
    (void)user;
    fprintf(stderr, "\rfitting without each source: %lld of %lld", (long long)done, (long long)sources);
}

/* Minutes: a line on a terminal shows how far it is. */
static nd_status hold_out(validate_state *s, nd_error *err)
{
    bool terminal = isatty(STDERR_FILENO) != 0;
    nd_status status =
        nd_validation_leave_one_out(&s->set, &s->fitted, terminal ? show_progress : NULL, NULL, &s->validation, err);
    if (terminal) {
        fprintf(stderr, "\r%60s\r", "");
    }
    return status;
}

static nd_status evaluate(const nd_options *options, validate_state *s, nd_error *err)
{
    nd_validation_view *view = &s->view;
    ND_TRY(view->leave_one_out ? hold_out(s, err) : nd_validation_create(&s->set, &s->validation, err));
    ND_TRY(nd_validation_score_all(&s->validation, &s->score, err));
    ND_TRY(nd_validation_group_by(&s->validation, ND_VALIDATION_BY_SOURCE, &s->sources, err));
    view->groups = &s->sources;
    if (view->by != ND_VALIDATION_BY_SOURCE) {
        ND_TRY(nd_validation_group_by(&s->validation, view->by, &s->groups, err));
        view->groups = &s->groups;
    }
    if (nd_options_has(options, ND_OPTION_ANCHORED)) {
        ND_TRY(nd_validation_anchor(&s->validation, &s->anchored, err));
        view->anchored = &s->anchored;
    }
    view->validation = &s->validation;
    view->score = &s->score;
    view->sources = &s->sources;
    double error = s->score.of[ND_RUNS_ALL].mean_of_medians;
    if (!isnan(view->bound) && isnan(error)) {
        return nd_fail(err, ND_EINVAL, "--max-median-error: none of the runs of %s has a measured step that is scored",
                       view->origin);
    }
    view->bound_holds = error <= view->bound;
    return ND_OK;
}

static nd_status draw(FILE *out, const void *view, nd_error *err)
{
    return nd_plot_validation(out, view, err);
}

static nd_status print(const validate_state *s, nd_error *err)
{
    nd_report_style style = nd_command_style();
    switch (s->format) {
    case ND_REPORT_JSON:
        nd_json_validation(stdout, &s->view);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_validation(stdout, &s->view);
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_validation(stdout, &style, &s->view, err);
}

static nd_status run_validate(const nd_options *options, int *exit_status, nd_error *err)
{
    validate_state state;
    memset(&state, 0, sizeof state);
    nd_status status = read_options(options, &state, err);
    status = status == ND_OK ? load_runs(options, &state, err) : status;
    status = status == ND_OK ? evaluate(options, &state, err) : status;
    const char *plot = options->value[ND_OPTION_PLOT];
    if (status == ND_OK && plot != NULL) {
        status = nd_plot_file_write(plot, draw, &state.view, err);
    }
    status = status == ND_OK ? print(&state, err) : status;
    *exit_status = isnan(state.view.bound) || state.view.bound_holds ? ND_EXIT_DONE : ND_EXIT_NO;
    free_state(&state);
    return status;
}

const nd_command nd_command_validate = {&validate_syntax, run_validate};
