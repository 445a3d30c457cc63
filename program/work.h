/** What an instruction has to do, in numbers that times are proportional to. Device constants turn it into seconds
 * (cost_model/machine.h); docs/MODEL.md, "Time of instructions". */
#ifndef ND_PROGRAM_WORK_H
#define ND_PROGRAM_WORK_H

#include "program/program.h"

ND_BEGIN_DECLS

enum { ND_WORK_TERMS = 4 };

/** What the terms of an operation are; "" where it has fewer. Units:
 *   call      1; of gemm_grouped one a group, of attention one a head and sequence
 *   flop      multiplications and additions of a matrix product, masked parts of attention's blocks included
 *   operand, result   elements of the matrices read and written (attention: of queries, keys, values and outputs)
 *   score     attention: elements of the score matrix, blocks of rows rounded up to what the last row sees
 *   element   elements that the operation goes over
 *   byte      collectives and receives: bytes that the rank itself reads
 *   far_...   of these, what is beyond the first MiB: a processor's cache
 *   member    collectives: members beyond two */
const char *nd_work_term_name(nd_ins_op op, int32_t term);

typedef struct nd_ins_work {
    double term[ND_WORK_TERMS];
} nd_ins_work;

/** Of an instruction of `program`. How many rows the experts of a rank get is known only while running: it counts with
 * the rows that equal experts get.
 * \param[in] members of a collective's group; 1 of everything else */
nd_ins_work nd_ins_work_of(const nd_program *program, const nd_ins *ins, int32_t members);

/** Elements of the score matrix that an attention call goes over for one head and sequence: query rows are taken in
 * blocks, and a block reaches from the first key that one of its rows sees to the last. */
int64_t nd_attention_scores(const nd_ins *ins);

ND_END_DECLS

#endif
