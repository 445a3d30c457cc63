/* Rotary embedding, positions, and the heads of latent attention. */
#include <math.h>

#include "tests/executor/attention_case.h"

/** Rows of a map turned. */
typedef struct rope_case {
    nd_seq_map map;
    int64_t heads, dim, rot_dim;
    int32_t micro_batch;
    double theta;
    bool inverse;
} rope_case;

/* The last rot_dim columns of a head as complex numbers (column i, column i + rot_dim/2), each times e^(i angle). */
static void turn(const rope_case *r, int64_t position, double *head)
{
    double *last = head + r->dim - r->rot_dim;
    for (int64_t i = 0; i < r->rot_dim / 2; i++) {
        double angle = (double)position / pow(r->theta, 2.0 * (double)i / (double)r->rot_dim);
        double size = hypot(last[i], last[i + r->rot_dim / 2]);
        double phase = atan2(last[i + r->rot_dim / 2], last[i]) + (r->inverse ? -angle : angle);
        last[i] = size * cos(phase);
        last[i + r->rot_dim / 2] = size * sin(phase);
    }
}

static op_call rope_call(const rope_case *r, bool in_place)
{
    int64_t rows = r->map.positions * r->micro_batch;
    int64_t count = rows * r->heads * r->dim;
    double *x = op_random(1, count);
    return (op_call){.ins = {.op = ND_INS_ROPE,
                             .rows = rows,
                             .heads = r->heads,
                             .dim = r->dim,
                             .rot_dim = r->rot_dim,
                             .micro_batch = r->micro_batch,
                             .q_map = r->map,
                             .theta = r->theta,
                             .inverse = r->inverse},
                     .in = {op_real(x, count)},
                     .out = {op_out_real(count)},
                     .same_as = {in_place ? 1 : 0}};
}

static void check_rope(const rope_case *r)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        op_call call = rope_call(r, in_place != 0);
        double *expected = op_numbers(call.out[0].count);
        for (int64_t i = 0; i < call.out[0].count; i++) {
            expected[i] = op_in(&call, 0)[i];
        }
        for (int64_t head = 0; head < call.ins.rows * r->heads; head++) {
            turn(r, attention_position(&r->map, head / r->heads / r->micro_batch), expected + head * r->dim);
        }
        call.expected[0] = expected;
        op_check(&call, 8.0); /* fp64: angles of position 100 to 1e-14 */
    }
}

static void heads_turn_by_their_positions(void)
{
    for (int32_t cp = 1; cp <= 4; cp++) {
        for (int32_t member = -1; member < cp; member++) {
            op_begin();
            rope_case r = {.map = attention_map(48, cp, member, true), .heads = 3, .dim = 8, .rot_dim = 8};
            r.micro_batch = 2;
            r.theta = 1e4;
            check_rope(&r);
            r.map.first = 3;
            r.map.positions = 5;
            check_rope(&r);
            r.inverse = true;
            r.rot_dim = 4; /* of latent attention: the first columns stay */
            check_rope(&r);
            r.map.zigzag = false;
            r.theta = 5e5;
            check_rope(&r);
        }
    }
}

/* Angles are kept on a device from call to call: another map, width or base must not get the old ones. */
static void kept_angles_are_those_of_the_call(void)
{
    enum { KEPT = 8 };
    nd_error err;
    nd_device *device = NULL;
    const nd_backend *cpu = nd_backend_cpu();
    ND_ASSERT_OK(cpu->open(0, ND_ELEM_F64, &device, &err));
    rope_case base = {.map = attention_map(8, 2, 0, true), .heads = 1, .dim = 4, .rot_dim = 4, .micro_batch = 1};
    base.theta = 100.0;
    rope_case cases[KEPT] = {base, base, base, base, base, base, base, base};
    cases[1].map.member = 1;
    cases[2].map.zigzag = false;
    cases[2].map.member = 1;
    cases[3].theta = 50.0;
    cases[4].rot_dim = 2;
    cases[5].map.first = 1;
    cases[5].map.positions = 3;
    cases[6].inverse = true;
    cases[7].map.positions = 3;                        /* as many as case 5, from another place */
    for (size_t i = 0; i < (size_t)KEPT * KEPT; i++) { /* every case after every other */
        op_begin();
        const rope_case *pair[2] = {&cases[i / KEPT], &cases[i % KEPT]};
        for (int32_t p = 0; p < 2; p++) {
            op_call call = rope_call(pair[p], false);
            double *expected[ND_INS_OUT_MAX] = {op_numbers(call.out[0].count)};
            op_run(&call, ND_ELEM_F64, expected); /* on a device of its own */
            nd_call c = {.ins = &call.ins,
                         .in = {{.data = call.in[0].x, .elem = ND_ELEM_F64}},
                         .out = {{.data = call.out[0].x, .elem = ND_ELEM_F64}}};
            ND_ASSERT_OK(cpu->execute(device, &c, &err));
            CU_ASSERT_TRUE(op_agree("kept angles", ND_ELEM_F64, call.out[0].x, expected[0], call.out[0].count, 0.0));
        }
    }
    cpu->close(device);
}

