/* Matrix products and biases against sums written out. */
#include "tests/executor/cpu_fixture.h"

enum { MAX_EXPERTS = 8 };

static double a_at(const nd_ins *g, const double *a, int64_t row, int64_t i)
{
    return g->trans_a ? a[i * g->m + row] : a[row * g->k + i];
}

static double b_at(const nd_ins *g, const double *b, int64_t i, int64_t col)
{
    return g->trans_b ? b[col * g->k + i] : b[i * g->n + col];
}

static void check_gemm(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool accumulate, op_kind out)
{
    op_begin();
    nd_ins g = {.op = ND_INS_GEMM, .m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b};
    g.accumulate = accumulate;
    double *a = op_random(1, m * k);
    double *b = op_random(2, k * n);
    double *old = op_random(3, m * n);
    double *expected = op_numbers(m * n);
    for (int64_t row = 0; row < m; row++) {
        for (int64_t col = 0; col < n; col++) {
            double sum = accumulate ? old[row * n + col] : 0.0;
            for (int64_t i = 0; i < k; i++) {
                sum += a_at(&g, a, row, i) * b_at(&g, b, i, col);
            }
            expected[row * n + col] = sum;
        }
    }
    op_call call = {.ins = g, .in = {op_real(a, m * k), op_real(b, k * n)}, .expected = {expected}};
    call.out[0] = (op_operand){.kind = out, .count = m * n, .x = accumulate ? old : op_garbage(out, m * n)};
    op_check(&call, 1.0);
}

static void products_of_all_shapes(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {33, 17, 9}, {8, 64, 32}, {65, 2, 130}, {16, 16, 16}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (unsigned bits = 0; bits < 16; bits++) {
            check_gemm(shapes[s][0], shapes[s][1], shapes[s][2], (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                       (bits & 8) != 0 ? OP_WIDE : OP_REAL);
        }
    }
}

static void products_without_rows_or_terms(void)
{
    for (unsigned bits = 0; bits < 8; bits++) {
        bool trans_a = (bits & 1) != 0;
        bool trans_b = (bits & 2) != 0;
        bool accumulate = (bits & 4) != 0;
        check_gemm(0, 5, 3, trans_a, trans_b, accumulate, OP_REAL);
        check_gemm(4, 0, 3, trans_a, trans_b, accumulate, OP_REAL);
        check_gemm(4, 5, 0, trans_a, trans_b, accumulate, OP_REAL); /* zeros, not what was there */
        check_gemm(4, 5, 0, trans_a, trans_b, accumulate, OP_WIDE);
    }
}

/* Rows of experts: some have none, the first and the last among them. */
static double *offsets_of(const int64_t *rows, int64_t groups)
{
    double *offsets = op_numbers(groups + 1);
    for (int64_t e = 0; e < groups; e++) {
        offsets[e + 1] = offsets[e] + (double)rows[e];
    }
    return offsets;
}

static int64_t expert_of(const double *offsets, int64_t row)
{
    int64_t e = 0;
    while ((double)row >= offsets[e + 1]) {
        e++;
    }
    return e;
}

/* More rows than the experts have: the rest is left alone. */
enum { ROWS_BEHIND = 2 };

static void check_grouped_rows(const int64_t *rows, int64_t groups, bool trans_b, bool accumulate)
{
    op_begin();
    nd_ins g = {.op = ND_INS_GEMM_GROUPED, .n = 5, .k = 7, .groups = groups, .trans_b = trans_b};
    g.accumulate = accumulate;
    double *offsets = offsets_of(rows, groups);
    int64_t live = (int64_t)offsets[groups];
    g.m = g.rows = live + ROWS_BEHIND;
    double *a = op_random(4, g.rows * g.k);
    double *b = op_random(5, groups * g.k * g.n);
    double *out = op_random(6, g.rows * g.n);
    double *expected = op_numbers(g.rows * g.n);
    for (int64_t row = 0; row < g.rows; row++) {
        for (int64_t col = 0; col < g.n; col++) {
            double sum = accumulate || row >= live ? out[row * g.n + col] : 0.0;
            for (int64_t i = 0; row < live && i < g.k; i++) {
                sum += a[row * g.k + i] * b_at(&g, b + expert_of(offsets, row) * g.k * g.n, i, col);
            }
            expected[row * g.n + col] = sum;
        }
    }
    op_call call = {.ins = g,
                    .in = {op_real(a, g.rows * g.k), op_real(b, groups * g.k * g.n), op_i32(offsets, groups + 1)},
                    .expected = {expected}};
    if (!accumulate) {
        for (int64_t i = 0; i < live * g.n; i++) {
            out[i] = op_garbage(OP_REAL, 1)[0];
        }
    }
    call.out[0] = op_real(out, g.rows * g.n);
    op_check(&call, 1.0);
}

