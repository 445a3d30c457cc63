/* The format is "Trace Event Format", JSON object form: complete events ("ph": "X") with start and duration in
 * microseconds, and metadata events ("ph": "M") that name processes and threads. */
#include "reports/trace.h"

#include <inttypes.h>
#include <string.h>

#include "core/json_writer.h"
#include "core/units.h"

/* Threads of a stage's process. */
enum { LANE_PASSES, LANE_TO_NEXT, LANE_TO_PREVIOUS, LANE_DATA_PARALLEL, LANES };

static const char *const lane_names[LANES] = {
    [LANE_PASSES] = "compute",
    [LANE_TO_NEXT] = "network: to the next stage",
    [LANE_TO_PREVIOUS] = "network: to the previous stage",
    [LANE_DATA_PARALLEL] = "network: data parallel",
};

static const int lane_of[ND_EVENT_COUNT] = {
    [ND_EVENT_FORWARD] = LANE_PASSES,
    [ND_EVENT_BACKWARD] = LANE_PASSES,
    [ND_EVENT_WEIGHT_GRADIENT] = LANE_PASSES,
    [ND_EVENT_SEND_FORWARD] = LANE_TO_NEXT,
    [ND_EVENT_SEND_BACKWARD] = LANE_TO_PREVIOUS,
    [ND_EVENT_GATHER] = LANE_DATA_PARALLEL,
    [ND_EVENT_REDUCE] = LANE_DATA_PARALLEL,
    [ND_EVENT_OPTIMIZER] = LANE_PASSES,
    [ND_EVENT_REST] = LANE_PASSES,
};

/* One event is one line: there can be millions. Names are ours, so nothing needs an escape. */
static void write_event(const nd_timeline_event *event, void *user)
{
    FILE *stream = user;
    char micro_batch[32] = "";
    if (event->micro_batch >= 0) {
        (void)snprintf(micro_batch, sizeof micro_batch, " %" PRId64, event->micro_batch);
    }
    fprintf(stream, ",\n{\"ph\":\"X\",\"name\":\"%s%s\",\"pid\":%" PRId32 ",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
            nd_event_name(event->kind), micro_batch, event->stage, lane_of[event->kind], event->start_s / ND_MICRO,
            (event->end_s - event->start_s) / ND_MICRO);
    if (event->micro_batch >= 0) {
        fprintf(stream, ",\"args\":{\"micro_batch\":%" PRId64 ",\"chunk\":%" PRId32 "}", event->micro_batch,
                event->chunk);
    }
    fputc('}', stream);
}

static void name_stage(FILE *stream, int32_t stage)
{
    fprintf(stream,
            "%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRId32 ",\"args\":{\"name\":\"stage %" PRId32
            "\"}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" PRId32 ",\"args\":{\"sort_index\":%" PRId32
            "}}",
            stage > 0 ? "," : "", stage, stage, stage, stage);
    for (int lane = 0; lane < LANES; lane++) {
        fprintf(stream,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRId32 ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                stage, lane, lane_names[lane]);
    }
}

nd_status nd_trace_step(FILE *stream, const nd_cost_context *context, const nd_layout *layout, nd_error *err)
{
    char text[512];
    nd_block_prices prices;
    nd_simulation simulated;
    nd_price_blocks(context, layout, &prices);
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", stream);
    for (int32_t stage = 0; stage < layout->size[ND_AXIS_PP]; stage++) {
        name_stage(stream, stage);
    }
    ND_TRY(nd_simulate_step(context, layout, &prices, write_event, stream, &simulated, err));
    (void)nd_layout_format(layout, text, sizeof text);
    fputs("\n],\"otherData\":", stream);
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", "ndplan/trace/1");
    nd_json_put_string(&json, "model", context->model->name);
    nd_json_put_string(&json, "cluster", context->cluster->name);
    nd_json_put_string(&json, "layout", text);
    nd_json_put_double(&json, "simulated_step_s", simulated.step_s);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
    fputs("}\n", stream);
    return ND_OK;
}
