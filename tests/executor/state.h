/** Runs of tiny models to save and load: shared by the tests of checkpoints. */
#ifndef ND_TESTS_EXECUTOR_STATE_H
#define ND_TESTS_EXECUTOR_STATE_H

#include <stdio.h>
#include <stdlib.h>

#include "executor/run_state.h"

/** End the program when memory or a file is missing that the tests themselves need. */
static inline void state_need(const void *pointer)
{
    if (pointer == NULL) {
        perror("a test of checkpoints");
        abort();
    }
}

/** A run of tests/executor/data/`file` in a layout, over 8 sequences of 32 tokens a step, with noise in all initial
 * weights, masked labels and weight decay. NULL (and a failed assertion) when it cannot be made. */
nd_run *state_run(const char *file, const char *layout_text, nd_elem real);

/** The same in two parts, for runs with other options. \return as nd_run_create() */
nd_run_options state_options(nd_elem real);
nd_status state_create(const char *file, const char *layout_text, const nd_run_options *options, nd_run **out,
                       nd_error *err);

/** Take steps. */
void state_steps(nd_run *run, int64_t count);

/** Whether weights, masters and both moments of all ranks have the same bits; both runs have one layout. */
bool state_equal(const nd_run *a, const nd_run *b);

/** Whether all parameters agree: largest difference at most `tolerance` of the largest parameter.
 * \param[in] except  part of the names of parameters that are not compared; NULL: all are */
bool state_near(const nd_run *a, const nd_run *b, double tolerance, const char *except);

/** Remove a directory of checkpoints. */
void state_remove(const char *directory);

/** Damage a file: change one bit of the byte at `offset`, or cut `bytes` off its end. */
void state_flip_byte(const char *path, int64_t offset);
void state_cut(const char *path, int64_t bytes);

#endif
