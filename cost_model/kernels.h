/** Time of one kernel on one GPU in closed form. docs/MODEL.md, "Kernels". */
#ifndef ND_COST_MODEL_KERNELS_H
#define ND_COST_MODEL_KERNELS_H

#include "core/train_spec.h"
#include "cost_model/calibration.h"
#include "program/block.h"
#include "topologies/gpu_spec.h"

ND_BEGIN_DECLS

/** What kernels run on: one GPU with its constants, one precision. Values, prepared once. */
typedef struct nd_kernel_model {
    double matrix_flops_per_s;    /* dense peak x gemm_frac of the compute precision */
    double fp8_flops_per_s;       /* the same of fp8 operations; 0 when the precision is not fp8 */
    double attention_flops_per_s; /* peak x attention_frac x kernel generation */
    double hbm_bytes_per_s;       /* reached */
    double sm_count;
    double gemm_k0, wave_frac, kernel_s, grouped_frac;
    double attention_s0, attention_bwd_frac, head_dim64_frac;
    double element_bytes;
} nd_kernel_model;

nd_kernel_model nd_kernel_model_make(const nd_gpu_spec *gpu, const nd_calibration *calibration,
                                     const nd_train_spec *train);

/** GEMM: roofline of tensor cores (with tile and wave quantisation) and memory. MODEL.md "GEMM". */
double nd_gemm_s(const nd_kernel_model *model, const nd_op *op);

/** Flash attention, forward or backward, and the score traffic when it is not flash. */
double nd_attention_s(const nd_kernel_model *model, const nd_op *op);

/** Memory-bound chain: launches + bytes over the reached bandwidth. */
double nd_elementwise_s(const nd_kernel_model *model, double bytes, int32_t kernels);

ND_END_DECLS

#endif
