#define ND_SUFFIX    f32
#define ND_REAL      float
#define ND_WIDE      float
#define ND_WIDE_ELEM ND_ELEM_F32
#define ND_REAL_ELEM ND_ELEM_F32
#define ND_EXP       nd_expf
#define ND_LOG       logf
#define ND_SQRT      sqrtf
#define ND_GEMM      nd_cpu_gemm_f32
#include "executor/cpu/kernels.inc"
