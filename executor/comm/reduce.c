/* Sums over members as a binary tree, block by block so that a block of every level stays in cache. */
#include <assert.h>

#include "executor/bf16.h"
#include "executor/comm/collective_internal.h"

enum { BLOCK = 1024, LEVELS_MAX = 11 /* 2^10 members and the result */ };

/* Members that the left half of a tree over `members` has: ((0+1)+(2+3))+((4+5)+6). */
static int32_t left_half(int32_t members)
{
    int32_t half = 1;
    while (half * 2 < members) {
        half *= 2;
    }
    return half;
}

#define ND_SAME(x) (x)

/* X(name, stored type, type of the sum, from stored, to stored) */
#define ND_REDUCE_TYPES(X)                                                                                             \
    X(f64, double, double, ND_SAME, ND_SAME)                                                                           \
    X(f32, float, float, ND_SAME, ND_SAME)                                                                             \
    X(bf16, uint16_t, float, nd_from_bf16, nd_to_bf16)                                                                       \
    X(i32, int32_t, int32_t, ND_SAME, ND_SAME)

#define ND_REDUCE_FUNCTIONS(name, stored, sum_type, from, to)                                                          \
    static void tree_##name(const void *const inputs[], int32_t members, bool max, int64_t first, int64_t count,       \
                            sum_type levels[][BLOCK], int level)                                                       \
    {                                                                                                                  \
        sum_type *restrict out = levels[level];                                                                        \
        if (members == 1) {                                                                                            \
            const stored *in = (const stored *)inputs[0] + first;                                                      \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                out[i] = from(in[i]);                                                                                  \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        int32_t left = left_half(members);                                                                             \
        tree_##name(inputs, left, max, first, count, levels, level);                                                   \
        tree_##name(inputs + left, members - left, max, first, count, levels, level + 1);                              \
        const sum_type *restrict right = levels[level + 1];                                                            \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            out[i] = !max ? out[i] + right[i] : right[i] > out[i] ? right[i] : out[i];                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void slice_##name(const void *const inputs[], int32_t members, bool max, int64_t first, int64_t count,      \
                             void *out)                                                                                \
    {                                                                                                                  \
        sum_type levels[LEVELS_MAX][BLOCK];                                                                            \
        for (int64_t done = 0; done < count; done += BLOCK) {                                                          \
            int64_t now = count - done < BLOCK ? count - done : BLOCK;                                                 \
            tree_##name(inputs, members, max, first + done, now, levels, 0);                                           \
            stored *at = (stored *)out + first + done;                                                                 \
            for (int64_t i = 0; i < now; i++) {                                                                        \
                at[i] = to(levels[0][i]);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

ND_REDUCE_TYPES(ND_REDUCE_FUNCTIONS)

void nd_reduce_slice(const void *const inputs[], int32_t members, nd_elem elem, bool max, int64_t first, int64_t count,
                     void *out)
{
    switch (elem) {
    case ND_ELEM_F64:
        slice_f64(inputs, members, max, first, count, out);
        return;
    case ND_ELEM_F32:
        slice_f32(inputs, members, max, first, count, out);
        return;
    case ND_ELEM_BF16:
        slice_bf16(inputs, members, max, first, count, out);
        return;
    case ND_ELEM_I32:
        slice_i32(inputs, members, max, first, count, out);
        return;
    case ND_ELEM_COUNT:
        break;
    }
    assert(false);
}
