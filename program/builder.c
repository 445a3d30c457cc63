/* The list under construction: instructions, buffers and their last uses. */
#include <assert.h>
#include <stdlib.h>

#include "program/builder_internal.h"

/* Room for one more entry of `size` bytes; false when out of memory. */
static bool grow(void **array, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    int32_t wanted = *capacity == 0 ? 256 : *capacity * 2;
    void *larger = wanted > *capacity ? realloc(*array, (size_t)wanted * size) : NULL;
    if (larger == NULL) {
        return false;
    }
    *array = larger;
    *capacity = wanted;
    return true;
}

void nd_emit(nd_builder *b, const nd_ins *ins)
{
    nd_program *program = b->program;
    if (b->failed || !grow((void **)&program->ins, program->ins_count, &b->ins_capacity, sizeof *program->ins)) {
        b->failed = true;
        return;
    }
    nd_ins *out = &program->ins[program->ins_count++];
    *out = *ins;
    out->layer = b->layer;
    out->micro = b->micro;
    out->pass = (int8_t)b->pass;
}

int32_t nd_buffer_persistent(nd_builder *b, int64_t elements, nd_elem elem, nd_memory_class memory_class,
                             const char *tag)
{
    nd_program *program = b->program;
    int32_t capacity = b->buffers_capacity;
    if (b->failed ||
        !grow((void **)&program->buffers, program->buffers_count, &b->buffers_capacity, sizeof *program->buffers)) {
        b->failed = true;
        return 0;
    }
    if (b->buffers_capacity > capacity) {
        int32_t *refs = realloc(b->refs, (size_t)b->buffers_capacity * sizeof *refs);
        if (refs == NULL) {
            b->buffers_capacity = capacity;
            b->failed = true;
            return 0;
        }
        b->refs = refs;
    }
    int32_t buffer = program->buffers_count++;
    program->buffers[buffer] = (nd_buffer){
        .elements = elements, .elem = elem, .memory_class = memory_class, .born = -1, .dies = -1, .tag = tag};
    b->refs[buffer] = 1;
    return buffer;
}

int32_t nd_buffer_new(nd_builder *b, int64_t elements, nd_elem elem, nd_memory_class memory_class, const char *tag)
{
    int32_t buffer = nd_buffer_persistent(b, elements, elem, memory_class, tag);
    if (buffer != 0) {
        b->program->buffers[buffer].born = b->program->ins_count;
        nd_emit(b, &(nd_ins){.op = ND_INS_ALLOC, .out = {nd_whole(buffer)}, .rows = elements, .cols = 1, .tag = tag});
    }
    return buffer;
}

void nd_retain(nd_builder *b, int32_t buffer)
{
    if (buffer != 0 && !b->failed) {
        b->refs[buffer]++;
    }
}

void nd_release(nd_builder *b, int32_t *buffer)
{
    int32_t id = *buffer;
    *buffer = 0;
    if (id == 0 || b->failed) {
        return;
    }
    assert(b->refs[id] > 0);
    nd_buffer *freed = &b->program->buffers[id];
    if (--b->refs[id] > 0) {
        return;
    }
    freed->dies = b->program->ins_count;
    nd_emit(b,
            &(nd_ins){.op = ND_INS_FREE, .out = {nd_whole(id)}, .rows = freed->elements, .cols = 1, .tag = freed->tag});
}

void nd_emit_zero(nd_builder *b, nd_ref out, int64_t elements)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_ZERO, .out = {out}, .rows = elements, .cols = 1, .tag = "zero"});
}

void nd_emit_add(nd_builder *b, nd_ref a, nd_ref c, nd_ref out, int64_t elements, const char *tag)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_ADD, .in = {a, c}, .out = {out}, .rows = elements, .cols = 1, .tag = tag});
}

void nd_emit_copy(nd_builder *b, nd_ref from, nd_ref to, int64_t elements)
{
    nd_emit(b, &(nd_ins){.op = ND_INS_COPY, .in = {from}, .out = {to}, .rows = elements, .cols = 1, .tag = "copy"});
}
