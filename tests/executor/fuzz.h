/** All ranks of a layout in one thread, their streams in a random order that the waits allow: what a device with
 * streams may do. Finds waits that are missing, which running in order never does. */
#ifndef ND_TESTS_EXECUTOR_FUZZ_H
#define ND_TESTS_EXECUTOR_FUZZ_H

#include "executor/run.h"

typedef enum fuzz_result { FUZZ_DONE, FUZZ_DEADLOCK, FUZZ_FAILED } fuzz_result;

/** One step of `run` in the order of `seed`. \param[in] obeys_waits  false: as if there were none */
fuzz_result fuzz_step(const nd_run *run, int64_t kv_heads, const nd_step *step, uint64_t seed, bool obeys_waits);

#endif
