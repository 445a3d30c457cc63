/* Messages between ranks that are threads: order, buffers, and what does not fit. */
#include "executor/comm.h"

#include <stdatomic.h>

#include "tests/executor/rank_threads.h"

enum { MESSAGES = 40, LENGTH = 5 };

static nd_status message(rank_thread *self, nd_ins_op op, int32_t peer, int32_t channel, void *buffer)
{
    nd_ins ins = {.op = op, .rows = LENGTH, .cols = 1, .peer = peer, .channel = channel, .tag = "pp"};
    nd_call call = {.ins = &ins};
    nd_operand *operand = op == ND_INS_RECV ? &call.out[0] : &call.in[0];
    *operand = (nd_operand){buffer, ND_ELEM_I32};
    return rank_execute(self, &call, NULL);
}

static void set(int32_t *buffer, int32_t value)
{
    for (int32_t i = 0; i < LENGTH; i++) {
        buffer[i] = value + i;
    }
}

static int64_t differs(const int32_t *buffer, int32_t value)
{
    int64_t wrong = 0;
    for (int32_t i = 0; i < LENGTH; i++) {
        wrong += buffer[i] != value + i;
    }
    return wrong;
}

/* More messages than a lane has room for at first, in both channels, taken channel by channel. */
static void run_channels(rank_thread *self)
{
    int32_t buffers[2][MESSAGES][LENGTH];
    if (self->rank == 0) {
        for (int32_t i = 0; i < MESSAGES; i++) {
            for (int32_t channel = 0; channel < 2; channel++) {
                set(buffers[channel][i], 1000 * channel + i);
                self->wrong += message(self, ND_INS_SEND, 1, channel, buffers[channel][i]) != ND_OK;
            }
        }
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 0, NULL) != ND_OK;
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 1, NULL) != ND_OK;
        set(buffers[0][0], -1); /* may be reused: the receiver has long copied */
        return;
    }
    for (int32_t channel = 1; channel >= 0; channel--) {
        for (int32_t i = 0; i < MESSAGES; i++) {
            int32_t *got = buffers[channel][i];
            self->wrong += message(self, ND_INS_RECV, 0, channel, got) != ND_OK;
            self->wrong += differs(got, 1000 * channel + i);
        }
    }
}

static void test_order_per_channel(void)
{
    nd_comm *comm = rank_comm_open(2);
    rank_thread threads[2];
    rank_threads_run(threads, comm, 2, run_channels, NULL);
    CU_ASSERT_EQUAL(threads[0].wrong + threads[1].wrong, 0);
    const nd_comm_counters *sent = comm->table->counters(comm, 0);
    const nd_comm_counters *received = comm->table->counters(comm, 1);
    CU_ASSERT_EQUAL(sent->count[ND_MEMBERS_WORLD][ND_INS_SEND].calls, 2L * MESSAGES);
    CU_ASSERT_EQUAL(sent->count[ND_MEMBERS_WORLD][ND_INS_SEND].bytes, 2L * MESSAGES * LENGTH * 4);
    CU_ASSERT_EQUAL(sent->count[ND_MEMBERS_WORLD][ND_INS_SEND_WAIT].bytes, 0);
    CU_ASSERT_EQUAL(received->count[ND_MEMBERS_WORLD][ND_INS_RECV].bytes, 2L * MESSAGES * LENGTH * 4);
    comm->table->close(comm);
}

typedef struct reuse {
    atomic_bool sent;  /* the send has returned */
    atomic_bool taken; /* the receiver is about to take the message */
} reuse;

static void run_reuse(rank_thread *self)
{
    reuse *shared = self->user;
    int32_t buffer[LENGTH];
    if (self->rank == 0) {
        set(buffer, 7);
        self->wrong += message(self, ND_INS_SEND, 1, 0, buffer) != ND_OK;
        self->wrong += atomic_load(&shared->taken); /* a send only starts: the receiver waits for it to return */
        atomic_store(&shared->sent, true);
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 0, buffer) != ND_OK;
        self->wrong += !atomic_load(&shared->taken);
        set(buffer, 70);
        return;
    }
    for (int ms = 0; ms < 5000 && !atomic_load(&shared->sent); ms++) {
        rank_sleep_us(1000);
    }
    rank_sleep_us(50000); /* the sender waits */
    atomic_store(&shared->taken, true);
    self->wrong += message(self, ND_INS_RECV, 0, 0, buffer) != ND_OK;
    self->wrong += differs(buffer, 7);
}

static void test_a_send_waits_only_when_asked(void)
{
    reuse shared = {false, false};
    nd_comm *comm = rank_comm_open(2);
    rank_thread threads[2];
    rank_threads_run(threads, comm, 2, run_reuse, &shared);
    CU_ASSERT_EQUAL(threads[0].wrong + threads[1].wrong, 0);
    CU_ASSERT_TRUE(comm->table->counters(comm, 0)->count[ND_MEMBERS_WORLD][ND_INS_SEND_WAIT].wait_s > 0.01);
    comm->table->close(comm);
}

