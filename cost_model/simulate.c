#include "cost_model/simulate.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/data_parallel.h"
#include "cost_model/split.h"
#include "cost_model/time.h"
#include "program/schedule.h"

#define ND_NAME_ROW(enumerator, text) [enumerator] = (text),
static const char *const event_names[ND_EVENT_COUNT] = {ND_EVENT_LIST(ND_NAME_ROW)};
#undef ND_NAME_ROW

const char *nd_event_name(nd_event_kind kind)
{
    assert(kind < ND_EVENT_COUNT);
    return event_names[kind];
}

/* Seconds of one micro-batch in one chunk, without data-parallel traffic. */
typedef struct chunk_time {
    double forward_s, backward_s, weight_gradient_s; /* the last is 0 unless it runs apart */
} chunk_time;

typedef struct stage_state {
    nd_work_order order;
    nd_dp_cost dp;
    double free_s;         /* when the passes so far are done */
    double busy_s;         /* of which it worked or was kept by traffic */
    double link_free_s[2]; /* of its links to the next and to the previous stage_state */
    double after_s;        /* optimizer, and what of it is offloaded */
} stage_state;

/* An input that has not arrived. */
/* Passes of one simulated estimate: about 5 ms, so that the best 64 of a search take a fraction of a second. */
static const int64_t quick_passes = 32768;
static const double never_s = (double)INFINITY;

typedef struct simulation {
    const nd_cost_context *context;
    const nd_layout *layout;
    nd_timeline_sink sink;
    void *user;
    int32_t pp, chunks;
    int64_t micro_batches;
    double send_s, send_host_s;
    bool by_layer; /* data-parallel traffic accompanies every pass */
    stage_state *stages;
    chunk_time *chunk_times;
    double *arrived[2]; /* of forward and backward inputs: [chunk x micro_batches + micro_batch] */
    double rest_s;      /* host time of the step */
    int64_t events;
} simulation;

static void emit(simulation *sim, nd_event_kind kind, int32_t stage, int32_t chunk_index, int64_t micro_batch,
                 double start_s, double end_s)
{
    sim->events++;
    if (sim->sink != NULL && end_s > start_s) {
        nd_timeline_event event = {kind, stage, chunk_index, micro_batch, start_s, end_s};
        sim->sink(&event, sim->user);
    }
}

/* What lengthens every pass of a stage in the closed form: kernels that wait for launches, contention, offloading. */
static double stretch_of(const simulation *sim, const nd_block_prices *prices, const nd_pipeline *alone, stage_state *s)
{
    nd_time_breakdown time;
    nd_estimate_time_piped(sim->context, sim->layout, prices, alone, &time);
    double offload_s = nd_offload_exposed_s(sim->context, sim->layout, prices, alone);
    double launches_s = time.host_s - sim->context->stack->host_s;
    s->after_s = time.optimizer_s + time.offload_s - offload_s;
    double work_s = (double)sim->micro_batches * nd_stage_work_s(&alone->busiest);
    return work_s > 0.0 ? 1.0 + (launches_s + time.contention_s + offload_s) / work_s : 1.0;
}

static void price_chunk(simulation *sim, const nd_block_prices *prices, const nd_stage_split *split, int32_t index,
                        double stretch)
{
    int64_t counts[ND_LAYER_KINDS_MAX];
    nd_chunk_layers(sim->context, split, index, counts);
    nd_stage_work work =
        nd_stage_work_of(sim->context, sim->layout, prices, counts, index == 0, index == sim->chunks - 1);
    bool apart = sim->layout->schedule == ND_SCHEDULE_ZERO_BUBBLE;
    double weights_s = apart ? work.weight_gradient_s : 0.0;
    sim->chunk_times[index] = (chunk_time){
        .forward_s = stretch * work.forward_s,
        .backward_s = stretch * (work.backward_s - weights_s),
        .weight_gradient_s = stretch * weights_s,
    };
}

