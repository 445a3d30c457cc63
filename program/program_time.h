/** Time of a step, instruction by instruction: the programs of all ranks against clocks instead of data.
 * docs/MODEL.md, "Time of instructions".
 *
 * A collective begins when its last member has come, a receive when the message was sent, a send_wait ends when the
 * message was taken. The order is the one in which the executor runs the lists. */
#ifndef ND_PROGRAM_PROGRAM_TIME_H
#define ND_PROGRAM_PROGRAM_TIME_H

#include "program/walk.h"

ND_BEGIN_DECLS

/** Seconds that an instruction takes once it has begun and everybody it waits for has come.
 * \param[in] members  of the group of a collective, else 1 */
typedef double (*nd_ins_seconds)(const void *user, const nd_program *program, const nd_ins *ins, int32_t members);

typedef enum nd_issue {
    ND_ISSUE_IN_ORDER, /* one instruction of a rank after the other: the processor */
    ND_ISSUE_STREAMS   /* one of each stream at a time, WAIT makes streams wait: a GPU */
} nd_issue;

/** One rank. Arrays have an element per instruction. */
typedef struct nd_rank_time {
    double *start_s; /* when the instruction is reached */
    double *begin_s; /* when nothing is waited for any longer: start_s .. begin_s is waiting */
    double *end_s;
    double busy_s; /* begin to end of all instructions; streams added up */
    double wait_s; /* start to begin */
} nd_rank_time;

typedef struct nd_program_time {
    int32_t ranks;
    double step_s; /* until the last rank is done */
    nd_rank_time *rank;
} nd_program_time;

/** Time one step of the programs of ranks 0 .. ranks - 1.
 *
 * \param[in]  kv_heads of the model
 * \param[out] out  untouched on failure; free with nd_program_time_free()
 * \return what nd_programs_walk() returns */
nd_status nd_program_time_create(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_issue issue,
                                 nd_ins_seconds seconds, const void *user, nd_program_time *out,
                                 nd_error *err) ND_NODISCARD;
void nd_program_time_free(nd_program_time *time);

/** The same of a step that was executed in order: where its instructions waited follows from when the others' began.
 *
 * \param[in] start_s, end_s  [rank][instruction], seconds of any clock that all ranks share; times of the result count
 *            from the first start */
nd_status nd_program_time_measured(const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                                   const double *const start_s[], const double *const end_s[], nd_program_time *out,
                                   nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
