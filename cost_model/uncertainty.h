/** How far a step time may be from its prediction: fitted constants and the model's own form. docs/MODEL.md,
 * "Intervals". */
#ifndef ND_COST_MODEL_UNCERTAINTY_H
#define ND_COST_MODEL_UNCERTAINTY_H

#include <stdbool.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/* X(enumerator, name): what a step time is proportional to, in parts. */
#define ND_TIME_FACTOR_LIST(X)                                                                                         \
    X(ND_FACTOR_GEMM, "gemm")             /* GPU's and stack's GEMM rate */                                            \
    X(ND_FACTOR_ATTENTION, "attention")   /* GPU's and stack's attention rate */                                       \
    X(ND_FACTOR_MEMORY, "memory")         /* reached memory bandwidth */                                               \
    X(ND_FACTOR_CONTENTION, "contention") /* slowdown by hidden traffic */                                             \
    X(ND_FACTOR_LAUNCH, "launch")         /* host time of launches */                                                  \
    X(ND_FACTOR_LINKS, "links")           /* exposed traffic inside and between nodes */

typedef enum nd_time_factor {
#define ND_TIME_FACTOR_ENUM(name, text) name,
    ND_TIME_FACTOR_LIST(ND_TIME_FACTOR_ENUM)
#undef ND_TIME_FACTOR_ENUM
        ND_TIME_FACTOR_COUNT
} nd_time_factor;

typedef struct nd_time_uncertainty {
    /* covariance of the logarithms of the factors */
    double covariance[ND_TIME_FACTOR_COUNT][ND_TIME_FACTOR_COUNT];
    double form_log_sd;      /* of the model's form, dense models in 16 bit */
    double hard_form_log_sd; /* mixtures of experts and fp8 */
} nd_time_uncertainty;

/** What is believed before any run was seen: wide priors, and the form's error on the runs that the project ships.
 * \param[in] borrowed  the GPU's constants are those of a relative */
nd_time_uncertainty nd_time_uncertainty_prior(bool borrowed);

/** Standard deviation of log(step).
 * \param[in] shares  part of the step time that is proportional to each factor, sum <= 1
 * \param[in] hard    a mixture of experts, or fp8 */
double nd_time_log_sd(const nd_time_uncertainty *uncertainty, const double shares[ND_TIME_FACTOR_COUNT], bool hard);

/** Normal quantile of an 80 % interval: 10 % on either side. */
extern const double nd_interval80_sd;

ND_END_DECLS

#endif
