/** Arithmetic of whole numbers that libc lacks. */
#ifndef ND_CORE_INTEGERS_H
#define ND_CORE_INTEGERS_H

#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/** Of two numbers of which none is negative; gcd(a, 0) is a. */
int64_t nd_greatest_common_divisor(int64_t a, int64_t b);

/** Of two positive numbers; the result must fit. */
int64_t nd_least_common_multiple(int64_t a, int64_t b);

ND_END_DECLS

#endif
