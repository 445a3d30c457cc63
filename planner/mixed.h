/** What a cluster of several kinds of node is best used as. docs/MODEL.md, "Mixed clusters".
 *
 * Three ways are tried: each part alone; all GPUs as if they were of the slowest kind; pipeline stages placed by kind,
 * with the layers divided so that the slowest stage is as fast as possible. The last one is 1F1B with the same
 * dp x cp x tp in every stage; every order of two or more parts is tried.
 */
#ifndef ND_PLANNER_MIXED_H
#define ND_PLANNER_MIXED_H

#include "planner/search.h"
#include "topologies/mixed_cluster.h"

ND_BEGIN_DECLS

enum {
    ND_MIXED_STAGES_MAX = 64, /* of a pipeline over several kinds: deeper ones are not tried */
    ND_MIXED_ORDERS_SHOWN = 4,
    ND_MIXED_OPTIONS_MAX = ND_MIXED_PARTS_MAX + 1 + ND_MIXED_ORDERS_SHOWN,
};

/* X(enumerator, name) */
#define ND_MIXED_WAY_LIST(X)                                                                                           \
    X(ND_MIXED_ALONE, "alone")     /* one part; the others idle */                                                     \
    X(ND_MIXED_SLOWEST, "slowest") /* all GPUs at the pace of the slowest kind */                                      \
    X(ND_MIXED_STAGES, "stages")   /* pipeline stages placed by kind */

typedef enum nd_mixed_way {
#define ND_MIXED_WAY_ENUM(name, text) name,
    ND_MIXED_WAY_LIST(ND_MIXED_WAY_ENUM)
#undef ND_MIXED_WAY_ENUM
        ND_MIXED_WAY_COUNT
} nd_mixed_way;

const char *nd_mixed_way_name(nd_mixed_way way); /* "alone", "slowest", "stages" */

/** Stages on one part; the whole pipeline for ND_MIXED_ALONE and ND_MIXED_SLOWEST. */
typedef struct nd_mixed_group {
    int32_t part; /* index into the cluster's parts; -1: all of them */
    int32_t stages;
    int64_t layers;
    int64_t gpus;               /* used */
    double slowest_stage_s;     /* one micro-batch, forward and backward; 0 when not placed by kind */
    nd_memory_breakdown memory; /* of its fullest stage */
} nd_mixed_group;

typedef struct nd_mixed_option {
    nd_mixed_way way;
    bool found;
    char why_not[256]; /* when not found */
    nd_layout layout;  /* pp counts the stages of all groups */
    nd_time_breakdown time;
    double tokens_per_s;
    double mfu_frac;   /* against the peaks of the GPUs used, each its own */
    int64_t gpus;      /* used */
    int64_t idle_gpus; /* of all parts */
    int32_t groups_count;
    nd_mixed_group groups[ND_MIXED_PARTS_MAX];
    int32_t stage_layers[ND_MIXED_STAGES_MAX]; /* ND_MIXED_STAGES only */
} nd_mixed_option;

typedef struct nd_mixed_input {
    const nd_mixed_cluster *cluster;
    const nd_cost_context *parts[ND_MIXED_PARTS_MAX]; /* one for each part: same model, batch and stack */
    const nd_framework *framework;                    /* may be NULL */
    const nd_search_options *options;                 /* pins, limits and control; the rest is not looked at */
} nd_mixed_input;

typedef struct nd_mixed_plan {
    int32_t count;
    nd_mixed_option options[ND_MIXED_OPTIONS_MAX]; /* parts alone, slowest, then orders of stages, best first */
    int32_t best;                                  /* index of the fastest; -1 when nothing fits */
    int64_t searched;                              /* layouts looked at, all ways */
    int64_t stages_unfit;                          /* legal pipelines by kind that need more memory than there is */
    bool interrupted;                              /* the control stopped it: what was found until then */
    double elapsed_s;
} nd_mixed_plan;

/** Compare the three ways.
 * \return ND_EINVAL when no way can meet the pins and limits, ND_ENOMEM. That nothing fits is no failure. */
nd_status nd_mixed_search(const nd_mixed_input *input, nd_mixed_plan *out, nd_error *err) ND_NODISCARD;

/** The fullest group: least left of its own GPU's memory. */
const nd_mixed_group *nd_mixed_fullest(const nd_mixed_option *option);

ND_END_DECLS

#endif
