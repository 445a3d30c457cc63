/** One collective with buffers for all its members, and what must come out, computed in another way than
 * executor/comm: a recursive tree, element by element, over values that come from a hash. */
#ifndef ND_TESTS_EXECUTOR_COLLECTIVE_CASE_H
#define ND_TESTS_EXECUTOR_COLLECTIVE_CASE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/comm.h"
#include "tests/nd_test.h"

enum { CASE_MEMBERS = 16 };

typedef struct shape {
    nd_ins_op op;
    nd_elem elem;
    bool max, in_place;
    int32_t members;
    int64_t rows, cols;
    uint32_t seed; /* of the values */
} shape;

typedef struct collective_case {
    shape of;
    nd_ins ins;
    nd_call calls[CASE_MEMBERS];
    const nd_call *all[CASE_MEMBERS];
    void *in[CASE_MEMBERS], *out[CASE_MEMBERS]; /* allocations */
    int32_t send_rows[CASE_MEMBERS][CASE_MEMBERS], receive_rows[CASE_MEMBERS][CASE_MEMBERS];
} collective_case;

static const nd_ins_op case_ops[] = {ND_INS_ALL_REDUCE, ND_INS_ALL_GATHER,      ND_INS_REDUCE_SCATTER,
                                     ND_INS_ALL_TO_ALL, ND_INS_ALL_TO_ALL_ROWS, ND_INS_SHIFT};
enum { CASE_OPS = sizeof case_ops / sizeof case_ops[0] };

static inline uint32_t case_hash(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * 0x9e3779b1U ^ (b + 1) * 0x85ebca77U ^ (c + 1) * 0xc2b2ae3dU;
    h ^= h >> 15;
    h *= 0x2c1b3c6dU;
    h ^= h >> 12;
    h *= 0x297a2d39U;
    return h ^ h >> 15;
}

