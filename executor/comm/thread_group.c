#include "executor/comm/thread_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "executor/comm/collective_internal.h"
#include "executor/comm/reduce_internal.h"

static bool is_of(const nd_thread_group *group, const nd_members *members)
{
    return group->first == members->first && group->stride == members->stride && group->count == members->count;
}

static void group_free(nd_thread_group *group)
{
    if (group == NULL) {
        return;
    }
    free(group->calls);
    free(group->sequence);
    (void)pthread_cond_destroy(&group->met);
    (void)pthread_mutex_destroy(&group->lock);
    free(group);
}

static nd_thread_group *group_create(const nd_members *members)
{
    nd_thread_group *group = calloc(1, sizeof *group);
    if (group == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&group->lock, NULL);
    (void)pthread_cond_init(&group->met, NULL);
    atomic_init(&group->meetings, 0);
    group->first = members->first;
    group->stride = members->stride;
    group->count = members->count;
    group->calls = calloc((size_t)members->count, sizeof(const nd_call *));
    group->sequence = calloc((size_t)members->count, sizeof *group->sequence);
    if (group->calls == NULL || group->sequence == NULL) {
        group_free(group);
        return NULL;
    }
    return group;
}

static nd_thread_group *find_or_create(nd_thread_comm *comm, const nd_members *members)
{
    uint64_t hash = (uint64_t)members->first * 31U + (uint64_t)members->stride * 1009U + (uint64_t)members->count;
    nd_thread_group **chain = &comm->chains[hash % ND_THREAD_GROUP_CHAINS];
    (void)pthread_mutex_lock(&comm->lock);
    nd_thread_group *group = *chain;
    while (group != NULL && !is_of(group, members)) {
        group = group->next;
    }
    if (group == NULL) {
        group = group_create(members);
        if (group != NULL) {
            group->next = *chain;
            *chain = group;
        }
    }
    (void)pthread_mutex_unlock(&comm->lock);
    return group;
}

/* The group of the rank's call; its last of the same kind is at hand without a lock. */
static nd_status find_group(nd_thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                            nd_thread_group **out, nd_error *err)
{
    nd_thread_group **last = &comm->rank[rank].group[call->ins->group];
    if (*last == NULL || !is_of(*last, members)) {
        nd_thread_group *group = find_or_create(comm, members);
        if (group == NULL) {
            return nd_fail(err, ND_ENOMEM, "no memory for a %s group of %" PRId32 " ranks",
                           nd_members_name(call->ins->group), members->count);
        }
        *last = group;
    }
    *out = *last;
    return ND_OK;
}

void nd_thread_groups_wake(nd_thread_comm *comm)
{
    for (size_t i = 0; i < ND_THREAD_GROUP_CHAINS; i++) {
        for (nd_thread_group *group = comm->chains[i]; group != NULL; group = group->next) {
            /* Whoever looked at `aborted` before it was set is asleep by the time that this has the lock. */
            (void)pthread_mutex_lock(&group->lock);
            (void)pthread_cond_broadcast(&group->met);
            (void)pthread_mutex_unlock(&group->lock);
        }
    }
}

void nd_thread_groups_free(nd_thread_comm *comm)
{
    for (size_t i = 0; i < ND_THREAD_GROUP_CHAINS; i++) {
        nd_thread_group *group = comm->chains[i];
        while (group != NULL) {
            nd_thread_group *next = group->next;
            group_free(group);
            group = next;
        }
    }
}

/* Look for the others without sleeping. */
static bool seen_soon(nd_thread_group *group, unsigned before, double seconds)
{
    enum { LOOKS = 64 }; /* between two looks at the clock */
    double end_s = nd_monotonic_s() + seconds;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&group->meetings, memory_order_acquire) != before) {
                return true;
            }
        }
    } while (nd_monotonic_s() < end_s);
    return false;
}

/* Wait until all members have come as often as this one. A collective begins with a meeting that an abort ends
 * (`opening`): either all members pass it or none. Once they have, only copying lies between them and the next
 * meetings, which therefore do not end early: no member returns, and gives its buffers back, while another reads them.
 * \return false after an abort */
