/** Time of one kernel on one GPU in closed form. docs/MODEL.md, "Kernels". */
#ifndef ND_COST_MODEL_KERNELS_H
#define ND_COST_MODEL_KERNELS_H

#include "core/train_spec.h"
#include "cost_model/calibration.h"
#include "program/block.h"
#include "topologies/gpu_spec.h"

ND_BEGIN_DECLS

enum { ND_GEMM_TILE_COUNT = 4 };

/** Tensor-core rates of one precision. */
typedef struct nd_matrix_rate {
    double burst_flops_per_s; /* of short kernels; 0: the precision is not in use */
    double power_excess;      /* burst rate / sustained rate - 1, >= 0 */
} nd_matrix_rate;

/** What kernels run on: one GPU with its constants, one precision. Values, prepared once. */
typedef struct nd_kernel_model {
    nd_matrix_rate matrix;        /* of the compute precision: dense peak x gemm_burst_frac */
    nd_matrix_rate fp8;           /* the same of fp8 operations */
    double attention_flops_per_s; /* peak x attention_frac x kernel generation */
    double hbm_bytes_per_s;       /* reached by element-wise kernels */
    double gemm_hbm_bytes_per_s;  /* reached by GEMM operands */
    double sm_count;
    double gemm_k0, wave_frac, gemm_power_s, kernel_s, grouped_frac;
    double tile_flops[ND_GEMM_TILE_COUNT]; /* 2 x rows x columns x SMs, over the relative rate of the tile */
    double fp8_cast_bytes, fp8_weight_cast_bytes;
    double attention_s0, attention_bwd_frac, head_dim64_frac, wide_head_bwd_frac;
    double element_bytes;
} nd_kernel_model;

nd_kernel_model nd_kernel_model_make(const nd_gpu_spec *gpu, const nd_calibration *calibration,
                                     const nd_train_spec *train);

/** GEMM of op->m, n, k, groups and hbm_bytes: smooth roofline of tensor cores (tiles, waves, split k, power limit) and
 * memory, plus casts to fp8. Seconds. MODEL.md "GEMM"; fitted by cost_model/fit_kernels.h. */
double nd_gemm_s(const nd_kernel_model *model, const nd_op *op);

/** Flash attention, forward or backward, and the score traffic when it is not flash. Seconds. MODEL.md "Attention". */
double nd_attention_s(const nd_kernel_model *model, const nd_op *op);

/** Memory-bound chain: launches + bytes over the reached bandwidth. Seconds. */
double nd_elementwise_s(const nd_kernel_model *model, double bytes, int32_t kernels);

ND_END_DECLS

#endif
