/** A prepared cost context for tests: built-in model, cluster and stack by name. */
#ifndef ND_TESTS_COST_MODEL_FIXTURE_H
#define ND_TESTS_COST_MODEL_FIXTURE_H

#include <stdlib.h>

#include "cost_model/estimate.h"
#include "tests/nd_test.h"

typedef struct fixture {
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_calibration calibration;
    nd_cost_context context;
} fixture;

/* Static storage in the caller: a model spec is large and a context borrows. */
static inline void fixture_make(fixture *f, const char *model, const char *cluster, const char *stack, int64_t seq,
                                int64_t global_batch)
{
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_model_load(model, false, &f->model, &err));
    ND_ASSERT_OK(nd_cluster_load(cluster, &f->cluster, &err));
    ND_ASSERT_OK(nd_stack_find(stack, &f->stack, &err));
    ND_ASSERT_OK(nd_calibration_for_gpu(&f->cluster.gpu, &f->calibration, &err));
    f->train = (nd_train_spec){.seq_len_tokens = seq,
                               .global_batch_seqs = global_batch,
                               .precision = ND_DTYPE_BF16,
                               .optimizer = ND_OPTIMIZER_ADAMW,
                               .attention = f->stack.default_attention,
                               .base_bits = 16};
    ND_ASSERT_OK(
        nd_cost_context_init(&f->model, &f->cluster, &f->train, &f->stack, &f->calibration, &f->context, &err));
}

/* "tp=2,..." with sequence parallelism and accumulation filled in. */
static inline nd_layout fixture_layout(const fixture *f, const char *text)
{
    nd_error err = {.message = ""};
    nd_layout layout = nd_layout_single();
    uint32_t given = 0;
    ND_ASSERT_OK(nd_layout_parse(text, &layout, &given, &err));
    if ((given & (1u << ND_LAYOUT_KEY_GRAD_ACCUM)) == 0) {
        layout.grad_accum = f->train.global_batch_seqs / (layout.micro_batch * nd_layout_data_ranks(&layout));
    }
    return layout;
}

static inline nd_estimate fixture_estimate(const fixture *f, const char *text)
{
    nd_estimate estimate;
    nd_layout layout = fixture_layout(f, text);
    nd_estimate_layout(&f->context, &layout, &estimate);
    return estimate;
}

#endif
