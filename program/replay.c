#include "program/replay.h"

#include <string.h>

typedef struct tally {
    nd_replay result;
    int64_t total;
    int64_t by_class[ND_MEMORY_CLASS_COUNT];
} tally;

static void count(tally *t, const nd_buffer *buffer, int sign, int32_t ins)
{
    int64_t bytes = sign * nd_buffer_bytes(buffer);
    nd_memory_class of = buffer->memory_class;
    t->total += bytes;
    t->by_class[of] += bytes;
    if (t->by_class[of] > t->result.class_peak_bytes[of]) {
        t->result.class_peak_bytes[of] = t->by_class[of];
    }
    if (t->total > t->result.peak_bytes) {
        t->result.peak_bytes = t->total;
        t->result.peak_ins = ins;
        memcpy(t->result.at_peak_bytes, t->by_class, sizeof t->by_class);
    }
}

nd_replay nd_program_replay(const nd_program *program)
{
    tally t = {.result = {.peak_ins = -1, .arena_bytes = program->arena_bytes}};
    for (int32_t id = 1; id < program->buffers_count; id++) {
        if (program->buffers[id].born < 0) {
            count(&t, &program->buffers[id], 1, -1);
        }
    }
    for (int32_t i = 0; i < program->ins_count; i++) {
        const nd_ins *ins = &program->ins[i];
        if (ins->op == ND_INS_ALLOC || ins->op == ND_INS_FREE) {
            count(&t, &program->buffers[ins->out[0].buffer], ins->op == ND_INS_ALLOC ? 1 : -1, i);
        }
    }
    return t.result;
}
