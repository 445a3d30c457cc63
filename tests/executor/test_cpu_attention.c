/* The attention core against every query with every key: maps, windows, grouped heads, merged parts. */
#include <math.h>
#include <string.h>

#include "tests/executor/attention_case.h"

static int64_t o_count(const attention_case *c)
{
    return attention_q_rows(c) * c->heads * c->v_dim;
}

static int64_t lse_count(const attention_case *c)
{
    return attention_q_rows(c) * c->heads;
}

/* One pass over the keys of the case, output in both types. */
static void check_forward(const attention_case *c)
{
    attention_inputs in = attention_inputs_of(c);
    double *o = op_numbers(o_count(c));
    double *lse = op_numbers(lse_count(c));
    attention_naive(c, &in, false, o, lse);
    for (op_kind kind = OP_REAL; kind <= OP_WIDE; kind++) {
        op_call call = attention_call(c, &in, kind);
        call.expected[0] = o;
        call.expected[1] = lse;
        op_check(&call, 4.0);
    }
}

static void whole_sequences(void)
{
    static const int64_t lengths[] = {1, 2, 7, 63, 64, 65, 130};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        op_begin();
        attention_case c = attention_case_default(lengths[i]);
        check_forward(&c);
    }
}

/* Longer than a block of keys, so that maxima grow from block to block and outputs are rescaled. */
static void sequences_of_several_blocks_of_keys(void)
{
    op_begin();
    attention_case c = attention_case_default(1100);
    c.heads = c.kv_heads = 1;
    c.micro_batch = 1;
    c.dim = c.v_dim = 3;
    check_forward(&c);
}

static void grouped_heads_and_values_of_another_width(void)
{
    static const int64_t heads[][2] = {{1, 1}, {6, 1}, {6, 2}, {6, 3}, {6, 6}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        op_begin();
        attention_case c = attention_case_default(11);
        c.heads = heads[i][0];
        c.kv_heads = heads[i][1];
        c.dim = 7;
        c.v_dim = 3;
        c.micro_batch = 3;
        check_forward(&c);
    }
}

static void windows_and_chunks(void)
{
    static const int64_t windows[] = {1, 2, 5, 70, 200};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        for (int chunked = 0; chunked < 2; chunked++) {
            op_begin();
            attention_case c = attention_case_default(133);
            c.heads = 2;
            c.window = windows[i];
            c.chunked = chunked != 0;
            check_forward(&c);
        }
    }
}

/* Every member's queries against every member's keys alone: queries may see none of them. */
static void parts_of_the_sequence(void)
{
    for (int32_t cp = 1; cp <= 4; cp++) {
        for (int32_t pair = 0; pair < 2 * cp * (cp + 1); pair++) {
            op_begin();
            bool zigzag = pair % 2 != 0;
            attention_case c = attention_case_default(24);
            c.q_map = attention_map(24, cp, pair / 2 % cp, zigzag);
            c.kv_map = attention_map(24, cp, pair / 2 / cp - 1, zigzag); /* -1: all members' */
            check_forward(&c);
            c.window = 5;
            check_forward(&c);
            c.chunked = true;
            check_forward(&c);
        }
    }
}

/* A rank of sequence parallelism holds entries 3 .. 7 of its member's list. */
static void a_slice_of_a_part(void)
{
    op_begin();
    attention_case c = attention_case_default(24);
    c.q_map = attention_map(24, 2, 1, true);
    c.q_map.first = 3;
    c.q_map.positions = 5;
    c.kv_map = attention_map(24, 2, -1, true);
    c.kv_map.first = 10;
    c.kv_map.positions = 9;
    check_forward(&c);
}

/* The ring: members' keys one after the other, from the queries' own; the result is that of one pass over all. */
static void check_ring(const attention_case *whole, int32_t member, nd_elem real, double slack)
{
    attention_inputs all = attention_inputs_of(whole);
    double *expected[2] = {op_numbers(o_count(whole)), op_numbers(lse_count(whole))};
    attention_naive(whole, &all, false, expected[0], expected[1]);
    int32_t cp = whole->q_map.cp;
    double *o = op_garbage(OP_WIDE, o_count(whole));
    double *lse = op_garbage(OP_WIDE, lse_count(whole));
    for (int32_t s = 0; s < cp; s++) {
        attention_case part = *whole;
        part.kv_map = attention_map(whole->q_map.seq_len, cp, (member - s + cp) % cp, whole->q_map.zigzag);
        attention_inputs in = attention_inputs_of(&part);
        op_call call = attention_call(&part, &in, OP_WIDE);
        call.ins.accumulate = s > 0;
        call.out[0].x = o;
        call.out[1].x = lse;
        op_run(&call, real, (double *[ND_INS_OUT_MAX]){o, lse});
    }
    CU_ASSERT_TRUE(op_agree("ring, o", real, o, expected[0], o_count(whole), slack));
    CU_ASSERT_TRUE(op_agree("ring, lse", real, lse, expected[1], lse_count(whole), slack));
}

