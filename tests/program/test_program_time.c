#include "program/program_time.h"

#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/program/programs.h"

/* By hand, an instruction's seconds are kept in a field that no other test needs. */
static double by_hand(const void *user, const nd_program *program, const nd_ins *ins, int32_t members)
{
    (void)user;
    (void)program;
    (void)members;
    return ins->theta;
}

static nd_ins compute(double seconds)
{
    return (nd_ins){.op = ND_INS_ZERO, .out = {{1, 0}}, .theta = seconds};
}

static nd_ins meet(double seconds)
{
    return (nd_ins){.op = ND_INS_ALL_REDUCE, .in = {{1, 0}}, .out = {{1, 0}}, .group = ND_MEMBERS_TP, .theta = seconds};
}

static nd_ins message(nd_ins_op op, int32_t peer, double seconds)
{
    nd_ins ins = {.op = op, .peer = peer, .theta = seconds};
    if (op == ND_INS_RECV) {
        ins.out[0].buffer = 1;
    } else {
        ins.in[0].buffer = 1;
    }
    return ins;
}

static nd_program_time time_hand(const hand_set *h, nd_issue issue)
{
    nd_error err = {.message = ""};
    nd_program_time time = {0};
    ND_ASSERT_OK(nd_program_time_create(h->programs, h->ranks, 1, issue, by_hand, NULL, &time, &err));
    CU_ASSERT_EQUAL_FATAL(time.ranks, h->ranks);
    return time;
}

/* Within rounding of sums of tenths. */
static void expect_times(const nd_program_time *time, int32_t rank, int32_t ins, double start_s, double begin_s,
                         double end_s)
{
    const nd_rank_time *r = &time->rank[rank];
    CU_ASSERT_DOUBLE_EQUAL(r->start_s[ins], start_s, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r->begin_s[ins], begin_s, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r->end_s[ins], end_s, 1e-9);
}

static void expect_sums(const nd_program_time *time, int32_t rank, double busy_s, double wait_s)
{
    CU_ASSERT_DOUBLE_EQUAL(time->rank[rank].busy_s, busy_s, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(time->rank[rank].wait_s, wait_s, 1e-9);
}

static void test_a_collective_begins_when_its_last_member_comes(void)
{
    static hand_set h;
    hand_open(&h, 1, 3);
    hand_add(&h, 0, compute(1.0));
    hand_add(&h, 1, compute(3.0));
    hand_add(&h, 2, compute(2.0));
    for (int32_t rank = 0; rank < 3; rank++) {
        hand_add(&h, rank, meet(0.5 + 0.1 * rank)); /* members end when they are done themselves */
        hand_add(&h, rank, compute(1.0));
    }
    nd_program_time time = time_hand(&h, ND_ISSUE_IN_ORDER);
    expect_times(&time, 0, 1, 1.0, 3.0, 3.5);
    expect_times(&time, 1, 1, 3.0, 3.0, 3.6);
    expect_times(&time, 2, 1, 2.0, 3.0, 3.7);
    expect_times(&time, 0, 2, 3.5, 3.5, 4.5);
    expect_sums(&time, 0, 2.5, 2.0);
    expect_sums(&time, 1, 4.6, 0.0);
    expect_sums(&time, 2, 3.7, 1.0);
    CU_ASSERT_DOUBLE_EQUAL(time.step_s, 4.7, 1e-9);
    nd_program_time_free(&time);
    CU_ASSERT_PTR_NULL(time.rank);
    nd_program_time_free(&time); /* twice is fine */
}

static void test_messages_hold_up_who_needs_them(void)
{
    static hand_set h;
    hand_open(&h, 2, 1);
    hand_add(&h, 0, compute(1.0));
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0.1));
    hand_add(&h, 0, message(ND_INS_SEND_WAIT, 1, 0.01));
    hand_add(&h, 0, compute(1.0));
    h.ins[0][2].waits_for = 1;
    hand_add(&h, 1, message(ND_INS_RECV, 0, 0.4));
    hand_add(&h, 1, compute(2.0));
    nd_program_time time = time_hand(&h, ND_ISSUE_IN_ORDER);
    expect_times(&time, 1, 0, 0.0, 1.1, 1.5);
    expect_times(&time, 0, 2, 1.1, 1.5, 1.51);
    expect_times(&time, 0, 3, 1.51, 1.51, 2.51);
    expect_sums(&time, 0, 2.11, 0.4);
    expect_sums(&time, 1, 2.4, 1.1);
    CU_ASSERT_DOUBLE_EQUAL(time.step_s, 3.5, 1e-9);
    nd_program_time_free(&time);
}

