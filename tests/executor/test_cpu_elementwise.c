/* Copies, sums, squares, clipping, the optimizer, heads packed for an all-to-all. */
#include <math.h>
#include <string.h>

#include "tests/executor/cpu_fixture.h"

static const int64_t lengths[] = {0, 1, 15, 16, 17, 255, 256, 257, 1000};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static op_operand operand_of(op_kind kind, double *x, int64_t count)
{
    return (op_operand){.kind = kind, .count = count, .x = x};
}

static void zeros_of_every_type(void)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        for (op_kind kind = OP_REAL; kind <= OP_I32; kind++) {
            op_begin();
            int64_t count = 3 * lengths[i];
            op_call call = {.ins = {.op = ND_INS_ZERO, .rows = 3, .cols = lengths[i]},
                            .out = {operand_of(kind, op_garbage(kind, count), count)},
                            .expected = {op_numbers(count)}};
            op_check(&call, 0.0);
        }
    }
}

/* What bf16 holds survives all types. */
static void copies_from_type_to_type(void)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        for (int32_t pair = 0; pair < 9; pair++) {
            op_begin();
            op_kind from = (op_kind)(pair / 3);
            op_kind to = (op_kind)(pair % 3);
            double *x = op_random(1, lengths[i]);
            op_call call = {.ins = {.op = ND_INS_COPY, .rows = 1, .cols = lengths[i]},
                            .in = {operand_of(from, x, lengths[i])},
                            .out = {operand_of(to, op_garbage(to, lengths[i]), lengths[i])},
                            .expected = {x}};
            op_check(&call, 0.0);
        }
    }
}

/* fp32 -> bf16: to the nearest, ties to the even one; infinities and NaN stay, what is too large becomes infinite. */
static void bf16_is_rounded_to_nearest_even(void)
{
    const double ulp = 1.0 / 128.0; /* of bf16 at 1 */
    const double cases[][2] = {
        {1.0 + 0.5 * ulp, 1.0},
        {1.0 + 1.5 * ulp, 1.0 + 2.0 * ulp},
        {1.0 + 2.5 * ulp, 1.0 + 2.0 * ulp},
        {1.0 + 0.51 * ulp, 1.0 + ulp},
        {-1.0 - 1.49 * ulp, -1.0 - ulp},
        {(double)INFINITY, (double)INFINITY},
        {-(double)INFINITY, -(double)INFINITY},
        {3.4e38, (double)INFINITY},
        {1e-40, 0x1p-133}, /* below the normal numbers: multiples of 2^-133, of which this is 1.09 */
        {0.0, 0.0},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    op_begin();
    double *x = op_numbers(CASES + 1);
    double *expected = op_numbers(CASES);
    for (int64_t i = 0; i < CASES; i++) {
        x[i] = cases[i][0];
        expected[i] = cases[i][1];
    }
    x[CASES] = (double)NAN;
    op_call call = {.ins = {.op = ND_INS_COPY, .rows = 1, .cols = CASES + 1},
                    .in = {op_wide(x, CASES + 1)},
                    .out = {op_out_real(CASES + 1)}};
    double *got = op_numbers(CASES + 1);
    op_run(&call, ND_ELEM_BF16, (double *[ND_INS_OUT_MAX]){got});
    for (int64_t i = 0; i < CASES; i++) {
        CU_ASSERT_EQUAL(got[i], expected[i]);
    }
    CU_ASSERT_TRUE(isnan(got[CASES]));
}

static void sums_of_two(void)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        for (int32_t types = 0; types < 8; types++) {
            for (int32_t place = 0; place < 3; place++) { /* out: own memory, a, b */
                op_begin();
                op_kind kinds[3] = {(op_kind)(types & 1), (op_kind)(types >> 1 & 1), (op_kind)(types >> 2)};
                if (place > 0 && kinds[place - 1] != kinds[2]) {
                    continue;
                }
                double *a = op_random(2, lengths[i]);
                double *b = op_random(3, lengths[i]);
                double *expected = op_numbers(lengths[i]);
                for (int64_t j = 0; j < lengths[i]; j++) {
                    expected[j] = a[j] + b[j];
                }
                op_call call = {.ins = {.op = ND_INS_ADD, .rows = lengths[i], .cols = 1},
                                .in = {operand_of(kinds[0], a, lengths[i]), operand_of(kinds[1], b, lengths[i])},
                                .out = {operand_of(kinds[2], op_garbage(kinds[2], lengths[i]), lengths[i])},
                                .expected = {expected},
                                .same_as = {place}};
                op_check(&call, 1.0);
            }
        }
    }
}

