/* Micro-batches through the chunks of a rank, in the order of the pipeline's schedule; what travels between stages. */
#include <stdlib.h>

#include "program/builder_internal.h"
#include "program/schedule.h"

enum { CHANNEL_ACTIVATIONS, CHANNEL_GRADIENTS, CHANNELS };

/** A send whose buffer is still in use. */
typedef struct pending_send {
    int32_t buffer;
    int32_t ins;
} pending_send;

typedef struct passes {
    nd_builder *b;
    int32_t count; /* buffer: labels of the step */
    int32_t micros;
    int32_t layers;          /* of this rank */
    nd_kept_layer *kept;     /* [micro][layer of this rank] */
    nd_kept_head *kept_head; /* [micro] */
    pending_send sends[CHANNELS];
} passes;

static int32_t global_chunk(const nd_builder *b, int32_t chunk)
{
    return chunk * b->pp + b->coords[ND_AXIS_PP];
}

static bool is_last(const nd_builder *b, int32_t chunk)
{
    return global_chunk(b, chunk) == b->program->chunks.chunks - 1;
}

static int32_t first_layer(const nd_builder *b, int32_t chunk)
{
    return b->program->chunks.first[global_chunk(b, chunk)];
}

static int32_t end_layer(const nd_builder *b, int32_t chunk)
{
    return b->program->chunks.first[global_chunk(b, chunk) + 1];
}

/* Layers of this rank before those of `chunk`. */
static int32_t layers_before(const nd_builder *b, int32_t chunk)
{
    int32_t layers = 0;
    for (int32_t i = 0; i < chunk; i++) {
        layers += end_layer(b, i) - first_layer(b, i);
    }
    return layers;
}

static nd_kept_layer *kept_of(const passes *p, int32_t chunk, int32_t micro, int32_t layer)
{
    int32_t index = layers_before(p->b, chunk) + layer - first_layer(p->b, chunk);
    return &p->kept[(int64_t)micro * p->layers + index];
}

/* The same place on the next (+1) or previous (-1) stage; the last is followed by the first. */
static int32_t neighbour(const nd_builder *b, int32_t step)
{
    int64_t ranks = nd_layout_ranks(&b->layout);
    return (int32_t)((b->program->rank + step * (ranks / b->pp) + ranks) % ranks);
}

static nd_ins transfer(const nd_builder *b, nd_ins_op op, int32_t channel)
{
    bool forward = (channel == CHANNEL_ACTIVATIONS) == (op != ND_INS_RECV);
    return (nd_ins){.op = op,
                    .stream = op == ND_INS_RECV ? ND_STREAM_RECV : ND_STREAM_SEND,
                    .rows = b->stream_rows,
                    .cols = b->model->hidden,
                    .group = ND_MEMBERS_WORLD,
                    .peer = neighbour(b, forward ? 1 : -1),
                    .channel = channel,
                    .tag = channel == CHANNEL_ACTIVATIONS ? "activations" : "gradients"};
}

static int32_t receive(passes *p, int32_t channel)
{
    nd_builder *b = p->b;
    int32_t buffer = nd_buffer_new(b, b->stream_rows * b->model->hidden, b->real, ND_MEMORY_ACTIVATIONS, "received");
    nd_ins ins = transfer(b, ND_INS_RECV, channel);
    ins.out[0] = nd_whole(buffer);
    nd_emit(b, &ins);
    return buffer;
}

static void finish_send(passes *p, int32_t channel)
{
    pending_send *pending = &p->sends[channel];
    if (pending->buffer == 0) {
        return;
    }
    nd_ins ins = transfer(p->b, ND_INS_SEND_WAIT, channel);
    ins.in[0] = nd_whole(pending->buffer);
    ins.waits_for = pending->ins;
    nd_emit(p->b, &ins);
    nd_release(p->b, &pending->buffer);
}

/* Takes the buffer over; it is free when the next send on the channel begins. */
static void start_send(passes *p, int32_t channel, int32_t buffer)
{
    finish_send(p, channel);
    nd_ins ins = transfer(p->b, ND_INS_SEND, channel);
    ins.in[0] = nd_whole(buffer);
    p->sends[channel] = (pending_send){.buffer = buffer, .ins = p->b->program->ins_count};
    nd_emit(p->b, &ins);
}

/* Units of a layer: with zero3 the next layer's weights are gathered while this one runs. */
static void with_units(nd_builder *b, int32_t layer, void (*act)(nd_builder *, int32_t))
{
    if (b->model->layer_kinds[b->model->kind_of_layer[layer]].moe) {
        act(b, nd_unit_find(b, ND_UNIT_EXPERTS, layer));
    }
    act(b, nd_unit_find(b, ND_UNIT_LAYER, layer));
}

