#include "program/walk.h"

#include <stdlib.h>
#include <string.h>

#include "program/check.h"
#include "tests/nd_test.h"
#include "tests/program/programs.h"

enum { LOG_MAX = 128 };

/** What was visited, a row per member of a step. */
typedef struct visit_log {
    int32_t count, steps;
    nd_walk_place place[LOG_MAX];
    int32_t step[LOG_MAX], members[LOG_MAX];
    int64_t lane[LOG_MAX], message[LOG_MAX];
    int32_t fail_at; /* step that fails; 0: none */
} visit_log;

static nd_status note(void *user, const nd_walk_step *step, nd_error *err)
{
    visit_log *l = user;
    l->steps++;
    if (l->steps == l->fail_at) {
        return nd_fail(err, ND_EINTERRUPTED, "enough");
    }
    for (int32_t i = 0; i < step->members_count; i++) {
        CU_ASSERT_TRUE_FATAL(l->count < LOG_MAX);
        l->place[l->count] = step->members[i];
        l->step[l->count] = l->steps;
        l->members[l->count] = step->members_count;
        l->lane[l->count] = step->lane;
        l->message[l->count] = step->message;
        l->count++;
    }
    return ND_OK;
}

static nd_status walk_hand(const hand_set *h, visit_log *l, nd_error *err)
{
    memset(l, 0, sizeof *l);
    return nd_programs_walk(h->programs, h->ranks, 1, note, l, err);
}

/* Row of the log; -1: not visited. */
static int32_t row_of(const visit_log *l, int64_t rank, int32_t ins)
{
    int32_t found = -1;
    for (int32_t i = 0; i < l->count; i++) {
        if (l->place[i].rank == rank && l->place[i].ins == ins) {
            CU_ASSERT_EQUAL(found, -1); /* once */
            found = i;
        }
    }
    return found;
}

static nd_ins compute(void)
{
    return (nd_ins){.op = ND_INS_ZERO, .out = {{1, 0}}, .rows = 4, .cols = 4, .layer = -1, .micro = -1};
}

static nd_ins meet(nd_members_kind group)
{
    return (nd_ins){.op = ND_INS_ALL_REDUCE,
                    .in = {{1, 0}},
                    .out = {{1, 0}},
                    .rows = 4,
                    .cols = 4,
                    .group = group,
                    .layer = 7,
                    .micro = 2};
}

static nd_ins message(nd_ins_op op, int32_t peer, int32_t channel)
{
    nd_ins ins = {.op = op, .rows = 4, .cols = 4, .peer = peer, .channel = channel, .layer = -1, .micro = -1};
    if (op == ND_INS_RECV) {
        ins.out[0].buffer = 1;
    } else {
        ins.in[0].buffer = 1;
    }
    return ins;
}

static void test_a_collective_is_visited_once_with_its_members_in_order(void)
{
    static hand_set h;
    static visit_log l;
    nd_error err = {.message = ""};
    hand_open(&h, 2, 2);
    for (int32_t rank = 0; rank < 4; rank++) {
        for (int32_t i = 0; i < rank; i++) { /* they come at different times */
            hand_add(&h, rank, compute());
        }
        hand_add(&h, rank, meet(ND_MEMBERS_TP));
        hand_add(&h, rank, compute());
        hand_add(&h, rank, meet(ND_MEMBERS_WORLD));
    }
    ND_ASSERT_OK(walk_hand(&h, &l, &err));
    CU_ASSERT_EQUAL(l.count, 0 + 1 + 2 + 3 + 4 * 3);
    CU_ASSERT_EQUAL(l.steps, l.count - 2 - 3); /* two pairs and one world of four are one step each */
    for (int32_t rank = 0; rank < 4; rank++) {
        int32_t before = -1;
        for (int32_t i = 0; i < h.program[rank].ins_count; i++) {
            int32_t row = row_of(&l, rank, i);
            CU_ASSERT_TRUE_FATAL(row >= 0);
            CU_ASSERT_TRUE(row > before);
            CU_ASSERT_EQUAL(l.lane[row], -1);
            before = row;
        }
        int32_t pair = row_of(&l, rank, rank);
        int32_t other = row_of(&l, rank ^ 1, rank ^ 1);
        CU_ASSERT_EQUAL(l.step[pair], l.step[other]);
        CU_ASSERT_EQUAL(l.members[pair], 2);
        CU_ASSERT_EQUAL(pair - other, rank % 2 == 1 ? 1 : -1);
        int32_t world = row_of(&l, rank, rank + 2);
        CU_ASSERT_EQUAL(l.members[world], 4);
        CU_ASSERT_EQUAL(world - row_of(&l, 0, 2), rank);
    }
}

