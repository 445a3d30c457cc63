/** Sums and maxima of the members' buffers, element by element. */
#ifndef ND_EXECUTOR_COMM_REDUCE_INTERNAL_H
#define ND_EXECUTOR_COMM_REDUCE_INTERNAL_H

#include "executor/call.h"

/* Elements that are reduced at a time: the partial results of 8 members (4 blocks of at most 4 KiB) stay in the first
 * cache while the members' buffers stream through it. */
enum { ND_REDUCE_BLOCK = 512 };

/** Elements begin .. end - 1 of all members' in[0] -> out, where out is the place of element `begin`.
 *
 * The order is a tree over member indexes, neighbours first: ((0+1)+(2+3))+((4+5)+6). So groups of a power of two,
 * reduced one inside the other, give the same bits as one group of all (bf16 only up to the rounding of each group's
 * result: within one call it is summed in float and rounded once). A maximum passes a NaN on.
 * `out` may be the same elements of a member's in[0], not others. */
void nd_reduce(const nd_call *const calls[], int32_t members, int64_t begin, int64_t end, void *out);

#endif
