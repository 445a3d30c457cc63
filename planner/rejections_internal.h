/** Counts of what was rejected, by rule, and for each rule the layout that stands for it. */
#ifndef ND_PLANNER_REJECTIONS_INTERNAL_H
#define ND_PLANNER_REJECTIONS_INTERNAL_H

#include "planner/plan.h"

ND_BEGIN_DECLS

/** What broke a rule: one layout, or all layouts of a branch. */
typedef struct nd_tally {
    const char *rule; /* static id */
    int64_t count;
    int64_t order;     /* of the example in the enumeration: the first of all stands, whichever was counted first */
    nd_layout example; /* complete */
} nd_tally;

typedef struct nd_rejections {
    nd_tally entries[ND_REJECTIONS_MAX];
    int32_t count;
} nd_rejections;

/** Count `count` layouts under a rule. A table that is full counts all further rules under its last entry, "other". */
void nd_rejections_count(nd_rejections *rejections, const char *rule, int64_t count, int64_t order,
                         const nd_layout *example);

/** Add the counts of another table: the sum does not depend on the order in which tables are added. */
void nd_rejections_merge(nd_rejections *rejections, const nd_rejections *other);

/** Most frequent first; equal counts by rule id. */
void nd_rejections_sort(nd_rejection *entries, int32_t count);

ND_END_DECLS

#endif
