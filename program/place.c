/* Places in the arena: each buffer goes into the lowest gap that is large enough when it is allocated. */
#include <stdlib.h>
#include <string.h>

#include "program/builder_internal.h"

typedef struct arena {
    nd_program *program;
    int32_t *live; /* buffers by offset */
    int32_t count;
} arena;

static int64_t size_of(const nd_buffer *buffer)
{
    int64_t bytes = buffer->elements * nd_elem_bytes(buffer->elem);
    return (bytes + ND_ARENA_ALIGN_BYTES - 1) / ND_ARENA_ALIGN_BYTES * ND_ARENA_ALIGN_BYTES;
}

int64_t nd_buffer_bytes(const nd_buffer *buffer)
{
    return size_of(buffer);
}

static void place(arena *a, int32_t id)
{
    nd_buffer *buffers = a->program->buffers;
    int64_t bytes = size_of(&buffers[id]);
    int64_t end = 0;
    int32_t at = 0;
    for (; at < a->count; at++) {
        const nd_buffer *next = &buffers[a->live[at]];
        if (next->offset - end >= bytes) {
            break;
        }
        end = next->offset + size_of(next);
    }
    memmove(&a->live[at + 1], &a->live[at], (size_t)(a->count - at) * sizeof *a->live);
    a->live[at] = id;
    a->count++;
    buffers[id].offset = end;
    if (end + bytes > a->program->arena_bytes) {
        a->program->arena_bytes = end + bytes;
    }
}

static void take_out(arena *a, int32_t id)
{
    for (int32_t i = 0; i < a->count; i++) {
        if (a->live[i] == id) {
            a->count--;
            memmove(&a->live[i], &a->live[i + 1], (size_t)(a->count - i) * sizeof *a->live);
            return;
        }
    }
}

nd_status nd_place_buffers(nd_program *program, nd_error *err)
{
    arena a = {.program = program, .live = malloc((size_t)program->buffers_count * sizeof(int32_t))};
    if (a.live == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    program->arena_bytes = 0;
    for (int32_t id = 1; id < program->buffers_count; id++) {
        if (program->buffers[id].born < 0) {
            place(&a, id);
        }
    }
    for (int32_t i = 0; i < program->ins_count; i++) {
        const nd_ins *ins = &program->ins[i];
        if (ins->op == ND_INS_ALLOC) {
            place(&a, ins->out[0].buffer);
        } else if (ins->op == ND_INS_FREE) {
            take_out(&a, ins->out[0].buffer);
        }
    }
    free(a.live);
    return ND_OK;
}