static bool meet(nd_thread_comm *comm, nd_thread_group *group, bool opening)
{
    (void)pthread_mutex_lock(&group->lock);
    if (opening && atomic_load(&comm->aborted)) {
        (void)pthread_mutex_unlock(&group->lock);
        return false;
    }
    unsigned before = atomic_load(&group->meetings);
    group->arrived++;
    if (group->arrived == group->count) {
        group->arrived = 0;
        if (opening && comm->checks) {
            nd_thread_match(group);
        }
        atomic_store(&group->meetings, before + 1);
        (void)pthread_mutex_unlock(&group->lock);
        (void)pthread_cond_broadcast(&group->met);
        return true;
    }
    if (comm->spin_s > 0.0) {
        (void)pthread_mutex_unlock(&group->lock);
        if (seen_soon(group, before, comm->spin_s)) {
            return true;
        }
        (void)pthread_mutex_lock(&group->lock);
    }
    while (atomic_load(&group->meetings) == before && !(opening && atomic_load(&comm->aborted))) {
        (void)pthread_cond_wait(&group->met, &group->lock);
    }
    bool passed = atomic_load(&group->meetings) != before;
    (void)pthread_mutex_unlock(&group->lock);
    return passed;
}

/* Each member reduces all of a short buffer for itself: a meeting less than in slices. */
static bool is_short(const nd_call *call, int32_t members)
{
    enum { MEMBERS = 16 }; /* of more, each would read too much */
    return call->ins->op == ND_INS_ALL_REDUCE && members <= MEMBERS && nd_collective_elements(call) <= ND_REDUCE_BLOCK;
}

static void reduce_short(nd_thread_comm *comm, nd_thread_group *group, const nd_call *call)
{
    union {
        double f64[ND_REDUCE_BLOCK];
        float f32[ND_REDUCE_BLOCK];
        int32_t i32[ND_REDUCE_BLOCK];
        uint16_t bf16[ND_REDUCE_BLOCK];
    } result;
    int64_t elements = nd_collective_elements(call);
    if (elements > 0) {
        nd_reduce(group->calls, group->count, 0, elements, &result);
    }
    (void)meet(comm, group, false); /* all have read: inputs may be overwritten */
    if (elements > 0) {
        memcpy(call->out[0].data, &result, (size_t)(elements * nd_elem_bytes(call->out[0].elem)));
    }
}

static nd_status check_members(const nd_thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                               nd_error *err)
{
    if (members->index < 0 || members->index >= members->count || members->stride < 1 ||
        members->first + members->index * members->stride != rank || members->first < 0 ||
        members->first + (members->count - 1) * members->stride >= comm->ranks) {
        return nd_fail(err, ND_EINVAL,
                       "rank %" PRId32 " cannot be member %" PRId32 " of a %s group of %" PRId32 " ranks from %" PRId64
                       " in steps of %" PRId64 " among %" PRId32,
                       rank, members->index, nd_members_name(call->ins->group), members->count, members->first,
                       members->stride, comm->ranks);
    }
    return ND_OK;
}

nd_status nd_thread_collective(nd_thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                               double *met_s, nd_error *err)
{
    nd_thread_group *group = NULL;
    ND_TRY(check_members(comm, rank, call, members, err));
    ND_TRY(find_group(comm, rank, call, members, &group, err));
    int32_t index = members->index;
    group->calls[index] = call;
    group->sequence[index]++;
    bool passed = meet(comm, group, true);
    *met_s = nd_monotonic_s();
    if (!passed) {
        return nd_thread_interrupted(comm, err);
    }
    if (group->verdict.status != ND_OK) {
        nd_thread_abort(&comm->base, group->culprit, &group->verdict);
        return nd_fail(err, group->verdict.status, "%s", group->verdict.message);
    }
    if (is_short(call, group->count)) {
        reduce_short(comm, group, call);
        return ND_OK;
    }
    int32_t phases = nd_collective_phases(call->ins->op);
    for (int32_t phase = 0; phase < phases; phase++) {
        nd_collective_phase(group->calls, group->count, index, phase);
        (void)meet(comm, group, false);
    }
    return ND_OK;
}
