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

/* NULL: there is none. */
static nd_thread_parcel *take(nd_thread_lane *lane)
{
    nd_thread_parcel *parcel = lane->oldest;
    if (parcel == NULL) {
        return NULL;
    }
    lane->oldest = parcel->next;
    if (lane->oldest == NULL) {
        lane->newest = NULL;
    }
    lane->received++;
    return parcel;
}

static void put(nd_thread_lane *lane, nd_thread_parcel *parcel)
{
    if (lane->newest == NULL) {
        lane->oldest = parcel;
    } else {
        lane->newest->next = parcel;
    }
    lane->newest = parcel;
    lane->sent++;
}

void nd_thread_inbox_close(nd_thread_inbox *inbox)
{
    nd_thread_lane *lane = inbox->lanes;
    while (lane != NULL) {
        nd_thread_lane *next = lane->next;
        for (nd_thread_parcel *parcel = take(lane); parcel != NULL; parcel = take(lane)) {
            free(parcel);
        }
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
    nd_thread_parcel *parcel = malloc(sizeof *parcel);
    if (parcel == NULL) {
        return no_memory(call, err);
    }
    *parcel = (nd_thread_parcel){.data = call->in[0].data,
                                 .elements = nd_collective_elements(call),
                                 .elem = call->in[0].elem,
                                 .tag = call->ins->tag};
    nd_thread_inbox *inbox = &comm->rank[call->ins->peer].inbox;
    (void)pthread_mutex_lock(&inbox->lock);
    nd_thread_lane *lane = find_lane(inbox, rank, call->ins->channel);
    if (lane != NULL) {
        put(lane, parcel);
    }
    (void)pthread_mutex_unlock(&inbox->lock);
    if (lane == NULL) {
        free(parcel);
        return no_memory(call, err);
    }
    (void)pthread_cond_broadcast(&inbox->changed);
    return ND_OK;
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
    while (lane != NULL && lane->oldest == NULL && !atomic_load(&comm->aborted)) {
        (void)pthread_cond_wait(&inbox->changed, &inbox->lock);
    }
    bool aborted = atomic_load(&comm->aborted);
    nd_thread_parcel parcel = {0};
    if (lane != NULL && lane->oldest != NULL && !aborted) {
        parcel = *lane->oldest;
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
    nd_thread_parcel *taken = take(lane);
    (void)pthread_mutex_unlock(&inbox->lock);
    (void)pthread_cond_broadcast(&inbox->changed);
    free(taken);
    return ND_OK;
}

/* How many sends the receiver must have taken before the buffer is free: up to the last from it, or all. */
static int64_t sends_of(const nd_thread_lane *lane, const void *buffer)
{
    int64_t number = lane->received;
    int64_t needed = buffer == NULL ? lane->sent : number;
    for (const nd_thread_parcel *parcel = lane->oldest; parcel != NULL; parcel = parcel->next) {
        number++;
        needed = parcel->data == buffer ? number : needed;
    }
    return needed;
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
