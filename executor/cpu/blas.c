/* The only file that knows the matrix library. */
#ifdef ND_GSL_CBLAS
#include <gsl/gsl_cblas.h>
#else
#include <cblas.h>
#endif

#include "executor/cpu/cpu_internal.h"

/* OpenBLAS starts threads of its own unless told otherwise; other libraries have no such function. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

void nd_cpu_single_threaded_blas(void)
{
    if (openblas_set_num_threads != NULL) {
        openblas_set_num_threads(1);
    }
}

static enum CBLAS_TRANSPOSE transposed(bool trans)
{
    return trans ? CblasTrans : CblasNoTrans;
}

void nd_cpu_gemm_f64(const nd_gemm_args *g, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasRowMajor, transposed(g->trans_a), transposed(g->trans_b), (int)g->m, (int)g->n, (int)g->k, 1.0, a,
                (int)g->lda, b, (int)g->ldb, g->accumulate ? 1.0 : 0.0, c, (int)g->ldc);
}

void nd_cpu_gemm_f32(const nd_gemm_args *g, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, transposed(g->trans_a), transposed(g->trans_b), (int)g->m, (int)g->n, (int)g->k, 1.0F, a,
                (int)g->lda, b, (int)g->ldb, g->accumulate ? 1.0F : 0.0F, c, (int)g->ldc);
}
