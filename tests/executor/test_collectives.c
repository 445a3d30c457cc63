/* Collectives give every member exactly what the tree over members says, in place and not. */
#include "executor/comm.h"

#include "tests/executor/collective_case.h"

static const int32_t members_of[] = {1, 2, 3, 4, 7, 8};

typedef struct tally {
    int64_t cases, wrong;
} tally;

static void apply_and_compare(const shape *of, void *user)
{
    tally *t = user;
    collective_case c;
    case_open(&c, of, ND_MEMBERS_WORLD);
    nd_collective_apply(c.all, of->members);
    for (int32_t me = 0; me < of->members; me++) {
        t->wrong += case_wrong(&c, me);
    }
    t->cases++;
    case_close(&c);
}

static void test_every_collective_size_and_type(void)
{
    tally t = {0};
    for (size_t i = 0; i < sizeof members_of / sizeof members_of[0]; i++) {
        case_for_all(members_of[i], apply_and_compare, &t);
    }
    CU_ASSERT_EQUAL(t.wrong, 0);
    CU_ASSERT_EQUAL(t.cases, 6L * 6 * 4 * (4 + 2 + 2 + 1 + 1 + 1)); /* members x sizes x types x ways of each */
}

/* What the tree gives is the sum: |error| <= members x last bit x sum of sizes. */
static void test_sums_are_near_the_naive_sum(void)
{
    static const double last_bit[ND_ELEM_COUNT] = {0x1p-53, 0x1p-24, 0x1p-8, 0.0};
    for (int elem = 0; elem < ND_ELEM_COUNT; elem++) {
        shape of = {.op = ND_INS_ALL_REDUCE, .elem = (nd_elem)elem, .members = 7, .rows = 1, .cols = 1000, .seed = 5};
        collective_case c;
        case_open(&c, &of, ND_MEMBERS_WORLD);
        nd_collective_apply(c.all, of.members);
        int far = 0;
        for (int64_t i = 0; i < case_part(&of); i++) {
            double sum = 0.0;
            double sizes = 0.0;
            for (int32_t member = 0; member < of.members; member++) {
                sum += case_value(&of, member, i);
                sizes += fabs(case_value(&of, member, i));
            }
            double error = fabs(case_get(c.calls[3].out[0].data, of.elem, i) - sum);
            far += !(error <= 2 * of.members * last_bit[elem] * sizes);
        }
        CU_ASSERT_EQUAL(far, 0);
        case_close(&c);
    }
}

/* More than one cache-sized block, and one more than a power of two. */
static void test_many_members(void)
{
    tally t = {0};
    for (int32_t members = 9; members <= CASE_MEMBERS; members += 7) {
        shape of = {.op = ND_INS_REDUCE_SCATTER, .elem = ND_ELEM_F32, .members = members, .rows = 3, .cols = 700};
        apply_and_compare(&of, &t);
        of.op = ND_INS_ALL_REDUCE;
        of.in_place = true;
        apply_and_compare(&of, &t);
    }
    CU_ASSERT_EQUAL(t.wrong, 0);
}

