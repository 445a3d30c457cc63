/** What a library that was not built with a sanitizer reads and writes: told to the sanitizer, which would see none of
 * it. Nothing in other builds. */
#ifndef ND_EXECUTOR_CPU_TOUCH_INTERNAL_H
#define ND_EXECUTOR_CPU_TOUCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/decls.h"

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define ND_TOUCH_THREAD
#endif
#if __has_feature(address_sanitizer)
#define ND_TOUCH_ADDRESS
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define ND_TOUCH_THREAD
#endif
#ifdef __SANITIZE_ADDRESS__
#define ND_TOUCH_ADDRESS
#endif

ND_BEGIN_DECLS

#ifdef ND_TOUCH_THREAD
/* Of the sanitizer's run-time library: what compilers call before accesses. */
extern void __tsan_read_range(void *address, unsigned long bytes);
extern void __tsan_write_range(void *address, unsigned long bytes);
#endif
#ifdef ND_TOUCH_ADDRESS
extern void __asan_loadN(void *address, size_t bytes);
extern void __asan_storeN(void *address, size_t bytes);
#endif

static inline void nd_touch(void *memory, size_t bytes, bool writes)
{
#if defined(ND_TOUCH_THREAD)
    writes ? __tsan_write_range(memory, bytes) : __tsan_read_range(memory, bytes);
#elif defined(ND_TOUCH_ADDRESS)
    writes ? __asan_storeN(memory, bytes) : __asan_loadN(memory, bytes);
#else
    (void)memory;
    (void)bytes;
    (void)writes;
#endif
}

/** A row-major matrix with `stride_bytes` from row to row. */
static inline void nd_touch_rows(const void *matrix, int64_t rows, size_t row_bytes, size_t stride_bytes, bool writes)
{
#if defined(ND_TOUCH_THREAD) || defined(ND_TOUCH_ADDRESS)
    for (int64_t row = 0; row < rows; row++) {
        nd_touch((char *)matrix + (size_t)row * stride_bytes, row_bytes, writes);
    }
#else
    (void)matrix;
    (void)rows;
    (void)row_bytes;
    (void)stride_bytes;
    (void)writes;
#endif
}

ND_END_DECLS

#endif