static void test_a_wait_for_the_first_message_does_not_wait_for_the_second(void)
{
    static hand_set h;
    hand_open(&h, 2, 1);
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0.0));
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0.0));
    for (int32_t i = 0; i < 3; i++) { /* for the first, for the second, for all */
        int32_t at = hand_add(&h, 0, message(ND_INS_SEND_WAIT, 1, 0.0));
        h.ins[0][at].waits_for = i < 2 ? i : 0;
        h.ins[0][at].in[0].buffer = i < 2 ? 1 : 0;
    }
    hand_add(&h, 1, message(ND_INS_RECV, 0, 1.0));
    hand_add(&h, 1, message(ND_INS_RECV, 0, 5.0));
    nd_program_time time = time_hand(&h, ND_ISSUE_IN_ORDER);
    expect_times(&time, 0, 2, 0.0, 1.0, 1.0);
    expect_times(&time, 0, 3, 1.0, 6.0, 6.0);
    expect_times(&time, 0, 4, 6.0, 6.0, 6.0);
    nd_program_time_free(&time);
}

static void test_many_messages_keep_their_times(void)
{
    static hand_set h;
    hand_open(&h, 2, 1);
    for (int32_t i = 0; i < HAND_INS; i++) { /* more than a lane has room for at first */
        hand_add(&h, 0, message(ND_INS_SEND, 1, 1.0));
        hand_add(&h, 1, message(ND_INS_RECV, 0, 0.25));
    }
    nd_program_time time = time_hand(&h, ND_ISSUE_IN_ORDER);
    for (int32_t i = 0; i < HAND_INS; i++) {
        expect_times(&time, 1, i, i == 0 ? 0.0 : i + 0.25, i + 1.0, i + 1.25);
    }
    nd_program_time_free(&time);
}

static void test_streams_overlap_until_one_waits(void)
{
    static hand_set h;
    hand_open(&h, 1, 2);
    for (int32_t rank = 0; rank < 2; rank++) {
        nd_ins gather = meet(3.0);
        gather.stream = ND_STREAM_GATHER;
        hand_add(&h, rank, gather);
        hand_add(&h, rank, compute(rank == 0 ? 2.0 : 4.0));
        hand_add(&h, rank, (nd_ins){.op = ND_INS_WAIT, .waits_for = 0});
        hand_add(&h, rank, compute(1.0));
    }
    nd_program_time streams = time_hand(&h, ND_ISSUE_STREAMS);
    expect_times(&streams, 0, 0, 0.0, 0.0, 3.0);
    expect_times(&streams, 0, 1, 0.0, 0.0, 2.0);
    expect_times(&streams, 0, 2, 2.0, 3.0, 3.0);
    expect_times(&streams, 0, 3, 3.0, 3.0, 4.0);
    expect_times(&streams, 1, 2, 4.0, 4.0, 4.0); /* nothing left to wait for */
    expect_sums(&streams, 0, 6.0, 1.0);
    expect_sums(&streams, 1, 8.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(streams.step_s, 5.0, 1e-9);
    nd_program_time_free(&streams);
    nd_program_time order = time_hand(&h, ND_ISSUE_IN_ORDER);
    expect_times(&order, 0, 2, 5.0, 5.0, 5.0);
    expect_sums(&order, 1, 8.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(order.step_s, 8.0, 1e-9);
    nd_program_time_free(&order);
}

static void test_waiting_of_a_measured_step_follows_from_the_others_times(void)
{
    static hand_set h;
    nd_error err = {.message = ""};
    nd_program_time time = {0};
    hand_open(&h, 1, 2);
    for (int32_t rank = 0; rank < 2; rank++) {
        hand_add(&h, rank, compute(0.0));
        hand_add(&h, rank, meet(0.0));
    }
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0.0));
    hand_add(&h, 0, message(ND_INS_SEND_WAIT, 1, 0.0));
    h.ins[0][3].waits_for = 2;
    hand_add(&h, 1, message(ND_INS_RECV, 0, 0.0));
    static const double start0[] = {100.0, 101.0, 105.0, 106.0};
    static const double end0[] = {101.0, 104.6, 106.0, 106.25};
    static const double start1[] = {100.5, 104.0, 104.5};
    static const double end1[] = {104.0, 104.5, 105.9}; /* before the sender noted that it has sent */
    const double *const start[] = {start0, start1};
    const double *const end[] = {end0, end1};
    ND_ASSERT_OK(nd_program_time_measured(h.programs, 2, 1, start, end, &time, &err));
    expect_times(&time, 0, 0, 0.0, 0.0, 1.0);
    expect_times(&time, 0, 1, 1.0, 4.0, 4.6);
    expect_times(&time, 1, 1, 4.0, 4.0, 4.5);
    expect_times(&time, 1, 2, 4.5, 5.9, 5.9);  /* all of it was waiting, and no more */
    expect_times(&time, 0, 3, 6.0, 6.0, 6.25); /* was taken already */
    expect_sums(&time, 0, 1.0 + 0.6 + 1.0 + 0.25, 3.0);
    expect_sums(&time, 1, 3.5 + 0.5, 1.4);
    CU_ASSERT_DOUBLE_EQUAL(time.step_s, 6.25, 1e-9);
    nd_program_time_free(&time);
}

