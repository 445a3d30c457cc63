/** Runs a function as every rank of a communicator at once. */
#ifndef ND_TESTS_EXECUTOR_RANK_THREADS_H
#define ND_TESTS_EXECUTOR_RANK_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "executor/comm.h"
#include "tests/nd_test.h"

typedef struct rank_thread {
    nd_comm *comm;
    int32_t rank, ranks;
    void *user;
    void (*run)(struct rank_thread *self);
    pthread_t thread;
    /* for the test to look at */
    nd_status status;
    nd_error err;
    int64_t wrong;
    double end_s;
} rank_thread;

static inline void *rank_thread_main(void *argument)
{
    rank_thread *self = argument;
    self->run(self);
    self->end_s = nd_monotonic_s();
    return NULL;
}

/** threads[ranks]; returns when all have. */
static inline void rank_threads_run(rank_thread *threads, nd_comm *comm, int32_t ranks, void (*run)(rank_thread *self),
                                    void *user)
{
    for (int32_t r = 0; r < ranks; r++) {
        threads[r] = (rank_thread){.comm = comm, .rank = r, .ranks = ranks, .user = user, .run = run};
        if (pthread_create(&threads[r].thread, NULL, rank_thread_main, &threads[r]) != 0) {
            abort();
        }
    }
    for (int32_t r = 0; r < ranks; r++) {
        (void)pthread_join(threads[r].thread, NULL);
    }
}

static inline nd_status rank_execute(rank_thread *self, const nd_call *call, const nd_members *members)
{
    self->status = self->comm->table->execute(self->comm, self->rank, call, members, &self->err);
    return self->status;
}

static inline nd_members rank_world(const rank_thread *self)
{
    return (nd_members){.first = 0, .stride = 1, .count = self->ranks, .index = self->rank};
}

static inline void rank_sleep_us(int64_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&time, NULL);
}

static inline nd_comm *rank_comm_open(int32_t ranks)
{
    nd_comm *comm = NULL;
    nd_error err = {0};
    ND_ASSERT_OK(nd_comm_thread_open(ranks, true, &comm, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(comm);
    return comm;
}

#endif
