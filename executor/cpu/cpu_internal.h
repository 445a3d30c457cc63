/** The processor as a device: scratch memory of a rank and one table of kernels per compute type. */
#ifndef ND_EXECUTOR_CPU_CPU_INTERNAL_H
#define ND_EXECUTOR_CPU_CPU_INTERNAL_H

#include <stddef.h>

#include "executor/backend.h"

ND_BEGIN_DECLS

/** Scratch memory by use; each grows to the largest request and stays. */
typedef enum nd_scratch {
    ND_SCRATCH_A,
    ND_SCRATCH_B,
    ND_SCRATCH_C,
    ND_SCRATCH_D,
    ND_SCRATCH_SCORES,
    ND_SCRATCH_SCORES_GRAD,
    ND_SCRATCH_ROWS,
    ND_SCRATCH_Q_RUNS,
    ND_SCRATCH_KV_RUNS,
    ND_SCRATCH_ANGLES,
    ND_SCRATCH_COUNT
} nd_scratch;

typedef struct nd_cpu {
    nd_elem real;
    void *arena;
    void *scratch[ND_SCRATCH_COUNT];
    size_t scratch_bytes[ND_SCRATCH_COUNT];
    bool failed; /* out of scratch memory */

    /* what ND_SCRATCH_ANGLES holds (rope); angles_half 0: nothing */
    nd_seq_map angles_map;
    int64_t angles_half;
    double angles_theta;
} nd_cpu;

/** At least `bytes` bytes, aligned to 64; NULL (and failed set) when there are none. */
void *nd_cpu_scratch(nd_cpu *cpu, nd_scratch which, size_t bytes);

typedef void (*nd_cpu_kernel)(nd_cpu *cpu, const nd_call *call);

/** Kernels by operation; NULL: not a compute instruction. */
extern const nd_cpu_kernel nd_cpu_kernels_f64[ND_INS_COUNT];
extern const nd_cpu_kernel nd_cpu_kernels_f32[ND_INS_COUNT];
extern const nd_cpu_kernel nd_cpu_kernels_bf16[ND_INS_COUNT];

/** Consecutive positions: rows first .. first + count - 1 of a map are positions position, position + 1, ... */
typedef struct nd_position_run {
    int64_t first, count, position;
} nd_position_run;

/** The runs of a map, in scratch memory of the device.
 * \return their number, 0 when out of memory */
int64_t nd_cpu_runs(nd_cpu *cpu, nd_scratch which, const nd_seq_map *map, nd_position_run **out);

/** Kernels that have no floating-point type of their own. */
void nd_cpu_load(nd_cpu *cpu, const nd_call *call);
void nd_cpu_count_labels(nd_cpu *cpu, const nd_call *call);
void nd_cpu_zero(nd_cpu *cpu, const nd_call *call);
void nd_cpu_positions(nd_cpu *cpu, const nd_call *call);
void nd_cpu_sort(nd_cpu *cpu, const nd_call *call);
void nd_cpu_regroup(nd_cpu *cpu, const nd_call *call);
void nd_cpu_clip(nd_cpu *cpu, const nd_call *call);

/** One thread for each caller of the matrix library. */
void nd_cpu_single_threaded_blas(void);

/** C (+)= A B, row-major, by the matrix library; ld: elements from row to row. */
typedef struct nd_gemm_args {
    int64_t m, n, k;
    bool trans_a, trans_b, accumulate;
    int64_t lda, ldb, ldc;
} nd_gemm_args;
void nd_cpu_gemm_f64(const nd_gemm_args *g, const double *a, const double *b, double *c);
void nd_cpu_gemm_f32(const nd_gemm_args *g, const float *a, const float *b, float *c);

ND_END_DECLS

#endif