/* Rank 1 takes the second message only after rank 0 has reused the buffer of the first: waiting for one buffer must not
 * wait for the others, or neither goes on. */
static void run_one_buffer(rank_thread *self)
{
    int32_t first[LENGTH];
    int32_t second[LENGTH];
    int32_t go[LENGTH];
    if (self->rank == 0) {
        set(first, 1);
        set(second, 2);
        set(go, 3);
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 0, first) != ND_OK; /* nothing sent: nothing to wait for */
        self->wrong += message(self, ND_INS_SEND, 1, 0, first) != ND_OK;
        self->wrong += message(self, ND_INS_SEND, 1, 0, second) != ND_OK;
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 0, first) != ND_OK;
        set(first, 10);
        self->wrong += message(self, ND_INS_SEND, 1, 1, go) != ND_OK;
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 0, second) != ND_OK;
        self->wrong += message(self, ND_INS_SEND_WAIT, 1, 1, go) != ND_OK;
        return;
    }
    self->wrong += message(self, ND_INS_RECV, 0, 0, first) != ND_OK;
    self->wrong += message(self, ND_INS_RECV, 0, 1, go) != ND_OK;
    self->wrong += message(self, ND_INS_RECV, 0, 0, second) != ND_OK;
    self->wrong += differs(first, 1) + differs(second, 2) + differs(go, 3);
}

static void test_waiting_for_one_buffer(void)
{
    nd_comm *comm = rank_comm_open(2);
    rank_thread threads[2];
    rank_threads_run(threads, comm, 2, run_one_buffer, NULL);
    CU_ASSERT_EQUAL(threads[0].wrong + threads[1].wrong, 0);
    comm->table->close(comm);
}

/* A ring of stages that all send before they receive, many times: sends must not block. */
static void run_ring(rank_thread *self)
{
    int32_t out[LENGTH];
    int32_t in[LENGTH];
    int32_t next = (self->rank + 1) % self->ranks;
    int32_t before = (self->rank + self->ranks - 1) % self->ranks;
    for (int32_t round = 0; round < 200; round++) {
        set(out, 100 * round + self->rank);
        self->wrong += message(self, ND_INS_SEND, next, 0, out) != ND_OK;
        self->wrong += message(self, ND_INS_RECV, before, 0, in) != ND_OK;
        self->wrong += differs(in, 100 * round + before);
        self->wrong += message(self, ND_INS_SEND_WAIT, next, 0, out) != ND_OK;
    }
}

static void test_a_ring_of_messages(void)
{
    enum { SIZES = 3 };
    static const int32_t ranks[SIZES] = {1, 2, 9}; /* 1: to itself */
    for (int i = 0; i < SIZES; i++) {
        nd_comm *comm = rank_comm_open(ranks[i]);
        rank_thread threads[16];
        rank_threads_run(threads, comm, ranks[i], run_ring, NULL);
        for (int32_t r = 0; r < ranks[i]; r++) {
            CU_ASSERT_EQUAL(threads[r].wrong, 0);
        }
        comm->table->close(comm);
    }
}

/* Rank 1 expects a float where rank 0 sends integers; rank 0 then waits for a message that cannot be taken. */
static void run_mismatch(rank_thread *self)
{
    int32_t buffer[LENGTH] = {0};
    if (self->rank == 0) {
        (void)message(self, ND_INS_SEND, 1, 0, buffer);
        (void)message(self, ND_INS_SEND_WAIT, 1, 0, buffer);
        return;
    }
    nd_ins ins = {.op = ND_INS_RECV, .rows = 1, .cols = 4, .peer = 0, .channel = 0, .tag = "pp.in"};
    nd_call call = {.ins = &ins, .out = {{buffer, ND_ELEM_F32}}};
    (void)rank_execute(self, &call, NULL);
}

static void test_a_message_of_another_kind_is_named(void)
{
    const char *why =
        "rank 0 sends 5 int32 elements (pp) to rank 1, which receives 4 fp32 elements (pp.in, channel 0); a "
        "send and its receive have to be the same";
    nd_comm *comm = rank_comm_open(2);
    rank_thread threads[2];
    rank_threads_run(threads, comm, 2, run_mismatch, NULL);
    CU_ASSERT_EQUAL(threads[1].status, ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(threads[1].err.message, why);
    CU_ASSERT_EQUAL(threads[0].status, ND_EINTERRUPTED);
    ND_ASSERT_CONTAINS(threads[0].err.message, "rank 1: rank 0 sends 5 int32");
    comm->table->close(comm);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_order_per_channel),
        ND_TEST(test_a_send_waits_only_when_asked),
        ND_TEST(test_waiting_for_one_buffer),
        ND_TEST(test_a_ring_of_messages),
        ND_TEST(test_a_message_of_another_kind_is_named),
        {NULL, NULL},
    };
    return nd_test_main("executor/comm thread messages", cases);
}
