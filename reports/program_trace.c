/* "Trace Event Format", JSON object form, as in trace.c. Every name is a constant of the program builder: nothing needs
 * an escape. */
#include "reports/program_trace.h"

#include <inttypes.h>

#include "core/json_writer.h"
#include "core/units.h"

/** One process of the trace. */
typedef struct lane {
    FILE *stream;
    const nd_program *program;
    const nd_rank_time *time;
    const char *what; /* "measured" */
    int64_t process;
} lane;

static void name_lane(const lane *l, bool first)
{
    fprintf(l->stream,
            "%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRId64 ",\"args\":{\"name\":\"rank %" PRId64
            " %s\"}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" PRId64
            ",\"args\":{\"sort_index\":%" PRId64 "}}",
            first ? "" : ",", l->process, l->program->rank, l->what, l->process, l->process);
    bool used[ND_STREAM_COUNT] = {false};
    for (int32_t i = 0; i < l->program->ins_count; i++) {
        used[l->program->ins[i].stream] = true;
    }
    for (int s = 0; s < ND_STREAM_COUNT; s++) {
        if (used[s]) {
            fprintf(l->stream,
                    ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRId64
                    ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                    l->process, s, nd_stream_name((nd_stream)s));
        }
    }
}

static void write_event(const lane *l, const nd_ins *ins, const char *name, double start_s, double end_s)
{
    fprintf(l->stream,
            ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%" PRId64
            ",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"op\":\"%s\",\"instruction\":%d",
            name, nd_ins_name(ins->op), l->process, (int)ins->stream, start_s / ND_MICRO, (end_s - start_s) / ND_MICRO,
            nd_ins_name(ins->op), (int)(ins - l->program->ins));
    if (ins->layer >= 0) {
        fprintf(l->stream, ",\"layer\":%d", ins->layer);
    }
    if (ins->micro >= 0) {
        fprintf(l->stream, ",\"micro_batch\":%d", ins->micro);
    }
    fputs("}}", l->stream);
}

static const double shown_s = 0.5e-9; /* anything shorter is 0.000 in the file */

static void write_lane(const lane *l, bool first)
{
    name_lane(l, first);
    for (int32_t i = 0; i < l->program->ins_count; i++) {
        const nd_ins *ins = &l->program->ins[i];
        if (ins->op == ND_INS_ALLOC || ins->op == ND_INS_FREE || ins->op == ND_INS_WAIT) {
            continue;
        }
        if (l->time->begin_s[i] - l->time->start_s[i] > shown_s) {
            write_event(l, ins, "wait", l->time->start_s[i], l->time->begin_s[i]);
        }
        if (l->time->end_s[i] - l->time->begin_s[i] > shown_s) {
            write_event(l, ins, ins->tag != NULL ? ins->tag : nd_ins_name(ins->op), l->time->begin_s[i],
                        l->time->end_s[i]);
        }
    }
}

void nd_trace_program(FILE *stream, const nd_program_trace *trace)
{
    bool first = true;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", stream);
    for (int32_t i = 0; i < trace->ranks; i++) {
        lane l = {.stream = stream, .program = trace->programs[i]};
        for (int which = 0; which < 2; which++) {
            const nd_program_time *time = which == 0 ? trace->measured : trace->predicted;
            if (time != NULL) {
                l.time = &time->rank[i];
                l.what = which == 0 ? "measured" : "predicted";
                l.process = 2 * (int64_t)i + which;
                write_lane(&l, first);
                first = false;
            }
        }
    }
    fputs("\n],\"otherData\":", stream);
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", "ndplan/program-trace/1");
    nd_json_put_string(&json, "model", trace->model);
    nd_json_put_string(&json, "layout", trace->layout);
    if (trace->measured != NULL) {
        nd_json_put_double(&json, "measured_step_s", trace->measured->step_s);
    }
    if (trace->predicted != NULL) {
        nd_json_put_double(&json, "predicted_step_s", trace->predicted->step_s);
    }
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
    fputs("}\n", stream);
}
