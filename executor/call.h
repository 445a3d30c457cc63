/** An instruction with its operands found: what backends and communicators are asked to do. */
#ifndef ND_EXECUTOR_CALL_H
#define ND_EXECUTOR_CALL_H

#include "core/status.h"
#include "program/instruction.h"

ND_BEGIN_DECLS

typedef struct nd_operand {
    void *data; /* NULL: absent */
    nd_elem elem;
} nd_operand;

/** What changes from step to step. */
typedef struct nd_step {
    int64_t step; /* from 1 */
    double lr, beta1, beta2, eps, weight_decay;
} nd_step;

/** Fills tokens and labels of a micro-batch; see executor/data.h. `positions` x `micro_batch` rows by `map`. */
typedef void (*nd_load)(void *user, int32_t micro, const nd_seq_map *map, int32_t micro_batch, int32_t *tokens,
                        int32_t *labels);

typedef struct nd_call {
    const nd_ins *ins;
    nd_operand in[ND_INS_IN_MAX];
    nd_operand out[ND_INS_OUT_MAX];
    const int32_t *live_rows; /* NULL: all */
    const nd_step *step;
    nd_load load;
    void *load_user;
} nd_call;

ND_END_DECLS

#endif
