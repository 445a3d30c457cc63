/** Of measured values. */
#ifndef ND_CORE_STATS_H
#define ND_CORE_STATS_H

#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/** Middle value, or the mean of the two. Sorts `values`; `count` is at least 1, and there is no NaN. */
double nd_median(double *values, int64_t count);

ND_END_DECLS

#endif
