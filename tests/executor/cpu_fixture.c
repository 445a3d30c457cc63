#include "tests/executor/cpu_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/bf16.h"
#include "program/program.h"

enum { POOL = 1 << 20 };

static double pool[POOL];
static int64_t pool_used;

void op_begin(void)
{
    pool_used = 0;
}

double *op_numbers(int64_t count)
{
    CU_ASSERT_TRUE_FATAL(pool_used + count < POOL);
    double *x = &pool[pool_used];
    pool_used += count + 1; /* no two share an address */
    memset(x, 0, (size_t)(count + 1) * sizeof *x);
    return x;
}

double *op_random(uint64_t seed, int64_t count)
{
    double *x = op_numbers(count);
    uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        double uniform = (double)(state >> 11) / (double)(1ULL << 53);
        x[i] = (double)nd_from_bf16(nd_to_bf16((float)(2.0 * uniform - 1.0)));
    }
    return x;
}

double *op_garbage(op_kind kind, int64_t count)
{
    double *x = op_numbers(count);
    for (int64_t i = 0; i < count; i++) {
        x[i] = kind == OP_I32 ? -7777.0 : (double)NAN;
    }
    return x;
}

op_operand op_real(double *x, int64_t count)
{
    return (op_operand){.kind = OP_REAL, .count = count, .x = x};
}

op_operand op_wide(double *x, int64_t count)
{
    return (op_operand){.kind = OP_WIDE, .count = count, .x = x};
}

op_operand op_f64(double *x, int64_t count)
{
    return (op_operand){.kind = OP_F64, .count = count, .x = x};
}

op_operand op_i32(double *x, int64_t count)
{
    return (op_operand){.kind = OP_I32, .count = count, .x = x};
}

op_operand op_out_real(int64_t count)
{
    return op_real(op_garbage(OP_REAL, count), count);
}

op_operand op_out_wide(int64_t count)
{
    return op_wide(op_garbage(OP_WIDE, count), count);
}

op_operand op_out_f64(int64_t count)
{
    return op_f64(op_garbage(OP_F64, count), count);
}

op_operand op_out_i32(int64_t count)
{
    return op_i32(op_garbage(OP_I32, count), count);
}

double *op_in(const op_call *call, int32_t input)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(call->in[input].x);
    return call->in[input].x;
}

double *op_old(const op_call *call, int32_t output)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(call->out[output].x);
    return call->out[output].x;
}

static nd_elem elem_of(op_kind kind, nd_elem real)
{
    switch (kind) {
    case OP_REAL:
        return real;
    case OP_WIDE:
        return nd_wide_elem(real);
    case OP_I32:
        return ND_ELEM_I32;
    case OP_F64:
        break;
    }
    return ND_ELEM_F64;
}

static void encode(void *to, nd_elem elem, const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (elem == ND_ELEM_F64) {
            ((double *)to)[i] = x[i];
        } else if (elem == ND_ELEM_F32) {
            ((float *)to)[i] = (float)x[i];
        } else if (elem == ND_ELEM_BF16) {
            ((uint16_t *)to)[i] = nd_to_bf16((float)x[i]);
        } else {
            ((int32_t *)to)[i] = (int32_t)x[i];
        }
    }
}

static void decode(double *x, nd_elem elem, const void *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (elem == ND_ELEM_F64) {
            x[i] = ((const double *)from)[i];
        } else if (elem == ND_ELEM_F32) {
            x[i] = (double)((const float *)from)[i];
        } else if (elem == ND_ELEM_BF16) {
            x[i] = (double)nd_from_bf16(((const uint16_t *)from)[i]);
        } else {
            x[i] = (double)((const int32_t *)from)[i];
        }
    }
}

static nd_operand make_operand(const op_operand *operand, nd_elem real)
{
    if (operand->x == NULL) {
        return (nd_operand){0};
    }
    nd_elem elem = elem_of(operand->kind, real);
    size_t bytes = (size_t)(operand->count * nd_elem_bytes(elem));
    void *data = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&data, 64, bytes > 0 ? bytes : 1), 0);
    encode(data, elem, operand->x, operand->count);
    return (nd_operand){.data = data, .elem = elem};
}

/* Inputs hold what they held. */
static void check_unchanged(const op_call *call, nd_elem real, const nd_operand *in)
{
    for (int32_t i = 0; i < ND_INS_IN_MAX; i++) {
        bool shared = false;
        for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
            shared = shared || call->same_as[o] == i + 1;
        }
        if (shared || in[i].data == NULL) {
            continue;
        }
        nd_operand before = make_operand(&call->in[i], real);
        size_t bytes = (size_t)(call->in[i].count * nd_elem_bytes(in[i].elem));
        CU_ASSERT_EQUAL(memcmp(before.data, in[i].data, bytes), 0);
        free(before.data);
    }
}

