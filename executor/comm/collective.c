#include <assert.h>
#include <string.h>

#include "executor/comm/collective_internal.h"

enum { MEMBERS_MAX = 1024 };

static int64_t elements(const nd_call *call)
{
    return call->ins->rows * call->ins->cols;
}

static size_t bytes_of(const nd_call *call, int64_t count)
{
    return (size_t)(count * nd_elem_bytes(call->out[0].elem));
}

/* memcpy that allows the same place. */
static void put(void *to, const void *from, size_t bytes)
{
    if (to != from && bytes > 0) {
        memcpy(to, from, bytes);
    }
}

static char *at(const nd_call *call, void *data, int64_t element)
{
    return (char *)data + bytes_of(call, element);
}

static void inputs_of(const nd_call *const calls[], int32_t members, const void *inputs[MEMBERS_MAX])
{
    assert(members <= MEMBERS_MAX);
    for (int32_t i = 0; i < members; i++) {
        inputs[i] = calls[i]->in[0].data;
    }
}

/* Member `index` reduces this slice of an all-reduce. */
static int64_t slice_first(int64_t count, int32_t members, int32_t index)
{
    return count * index / members;
}

static void reduce_own_slice(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    const void *inputs[MEMBERS_MAX];
    inputs_of(calls, members, inputs);
    int64_t first = slice_first(elements(own), members, index);
    int64_t end = slice_first(elements(own), members, index + 1);
    nd_reduce_slice(inputs, members, own->out[0].elem, own->ins->max, first, end - first, own->out[0].data);
}

static void reduce_own_part(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    const void *inputs[MEMBERS_MAX];
    int64_t count = elements(own);
    for (int32_t i = 0; i < members; i++) {
        inputs[i] = at(own, calls[i]->in[0].data, index * count);
    }
    nd_reduce_slice(inputs, members, own->out[0].elem, own->ins->max, 0, count, own->out[0].data);
}

static void gather_parts(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    int64_t count = elements(own);
    for (int32_t i = 0; i < members; i++) {
        put(at(own, own->out[0].data, i * count), calls[i]->in[0].data, bytes_of(own, count));
    }
}

static void trade_parts(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    int64_t count = elements(own);
    for (int32_t i = 0; i < members; i++) {
        put(at(own, own->out[0].data, i * count), at(own, calls[i]->in[0].data, index * count),
            bytes_of(own, count));
    }
}

static void trade_rows(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    int64_t cols = own->ins->cols;
    int64_t to = 0;
    for (int32_t i = 0; i < members; i++) {
        const int32_t *sends = calls[i]->in[1].data;
        int64_t from = 0;
        for (int32_t j = 0; j < index; j++) {
            from += sends[j];
        }
        put(at(own, own->out[0].data, to * cols), at(own, calls[i]->in[0].data, from * cols),
            bytes_of(own, sends[index] * cols));
        to += sends[index];
    }
}

void nd_collective_part(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    switch ((int)own->ins->op) {
    case ND_INS_ALL_REDUCE:
        reduce_own_slice(calls, members, index);
        return;
    case ND_INS_REDUCE_SCATTER:
        reduce_own_part(calls, members, index);
        return;
    case ND_INS_ALL_GATHER:
        gather_parts(calls, members, index);
        return;
    case ND_INS_ALL_TO_ALL:
        trade_parts(calls, members, index);
        return;
    case ND_INS_ALL_TO_ALL_ROWS:
        trade_rows(calls, members, index);
        return;
    case ND_INS_SHIFT:
        put(own->out[0].data, calls[(index + members - 1) % members]->in[0].data, bytes_of(own, elements(own)));
        return;
    default:
        assert(false);
    }
}

bool nd_collective_has_second_phase(nd_ins_op op)
{
    return op == ND_INS_ALL_REDUCE;
}

void nd_collective_finish(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *own = calls[index];
    int64_t count = elements(own);
    for (int32_t i = 0; i < members; i++) {
        int64_t first = slice_first(count, members, i);
        int64_t end = slice_first(count, members, i + 1);
        put(at(own, own->out[0].data, first), at(own, calls[i]->out[0].data, first), bytes_of(own, end - first));
    }
}

void nd_collective_apply(const nd_call *const calls[], int32_t members)
{
    for (int32_t i = 0; i < members; i++) {
        nd_collective_part(calls, members, i);
    }
    for (int32_t i = 0; i < members && nd_collective_has_second_phase(calls[0]->ins->op); i++) {
        nd_collective_finish(calls, members, i);
    }
}