static void price_stages(simulation *sim, const nd_block_prices *prices)
{
    nd_stage_split split;
    nd_pipeline whole;
    nd_split_stages(sim->context, sim->layout, prices, &split);
    nd_price_pipeline_split(sim->context, sim->layout, prices, &split, &whole);
    sim->send_s = whole.send_s;
    sim->send_host_s = whole.send_host_s;
    sim->rest_s = sim->context->stack->host_s;
    sim->by_layer = nd_dp_by_layer(sim->context, sim->layout);
    for (int32_t i = 0; i < sim->pp; i++) {
        stage_state *s = &sim->stages[i];
        nd_pipeline alone; /* as if this stage were the busiest: the closed form prices what surrounds its passes */
        memset(&alone, 0, sizeof alone);
        alone.busiest_stage = i;
        nd_stage_layers(sim->context, &split, i, alone.counts);
        alone.busiest = nd_stage_work_of(sim->context, sim->layout, prices, alone.counts, i == 0, i == sim->pp - 1);
        s->order = nd_work_order_start(sim->layout, i);
        s->dp = nd_dp_cost_of_stage(sim->context, sim->layout, prices, i, alone.counts);
        double stretch = stretch_of(sim, prices, &alone, s);
        for (int32_t c = i; c < sim->chunks; c += sim->pp) {
            price_chunk(sim, prices, &split, c, stretch);
        }
    }
}

/* Data-parallel traffic of one pass. Layer by layer each chunk has its share; whole weights are gathered before the
 * first pass of the step and whole gradients reduced after the last. */
static nd_dp_pass traffic_of(const simulation *sim, const stage_state *s, nd_work_item item)
{
    nd_dp_pass pass = {0.0, 0.0};
    bool apart = s->order.lag >= 0;
    bool forward = item.kind == ND_WORK_FORWARD;
    if (!forward && apart != (item.kind == ND_WORK_WEIGHT_GRADIENT)) {
        return pass; /* gradients to reduce come with the weights' */
    }
    bool first = forward && item.micro_batch == 0;
    bool last = !forward && item.micro_batch == sim->micro_batches - 1;
    pass = first ? s->dp.first_forward : last ? s->dp.last_backward : forward ? s->dp.forward : s->dp.backward;
    double share = 1.0 / (double)sim->layout->vpp;
    if (!sim->by_layer && (first || last)) {
        share = item.chunk == 0 ? 1.0 : 0.0;
    }
    return (nd_dp_pass){share * pass.exposed_s, share * pass.hidden_s};
}

/* Send the result of a pass to the chunk that waits for it. */
static void send_on(simulation *sim, int32_t index, int32_t chunk_index, nd_work_item item)
{
    bool forward = item.kind == ND_WORK_FORWARD;
    int32_t to = forward ? chunk_index + 1 : chunk_index - 1;
    stage_state *s = &sim->stages[index];
    if (to < 0) {
        return;
    }
    if (to == sim->chunks) { /* the loss is here: its gradient needs no transfer */
        sim->arrived[1][chunk_index * sim->micro_batches + item.micro_batch] = s->free_s;
        return;
    }
    double *link_free_s = &s->link_free_s[forward ? 0 : 1];
    s->free_s += sim->send_host_s;
    s->busy_s += sim->send_host_s;
    double start_s = fmax(s->free_s, *link_free_s);
    double end_s = start_s + sim->send_s;
    *link_free_s = end_s;
    if (!sim->context->stack->overlaps_pp) {
        s->busy_s += end_s - s->free_s;
        s->free_s = end_s;
    }
    sim->arrived[forward ? 0 : 1][to * sim->micro_batches + item.micro_batch] = end_s;
    emit(sim, forward ? ND_EVENT_SEND_FORWARD : ND_EVENT_SEND_BACKWARD, index, chunk_index, item.micro_batch, start_s,
         end_s);
}

/* When the input of a pass is here; never_s when it is not known yet. */
static double input_s(const simulation *sim, int32_t chunk_index, nd_work_item item)
{
    int64_t at = chunk_index * sim->micro_batches + item.micro_batch;
    if (item.kind == ND_WORK_WEIGHT_GRADIENT || (item.kind == ND_WORK_FORWARD && chunk_index == 0)) {
        return 0.0;
    }
    return sim->arrived[item.kind == ND_WORK_FORWARD ? 0 : 1][at];
}

/* The host's part in receiving an input from another stage. */
static double receive_host_s(const simulation *sim, int32_t chunk_index, nd_work_item item)
{
    bool received = (item.kind == ND_WORK_FORWARD && chunk_index > 0) ||
                    (item.kind == ND_WORK_BACKWARD && chunk_index < sim->chunks - 1);
    return received ? sim->send_host_s : 0.0;
}

static double pass_s(const chunk_time *times, nd_work_kind kind)
{
    switch (kind) {
    case ND_WORK_FORWARD:
        return times->forward_s;
    case ND_WORK_BACKWARD:
        return times->backward_s;
    case ND_WORK_WEIGHT_GRADIENT:
        return times->weight_gradient_s;
    case ND_WORK_NONE:
        break;
    }
    return 0.0;
}

