/* The router, the order of rows by expert, and the rows that go and come back. */
#include <math.h>
#include <string.h>

#include "tests/executor/cpu_fixture.h"

#define ROWS    INT64_C(7)
#define EXPERTS INT64_C(8)
#define TOPK    INT64_C(3)
#define COLS    INT64_C(5)
#define COPIES  (ROWS * TOPK)

/* Different numbers in every row: no tie that a small step would break. */
static double *distinct_logits(void)
{
    double *x = op_numbers(ROWS * EXPERTS);
    for (int64_t i = 0; i < ROWS * EXPERTS; i++) {
        x[i] = (double)((i % EXPERTS * 5 + i / EXPERTS * 3) % EXPERTS) * 0.25 - 1.0;
    }
    return x;
}

static op_call route_call(double *logits, double *bias)
{
    return (op_call){
        .ins = {.op = ND_INS_ROUTE, .rows = ROWS, .cols = EXPERTS, .copies = TOPK},
        .in = {op_real(logits, ROWS * EXPERTS), op_wide(bias, EXPERTS)},
        .out = {op_out_wide(ROWS * EXPERTS), op_out_i32(COPIES), op_out_wide(COPIES)},
    };
}

/* Rank of an expert in its row: how many come before it. */
static int64_t place(const double *probs, int64_t expert)
{
    int64_t before = 0;
    for (int64_t e = 0; e < EXPERTS; e++) {
        before += probs[e] > probs[expert] || (e < expert && probs[e] == probs[expert]);
    }
    return before;
}

static void expect_route(op_call *call)
{
    double *probs = op_numbers(ROWS * EXPERTS);
    double *experts = op_numbers(COPIES);
    double *weights = op_numbers(COPIES);
    for (int64_t row = 0; row < ROWS; row++) {
        double *own = probs + row * EXPERTS;
        double sum = 0.0;
        double chosen = 0.0;
        for (int64_t e = 0; e < EXPERTS; e++) {
            own[e] = exp(op_in(call, 0)[row * EXPERTS + e] + (call->in[1].x != NULL ? op_in(call, 1)[e] : 0.0));
            sum += own[e];
        }
        for (int64_t e = 0; e < EXPERTS; e++) {
            own[e] /= sum;
        }
        for (int64_t e = 0; e < EXPERTS; e++) {
            chosen += place(own, e) < TOPK ? own[e] : 0.0;
        }
        for (int64_t e = 0; e < EXPERTS; e++) {
            if (place(own, e) < TOPK) {
                experts[row * TOPK + place(own, e)] = (double)e;
                weights[row * TOPK + place(own, e)] = own[e] / chosen;
            }
        }
    }
    call->expected[0] = probs;
    call->expected[1] = experts;
    call->expected[2] = weights;
}

static void rows_choose_experts(void)
{
    op_begin();
    op_call call = route_call(distinct_logits(), NULL);
    expect_route(&call);
    op_check(&call, 4.0);
    double *bias = op_random(1, EXPERTS);
    for (int64_t e = 0; e < EXPERTS; e++) {
        bias[e] = 4.0 * (double)((e * 3) % EXPERTS); /* decides: no ties with the logits */
    }
    call = route_call(distinct_logits(), bias);
    expect_route(&call);
    op_check(&call, 4.0);
}

static void ties_go_to_the_lower_expert(void)
{
    op_begin();
    double *logits = op_numbers(ROWS * EXPERTS); /* row 0: all equal */
    for (int64_t row = 1; row < ROWS; row++) {
        for (int64_t e = 0; e < EXPERTS; e++) {
            logits[row * EXPERTS + e] = (double)((e + row) / 2 % 3); /* pairs of equals */
        }
    }
    op_call call = route_call(logits, NULL);
    expect_route(&call);
    op_check(&call, 4.0);
    for (int64_t k = 0; k < TOPK; k++) {
        CU_ASSERT_EQUAL(call.expected[1][k], (double)k);
    }
}

static void gradient_of_the_router_is_a_difference(void)
{
    op_begin();
    op_call forward = route_call(distinct_logits(), NULL);
    expect_route(&forward);
    double *dweights = op_random(2, COPIES);
    double *given[3] = {op_numbers(ROWS * EXPERTS), op_numbers(COPIES), op_numbers(COPIES)};
    for (int32_t i = 0; i < 3; i++) {
        memcpy(given[i], forward.expected[i], (size_t)forward.out[i].count * sizeof *given[i]);
    }
    op_call back = {.ins = forward.ins,
                    .in = {op_wide(given[0], ROWS * EXPERTS), op_i32(given[1], COPIES), op_wide(given[2], COPIES),
                           op_wide(dweights, COPIES)},
                    .out = {op_out_real(ROWS * EXPERTS)}};
    back.ins.op = ND_INS_ROUTE_GRAD;
    double *got = op_numbers(ROWS * EXPERTS);
    op_run(&back, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){got});
    op_check_gradient(&forward, 0, (double *[ND_INS_OUT_MAX]){NULL, NULL, dweights}, got);
    back.expected[0] = got;
    op_check(&back, 4.0);
}