/* Rows of a mesh, then its columns: the bits of all at once, whether 8 = 2 x 4 or 4 x 2. */
static void test_nested_groups_give_the_same_bits(void)
{
    enum { RANKS = 8, ELEMENTS = 1111 };
    static float values[RANKS][ELEMENTS];
    static float whole[RANKS][ELEMENTS];
    static float nested[RANKS][ELEMENTS];
    shape of = {.elem = ND_ELEM_F32, .members = RANKS, .seed = 11};
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = ELEMENTS};
    for (int32_t inner = 2; inner <= 4; inner += 2) {
        nd_call calls[RANKS];
        const nd_call *all[RANKS];
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t i = 0; i < ELEMENTS; i++) {
                values[r][i] = (float)case_value(&of, r, i);
            }
            memcpy(nested[r], values[r], sizeof nested[r]);
            calls[r] = (nd_call){.ins = &ins, .in = {{values[r], ND_ELEM_F32}}, .out = {{whole[r], ND_ELEM_F32}}};
            all[r] = &calls[r];
        }
        nd_collective_apply(all, RANKS);
        for (int32_t r = 0; r < RANKS; r++) {
            calls[r].in[0].data = nested[r];
            calls[r].out[0].data = nested[r];
        }
        for (int32_t row = 0; row < RANKS / inner; row++) {
            nd_collective_apply(all + (ptrdiff_t)row * inner, inner);
        }
        for (int32_t column = 0; column < inner; column++) {
            const nd_call *members[RANKS];
            for (int32_t row = 0; row < RANKS / inner; row++) {
                members[row] = all[row * inner + column];
            }
            nd_collective_apply(members, RANKS / inner);
        }
        int64_t wrong = 0;
        for (int32_t r = 0; r < RANKS; r++) {
            for (int32_t i = 0; i < ELEMENTS; i++) {
                wrong += nested[r][i] != whole[r][i];
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

static float reduce_one(float a, float b, float c, bool max, nd_elem elem)
{
    float values[3] = {a, b, c};
    uint16_t stored[3];
    float result = 0.0F;
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = 1, .max = max};
    nd_call calls[3];
    const nd_call *all[3];
    float outs[3];
    for (int i = 0; i < 3; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        stored[i] = (uint16_t)(bits >> 16);
        void *in = elem == ND_ELEM_BF16 ? (void *)&stored[i] : (void *)&values[i];
        void *out = elem == ND_ELEM_BF16 ? in : (void *)&outs[i];
        calls[i] = (nd_call){.ins = &ins, .in = {{in, elem}}, .out = {{out, elem}}};
        all[i] = &calls[i];
    }
    nd_collective_apply(all, 3);
    if (elem == ND_ELEM_BF16) {
        uint32_t bits = (uint32_t)stored[1] << 16;
        memcpy(&result, &bits, sizeof result);
        return result;
    }
    return outs[1];
}

static void test_special_values(void)
{
    for (int position = 0; position < 3; position++) { /* a NaN anywhere reaches the result */
        float values[3] = {1.0F, -2.0F, 3.0F};
        values[position] = NAN;
        CU_ASSERT_TRUE(isnan(reduce_one(values[0], values[1], values[2], true, ND_ELEM_F32)));
        CU_ASSERT_TRUE(isnan(reduce_one(values[0], values[1], values[2], false, ND_ELEM_F32)));
        CU_ASSERT_TRUE(isnan(reduce_one(values[0], values[1], values[2], true, ND_ELEM_BF16)));
        CU_ASSERT_TRUE(isnan(reduce_one(values[0], values[1], values[2], false, ND_ELEM_BF16)));
    }
    CU_ASSERT_TRUE(isinf(reduce_one(-INFINITY, -INFINITY, -INFINITY, true, ND_ELEM_F32))); /* no column anywhere */
    CU_ASSERT_EQUAL(reduce_one(-INFINITY, -4.0F, -5.0F, true, ND_ELEM_BF16), -4.0F);
    CU_ASSERT_TRUE(signbit(reduce_one(-0.0F, -0.0F, -0.0F, false, ND_ELEM_F32)) != 0); /* nothing is added to zero */
    /* bf16 rounds once, to even: 256 + 1 + 1 is 258; rounded after each sum it would stay 256 */
    CU_ASSERT_EQUAL(reduce_one(256.0F, 1.0F, 1.0F, false, ND_ELEM_BF16), 258.0F);
    CU_ASSERT_EQUAL(reduce_one(256.0F, 1.0F, 0.0F, false, ND_ELEM_BF16), 256.0F);
    CU_ASSERT_EQUAL(reduce_one(258.0F, 1.0F, 0.0F, false, ND_ELEM_BF16), 260.0F);
    CU_ASSERT_TRUE(isinf(reduce_one(0x1.FEp127F, 0x1.FEp127F, 0.0F, false, ND_ELEM_BF16)));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_collective_size_and_type),
        ND_TEST(test_sums_are_near_the_naive_sum),
        ND_TEST(test_many_members),
        ND_TEST(test_nested_groups_give_the_same_bits),
        ND_TEST(test_special_values),
        {NULL, NULL},
    };
    return nd_test_main("executor/collectives", cases);
}