static void emit_traffic(simulation *sim, int32_t index, int32_t chunk_index, nd_work_item item, double start_s,
                         double end_s)
{
    nd_event_kind kind = item.kind == ND_WORK_FORWARD ? ND_EVENT_GATHER : ND_EVENT_REDUCE;
    emit(sim, kind, index, chunk_index, item.micro_batch, start_s, end_s);
}

/* Layer by layer, what a pass waits for lengthens it. Whole weights are gathered from the start of the step on, so that
 * the first pass waits for what is left of that; whole gradients are reduced when the result of their pass is sent. */
static void run_pass(simulation *sim, int32_t index, int32_t chunk_index, nd_work_item item, double ready_s)
{
    static const nd_event_kind kinds[] = {
        [ND_WORK_FORWARD] = ND_EVENT_FORWARD,
        [ND_WORK_BACKWARD] = ND_EVENT_BACKWARD,
        [ND_WORK_WEIGHT_GRADIENT] = ND_EVENT_WEIGHT_GRADIENT,
    };
    stage_state *s = &sim->stages[index];
    bool forward = item.kind == ND_WORK_FORWARD;
    nd_dp_pass traffic = traffic_of(sim, s, item);
    double traffic_s = traffic.exposed_s + traffic.hidden_s;
    double received_s = receive_host_s(sim, chunk_index, item);
    double idle_s = fmax(s->free_s, ready_s);
    double gathered_s = !sim->by_layer && forward && traffic_s > 0.0 ? traffic.exposed_s : 0.0;
    double start_s = fmax(idle_s + received_s, gathered_s);
    double end_s = start_s + pass_s(&sim->chunk_times[chunk_index], item.kind);
    end_s += sim->by_layer ? traffic.exposed_s : 0.0;
    s->busy_s += end_s - idle_s;
    s->free_s = end_s;
    emit(sim, kinds[item.kind], index, chunk_index, item.micro_batch, start_s, end_s);
    if (item.kind != ND_WORK_WEIGHT_GRADIENT) {
        send_on(sim, index, chunk_index, item);
    }
    if (!sim->by_layer && !forward) {
        s->free_s += traffic.exposed_s;
        s->busy_s += traffic.exposed_s;
        emit_traffic(sim, index, chunk_index, item, end_s - traffic.hidden_s, end_s + traffic.exposed_s);
    } else if (!sim->by_layer) {
        emit_traffic(sim, index, chunk_index, item, 0.0, traffic_s);
    } else {
        double shown_s = fmin(traffic_s, end_s - start_s);
        emit_traffic(sim, index, chunk_index, item, forward ? start_s : end_s - shown_s,
                     forward ? start_s + shown_s : end_s);
    }
    nd_work_order_done(&s->order, item.kind);
}

/* Run a stage as far as its inputs are known. \return whether it ran anything. */
static bool run_stage(simulation *sim, int32_t index)
{
    bool ran = false;
    for (;;) {
        nd_work_item item = nd_work_order_next(&sim->stages[index].order);
        if (item.kind == ND_WORK_NONE) {
            return ran;
        }
        int32_t chunk_index = item.chunk * sim->pp + index;
        double ready_s = input_s(sim, chunk_index, item);
        if (ready_s == never_s) {
            return ran;
        }
        run_pass(sim, index, chunk_index, item, ready_s);
        ran = true;
    }
}

/* Every order waits only for passes that are earlier in the orders of others (a test tries all small pipelines), so as
 * long as passes are left some stage can run. */
static nd_status run_passes(simulation *sim, nd_error *err)
{
    for (bool ran = true; ran;) {
        ran = false;
        for (int32_t i = 0; i < sim->pp; i++) {
            ran = run_stage(sim, i) || ran;
        }
    }
    for (int32_t i = 0; i < sim->pp; i++) {
        if (nd_work_order_next(&sim->stages[i].order).kind != ND_WORK_NONE) {
            return nd_fail(err, ND_EUNSUPPORTED, "stage %" PRId32 " of the schedule waits for what comes after it", i);
        }
    }
    return ND_OK;
}

