/** One instruction on the processor: operands as fp64 here, turned into the types of the program for the call, in
 * memory of exactly their size (the address sanitizer sees what reaches past it). */
#ifndef ND_TESTS_EXECUTOR_CPU_FIXTURE_H
#define ND_TESTS_EXECUTOR_CPU_FIXTURE_H

#include "executor/backend.h"
#include "tests/nd_test.h"

/** Types of operands: the compute type, what it accumulates in, and what does not depend on it. */
typedef enum op_kind { OP_REAL, OP_WIDE, OP_F64, OP_I32 } op_kind;

typedef struct op_operand {
    op_kind kind;
    int64_t count;
    double *x; /* NULL: absent */
} op_operand;

typedef struct op_call {
    nd_ins ins;
    op_operand in[ND_INS_IN_MAX];
    op_operand out[ND_INS_OUT_MAX]; /* x: what is there before the call; op_garbage() where it must not matter */
    const double *expected[ND_INS_OUT_MAX]; /* NULL: not compared */
    int32_t same_as[ND_INS_OUT_MAX];        /* 1 + input that the output lies in, 0: its own memory */
    bool has_live_rows;
    int32_t live_rows;
    nd_step step;
} op_call;

/** Give back all numbers of earlier tests; first line of every test. */
void op_begin(void);

/** `count` numbers at 0, of the tests' own pool. */
double *op_numbers(int64_t count);

/** Numbers between -1 and 1 that bf16 holds exactly, so that all types compute from the same. */
double *op_random(uint64_t seed, int64_t count);

/** NaN, and for indices a number no index has. */
double *op_garbage(op_kind kind, int64_t count);

op_operand op_real(double *x, int64_t count);
op_operand op_wide(double *x, int64_t count);
op_operand op_f64(double *x, int64_t count);
op_operand op_i32(double *x, int64_t count);

/** Outputs whose contents before the call are garbage. */
op_operand op_out_real(int64_t count);
op_operand op_out_wide(int64_t count);
op_operand op_out_f64(int64_t count);
op_operand op_out_i32(int64_t count);

/** Numbers of an operand that is there. */
double *op_in(const op_call *call, int32_t input);
double *op_old(const op_call *call, int32_t output);

/** Run the call in `real`; results[i] (as many numbers as out[i]) gets what output i holds afterwards; inputs must not
 * change unless an output lies in them. results[i] NULL: not wanted. */
void op_run(const op_call *call, nd_elem real, double *const results[ND_INS_OUT_MAX]);

/** Run in fp64, fp32 and bf16 and compare with `expected`. Each number may be off by `tolerance of the type x slack x
 * (its size + root mean square of the output)`: 1e-13 in fp64 and 1e-6 in fp32 (both some ten units of rounding), 8e-3
 * in bf16 (two roundings to 8 bits: one of an intermediate result, one of the output). Outputs that are not in the
 * compute type are compared as what it accumulates in. `slack` is for sums of many terms. */
void op_check(const op_call *call, double slack);

/** The same with the compute types from..to only. */
void op_check_types(const op_call *call, double slack, nd_elem from, nd_elem to);

/** Compare arrays as op_check does. \return false after printing the first number that is off */
bool op_agree(const char *what, nd_elem elem, const double *x, const double *expected, int64_t count, double slack);

/** `analytic` (as many numbers as input `input` has) is the gradient of sum(dout[o][i] x output o [i]) over the outputs
 * with dout[o] != NULL, checked by central differences of step 1e-5 in fp64: their error is step^2 x third derivative
 * (1e-10 of numbers near 1) and rounding over step (1e-11), so 2e-8 of the largest component is generous, and far below
 * any mistake. */
void op_check_gradient(const op_call *forward, int32_t input, double *const dout[ND_INS_OUT_MAX],
                       const double *analytic);

#endif