static void copies_are_sorted_by_expert_then_row(void)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        op_begin();
        double *experts = op_random(seed, COPIES);
        double *slots = op_numbers(COPIES);
        double *offsets = op_numbers(EXPERTS + 1);
        double *counts = op_numbers(EXPERTS);
        for (int64_t i = 0; i < COPIES; i++) { /* seed 1: expert 0 and the last have none; seed 4: one has all */
            experts[i] = seed == 1 ? 1.0 + floor(fabs(experts[i]) * (EXPERTS - 2.01))
                                   : floor(fabs(experts[i]) * (seed == 4 ? 0.9 : EXPERTS - 0.01));
        }
        for (int64_t i = 0; i < COPIES; i++) {
            for (int64_t j = 0; j < COPIES; j++) {
                slots[i] += experts[j] < experts[i] || (j < i && experts[j] == experts[i]) ? 1.0 : 0.0;
            }
            for (int64_t e = 0; e < EXPERTS; e++) {
                counts[e] += experts[i] == (double)e ? 1.0 : 0.0;
                offsets[e + 1] += experts[i] <= (double)e ? 1.0 : 0.0;
            }
        }
        op_call call = {.ins = {.op = ND_INS_SORT, .rows = ROWS, .cols = EXPERTS, .copies = TOPK},
                        .in = {op_i32(experts, COPIES)},
                        .out = {op_out_i32(COPIES), op_out_i32(EXPERTS + 1), op_out_i32(EXPERTS)},
                        .expected = {slots, offsets, counts}};
        op_check(&call, 0.0);
    }
}

/* 4 ranks with 2 experts each; some send nothing. */
static void received_rows_are_sorted_by_expert_then_source(void)
{
    enum { PARTS = 4, HELD = EXPERTS / PARTS, ARRIVING = 40, NOTHING = -7777 };
    static const double own[EXPERTS] = {3, 0, 1, 2, 0, 0, 5, 1};
    static const double received[PARTS][HELD] = {{2, 3}, {0, 0}, {0, 4}, {5, 1}};
    op_begin();
    double *in[2] = {op_numbers(EXPERTS), op_numbers(EXPERTS)};
    memcpy(in[0], own, sizeof own);
    memcpy(in[1], received, sizeof received);
    double *slots = op_numbers(ARRIVING);
    double *offsets = op_numbers(HELD + 1);
    double *send = op_numbers(PARTS);
    double *receive = op_numbers(PARTS);
    int64_t row = 0;
    for (int64_t p = 0; p < PARTS; p++) {
        send[p] = own[2 * p] + own[2 * p + 1];
        receive[p] = received[p][0] + received[p][1];
        for (int64_t e = 0; e < HELD; e++) {
            for (int64_t i = 0; i < (int64_t)received[p][e]; i++) {
                double before = (double)i;
                for (int64_t q = 0; q < PARTS; q++) {
                    before += q < p ? received[q][e] : 0.0;
                    before += e > 0 ? received[q][0] : 0.0;
                }
                slots[row++] = before;
            }
        }
    }
    for (; row < ARRIVING; row++) {
        slots[row] = NOTHING;
    }
    offsets[1] = 7.0; /* 2 + 0 + 0 + 5, and 8 of the other expert */
    offsets[2] = 15.0;
    op_call call = {.ins = {.op = ND_INS_REGROUP, .rows = ARRIVING, .cols = EXPERTS, .parts = PARTS},
                    .in = {op_i32(in[0], EXPERTS), op_i32(in[1], EXPERTS)},
                    .out = {op_out_i32(ARRIVING), op_out_i32(HELD + 1), op_out_i32(PARTS), op_out_i32(PARTS)},
                    .expected = {slots, offsets, send, receive}};
    op_check(&call, 0.0);
}

/* A permutation of `count` slots. */
static double *shuffled(int64_t count)
{
    double *slots = op_numbers(count);
    for (int64_t i = 0; i < count; i++) {
        slots[i] = (double)((i * 8 + 3) % count); /* 8 and COPIES have no common factor */
    }
    return slots;
}

