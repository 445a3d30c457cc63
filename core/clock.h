/** Time that only goes forward, for durations. */
#ifndef ND_CORE_CLOCK_H
#define ND_CORE_CLOCK_H

#include "core/decls.h"

ND_BEGIN_DECLS

/** Seconds since some moment before the process began. */
double nd_monotonic_s(void);

ND_END_DECLS

#endif
