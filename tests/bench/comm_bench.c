/* Times the collectives of the thread communicator:
 *     comm_bench [largest bytes [repetitions]]
 * prints op,ranks,bytes,median_s,best_s,bus_gb_s as CSV. `bytes` is what the counters count (the full buffer), and the
 * bus bandwidth follows nccl-tests (doc/PERFORMANCE.md): bytes / time x 2(n-1)/n for all_reduce, (n-1)/n for
 * all_gather, reduce_scatter and all_to_all, 1 for shift. A time is that of the slowest rank; ranks meet before each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/pool.h"
#include "executor/comm.h"

enum { RANKS_MAX = 8, REPETITIONS = 15, REPETITIONS_MAX = 1000, WARM_UP = 3, ELEMENT = 4 };

typedef struct bench {
    nd_comm *comm;
    int32_t ranks;
    int64_t largest_bytes;
    int repetitions;
    double seconds[RANKS_MAX][REPETITIONS_MAX];
} bench;

typedef struct rank_of {
    bench *of;
    int32_t rank;
    float *in, *out;
    pthread_t thread;
} rank_of;

static const nd_ins_op ops[] = {ND_INS_ALL_REDUCE, ND_INS_ALL_GATHER, ND_INS_REDUCE_SCATTER, ND_INS_ALL_TO_ALL,
                                ND_INS_SHIFT};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bus_factor(nd_ins_op op, int32_t ranks)
{
    double others = (ranks - 1.0) / ranks;
    return op == ND_INS_ALL_REDUCE ? 2.0 * others : op == ND_INS_SHIFT ? 1.0 : others;
}

static void print_row(bench *b, nd_ins_op op, int64_t bytes)
{
    double slowest[REPETITIONS_MAX] = {0};
    for (int i = 0; i < b->repetitions; i++) {
        for (int32_t r = 0; r < b->ranks; r++) {
            slowest[i] = b->seconds[r][i] > slowest[i] ? b->seconds[r][i] : slowest[i];
        }
    }
    qsort(slowest, (size_t)b->repetitions, sizeof slowest[0], by_value);
    double median = slowest[b->repetitions / 2];
    (void)printf("%s,%d,%lld,%.3e,%.3e,%.3f\n", nd_ins_name(op), (int)b->ranks, (long long)bytes, median, slowest[0],
                 (double)bytes / median * bus_factor(op, b->ranks) * 1e-9);
}

static void execute(const rank_of *self, const nd_call *call)
{
    nd_error err;
    nd_members world = {.first = 0, .stride = 1, .count = self->of->ranks, .index = self->rank};
    if (self->of->comm->table->execute(self->of->comm, self->rank, call, &world, &err) != ND_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
}

static void time_one(rank_of *self, nd_ins_op op, int64_t bytes)
{
    bench *b = self->of;
    bool parts = op != ND_INS_ALL_REDUCE && op != ND_INS_SHIFT;
    nd_ins ins = {.op = op, .rows = 1, .cols = bytes / ELEMENT / (parts ? b->ranks : 1), .group = ND_MEMBERS_WORLD};
    nd_call call = {.ins = &ins, .in = {{self->in, ND_ELEM_F32}}, .out = {{self->out, ND_ELEM_F32}}};
    nd_ins meet_ins = {.op = ND_INS_ALL_REDUCE, .rows = 0, .cols = 0, .group = ND_MEMBERS_WORLD};
    nd_call meet = {.ins = &meet_ins};
    for (int i = -WARM_UP; i < b->repetitions; i++) {
        execute(self, &meet);
        double begin_s = nd_monotonic_s();
        execute(self, &call);
        if (i >= 0) {
            b->seconds[self->rank][i] = nd_monotonic_s() - begin_s;
        }
    }
    execute(self, &meet); /* all have written their times */
    if (self->rank == 0) {
        print_row(b, op, bytes);
    }
}

static void *run_rank(void *argument)
{
    rank_of *self = argument;
    for (int64_t i = 0; i < self->of->largest_bytes / ELEMENT; i++) { /* touched by its own thread */
        self->in[i] = (float)self->rank;
        self->out[i] = 0.0F;
    }
    for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++) {
        for (int64_t bytes = 1024; bytes <= self->of->largest_bytes; bytes *= 4) {
            time_one(self, ops[op], bytes);
        }
    }
    return NULL;
}

static int run(bench *b)
{
    rank_of ranks[RANKS_MAX] = {0};
    nd_error err;
    int failed = 0;
    if (nd_comm_thread_open(b->ranks, true, &b->comm, &err) != ND_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int32_t r = 0; r < b->ranks; r++) {
        ranks[r] = (rank_of){.of = b, .rank = r};
        ranks[r].in = malloc((size_t)b->largest_bytes);
        ranks[r].out = malloc((size_t)b->largest_bytes);
        failed |= ranks[r].in == NULL || ranks[r].out == NULL;
    }
    for (int32_t r = 0; r < b->ranks && !failed; r++) {
        if (pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]) != 0) {
            exit(1); /* those that run wait for it */
        }
    }
    for (int32_t r = 0; r < b->ranks; r++) {
        if (!failed) {
            (void)pthread_join(ranks[r].thread, NULL);
        }
        free(ranks[r].in);
        free(ranks[r].out);
    }
    b->comm->table->close(b->comm);
    return failed;
}

int main(int argc, char **argv)
{
    static bench b;
    b.largest_bytes = argc > 1 ? strtoll(argv[1], NULL, 0) : 16 << 20;
    b.repetitions = argc > 2 ? (int)strtol(argv[2], NULL, 0) : REPETITIONS;
    if (b.largest_bytes < 1024 || b.repetitions < 1 || b.repetitions > REPETITIONS_MAX) {
        (void)fprintf(stderr, "usage: comm_bench [largest bytes >= 1024 [repetitions 1 to %d]]\n", REPETITIONS_MAX);
        return 2;
    }
    (void)fprintf(stderr, "%d processors\n", (int)nd_pool_processors());
    (void)printf("op,ranks,bytes,median_s,best_s,bus_gb_s\n");
    for (b.ranks = 2; b.ranks <= RANKS_MAX; b.ranks *= 2) {
        if (run(&b) != 0) {
            return 1;
        }
    }
    return 0;
}
