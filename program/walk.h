/** The programs of all ranks gone through together, in an order in which they can run. */
#ifndef ND_PROGRAM_WALK_H
#define ND_PROGRAM_WALK_H

#include "program/program.h"

ND_BEGIN_DECLS

typedef struct nd_walk_place {
    int64_t rank;
    int32_t ins;
} nd_walk_place;

/** One instruction of one rank, or a collective of all its members at once. */
typedef struct nd_walk_step {
    const nd_walk_place *members; /* in the order of the group */
    int32_t members_count;
    int64_t
        lane; /* of send, send_wait and receive: which sender, receiver and channel, 0 .. nd_walk_lanes(); else -1 */
    int64_t message; /* of send and receive: its number on the lane, from 0; of send_wait: how many of the lane must be
                      * taken before it goes on */
} nd_walk_step;

/** Valid during the call. Anything but ND_OK ends the walk, which returns it. */
typedef nd_status (*nd_walk_visitor)(void *user, const nd_walk_step *step, nd_error *err);

/** Visit every instruction of ranks 0 .. ranks - 1 once: a rank's own in its order, a collective when all members have
 * come to it, a receive after its send, a send_wait when everything that was sent on its lane has been received.
 *
 * \param[in] kv_heads of the model
 * \return ND_EINVAL naming a rank and instruction that waits for ever, or sends and receives that do not match;
 *         ND_ENOMEM */
nd_status nd_programs_walk(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_walk_visitor visit,
                           void *user, nd_error *err) ND_NODISCARD;

int64_t nd_walk_lanes(int32_t ranks);

/** All members wait for each other: not send, send_wait and receive. */
bool nd_ins_is_collective(nd_ins_op op);

ND_END_DECLS

#endif
