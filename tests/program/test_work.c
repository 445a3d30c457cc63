#include "program/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/walk.h"
#include "tests/nd_test.h"
#include "tests/program/programs.h"

static bool is_term(nd_ins_op op, int32_t term, const char *name)
{
    return strcmp(nd_work_term_name(op, term), name) == 0;
}

static void test_every_operation_that_does_something_has_a_call(void)
{
    for (int op = 0; op < ND_INS_COUNT; op++) {
        bool nothing = op == ND_INS_ALLOC || op == ND_INS_FREE || op == ND_INS_WAIT;
        CU_ASSERT_STRING_EQUAL(nd_work_term_name((nd_ins_op)op, 0), nothing ? "" : "call");
        for (int32_t term = 1; term < ND_WORK_TERMS; term++) {
            bool named = nd_work_term_name((nd_ins_op)op, term)[0] != '\0';
            CU_ASSERT_TRUE(!named || nd_work_term_name((nd_ins_op)op, term - 1)[0] != '\0'); /* no gaps */
            CU_ASSERT_TRUE(!named || !is_term((nd_ins_op)op, term, nd_work_term_name((nd_ins_op)op, term - 1)));
        }
        CU_ASSERT_TRUE(!nd_ins_communicates((nd_ins_op)op) || is_term((nd_ins_op)op, 0, "call"));
    }
    CU_ASSERT_TRUE(is_term(ND_INS_GEMM, 1, "flop"));
    CU_ASSERT_TRUE(is_term(ND_INS_ATTENTION, 2, "score"));
    CU_ASSERT_TRUE(is_term(ND_INS_ALL_REDUCE, 1, "byte"));
    CU_ASSERT_TRUE(is_term(ND_INS_ALL_REDUCE, 3, "member"));
    CU_ASSERT_TRUE(is_term(ND_INS_NORM, 1, "element"));
}

static void expect_work(const nd_ins *ins, int32_t members, const double expected[ND_WORK_TERMS])
{
    static hand_set h;
    hand_open(&h, 1, 1);
    nd_ins_work work = nd_ins_work_of(&h.program[0], ins, members);
    for (int32_t i = 0; i < ND_WORK_TERMS; i++) {
        if (work.term[i] != expected[i]) {
            (void)fprintf(stderr, "%s, term %d: %g instead of %g\n", nd_ins_name(ins->op), i, work.term[i],
                          expected[i]);
        }
        CU_ASSERT_EQUAL(work.term[i], expected[i]);
    }
}

static void test_products_count_flops_operands_and_results(void)
{
    nd_ins gemm = {.op = ND_INS_GEMM, .m = 2, .n = 3, .k = 5, .out = {{1, 0}}};
    expect_work(&gemm, 1, (const double[]){1, 60, 2 * 5 + 5 * 3, 6});
    gemm.trans_b = true;
    expect_work(&gemm, 1, (const double[]){1, 60, 25, 6});
    gemm.trans_b = false;
    gemm.trans_a = true;
    expect_work(&gemm, 1, (const double[]){1, 60, 25, 6});
    nd_ins grouped = {.op = ND_INS_GEMM_GROUPED, .rows = 7, .m = 7, .n = 3, .k = 5, .groups = 4, .out = {{1, 0}}};
    expect_work(&grouped, 1, (const double[]){4, 2 * 7 * 3 * 5, 7 * 5 + 4 * 5 * 3, 7 * 3});
    grouped = (nd_ins){
        .op = ND_INS_GEMM_GROUPED, .rows = 7, .m = 2, .n = 3, .k = 7, .groups = 4, .trans_a = true, .out = {{1, 0}}};
    expect_work(&grouped, 1, (const double[]){4, 2 * 7 * 2 * 3, 7 * (2 + 3), 4 * 2 * 3});
}

