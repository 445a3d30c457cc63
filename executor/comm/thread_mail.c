#include "executor/comm/thread_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "executor/comm/collective_internal.h"

void nd_thread_inbox_open(nd_thread_inbox *inbox)
{
    (void)pthread_mutex_init(&inbox->lock, NULL);
    (void)pthread_cond_init(&inbox->changed, NULL);
}

void nd_thread_inbox_wake(nd_thread_inbox *inbox)
{
    (void)pthread_mutex_lock(&inbox->lock);
    (void)pthread_cond_broadcast(&inbox->changed);
    (void)pthread_mutex_unlock(&inbox->lock);
}

void nd_thread_inbox_close(nd_thread_inbox *inbox)
{
    nd_thread_lane *lane = inbox->lanes;
    while (lane != NULL) {
        nd_thread_lane *next = lane->next;
        free(lane->parcels);
        free(lane);
        lane = next;
    }
    (void)pthread_cond_destroy(&inbox->changed);
    (void)pthread_mutex_destroy(&inbox->lock);
}

/* The inbox is locked. NULL: no memory. Lanes are few: a rank's neighbours in the pipeline. */
static nd_thread_lane *find_lane(nd_thread_inbox *inbox, int32_t sender, int32_t channel)
{
    nd_thread_lane *lane = inbox->lanes;
    while (lane != NULL && (lane->sender != sender || lane->channel != channel)) {
        lane = lane->next;
    }
    if (lane == NULL) {
        lane = calloc(1, sizeof *lane);
        if (lane != NULL) {
            lane->sender = sender;
            lane->channel = channel;
            lane->next = inbox->lanes;
            inbox->lanes = lane;
        }
    }
    return lane;
}

static nd_thread_parcel *parcel_at(const nd_thread_lane *lane, int64_t number)
{
    return &lane->parcels[number % lane->capacity];
}

/* Room for one more send. */
static bool grow(nd_thread_lane *lane)
{
    if (lane->sent - lane->received < lane->capacity) {
        return true;
    }
    nd_thread_lane larger = *lane;
    larger.capacity = lane->capacity == 0 ? 8 : 2 * lane->capacity;
    larger.parcels = calloc((size_t)larger.capacity, sizeof *larger.parcels);
    if (larger.parcels == NULL) {
        return false;
    }
    for (int64_t number = lane->received; number < lane->sent; number++) {
        *parcel_at(&larger, number) = *parcel_at(lane, number);
    }
    free(lane->parcels);
    *lane = larger;
    return true;
}

static nd_status no_memory(const nd_call *call, nd_error *err)
{
    return nd_fail(err, ND_ENOMEM, "no memory for messages with rank %" PRId32, call->ins->peer);
}

static nd_status check_message(const nd_thread_comm *comm, const nd_call *call, const nd_operand *buffer, nd_error *err)
{
    const nd_ins *ins = call->ins;
    if (ins->peer < 0 || ins->peer >= comm->ranks) {
        return nd_fail(err, ND_EINVAL, "%s: there is no rank %" PRId32 " of %" PRId32, nd_ins_name(ins->op), ins->peer,
                       comm->ranks);
    }
    if (buffer != NULL && (ins->rows < 0 || ins->cols < 0 || (ins->rows * ins->cols > 0 && buffer->data == NULL))) {
        return nd_fail(err, ND_EINVAL,
                       "%s, rank %" PRId32 ": %" PRId64 " rows of %" PRId64 " elements without a buffer",
                       nd_ins_name(ins->op), ins->peer, ins->rows, ins->cols);
    }
    return ND_OK;
}

nd_status nd_thread_send(nd_thread_comm *comm, int32_t rank, const nd_call *call, nd_error *err)
{
    ND_TRY(check_message(comm, call, &call->in[0], err));
    nd_thread_inbox *inbox = &comm->rank[call->ins->peer].inbox;
    (void)pthread_mutex_lock(&inbox->lock);
    nd_thread_lane *lane = find_lane(inbox, rank, call->ins->channel);
    bool room = lane != NULL && grow(lane);
    if (room) {
        *parcel_at(lane, lane->sent) = (nd_thread_parcel){.data = call->in[0].data,
                                                          .elements = nd_collective_elements(call),
                                                          .elem = call->in[0].elem,
                                                          .tag = call->ins->tag};
        lane->sent++;
    }
    (void)pthread_mutex_unlock(&inbox->lock);
    (void)pthread_cond_broadcast(&inbox->changed);
    return room ? ND_OK : no_memory(call, err);
}

