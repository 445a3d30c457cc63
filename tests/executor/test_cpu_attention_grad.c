/* Gradients of the attention core: by differences on small cases, written out on larger ones, part by part. */
#include <math.h>
#include <string.h>

#include "tests/executor/attention_case.h"

typedef struct grads {
    double *x[3]; /* dq, dk, dv */
    int64_t count[3];
} grads;

static grads grads_of(const attention_case *c)
{
    grads g = {.count = {attention_q_rows(c) * c->heads * c->dim, attention_kv_rows(c) * c->kv_heads * c->dim,
                         attention_kv_rows(c) * c->kv_heads * c->v_dim}};
    for (int32_t i = 0; i < 3; i++) {
        g.x[i] = op_numbers(g.count[i]);
    }
    return g;
}

/** What the backward kernel reads of the forward pass over all keys. */
typedef struct finals {
    double *lse, *delta;
} finals;

static finals finals_of(const attention_case *whole)
{
    attention_inputs in = attention_inputs_of(whole);
    int64_t rows = attention_q_rows(whole) * whole->heads;
    double *o = op_numbers(rows * whole->v_dim);
    finals f = {.lse = op_numbers(rows), .delta = op_numbers(rows)};
    attention_naive(whole, &in, false, o, f.lse);
    for (int64_t i = 0; i < rows * whole->v_dim; i++) {
        f.delta[i / whole->v_dim] += o[i] * in.dout[i];
    }
    return f;
}

static op_call grad_call(const attention_case *c, const attention_inputs *in, const finals *f)
{
    op_call call = attention_call(c, in, OP_WIDE);
    int64_t rows = attention_q_rows(c) * c->heads;
    grads before = grads_of(c);
    call.ins.op = ND_INS_ATTENTION_GRAD;
    call.in[3] = op_real(in->dout, rows * c->v_dim);
    call.in[4] = op_wide(f->lse, rows);
    call.in[5] = op_wide(f->delta, rows);
    for (int32_t i = 0; i < 3; i++) {
        call.out[i] = op_wide(op_random(20 + (uint64_t)i, before.count[i]), before.count[i]);
    }
    return call;
}

/* The kernel adds the written-out gradients to what was there. */
static void check_grad(const attention_case *c)
{
    attention_inputs in = attention_inputs_of(c);
    finals f = finals_of(c);
    op_call call = grad_call(c, &in, &f);
    grads g = grads_of(c);
    attention_naive_grad(c, &in, g.x[0], g.x[1], g.x[2]);
    for (int32_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < g.count[i]; j++) {
            g.x[i][j] += op_old(&call, i)[j];
        }
        call.expected[i] = g.x[i];
    }
    op_check(&call, 8.0);
}

static void check_by_differences(const attention_case *c)
{
    attention_inputs in = attention_inputs_of(c);
    finals f = finals_of(c);
    op_call call = grad_call(c, &in, &f);
    grads g = grads_of(c);
    for (int32_t i = 0; i < 3; i++) {
        memset(call.out[i].x, 0, (size_t)g.count[i] * sizeof *g.x[i]);
    }
    op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){g.x[0], g.x[1], g.x[2]});
    op_call forward = attention_call(c, &in, OP_REAL);
    for (int32_t i = 0; i < 3; i++) {
        op_check_gradient(&forward, i, (double *[ND_INS_OUT_MAX]){in.dout}, g.x[i]);
    }
}

static void gradients_are_differences(void)
{
    op_begin();
    attention_case c = attention_case_default(9);
    c.dim = 5;
    c.v_dim = 3;
    check_by_differences(&c);
    c.window = 4;
    check_by_differences(&c);
    c.chunked = true;
    check_by_differences(&c);
    c = attention_case_default(12);
    c.micro_batch = 1;
    c.kv_heads = 1;
    c.q_map = attention_map(12, 3, 1, true);
    c.kv_map = attention_map(12, 3, -1, true);
    check_by_differences(&c);
}