static void test_a_group_of_one_does_not_wait(void)
{
    static hand_set h;
    static visit_log l;
    nd_error err = {.message = ""};
    hand_open(&h, 2, 1);
    hand_add(&h, 0, meet(ND_MEMBERS_TP));
    ND_ASSERT_OK(walk_hand(&h, &l, &err));
    CU_ASSERT_EQUAL(l.count, 1);
    CU_ASSERT_EQUAL(l.members[0], 1);
}

static void test_messages_are_counted_by_lane_and_taken_after_they_were_sent(void)
{
    static hand_set h;
    static visit_log l;
    nd_error err = {.message = ""};
    hand_open(&h, 2, 1);
    int32_t take0 = hand_add(&h, 0, message(ND_INS_RECV, 1, 0));
    int32_t first = hand_add(&h, 0, message(ND_INS_SEND, 1, 0));
    int32_t side = hand_add(&h, 0, message(ND_INS_SEND, 1, 1));
    int32_t second = hand_add(&h, 0, message(ND_INS_SEND, 1, 0));
    nd_ins wait = message(ND_INS_SEND_WAIT, 1, 0);
    wait.waits_for = first;
    int32_t wait_first = hand_add(&h, 0, wait);
    wait.waits_for = second;
    int32_t wait_second = hand_add(&h, 0, wait);
    wait.in[0].buffer = 0;
    wait.channel = 1;
    int32_t wait_all = hand_add(&h, 0, wait);
    int32_t back = hand_add(&h, 1, message(ND_INS_SEND, 0, 0));
    int32_t take_side = hand_add(&h, 1, message(ND_INS_RECV, 0, 1));
    int32_t take_first = hand_add(&h, 1, message(ND_INS_RECV, 0, 0));
    int32_t take_second = hand_add(&h, 1, message(ND_INS_RECV, 0, 0));
    ND_ASSERT_OK(walk_hand(&h, &l, &err));
    CU_ASSERT_EQUAL(l.count, h.program[0].ins_count + h.program[1].ins_count);
    const struct {
        int32_t send, receive;
        int64_t message;
    } pairs[] = {{row_of(&l, 1, back), row_of(&l, 0, take0), 0},
                 {row_of(&l, 0, side), row_of(&l, 1, take_side), 0},
                 {row_of(&l, 0, first), row_of(&l, 1, take_first), 0},
                 {row_of(&l, 0, second), row_of(&l, 1, take_second), 1}};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_TRUE(pairs[i].send < pairs[i].receive);
        CU_ASSERT_EQUAL(l.lane[pairs[i].send], l.lane[pairs[i].receive]);
        CU_ASSERT_TRUE(l.lane[pairs[i].send] >= 0 && l.lane[pairs[i].send] < nd_walk_lanes(2));
        CU_ASSERT_EQUAL(l.message[pairs[i].send], pairs[i].message);
        CU_ASSERT_EQUAL(l.message[pairs[i].receive], pairs[i].message);
    }
    CU_ASSERT_NOT_EQUAL(l.lane[pairs[0].send], l.lane[pairs[2].send]);
    CU_ASSERT_NOT_EQUAL(l.lane[pairs[1].send], l.lane[pairs[2].send]);
    CU_ASSERT_EQUAL(l.message[row_of(&l, 0, wait_first)], 1);
    CU_ASSERT_EQUAL(l.message[row_of(&l, 0, wait_second)], 2);
    CU_ASSERT_EQUAL(l.message[row_of(&l, 0, wait_all)], 1);
    CU_ASSERT_TRUE(row_of(&l, 0, wait_first) > row_of(&l, 1, take_first));
}

