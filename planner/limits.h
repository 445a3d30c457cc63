/** The largest micro-batch, the longest sequence, the fewest GPUs that fit, each with the layout that reaches it.
 *
 * "Surely" means that the whole 80 % interval of the memory fits; a value that is only possible (borderline: the
 * expected peak fits, the whole interval does not) is given beside it where it goes further. A value at which even the
 * expected peak is above the memory is beyond the limit.
 */
#ifndef ND_PLANNER_LIMITS_H
#define ND_PLANNER_LIMITS_H

#include "planner/point.h"

ND_BEGIN_DECLS

typedef enum nd_limit_quantity {
    ND_LIMIT_MICRO_BATCH,
    ND_LIMIT_SEQ_LEN,
    ND_LIMIT_GPUS,
    ND_LIMIT_QUANTITY_COUNT
} nd_limit_quantity;

/** "micro-batch", "seq-len", "gpus"; never NULL. */
const char *nd_limit_quantity_name(nd_limit_quantity quantity);

enum {
    ND_LIMIT_MICRO_BATCH_MAX = 65536,
    ND_LIMIT_SEQ_LEN_MAX = 16777216, /* 16 Mi tokens */
    ND_LIMIT_SEQ_LEN_STEP = 1024,
    ND_LIMIT_SEQ_LEN_FINE_STEP = 128, /* where not even 1,024 tokens fit */
    ND_LIMIT_GPUS_MAX = 65536
};

typedef struct nd_limit {
    nd_limit_quantity quantity;
    int64_t step;    /* values are multiples of it; 1 for GPUs */
    int64_t ceiling; /* no value beyond it was tried */
    bool has_sure, has_possible;
    nd_point sure;     /* the limit that surely fits */
    nd_point possible; /* a limit further on that may fit; there only when it differs */
    bool at_ceiling;   /* even the ceiling fits */
    bool has_beyond;
    nd_point
        beyond; /* the next value, at which nothing fits: of more sequence or batch, of fewer GPUs. Where nothing fits
                 * at all: the smallest value of sequence or batch, the largest number of GPUs that was tried */
    bool has_fastest;
    nd_point fastest; /* micro-batch only: `best` is the fastest plan at the limit's global batch, there when it has
                       * another micro-batch (of up to 64) */
    bool has_earlier;
    nd_point earlier; /* GPUs only, when more do not help: a quarter of beyond's GPUs or fewer, to see what stays.
                       * beyond.reason says what else stands in the way of more */
    int64_t searches;
} nd_limit;

/** Largest micro-batch at the task's sequence length and cluster. When the global batch was given, only its divisors
 * are possible; else the batch is nd_task_batch_seqs(). \return ND_ENOMEM; ND_EINVAL when pins contradict each other at
 * every value. */
nd_status nd_limit_micro_batch(const nd_task *task, nd_limit *out, nd_error *err) ND_NODISCARD;

/** Longest sequence, in steps of ND_LIMIT_SEQ_LEN_STEP tokens (or of what cp and tp of the limit's layout divide). The
 * number of sequences of a step stays; the micro-batch is 1 unless it is pinned. */
nd_status nd_limit_seq_len(const nd_task *task, nd_limit *out, nd_error *err) ND_NODISCARD;

/** Fewest GPUs: parts of a node, every number of nodes up to 8, then 3 x 2^k and 2^k nodes and what lies between the
 * last that does not suffice and the first that does. The search ends without an answer where four times the GPUs save
 * less than 1 % of the least memory, or at ND_LIMIT_GPUS_MAX. */
nd_status nd_limit_gpus(const nd_task *task, nd_limit *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
