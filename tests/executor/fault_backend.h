/** The processor with one fault: what happens to a run when a rank has no memory, fails, or loses its thread. */
#ifndef ND_TESTS_EXECUTOR_FAULT_BACKEND_H
#define ND_TESTS_EXECUTOR_FAULT_BACKEND_H

#include "executor/backend.h"

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_NO_ARENA, /* the rank's memory cannot be reserved */
    FAULT_FAILS,    /* the instruction fails: no scratch memory */
    FAULT_EXITS,    /* the thread ends there */
} fault_kind;

/** Where: the first instruction of the rank that is like this. */
typedef struct fault {
    fault_kind kind;
    int32_t rank;
    int64_t step;
    nd_ins_op op;
    int32_t layer;
} fault;

/** The backend with this fault, until the next call. */
const nd_backend *fault_backend(const fault *what);

/** When it struck (nd_monotonic_s()); 0: it did not. Not while a run runs. */
double fault_time_s(void);

#endif
