/* Calls that do not fit together end with a message on every rank instead of a hang; an abort ends every wait. */
#include "executor/comm.h"

#include "tests/executor/rank_threads.h"

enum { RANKS = 3, ELEMENTS = 24 };

/* What each rank calls; buffers are large enough for all of them. */
typedef struct mixture {
    nd_ins ins[RANKS];
    nd_elem elem[RANKS];
    int32_t send_rows[RANKS][RANKS], receive_rows[RANKS][RANKS];
} mixture;

static void run_mixture(rank_thread *self)
{
    mixture *m = self->user;
    double in[RANKS * ELEMENTS] = {0};
    double out[RANKS * ELEMENTS];
    nd_members world = rank_world(self);
    nd_elem elem = m->elem[self->rank];
    nd_call call = {
        .ins = &m->ins[self->rank],
        .in = {{in, elem}, {m->send_rows[self->rank], ND_ELEM_I32}, {m->receive_rows[self->rank], ND_ELEM_I32}},
        .out = {{out, elem}}};
    (void)rank_execute(self, &call, &world);
    nd_error later = {0}; /* the communicator stays unusable */
    self->wrong = self->comm->table->execute(self->comm, self->rank, &call, &world, &later) != ND_EINTERRUPTED;
    self->wrong += strncmp(later.message, "rank 2: ", 8) != 0;
}

static mixture all_reduces(void)
{
    mixture m = {0};
    for (int32_t r = 0; r < RANKS; r++) {
        m.ins[r] = (nd_ins){.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = 12, .group = ND_MEMBERS_TP, .tag = "attn.out"};
        m.elem[r] = ND_ELEM_F32;
    }
    return m;
}

/* All ranks return ND_EINVAL and the same message with these parts. */
static void expect_mismatch(mixture *m, const char *first, const char *second)
{
    nd_comm *comm = rank_comm_open(RANKS);
    rank_thread threads[RANKS];
    rank_threads_run(threads, comm, RANKS, run_mixture, m);
    for (int32_t r = 0; r < RANKS; r++) {
        CU_ASSERT_EQUAL(threads[r].status, ND_EINVAL);
        CU_ASSERT_EQUAL(threads[r].wrong, 0);
        ND_ASSERT_CONTAINS(threads[r].err.message, first);
        ND_ASSERT_CONTAINS(threads[r].err.message, second);
    }
    comm->table->close(comm);
}

static void test_different_calls_are_named(void)
{
    const char *usual =
        "tp group of 3 ranks: rank 0 calls all_reduce (sum) of 12 fp32 elements (attn.out, call 1), but";
    mixture m = all_reduces();
    m.ins[2].cols = 13;
    expect_mismatch(&m, usual, "rank 2 calls all_reduce (sum) of 13 fp32 elements (attn.out, call 1); all members");
    m = all_reduces();
    m.ins[2].op = ND_INS_ALL_GATHER;
    m.ins[2].tag = "ffn.up";
    expect_mismatch(&m, usual, "rank 2 calls all_gather of 12 fp32 elements (ffn.up, call 1)");
    m = all_reduces();
    m.elem[2] = ND_ELEM_BF16;
    expect_mismatch(&m, usual, "rank 2 calls all_reduce (sum) of 12 bf16 elements");
    m = all_reduces();
    m.ins[2].max = true;
    expect_mismatch(&m, usual, "rank 2 calls all_reduce (max) of 12 fp32 elements");
}

static mixture all_rows(void)
{
    mixture m = {0};
    for (int32_t r = 0; r < RANKS; r++) {
        m.ins[r] = (nd_ins){.op = ND_INS_ALL_TO_ALL_ROWS, .rows = 9, .cols = 2, .group = ND_MEMBERS_EP, .tag = "moe"};
        m.elem[r] = ND_ELEM_F64;
        for (int32_t other = 0; other < RANKS; other++) {
            m.send_rows[r][other] = r;
            m.receive_rows[r][other] = other;
        }
    }
    return m;
}

