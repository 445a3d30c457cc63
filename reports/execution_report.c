#include "reports/execution_report.h"

#include <inttypes.h>

#include "reports/execution_profile.h"
#include "reports/format.h"

enum { RANK_ROWS_MAX = 12, LABEL_COLUMNS = 11 };

static nd_status start_table(const nd_column *columns, int32_t count, nd_table **out, nd_error *err)
{
    *out = nd_table_create(columns, count);
    return *out != NULL ? ND_OK : nd_fail(err, ND_ENOMEM, "out of memory while laying out the report");
}

static nd_status print_and_free(nd_table *table, FILE *stream, const nd_report_style *style, nd_error *err)
{
    nd_status status = nd_table_print(table, stream, style, 2, err);
    nd_table_free(table);
    return status;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Where the run went on, and what is not as it was. */
static void print_resumed(FILE *stream, const nd_report_style *style, const nd_execution_view *view)
{
    char changes[ND_EXECUTION_CHANGES_MAX * 80] = "";
    size_t used = 0;
    if (view->resume == NULL) {
        return;
    }
    for (int32_t i = 0; i < view->changes_count; i++) {
        const nd_execution_change *change = &view->changes[i];
        used += (size_t)snprintf(changes + used, sizeof changes - used, "%s %s %.6g (was %.6g)", i == 0 ? ";" : ",",
                                 change->name, change->now, change->before);
    }
    nd_report_paragraph(stream, style, 0, LABEL_COLUMNS, "Resumed    step %s of %s%s",
                        nd_format_count(view->resumed_step).text, view->resume, changes);
}

static void print_inputs(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet)
{
    char layout[512];
    const nd_train_spec *train = view->train;
    int64_t tokens = train->global_batch_seqs * train->seq_len_tokens;
    (void)nd_layout_format(view->layout, layout, sizeof layout);
    nd_report_paragraph(stream, style, 0, LABEL_COLUMNS, "Model      %s, %s parameters", view->model->name,
                        nd_format_params(nd_model_params(view->model).total).text);
    nd_report_paragraph(stream, style, 0, LABEL_COLUMNS, "Layout     %s", layout);
    nd_report_paragraph(stream, style, 0, LABEL_COLUMNS, "Ranks      %s thread%s, backend %s, %s",
                        nd_format_count(view->ranks_count).text, plural(view->ranks_count), view->backend,
                        nd_elem_name(view->real));
    nd_report_paragraph(stream, style, 0, LABEL_COLUMNS,
                        "Training   %s sequence%s of %s tokens a step (%s tokens), %s, %s, seed %" PRId64,
                        nd_format_count(train->global_batch_seqs).text, plural(train->global_batch_seqs),
                        nd_format_count(train->seq_len_tokens).text, nd_format_count(tokens).text,
                        nd_optimizer_name(train->optimizer), view->data != NULL ? view->data : "synthetic tokens",
                        view->seed);
    print_resumed(stream, style, view);
    for (int32_t i = 0; !quiet && i < view->assumptions_count; i++) {
        const nd_assumption *assumption = &view->assumptions[i];
        nd_report_paragraph(stream, style, 0, LABEL_COLUMNS, "%s%s %s: %s", i == 0 ? "Assumed    " : "           ",
                            assumption->option, assumption->value, assumption->why);
    }
}

/* What the figures are worth. */
static void print_timing(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet)
{
    nd_report_paragraph(stream, style, 0, 2, "A step takes %s (median): %s tokens/s.",
                        nd_format_seconds(view->step_s).text, nd_format_number(view->tokens_per_s).text);
    nd_report_predicted(stream, style, view, quiet);
    if (view->ranks_count > view->processors) {
        nd_report_paragraph(stream, style, 0, 2,
                            "The times mean little: %d ranks share %d processor%s and wait for each other.",
                            view->ranks_count, view->processors, plural(view->processors));
    }
}

static void print_verdict(FILE *stream, const nd_report_style *style, const nd_execution_view *view)
{
    const nd_execution_verify *verify = &view->verify;
    if (!verify->asked) {
        return;
    }
    if (!verify->done) {
        nd_report_tone(stream, style, ND_TONE_WARN, "Not compared with one rank: interrupted.");
        fputc('\n', stream);
        return;
    }
    nd_report_tone(stream, style, verify->passed ? ND_TONE_GOOD : ND_TONE_BAD,
                   verify->passed ? "The same as one rank" : "NOT the same as one rank");
    fprintf(stream, ": loss to %.1e, every parameter to %.1e\n", verify->loss_abs, verify->param_abs);
}

static void print_answer(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet)
{
    fputc('\n', stream);
    if (view->steps_count == 0) {
        nd_report_paragraph(stream, style, 0, 2, "No step was finished.");
        return;
    }
    const nd_execution_step *first = &view->steps[0];
    const nd_execution_step *last = &view->steps[view->steps_count - 1];
    nd_report_paragraph(stream, style, 0, 2, "Loss %.4f -> %.4f in %s step%s%s, gradient norm %.4g -> %.4g.",
                        first->loss, last->loss, nd_format_count(view->steps_count).text, plural(view->steps_count),
                        view->interrupted ? " (interrupted)" : "", first->grad_norm, last->grad_norm);
    print_timing(stream, style, view, quiet);
    print_verdict(stream, style, view);
}

static bool same_memory(const nd_execution_rank *a, const nd_execution_rank *b)
{
    return a->replayed_bytes == b->replayed_bytes && a->peak_bytes == b->peak_bytes;
}

/* Neighbours with the same figures share a row. \return how many ranks are shown */
static int32_t add_rank_rows(nd_table *table, const nd_execution_view *view)
{
    int32_t first = 0;
    for (int32_t row = 0; row < RANK_ROWS_MAX && first < view->ranks_count; row++) {
        int32_t end = first + 1;
        while (end < view->ranks_count && same_memory(&view->ranks[first], &view->ranks[end])) {
            end++;
        }
        char name[32];
        if (end - first == 1) {
            (void)snprintf(name, sizeof name, "%d", first);
        } else {
            (void)snprintf(name, sizeof name, "%d-%d", first, end - 1);
        }
        const nd_execution_rank *rank = &view->ranks[first];
        nd_table_add(table, name);
        nd_table_add(table, nd_format_count(rank->replayed_bytes).text);
        nd_table_add_tone(table, nd_format_count(rank->peak_bytes).text,
                          rank->replayed_bytes == rank->peak_bytes ? ND_TONE_PLAIN : ND_TONE_BAD);
        first = end;
    }
    return first;
}

static nd_status print_ranks(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err)
{
    static const nd_column columns[] = {
        {"rank", NULL, ND_ALIGN_LEFT, 0, 0},
        {"program", "bytes", ND_ALIGN_RIGHT, 0, 0},
        {"measured", "bytes", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 3, &table, err));
    int32_t shown = add_rank_rows(table, view);
    nd_report_heading(stream, style, "Memory of each rank at its peak");
    ND_TRY(print_and_free(table, stream, style, err));
    if (shown < view->ranks_count) {
        nd_report_paragraph(stream, style, 2, 2, "and %d more ranks: --json has all.", view->ranks_count - shown);
    }
    nd_report_paragraph(stream, style, 2, 2,
                        view->memory_equal ? "Measured is what the program's allocations add up to, to the byte, on "
                                             "every rank and in every class."
                                           : "NOT EQUAL: the run allocated other memory than its program says.");
    return ND_OK;
}

static nd_status print_classes(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err)
{
    static const nd_column columns[] = {
        {"class", NULL, ND_ALIGN_LEFT, 0, 0},
        {"program", "bytes", ND_ALIGN_RIGHT, 0, 0},
        {"measured", "bytes", ND_ALIGN_RIGHT, 0, 0},
    };
    int32_t fullest = 0;
    for (int32_t i = 1; i < view->ranks_count; i++) {
        fullest = view->ranks[i].peak_bytes > view->ranks[fullest].peak_bytes ? i : fullest;
    }
    const nd_execution_rank *rank = &view->ranks[fullest];
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 3, &table, err));
    for (int c = 0; c < ND_MEMORY_CLASS_COUNT; c++) {
        if (rank->replayed_class_bytes[c] == 0 && rank->peak_class_bytes[c] == 0) {
            continue;
        }
        nd_table_add(table, nd_memory_class_name((nd_memory_class)c));
        nd_table_add(table, nd_format_count(rank->replayed_class_bytes[c]).text);
        nd_table_add_tone(table, nd_format_count(rank->peak_class_bytes[c]).text,
                          rank->replayed_class_bytes[c] == rank->peak_class_bytes[c] ? ND_TONE_PLAIN : ND_TONE_BAD);
    }
    char heading[96];
    (void)snprintf(heading, sizeof heading, "Memory of rank %d by class, each at its own peak", fullest);
    nd_report_heading(stream, style, heading);
    return print_and_free(table, stream, style, err);
}

