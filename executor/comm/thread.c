/* Ranks that are threads: they publish their calls, meet at a barrier, and read each other's memory. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/pool.h"
#include "executor/comm/collective_internal.h"

enum { RANKS_MAX = 1024, CHANNELS = 2, SPINS = 2000 };

/** The members of one group, and the call that each has published. */
typedef struct group {
    struct group *next;
    int64_t first, stride;
    int32_t count;
    nd_members_kind kind;
    pthread_mutex_t lock;
    pthread_cond_t met;
    int32_t arrived;
    double last_s; /* when the last member of this meeting came */
    atomic_uint meeting;
    const nd_call *calls[];
} group;

typedef struct message {
    struct message *next;
    const void *data;
    int64_t bytes;
} message;

/** Messages from one rank to another on one channel, in order. */
typedef struct lane {
    message *head, *tail; /* the head stays until the receiver has copied it */
} lane;

typedef struct thread_comm {
    nd_comm base;
    int32_t ranks;
    bool checks;
    int32_t spins; /* 0 when ranks share processors: the one that is waited for needs them */
    pthread_mutex_t lock; /* of the groups' list, the lanes and the reason */
    pthread_cond_t changed;
    group *groups;
    lane *lanes;
    nd_comm_counters *counters;
    atomic_bool aborted;
    nd_error reason;
} thread_comm;

static nd_status fail_aborted(thread_comm *comm, nd_error *err)
{
    (void)pthread_mutex_lock(&comm->lock);
    nd_status status = nd_fail(err, ND_EINTERRUPTED, "%s", comm->reason.message);
    (void)pthread_mutex_unlock(&comm->lock);
    return status;
}

static group *new_group(const nd_members *members, nd_members_kind kind)
{
    group *g = calloc(1, sizeof *g + (size_t)members->count * sizeof g->calls[0]);
    if (g != NULL) {
        g->first = members->first;
        g->stride = members->stride;
        g->count = members->count;
        g->kind = kind;
        (void)pthread_mutex_init(&g->lock, NULL);
        (void)pthread_cond_init(&g->met, NULL);
    }
    return g;
}

static group *find_group(thread_comm *comm, const nd_members *members, nd_members_kind kind)
{
    (void)pthread_mutex_lock(&comm->lock);
    group *g = comm->groups;
    while (g != NULL && !(g->kind == kind && g->first == members->first && g->stride == members->stride &&
                          g->count == members->count)) {
        g = g->next;
    }
    if (g == NULL) {
        g = new_group(members, kind);
        if (g != NULL) {
            g->next = comm->groups;
            comm->groups = g;
        }
    }
    (void)pthread_mutex_unlock(&comm->lock);
    return g;
}

/* Wait until all members have come; false after an abort. *last_s: when the last one came. */
static bool meet(thread_comm *comm, group *g, double *last_s)
{
    (void)pthread_mutex_lock(&g->lock);
    unsigned meeting = atomic_load(&g->meeting);
    if (++g->arrived == g->count) {
        g->arrived = 0;
        g->last_s = nd_monotonic_s();
        *last_s = g->last_s;
        atomic_store(&g->meeting, meeting + 1);
        (void)pthread_cond_broadcast(&g->met);
        (void)pthread_mutex_unlock(&g->lock);
        return true;
    }
    if (comm->spins > 0) {
        (void)pthread_mutex_unlock(&g->lock);
        for (int32_t i = 0; i < comm->spins && atomic_load(&g->meeting) == meeting; i++) {
        }
        (void)pthread_mutex_lock(&g->lock);
    }
    while (atomic_load(&g->meeting) == meeting && !atomic_load(&comm->aborted)) {
        (void)pthread_cond_wait(&g->met, &g->lock);
    }
    bool all = atomic_load(&g->meeting) != meeting;
    *last_s = g->last_s;
    (void)pthread_mutex_unlock(&g->lock);
    return all;
}

static bool same_call(const nd_call *a, const nd_call *b)
{
    const nd_ins *x = a->ins;
    const nd_ins *y = b->ins;
    bool varies = x->op == ND_INS_ALL_TO_ALL_ROWS; /* each rank gets another number of rows */
    return x->op == y->op && x->max == y->max && a->out[0].elem == b->out[0].elem &&
           (varies ? x->cols == y->cols : x->rows * x->cols == y->rows * y->cols);
}

static void describe(const nd_call *call, char *text, size_t bytes)
{
    const nd_ins *ins = call->ins;
    (void)snprintf(text, bytes, "%s%s of %" PRId64 " x %s (%s)", nd_ins_name(ins->op), ins->max ? " (max)" : "",
                   ins->rows * ins->cols, nd_elem_name(call->out[0].elem), ins->tag != NULL ? ins->tag : "");
}

