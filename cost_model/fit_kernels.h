/** Constants of a GPU's GEMM kernels from a table of measured times. docs/MODEL.md, "GEMM".
 *
 * The table is a CSV with the columns gpu, m, n, k, seconds and, if there are such rows, groups (number of equal GEMMs
 * in one grouped kernel, default 1) and dtype (bf16, fp16 or fp8, default bf16). Row-major [m,k] x [k,n] -> [m,n]; fp8
 * reads fp8 operands and writes 16 bit, casts are not part of it. The first, third, fifth ... row of a GPU is fitted
 * (nd_fit: log errors, Huber weights, priors), the others are the test.
 *
 * What a table says about sustained rates depends on how it was timed: short loops on an idle GPU give burst rates, and
 * only kernels of milliseconds reach the power limit. Training needs a table timed in loops of seconds.
 */
#ifndef ND_COST_MODEL_FIT_KERNELS_H
#define ND_COST_MODEL_FIT_KERNELS_H

#include "core/csv.h"
#include "cost_model/fit.h"
#include "topologies/gpu_spec.h"

ND_BEGIN_DECLS

/** What is fitted; names are those of the calibration file but for the ratio. */
typedef enum nd_gemm_constant {
    ND_GEMM_BURST_FRAC,
    ND_GEMM_SUSTAINED_RATIO, /* gemm_frac / gemm_burst_frac, at most 1 */
    ND_GEMM_POWER_S,
    ND_GEMM_K0,
    ND_GEMM_WAVE_FRAC,
    ND_GEMM_TILE_EXPONENT,
    ND_GEMM_HBM_FRAC,
    ND_GEMM_KERNEL_S,
    ND_GEMM_GROUPED_FRAC, /* identified by rows with groups > 1 only */
    ND_GEMM_FP8_FRAC,     /* identified by rows of dtype fp8 only */
    ND_GEMM_CONSTANT_COUNT
} nd_gemm_constant;

/** |predicted / measured - 1| over a set of rows. */
typedef struct nd_gemm_errors {
    int64_t count;
    double median_frac, p90_frac; /* 0 when count is 0 */
} nd_gemm_errors;

typedef struct nd_gemm_fit {
    nd_fit_result fit;                  /* value, log_sd and identified are indexed by nd_gemm_constant */
    double gemm_frac, gemm_frac_log_sd; /* burst x ratio: the rate of long kernels in this table */
    nd_gemm_errors train, test;         /* all shapes */
    nd_gemm_errors train_big, test_big; /* m, n and k >= 1024: what training runs */
} nd_gemm_fit;

/** Fit the rows whose gpu is gpu->name.
 *
 * \param[out] out untouched on failure
 * \return ND_OK; ND_EPARSE ("FILE:LINE: ...") for an unknown or missing column or a value out of range; ND_EINVAL when
 *         the table has fewer than 8 rows of this GPU; ND_ENOMEM. */
nd_status nd_fit_gemm(const nd_csv *csv, const nd_gpu_spec *gpu, nd_gemm_fit *out, nd_error *err) ND_NODISCARD;

/** "gemm_burst_frac", ... */
const char *nd_gemm_constant_name(nd_gemm_constant constant);

ND_END_DECLS

#endif
