/* Ranks as threads: the results of nd_collective_apply, whoever comes late, and counts of what was communicated. */
#include "executor/comm.h"

#include <stdatomic.h>

#include "tests/executor/collective_case.h"
#include "tests/executor/rank_threads.h"

typedef struct run {
    nd_comm *comm;
    const shape *of;
    collective_case *c;
    int64_t cases, wrong;
    atomic_bool called; /* rank 0 is about to */
} run;

static void execute_case(rank_thread *self)
{
    run *r = self->user;
    nd_members world = rank_world(self);
    self->wrong = rank_execute(self, &r->c->calls[self->rank], &world) != ND_OK;
}

static void execute_and_compare(const shape *of, void *user)
{
    run *r = user;
    collective_case c;
    rank_thread threads[CASE_MEMBERS];
    case_open(&c, of, ND_MEMBERS_WORLD);
    r->c = &c;
    rank_threads_run(threads, r->comm, of->members, execute_case, r);
    for (int32_t me = 0; me < of->members; me++) {
        r->wrong += threads[me].wrong;
        if (threads[me].wrong == 0) {
            r->wrong += case_wrong(&c, me);
        } else if (r->wrong == 1) {
            (void)fprintf(stderr, "%s\n", threads[me].err.message);
        }
    }
    r->cases++;
    case_close(&c);
}

static void test_every_collective_size_and_type(void)
{
    static const int32_t ranks[] = {1, 2, 3, 4, 7, 8};
    run r = {0};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        r.comm = rank_comm_open(ranks[i]);
        case_for_all(ranks[i], execute_and_compare, &r);
        r.comm->table->close(r.comm);
    }
    CU_ASSERT_EQUAL(r.wrong, 0);
    CU_ASSERT_EQUAL(r.cases, 6L * 6 * 4 * (4 + 2 + 2 + 1 + 1 + 1));
}

/* ---- rows and columns of a mesh of 2 x 4 at once, some ranks late ---- */

enum { ROWS = 2, COLUMNS = 4, RANKS = ROWS * COLUMNS, REPEATS = 50, MESH_ELEMENTS = 1500 };

static void fill(rank_thread *self, double *values, uint32_t round)
{
    shape of = {.elem = ND_ELEM_F64, .seed = round};
    for (int64_t i = 0; i < MESH_ELEMENTS; i++) {
        values[i] = case_value(&of, self->rank, i);
    }
}

static void late(const rank_thread *self, uint32_t round)
{
    uint32_t h = case_hash((uint32_t)self->rank, round, 99);
    if (h % 4 == 0) {
        rank_sleep_us(h / 4 % 2000);
    }
}

/* Sum over the row, then over the column, as the whole tree; and parts of the column to its members and back. */
static void run_mesh(rank_thread *self)
{
    int32_t row = self->rank / COLUMNS;
    int32_t column = self->rank % COLUMNS;
    nd_members along_row = {.first = (int64_t)row * COLUMNS, .stride = 1, .count = COLUMNS, .index = column};
    nd_members along_column = {.first = column, .stride = COLUMNS, .count = ROWS, .index = row};
    static double values[RANKS][MESH_ELEMENTS];
    static double gathered[RANKS][ROWS * MESH_ELEMENTS];
    double *own = values[self->rank];
    nd_ins reduce = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = MESH_ELEMENTS, .group = ND_MEMBERS_TP};
    nd_ins column_reduce = reduce;
    column_reduce.group = ND_MEMBERS_GRAD;
    nd_ins gather = column_reduce;
    gather.op = ND_INS_ALL_GATHER;
    nd_operand place = {own, ND_ELEM_F64};
    nd_call in_row = {.ins = &reduce, .in = {place}, .out = {place}};
    nd_call in_column = {.ins = &column_reduce, .in = {place}, .out = {place}};
    nd_call to_all = {.ins = &gather, .in = {place}, .out = {{gathered[self->rank], ND_ELEM_F64}}};
    for (uint32_t round = 0; round < REPEATS; round++) {
        shape whole = {.elem = ND_ELEM_F64, .members = RANKS, .seed = round};
        fill(self, own, round);
        late(self, round);
        self->wrong += rank_execute(self, &to_all, &along_column) != ND_OK;
        self->wrong += rank_execute(self, &in_row, &along_row) != ND_OK;
        late(self, round + REPEATS);
        self->wrong += rank_execute(self, &in_column, &along_column) != ND_OK;
        for (int64_t i = 0; i < MESH_ELEMENTS; i += 7) {
            self->wrong += own[i] != case_tree(&whole, 0, RANKS, i);
            self->wrong += gathered[self->rank][i] != case_value(&whole, column, i);
            self->wrong += gathered[self->rank][MESH_ELEMENTS + i] != case_value(&whole, COLUMNS + column, i);
        }
    }
}

