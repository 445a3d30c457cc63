/* Activations by their textbook forms, gradients by differences, rows that do not exist left alone. */
#include <math.h>
#include <string.h>

#include "tests/executor/cpu_fixture.h"

#define ROWS  INT64_C(6)
#define LIVE  INT64_C(4)
#define COLS  INT64_C(11)
#define COUNT (ROWS * COLS)

static double act(nd_activation kind, double x)
{
    if (kind == ND_ACTIVATION_SILU) {
        return x / (1.0 + exp(-x));
    }
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * pow(x, 3.0))));
}

/* Numbers between -6 and 6: both activations bend there and are flat at the ends. */
static double *wide_range(uint64_t seed)
{
    double *x = op_random(seed, COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] *= x[i] > 0.5 || x[i] < -0.5 ? 8.0 : 1.0;
        x[i] = x[i] > 6.0 ? 6.0 : x[i] < -6.0 ? -6.0 : x[i];
    }
    return x;
}

static op_call forward_call(nd_ins_op op, nd_activation kind, int64_t rows)
{
    op_call call = {.ins = {.op = op, .rows = rows, .cols = COLS, .activation = kind},
                    .in = {op_real(wide_range(1), rows * COLS)},
                    .out = {op_out_real(rows * COLS)}};
    if (op == ND_INS_GLU) {
        call.in[1] = op_real(op_random(2, rows * COLS), rows * COLS);
    }
    return call;
}

/* The first LIVE rows exist: the others keep what they held. */
static void make_live(op_call *call)
{
    call->has_live_rows = true;
    call->live_rows = LIVE;
    for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
        if (call->out[o].x != NULL) {
            call->out[o].x = op_random(30 + (uint64_t)o, call->out[o].count);
        }
    }
}

static void check_forward(nd_ins_op op, nd_activation kind, bool live)
{
    op_call call = forward_call(op, kind, ROWS);
    if (live) {
        make_live(&call);
    }
    double *expected = op_numbers(COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        double gated = act(kind, op_in(&call, 0)[i]) * (op == ND_INS_GLU ? op_in(&call, 1)[i] : 1.0);
        expected[i] = live && i >= LIVE * COLS ? op_old(&call, 0)[i] : gated;
    }
    call.expected[0] = expected;
    op_check(&call, 2.0);
}

/* The gradient call of `forward`. */
static op_call backward_call(const op_call *forward, double *dout)
{
    op_call back = {.ins = forward->ins, .in = {forward->in[0], forward->in[1]}};
    bool gated = forward->ins.op == ND_INS_GLU;
    back.ins.op = gated ? ND_INS_GLU_GRAD : ND_INS_ACTIVATION_GRAD;
    back.in[gated ? 2 : 1] = op_real(dout, forward->out[0].count);
    back.out[0] = op_out_real(forward->in[0].count);
    back.out[1] = gated ? op_out_real(forward->in[1].count) : (op_operand){0};
    return back;
}

static void check_gradient(nd_ins_op op, nd_activation kind)
{
    op_call forward = forward_call(op, kind, ROWS);
    double *dout = op_random(3, COUNT);
    op_call back = backward_call(&forward, dout);
    double *got[ND_INS_OUT_MAX] = {op_numbers(COUNT), op == ND_INS_GLU ? op_numbers(COUNT) : NULL};
    op_run(&back, ND_ELEM_F64, got);
    for (int32_t i = 0; i < 2 && got[i] != NULL; i++) {
        op_check_gradient(&forward, i, (double *[ND_INS_OUT_MAX]){dout}, got[i]);
        back.expected[i] = got[i];
    }
    op_check_types(&back, 4.0, ND_ELEM_F32, ND_ELEM_BF16);
    make_live(&back);
    for (int32_t i = 0; i < 2 && got[i] != NULL; i++) {
        memcpy(got[i] + LIVE * COLS, back.out[i].x + LIVE * COLS, (ROWS - LIVE) * COLS * sizeof *got[i]);
    }
    op_check(&back, 4.0);
}

