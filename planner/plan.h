/** Ranked plans and the counts of what was rejected. */
#ifndef ND_PLANNER_PLAN_H
#define ND_PLANNER_PLAN_H

#include "cost_model/estimate.h"
#include "frameworks/framework.h"

ND_BEGIN_DECLS

enum { ND_PLANS_MAX = 1000, ND_REJECTIONS_MAX = 64 };

typedef enum nd_objective { ND_OBJECTIVE_THROUGHPUT, ND_OBJECTIVE_MEMORY } nd_objective;

typedef struct nd_plan {
    nd_layout layout;
    nd_estimate estimate;
} nd_plan;

typedef struct nd_rejection {
    const char *rule;  /* static id */
    int64_t count;     /* layouts that broke it first */
    char message[256]; /* of the first such layout, with numbers */
    char nearest[96];  /* nearest legal value, or empty */
} nd_rejection;

typedef struct nd_plan_list {
    nd_plan *plans; /* best first */
    int32_t count;
    nd_rejection rejections[ND_REJECTIONS_MAX]; /* most frequent first */
    int32_t rejections_count;
    int64_t searched;  /* layouts of the space, legal or not: all of them are accounted for */
    int64_t evaluated; /* layouts whose time was estimated */
    int64_t fitting; /* those looked at that fit (borderline ones too); the rule "slower" counts what was not looked at,
                      * since a bound says that it cannot be among the best */
    nd_plan closest; /* when nothing fits: the legal layout that needs least memory */
    bool has_closest;
    nd_plan sure; /* the best plan that surely fits, when none of `plans` does */
    bool has_sure;
    bool interrupted; /* stopped by `progress`: the plans are the best of what was looked at until then */
    double elapsed_s;
} nd_plan_list;

void nd_plan_list_free(nd_plan_list *list); /* frees `plans`; NULL is fine */

ND_END_DECLS

#endif