static nd_status check_parcel(int32_t rank, const nd_call *call, const nd_thread_parcel *parcel, nd_error *err)
{
    int64_t elements = nd_collective_elements(call);
    if (elements == parcel->elements && call->out[0].elem == parcel->elem) {
        return ND_OK;
    }
    const nd_ins *ins = call->ins;
    return nd_fail(err, ND_EINVAL,
                   "rank %" PRId32 " sends %" PRId64 " %s elements (%s) to rank %" PRId32 ", which receives %" PRId64
                   " %s elements (%s, channel %" PRId32 "); a send and its receive have to be the same",
                   ins->peer, parcel->elements, nd_elem_name(parcel->elem),
                   parcel->tag == NULL ? "no tag" : parcel->tag, rank, elements, nd_elem_name(call->out[0].elem),
                   ins->tag == NULL ? "no tag" : ins->tag, ins->channel);
}

nd_status nd_thread_receive(nd_thread_comm *comm, int32_t rank, const nd_call *call, double *met_s, nd_error *err)
{
    ND_TRY(check_message(comm, call, &call->out[0], err));
    nd_thread_inbox *inbox = &comm->rank[rank].inbox;
    (void)pthread_mutex_lock(&inbox->lock);
    nd_thread_lane *lane = find_lane(inbox, call->ins->peer, call->ins->channel);
    while (lane != NULL && lane->sent == lane->received && !atomic_load(&comm->aborted)) {
        (void)pthread_cond_wait(&inbox->changed, &inbox->lock);
    }
    bool aborted = atomic_load(&comm->aborted);
    nd_thread_parcel parcel = {0};
    if (lane != NULL && !aborted) {
        parcel = *parcel_at(lane, lane->received);
    }
    (void)pthread_mutex_unlock(&inbox->lock);
    *met_s = nd_monotonic_s();
    if (lane == NULL) {
        return no_memory(call, err);
    }
    if (aborted) {
        return nd_thread_interrupted(comm, err);
    }
    ND_TRY(check_parcel(rank, call, &parcel, err));
    if (parcel.elements > 0) {
        memcpy(call->out[0].data, parcel.data, (size_t)(parcel.elements * nd_elem_bytes(parcel.elem)));
    }
    (void)pthread_mutex_lock(&inbox->lock);
    lane->received++;
    (void)pthread_mutex_unlock(&inbox->lock);
    (void)pthread_cond_broadcast(&inbox->changed);
    return ND_OK;
}

/* How many sends the receiver must have taken before the buffer is free: up to the last from it, or all. */
static int64_t sends_of(const nd_thread_lane *lane, const void *buffer)
{
    int64_t number = lane->sent;
    while (buffer != NULL && number > lane->received && parcel_at(lane, number - 1)->data != buffer) {
        number--;
    }
    return number;
}

nd_status nd_thread_send_wait(nd_thread_comm *comm, int32_t rank, const nd_call *call, double *met_s, nd_error *err)
{
    ND_TRY(check_message(comm, call, NULL, err));
    nd_thread_inbox *inbox = &comm->rank[call->ins->peer].inbox;
    (void)pthread_mutex_lock(&inbox->lock);
    nd_thread_lane *lane = find_lane(inbox, rank, call->ins->channel);
    bool taken = lane != NULL;
    if (lane != NULL) {
        int64_t needed = sends_of(lane, call->in[0].data);
        while (lane->received < needed && !atomic_load(&comm->aborted)) {
            (void)pthread_cond_wait(&inbox->changed, &inbox->lock);
        }
        taken = lane->received >= needed;
    }
    (void)pthread_mutex_unlock(&inbox->lock);
    *met_s = nd_monotonic_s();
    if (lane == NULL) {
        return no_memory(call, err);
    }
    return taken ? ND_OK : nd_thread_interrupted(comm, err);
}