static void forward(passes *p, int32_t chunk, int32_t micro)
{
    nd_builder *b = p->b;
    int32_t first = first_layer(b, chunk);
    int32_t end = end_layer(b, chunk);
    b->layer = -1;
    int32_t x = global_chunk(b, chunk) == 0 ? nd_build_embedding(b) : receive(p, CHANNEL_ACTIVATIONS);
    for (int32_t layer = first; layer < end; layer++) {
        if (layer == first) {
            with_units(b, layer, nd_unit_open);
        }
        if (layer + 1 < end) {
            with_units(b, layer + 1, nd_unit_open);
        }
        b->layer = layer;
        x = nd_build_layer(b, layer, x, kept_of(p, chunk, micro, layer));
        with_units(b, layer, nd_unit_close);
    }
    b->layer = -1;
    if (is_last(b, chunk)) {
        nd_build_head(b, x, p->count, &p->kept_head[micro]);
    } else {
        start_send(p, CHANNEL_ACTIVATIONS, x);
    }
}

/* The head's own unit, and of a tied embedding the copy of the last stage. */
static void reduce_head(nd_builder *b)
{
    nd_unit_reduce(b, nd_unit_find(b, ND_UNIT_HEAD, -1));
    if (b->model->tied_embeddings && b->pp > 1) {
        nd_unit_reduce(b, nd_unit_find(b, ND_UNIT_EMBED, -1));
    }
}

static void backward(passes *p, int32_t chunk, int32_t micro)
{
    nd_builder *b = p->b;
    int32_t first = first_layer(b, chunk);
    int32_t end = end_layer(b, chunk);
    b->chunk = chunk;
    b->layer = -1;
    int32_t dy = is_last(b, chunk) ? nd_build_head_back(b, &p->kept_head[micro]) : receive(p, CHANNEL_GRADIENTS);
    if (is_last(b, chunk) && !b->defers) {
        reduce_head(b);
    }
    for (int32_t layer = end - 1; layer >= first; layer--) {
        if (layer == end - 1) {
            with_units(b, layer, nd_unit_open);
        }
        if (layer > first) {
            with_units(b, layer - 1, nd_unit_open);
        }
        b->layer = layer;
        dy = nd_build_layer_back(b, layer, dy, kept_of(p, chunk, micro, layer));
        with_units(b, layer, nd_unit_close);
        if (!b->defers) {
            with_units(b, layer, nd_unit_reduce);
        }
    }
    b->layer = -1;
    if (global_chunk(b, chunk) != 0) {
        start_send(p, CHANNEL_GRADIENTS, dy);
        return;
    }
    nd_build_embedding_back(b, dy);
    if (!b->defers) {
        nd_unit_reduce(b, nd_unit_find(b, ND_UNIT_EMBED, -1));
    }
}

/* zero_bubble: the weight gradients that the backward pass left, then the reductions. */
static void weight_gradients(passes *p, int32_t chunk, int32_t micro)
{
    nd_builder *b = p->b;
    nd_emit_deferred(b, chunk, micro);
    if (is_last(b, chunk)) {
        reduce_head(b);
    }
    for (int32_t layer = end_layer(b, chunk) - 1; layer >= first_layer(b, chunk); layer--) {
        b->layer = layer;
        with_units(b, layer, nd_unit_reduce);
    }
    b->layer = -1;
    if (global_chunk(b, chunk) == 0) {
        nd_unit_reduce(b, nd_unit_find(b, ND_UNIT_EMBED, -1));
    }
}

static void run(passes *p)
{
    nd_builder *b = p->b;
    nd_work_order order = nd_work_order_start(&b->layout, b->coords[ND_AXIS_PP]);
    for (;;) {
        nd_work_item item = nd_work_order_next(&order);
        int32_t micro = (int32_t)item.micro_batch;
        b->micro = micro;
        switch (item.kind) {
        case ND_WORK_FORWARD:
            b->pass = ND_PASS_FORWARD;
            forward(p, item.chunk, micro);
            break;
        case ND_WORK_BACKWARD:
            b->pass = ND_PASS_BACKWARD;
            b->defers = order.lag >= 0;
            backward(p, item.chunk, micro);
            b->defers = false;
            break;
        case ND_WORK_WEIGHT_GRADIENT:
            b->pass = ND_PASS_BACKWARD;
            weight_gradients(p, item.chunk, micro);
            break;
        case ND_WORK_NONE:
            return;
        }
        if (b->failed) {
            return;
        }
        nd_work_order_done(&order, item.kind);
    }
}

void nd_build_passes(nd_builder *b, int32_t count)
{
    passes p = {.b = b, .count = count, .micros = (int32_t)b->layout.grad_accum};
    p.layers = layers_before(b, b->layout.vpp);
    p.kept = calloc((size_t)p.micros * (size_t)p.layers + 1, sizeof *p.kept);
    p.kept_head = calloc((size_t)p.micros + 1, sizeof *p.kept_head);
    if (p.kept == NULL || p.kept_head == NULL) {
        b->failed = true;
    } else {
        run(&p);
        for (int32_t channel = 0; channel < CHANNELS; channel++) {
            finish_send(&p, channel);
        }
    }
    free(p.kept);
    free(p.kept_head);
}
