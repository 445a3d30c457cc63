/** Random numbers without state: a function of seed, stream and index, so that they do not depend on who draws them or
 * in which order. The bits are those of SplitMix64's finaliser (Steele, Lea and Flood 2014) over a counter. */
#ifndef ND_EXECUTOR_RANDOM_H
#define ND_EXECUTOR_RANDOM_H

#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

uint64_t nd_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/** 0 <= x < 1, 53 bits. */
double nd_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

/** Mean 0, deviation 1 (Box and Muller 1958); equal on machines with equal log, cos and sqrt. */
double nd_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

ND_END_DECLS

#endif