static void activations_and_their_gradients(void)
{
    static const nd_ins_op ops[] = {ND_INS_GLU, ND_INS_ACTIVATION};
    for (unsigned bits = 0; bits < 4; bits++) {
        op_begin();
        nd_activation kind = (bits & 2) != 0 ? ND_ACTIVATION_GELU : ND_ACTIVATION_SILU;
        check_forward(ops[bits & 1], kind, false);
        check_forward(ops[bits & 1], kind, true);
        check_gradient(ops[bits & 1], kind);
    }
}

static void no_live_rows(void)
{
    op_begin();
    op_call call = forward_call(ND_INS_GLU, ND_ACTIVATION_SILU, ROWS);
    make_live(&call);
    call.live_rows = 0;
    call.expected[0] = call.out[0].x;
    op_check(&call, 0.0);
}

/* Where exponentials overflow, the activation is x or 0. */
static void far_from_zero(void)
{
    static const double far[] = {-1e30, -3e4, -1000.0, -95.0, -88.5, 88.5, 95.0, 1000.0, 3e4};
    enum { FAR = sizeof far / sizeof far[0] };
    for (nd_activation kind = ND_ACTIVATION_SILU; kind <= ND_ACTIVATION_GELU; kind++) {
        op_begin();
        op_call call = forward_call(ND_INS_ACTIVATION, kind, 1);
        call.ins.cols = call.in[0].count = call.out[0].count = FAR;
        double *expected = op_numbers(FAR);
        for (int64_t i = 0; i < FAR; i++) {
            op_in(&call, 0)[i] = far[i];
            expected[i] = far[i] > 0.0 ? far[i] : 0.0;
        }
        call.expected[0] = expected;
        op_check(&call, 1.0);
    }
}

static op_call gate_call(void)
{
    return (op_call){.ins = {.op = ND_INS_ROW_GATE, .rows = ROWS, .cols = COLS},
                     .in = {op_real(op_random(4, COUNT), COUNT), op_real(op_random(5, ROWS), ROWS)},
                     .out = {op_out_real(COUNT)}};
}

static void gates_of_rows(void)
{
    op_begin();
    op_call call = gate_call();
    double *expected = op_numbers(COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        expected[i] = op_in(&call, 0)[i] * 0.5 * (1.0 + tanh(0.5 * op_in(&call, 1)[i / COLS]));
    }
    call.expected[0] = expected;
    op_check(&call, 2.0);
}

static void gradients_of_gates_are_differences(void)
{
    op_begin();
    op_call forward = gate_call();
    double *dout = op_random(6, COUNT);
    op_call back = {.ins = forward.ins,
                    .in = {forward.in[0], forward.in[1], op_real(dout, COUNT)},
                    .out = {op_out_real(COUNT), op_out_real(ROWS)}};
    back.ins.op = ND_INS_ROW_GATE_GRAD;
    double *got[ND_INS_OUT_MAX] = {op_numbers(COUNT), op_numbers(ROWS)};
    op_run(&back, ND_ELEM_F64, got);
    op_check_gradient(&forward, 0, (double *[ND_INS_OUT_MAX]){dout}, got[0]);
    op_check_gradient(&forward, 1, (double *[ND_INS_OUT_MAX]){dout}, got[1]);
    back.expected[0] = got[0];
    back.expected[1] = got[1];
    op_check_types(&back, 4.0, ND_ELEM_F32, ND_ELEM_BF16);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(activations_and_their_gradients),
                                         ND_TEST(no_live_rows),
                                         ND_TEST(far_from_zero),
                                         ND_TEST(gates_of_rows),
                                         ND_TEST(gradients_of_gates_are_differences),
                                         {NULL, NULL}};
    return nd_test_main("cpu activation", cases);
}
