/** The arithmetic of collectives as one member's share, in phases: what nd_collective_apply runs for all members in
 * turn, and what the ranks of the thread communicator run at the same time.
 *
 * Every member's share of a phase must be done before any member begins the next phase, and the last before a buffer
 * is used for something else. Within a phase, members write only what no other member reads or writes. */
#ifndef ND_EXECUTOR_COMM_COLLECTIVE_INTERNAL_H
#define ND_EXECUTOR_COMM_COLLECTIVE_INTERNAL_H

#include "executor/call.h"

/** Phases of a collective: 1 or 2. */
int32_t nd_collective_phases(nd_ins_op op);

/** Member `index`'s share; calls[i] is member i's. Reads only the other members' buffers and call descriptions. */
void nd_collective_phase(const nd_call *const calls[], int32_t members, int32_t index, int32_t phase);

/** Elements of a rank's part: rows x cols. */
int64_t nd_collective_elements(const nd_call *call);

/** What a call counts as; see nd_comm_count. */
int64_t nd_collective_bytes(const nd_call *call, int32_t members);

/** Can member `index` run this call at all? Sizes not negative, buffers there, of one type, and in place only where
 * that is allowed. \return ND_EINVAL */
nd_status nd_collective_check(const nd_call *call, int32_t members, int32_t index, nd_error *err) ND_NODISCARD;

#endif