static void add_traffic(nd_table *table, const nd_execution_traffic *traffic)
{
    char group[48];
    (void)snprintf(group, sizeof group, "%s %d", traffic->group, traffic->group_ranks);
    nd_table_add(table, group);
    nd_table_add(table, nd_ins_name(traffic->op));
    nd_table_add(table, nd_format_count(traffic->program_calls).text);
    nd_table_add(table, nd_format_count(traffic->program_bytes).text);
    nd_table_add(table, nd_format_count(traffic->calls).text);
    nd_table_add_tone(table, nd_format_count(traffic->bytes).text, traffic->equal ? ND_TONE_PLAIN : ND_TONE_BAD);
}

static nd_status print_traffic(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err)
{
    static const nd_column columns[] = {
        {"group", "ranks", ND_ALIGN_LEFT, 0, 0},    {"operation", NULL, ND_ALIGN_LEFT, 0, 0},
        {"program", "calls", ND_ALIGN_RIGHT, 1, 0}, {"program", "bytes", ND_ALIGN_RIGHT, 0, 0},
        {"counted", "calls", ND_ALIGN_RIGHT, 1, 0}, {"counted", "bytes", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_report_heading(stream, style, "Communication of one step, all ranks together");
    if (view->traffic_count == 0) {
        nd_report_paragraph(stream, style, 2, 2, "None: nothing is divided between ranks.");
        return ND_OK;
    }
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 6, &table, err));
    for (int32_t i = 0; i < view->traffic_count; i++) {
        if (view->traffic[i].op != ND_INS_SEND_WAIT) { /* moves nothing; its time is in --json */
            add_traffic(table, &view->traffic[i]);
        }
    }
    ND_TRY(print_and_free(table, stream, style, err));
    nd_report_paragraph(stream, style, 2, 2,
                        view->traffic_equal ? "Counted is what the program says, to the byte."
                                            : "NOT EQUAL: the run communicated something else than its program says.");
    return ND_OK;
}

