/** Collectives between the ranks of a run: one table of functions per way to communicate.
 *
 * Sums are deterministic: the same members in the same order always add in the same way, as a binary tree over member
 * indexes ((0+1)+(2+3))+..., so that a group of 4 gives the bits of two groups of 2 added up.
 */
#ifndef ND_EXECUTOR_COMM_H
#define ND_EXECUTOR_COMM_H

#include "executor/call.h"

ND_BEGIN_DECLS

typedef struct nd_comm nd_comm;

/** What a rank sent and received in one kind of group. A group of one communicates nothing: its collectives copy and
 * are not counted. */
typedef struct nd_comm_count {
    int64_t calls;
    int64_t bytes;  /* payload in the convention of the cost model: of the full (gathered or reduced) buffer; of
                     * all-to-all the rank's own send buffer; of send and shift what the rank sends, of
                     * receive what it receives */
    double seconds; /* in the call */
    double wait_s;  /* of that, until the last member arrived, the message was there or the sends were taken */
} nd_comm_count;

typedef struct nd_comm_counters {
    nd_comm_count count[ND_MEMBERS_COUNT][ND_INS_COUNT]; /* by group and operation; sends under ND_MEMBERS_WORLD */
} nd_comm_counters;

typedef struct nd_comm_table {
    const char *name; /* "thread" */
    void (*close)(nd_comm *comm);

    /** Run a collective, send or receive for `rank`, one call of a rank at a time; blocks until its part is done (a
     * send only starts). `members` is the rank's group; not used for messages.
     *
     * Members call the same sequence; when they do not (operation, elements, element type, maximum or sum, or sequence
     * number differ, or rows sent and expected) every member gets ND_EINVAL with both calls in the message instead of
     * a hang (when opened with checks). Any failure aborts the communicator.
     *
     * Messages of a pair of ranks and channel arrive in the order of the sends. SEND_WAIT carries peer and channel like
     * its SEND, and in[0]: it returns when all sends from that very buffer to (peer, channel) are taken; without in[0],
     * when all sends of this rank to (peer, channel) are, which needs a receiver that does not wait for this rank
     * first. After an abort, no buffer may be given back before all ranks have returned: a receiver may be reading it.
     * \return ND_EINVAL, ND_ENOMEM, ND_EINTERRUPTED with the first failing rank's message ("rank 3: ...") after an
     * abort */
    nd_status (*execute)(nd_comm *comm, int32_t rank, const nd_call *call, const nd_members *members, nd_error *err);

    /** Rank `rank` failed with `why`: wakes everyone who waits, now and later. The first abort's reason is kept. */
    void (*abort)(nd_comm *comm, int32_t rank, const nd_error *why);

    /** What `rank` has communicated; call it when no rank runs. */
    const nd_comm_counters *(*counters)(const nd_comm *comm, int32_t rank);
} nd_comm_table;

/** Every implementation begins with this. */
struct nd_comm {
    const nd_comm_table *table;
};

/** Ranks that are threads of this process and read each other's memory.
 * \param[in] ranks  1 .. 1024
 * \param[in] checks compare the calls of all members first
 * \return ND_ENOMEM */
nd_status nd_comm_thread_open(int32_t ranks, bool checks, nd_comm **out, nd_error *err) ND_NODISCARD;

/** The same collective for all members at once in one thread: calls[i] is member i's, all alike and right. For the
 * fuzzed executor; the thread communicator gives the same bits. Not for send, recv and shift's waiting.
 *
 * Sums are in the element type (bf16: in float, rounded once at the end; int32 wraps); a maximum passes a NaN on. */
void nd_collective_apply(const nd_call *const calls[], int32_t members);

ND_END_DECLS

#endif