static void test_elements_are_those_that_an_operation_goes_over(void)
{
    nd_ins ins = {
        .op = ND_INS_ADD, .rows = 3, .cols = 5, .copies = 2, .heads = 2, .dim = 7, .v_dim = 4, .out = {{1, 0}}};
    ins.rot_dim = 6;
    ins.vocab_rows = 11;
    static const struct {
        nd_ins_op op;
        double elements;
    } expected[] = {{ND_INS_ADD, 15},
                    {ND_INS_COUNT_LABELS, 3},
                    {ND_INS_ROPE, 3 * 2 * 6},
                    {ND_INS_ATTENTION_DELTA, 3 * 2 * 4},
                    {ND_INS_SPLIT_LATENT, 3 * 2 * 11},
                    {ND_INS_LOSS, 3 * 11},
                    {ND_INS_ROUTE, 3 * 5 * 2},
                    {ND_INS_SORT, 3 * 2},
                    {ND_INS_ROWS_SCATTER, 15},
                    {ND_INS_ROWS_COMBINE_GRAD, 30}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        ins.op = expected[i].op;
        expect_work(&ins, 1, (const double[]){1, expected[i].elements, 0, 0});
    }
    ins.op = ND_INS_CLIP;
    expect_work(&ins, 1, (const double[]){1, 0, 0, 0});
    ins.op = ND_INS_WAIT;
    expect_work(&ins, 1, (const double[]){0, 0, 0, 0});
}

static void test_collectives_count_the_bytes_that_a_rank_reads(void)
{
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 8, .cols = 4, .copies = 3, .in = {{1, 0}}, .out = {{1, 0}}};
    const double part = 8 * 4 * 4; /* fp32 */
    expect_work(&ins, 4, (const double[]){1, part + part * 3 / 4, 0, 2});
    expect_work(&ins, 2, (const double[]){1, part * 1.5, 0, 0});
    ins.op = ND_INS_ALL_GATHER;
    expect_work(&ins, 4, (const double[]){1, 3 * part, 0, 2});
    ins.op = ND_INS_REDUCE_SCATTER;
    expect_work(&ins, 4, (const double[]){1, 4 * part, 0, 2});
    ins.op = ND_INS_ALL_TO_ALL;
    expect_work(&ins, 4, (const double[]){1, 4 * part, 0, 2});
    ins.op = ND_INS_ALL_TO_ALL_ROWS;
    expect_work(&ins, 4, (const double[]){1, 3 * 4 * 4, 0, 2}); /* as many rows as its own tokens send */
    ins.op = ND_INS_SHIFT;
    expect_work(&ins, 4, (const double[]){1, part, 0, 2});
    ins.op = ND_INS_RECV;
    expect_work(&ins, 1, (const double[]){1, part, 0, 0});
    ins.rows = 1 << 20; /* 16 MiB, of which 1 may lie near */
    expect_work(&ins, 1, (const double[]){1, 16.0 * 1048576, 15.0 * 1048576, 0});
    ins.rows = 8;
    ins.op = ND_INS_SEND; /* the receiver copies */
    expect_work(&ins, 1, (const double[]){1, 0, 0, 0});
    ins.op = ND_INS_SEND_WAIT;
    expect_work(&ins, 1, (const double[]){1, 0, 0, 0});
}

static bool sees(const nd_ins *ins, int64_t query, int64_t key)
{
    if (key > query) {
        return false;
    }
    if (ins->window == 0) {
        return true;
    }
    return ins->chunked ? key / ins->window == query / ins->window : query - key < ins->window;
}

/* Blocks of at most 64 rows whose positions follow each other, times the keys that one of their rows sees. */
static int64_t count_scores(const nd_ins *ins)
{
    int64_t scores = 0;
    for (int64_t row = 0; row < ins->q_map.positions;) {
        int64_t first = nd_seq_map_position(&ins->q_map, row);
        int64_t rows = 1;
        while (rows < 64 && row + rows < ins->q_map.positions &&
               nd_seq_map_position(&ins->q_map, row + rows) == first + rows) {
            rows++;
        }
        for (int64_t key = 0; key < ins->kv_map.positions; key++) {
            int64_t at = nd_seq_map_position(&ins->kv_map, key);
            bool seen = false;
            for (int64_t i = 0; i < rows && !seen; i++) {
                seen = sees(ins, first + i, at);
            }
            scores += seen ? rows : 0;
        }
        row += rows;
    }
    return scores;
}

