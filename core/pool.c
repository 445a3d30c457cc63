#define _GNU_SOURCE /* sched_getaffinity */
#include "core/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct worker {
    nd_pool *pool;
    pthread_t thread;
    int32_t number;
} worker;

struct nd_pool {
    int32_t threads; /* the caller's among them */
    worker *workers; /* the others */
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    /* under the lock */
    int64_t loops; /* begun so far: a change wakes the workers */
    int32_t busy;
    bool closing;
    /* of the current loop */
    nd_pool_turn turn;
    void *shared;
    int64_t count;
    atomic_int_fast64_t next;
};

int32_t nd_pool_processors(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&allowed);
    return count < 1 ? 1 : count > ND_THREADS_MAX ? ND_THREADS_MAX : count;
}

static void take_turns(nd_pool *pool, int32_t number)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= pool->count) {
            return;
        }
        pool->turn(pool->shared, index, number);
    }
}

static void *work(void *argument)
{
    const worker *self = argument;
    nd_pool *pool = self->pool;
    int64_t done = 0;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->loops == done && !pool->closing) {
            (void)pthread_cond_wait(&pool->begin, &pool->lock);
        }
        if (pool->closing) {
            break;
        }
        done = pool->loops;
        (void)pthread_mutex_unlock(&pool->lock);
        take_turns(pool, self->number);
        (void)pthread_mutex_lock(&pool->lock);
        pool->busy--;
        if (pool->busy == 0) {
            (void)pthread_cond_signal(&pool->end);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

nd_pool *nd_pool_create(int32_t threads)
{
    nd_pool *pool = calloc(1, sizeof *pool);
    worker *workers = calloc((size_t)threads, sizeof *workers);
    if (pool == NULL || workers == NULL) {
        free(workers);
        free(pool);
        return NULL;
    }
    pool->workers = workers;
    pool->threads = 1;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->begin, NULL);
    (void)pthread_cond_init(&pool->end, NULL);
    atomic_init(&pool->next, 0);
    for (int32_t i = 1; i < threads; i++) {
        worker *next = &workers[i - 1];
        *next = (worker){.pool = pool, .number = i};
        if (pthread_create(&next->thread, NULL, work, next) != 0) {
            break; /* a limit of the system: fewer threads do the same, slower */
        }
        pool->threads++;
    }
    return pool;
}

void nd_pool_free(nd_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    (void)pthread_cond_broadcast(&pool->begin);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 1; i < pool->threads; i++) {
        (void)pthread_join(pool->workers[i - 1].thread, NULL);
    }
    (void)pthread_cond_destroy(&pool->end);
    (void)pthread_cond_destroy(&pool->begin);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int32_t nd_pool_threads(const nd_pool *pool)
{
    return pool->threads;
}

void nd_pool_run(nd_pool *pool, int64_t count, nd_pool_turn turn, void *shared)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->turn = turn;
    pool->shared = shared;
    pool->count = count;
    atomic_store(&pool->next, 0);
    pool->busy = pool->threads - 1;
    pool->loops++;
    if (pool->busy > 0) {
        (void)pthread_cond_broadcast(&pool->begin);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    take_turns(pool, 0);
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0) {
        (void)pthread_cond_wait(&pool->end, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
}
