/** The best layouts seen so far, bounded, in one total order. */
#ifndef ND_PLANNER_RANKING_INTERNAL_H
#define ND_PLANNER_RANKING_INTERNAL_H

#include "planner/plan.h"

ND_BEGIN_DECLS

/** A layout and what it is ranked by. */
typedef struct nd_ranked {
    nd_layout layout;
    double step_s;
    double peak_bytes;
    double capacity_bytes;
    nd_verdict verdict;
} nd_ranked;

/** Which layouts count as the same entry, of which only the best is kept. */
typedef enum nd_ranking_key {
    ND_RANKING_EVERY_LAYOUT,
    ND_RANKING_MESH_AND_VERDICT /* pp, dp_replicate, dp_shard, cp, tp, ep, and whether it surely fits */
} nd_ranking_key;

typedef struct nd_ranking {
    nd_objective objective;
    nd_ranking_key key;
    nd_ranked *entries; /* borrowed, best first */
    int32_t capacity, count;
    uint32_t *tags; /* borrowed, `capacity` of them: equal where keys are, so that most entries need not be read while
                     * one is looked for in a long list. NULL: all are read */
} nd_ranking;

/** Less than 0 when `a` ranks before `b`; 0 only for the same layout. Layouts that will rather run out of memory than
 * not (peak above capacity) come after the others, and those that do not fit last; then time and peak memory (or the
 * other way round), fewer axes in use, and the layout's fields in order. */
int nd_ranked_compare(nd_objective objective, const nd_ranked *a, const nd_ranked *b);

/** Axes (ep among them) of more than one rank. */
int nd_axes_in_use(const nd_layout *layout);

/** Same pp, dp_replicate, dp_shard, cp, tp and ep. */
bool nd_same_mesh(const nd_layout *a, const nd_layout *b);

/** All fields the same. */
bool nd_same_layout(const nd_layout *a, const nd_layout *b);

/** 0: rather fits than not; 1: rather not; 2: surely not. */
int nd_memory_doubt(const nd_memory_breakdown *memory);

/** Take `candidate` in when it is among the best `capacity` entries of distinct key. */
void nd_ranking_add(nd_ranking *ranking, const nd_ranked *candidate);

/** Put entries whose time changed in order again. */
void nd_ranking_sort(nd_ranking *ranking);

/** Least peak memory first, then the layout's fields in order: total, whatever the time. */
int nd_ranked_compare_memory(const nd_ranked *a, const nd_ranked *b);

/** Whether the list is full of entries that rank before `bound`: nothing that is no better than it gets in. */
bool nd_ranking_is_closed(const nd_ranking *ranking, const nd_ranked *bound);

/** Whether nd_ranking_add() would change anything: asked with a lower bound of the time, it saves the estimate. */
bool nd_ranking_would_take(const nd_ranking *ranking, const nd_ranked *candidate);

/** The list that a user sees, at most `top` entries, sorted: the best of each mesh in `meshes` (a borderline one does
 * not hide the best that surely fits; when that is also faster, it stands alone), then, when there are
 * fewer meshes than `top`, the best other layouts of `all`. `safe` (NULL: none), the best layout that surely fits, has
 * the last place when no other one fits as surely. \return entries written */
int32_t nd_ranking_choose(const nd_ranking *meshes, const nd_ranking *all, const nd_ranked *safe, int32_t top,
                          nd_ranked *out);

ND_END_DECLS

#endif
