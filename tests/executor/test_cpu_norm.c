/* RMS norm and layer norm against their definitions, gradients by differences. */
#include <math.h>
#include <string.h>

#include "tests/executor/cpu_fixture.h"

static const double norm_eps = 1e-5;

/** A norm and what it should give. */
typedef struct norm_case {
    int64_t rows, cols;
    bool layer_norm, weight, bias;
} norm_case;

static op_call forward_of(const norm_case *n)
{
    int64_t size = n->rows * n->cols;
    op_call call = {.ins = {.op = ND_INS_NORM, .rows = n->rows, .cols = n->cols, .eps = norm_eps},
                    .in = {op_real(op_random(1, size), size)},
                    .out = {op_out_real(size), op_out_wide(n->layer_norm ? 2 * n->rows : n->rows)}};
    call.ins.layer_norm = n->layer_norm;
    if (n->weight) {
        call.in[1] = op_real(op_random(2, n->cols), n->cols);
    }
    if (n->bias) {
        call.in[2] = op_real(op_random(3, n->cols), n->cols);
    }
    return call;
}

/* Mean and variance by E[x], E[x^2], which the kernel does not use. */
static void expect(op_call *call, const norm_case *n)
{
    double *y = op_numbers(n->rows * n->cols);
    double *stats = op_numbers(call->out[1].count);
    for (int64_t row = 0; row < n->rows; row++) {
        const double *x = op_in(call, 0) + row * n->cols;
        double sum = 0.0;
        double squares = 0.0;
        for (int64_t i = 0; i < n->cols; i++) {
            sum += x[i] / (double)n->cols;
            squares += x[i] * x[i] / (double)n->cols;
        }
        double mean = n->layer_norm ? sum : 0.0;
        double deviation = sqrt(squares - mean * mean + norm_eps);
        for (int64_t i = 0; i < n->cols; i++) {
            double weight = n->weight ? op_in(call, 1)[i] : 1.0;
            double bias = n->bias ? op_in(call, 2)[i] : 0.0;
            y[row * n->cols + i] = (x[i] - mean) / deviation * weight + bias;
        }
        stats[row] = n->layer_norm ? mean : 1.0 / deviation;
        if (n->layer_norm) {
            stats[n->rows + row] = 1.0 / deviation;
        }
    }
    call->expected[0] = y;
    call->expected[1] = stats;
}

/* The gradient call of `forward`, whose statistics are `stats`. */
static op_call backward_of(const op_call *forward, const norm_case *n, const double *stats, double *dy, bool accumulate)
{
    int64_t size = n->rows * n->cols;
    double *kept = op_numbers(forward->out[1].count);
    memcpy(kept, stats, (size_t)forward->out[1].count * sizeof *kept);
    op_call call = {.ins = forward->ins,
                    .in = {forward->in[0], forward->in[1], op_wide(kept, forward->out[1].count), op_real(dy, size)},
                    .out = {accumulate ? op_real(op_random(5, size), size) : op_out_real(size)}};
    call.ins.op = ND_INS_NORM_GRAD;
    call.ins.accumulate = accumulate;
    if (n->weight) {
        call.out[1] = op_wide(op_random(6, n->cols), n->cols);
    }
    if (n->bias) {
        call.out[2] = op_wide(op_random(7, n->cols), n->cols);
    }
    return call;
}

static void check_gradients(op_call *forward, const norm_case *n)
{
    int64_t size = n->rows * n->cols;
    double *dy = op_random(4, size);
    op_call back = backward_of(forward, n, forward->expected[1], dy, false);
    double *got[ND_INS_OUT_MAX] = {op_numbers(size), n->weight ? op_numbers(n->cols) : NULL,
                                   n->bias ? op_numbers(n->cols) : NULL};
    op_run(&back, ND_ELEM_F64, got);
    double *dout[ND_INS_OUT_MAX] = {dy};
    op_check_gradient(forward, 0, dout, got[0]);
    for (int32_t i = 1; i < 3; i++) { /* gradients of weight and bias are added to what was there */
        double *change = op_numbers(n->cols);
        for (int64_t c = 0; got[i] != NULL && c < n->cols; c++) {
            change[c] = got[i][c] - op_old(&back, i)[c];
        }
        if (got[i] != NULL) {
            op_check_gradient(forward, i, dout, change);
        }
    }
    /* what fp64 gives, in the other types */
    memcpy(back.expected, (const double *const[]){got[0], got[1], got[2], NULL}, sizeof back.expected);
    op_check_types(&back, 4.0, ND_ELEM_F32, ND_ELEM_BF16);
    op_call adding = backward_of(forward, n, forward->expected[1], dy, true);
    double *sum = op_numbers(size);
    for (int64_t i = 0; i < size; i++) {
        sum[i] = op_old(&adding, 0)[i] + got[0][i];
    }
    memcpy(adding.expected, (const double *const[]){sum, got[1], got[2], NULL}, sizeof adding.expected);
    op_check(&adding, 4.0);
}

static void norms_and_their_gradients(void)
{
    static const int64_t shapes[][2] = {{1, 2}, {5, 33}, {3, 16}, {9, 7}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            op_begin();
            norm_case n = {.rows = shapes[s][0],
                           .cols = shapes[s][1],
                           .layer_norm = (bits & 1) != 0,
                           .weight = (bits & 2) != 0,
                           .bias = (bits & 4) != 0};
            op_call call = forward_of(&n);
            expect(&call, &n);
            op_check(&call, 10.0); /* E[x^2] - E[x]^2 cancels */
            if (n.cols > 2) {      /* two numbers have one direction left after mean and scale */
                check_gradients(&call, &n);
            }
        }
    }
}

static void norm_of_no_rows_touches_nothing(void)
{
    op_begin();
    norm_case n = {.rows = 0, .cols = 8, .weight = true};
    op_call call = forward_of(&n);
    op_check(&call, 1.0);
    op_call back = backward_of(&call, &n, op_numbers(1), op_numbers(1), false);
    back.expected[1] = back.out[1].x;
    op_check(&back, 1.0);
}

static void zeros_stay_finite(void)
{
    op_begin();
    norm_case n = {.rows = 2, .cols = 9, .layer_norm = true};
    op_call call = forward_of(&n);
    memset(op_in(&call, 0), 0, 18 * sizeof(double));
    expect(&call, &n);
    op_check(&call, 1.0);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(norms_and_their_gradients),
                                         ND_TEST(norm_of_no_rows_touches_nothing),
                                         ND_TEST(zeros_stay_finite),
                                         {NULL, NULL}};
    return nd_test_main("cpu norm", cases);
}
