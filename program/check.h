/** Proof that the programs of all ranks fit together, before any of them runs. */
#ifndef ND_PROGRAM_CHECK_H
#define ND_PROGRAM_CHECK_H

#include "program/program.h"

ND_BEGIN_DECLS

/** Check the programs of ranks 0 .. ranks - 1 of one layout: the members of every group call the same sequence of
 * collectives with the same sizes and types, every send has its receive, and when each rank runs its list in order
 * none of them waits for ever.
 *
 * \param[in]  kv_heads of the model
 * \return ND_EINVAL naming the ranks and instructions that disagree or wait for each other; ND_ENOMEM */
nd_status nd_programs_check(const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                            nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