static void positions_are_those_of_the_map(void)
{
    for (int32_t cp = 1; cp <= 4; cp++) {
        for (int32_t pair = 0; pair < 2 * (cp + 1); pair++) {
            op_begin();
            nd_seq_map map = attention_map(24, cp, pair / 2 - 1, pair % 2 != 0);
            map.first = pair % 3;
            map.positions -= map.first;
            int64_t rows = map.positions * 3;
            double *expected = op_numbers(rows);
            for (int64_t row = 0; row < rows; row++) {
                expected[row] = (double)attention_position(&map, row / 3);
            }
            op_call call = {.ins = {.op = ND_INS_POSITIONS, .rows = rows, .micro_batch = 3, .q_map = map},
                            .out = {op_out_i32(rows)},
                            .expected = {expected}};
            op_check(&call, 0.0);
        }
    }
}

#define ROWS  INT64_C(5)
#define HEADS INT64_C(3)
#define NOPE  INT64_C(4)
#define ROT   INT64_C(2)
#define V_DIM INT64_C(7)

static const nd_ins split = {.rows = ROWS, .heads = HEADS, .dim = NOPE + ROT, .rot_dim = ROT, .v_dim = V_DIM};

static op_call split_call(void)
{
    int64_t up = (int64_t)ROWS * HEADS * (NOPE + V_DIM);
    op_call call = {.ins = split,
                    .in = {op_real(op_random(1, up), up), op_real(op_random(2, ROWS * ROT), ROWS * ROT)},
                    .out = {op_out_real(ROWS * HEADS * (NOPE + ROT)), op_out_real(ROWS * HEADS * V_DIM)}};
    call.ins.op = ND_INS_SPLIT_LATENT;
    return call;
}

static void latent_heads_are_split(void)
{
    op_begin();
    op_call call = split_call();
    double *k = op_numbers(call.out[0].count);
    double *v = op_numbers(call.out[1].count);
    for (int64_t i = 0; i < ROWS * HEADS; i++) {
        for (int64_t c = 0; c < NOPE + ROT; c++) {
            k[i * (NOPE + ROT) + c] =
                c < NOPE ? op_in(&call, 0)[i * (NOPE + V_DIM) + c] : op_in(&call, 1)[i / HEADS * ROT + c - NOPE];
        }
        for (int64_t c = 0; c < V_DIM; c++) {
            v[i * V_DIM + c] = op_in(&call, 0)[i * (NOPE + V_DIM) + NOPE + c];
        }
    }
    call.expected[0] = k;
    call.expected[1] = v;
    op_check(&call, 0.0);
}

static void gradients_of_latent_heads_are_differences(void)
{
    op_begin();
    op_call forward = split_call();
    double *dout[ND_INS_OUT_MAX] = {op_random(3, forward.out[0].count), op_random(4, forward.out[1].count)};
    op_call back = {.ins = split,
                    .in = {op_real(dout[0], forward.out[0].count), op_real(dout[1], forward.out[1].count)},
                    .out = {op_out_real(forward.in[0].count), op_out_real(forward.in[1].count)}};
    back.ins.op = ND_INS_SPLIT_LATENT_GRAD;
    double *got[ND_INS_OUT_MAX] = {op_numbers(forward.in[0].count), op_numbers(forward.in[1].count)};
    op_run(&back, ND_ELEM_F64, got);
    op_check_gradient(&forward, 0, dout, got[0]);
    op_check_gradient(&forward, 1, dout, got[1]);
    back.expected[0] = got[0];
    back.expected[1] = got[1];
    op_check(&back, 1.0);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(heads_turn_by_their_positions),
                                         ND_TEST(kept_angles_are_those_of_the_call),
                                         ND_TEST(positions_are_those_of_the_map),
                                         ND_TEST(latent_heads_are_split),
                                         ND_TEST(gradients_of_latent_heads_are_differences),
                                         {NULL, NULL}};
    return nd_test_main("cpu rope", cases);
}