static void finish(simulation *sim, nd_simulation *out)
{
    double passes_s = 0.0;
    double after_s = 0.0;
    for (int32_t i = 0; i < sim->pp; i++) {
        passes_s = fmax(passes_s, sim->stages[i].free_s);
        after_s = fmax(after_s, sim->stages[i].after_s);
    }
    double nodes = (double)sim->context->cluster->nodes;
    double stragglers = sim->context->calibration->straggler_frac * log2(fmax(1.0, nodes));
    out->passes_s = passes_s;
    out->step_s = (passes_s + after_s + sim->rest_s) * (1.0 + stragglers);
    out->stages = sim->pp;
    for (int32_t i = 0; i < sim->pp; i++) {
        const stage_state *s = &sim->stages[i];
        out->bubble_s[i] = fmax(0.0, passes_s - s->busy_s);
        if (out->bubble_s[i] < out->bubble_s[out->busiest_stage]) {
            out->busiest_stage = i;
        }
        emit(sim, ND_EVENT_OPTIMIZER, i, -1, -1, passes_s, passes_s + s->after_s);
        emit(sim, ND_EVENT_REST, i, -1, -1, passes_s + after_s, out->step_s);
    }
    out->events = sim->events;
}

static nd_status allocate(simulation *sim, nd_error *err)
{
    int64_t inputs = sim->chunks * sim->micro_batches;
    sim->stages = calloc((size_t)sim->pp, sizeof *sim->stages);
    sim->chunk_times = calloc((size_t)sim->chunks, sizeof *sim->chunk_times);
    sim->arrived[0] = malloc((size_t)inputs * sizeof(double));
    sim->arrived[1] = malloc((size_t)inputs * sizeof(double));
    if (sim->stages == NULL || sim->chunk_times == NULL || sim->arrived[0] == NULL || sim->arrived[1] == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while simulating %" PRId64 " micro-batches", sim->micro_batches);
    }
    for (int64_t i = 0; i < inputs; i++) {
        sim->arrived[0][i] = never_s;
        sim->arrived[1][i] = never_s;
    }
    return ND_OK;
}

static nd_status check_size(const nd_layout *layout, nd_error *err)
{
    int64_t kinds = layout->schedule == ND_SCHEDULE_ZERO_BUBBLE ? 3 : 2;
    int64_t chunks = (int64_t)layout->size[ND_AXIS_PP] * layout->vpp;
    if (layout->grad_accum > ND_SIMULATED_PASSES_MAX / (kinds * chunks)) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "%" PRId64 " micro-batches through %" PRId64 " pipeline chunks are more than the %d passes that "
                       "are simulated",
                       layout->grad_accum, chunks, (int)ND_SIMULATED_PASSES_MAX);
    }
    return ND_OK;
}

nd_status nd_simulate_step(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           nd_timeline_sink sink, void *user, nd_simulation *out, nd_error *err)
{
    ND_TRY(check_size(layout, err));
    simulation sim = {
        .context = context,
        .layout = layout,
        .sink = sink,
        .user = user,
        .pp = layout->size[ND_AXIS_PP],
        .chunks = layout->size[ND_AXIS_PP] * layout->vpp,
        .micro_batches = layout->grad_accum,
    };
    nd_status status = allocate(&sim, err);
    if (status == ND_OK) {
        price_stages(&sim, prices);
        status = run_passes(&sim, err);
    }
    if (status == ND_OK) {
        memset(out, 0, sizeof *out);
        finish(&sim, out);
    }
    free(sim.stages);
    free(sim.chunk_times);
    free(sim.arrived[0]);
    free(sim.arrived[1]);
    return status;
}

bool nd_is_simulated(const nd_cost_context *context, const nd_layout *layout)
{
    int64_t passes = 2 * (int64_t)layout->size[ND_AXIS_PP] * layout->vpp;
    return context->simulates && layout->size[ND_AXIS_PP] > 1 && layout->grad_accum <= quick_passes / passes;
}

/* Take as much of `excess_s` out of a term as it has; a negative excess goes in as a whole. */
static double take_from(double *term_s, double excess_s)
{
    double taken_s = fmin(*term_s, excess_s);
    *term_s -= taken_s;
    return excess_s - taken_s;
}

void nd_time_retime(double step_s, nd_time_breakdown *time)
{
    double ratio = step_s / time->step_s;
    double left_s = take_from(&time->bubble_s, time->step_s - step_s);
    double sends_s = time->exposed_pp_s;
    left_s = take_from(&time->exposed_pp_s, left_s);
    time->exposed_comm_s -= sends_s - time->exposed_pp_s;
    time->other_s -= left_s;
    time->step_s = step_s;
    time->step_low_s *= ratio;
    time->step_high_s *= ratio;
}

double nd_simulated_step_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices)
{
    nd_simulation simulated;
    if (nd_simulate_step(context, layout, prices, NULL, NULL, &simulated, NULL) == ND_OK) {
        return simulated.step_s;
    }
    nd_time_breakdown time;
    nd_estimate_time(context, layout, prices, &time);
    return time.step_s;
}