/* Weight gradients of experts: trans_a, summed over each expert's rows. */
static void check_grouped_weights(const int64_t *rows, int64_t groups, bool accumulate, op_kind out)
{
    op_begin();
    nd_ins g = {.op = ND_INS_GEMM_GROUPED, .m = 3, .n = 5, .groups = groups, .trans_a = true};
    g.accumulate = accumulate;
    double *offsets = offsets_of(rows, groups);
    g.k = g.rows = (int64_t)offsets[groups] + ROWS_BEHIND;
    double *a = op_random(7, g.rows * g.m);
    double *b = op_random(8, g.rows * g.n);
    int64_t count = groups * g.m * g.n;
    double *old = op_random(9, count);
    double *expected = op_numbers(count);
    for (int64_t i = 0; accumulate && i < count; i++) {
        expected[i] = old[i];
    }
    for (int64_t row = 0; row < (int64_t)offsets[groups]; row++) {
        double *own = expected + expert_of(offsets, row) * g.m * g.n;
        for (int64_t i = 0; i < g.m * g.n; i++) {
            own[i] += a[row * g.m + i / g.n] * b[row * g.n + i % g.n];
        }
    }
    op_call call = {.ins = g,
                    .in = {op_real(a, g.rows * g.m), op_real(b, g.rows * g.n), op_i32(offsets, groups + 1)},
                    .expected = {expected}};
    call.out[0] = (op_operand){.kind = out, .count = count, .x = accumulate ? old : op_garbage(out, count)};
    op_check(&call, 1.0);
}

static void products_of_experts(void)
{
    static const int64_t cases[][MAX_EXPERTS] = {{3, 0, 5, 1}, {0, 0, 4, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned bits = 0; bits < 4; bits++) {
            check_grouped_rows(cases[i], 4, (bits & 1) != 0, (bits & 2) != 0);
            check_grouped_weights(cases[i], 4, (bits & 1) != 0, (bits & 2) != 0 ? OP_WIDE : OP_REAL);
        }
    }
}

static void check_bias(int64_t rows, int64_t cols, bool in_place)
{
    op_begin();
    double *x = op_random(10, rows * cols);
    double *bias = op_random(11, cols);
    double *expected = op_numbers(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++) {
        expected[i] = x[i] + bias[i % cols];
    }
    op_call call = {.ins = {.op = ND_INS_BIAS, .rows = rows, .cols = cols},
                    .in = {op_real(x, rows * cols), op_real(bias, cols)},
                    .out = {op_out_real(rows * cols)},
                    .expected = {expected},
                    .same_as = {in_place ? 1 : 0}};
    op_check(&call, 1.0);
}

static void check_bias_grad(int64_t rows, int64_t cols, bool accumulate)
{
    op_begin();
    double *dy = op_random(12, rows * cols);
    double *old = op_random(13, cols);
    double *expected = op_numbers(cols);
    for (int64_t col = 0; col < cols; col++) {
        expected[col] = accumulate ? old[col] : 0.0;
        for (int64_t row = rows - 1; row >= 0; row--) {
            expected[col] += dy[row * cols + col];
        }
    }
    op_call call = {.ins = {.op = ND_INS_BIAS_GRAD, .rows = rows, .cols = cols, .accumulate = accumulate},
                    .in = {op_real(dy, rows * cols)},
                    .out = {accumulate ? op_wide(old, cols) : op_out_wide(cols)},
                    .expected = {expected}};
    op_check(&call, 1.0);
}

static void biases_and_their_gradients(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {7, 19}, {40, 3}, {0, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_bias(shapes[i][0], shapes[i][1], false);
        check_bias(shapes[i][0], shapes[i][1], true);
        check_bias_grad(shapes[i][0], shapes[i][1], false);
        check_bias_grad(shapes[i][0], shapes[i][1], true);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(products_of_all_shapes),
                                         ND_TEST(products_without_rows_or_terms),
                                         ND_TEST(products_of_experts),
                                         ND_TEST(biases_and_their_gradients),
                                         {NULL, NULL}};
    return nd_test_main("cpu matrix", cases);
}