/* Through an integer of known layout: not the bit trick of the code under test. */
static inline double case_round_bf16(float value)
{
    if (value == 0.0F || !isfinite(value)) {
        return (double)value;
    }
    int exponent;
    double fraction = frexp((double)value, &exponent); /* 8 significant bits */
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

/* Element `position` of member `member`'s input, exact in the type. */
static inline double case_value(const shape *of, int32_t member, int64_t position)
{
    uint32_t h = case_hash(of->seed, (uint32_t)member, (uint32_t)position);
    if (of->elem == ND_ELEM_I32) {
        return (double)(int32_t)(h % 2000001U) - 1000000.0;
    }
    double value = ((double)h - 2147483648.0) / 2147483648.0 * ldexp(1.0, (int)(h % 12U)) / 3.0;
    return of->elem == ND_ELEM_F64   ? value
           : of->elem == ND_ELEM_F32 ? (double)(float)value
                                     : case_round_bf16((float)value);
}

static inline double case_get(const void *data, nd_elem elem, int64_t i)
{
    if (elem == ND_ELEM_F64) {
        return ((const double *)data)[i];
    }
    if (elem == ND_ELEM_F32) {
        return (double)((const float *)data)[i];
    }
    if (elem == ND_ELEM_I32) {
        return ((const int32_t *)data)[i];
    }
    uint16_t stored = ((const uint16_t *)data)[i];
    int exponent = stored >> 7 & 0xff;
    double size = exponent == 0 ? ldexp(stored & 0x7f, -133) : ldexp(0x80 | (stored & 0x7f), exponent - 134);
    return stored & 0x8000 ? -size : size;
}

static inline void case_set(void *data, nd_elem elem, int64_t i, double value)
{
    if (elem == ND_ELEM_F64) {
        ((double *)data)[i] = value;
    } else if (elem == ND_ELEM_F32) {
        ((float *)data)[i] = (float)value;
    } else if (elem == ND_ELEM_I32) {
        ((int32_t *)data)[i] = (int32_t)value;
    } else {
        float narrow = (float)value; /* exact: its lower half is zero */
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    }
}

/* Members first .. first + count - 1 at `position`: neighbours first, so the left half is the largest power of two. */
static inline double case_tree(const shape *of, int32_t first, int32_t count, int64_t position)
{
    if (count == 1) {
        return case_value(of, first, position);
    }
    int32_t half = 1;
    while (2 * half < count) {
        half *= 2;
    }
    double left = case_tree(of, first, half, position);
    double right = case_tree(of, first + half, count - half, position);
    if (of->max) {
        return left > right ? left : right;
    }
    return of->elem == ND_ELEM_F64 || of->elem == ND_ELEM_I32 ? left + right : (double)((float)left + (float)right);
}

static inline double case_reduced(const shape *of, int64_t position)
{
    double result = case_tree(of, 0, of->members, position);
    return of->elem == ND_ELEM_BF16 ? case_round_bf16((float)result) : result;
}

/* Rows that `from` sends to `to`: some none; those of one receiver fit in `rows`. */
static inline int32_t case_rows(const shape *of, int32_t from, int32_t to)
{
    int64_t most = of->rows / of->members;
    return (int32_t)(case_hash(of->seed + 7, (uint32_t)from, (uint32_t)to) % (uint64_t)(most + 1));
}

static inline int64_t case_part(const shape *of)
{
    return of->rows * of->cols;
}

/* Elements of a member's input and output. */
static inline int64_t case_in_elements(const shape *of, int32_t member)
{
    if (of->op == ND_INS_ALL_TO_ALL_ROWS) {
        int64_t rows = 0;
        for (int32_t to = 0; to < of->members; to++) {
            rows += case_rows(of, member, to);
        }
        return rows * of->cols;
    }
    bool parts = of->op == ND_INS_REDUCE_SCATTER || of->op == ND_INS_ALL_TO_ALL;
    return parts ? of->members * case_part(of) : case_part(of);
}

static inline int64_t case_out_elements(const shape *of, int32_t member)
{
    if (of->op == ND_INS_ALL_TO_ALL_ROWS) {
        int64_t rows = 0;
        for (int32_t from = 0; from < of->members; from++) {
            rows += case_rows(of, from, member);
        }
        return rows * of->cols;
    }
    bool parts = of->op == ND_INS_ALL_GATHER || of->op == ND_INS_ALL_TO_ALL;
    return parts ? of->members * case_part(of) : case_part(of);
}

/* Element i of member `me`'s output. */
static inline double case_expected(const shape *of, int32_t me, int64_t i)
{
    int64_t part = case_part(of);
    switch ((int)of->op) {
    case ND_INS_ALL_REDUCE:
        return case_reduced(of, i);
    case ND_INS_REDUCE_SCATTER:
        return case_reduced(of, me * part + i);
    case ND_INS_ALL_GATHER:
        return case_value(of, (int32_t)(i / part), i % part);
    case ND_INS_ALL_TO_ALL:
        return case_value(of, (int32_t)(i / part), me * part + i % part);
    case ND_INS_SHIFT:
        return case_value(of, (me + of->members - 1) % of->members, i);
    default:
        break;
    }
    int64_t row = i / of->cols;
    int32_t from = 0;
    while (row >= case_rows(of, from, me)) {
        row -= case_rows(of, from, me);
        from++;
    }
    for (int32_t before = 0; before < me; before++) {
        row += case_rows(of, from, before);
    }
    return case_value(of, from, row * of->cols + i % of->cols);
}

static inline bool case_can_be_in_place(nd_ins_op op)
{
    return op == ND_INS_ALL_REDUCE || op == ND_INS_ALL_GATHER || op == ND_INS_REDUCE_SCATTER;
}

static inline void case_open_member(collective_case *c, int32_t me)
{
    const shape *of = &c->of;
    int64_t size = nd_elem_bytes(of->elem);
    int64_t part = case_part(of) * size;
    int64_t in_bytes = case_in_elements(of, me) * size;
    int64_t out_bytes = of->op == ND_INS_ALL_TO_ALL_ROWS ? part : case_out_elements(of, me) * size;
    nd_call *call = &c->calls[me];
    c->in[me] = malloc((size_t)in_bytes + 1);
    c->out[me] = malloc((size_t)out_bytes + 1);
    if (c->in[me] == NULL || c->out[me] == NULL) {
        abort();
    }
    memset(c->out[me], 0xa5, (size_t)out_bytes + 1);
    char *in = c->in[me];
    char *out = c->out[me];
    if (of->in_place) {
        in = of->op == ND_INS_ALL_GATHER ? out + me * part : in;
        out = of->op == ND_INS_REDUCE_SCATTER ? in + me * part : of->op == ND_INS_ALL_REDUCE ? in : out;
    }
    for (int64_t i = 0; i < case_in_elements(of, me); i++) {
        case_set(in, of->elem, i, case_value(of, me, i));
    }
    *call = (nd_call){.ins = &c->ins};
    call->in[0] = (nd_operand){in, of->elem};
    call->out[0] = (nd_operand){out, of->elem};
    if (of->op == ND_INS_ALL_TO_ALL_ROWS) {
        for (int32_t other = 0; other < of->members; other++) {
            c->send_rows[me][other] = case_rows(of, me, other);
            c->receive_rows[me][other] = case_rows(of, other, me);
        }
        call->in[1] = (nd_operand){c->send_rows[me], ND_ELEM_I32};
        call->in[2] = (nd_operand){c->receive_rows[me], ND_ELEM_I32};
    }
    c->all[me] = call;
}

/** Fill inputs; outputs hold rubbish. */
static inline void case_open(collective_case *c, const shape *of, nd_members_kind group)
{
    memset(c, 0, sizeof *c);
    c->of = *of;
    c->ins = (nd_ins){
        .op = of->op, .rows = of->rows, .cols = of->cols, .max = of->max, .group = group, .tag = "test.buffer"};
    for (int32_t me = 0; me < of->members; me++) {
        case_open_member(c, me);
    }
}

/** Elements of member `me` that are not what they must be; prints the first. */
static inline int64_t case_wrong(const collective_case *c, int32_t me)
{
    const shape *of = &c->of;
    int64_t wrong = 0;
    for (int64_t i = 0; i < case_out_elements(of, me); i++) {
        double value = case_get(c->calls[me].out[0].data, of->elem, i);
        double expected = case_expected(of, me, i);
        if (!(value == expected) && wrong++ == 0) {
            (void)fprintf(stderr, "%s %s%s, member %d of %d, %lld elements%s: element %lld is %.17g, not %.17g\n",
                          nd_ins_name(of->op), nd_elem_name(of->elem), of->max ? " max" : "", me, of->members,
                          (long long)case_part(of), of->in_place ? ", in place" : "", (long long)i, value, expected);
        }
    }
    bool in_kept = !of->in_place && of->op != ND_INS_REDUCE_SCATTER;
    for (int64_t i = 0; in_kept && i < case_in_elements(of, me); i++) {
        wrong += !(case_get(c->in[me], of->elem, i) == case_value(of, me, i));
    }
    return wrong;
}

static inline void case_close(collective_case *c)
{
    for (int32_t me = 0; me < c->of.members; me++) {
        free(c->in[me]);
        free(c->out[me]);
    }
}

/** Run `check` for every operation, type, size, in place and not, with `members` members. */
static inline void case_for_all(int32_t members, void (*check)(const shape *of, void *user), void *user)
{
    static const struct {
        int64_t rows, cols;
    } sizes[] = {{0, 3}, {1, 1}, {3, 1}, {17, 1}, {40, 25}, {17, 241}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int op = 0; op < CASE_OPS; op++) {
            for (int elem = 0; elem < ND_ELEM_COUNT; elem++) {
                for (int way = 0; way < 4; way++) {
                    shape of = {.op = case_ops[op],
                                .elem = (nd_elem)elem,
                                .max = (way & 1) != 0,
                                .in_place = (way & 2) != 0,
                                .members = members,
                                .rows = sizes[s].rows,
                                .cols = sizes[s].cols,
                                .seed = (uint32_t)(s * 100U + (uint32_t)members)};
                    if ((of.in_place && !case_can_be_in_place(of.op)) || (of.max && of.op != ND_INS_ALL_REDUCE)) {
                        continue;
                    }
                    check(&of, user);
                }
            }
        }
    }
}

#endif
