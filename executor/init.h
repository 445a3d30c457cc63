/** Initial weights: a function of seed, parameter and element alone, so that every layout starts from the same model
 * and no rank has to hold all of it. */
#ifndef ND_EXECUTOR_INIT_H
#define ND_EXECUTOR_INIT_H

#include "program/params.h"

ND_BEGIN_DECLS

typedef struct nd_init_options {
    uint64_t seed;
    double std;   /* of matrices */
    double noise; /* deviation added to the ones and zeros of norms and biases, so that a comparison sees them */
} nd_init_options;

/** seed 0, deviation 0.02 (GPT-2 and Llama), no noise. */
nd_init_options nd_init_options_default(void);

/** Element (row, col) of parameter number `index` of the list. */
double nd_init_value(const nd_init_options *options, const nd_param *param, int32_t index, int64_t row, int64_t col);

ND_END_DECLS

#endif
