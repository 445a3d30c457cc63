#include "reports/execution_profile.h"

#include <math.h>

#include "core/json_writer.h"
#include "reports/format.h"

enum { OPS_SHOWN = 14 };

/* "+3.1 %" */
static void error_text(double predicted, double measured, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "%+.1f", 100.0 * (predicted / measured - 1.0));
}

void nd_report_predicted(FILE *stream, const nd_report_style *style, const nd_execution_view *view, bool quiet)
{
    const nd_execution_time *time = &view->time;
    char error[32];
    if (time->machine == NULL) {
        if (!quiet) {
            fputs("No prediction without --calibration FILE (see ndplan calibrate --machine).\n", stream);
        }
        return;
    }
    error_text(time->predicted_s, view->step_s, error, sizeof error);
    nd_report_paragraph(stream, style, 0, 2, "Predicted: %s (%s %%).", nd_format_seconds(time->predicted_s).text,
                        error);
    if (time->other_processor) {
        nd_report_paragraph(stream, style, 0, 2, "The constants are of another processor: %s, measured on %s.",
                            time->machine->processor, time->machine->date);
    }
    if (time->lacks != ND_INS_COUNT) {
        nd_report_paragraph(stream, style, 0, 2, "The constants know nothing about %s, which is counted as no time.",
                            nd_ins_name(time->lacks));
    }
}

static void add_row(nd_table *table, const nd_execution_time *time, const char *name, const char *calls,
                    double measured_s, double predicted_s, double all_s)
{
    char error[32];
    nd_table_add(table, name);
    nd_table_add(table, calls);
    nd_table_add(table, nd_format_seconds(measured_s).text);
    nd_table_add(table, nd_format_percent(all_s > 0.0 ? measured_s / all_s : 0.0).text);
    if (time->machine != NULL) {
        nd_table_add(table, nd_format_seconds(predicted_s).text);
        error_text(predicted_s, measured_s, error, sizeof error);
        nd_table_add(table, measured_s > 0.0 ? error : "");
    }
}

static void add_rows(nd_table *table, const nd_execution_time *time, double all_s)
{
    nd_execution_op others = {0};
    int32_t more = 0;
    char name[48];
    for (int32_t i = 0; i < time->ops_count; i++) {
        const nd_execution_op *op = &time->ops[i];
        if (i < OPS_SHOWN) {
            add_row(table, time, nd_ins_name(op->op), nd_format_count(op->calls).text, op->measured_s, op->predicted_s,
                    all_s);
            continue;
        }
        others.calls += op->calls;
        others.measured_s += op->measured_s;
        others.predicted_s += op->predicted_s;
        more++;
    }
    if (more > 0) {
        (void)snprintf(name, sizeof name, "%d other operations", more);
        add_row(table, time, name, nd_format_count(others.calls).text, others.measured_s, others.predicted_s, all_s);
    }
    add_row(table, time, "waiting for others", "", time->measured_wait_s, time->predicted_wait_s, all_s);
}

nd_status nd_report_profile(FILE *stream, const nd_report_style *style, const nd_execution_view *view, nd_error *err)
{
    static const nd_column columns[] = {
        {"operation", NULL, ND_ALIGN_LEFT, 0, 0},  {"calls", NULL, ND_ALIGN_RIGHT, 1, 0},
        {"measured", NULL, ND_ALIGN_RIGHT, 0, 0},  {"of all", "%", ND_ALIGN_RIGHT, 0, 0},
        {"predicted", NULL, ND_ALIGN_RIGHT, 0, 0}, {"error", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    const nd_execution_time *time = &view->time;
    if (!time->profiled) {
        return ND_OK;
    }
    double all_s = time->measured_wait_s;
    for (int32_t i = 0; i < time->ops_count; i++) {
        all_s += time->ops[i].measured_s;
    }
    nd_table *table = nd_table_create(columns, time->machine != NULL ? 6 : 4);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the report");
    }
    add_rows(table, time, all_s);
    nd_report_heading(stream, style, "Instructions of the last step, all ranks together");
    nd_status status = nd_table_print(table, stream, style, 2, err);
    nd_table_free(table);
    return status;
}

static void put_predicted(nd_json_writer *json, const nd_execution_view *view)
{
    const nd_execution_time *time = &view->time;
    nd_json_key(json, "predicted");
    if (time->machine == NULL) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_double(json, "step_s", time->predicted_s);
    nd_json_put_double(json, "error_frac", time->predicted_s / view->step_s - 1.0);
    nd_json_put_string(json, "processor", time->machine->processor);
    nd_json_put_string(json, "date", time->machine->date);
    nd_json_put_bool(json, "other_processor", time->other_processor);
    nd_json_key(json, "unknown_operation");
    if (time->lacks == ND_INS_COUNT) {
        nd_json_null(json);
    } else {
        nd_json_string(json, nd_ins_name(time->lacks));
    }
    nd_json_end_object(json);
}

static void put_pair(nd_json_writer *json, const nd_execution_time *time, double measured_s, double predicted_s)
{
    nd_json_put_double(json, "measured_s", measured_s);
    nd_json_put_double(json, "predicted_s", time->machine != NULL ? predicted_s : (double)NAN); /* not finite: null */
}

static void put_profile(nd_json_writer *json, const nd_execution_time *time)
{
    nd_json_key(json, "profile");
    if (!time->profiled) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_key(json, "operations");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < time->ops_count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "operation", nd_ins_name(time->ops[i].op));
        nd_json_put_int(json, "calls", time->ops[i].calls);
        put_pair(json, time, time->ops[i].measured_s, time->ops[i].predicted_s);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_key(json, "wait");
    nd_json_begin_object(json);
    put_pair(json, time, time->measured_wait_s, time->predicted_wait_s);
    nd_json_end_object(json);
    nd_json_end_object(json);
}

void nd_json_put_execution_time(nd_json_writer *json, const nd_execution_view *view)
{
    put_predicted(json, view);
    put_profile(json, &view->time);
}
