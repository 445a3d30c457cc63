/** Counts of what was rejected, by rule. */
#ifndef ND_PLANNER_REJECTIONS_INTERNAL_H
#define ND_PLANNER_REJECTIONS_INTERNAL_H

#include "planner/plan.h"

ND_BEGIN_DECLS

typedef struct nd_rejections {
    nd_rejection entries[ND_REJECTIONS_MAX];
    int32_t count;
} nd_rejections;

/** The entry of `rule` (static id), added with count 0 when new (`*is_new`, so that the caller fills the message).
 * A table that is full keeps its last entry for all further rules, called "other". */
nd_rejection *nd_rejections_entry(nd_rejections *rejections, const char *rule, bool *is_new);

/** Most frequent first; equal counts by rule id. */
void nd_rejections_sort(nd_rejections *rejections);

ND_END_DECLS

#endif