static void gradients_of_all_shapes(void)
{
    static const int64_t lengths[] = {1, 2, 63, 64, 65, 130};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        op_begin();
        attention_case c = attention_case_default(lengths[i]);
        check_grad(&c);
        c.v_dim = 3;
        c.window = 7;
        check_grad(&c);
        c.chunked = true;
        check_grad(&c);
    }
    op_begin();
    attention_case several_blocks = attention_case_default(1100);
    several_blocks.heads = several_blocks.kv_heads = several_blocks.micro_batch = 1;
    several_blocks.dim = several_blocks.v_dim = 3;
    check_grad(&several_blocks);
}

/* Member by member of the ring: dq adds up, dk and dv of a member's keys from every member's queries. */
static void check_ring(int32_t cp, bool zigzag, int64_t window)
{
    const int64_t seq_len = 24;
    attention_case whole = attention_case_default(seq_len);
    whole.window = window;
    attention_inputs all = attention_inputs_of(&whole);
    grads expected = grads_of(&whole);
    attention_naive_grad(&whole, &all, expected.x[0], expected.x[1], expected.x[2]);
    grads sums = grads_of(&whole); /* by position */
    for (int32_t pair = 0; pair < cp * cp; pair++) {
        attention_case part = whole;
        part.q_map = attention_map(seq_len, cp, pair % cp, zigzag);
        part.kv_map = attention_map(seq_len, cp, -1, zigzag);
        finals f = finals_of(&part);
        part.kv_map = attention_map(seq_len, cp, pair / cp, zigzag);
        attention_inputs in = attention_inputs_of(&part);
        op_call call = grad_call(&part, &in, &f);
        grads g = grads_of(&part);
        op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){g.x[0], g.x[1], g.x[2]});
        for (int32_t i = 0; i < 3; i++) {
            const nd_seq_map *map = i == 0 ? &part.q_map : &part.kv_map;
            int64_t width = g.count[i] / map->positions;
            for (int64_t j = 0; j < g.count[i]; j++) {
                int64_t at = attention_position(map, j / width) * width + j % width;
                sums.x[i][at] += g.x[i][j] - op_old(&call, i)[j];
            }
        }
    }
    for (int32_t i = 0; i < 3; i++) {
        CU_ASSERT_TRUE(op_agree("ring gradient", ND_ELEM_F64, sums.x[i], expected.x[i], expected.count[i], 16.0));
    }
}

static void gradients_of_parts_add_up(void)
{
    for (int32_t cp = 1; cp <= 4; cp++) {
        op_begin();
        check_ring(cp, true, 0);
        check_ring(cp, false, 0);
        op_begin();
        check_ring(cp, true, 5);
        check_ring(cp, false, 5);
    }
}

/* A query of whom no key is known (log-sum-exp -inf) must not turn gradients into NaN. */
static void queries_without_keys_add_nothing(void)
{
    op_begin();
    attention_case c = attention_case_default(8);
    c.q_map = attention_map(8, 2, 0, false);
    c.kv_map = attention_map(8, 2, 1, false);
    check_grad(&c);
}

static void delta_is_the_product_of_output_and_gradient(void)
{
    static const int64_t widths[] = {1, 15, 16, 17, 64};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        op_begin();
        int64_t rows = 5;
        int64_t heads = 3;
        int64_t count = rows * heads * widths[w];
        double *o = op_random(7, count);
        double *dout = op_random(8, count);
        double *expected = op_numbers(rows * heads);
        for (int64_t i = 0; i < count; i++) {
            expected[i / widths[w]] += o[i] * dout[i];
        }
        op_call call = {.ins = {.op = ND_INS_ATTENTION_DELTA, .rows = rows, .heads = heads, .v_dim = widths[w]},
                        .in = {op_real(o, count), op_real(dout, count)},
                        .out = {op_out_wide(rows * heads)},
                        .expected = {expected}};
        op_check(&call, 2.0);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(gradients_are_differences),
                                         ND_TEST(gradients_of_all_shapes),
                                         ND_TEST(gradients_of_parts_add_up),
                                         ND_TEST(queries_without_keys_add_nothing),
                                         ND_TEST(delta_is_the_product_of_output_and_gradient),
                                         {NULL, NULL}};
    return nd_test_main("cpu attention gradients", cases);
}