static void test_groups_of_a_mesh_at_once(void)
{
    rank_thread threads[RANKS];
    nd_comm *comm = rank_comm_open(RANKS);
    rank_threads_run(threads, comm, RANKS, run_mesh, NULL);
    for (int32_t r = 0; r < RANKS; r++) {
        CU_ASSERT_EQUAL(threads[r].wrong, 0);
        const nd_comm_counters *counters = comm->table->counters(comm, r);
        CU_ASSERT_EQUAL(counters->count[ND_MEMBERS_TP][ND_INS_ALL_REDUCE].calls, REPEATS);
        CU_ASSERT_EQUAL(counters->count[ND_MEMBERS_GRAD][ND_INS_ALL_REDUCE].calls, REPEATS);
        CU_ASSERT_EQUAL(counters->count[ND_MEMBERS_GRAD][ND_INS_ALL_GATHER].bytes,
                        (int64_t)REPEATS * ROWS * MESH_ELEMENTS * 8);
    }
    comm->table->close(comm);
}

/* ---- more ranks than processors ---- */

enum { MANY = 16, STRESS_ROUNDS = 60 };

typedef struct stress {
    collective_case cases[STRESS_ROUNDS];
} stress;

static void run_stress(rank_thread *self)
{
    stress *s = self->user;
    nd_members world = rank_world(self);
    for (uint32_t round = 0; round < STRESS_ROUNDS; round++) {
        late(self, round);
        self->wrong += rank_execute(self, &s->cases[round].calls[self->rank], &world) != ND_OK;
    }
}

