/* A pool runs every turn once, whatever the number of threads. */
#include <stdatomic.h>
#include <string.h>

#include "core/pool.h"
#include "tests/nd_test.h"

enum { TURNS = 10000 };

typedef struct tally {
    atomic_int turns[TURNS];
    atomic_int strangers; /* turns of a worker that does not exist */
    int32_t threads;
} tally;
static tally seen;

static void count_turn(void *shared, int64_t index, int32_t worker)
{
    tally *t = shared;
    atomic_fetch_add(&t->turns[index], 1);
    if (worker < 0 || worker >= t->threads) {
        atomic_fetch_add(&t->strangers, 1);
    }
}

static void test_every_turn_runs_once(void)
{
    static const int32_t threads[] = {1, 2, 3, 16};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        nd_pool *pool = nd_pool_create(threads[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
        memset(&seen, 0, sizeof seen);
        seen.threads = nd_pool_threads(pool);
        CU_ASSERT_TRUE(seen.threads >= 1 && seen.threads <= threads[i]);
        for (int loop = 0; loop < 20; loop++) { /* one after the other on the same threads */
            nd_pool_run(pool, TURNS, count_turn, &seen);
        }
        int wrong = 0;
        for (int t = 0; t < TURNS; t++) {
            wrong += atomic_load(&seen.turns[t]) != 20;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        CU_ASSERT_EQUAL(atomic_load(&seen.strangers), 0);
        nd_pool_free(pool);
    }
}

static void test_no_turns_and_no_pool(void)
{
    nd_pool *pool = nd_pool_create(2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    memset(&seen, 0, sizeof seen);
    nd_pool_run(pool, 0, count_turn, &seen);
    CU_ASSERT_EQUAL(atomic_load(&seen.turns[0]), 0);
    nd_pool_free(pool);
    nd_pool_free(NULL);
    CU_ASSERT_TRUE(nd_pool_processors() >= 1 && nd_pool_processors() <= ND_THREADS_MAX);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_turn_runs_once),
        ND_TEST(test_no_turns_and_no_pool),
        {NULL, NULL},
    };
    return nd_test_main("pool", cases);
}
