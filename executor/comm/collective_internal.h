/** The arithmetic of collectives: what member `index` writes, from the calls of all members. */
#ifndef ND_EXECUTOR_COMM_COLLECTIVE_INTERNAL_H
#define ND_EXECUTOR_COMM_COLLECTIVE_INTERNAL_H

#include "executor/comm.h"

ND_BEGIN_DECLS

/** First phase: reads the members' inputs. All members may run it at the same time. */
void nd_collective_part(const nd_call *const calls[], int32_t members, int32_t index);

/** Second phase, after all members' first: reads what they wrote. Only where nd_collective_has_second_phase(). */
void nd_collective_finish(const nd_call *const calls[], int32_t members, int32_t index);
bool nd_collective_has_second_phase(nd_ins_op op);

/** out[first .. first + count) = sum (or maximum) over inputs of in[first ..), added as a binary tree over the inputs'
 * order: element types fp64, fp32, bf16 (added in fp32, rounded once) and int32. */
void nd_reduce_slice(const void *const inputs[], int32_t members, nd_elem elem, bool max, int64_t first, int64_t count,
                     void *out);

ND_END_DECLS

#endif
