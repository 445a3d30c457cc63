/** A few threads that share a loop. The only place that knows about threads. */
#ifndef ND_CORE_POOL_H
#define ND_CORE_POOL_H

#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_THREADS_MAX = 256 };

typedef struct nd_pool nd_pool;

/** One turn of the loop. Turns run in any order and at the same time, so they may share only what none of them writes.
 * \param[in] worker  0 .. threads - 1: which thread runs it, for scratch memory of its own */
typedef void (*nd_pool_turn)(void *shared, int64_t index, int32_t worker);

/** Processors that this process may use, at least 1. */
int32_t nd_pool_processors(void);

/** \param[in] threads  1 .. ND_THREADS_MAX, the caller's own among them; fewer when the system gives no more
 * \return NULL when out of memory */
nd_pool *nd_pool_create(int32_t threads);
void nd_pool_free(nd_pool *pool); /* NULL is fine */

int32_t nd_pool_threads(const nd_pool *pool);

/** Run `turn` for every index in 0 .. count - 1; returns when all are done. One loop at a time. */
void nd_pool_run(nd_pool *pool, int64_t count, nd_pool_turn turn, void *shared);

ND_END_DECLS

#endif
