#include "executor/comm/reduce_internal.h"

#include <assert.h>
#include <string.h>

#include "executor/bf16.h"

/* Partial results of the tree: one for every bit of the number of pairs (ND_MEMBERS_MAX members), and the pair or the
 * odd member that is coming in. */
enum { PARTIALS = 21 };

typedef union block {
    double f64[ND_REDUCE_BLOCK];
    float f32[ND_REDUCE_BLOCK]; /* of bf16 too */
    int32_t i32[ND_REDUCE_BLOCK];
} block;

/* Stored values are what buffers hold, wide ones what blocks hold. */
typedef struct kernel {
    void (*load)(void *restrict wide, const void *restrict stored, int64_t count);
    void (*pair)(void *restrict wide, const void *a, const void *b, int64_t count); /* of two stored */
    void (*merge)(void *restrict wide, const void *restrict more, int64_t count);   /* both wide */
    void (*store)(void *restrict stored, const void *restrict wide, int64_t count);
} kernel;

static inline double sum_f64(double a, double b)
{
    return a + b;
}

static inline float sum_f32(float a, float b)
{
    return a + b;
}

static inline int32_t sum_i32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b); /* wraps */
}

/* No branches, so that the loops are vectorised. */
static inline double max_f64(double a, double b)
{
    return ((a > b) | (a != a)) ? a : b; /* NOLINT(misc-redundant-expression): a NaN differs from itself */
}

static inline float max_f32(float a, float b)
{
    return ((a > b) | (a != a)) ? a : b; /* NOLINT(misc-redundant-expression) */
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline double keep_f64(double value)
{
    return value;
}

static inline float keep_f32(float value)
{
    return value;
}

static inline int32_t keep_i32(int32_t value)
{
    return value;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): types cannot stand in parentheses.
 *
 * The loops of a sum or maximum `combine` over `stored` elements that widen() makes `wide`. */
#define PAIR(name, stored, wide, widen, combine)                                                                       \
    static void name(void *restrict to, const void *a, const void *b, int64_t count)                                   \
    {                                                                                                                  \
        wide *restrict result = to;                                                                                    \
        const stored *left = a;                                                                                        \
        const stored *right = b;                                                                                       \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            result[i] = combine(widen(left[i]), widen(right[i]));                                                      \
        }                                                                                                              \
    }
#define MERGE(name, wide, combine)                                                                                     \
    static void name(void *restrict to, const void *restrict from, int64_t count)                                      \
    {                                                                                                                  \
        wide *restrict result = to;                                                                                    \
        const wide *restrict more = from;                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            result[i] = combine(result[i], more[i]);                                                                   \
        }                                                                                                              \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

PAIR(pair_sum_f64, double, double, keep_f64, sum_f64)
PAIR(pair_max_f64, double, double, keep_f64, max_f64)
PAIR(pair_sum_f32, float, float, keep_f32, sum_f32)
PAIR(pair_max_f32, float, float, keep_f32, max_f32)
PAIR(pair_sum_bf16, uint16_t, float, nd_from_bf16, sum_f32)
PAIR(pair_max_bf16, uint16_t, float, nd_from_bf16, max_f32)
PAIR(pair_sum_i32, int32_t, int32_t, keep_i32, sum_i32)
PAIR(pair_max_i32, int32_t, int32_t, keep_i32, max_i32)
MERGE(merge_sum_f64, double, sum_f64)
MERGE(merge_max_f64, double, max_f64)
MERGE(merge_sum_f32, float, sum_f32)
MERGE(merge_max_f32, float, max_f32)
MERGE(merge_sum_i32, int32_t, sum_i32)
MERGE(merge_max_i32, int32_t, max_i32)

static void copy_8(void *restrict to, const void *restrict from, int64_t count)
{
    memcpy(to, from, (size_t)count * 8);
}

static void copy_4(void *restrict to, const void *restrict from, int64_t count)
{
    memcpy(to, from, (size_t)count * 4);
}

static void load_bf16(void *restrict wide, const void *restrict stored, int64_t count)
{
    float *restrict to = wide;
    const uint16_t *restrict from = stored;
    for (int64_t i = 0; i < count; i++) {
        to[i] = nd_from_bf16(from[i]);
    }
}

static void store_bf16(void *restrict stored, const void *restrict wide, int64_t count)
{
    uint16_t *restrict to = stored;
    const float *restrict from = wide;
    for (int64_t i = 0; i < count; i++) {
        to[i] = nd_to_bf16(from[i]);
    }
}

static const kernel kernels[ND_ELEM_COUNT][2] = {
    [ND_ELEM_F64] = {{copy_8, pair_sum_f64, merge_sum_f64, copy_8}, {copy_8, pair_max_f64, merge_max_f64, copy_8}},
    [ND_ELEM_F32] = {{copy_4, pair_sum_f32, merge_sum_f32, copy_4}, {copy_4, pair_max_f32, merge_max_f32, copy_4}},
    [ND_ELEM_BF16] = {{load_bf16, pair_sum_bf16, merge_sum_f32, store_bf16},
                      {load_bf16, pair_max_bf16, merge_max_f32, store_bf16}},
    [ND_ELEM_I32] = {{copy_4, pair_sum_i32, merge_sum_i32, copy_4}, {copy_4, pair_max_i32, merge_max_i32, copy_4}},
};

/* One block of all members, from byte `at` of their buffers, into partial[0]. */
static void reduce_block(const nd_call *const calls[], int32_t members, const kernel *run, int64_t at, int64_t count,
                         block partial[PARTIALS])
{
    int32_t held = 0; /* partials: of falling sizes, as the digits of a binary number */
    for (int32_t i = 0; i < members; i += 2) {
        const char *left = (const char *)calls[i]->in[0].data + at;
        if (i + 1 < members) {
            run->pair(&partial[held], left, (const char *)calls[i + 1]->in[0].data + at, count);
            /* two of one size become one of twice the size: as often as the pair's number ends in ones */
            for (int32_t pair = i / 2; pair & 1; pair >>= 1) {
                run->merge(&partial[held - 1], &partial[held], count);
                held--;
            }
        } else {
            run->load(&partial[held], left, count);
        }
        held++;
    }
    for (; held > 1; held--) {
        run->merge(&partial[held - 2], &partial[held - 1], count);
    }
}

void nd_reduce(const nd_call *const calls[], int32_t members, int64_t begin, int64_t end, void *out)
{
    assert(members >= 1 && members <= ND_MEMBERS_MAX);
    nd_elem elem = calls[0]->in[0].elem;
    int64_t size = nd_elem_bytes(elem);
    const kernel *run = &kernels[elem][calls[0]->ins->max ? 1 : 0];
    block partial[PARTIALS];
    for (int64_t at = begin; at < end; at += ND_REDUCE_BLOCK) {
        int64_t count = end - at < ND_REDUCE_BLOCK ? end - at : ND_REDUCE_BLOCK;
        reduce_block(calls, members, run, at * size, count, partial);
        run->store((char *)out + (at - begin) * size, &partial[0], count);
    }
}