static void add_difference(nd_table *table, const char *what, double difference, double bound, const char *where)
{
    char text[32];
    nd_table_add(table, what);
    (void)snprintf(text, sizeof text, "%.1e", difference);
    nd_table_add_tone(table, text, difference <= bound ? ND_TONE_PLAIN : ND_TONE_BAD);
    (void)snprintf(text, sizeof text, "%.0e", bound);
    nd_table_add(table, text);
    nd_table_add(table, where);
}

static nd_status print_verify(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err)
{
    static const nd_column columns[] = {
        {"largest difference", NULL, ND_ALIGN_LEFT, 0, 0},
        {"found", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"allowed", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"where", NULL, ND_ALIGN_LEFT, 0, 20},
    };
    const nd_execution_verify *verify = &view->verify;
    if (!verify->done) {
        return ND_OK;
    }
    char heading[96];
    (void)snprintf(heading, sizeof heading, "The same %s step%s on one rank", nd_format_count(view->steps_count).text,
                   plural(view->steps_count));
    nd_report_heading(stream, style, heading);
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 4, &table, err));
    add_difference(table, "loss", verify->loss_abs, verify->loss_bound, "any step");
    add_difference(table, "gradient norm, relative", verify->grad_norm_rel, verify->grad_norm_bound, "any step");
    add_difference(table, "parameter", verify->param_abs, verify->param_bound, verify->worst_param);
    ND_TRY(print_and_free(table, stream, style, err));
    nd_report_paragraph(stream, style, 2, 2, "%s", verify->why);
    return ND_OK;
}

nd_status nd_report_execution(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet,
                              nd_error *err)
{
    print_inputs(stream, style, view, quiet);
    print_answer(stream, style, view, quiet);
    if (quiet || view->steps_count == 0) {
        return ND_OK;
    }
    ND_TRY(print_ranks(stream, style, view, err));
    ND_TRY(print_classes(stream, style, view, err));
    ND_TRY(print_traffic(stream, style, view, err));
    ND_TRY(nd_report_profile(stream, style, view, err));
    return print_verify(stream, style, view, err);
}
