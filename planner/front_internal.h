/** What step time and memory trade for one another on one cluster: every layout that no other one beats in both.
 *
 * A search ranks by the closed form of the step, and the few layouts that it keeps are timed again by simulation. So
 * that the front of the simulated steps is found too, a layout stays until one is at least as small and faster by
 * `margin_frac` and more.
 */
#ifndef ND_PLANNER_FRONT_INTERNAL_H
#define ND_PLANNER_FRONT_INTERNAL_H

#include "planner/plan.h"
#include "planner/ranking_internal.h"

ND_BEGIN_DECLS

/** Something kept is at least as fast and as small. */
typedef struct nd_front_corner {
    double step_s, peak_bytes;
} nd_front_corner;

/** All zero: empty, without a margin. */
typedef struct nd_front {
    double margin_frac;
    nd_front_corner *corners; /* ascending in time, descending in memory */
    int32_t corners_count, corners_capacity;
    nd_ranked *entries; /* in no order; those that are beaten by now go when the array is full */
    int32_t count, capacity;
    bool failed; /* out of memory: the front is not complete */
} nd_front;

/** Whether a layout of at least this time and memory is beaten. One that equals another in both is not. */
bool nd_front_beats(const nd_front *front, double step_s, double peak_bytes);

/** Take `candidate` in unless it is beaten, or will rather run out of memory than not. */
void nd_front_add(nd_front *front, const nd_ranked *candidate);

/** Take all of `other` in. */
void nd_front_merge(nd_front *front, const nd_front *other);

/** Forget the entries, keep the memory. */
void nd_front_clear(nd_front *front);

/** Once the times are final: only what no entry beats, without a margin, fastest first; of layouts equal in time and
 * memory the first in the order of nd_ranked_compare(). */
void nd_front_finish(nd_front *front);

/** nd_front_finish(), and room in `list` for what it leaves: as many plans as it comes out. \return ND_ENOMEM */
nd_status nd_front_list(nd_front *front, nd_plan_list *list, nd_error *err) ND_NODISCARD;

void nd_front_free(nd_front *front);

ND_END_DECLS

#endif
