/* bf16 on a processor that has none: stored in 16 bits, computed in fp32. */
#define ND_SUFFIX       bf16
#define ND_REAL         uint16_t
#define ND_WIDE         float
#define ND_WIDE_ELEM    ND_ELEM_F32
#define ND_REAL_ELEM    ND_ELEM_BF16
#define ND_REAL_IS_BF16 1
#define ND_EXP          nd_expf
#define ND_LOG          logf
#define ND_SQRT         sqrtf
#define ND_GEMM         nd_cpu_gemm_f32
#include "executor/cpu/kernels.inc"
