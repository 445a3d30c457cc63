/** What a program communicates, added up without running it: the figures that an executor's communicator must count. */
#ifndef ND_PROGRAM_TRAFFIC_H
#define ND_PROGRAM_TRAFFIC_H

#include "program/program.h"

ND_BEGIN_DECLS

typedef struct nd_traffic_count {
    int64_t calls;
    int64_t bytes; /* of the full (gathered or reduced) buffer; of an all-to-all the rank's own send buffer; of sends,
                    * receives and shifts what goes one way */
} nd_traffic_count;

/** One step of one rank, or the sum over several. Groups of one rank communicate nothing and are not counted. */
typedef struct nd_traffic {
    nd_traffic_count count[ND_MEMBERS_COUNT][ND_INS_COUNT]; /* sends and receives under ND_MEMBERS_WORLD */
} nd_traffic;

/** Add one step of `program` to `sum`.
 *
 * How many rows a rank sends in an all-to-all of rows (experts) follows from the routing while it runs. Here every rank
 * sends the rows that its own tokens make: exact for the whole group, since what one rank sends another receives, and
 * exact for each rank on the way to the experts.
 *
 * \param[in] kv_heads  of the model */
void nd_program_traffic(const nd_program *program, int64_t kv_heads, nd_traffic *sum);

/** Whether the bytes of one rank depend on the routing (those of all ranks together never do). */
bool nd_traffic_is_routed(nd_ins_op op);

ND_END_DECLS

#endif