static void test_rows_that_are_not_expected(void)
{
    mixture m = all_rows();
    m.receive_rows[2][1] = 2;
    expect_mismatch(&m, "ep group of 3 ranks: all_to_all_rows (moe, call 1)",
                    "rank 1 sends 1 rows to rank 2, which expects 2");
    m = all_rows();
    m.ins[2].cols = 3;
    expect_mismatch(&m, "rank 0 calls all_to_all_rows of rows of 2 fp64", "rank 2 calls all_to_all_rows of rows of 3");
}

/* ---- calls that are wrong by themselves ---- */

static void expect_refused(nd_call *call, const nd_members *members, const char *message)
{
    nd_comm *comm = rank_comm_open(RANKS);
    nd_error err = {0};
    CU_ASSERT_EQUAL(comm->table->execute(comm, 0, call, members, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, message);
    /* the others do not wait for this rank */
    CU_ASSERT_EQUAL(comm->table->execute(comm, 1, call, members, &err), ND_EINTERRUPTED);
    ND_ASSERT_CONTAINS(err.message, "rank 0: ");
    ND_ASSERT_CONTAINS(err.message, message);
    comm->table->close(comm);
}

static void test_wrong_calls_are_refused(void)
{
    double buffer[RANKS * ELEMENTS] = {0};
    double other[RANKS * ELEMENTS] = {0};
    int32_t rows[RANKS] = {1, 1, 1};
    nd_members world = {.first = 0, .stride = 1, .count = RANKS, .index = 0};
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 2, .cols = 4, .tag = "x"};
    nd_call good = {.ins = &ins, .in = {{buffer, ND_ELEM_F64}}, .out = {{other, ND_ELEM_F64}}};
    nd_call call = good;
    call.out[0].elem = ND_ELEM_F32;
    expect_refused(&call, &world, "all_reduce (x): from fp64 to fp32; it does not convert");
    call = good;
    call.out[0].data = buffer + 1;
    expect_refused(&call, &world, "input and output overlap; only a rank's own part may, in its place");
    call = good;
    call.in[0].data = NULL;
    expect_refused(&call, &world, "needs an input and an output buffer");
    nd_members stranger = {.first = 1, .stride = 1, .count = 2, .index = 0};
    expect_refused(&good, &stranger, "rank 0 cannot be member 0 of a tp group of 2 ranks from 1");
    nd_members too_far = {.first = 0, .stride = 2, .count = 3, .index = 0};
    expect_refused(&good, &too_far, "ranks from 0 in steps of 2 among 3");
    expect_refused(&good, NULL, "a group of 0 members among 3 ranks");
    ins.rows = -1;
    expect_refused(&good, &world, "-1 rows of 4 elements");
    ins.rows = 2;
    ins.op = ND_INS_ALL_GATHER;
    call = good;
    call.in[0].data = other + 8; /* the place of member 1 */
    expect_refused(&call, &world, "all_gather (x): input and output overlap");
    ins.op = ND_INS_SHIFT;
    call = good;
    call.out[0].data = buffer;
    expect_refused(&call, &world, "shift (x): input and output overlap; they must be apart");
    ins.op = ND_INS_ALL_TO_ALL_ROWS;
    expect_refused(&good, &world, "rows to send and to receive must be int32 buffers");
    call = good;
    call.in[1] = (nd_operand){rows, ND_ELEM_I32};
    call.in[2] = call.in[1];
    expect_refused(&call, &world, "3 rows arrive in a buffer of 2");
    rows[1] = -1;
    expect_refused(&call, &world, "a number of rows cannot be negative");
    ins.op = ND_INS_SEND;
    ins.peer = 3;
    expect_refused(&good, NULL, "send: there is no rank 3 of 3");
    ins.op = ND_INS_RECV;
    ins.peer = 1;
    call.out[0].data = NULL;
    expect_refused(&call, NULL, "recv, rank 1: 2 rows of 4 elements without a buffer");
    ins.op = ND_INS_GEMM;
    nd_comm *comm = rank_comm_open(RANKS);
    nd_error err = {0};
    CU_ASSERT_EQUAL(comm->table->execute(comm, 0, &good, &world, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "gemm of rank 0");
    comm->table->close(comm);
}

/* ---- abort ---- */

typedef struct waits {
    double abort_s;
} waits;

static void abort_all(rank_thread *self)
{
    waits *w = self->user;
    rank_sleep_us(100000); /* until the others wait; if they do not yet, they must not begin to */
    nd_error why = {0};
    (void)nd_fail(&why, ND_ENOMEM, "instruction 17 (ffn.up, layer 2): no memory");
    w->abort_s = nd_monotonic_s();
    self->comm->table->abort(self->comm, self->rank, &why);
    (void)nd_fail(&why, ND_EIO, "another reason");
    self->comm->table->abort(self->comm, 0, &why); /* the first one is kept */
}

/* Ranks 0 and 4 wait in a collective that rank 5 never joins, 1 in a receive, 2 for its send; 3 aborts. */
static void run_until_abort(rank_thread *self)
{
    float in[4] = {0};
    float out[4];
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = 4, .group = ND_MEMBERS_GRAD, .peer = 5};
    nd_call call = {.ins = &ins, .in = {{in, ND_ELEM_F32}}, .out = {{out, ND_ELEM_F32}}};
    nd_members world = rank_world(self);
    if (self->rank == 3) {
        abort_all(self);
    } else if (self->rank == 5) {
        rank_sleep_us(150000); /* comes later still: a new group, a new lane */
        ins.op = ND_INS_RECV;
        ins.peer = 0;
    } else if (self->rank == 1) {
        ins.op = ND_INS_RECV;
    } else if (self->rank == 2) {
        ins.op = ND_INS_SEND;
        self->wrong += rank_execute(self, &call, NULL) != ND_OK;
        ins.op = ND_INS_SEND_WAIT;
    }
    (void)rank_execute(self, &call, &world);
}