static void test_a_measured_wait_for_a_message_ends_with_the_receiver(void)
{
    static hand_set h;
    nd_error err = {.message = ""};
    nd_program_time time = {0};
    hand_open(&h, 2, 1);
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0.0));
    hand_add(&h, 0, message(ND_INS_SEND_WAIT, 1, 0.0));
    hand_add(&h, 1, message(ND_INS_RECV, 0, 0.0));
    static const double start0[] = {7.0, 7.5};
    static const double end0[] = {7.5, 9.5};
    static const double start1[] = {6.0}; /* the step counts from here */
    static const double end1[] = {9.0};
    ND_ASSERT_OK(nd_program_time_measured(h.programs, 2, 1, (const double *const[]){start0, start1},
                                          (const double *const[]){end0, end1}, &time, &err));
    expect_times(&time, 1, 0, 0.0, 1.5, 3.0);
    expect_times(&time, 0, 1, 1.5, 3.0, 3.5);
    nd_program_time_free(&time);
}

static void test_a_deadlock_leaves_the_result_alone(void)
{
    static hand_set h;
    nd_error err = {.message = ""};
    nd_program_time time = {.ranks = 77, .step_s = 5.0};
    hand_open(&h, 1, 2);
    hand_add(&h, 0, meet(1.0));
    CU_ASSERT_EQUAL(nd_program_time_create(h.programs, 2, 1, ND_ISSUE_IN_ORDER, by_hand, NULL, &time, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "rank 0 waits for ever");
    CU_ASSERT_EQUAL(time.ranks, 77);
    CU_ASSERT_EQUAL(time.step_s, 5.0);
    CU_ASSERT_PTR_NULL(time.rank);
}

/* Different for every instruction, and a multiple of a power of two: doubling is exact. */
static double made_up(const void *user, const nd_program *program, const nd_ins *ins, int32_t members)
{
    int64_t index = ins - program->ins;
    double seconds = (double)(1 + (index * 7919 + program->rank * 104729 + members) % 1009) / 1024.0;
    return seconds * *(const double *)user;
}

static nd_program_time time_set(const program_set *set, nd_issue issue, double scale)
{
    nd_error err = {.message = ""};
    nd_program_time time = {0};
    ND_ASSERT_OK(
        nd_program_time_create(set->programs, set->ranks, set->model.kv_heads, issue, made_up, &scale, &time, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(time.rank);
    return time;
}

static void expect_sane(const program_set *set, const nd_program_time *time, nd_issue issue)
{
    int64_t wrong = 0;
    double last_s = 0.0;
    for (int32_t i = 0; i < set->ranks; i++) {
        const nd_rank_time *r = &time->rank[i];
        for (int32_t k = 0; k < set->programs[i]->ins_count; k++) {
            wrong += !(0.0 <= r->start_s[k] && r->start_s[k] <= r->begin_s[k] && r->begin_s[k] <= r->end_s[k]);
            wrong += issue == ND_ISSUE_IN_ORDER && k > 0 && r->start_s[k] != r->end_s[k - 1];
            last_s = r->end_s[k] > last_s ? r->end_s[k] : last_s;
        }
        wrong += issue == ND_ISSUE_IN_ORDER && !(time->step_s >= r->busy_s * (1.0 - 1e-12));
        wrong += !(r->wait_s >= 0.0);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(time->step_s, last_s);
}

static void expect_doubled(const program_set *set, const nd_program_time *once, const nd_program_time *twice)
{
    int64_t wrong = 0;
    for (int32_t i = 0; i < set->ranks; i++) {
        for (int32_t k = 0; k < set->programs[i]->ins_count; k++) {
            wrong += twice->rank[i].begin_s[k] != 2.0 * once->rank[i].begin_s[k];
            wrong += twice->rank[i].end_s[k] != 2.0 * once->rank[i].end_s[k];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(twice->step_s, 2.0 * once->step_s);
}

/* What the executor would have noted gives the same waiting again. */
static void expect_same_measured(const program_set *set, const nd_program_time *time)
{
    nd_error err = {.message = ""};
    nd_program_time measured = {0};
    const double **start_s = calloc((size_t)set->ranks, sizeof(const double *));
    const double **end_s = calloc((size_t)set->ranks, sizeof(const double *));
    CU_ASSERT_TRUE_FATAL(start_s != NULL && end_s != NULL);
    for (int32_t i = 0; i < set->ranks; i++) {
        start_s[i] = time->rank[i].start_s;
        end_s[i] = time->rank[i].end_s;
    }
    ND_ASSERT_OK(
        nd_program_time_measured(set->programs, set->ranks, set->model.kv_heads, start_s, end_s, &measured, &err));
    for (int32_t i = 0; i < set->ranks; i++) {
        CU_ASSERT_EQUAL(measured.rank[i].wait_s, time->rank[i].wait_s);
        CU_ASSERT_EQUAL(measured.rank[i].busy_s, time->rank[i].busy_s);
    }
    CU_ASSERT_EQUAL(measured.step_s, time->step_s);
    nd_program_time_free(&measured);
    free(start_s);
    free(end_s);
}

static void check_set(const program_set *set)
{
    nd_program_time order = time_set(set, ND_ISSUE_IN_ORDER, 1.0);
    nd_program_time streams = time_set(set, ND_ISSUE_STREAMS, 1.0);
    nd_program_time twice = time_set(set, ND_ISSUE_IN_ORDER, 2.0);
    nd_program_time streams_twice = time_set(set, ND_ISSUE_STREAMS, 2.0);
    expect_sane(set, &order, ND_ISSUE_IN_ORDER);
    expect_sane(set, &streams, ND_ISSUE_STREAMS);
    expect_doubled(set, &order, &twice);
    expect_doubled(set, &streams, &streams_twice);
    expect_same_measured(set, &order);
    CU_ASSERT_TRUE(streams.step_s <= order.step_s); /* the same, with less to wait for */
    nd_program_time_free(&order);
    nd_program_time_free(&streams);
    nd_program_time_free(&twice);
    nd_program_time_free(&streams_twice);
}

static void test_times_of_real_programs_are_consistent(void)
{
    int sets = 0;
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int l = 0; l < TINY_LAYOUTS; l++) {
            program_set set;
            if (programs_open(&set, tiny_models[m], tiny_layouts[l], 32, ND_ELEM_F32)) {
                check_set(&set);
                sets++;
                programs_close(&set);
            }
        }
    }
    CU_ASSERT_TRUE(sets > TINY_MODELS * TINY_LAYOUTS / 2);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_a_collective_begins_when_its_last_member_comes),
                                         ND_TEST(test_messages_hold_up_who_needs_them),
                                         ND_TEST(test_a_wait_for_the_first_message_does_not_wait_for_the_second),
                                         ND_TEST(test_many_messages_keep_their_times),
                                         ND_TEST(test_streams_overlap_until_one_waits),
                                         ND_TEST(test_waiting_of_a_measured_step_follows_from_the_others_times),
                                         ND_TEST(test_a_measured_wait_for_a_message_ends_with_the_receiver),
                                         ND_TEST(test_a_deadlock_leaves_the_result_alone),
                                         ND_TEST(test_times_of_real_programs_are_consistent),
                                         {0}};
    return nd_test_main("time of programs", cases);
}
