/* The only file that knows the matrix library. */
#ifdef ND_GSL_CBLAS
#include <gsl/gsl_cblas.h>
#else
#include <cblas.h>
#endif

#include "executor/cpu/cpu_internal.h"
#include "executor/cpu/touch_internal.h"

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

static void touch(const nd_gemm_args *g, const void *a, const void *b, const void *c, size_t number)
{
    nd_touch_rows(a, g->trans_a ? g->k : g->m, (size_t)(g->trans_a ? g->m : g->k) * number, (size_t)g->lda * number,
                  false);
    nd_touch_rows(b, g->trans_b ? g->n : g->k, (size_t)(g->trans_b ? g->k : g->n) * number, (size_t)g->ldb * number,
                  false);
    nd_touch_rows(c, g->m, (size_t)g->n * number, (size_t)g->ldc * number, true);
}

void nd_cpu_gemm_f64(const nd_gemm_args *g, const double *a, const double *b, double *c)
{
    touch(g, a, b, c, sizeof *a);
    cblas_dgemm(CblasRowMajor, transposed(g->trans_a), transposed(g->trans_b), (int)g->m, (int)g->n, (int)g->k, 1.0, a,
                (int)g->lda, b, (int)g->ldb, g->accumulate ? 1.0 : 0.0, c, (int)g->ldc);
}

void nd_cpu_gemm_f32(const nd_gemm_args *g, const float *a, const float *b, float *c)
{
    touch(g, a, b, c, sizeof *a);
    cblas_sgemm(CblasRowMajor, transposed(g->trans_a), transposed(g->trans_b), (int)g->m, (int)g->n, (int)g->k, 1.0F, a,
                (int)g->lda, b, (int)g->ldb, g->accumulate ? 1.0F : 0.0F, c, (int)g->ldc);
}