static void test_a_visitor_ends_the_walk(void)
{
    static hand_set h;
    static visit_log l;
    nd_error err = {.message = ""};
    hand_open(&h, 1, 1);
    hand_add(&h, 0, compute());
    hand_add(&h, 0, compute());
    memset(&l, 0, sizeof l);
    l.fail_at = 2;
    CU_ASSERT_EQUAL(nd_programs_walk(h.programs, 1, 1, note, &l, &err), ND_EINTERRUPTED);
    CU_ASSERT_EQUAL(l.count, 1);
    CU_ASSERT_STRING_EQUAL(err.message, "enough");
}

static void expect_refused(const hand_set *h, const char *part)
{
    static visit_log l;
    nd_error err = {.message = ""};
    CU_ASSERT_EQUAL(walk_hand(h, &l, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, part);
    err.message[0] = '\0';
    CU_ASSERT_EQUAL(nd_programs_check(h->programs, h->ranks, 1, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_who_waits_for_ever_is_named(void)
{
    static hand_set h;
    hand_open(&h, 2, 1); /* both receive before they send */
    hand_add(&h, 0, message(ND_INS_RECV, 1, 0));
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0));
    hand_add(&h, 1, message(ND_INS_RECV, 0, 0));
    hand_add(&h, 1, message(ND_INS_SEND, 0, 0));
    expect_refused(&h, "rank 0 waits for ever at instruction 0: recv (by hand)");
    hand_open(&h, 1, 2); /* a member never comes */
    hand_add(&h, 0, compute());
    hand_add(&h, 0, compute());
    hand_add(&h, 1, compute());
    hand_add(&h, 1, meet(ND_MEMBERS_TP));
    expect_refused(&h,
                   "rank 1 waits for ever at instruction 1: all_reduce (by hand), group tp, layer 7, micro-batch 2");
    hand_open(&h, 2, 2); /* rank 0 is at another group */
    for (int32_t rank = 0; rank < 4; rank++) {
        hand_add(&h, rank, meet(rank == 0 ? ND_MEMBERS_WORLD : ND_MEMBERS_TP));
        hand_add(&h, rank, meet(rank == 0 ? ND_MEMBERS_TP : ND_MEMBERS_WORLD));
    }
    expect_refused(&h, "rank 0 waits for ever at instruction 0: all_reduce (by hand), group world");
    hand_open(&h, 2, 1); /* nobody takes what is waited for */
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0));
    hand_add(&h, 0, message(ND_INS_SEND_WAIT, 1, 0));
    expect_refused(&h, "rank 0 waits for ever at instruction 1: send_wait");
}

static void test_a_send_that_nobody_receives_is_named(void)
{
    static hand_set h;
    hand_open(&h, 2, 1);
    hand_add(&h, 1, message(ND_INS_SEND, 0, 1));
    hand_add(&h, 1, message(ND_INS_SEND, 0, 1));
    hand_add(&h, 0, message(ND_INS_RECV, 1, 1));
    expect_refused(&h, "rank 1 sends 2 times to rank 0, which receives 1 times");
    hand_open(&h, 2, 1); /* the other channel is another lane */
    hand_add(&h, 0, message(ND_INS_SEND, 1, 0));
    hand_add(&h, 1, message(ND_INS_RECV, 0, 1));
    expect_refused(&h, "rank 1 waits for ever at instruction 0: recv");
}

