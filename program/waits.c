/* Streams run at the same time unless they wait: for every instruction, insert waits for the last accesses of other
 * streams to the memory that it touches, and to what lay in that memory before. */
#include <stdlib.h>
#include <string.h>

#include "program/builder_internal.h"

/** Last accesses to a buffer, as indexes into the new list; -1: none. */
typedef struct accesses {
    int32_t write;                    /* the last writer */
    int32_t touched[ND_STREAM_COUNT]; /* last reader or writer on each stream */
} accesses;

/** Memory of a freed buffer. */
typedef struct remains {
    int64_t first, end; /* bytes */
    int32_t touched[ND_STREAM_COUNT];
} remains;

typedef struct waits {
    nd_program *program;
    nd_ins *list;
    int32_t count, capacity;
    int32_t *moved; /* old index -> new */
    accesses *buffers;
    remains *dead;
    int32_t dead_count, dead_capacity;
    int32_t known[ND_STREAM_COUNT][ND_STREAM_COUNT]; /* the latest instruction of [other] that [stream] waited for */
    bool failed;
} waits;

static void append(waits *w, const nd_ins *ins)
{
    if (w->count == w->capacity) {
        int32_t capacity = 2 * w->capacity;
        nd_ins *larger = realloc(w->list, (size_t)capacity * sizeof *larger);
        if (larger == NULL) {
            w->failed = true;
            return;
        }
        w->list = larger;
        w->capacity = capacity;
    }
    w->list[w->count++] = *ins;
}

static void wait_for(waits *w, const nd_ins *ins, int32_t index)
{
    if (index < 0) {
        return;
    }
    nd_stream other = w->list[index].stream;
    if (other == ins->stream || w->known[ins->stream][other] >= index) {
        return;
    }
    w->known[ins->stream][other] = index;
    append(w, &(nd_ins){.op = ND_INS_WAIT,
                        .stream = ins->stream,
                        .waits_for = index,
                        .layer = ins->layer,
                        .micro = ins->micro,
                        .pass = ins->pass,
                        .tag = nd_stream_name(other)});
}

static bool writes_input(nd_ins_op op)
{
    return op == ND_INS_REDUCE_SCATTER;
}

static void wait_for_operands(waits *w, const nd_ins *ins)
{
    for (int i = 0; i < ND_INS_IN_MAX; i++) {
        int32_t buffer = ins->in[i].buffer;
        if (buffer == 0) {
            continue;
        }
        wait_for(w, ins, w->buffers[buffer].write);
        for (int s = 0; s < ND_STREAM_COUNT && writes_input(ins->op); s++) {
            wait_for(w, ins, w->buffers[buffer].touched[s]);
        }
    }
    if (ins->live_rows.buffer != 0) {
        wait_for(w, ins, w->buffers[ins->live_rows.buffer].write);
    }
    for (int i = 0; i < ND_INS_OUT_MAX; i++) {
        for (int s = 0; s < ND_STREAM_COUNT && ins->out[i].buffer != 0; s++) {
            wait_for(w, ins, w->buffers[ins->out[i].buffer].touched[s]);
        }
    }
}

static void touch(waits *w, int32_t buffer, const nd_ins *ins, bool writes)
{
    if (buffer == 0) {
        return;
    }
    accesses *a = &w->buffers[buffer];
    a->touched[ins->stream] = w->count;
    if (writes) {
        a->write = w->count;
    }
}

static void note_operands(waits *w, const nd_ins *ins)
{
    for (int i = 0; i < ND_INS_IN_MAX; i++) {
        touch(w, ins->in[i].buffer, ins, writes_input(ins->op));
    }
    touch(w, ins->live_rows.buffer, ins, false);
    for (int i = 0; i < ND_INS_OUT_MAX; i++) {
        touch(w, ins->out[i].buffer, ins, true);
    }
}

/* The new buffer inherits the last accesses to every byte that it takes over. */
static void born(waits *w, int32_t id)
{
    const nd_buffer *buffer = &w->program->buffers[id];
    int64_t first = buffer->offset;
    int64_t end = first + nd_buffer_bytes(buffer);
    accesses *a = &w->buffers[id];
    int32_t kept = 0;
    for (int32_t i = 0; i < w->dead_count; i++) {
        remains *dead = &w->dead[i];
        bool overlaps = dead->first < end && first < dead->end;
        for (int s = 0; s < ND_STREAM_COUNT && overlaps; s++) {
            a->touched[s] = dead->touched[s] > a->touched[s] ? dead->touched[s] : a->touched[s];
        }
        if (!(dead->first >= first && dead->end <= end)) {
            w->dead[kept++] = *dead; /* partly overlapped ones stay whole: waiting twice does no harm */
        }
    }
    w->dead_count = kept;
}

static void died(waits *w, int32_t id)
{
    if (w->dead_count == w->dead_capacity) {
        int32_t capacity = w->dead_capacity == 0 ? 64 : 2 * w->dead_capacity;
        remains *larger = realloc(w->dead, (size_t)capacity * sizeof *larger);
        if (larger == NULL) {
            w->failed = true;
            return;
        }
        w->dead = larger;
        w->dead_capacity = capacity;
    }
    const nd_buffer *buffer = &w->program->buffers[id];
    remains *dead = &w->dead[w->dead_count++];
    *dead = (remains){.first = buffer->offset, .end = buffer->offset + nd_buffer_bytes(buffer)};
    memcpy(dead->touched, w->buffers[id].touched, sizeof dead->touched);
}

static void rewrite(waits *w, int32_t index)
{
    nd_ins ins = w->program->ins[index];
    if (ins.op == ND_INS_SEND_WAIT) {
        ins.waits_for = w->moved[ins.waits_for];
    }
    if (ins.op == ND_INS_ALLOC) {
        born(w, ins.out[0].buffer);
        w->program->buffers[ins.out[0].buffer].born = w->count;
    } else if (ins.op == ND_INS_FREE) {
        died(w, ins.out[0].buffer);
        w->program->buffers[ins.out[0].buffer].dies = w->count;
    } else {
        wait_for_operands(w, &ins);
        note_operands(w, &ins);
    }
    w->moved[index] = w->count;
    append(w, &ins);
}

nd_status nd_insert_waits(nd_program *program, nd_error *err)
{
    waits w = {.program = program, .capacity = program->ins_count + 64};
    w.list = calloc((size_t)w.capacity, sizeof *w.list);
    w.moved = calloc((size_t)program->ins_count + 1, sizeof *w.moved);
    w.buffers = malloc((size_t)program->buffers_count * sizeof *w.buffers);
    w.failed = w.list == NULL || w.moved == NULL || w.buffers == NULL;
    memset(w.known, -1, sizeof w.known);
    if (w.buffers != NULL) {
        memset(w.buffers, -1, (size_t)program->buffers_count * sizeof *w.buffers);
    }
    for (int32_t i = 0; i < program->ins_count && !w.failed; i++) {
        rewrite(&w, i);
    }
    free(w.moved);
    free(w.buffers);
    free(w.dead);
    if (w.failed) {
        free(w.list);
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    free(program->ins);
    program->ins = w.list;
    program->ins_count = w.count;
    return ND_OK;
}
