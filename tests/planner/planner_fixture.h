/** A small model on a given cluster with a built-in stack: everything that a search needs. */
#ifndef ND_TESTS_PLANNER_PLANNER_FIXTURE_H
#define ND_TESTS_PLANNER_PLANNER_FIXTURE_H

#include "cost_model/estimate.h"

typedef struct planner_fixture {
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_calibration calibration;
    nd_cost_context context;
} planner_fixture;

/** 12 layers, 8 heads, 4 key-value heads, hidden 512, feed-forward 1536; about 60 million parameters. */
extern const char fixture_dense[];
/** Mixtral-like: 4 layers, 8 experts of which 2 are active. */
extern const char fixture_moe[];

/** Fill `f`; fails the running test (fatally) when anything does not load. `model` is a built-in name or one of the
 * texts above. */
void fixture_init(planner_fixture *f, const char *model, const char *cluster, const char *stack, int64_t seq_len_tokens,
                  int64_t global_batch_seqs);

/** Prepare the context again after a field of the fixture was changed. */
void fixture_refresh(planner_fixture *f);

#endif