static void expect_different(nd_ins second, const char *part)
{
    static hand_set h;
    static visit_log l;
    nd_error err = {.message = ""};
    hand_open(&h, 1, 2);
    hand_add(&h, 0, meet(ND_MEMBERS_TP));
    hand_add(&h, 1, second);
    ND_ASSERT_OK(walk_hand(&h, &l, &err)); /* does not compare */
    CU_ASSERT_EQUAL(nd_programs_check(h.programs, 2, 1, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "group tp: rank 0 calls all_reduce of 16 x fp32 (instruction 0, by hand) where");
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_calls_that_differ_are_named(void)
{
    nd_ins other = meet(ND_MEMBERS_TP);
    other.op = ND_INS_ALL_GATHER;
    expect_different(other, "rank 1 calls all_gather of 16 x fp32 (instruction 0, by hand)");
    other = meet(ND_MEMBERS_TP);
    other.rows = 5;
    expect_different(other, "rank 1 calls all_reduce of 20 x fp32");
    other = meet(ND_MEMBERS_TP);
    other.max = true;
    expect_different(other, "rank 1 calls all_reduce of 16 x fp32");
}

/** Walk of real programs. */
typedef struct followed {
    const program_set *set;
    int32_t *at;               /* [rank]: visited so far */
    int64_t *sent, *received;  /* [lane] */
    int64_t wrong, collective; /* steps; of more than one member */
    int64_t messages;
} followed;

static nd_status follow_message(followed *f, const nd_walk_step *step, const nd_ins *ins)
{
    if (ins->op == ND_INS_SEND) {
        f->wrong += step->message != f->sent[step->lane]++;
        f->messages++;
    } else if (ins->op == ND_INS_RECV) {
        f->wrong += step->message != f->received[step->lane]++ || step->message >= f->sent[step->lane];
    } else {
        f->wrong += step->message > f->received[step->lane] || step->message < 1;
    }
    return ND_OK;
}

static nd_status follow(void *user, const nd_walk_step *step, nd_error *err)
{
    followed *f = user;
    (void)err;
    const nd_ins *ins = &f->set->programs[step->members[0].rank]->ins[step->members[0].ins];
    if (step->members_count > 1) {
        nd_members members =
            nd_members_of(&f->set->programs[0]->layout, f->set->model.kv_heads, ins->group, step->members[0].rank);
        f->collective++;
        f->wrong += members.count != step->members_count || members.index != 0;
    }
    for (int32_t i = 0; i < step->members_count; i++) {
        nd_walk_place place = step->members[i];
        f->wrong += place.ins != f->at[place.rank]++;
        f->wrong += f->set->programs[place.rank]->ins[place.ins].op != ins->op;
        f->wrong += i > 0 && place.rank <= step->members[i - 1].rank;
    }
    bool alone = nd_ins_communicates(ins->op) && !nd_ins_is_collective(ins->op);
    f->wrong += alone != (step->lane >= 0);
    return alone ? follow_message(f, step, ins) : ND_OK;
}

static void follow_set(const program_set *set, followed *f)
{
    nd_error err = {.message = ""};
    *f = (followed){.set = set};
    f->at = calloc((size_t)set->ranks, sizeof *f->at);
    f->sent = calloc((size_t)nd_walk_lanes(set->ranks), sizeof *f->sent);
    f->received = calloc((size_t)nd_walk_lanes(set->ranks), sizeof *f->received);
    CU_ASSERT_TRUE_FATAL(f->at != NULL && f->sent != NULL && f->received != NULL);
    ND_ASSERT_OK(nd_programs_walk(set->programs, set->ranks, set->model.kv_heads, follow, f, &err));
    for (int32_t i = 0; i < set->ranks; i++) {
        CU_ASSERT_EQUAL(f->at[i], set->programs[i]->ins_count);
    }
    CU_ASSERT_EQUAL(memcmp(f->sent, f->received, (size_t)nd_walk_lanes(set->ranks) * sizeof *f->sent), 0);
    CU_ASSERT_EQUAL(f->wrong, 0);
    free(f->at);
    free(f->sent);
    free(f->received);
}

static void test_every_instruction_of_real_programs_is_visited_in_order(void)
{
    int sets = 0;
    int64_t meetings = 0;
    int64_t messages = 0;
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int l = 0; l < TINY_LAYOUTS; l++) {
            program_set set;
            followed f;
            if (programs_open(&set, tiny_models[m], tiny_layouts[l], 32, ND_ELEM_F32)) {
                follow_set(&set, &f);
                meetings += f.collective;
                messages += f.messages;
                sets++;
                programs_close(&set);
            }
        }
    }
    CU_ASSERT_TRUE(sets >= TINY_MODELS * TINY_LAYOUTS * 2 / 3);
    CU_ASSERT_TRUE(meetings > 1000);
    CU_ASSERT_TRUE(messages > 100);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_a_collective_is_visited_once_with_its_members_in_order),
                                         ND_TEST(test_a_group_of_one_does_not_wait),
                                         ND_TEST(test_messages_are_counted_by_lane_and_taken_after_they_were_sent),
                                         ND_TEST(test_a_visitor_ends_the_walk),
                                         ND_TEST(test_who_waits_for_ever_is_named),
                                         ND_TEST(test_a_send_that_nobody_receives_is_named),
                                         ND_TEST(test_calls_that_differ_are_named),
                                         ND_TEST(test_every_instruction_of_real_programs_is_visited_in_order),
                                         {0}};
    return nd_test_main("walk through programs", cases);
}
