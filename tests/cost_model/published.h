/** Published measured runs as test data: one CSV row into model, cluster, layout, training and what was measured. */
#ifndef ND_TESTS_COST_MODEL_PUBLISHED_H
#define ND_TESTS_COST_MODEL_PUBLISHED_H

#include <stdbool.h>
#include <stdio.h>

#include "cost_model/estimate.h"

typedef enum nd_memory_kind { ND_MEMORY_ALLOCATED, ND_MEMORY_RESERVED, ND_MEMORY_DEVICE } nd_memory_kind;

typedef struct nd_published_run {
    char id[32];
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_calibration calibration;
    nd_layout layout;
    double step_s;     /* measured; 0 when not reported */
    double peak_bytes; /* measured; 0 when not reported */
    nd_memory_kind memory_kind;
} nd_published_run;

/** Read the next row of a CSV with the columns of tests/cost_model/data/published_runs.csv (any order, more columns are
 * fine). \return 1 for a row, 0 at the end, -1 for a row that cannot be expressed (out->id is set, `why` says why). */
int nd_published_next(FILE *csv, nd_published_run *out, char *why, size_t why_bytes);

/** Predicted bytes that compare with what the row measured. */
double nd_published_memory(const nd_published_run *run, const nd_memory_breakdown *memory);

#endif