static void copies_of_rows_go_to_their_slots(void)
{
    for (int32_t live = 0; live < 3; live++) {
        op_begin();
        double *x = op_random(3, ROWS * COLS);
        double *slots = shuffled(COPIES);
        double *old = op_random(4, COPIES * COLS);
        double *expected = op_numbers(COPIES * COLS);
        memcpy(expected, old, COPIES * COLS * sizeof *old);
        int32_t rows = live == 0 ? COPIES : live == 1 ? COPIES - 4 : 0;
        for (int64_t i = 0; i < rows; i++) {
            memcpy(expected + (int64_t)slots[i] * COLS, x + i / TOPK * COLS, COLS * sizeof *x);
        }
        op_call call = {.ins = {.op = ND_INS_ROWS_SCATTER, .rows = COPIES, .cols = COLS, .copies = TOPK},
                        .in = {op_real(x, ROWS * COLS), op_i32(slots, COPIES)},
                        .out = {op_real(old, COPIES * COLS)},
                        .expected = {expected},
                        .has_live_rows = live > 0,
                        .live_rows = rows};
        op_check(&call, 0.0);
    }
}

static op_call combine_call(bool weighted, bool accumulate)
{
    op_call call = {.ins = {.op = ND_INS_ROWS_COMBINE, .rows = ROWS, .cols = COLS, .copies = TOPK},
                    .in = {op_real(op_random(5, COPIES * COLS), COPIES * COLS), op_i32(shuffled(COPIES), COPIES)},
                    .out = {op_out_real(ROWS * COLS)}};
    call.ins.accumulate = accumulate;
    if (weighted) {
        call.in[2] = op_wide(op_random(6, COPIES), COPIES);
    }
    if (accumulate) {
        call.out[0].x = op_random(7, ROWS * COLS);
    }
    return call;
}

static void check_combine(bool weighted, bool accumulate, bool live)
{
    op_begin();
    op_call call = combine_call(weighted, accumulate);
    int64_t rows = live ? 4 : ROWS;
    double *expected = op_numbers(ROWS * COLS);
    if (live) {
        call.has_live_rows = true;
        call.live_rows = (int32_t)rows;
        call.out[0].x = op_random(8, ROWS * COLS);
    }
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        expected[i] = accumulate || i >= rows * COLS ? op_old(&call, 0)[i] : 0.0;
    }
    for (int64_t i = 0; i < rows * TOPK; i++) {
        for (int64_t c = 0; c < COLS; c++) {
            double y = op_in(&call, 0)[(int64_t)op_in(&call, 1)[i] * COLS + c];
            expected[i / TOPK * COLS + c] += weighted ? op_in(&call, 2)[i] * y : y;
        }
    }
    call.expected[0] = expected;
    op_check(&call, 2.0);
}

static void copies_come_back_as_one_row(void)
{
    for (unsigned bits = 0; bits < 8; bits++) {
        check_combine((bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
    }
}

static void gradients_of_combined_rows_are_differences(void)
{
    op_begin();
    op_call forward = combine_call(true, false);
    double *dout = op_random(9, ROWS * COLS);
    op_call back = {.ins = forward.ins,
                    .in = {forward.in[0], forward.in[1], forward.in[2], op_real(dout, ROWS * COLS)},
                    .out = {op_out_real(COPIES * COLS), op_out_wide(COPIES)}};
    back.ins.op = ND_INS_ROWS_COMBINE_GRAD;
    double *got[ND_INS_OUT_MAX] = {op_numbers(COPIES * COLS), op_numbers(COPIES)};
    op_run(&back, ND_ELEM_F64, got);
    op_check_gradient(&forward, 0, (double *[ND_INS_OUT_MAX]){dout}, got[0]);
    op_check_gradient(&forward, 2, (double *[ND_INS_OUT_MAX]){dout}, got[1]);
    back.expected[0] = got[0];
    back.expected[1] = got[1];
    op_check(&back, 2.0);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(rows_choose_experts),
                                         ND_TEST(ties_go_to_the_lower_expert),
                                         ND_TEST(gradient_of_the_router_is_a_difference),
                                         ND_TEST(copies_are_sorted_by_expert_then_row),
                                         ND_TEST(received_rows_are_sorted_by_expert_then_source),
                                         ND_TEST(copies_of_rows_go_to_their_slots),
                                         ND_TEST(copies_come_back_as_one_row),
                                         ND_TEST(gradients_of_combined_rows_are_differences),
                                         {NULL, NULL}};
    return nd_test_main("cpu experts", cases);
}
