#define ND_SUFFIX    f64
#define ND_REAL      double
#define ND_WIDE      double
#define ND_WIDE_ELEM ND_ELEM_F64
#define ND_REAL_ELEM ND_ELEM_F64
#define ND_EXP       exp
#define ND_LOG       log
#define ND_SQRT      sqrt
#define ND_GEMM      nd_cpu_gemm_f64
#include "executor/cpu/kernels.inc"
