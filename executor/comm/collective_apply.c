#include "executor/comm.h"

#include <assert.h>
#include <string.h>

#include "executor/comm/collective_internal.h"
#include "executor/comm/reduce_internal.h"

int64_t nd_collective_elements(const nd_call *call)
{
    return call->ins->rows * call->ins->cols;
}

static int64_t element_bytes(const nd_call *call)
{
    return nd_elem_bytes(call->in[0].elem);
}

/* In place: what is there already stays. */
static void copy(void *to, const void *from, int64_t bytes)
{
    if (bytes > 0 && to != from) {
        memcpy(to, from, (size_t)bytes);
    }
}

static char *out_at(const nd_call *call, int64_t byte)
{
    return (char *)call->out[0].data + byte;
}

static const char *in_at(const nd_call *call, int64_t byte)
{
    return (const char *)call->in[0].data + byte;
}

/* The elements that member `index` reduces. Whole cache lines of the smallest element, so that vectors stay aligned. */
static int64_t slice_begin(int64_t elements, int32_t members, int32_t index)
{
    enum { LINE = 32 };
    int64_t lines = (elements + LINE - 1) / LINE;
    int64_t begin = lines * index / members * LINE;
    return begin < elements ? begin : elements;
}

static void reduce_own_slice(const nd_call *const calls[], int32_t members, int32_t index)
{
    int64_t elements = nd_collective_elements(calls[index]);
    int64_t begin = slice_begin(elements, members, index);
    int64_t end = slice_begin(elements, members, index + 1);
    if (end > begin) {
        nd_reduce(calls, members, begin, end, out_at(calls[index], begin * element_bytes(calls[index])));
    }
}

static void copy_other_slices(const nd_call *const calls[], int32_t members, int32_t index)
{
    int64_t elements = nd_collective_elements(calls[index]);
    int64_t size = element_bytes(calls[index]);
    for (int32_t step = 1; step < members; step++) {
        int32_t from = (index + step) % members; /* not all from the same member at once */
        int64_t begin = slice_begin(elements, members, from) * size;
        int64_t end = slice_begin(elements, members, from + 1) * size;
        if (end > begin) {
            copy(out_at(calls[index], begin), out_at(calls[from], begin), end - begin);
        }
    }
}

static void gather(const nd_call *const calls[], int32_t members, int32_t index)
{
    int64_t part = nd_collective_elements(calls[index]) * element_bytes(calls[index]);
    for (int32_t step = 0; part > 0 && step < members; step++) {
        int32_t from = (index + step) % members;
        copy(out_at(calls[index], from * part), in_at(calls[from], 0), part);
    }
}

static void scatter_reduced(const nd_call *const calls[], int32_t members, int32_t index)
{
    int64_t part = nd_collective_elements(calls[index]);
    if (part > 0) {
        nd_reduce(calls, members, index * part, (index + 1) * part, calls[index]->out[0].data);
    }
}

static void exchange(const nd_call *const calls[], int32_t members, int32_t index)
{
    int64_t part = nd_collective_elements(calls[index]) * element_bytes(calls[index]);
    for (int32_t step = 0; part > 0 && step < members; step++) {
        int32_t from = (index + step) % members;
        copy(out_at(calls[index], from * part), in_at(calls[from], index * part), part);
    }
}

static void exchange_rows(const nd_call *const calls[], int32_t members, int32_t index)
{
    const nd_call *call = calls[index];
    const int32_t *receive_rows = call->in[2].data;
    int64_t row = call->ins->cols * element_bytes(call);
    int64_t to = 0;
    for (int32_t from = 0; from < members; from++) {
        const int32_t *send_rows = calls[from]->in[1].data;
        int64_t before = 0; /* rows that the sender has for members before this one */
        for (int32_t i = 0; i < index; i++) {
            before += send_rows[i];
        }
        int64_t bytes = receive_rows[from] * row;
        if (bytes > 0) {
            copy(out_at(call, to), in_at(calls[from], before * row), bytes);
        }
        to += bytes;
    }
}

static void shift(const nd_call *const calls[], int32_t members, int32_t index)
{
    int32_t before = (index + members - 1) % members;
    copy(calls[index]->out[0].data, calls[before]->in[0].data,
         nd_collective_elements(calls[index]) * element_bytes(calls[index]));
}

int32_t nd_collective_phases(nd_ins_op op)
{
    return op == ND_INS_ALL_REDUCE ? 2 : 1;
}

void nd_collective_phase(const nd_call *const calls[], int32_t members, int32_t index, int32_t phase)
{
    nd_ins_op op = calls[index]->ins->op;
    if (op == ND_INS_ALL_REDUCE && phase == 0) {
        reduce_own_slice(calls, members, index);
    } else if (op == ND_INS_ALL_REDUCE) {
        copy_other_slices(calls, members, index);
    } else if (op == ND_INS_ALL_GATHER) {
        gather(calls, members, index);
    } else if (op == ND_INS_REDUCE_SCATTER) {
        scatter_reduced(calls, members, index);
    } else if (op == ND_INS_ALL_TO_ALL) {
        exchange(calls, members, index);
    } else if (op == ND_INS_ALL_TO_ALL_ROWS) {
        exchange_rows(calls, members, index);
    } else {
        assert(op == ND_INS_SHIFT);
        shift(calls, members, index);
    }
}

void nd_collective_apply(const nd_call *const calls[], int32_t members)
{
    int32_t phases = nd_collective_phases(calls[0]->ins->op);
    for (int32_t phase = 0; phase < phases; phase++) {
        for (int32_t i = 0; i < members; i++) {
            nd_collective_phase(calls, members, i, phase);
        }
    }
}

int64_t nd_collective_bytes(const nd_call *call, int32_t members)
{
    nd_ins_op op = call->ins->op;
    int64_t size = element_bytes(call);
    if (op == ND_INS_ALL_TO_ALL_ROWS) {
        const int32_t *send_rows = call->in[1].data;
        int64_t rows = 0;
        for (int32_t i = 0; i < members; i++) {
            rows += send_rows[i];
        }
        return rows * call->ins->cols * size;
    }
    bool parts = op == ND_INS_ALL_GATHER || op == ND_INS_REDUCE_SCATTER || op == ND_INS_ALL_TO_ALL;
    return nd_collective_elements(call) * size * (parts ? members : 1);
}
