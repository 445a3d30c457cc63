/** Memory that nobody may read: every floating-point type reads all ones as NaN, and integers as -1. The address
 * sanitizer and valgrind are told, too, where the program is built with the one or runs under the other. */
#ifndef ND_EXECUTOR_POISON_INTERNAL_H
#define ND_EXECUTOR_POISON_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "core/decls.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ND_POISON_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ND_POISON_ASAN
#endif
#ifdef ND_POISON_ASAN
#include <sanitizer/asan_interface.h>
#elif defined(__has_include) && !defined(__CPPCHECK__) /* cppcheck cannot evaluate it */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h> /* a few instructions without effect when not under valgrind */
#define ND_POISON_MEMCHECK
#endif
#endif

ND_BEGIN_DECLS

static inline void nd_poison(void *memory, size_t bytes)
{
    memset(memory, 0xff, bytes);
#ifdef ND_POISON_ASAN
    ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
#ifdef ND_POISON_MEMCHECK
    (void)VALGRIND_MAKE_MEM_NOACCESS(memory, bytes);
#endif
}

/** It may be written from now on. */
static inline void nd_poison_lift(void *memory, size_t bytes)
{
#ifdef ND_POISON_ASAN
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
#ifdef ND_POISON_MEMCHECK
    (void)VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
#endif
    (void)memory;
    (void)bytes;
}

ND_END_DECLS

#endif