/* All members compare the same calls, so all come to the same answer. */
static nd_status check_calls(const group *g, nd_error *err)
{
    for (int32_t i = 1; i < g->count; i++) {
        if (!same_call(g->calls[0], g->calls[i])) {
            char first[160];
            char other[160];
            describe(g->calls[0], first, sizeof first);
            describe(g->calls[i], other, sizeof other);
            return nd_fail(err, ND_EINVAL, "group %s: rank %" PRId64 " calls %s, rank %" PRId64 " calls %s",
                           nd_members_name(g->kind), g->first, first, g->first + i * g->stride, other);
        }
    }
    return ND_OK;
}

/* Payload as the cost model counts it: of the whole buffer, or of what the rank sends. */
static int64_t payload_bytes(const nd_call *call, int32_t members)
{
    const nd_ins *ins = call->ins;
    int64_t bytes = ins->rows * ins->cols * nd_elem_bytes(call->out[0].elem);
    if (ins->op == ND_INS_ALL_TO_ALL_ROWS) {
        const int32_t *sends = call->in[1].data;
        int64_t rows = 0;
        for (int32_t i = 0; i < members; i++) {
            rows += sends[i];
        }
        return rows * ins->cols * nd_elem_bytes(call->out[0].elem);
    }
    bool per_member = ins->op == ND_INS_ALL_GATHER || ins->op == ND_INS_REDUCE_SCATTER || ins->op == ND_INS_ALL_TO_ALL;
    return per_member ? bytes * members : bytes;
}

static void note(thread_comm *comm, int32_t rank, const nd_call *call, int64_t bytes, double seconds, double wait_s)
{
    nd_comm_count *count = &comm->counters[rank].count[call->ins->group][call->ins->op];
    count->calls++;
    count->bytes += bytes;
    count->seconds += seconds;
    count->wait_s += wait_s;
}

static nd_status alone(const nd_call *call)
{
    const nd_call *calls[1] = {call};
    nd_collective_apply(calls, 1);
    return ND_OK;
}

static nd_status together(thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                          nd_error *err)
{
    group *g = find_group(comm, members, call->ins->group);
    if (g == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a group of %d ranks", members->count);
    }
    double start_s = nd_monotonic_s();
    double last_s = start_s;
    double ignored_s = 0.0;
    g->calls[members->index] = call;
    if (!meet(comm, g, &last_s)) {
        return fail_aborted(comm, err);
    }
    if (comm->checks) {
        nd_status status = check_calls(g, err);
        if (status != ND_OK) {
            (void)meet(comm, g, &ignored_s); /* nobody's call may go away while another reads it */
            return status;
        }
    }
    nd_collective_part(g->calls, g->count, members->index);
    if (nd_collective_has_second_phase(call->ins->op)) {
        if (!meet(comm, g, &ignored_s)) {
            return fail_aborted(comm, err);
        }
        nd_collective_finish(g->calls, g->count, members->index);
    }
    if (!meet(comm, g, &ignored_s)) {
        return fail_aborted(comm, err);
    }
    note(comm, rank, call, payload_bytes(call, g->count), nd_monotonic_s() - start_s,
         last_s > start_s ? last_s - start_s : 0.0);
    return ND_OK;
}

/* Sends and receives. */

static lane *lane_of(const thread_comm *comm, int32_t from, int32_t to, int32_t channel)
{
    return &comm->lanes[((size_t)from * (size_t)comm->ranks + (size_t)to) * CHANNELS + (size_t)channel];
}

static nd_status start_send(thread_comm *comm, int32_t rank, const nd_call *call, nd_error *err)
{
    const nd_ins *ins = call->ins;
    message *m = malloc(sizeof *m);
    if (m == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a message");
    }
    int64_t bytes = ins->rows * ins->cols * nd_elem_bytes(call->in[0].elem);
    *m = (message){.data = call->in[0].data, .bytes = bytes};
    (void)pthread_mutex_lock(&comm->lock);
    lane *l = lane_of(comm, rank, ins->peer, ins->channel);
    if (l->tail != NULL) {
        l->tail->next = m;
    } else {
        l->head = m;
    }
    l->tail = m;
    (void)pthread_cond_broadcast(&comm->changed);
    (void)pthread_mutex_unlock(&comm->lock);
    note(comm, rank, call, bytes, 0.0, 0.0);
    return ND_OK;
}

static nd_status wait_for_send(thread_comm *comm, int32_t rank, const nd_call *call, nd_error *err)
{
    double start_s = nd_monotonic_s();
    (void)pthread_mutex_lock(&comm->lock);
    const lane *l = lane_of(comm, rank, call->ins->peer, call->ins->channel);
    while (l->head != NULL && !atomic_load(&comm->aborted)) {
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    }
    bool done = l->head == NULL;
    (void)pthread_mutex_unlock(&comm->lock);
    double seconds = nd_monotonic_s() - start_s;
    note(comm, rank, call, 0, seconds, seconds);
    return done ? ND_OK : fail_aborted(comm, err);
}