static void parts_merge_to_the_whole(void)
{
    for (int32_t cp = 1; cp <= 4; cp++) {
        for (int32_t member = 0; member < 2 * cp; member++) {
            bool zigzag = member >= cp;
            op_begin();
            attention_case whole = attention_case_default(24);
            whole.q_map = attention_map(24, cp, member % cp, zigzag);
            whole.kv_map = attention_map(24, cp, -1, zigzag);
            for (int64_t window = 0; window < 8; window += 5) {
                whole.window = window;
                check_ring(&whole, member % cp, ND_ELEM_F64, 4.0);
                check_ring(&whole, member % cp, ND_ELEM_F32, 4.0);
            }
        }
    }
}

/* Merged with a result over other keys, of which some queries had none. */
static void merging_keeps_what_other_keys_gave(void)
{
    op_begin();
    attention_case c = attention_case_default(12);
    c.q_map = attention_map(12, 2, 0, false); /* sees none of member 1's keys: */
    attention_inputs in = attention_inputs_of(&c);
    double *o = op_random(5, o_count(&c));
    double *lse = op_random(6, lse_count(&c));
    for (int64_t i = 0; i < lse_count(&c); i += 3) {
        lse[i] = -(double)INFINITY;
        memset(o + i * c.v_dim, 0, (size_t)c.v_dim * sizeof *o);
    }
    for (int32_t blind = 0; blind < 2; blind++) {
        c.kv_map = blind != 0 ? attention_map(12, 2, 1, false) : attention_map(12, 2, -1, false);
        in = attention_inputs_of(&c);
        op_call call = attention_call(&c, &in, OP_WIDE);
        call.ins.accumulate = true;
        call.out[0].x = o;
        call.out[1].x = lse;
        double *expected_o = op_numbers(o_count(&c));
        double *expected_lse = op_numbers(lse_count(&c));
        memcpy(expected_o, o, (size_t)o_count(&c) * sizeof *o);
        memcpy(expected_lse, lse, (size_t)lse_count(&c) * sizeof *lse);
        attention_naive(&c, &in, true, expected_o, expected_lse);
        call.expected[0] = expected_o;
        call.expected[1] = expected_lse;
        op_check(&call, 4.0);
    }
}

/* Scores near 1000 overflow without the running maximum, and fp32 also with one that is not the row's own. */
static void large_scores_stay_finite(void)
{
    op_begin();
    attention_case c = attention_case_default(600);
    c.heads = c.kv_heads = 1;
    c.micro_batch = 1;
    c.dim = c.v_dim = 1;
    attention_inputs in = attention_inputs_of(&c);
    op_call call = attention_call(&c, &in, OP_WIDE);
    double *o = op_numbers(600);
    double *lse = op_numbers(600);
    for (int64_t i = 0; i < 600; i++) {
        in.q[i] = 1.0;
        in.k[i] = (double)(i - i % 2); /* each two keys outweigh all before by e^2 */
        in.v[i] = i % 2 == 0 ? 1.0 : -1.0;
    }
    for (int64_t i = 0; i < 600; i++) {
        double sum = 1.0; /* of key i itself */
        o[i] = in.v[i];
        for (int64_t j = 0; j < i; j++) {
            double power = exp(in.k[j] - in.k[i]);
            sum += power;
            o[i] += power * in.v[j];
        }
        o[i] /= sum;
        lse[i] = in.k[i] + log(sum);
    }
    call.expected[0] = o;
    call.expected[1] = lse;
    op_check_types(&call, 4.0, ND_ELEM_F64, ND_ELEM_F32);
}

static void no_queries_or_no_keys(void)
{
    op_begin();
    attention_case c = attention_case_default(8);
    c.q_map.positions = 0;
    check_forward(&c);
    c = attention_case_default(8);
    c.kv_map.positions = 0;
    check_forward(&c);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(whole_sequences),
                                         ND_TEST(sequences_of_several_blocks_of_keys),
                                         ND_TEST(grouped_heads_and_values_of_another_width),
                                         ND_TEST(windows_and_chunks),
                                         ND_TEST(parts_of_the_sequence),
                                         ND_TEST(a_slice_of_a_part),
                                         ND_TEST(parts_merge_to_the_whole),
                                         ND_TEST(merging_keeps_what_other_keys_gave),
                                         ND_TEST(large_scores_stay_finite),
                                         ND_TEST(no_queries_or_no_keys),
                                         {NULL, NULL}};
    return nd_test_main("cpu attention", cases);
}