/* fp64 scalars keep all their digits in every program. */
static void sums_of_scalars_are_fp64(void)
{
    op_begin();
    double a = 1.0;
    double b = 1e-12;
    double sum = 1.0 + 1e-12;
    op_call call = {.ins = {.op = ND_INS_ADD, .rows = 1, .cols = 1},
                    .in = {op_f64(&a, 1), op_f64(&b, 1)},
                    .out = {op_out_f64(1)},
                    .expected = {&sum}};
    op_check(&call, 0.0);
}

/* Summed in fp64 also from fp32: 1 and many numbers that vanish beside it. */
static void squares_are_summed_in_fp64(void)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            op_begin();
            double *x = op_numbers(lengths[i]);
            double expected = accumulate != 0 ? 3.0 : 0.0;
            double old = accumulate != 0 ? 3.0 : (double)NAN;
            for (int64_t j = 0; j < lengths[i]; j++) {
                x[j] = j == 0 ? 1.0 : 1.0 / 4096.0;
                expected += x[j] * x[j];
            }
            op_call call = {.ins = {.op = ND_INS_SUM_SQUARES, .rows = 1, .cols = lengths[i]},
                            .in = {op_wide(x, lengths[i])},
                            .out = {op_f64(&old, 1)}};
            call.ins.accumulate = accumulate != 0;
            for (nd_elem real = ND_ELEM_F64; real <= ND_ELEM_BF16; real++) {
                double got = 0.0;
                op_run(&call, real, (double *[ND_INS_OUT_MAX]){&got});
                CU_ASSERT_EQUAL(got, expected); /* powers of two: exact */
            }
        }
    }
}

static void gradients_are_clipped(void)
{
    static const double cases[][2] = {{0.0, 1.0}, {0.25, 1.0}, {16.0, 1.0}, {16.0, 0.0}, {1e10, 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        op_begin();
        double squares = cases[i][0];
        double limit = cases[i][1];
        double norm = sqrt(squares);
        double scale = limit == 0.0 || norm + 1e-6 <= limit ? 1.0 : limit / (norm + 1e-6);
        op_call call = {.ins = {.op = ND_INS_CLIP, .max_norm = limit},
                        .in = {op_f64(&squares, 1)},
                        .out = {op_out_f64(1), op_out_f64(1)},
                        .expected = {&norm, &scale}};
        op_check(&call, 0.0);
    }
}

#define WEIGHTS INT64_C(37)

/* Three steps of AdamW on one weight each, as its paper writes it. */
static void check_adamw(bool decay, bool has_weight, double beta2)
{
    op_begin();
    double scale = 0.5;
    double *state[4] = {op_random(4, WEIGHTS), op_numbers(WEIGHTS), op_numbers(WEIGHTS), op_numbers(WEIGHTS)};
    double *expected[3] = {op_numbers(WEIGHTS), op_numbers(WEIGHTS), op_numbers(WEIGHTS)};
    memcpy(expected[0], state[0], WEIGHTS * sizeof *state[0]);
    for (int64_t step = 1; step <= 3; step++) {
        double *grad = op_random(5 + (uint64_t)step, WEIGHTS);
        grad[0] = 0.0; /* padding: weight, gradient and moments 0 */
        expected[0][0] = state[0][0] = 0.0;
        op_call call = {.ins = {.op = ND_INS_ADAMW, .rows = 1, .cols = WEIGHTS, .decay = decay},
                        .in = {op_wide(grad, WEIGHTS), op_f64(&scale, 1)},
                        .out = {op_wide(state[0], WEIGHTS), op_wide(state[1], WEIGHTS), op_wide(state[2], WEIGHTS)},
                        .expected = {expected[0], expected[1], expected[2]},
                        .step = {.step = step, .lr = 0.01, .beta1 = 0.9, .beta2 = beta2, .eps = 1e-8}};
        call.step.weight_decay = 0.1;
        if (has_weight) {
            call.out[3] = op_out_real(WEIGHTS);
            call.expected[3] = expected[0];
        }
        for (int64_t i = 0; i < WEIGHTS; i++) {
            double g = grad[i] * scale;
            expected[1][i] = 0.9 * expected[1][i] + 0.1 * g;
            expected[2][i] = beta2 * expected[2][i] + (1.0 - beta2) * g * g;
            double m = expected[1][i] / (1.0 - pow(0.9, (double)step));
            double v = expected[2][i] / (1.0 - pow(beta2, (double)step));
            expected[0][i] -= 0.01 * (m / (sqrt(v) + 1e-8) + (decay ? 0.1 * expected[0][i] : 0.0));
        }
        op_check(&call, 4.0);
        op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){state[0], state[1], state[2]});
    }
    CU_ASSERT_EQUAL(state[0][0], 0.0);
}