static nd_seq_map map_of(int64_t seq_len, int32_t cp, int32_t member, bool zigzag)
{
    return (nd_seq_map){.seq_len = seq_len,
                        .cp = cp,
                        .member = member,
                        .zigzag = zigzag,
                        .positions = member < 0 ? seq_len : seq_len / cp};
}

static void compare_scores(nd_ins *ins, int64_t seq_len, int32_t cp, bool zigzag)
{
    for (int32_t q = -1; q < cp; q++) {
        for (int32_t kv = -1; kv < cp; kv++) {
            ins->q_map = map_of(seq_len, cp, q, zigzag);
            ins->kv_map = map_of(seq_len, cp, kv, zigzag);
            CU_ASSERT_EQUAL(nd_attention_scores(ins), count_scores(ins));
            ins->q_map.first = seq_len / cp / 4; /* a part of the list */
            ins->q_map.positions /= 2;
            CU_ASSERT_EQUAL(nd_attention_scores(ins), count_scores(ins));
        }
    }
}

static void test_scores_are_those_of_blocks_of_rows(void)
{
    static const int64_t lengths[] = {16, 64, 80, 144, 256};
    static const int64_t windows[] = {0, 1, 12, 64, 100, 300};
    nd_ins ins = {.op = ND_INS_ATTENTION};
    for (size_t s = 0; s < sizeof lengths / sizeof lengths[0]; s++) {
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            for (int32_t kind = 0; kind < 12; kind++) {
                ins.window = windows[w];
                ins.chunked = kind % 2 == 1;
                compare_scores(&ins, lengths[s], 1 << kind / 2 % 3, kind / 6 == 1);
            }
        }
    }
    ins = (nd_ins){.op = ND_INS_ATTENTION, .q_map = map_of(128, 1, 0, false), .kv_map = map_of(128, 1, 0, false)};
    CU_ASSERT_EQUAL(nd_attention_scores(&ins), 64 * 64 + 64 * 128); /* by hand */
    ins.window = 32;
    CU_ASSERT_EQUAL(nd_attention_scores(&ins), 64 * 64 + 64 * (64 + 31));
}

static void test_attention_counts_two_products_forward_and_five_backward(void)
{
    nd_ins ins = {.op = ND_INS_ATTENTION,
                  .heads = 4,
                  .kv_heads = 2,
                  .dim = 6,
                  .v_dim = 8,
                  .micro_batch = 3,
                  .q_map = map_of(32, 1, 0, false),
                  .kv_map = map_of(32, 1, 0, false),
                  .out = {{1, 0}}};
    const double scores = 32.0 * 32.0 * 4.0 * 3.0;
    const double elements = (32.0 * 4.0 + 32.0 * 2.0) * 3.0 * 14.0;
    expect_work(&ins, 1, (const double[]){12, scores * 2 * (6 + 8), scores, elements});
    ins.op = ND_INS_ATTENTION_GRAD;
    expect_work(&ins, 1, (const double[]){12, scores * 2 * (3 * 6 + 2 * 8), scores, elements});
}

/* Sum over all ranks and instructions of an operation. */
static double total(const program_set *set, nd_ins_op op, int32_t term, bool live_only)
{
    double sum = 0.0;
    for (int32_t i = 0; i < set->ranks; i++) {
        const nd_program *program = set->programs[i];
        for (int32_t k = 0; k < program->ins_count; k++) {
            const nd_ins *ins = &program->ins[k];
            if (ins->op == op && (!live_only || ins->live_rows.buffer != 0)) {
                sum += nd_ins_work_of(program, ins, 1).term[term];
            }
        }
    }
    return sum;
}

