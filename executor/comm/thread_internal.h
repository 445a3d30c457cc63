/** The thread communicator's parts: groups that meet (thread_group.c), what is compared when they do (thread_match.c),
 * and messages from rank to rank (thread_mail.c).
 *
 * Locks: comm->lock before a group's or an inbox's, never the other way round. */
#ifndef ND_EXECUTOR_COMM_THREAD_INTERNAL_H
#define ND_EXECUTOR_COMM_THREAD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "executor/comm.h"

enum { ND_THREAD_GROUP_CHAINS = 256 };

/** Ranks that call collectives together. */
typedef struct nd_thread_group {
    int64_t first, stride;
    int32_t count;
    struct nd_thread_group *next; /* of its chain */

    pthread_mutex_t lock;
    pthread_cond_t met;
    atomic_uint meetings; /* so far; changes under the lock, when the last member has come */
    int32_t arrived;      /* under the lock: at the next meeting */

    /* A member writes its own between two collectives; all may read between two meetings of one collective. */
    const nd_call **calls;
    int64_t *sequence; /* calls of each member so far */

    /* What the last member found when it compared the calls; stays when it is not ND_OK. */
    nd_error verdict;
    int32_t culprit; /* the rank that differs */
} nd_thread_group;

/** Sends from one rank to another in one channel, oldest first. */
typedef struct nd_thread_parcel {
    const void *data;
    int64_t elements;
    nd_elem elem;
    const char *tag;
    struct nd_thread_parcel *next; /* sent later */
} nd_thread_parcel;

typedef struct nd_thread_lane {
    int32_t sender, channel;
    struct nd_thread_lane *next;
    nd_thread_parcel *oldest, *newest; /* of those not received yet; NULL: none */
    int64_t sent, received;            /* so far */
} nd_thread_lane;

/** What other ranks send to one. */
typedef struct nd_thread_inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    nd_thread_lane *lanes;
} nd_thread_inbox;

/** Used by the rank's own thread only, but for the inbox. */
typedef struct nd_thread_rank {
    nd_thread_inbox inbox;
    nd_thread_group *group[ND_MEMBERS_COUNT]; /* the last one of each kind */
    nd_comm_counters counters;
} nd_thread_rank;

typedef struct nd_thread_comm {
    nd_comm base;
    int32_t ranks;
    bool checks;
    double spin_s; /* a member looks for the others so long before it sleeps; 0 when ranks exceed processors: there,
                    * whoever spins keeps from running whom it waits for */
    nd_thread_rank *rank;

    pthread_mutex_t lock;
    nd_thread_group *chains[ND_THREAD_GROUP_CHAINS]; /* under the lock */
    atomic_bool aborted;                             /* set under the lock, after: */
    int32_t aborted_by;
    nd_error reason;
} nd_thread_comm;

/** The first abort's rank and reason. Call it after `aborted` was seen. \return ND_EINTERRUPTED */
nd_status nd_thread_interrupted(const nd_thread_comm *comm, nd_error *err);

/** See nd_comm_table. */
void nd_thread_abort(nd_comm *comm, int32_t rank, const nd_error *why);

/** A collective of a group of at least two. \param[out] met_s  when the last member came (nd_monotonic_s) */
nd_status nd_thread_collective(nd_thread_comm *comm, int32_t rank, const nd_call *call, const nd_members *members,
                               double *met_s, nd_error *err) ND_NODISCARD;

/** Compare the calls that the members of a group have published -> group->verdict and culprit. */
void nd_thread_match(nd_thread_group *group);

/** \param[out] met_s  when the message was there or taken */
nd_status nd_thread_send(nd_thread_comm *comm, int32_t rank, const nd_call *call, nd_error *err) ND_NODISCARD;
nd_status nd_thread_receive(nd_thread_comm *comm, int32_t rank, const nd_call *call, double *met_s,
                            nd_error *err) ND_NODISCARD;
nd_status nd_thread_send_wait(nd_thread_comm *comm, int32_t rank, const nd_call *call, double *met_s,
                              nd_error *err) ND_NODISCARD;

void nd_thread_groups_wake(nd_thread_comm *comm); /* comm->lock is held */
void nd_thread_groups_free(nd_thread_comm *comm);
void nd_thread_inbox_open(nd_thread_inbox *inbox);
void nd_thread_inbox_wake(nd_thread_inbox *inbox);
void nd_thread_inbox_close(nd_thread_inbox *inbox);

#endif