static void steps_of_the_optimizer(void)
{
    for (unsigned bits = 0; bits < 4; bits++) {
        check_adamw((bits & 1) != 0, (bits & 2) != 0, 0.95);
        check_adamw((bits & 1) != 0, (bits & 2) != 0, 0.9999); /* 1 - beta2 from a rounded beta2 is 1e-4 off */
    }
}

/** Heads over parts: more heads, as many, fewer (a head lies in several parts). */
static const int64_t packings[][2] = {{8, 4}, {4, 4}, {2, 4}, {1, 4}, {2, 8}, {3, 1}};
enum { PACKINGS = sizeof packings / sizeof packings[0] };
#define ROWS INT64_C(5)
#define DIM  INT64_C(3)

static nd_ins pack_ins(nd_ins_op op, size_t i)
{
    return (nd_ins){.op = op, .rows = ROWS, .heads = packings[i][0], .parts = packings[i][1], .dim = DIM};
}

/* Where head h of row r lies in part p of the packed matrix; -1: not there. */
static int64_t packed_at(size_t i, int64_t p, int64_t row, int64_t head)
{
    int64_t heads = packings[i][0];
    int64_t parts = packings[i][1];
    int64_t width = heads >= parts ? heads / parts : 1;
    int64_t first = heads >= parts ? p * width : p / (parts / heads);
    return head >= first && head < first + width ? ((p * ROWS + row) * width + head - first) * DIM : -1;
}

static int64_t packed_count(size_t i)
{
    return ROWS * DIM * (packings[i][0] >= packings[i][1] ? packings[i][0] : packings[i][1]);
}

static void heads_are_packed(void)
{
    for (size_t i = 0; i < PACKINGS; i++) {
        op_begin();
        int64_t heads = packings[i][0];
        double *x = op_random(10, ROWS * heads * DIM);
        double *expected = op_garbage(OP_REAL, packed_count(i));
        for (int64_t at = 0; at < packings[i][1] * ROWS * heads; at++) {
            int64_t row_head = at % (ROWS * heads);
            int64_t to = packed_at(i, at / (ROWS * heads), row_head / heads, row_head % heads);
            if (to >= 0) {
                memcpy(expected + to, x + row_head * DIM, DIM * sizeof *x);
            }
        }
        op_call call = {.ins = pack_ins(ND_INS_PACK, i),
                        .in = {op_real(x, ROWS * heads * DIM)},
                        .out = {op_out_real(packed_count(i))},
                        .expected = {expected}};
        op_check(&call, 0.0);
    }
}

static void heads_are_unpacked(void)
{
    for (size_t i = 0; i < (size_t)2 * PACKINGS; i++) {
        op_begin();
        int64_t heads = packings[i / 2][0];
        bool sum = i % 2 != 0;
        double *packed = op_random(11, packed_count(i / 2));
        double *expected = op_numbers(ROWS * heads * DIM);
        for (int64_t row_head = 0; row_head < ROWS * heads; row_head++) {
            bool found = false;
            for (int64_t p = 0; p < packings[i / 2][1]; p++) {
                int64_t from = packed_at(i / 2, p, row_head / heads, row_head % heads);
                for (int64_t c = 0; from >= 0 && (sum || !found) && c < DIM; c++) {
                    expected[row_head * DIM + c] += packed[from + c];
                }
                found = found || from >= 0;
            }
        }
        op_call call = {.ins = pack_ins(ND_INS_UNPACK, i / 2),
                        .in = {op_real(packed, packed_count(i / 2))},
                        .out = {op_out_real(ROWS * heads * DIM)},
                        .expected = {expected}};
        call.ins.sum = sum;
        op_check(&call, sum ? 1.0 : 0.0);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(zeros_of_every_type),
                                         ND_TEST(copies_from_type_to_type),
                                         ND_TEST(bf16_is_rounded_to_nearest_even),
                                         ND_TEST(sums_of_two),
                                         ND_TEST(sums_of_scalars_are_fp64),
                                         ND_TEST(squares_are_summed_in_fp64),
                                         ND_TEST(gradients_are_clipped),
                                         ND_TEST(steps_of_the_optimizer),
                                         ND_TEST(heads_are_packed),
                                         ND_TEST(heads_are_unpacked),
                                         {NULL, NULL}};
    return nd_test_main("cpu elementwise", cases);
}