static void test_an_abort_ends_every_wait(void)
{
    enum { SIX = 6 };
    waits w = {0};
    rank_thread threads[SIX];
    nd_comm *comm = rank_comm_open(SIX);
    rank_threads_run(threads, comm, SIX, run_until_abort, &w);
    for (int32_t r = 0; r < SIX; r++) {
        CU_ASSERT_EQUAL(threads[r].wrong, 0);
        CU_ASSERT_EQUAL(threads[r].status, ND_EINTERRUPTED);
        CU_ASSERT_STRING_EQUAL(threads[r].err.message, "rank 3: instruction 17 (ffn.up, layer 2): no memory");
        CU_ASSERT_TRUE(threads[r].end_s - w.abort_s < 2.0);
    }
    comm->table->close(comm);
}

/* Two ranks on two processors wait awake at first. */
static void run_two(rank_thread *self)
{
    double value = 1.0;
    nd_members world = rank_world(self);
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = 1, .group = ND_MEMBERS_TP};
    nd_call call = {.ins = &ins, .in = {{&value, ND_ELEM_F64}}, .out = {{&value, ND_ELEM_F64}}};
    for (int i = 0; i < 200 && self->status == ND_OK; i++) {
        if (self->rank == 1 && i == 150) {
            self->comm->table->abort(self->comm, 1, NULL);
        }
        (void)rank_execute(self, &call, &world);
    }
}

static void test_abort_between_two_ranks(void)
{
    for (int repeat = 0; repeat < 50; repeat++) {
        rank_thread threads[2];
        nd_comm *comm = rank_comm_open(2);
        rank_threads_run(threads, comm, 2, run_two, NULL);
        for (int r = 0; r < 2; r++) {
            CU_ASSERT_EQUAL(threads[r].status, ND_EINTERRUPTED);
            CU_ASSERT_STRING_EQUAL(threads[r].err.message, "rank 1: failed without a message");
            CU_ASSERT_EQUAL(comm->table->counters(comm, r)->count[ND_MEMBERS_TP][ND_INS_ALL_REDUCE].calls, 150);
        }
        comm->table->close(comm);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_different_calls_are_named), ND_TEST(test_rows_that_are_not_expected),
        ND_TEST(test_wrong_calls_are_refused),   ND_TEST(test_an_abort_ends_every_wait),
        ND_TEST(test_abort_between_two_ranks),   {NULL, NULL},
    };
    return nd_test_main("executor/comm thread faults", cases);
}
