#include "executor/comm/collective_internal.h"

#include <inttypes.h>

static const char *tag_of(const nd_call *call)
{
    return call->ins->tag == NULL ? "no tag" : call->ins->tag;
}

static nd_status check_row_counts(const nd_call *call, int32_t members, nd_error *err)
{
    const char *tag = tag_of(call);
    const int32_t *send_rows = call->in[1].data;
    const int32_t *receive_rows = call->in[2].data;
    if (send_rows == NULL || receive_rows == NULL || call->in[1].elem != ND_ELEM_I32 ||
        call->in[2].elem != ND_ELEM_I32) {
        return nd_fail(err, ND_EINVAL, "all_to_all_rows (%s): rows to send and to receive must be int32 buffers", tag);
    }
    int64_t arriving = 0;
    for (int32_t i = 0; i < members; i++) {
        if (send_rows[i] < 0 || receive_rows[i] < 0) {
            return nd_fail(err, ND_EINVAL,
                           "all_to_all_rows (%s): %" PRId32 " rows for member %" PRId32 ", %" PRId32
                           " rows from it; a number of rows cannot be negative",
                           tag, send_rows[i], i, receive_rows[i]);
        }
        arriving += receive_rows[i];
    }
    if (arriving > call->ins->rows) {
        return nd_fail(err, ND_EINVAL,
                       "all_to_all_rows (%s): %" PRId64 " rows arrive in a buffer of %" PRId64 "; it needs more rows",
                       tag, arriving, call->ins->rows);
    }
    return ND_OK;
}

/* Bytes of in[0] and out[0]; where in[0] lies, counted from out[0], when it is in place (all_to_all, shift: never). */
typedef struct extents {
    int64_t in, out, place;
    bool in_place;
} extents;

static extents extents_of(const nd_call *call, int32_t members, int32_t index)
{
    int64_t part = nd_collective_elements(call) * nd_elem_bytes(call->in[0].elem);
    switch ((int)call->ins->op) {
    case ND_INS_ALL_REDUCE:
        return (extents){part, part, 0, true};
    case ND_INS_ALL_GATHER:
        return (extents){part, members * part, index * part, true};
    case ND_INS_REDUCE_SCATTER:
        return (extents){members * part, part, -index * part, true};
    case ND_INS_ALL_TO_ALL:
        return (extents){members * part, members * part, 0, false};
    case ND_INS_ALL_TO_ALL_ROWS:
        return (extents){nd_collective_bytes(call, members), part, 0, false};
    default:
        return (extents){part, part, 0, false};
    }
}

nd_status nd_collective_check(const nd_call *call, int32_t members, int32_t index, nd_error *err)
{
    const nd_ins *ins = call->ins;
    const char *name = nd_ins_name(ins->op);
    const char *tag = tag_of(call);
    if (ins->rows < 0 || ins->cols < 0) {
        return nd_fail(err, ND_EINVAL, "%s (%s): %" PRId64 " rows of %" PRId64 " elements; neither can be negative",
                       name, tag, ins->rows, ins->cols);
    }
    if (call->in[0].elem != call->out[0].elem) {
        return nd_fail(err, ND_EINVAL, "%s (%s): from %s to %s; it does not convert", name, tag,
                       nd_elem_name(call->in[0].elem), nd_elem_name(call->out[0].elem));
    }
    if (ins->op == ND_INS_ALL_TO_ALL_ROWS) {
        ND_TRY(check_row_counts(call, members, err));
    }
    extents bytes = extents_of(call, members, index);
    if ((bytes.in > 0 && call->in[0].data == NULL) || (bytes.out > 0 && call->out[0].data == NULL)) {
        return nd_fail(err, ND_EINVAL, "%s (%s): needs an input and an output buffer", name, tag);
    }
    uintptr_t in = (uintptr_t)call->in[0].data;
    uintptr_t out = (uintptr_t)call->out[0].data;
    bool in_place = bytes.in_place && in == out + (uintptr_t)bytes.place;
    if (in < out + (uintptr_t)bytes.out && out < in + (uintptr_t)bytes.in && !in_place) {
        return nd_fail(err, ND_EINVAL, "%s (%s): input and output overlap; %s", name, tag,
                       bytes.in_place ? "only a rank's own part may, in its place" : "they must be apart");
    }
    return ND_OK;
}
