#include "executor/comm/thread_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/pool.h"
#include "executor/comm/collective_internal.h"

enum { RANKS_MAX = 1024 };

/* About what it costs to sleep and to be woken (50 to 100 us on the machine of tests/bench/comm_bench.c, where a
 * meeting of two ranks that are awake takes less than 1 us): then it does not matter much which was right. */
static const double spin_s = 100e-6;

nd_status nd_thread_interrupted(const nd_thread_comm *comm, nd_error *err)
{
    return nd_fail(err, ND_EINTERRUPTED, "rank %" PRId32 ": %s", comm->aborted_by, comm->reason.message);
}

void nd_thread_abort(nd_comm *comm, int32_t rank, const nd_error *why)
{
    nd_thread_comm *self = (nd_thread_comm *)comm;
    (void)pthread_mutex_lock(&self->lock);
    if (!atomic_load(&self->aborted)) {
        self->aborted_by = rank;
        if (why != NULL && why->message[0] != '\0') {
            self->reason = *why;
        } else {
            (void)nd_fail(&self->reason, ND_EINTERRUPTED, "failed without a message");
        }
        atomic_store(&self->aborted, true);
        nd_thread_groups_wake(self);
        for (int32_t i = 0; i < self->ranks; i++) {
            nd_thread_inbox_wake(&self->rank[i].inbox);
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
}

static void add(nd_thread_comm *comm, int32_t rank, const nd_call *call, int64_t bytes, double begin_s, double met_s)
{
    nd_members_kind kind = call->ins->op >= ND_INS_SEND ? ND_MEMBERS_WORLD : call->ins->group;
    nd_comm_count *count = &comm->rank[rank].counters.count[kind][call->ins->op];
    count->calls++;
    count->bytes += bytes;
    count->seconds += nd_monotonic_s() - begin_s;
    count->wait_s += met_s - begin_s;
}

static nd_status message(nd_thread_comm *comm, int32_t rank, const nd_call *call, double begin_s, nd_error *err)
{
    double met_s = begin_s;
    int64_t bytes = 0;
    switch ((int)call->ins->op) {
    case ND_INS_SEND:
        bytes = nd_collective_elements(call) * nd_elem_bytes(call->in[0].elem);
        ND_TRY(nd_thread_send(comm, rank, call, err));
        break;
    case ND_INS_RECV:
        bytes = nd_collective_elements(call) * nd_elem_bytes(call->out[0].elem);
        ND_TRY(nd_thread_receive(comm, rank, call, &met_s, err));
        break;
    default:
        ND_TRY(nd_thread_send_wait(comm, rank, call, &met_s, err));
        break;
    }
    add(comm, rank, call, bytes, begin_s, met_s);
    return ND_OK;
}

static nd_status collective(nd_thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                            double begin_s, nd_error *err)
{
    if (members == NULL || members->count < 1 || members->count > comm->ranks) {
        return nd_fail(err, ND_EINVAL, "%s: a group of %" PRId32 " members among %" PRId32 " ranks",
                       nd_ins_name(call->ins->op), members == NULL ? 0 : members->count, comm->ranks);
    }
    ND_TRY(nd_collective_check(call, members->count, members->index, err));
    if (members->count == 1) { /* nobody to communicate with: not counted */
        nd_collective_apply(&call, 1);
        return ND_OK;
    }
    double met_s = begin_s;
    ND_TRY(nd_thread_collective(comm, rank, call, members, &met_s, err));
    add(comm, rank, call, nd_collective_bytes(call, members->count), begin_s, met_s);
    return ND_OK;
}

static nd_status thread_execute(nd_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                                nd_error *err)
{
    nd_thread_comm *self = (nd_thread_comm *)comm;
    double begin_s = nd_monotonic_s();
    if (rank < 0 || rank >= self->ranks || !nd_ins_communicates(call->ins->op)) {
        return nd_fail(err, ND_EINVAL,
                       "%s of rank %" PRId32 ": the communicator has %" PRId32 " ranks and no such call",
                       nd_ins_name(call->ins->op), rank, self->ranks);
    }
    if (atomic_load(&self->aborted)) {
        return nd_thread_interrupted(self, err);
    }
    nd_error why;
    nd_status status = call->ins->op >= ND_INS_SEND ? message(self, rank, call, begin_s, &why)
                                                    : collective(self, rank, call, members, begin_s, &why);
    if (status != ND_OK) {
        nd_thread_abort(comm, rank, &why); /* the others would wait for a rank that does not come */
        return nd_fail(err, status, "%s", why.message);
    }
    return ND_OK;
}

static const nd_comm_counters *thread_counters(const nd_comm *comm, int32_t rank)
{
    return &((const nd_thread_comm *)comm)->rank[rank].counters;
}

static void thread_close(nd_comm *comm)
{
    nd_thread_comm *self = (nd_thread_comm *)comm;
    if (self == NULL) {
        return;
    }
    nd_thread_groups_free(self);
    for (int32_t i = 0; i < self->ranks; i++) {
        nd_thread_inbox_close(&self->rank[i].inbox);
    }
    (void)pthread_mutex_destroy(&self->lock);
    free(self->rank);
    free(self);
}

static const nd_comm_table thread_table = {
    .name = "thread",
    .close = thread_close,
    .execute = thread_execute,
    .abort = nd_thread_abort,
    .counters = thread_counters,
};

nd_status nd_comm_thread_open(int32_t ranks, bool checks, nd_comm **out, nd_error *err)
{
    if (ranks < 1 || ranks > RANKS_MAX) {
        return nd_fail(err, ND_EINVAL, "%" PRId32 " ranks as threads; 1 to %d are possible", ranks, RANKS_MAX);
    }
    nd_thread_comm *comm = calloc(1, sizeof *comm);
    nd_thread_rank *rank = calloc((size_t)ranks, sizeof *rank);
    if (comm == NULL || rank == NULL) {
        free(comm);
        free(rank);
        return nd_fail(err, ND_ENOMEM, "no memory for a communicator of %" PRId32 " ranks", ranks);
    }
    comm->base.table = &thread_table;
    comm->ranks = ranks;
    comm->checks = checks;
    comm->spin_s = ranks <= nd_pool_processors() ? spin_s : 0.0;
    comm->rank = rank;
    (void)pthread_mutex_init(&comm->lock, NULL);
    atomic_init(&comm->aborted, false);
    for (int32_t i = 0; i < ranks; i++) {
        nd_thread_inbox_open(&rank[i].inbox);
    }
    *out = &comm->base;
    return ND_OK;
}