void op_run(const op_call *call, nd_elem real, double *const results[ND_INS_OUT_MAX])
{
    nd_error err;
    nd_device *device = NULL;
    const nd_backend *cpu = nd_backend_cpu();
    ND_ASSERT_OK(cpu->open(0, real, &device, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(device);
    nd_call c = {.ins = &call->ins, .step = &call->step, .live_rows = call->has_live_rows ? &call->live_rows : NULL};
    for (int32_t i = 0; i < ND_INS_IN_MAX; i++) {
        c.in[i] = make_operand(&call->in[i], real);
    }
    for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
        c.out[o] = call->same_as[o] > 0 ? c.in[call->same_as[o] - 1] : make_operand(&call->out[o], real);
    }
    ND_ASSERT_OK(cpu->execute(device, &c, &err));
    check_unchanged(call, real, c.in);
    for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
        if (results[o] != NULL) {
            decode(results[o], c.out[o].elem, c.out[o].data, call->out[o].count);
        }
        if (call->same_as[o] == 0) {
            free(c.out[o].data);
        }
    }
    for (int32_t i = 0; i < ND_INS_IN_MAX; i++) {
        free(c.in[i].data);
    }
    cpu->close(device);
}

bool op_agree(const char *what, nd_elem elem, const double *x, const double *expected, int64_t count, double slack)
{
    static const double tolerance[] = {[ND_ELEM_F64] = 1e-13, [ND_ELEM_F32] = 1e-6, [ND_ELEM_BF16] = 8e-3};
    double squares = 0.0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(expected[i])) {
            squares += expected[i] * expected[i];
            finite++;
        }
    }
    double size = finite > 0 ? sqrt(squares / (double)finite) : 0.0;
    for (int64_t i = 0; i < count; i++) {
        bool equal = x[i] == expected[i]; /* infinities too */
        if (!equal && !(fabs(x[i] - expected[i]) <= slack * tolerance[elem] * (fabs(expected[i]) + size))) {
            fprintf(stderr, "%s, %s: number %lld is %.17g, expected %.17g\n", what, nd_elem_name(elem), (long long)i,
                    x[i], expected[i]);
            return false;
        }
    }
    return true;
}

void op_check_types(const op_call *call, double slack, nd_elem from, nd_elem to)
{
    for (nd_elem real = from; real <= to; real++) {
        int64_t used = pool_used;
        double *results[ND_INS_OUT_MAX] = {NULL};
        for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
            results[o] = call->out[o].x != NULL ? op_numbers(call->out[o].count) : NULL;
        }
        op_run(call, real, results);
        for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
            if (call->expected[o] != NULL) {
                CU_ASSERT_PTR_NOT_NULL_FATAL(results[o]);
                /* what is not stored in the compute type is not rounded to it */
                nd_elem elem = call->out[o].kind == OP_REAL ? real : nd_wide_elem(real);
                CU_ASSERT_TRUE(op_agree(nd_ins_name(call->ins.op), elem, results[o], call->expected[o],
                                        call->out[o].count, slack));
            }
        }
        pool_used = used;
    }
}

void op_check(const op_call *call, double slack)
{
    op_check_types(call, slack, ND_ELEM_F64, ND_ELEM_BF16);
}

static double weighted_output(const op_call *forward, double *const dout[ND_INS_OUT_MAX])
{
    int64_t used = pool_used;
    double *results[ND_INS_OUT_MAX] = {NULL};
    for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
        results[o] = dout[o] != NULL ? op_numbers(forward->out[o].count) : NULL;
    }
    op_run(forward, ND_ELEM_F64, results);
    double sum = 0.0;
    for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
        for (int64_t i = 0; dout[o] != NULL && i < forward->out[o].count; i++) {
            sum += dout[o][i] * results[o][i];
        }
    }
    pool_used = used;
    return sum;
}

void op_check_gradient(const op_call *forward, int32_t input, double *const dout[ND_INS_OUT_MAX],
                       const double *analytic)
{
    const double step = 1e-5;
    int64_t count = forward->in[input].count;
    double *x = forward->in[input].x;
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(analytic[i]));
    }
    CU_ASSERT_TRUE(largest > 1e-3); /* else nothing is compared */
    for (int64_t i = 0; i < count; i++) {
        double before = x[i];
        x[i] = before + step;
        double up = weighted_output(forward, dout);
        x[i] = before - step;
        double down = weighted_output(forward, dout);
        x[i] = before;
        double numeric = (up - down) / (2.0 * step);
        if (!(fabs(numeric - analytic[i]) <= 2e-8 * largest)) {
            fprintf(stderr, "%s, input %d: gradient %lld is %.12g, by differences %.12g\n",
                    nd_ins_name(forward->ins.op), (int)input, (long long)i, analytic[i], numeric);
            CU_FAIL("wrong gradient");
            return;
        }
    }
}