static void test_more_ranks_than_processors(void)
{
    static stress all;
    stress *s = &all;
    for (uint32_t round = 0; round < STRESS_ROUNDS; round++) {
        nd_ins_op op = case_ops[round % CASE_OPS];
        shape of = {.op = op,
                    .elem = (nd_elem)(round / CASE_OPS % ND_ELEM_COUNT),
                    .in_place = round % 2 == 0 && case_can_be_in_place(op),
                    .members = MANY,
                    .rows = 1 + round,
                    .cols = 23,
                    .seed = round};
        case_open(&s->cases[round], &of, ND_MEMBERS_WORLD);
    }
    rank_thread threads[MANY];
    nd_comm *comm = rank_comm_open(MANY);
    rank_threads_run(threads, comm, MANY, run_stress, s);
    comm->table->close(comm);
    int64_t wrong = 0;
    for (int32_t r = 0; r < MANY; r++) {
        wrong += threads[r].wrong;
        for (int round = 0; round < STRESS_ROUNDS; round++) {
            wrong += case_wrong(&s->cases[round], r);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (int round = 0; round < STRESS_ROUNDS; round++) {
        case_close(&s->cases[round]);
    }
}

/* ---- counters ---- */

enum { LATE_US = 60000 };

static void run_late_rank(rank_thread *self)
{
    run *r = self->user;
    nd_members world = rank_world(self);
    nd_members alone = {.first = self->rank, .stride = 1, .count = 1, .index = 0};
    if (self->rank == 0) {
        atomic_store(&r->called, true);
    } else if (self->rank == 2) {
        while (!atomic_load(&r->called)) {
            rank_sleep_us(1000);
        }
        rank_sleep_us(LATE_US);
    }
    self->wrong += rank_execute(self, &r->c->calls[self->rank], &world) != ND_OK;
    float one = 1.0F;
    nd_ins ins = {.op = ND_INS_ALL_REDUCE, .rows = 1, .cols = 1, .group = ND_MEMBERS_TP};
    nd_call call = {.ins = &ins, .in = {{&one, ND_ELEM_F32}}, .out = {{&one, ND_ELEM_F32}}};
    self->wrong += rank_execute(self, &call, &alone) != ND_OK || one != 1.0F;
}

/* Bytes of one rank in the convention of the cost model. */
static int64_t expected_bytes(const shape *of, int32_t rank)
{
    int64_t size = nd_elem_bytes(of->elem);
    int64_t larger = of->op == ND_INS_ALL_GATHER ? case_out_elements(of, rank) : case_in_elements(of, rank);
    return larger * size;
}

static void test_counters(void)
{
    enum { THREE = 3 };
    for (int op = 0; op < CASE_OPS; op++) {
        shape of = {.op = case_ops[op], .elem = ND_ELEM_BF16, .members = THREE, .rows = 10, .cols = 7, .seed = 3};
        collective_case c;
        case_open(&c, &of, ND_MEMBERS_SHARD);
        run r = {.c = &c};
        rank_thread threads[THREE];
        nd_comm *comm = rank_comm_open(THREE);
        rank_threads_run(threads, comm, THREE, run_late_rank, &r);
        for (int32_t rank = 0; rank < THREE; rank++) {
            CU_ASSERT_EQUAL(threads[rank].wrong, 0);
            const nd_comm_counters *counters = comm->table->counters(comm, rank);
            const nd_comm_count *count = &counters->count[ND_MEMBERS_SHARD][of.op];
            CU_ASSERT_EQUAL(count->calls, 1);
            CU_ASSERT_EQUAL(count->bytes, expected_bytes(&of, rank));
            CU_ASSERT_TRUE(count->wait_s >= 0.0 && count->wait_s <= count->seconds);
            CU_ASSERT_EQUAL(counters->count[ND_MEMBERS_TP][ND_INS_ALL_REDUCE].calls, 0); /* alone: not counted */
        }
        /* Rank 2 came last, well after rank 0; a quarter, should rank 0 have been held up on its way in. */
        const nd_comm_count *first = &comm->table->counters(comm, 0)->count[ND_MEMBERS_SHARD][of.op];
        const nd_comm_count *last = &comm->table->counters(comm, 2)->count[ND_MEMBERS_SHARD][of.op];
        CU_ASSERT_TRUE(first->wait_s >= 1e-6 * LATE_US / 4);
        CU_ASSERT_TRUE(last->wait_s < first->wait_s);
        comm->table->close(comm);
        case_close(&c);
    }
}

static void test_number_of_ranks(void)
{
    nd_comm *comm = NULL;
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_comm_thread_open(0, true, &comm, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "0 ranks as threads; 1 to 1024");
    CU_ASSERT_EQUAL(nd_comm_thread_open(1025, true, &comm, &err), ND_EINVAL);
    CU_ASSERT_PTR_NULL(comm);
    comm = rank_comm_open(1024);
    CU_ASSERT_STRING_EQUAL(comm->table->name, "thread");
    comm->table->close(comm);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_collective_size_and_type),
        ND_TEST(test_groups_of_a_mesh_at_once),
        ND_TEST(test_more_ranks_than_processors),
        ND_TEST(test_counters),
        ND_TEST(test_number_of_ranks),
        {NULL, NULL},
    };
    return nd_test_main("executor/comm thread", cases);
}