static nd_status receive(thread_comm *comm, int32_t rank, const nd_call *call, nd_error *err)
{
    const nd_ins *ins = call->ins;
    int64_t bytes = ins->rows * ins->cols * nd_elem_bytes(call->out[0].elem);
    double start_s = nd_monotonic_s();
    (void)pthread_mutex_lock(&comm->lock);
    lane *l = lane_of(comm, ins->peer, rank, ins->channel);
    while (l->head == NULL && !atomic_load(&comm->aborted)) {
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    }
    message *m = l->head;
    (void)pthread_mutex_unlock(&comm->lock);
    double came_s = nd_monotonic_s();
    if (m == NULL) {
        return fail_aborted(comm, err);
    }
    if (m->bytes != bytes) {
        return nd_fail(err, ND_EINVAL, "rank %d sends %" PRId64 " bytes, rank %d expects %" PRId64 " (%s)", ins->peer,
                       m->bytes, rank, bytes, ins->tag != NULL ? ins->tag : "");
    }
    memcpy(call->out[0].data, m->data, (size_t)bytes);
    (void)pthread_mutex_lock(&comm->lock);
    l->head = m->next;
    l->tail = l->head == NULL ? NULL : l->tail;
    (void)pthread_cond_broadcast(&comm->changed);
    (void)pthread_mutex_unlock(&comm->lock);
    free(m);
    note(comm, rank, call, bytes, nd_monotonic_s() - start_s, came_s - start_s);
    return ND_OK;
}

static nd_status execute(nd_comm *base, int32_t rank, const nd_call *call, const nd_members *members, nd_error *err)
{
    thread_comm *comm = (thread_comm *)base;
    if (atomic_load(&comm->aborted)) {
        return fail_aborted(comm, err);
    }
    if (call->ins->op == ND_INS_SEND) {
        return start_send(comm, rank, call, err);
    }
    if (call->ins->op == ND_INS_SEND_WAIT) {
        return wait_for_send(comm, rank, call, err);
    }
    if (call->ins->op == ND_INS_RECV) {
        return receive(comm, rank, call, err);
    }
    return members->count == 1 ? alone(call) : together(comm, rank, call, members, err);
}

static void abort_all(nd_comm *base, int32_t rank, const nd_error *why)
{
    thread_comm *comm = (thread_comm *)base;
    (void)pthread_mutex_lock(&comm->lock);
    if (!atomic_load(&comm->aborted)) {
        comm->reason.status = why->status;
        (void)snprintf(comm->reason.message, sizeof comm->reason.message, "rank %d: %.900s", rank, why->message);
        atomic_store(&comm->aborted, true);
    }
    (void)pthread_cond_broadcast(&comm->changed);
    for (group *g = comm->groups; g != NULL; g = g->next) {
        (void)pthread_mutex_lock(&g->lock);
        (void)pthread_cond_broadcast(&g->met);
        (void)pthread_mutex_unlock(&g->lock);
    }
    (void)pthread_mutex_unlock(&comm->lock);
}

static const nd_comm_counters *counters(const nd_comm *base, int32_t rank)
{
    return &((const thread_comm *)base)->counters[rank];
}

static void close_comm(nd_comm *base)
{
    thread_comm *comm = (thread_comm *)base;
    if (comm == NULL) {
        return;
    }
    for (group *g = comm->groups; g != NULL;) {
        group *next = g->next;
        (void)pthread_mutex_destroy(&g->lock);
        (void)pthread_cond_destroy(&g->met);
        free(g);
        g = next;
    }
    size_t lanes = comm->lanes != NULL ? (size_t)comm->ranks * (size_t)comm->ranks * CHANNELS : 0;
    for (size_t i = 0; i < lanes; i++) {
        for (message *m = comm->lanes[i].head; m != NULL;) {
            message *next = m->next;
            free(m);
            m = next;
        }
    }
    (void)pthread_mutex_destroy(&comm->lock);
    (void)pthread_cond_destroy(&comm->changed);
    free(comm->lanes);
    free(comm->counters);
    free(comm);
}

nd_status nd_comm_thread_open(int32_t ranks, bool checks, nd_comm **out, nd_error *err)
{
    static const nd_comm_table table = {
        .name = "thread", .close = close_comm, .execute = execute, .abort = abort_all, .counters = counters};
    if (ranks < 1 || ranks > RANKS_MAX) {
        return nd_fail(err, ND_EINVAL, "%d ranks: threads of one process can be 1 to %d", ranks, RANKS_MAX);
    }
    thread_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    comm->base.table = &table;
    comm->ranks = ranks;
    comm->checks = checks;
    comm->spins = ranks <= nd_pool_processors() ? SPINS : 0;
    (void)pthread_mutex_init(&comm->lock, NULL);
    (void)pthread_cond_init(&comm->changed, NULL);
    comm->lanes = calloc((size_t)ranks * (size_t)ranks * CHANNELS, sizeof *comm->lanes);
    comm->counters = calloc((size_t)ranks, sizeof *comm->counters);
    if (comm->lanes == NULL || comm->counters == NULL) {
        close_comm(&comm->base);
        return nd_fail(err, ND_ENOMEM, "out of memory for %d ranks", ranks);
    }
    *out = &comm->base;
    return ND_OK;
}
