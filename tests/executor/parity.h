/** A layout against one rank: the same model, data and steps. */
#ifndef ND_TESTS_EXECUTOR_PARITY_H
#define ND_TESTS_EXECUTOR_PARITY_H

#include "executor/run.h"
#include "tests/executor/split.h"

enum { PARITY_STEPS = 3 };

/** What one rank gives. */
typedef struct parity {
    nd_model_spec model;
    nd_train_spec train;
    nd_run_options options;
    int64_t params;
    double *expected; /* all parameters after PARITY_STEPS */
    double loss[PARITY_STEPS], grad_norm[PARITY_STEPS];
} parity;

typedef struct parity_difference {
    double loss_abs, grad_norm_rel, param_abs; /* largest of all steps and parameters */
    char param[ND_PARAM_NAME_MAX];             /* the one that differs most */
    bool peaks_equal;                          /* replayed and counted peak bytes of every rank */
} parity_difference;

/** Masked labels, clipping, weight decay and an odd vocabulary: several mistakes vanish without them.
 * \param[in] file  of tests/executor/data */
void parity_open(parity *p, const char *file, nd_elem real, int64_t global_batch);
void parity_close(parity *p);

/** Run the layout (grad_accum is filled in from the batch when it is 1) and compare.
 * \return false with err when it cannot run */
bool parity_compare(const parity *p, const nd_layout *layout, const nd_program_options *program, parity_difference *out,
                    nd_error *err);

/** Loss 1e-12 and every parameter 1e-11: a hundred times what summing in another order gives in fp64. */
bool parity_holds(const parity_difference *difference);

/** Parse a layout; a micro-batch count that is not named follows from the batch. */
nd_layout parity_layout(const parity *p, const char *text);

/** How a mesh is run: one of many combinations of sharding, context method, recompute, schedule, split, micro-batch,
 * ep. \return false when none of a few tries is executable */
bool parity_variant(const parity *p, nd_layout *layout, uint64_t seed);

/** Every mesh of powers of two with at most 16 ranks (ND_PARITY_RANKS: so many) against one rank, each in one way
 * (ND_PARITY_VARIANTS: in so many); checks that at least `least` of them can run. */
void parity_sweep(const char *file, int least);

#endif
