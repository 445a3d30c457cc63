/** What the three limits share: one search for each value, remembered. Private to planner/. */
#ifndef ND_PLANNER_LIMITS_INTERNAL_H
#define ND_PLANNER_LIMITS_INTERNAL_H

#include "planner/limits.h"

ND_BEGIN_DECLS

enum { ND_LIMIT_SEEN_MAX = 320 };

/** Levels of certainty. */
typedef enum nd_limit_level { ND_LEVEL_SURE, ND_LEVEL_POSSIBLE, ND_LEVEL_COUNT } nd_limit_level;

typedef struct nd_limit_seen {
    int64_t value;
    bool reached[ND_LEVEL_COUNT];
    bool legal;
    double least_bytes; /* peak of the layout that needs least, where nothing fits */
} nd_limit_seen;

typedef struct nd_limit_hunt nd_limit_hunt;
struct nd_limit_hunt {
    const nd_task *task;
    uint32_t pinned;
    nd_layout pin;
    nd_limit *out;
    int32_t count;
    nd_limit_seen seen[ND_LIMIT_SEEN_MAX];
    nd_point point; /* the last one searched */
    bool point_is_rough;
    /** Search one value into hunt->point. `rough`: only whether something fits is asked, so that what does not decide
     * that may be left out; the plans are any that fit then. */
    nd_status (*search)(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err);
};

/** What hunt->search does in the end: search the point of these inputs into hunt->point. */
nd_status nd_limit_search(nd_limit_hunt *hunt, int64_t value, const nd_cluster_spec *cluster,
                          const nd_train_spec *train, uint32_t pinned, bool rough, nd_error *err) ND_NODISCARD;

/** What is known of `value`, searched when it is not. */
nd_status nd_limit_look(nd_limit_hunt *hunt, int64_t value, nd_limit_seen *out, nd_error *err) ND_NODISCARD;

/** The same with the plans, in hunt->point. */
nd_status nd_limit_look_again(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err) ND_NODISCARD;

/** Search `value` and keep it. */
nd_status nd_limit_take(nd_limit_hunt *hunt, int64_t value, bool *has, nd_point *out, nd_error *err) ND_NODISCARD;

/** An empty result and a hunt for it; the caller frees it. NULL when out of memory. */
nd_limit_hunt *nd_limit_start(const nd_task *task, nd_limit_quantity quantity, nd_limit *out);

/** ND_EINVAL when nothing was found because the pins contradict each other. */
nd_status nd_limit_check_pins(const nd_limit *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