static void test_experts_do_the_same_work_wherever_they_live(void)
{
    static const char *const models[] = {"mla", "moe", "mixtral"}; /* 3 of 8, 2 of 8, 2 of 4 */
    for (int m = 0; m < 3; m++) {
        program_set at_home;
        CU_ASSERT_TRUE_FATAL(programs_open(&at_home, models[m], "dp_shard=8,sharding=zero2", 32, ND_ELEM_F32));
        double flops = total(&at_home, ND_INS_GEMM_GROUPED, 1, false);
        double results = total(&at_home, ND_INS_GLU, 1, false);
        double sorted = total(&at_home, ND_INS_SORT, 1, false);
        CU_ASSERT_TRUE(flops > 0.0);
        for (int ep = 2; ep <= at_home.model.experts; ep *= 2) { /* to one expert a rank: fewer than a token picks */
            program_set set;
            char layout[64];
            (void)snprintf(layout, sizeof layout, "dp_shard=8,sharding=zero2,ep=%d", ep);
            CU_ASSERT_TRUE_FATAL(programs_open(&set, models[m], layout, 32, ND_ELEM_F32));
            ND_ASSERT_REL(total(&set, ND_INS_GEMM_GROUPED, 1, false), flops, 1e-12);
            ND_ASSERT_REL(total(&set, ND_INS_GLU, 1, false), results, 1e-12);
            ND_ASSERT_REL(total(&set, ND_INS_REGROUP, 1, false), sorted, 1e-12); /* every copy arrives somewhere */
            ND_ASSERT_REL(total(&set, ND_INS_ROWS_SCATTER, 1, true), 2.0 * sorted * (double)set.model.hidden, 1e-12);
            programs_close(&set);
        }
        programs_close(&at_home);
    }
}

static void check_program(const program_set *set, const nd_program *program)
{
    bool good = true;
    for (int32_t k = 0; k < program->ins_count; k++) {
        const nd_ins *ins = &program->ins[k];
        int32_t members = nd_ins_is_collective(ins->op)
                              ? nd_members_of(&program->layout, set->model.kv_heads, ins->group, program->rank).count
                              : 1;
        nd_ins_work work = nd_ins_work_of(program, ins, members);
        bool named = nd_work_term_name(ins->op, 0)[0] != '\0';
        good = good && (named ? work.term[0] >= 1.0 : work.term[0] == 0.0);
        for (int32_t i = 1; i < ND_WORK_TERMS; i++) {
            good = good && work.term[i] >= 0.0 && (nd_work_term_name(ins->op, i)[0] != '\0' || work.term[i] == 0.0);
        }
        bool sized = !nd_ins_communicates(ins->op) && nd_work_term_name(ins->op, 1)[0] != '\0';
        good =
            good && (!sized || work.term[1] > 0.0 || ins->op == ND_INS_ATTENTION || ins->op == ND_INS_ATTENTION_GRAD);
        if (!good) {
            (void)fprintf(stderr, "%s rank %d, instruction %d: %s\n", set->model.name, (int)program->rank, k,
                          nd_ins_name(ins->op));
            break;
        }
    }
    CU_ASSERT_TRUE(good);
}

static void test_all_instructions_of_real_programs_have_work(void)
{
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int l = 0; l < TINY_LAYOUTS; l++) {
            program_set set;
            if (programs_open(&set, tiny_models[m], tiny_layouts[l], 32, ND_ELEM_BF16)) {
                for (int32_t i = 0; i < set.ranks; i++) {
                    check_program(&set, set.programs[i]);
                }
                programs_close(&set);
            }
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_every_operation_that_does_something_has_a_call),
                                         ND_TEST(test_products_count_flops_operands_and_results),
                                         ND_TEST(test_elements_are_those_that_an_operation_goes_over),
                                         ND_TEST(test_collectives_count_the_bytes_that_a_rank_reads),
                                         ND_TEST(test_scores_are_those_of_blocks_of_rows),
                                         ND_TEST(test_attention_counts_two_products_forward_and_five_backward),
                                         ND_TEST(test_experts_do_the_same_work_wherever_they_live),
                                         ND_TEST(test_all_instructions_of_real_programs_have_work),
                                         {0}};
    return nd_test_main("work of instructions", cases);
}
