/** Everything that the report of one layout shows, computed once for text, JSON and CSV. */
#ifndef ND_REPORTS_ESTIMATE_VIEW_H
#define ND_REPORTS_ESTIMATE_VIEW_H

#include "cost_model/simulate.h"
#include "cost_model/split.h"
#include "planner/bandwidth.h"
#include "planner/constraints.h"
#include "reports/report.h"

ND_BEGIN_DECLS

enum { ND_CHECKPOINT_ROWS = 3 };

/** The same layout with another recompute mode. */
typedef struct nd_checkpoint_row {
    nd_recompute recompute;
    bool allowed;     /* else `rule` says why not and the rest is unset */
    const char *rule; /* static id */
    nd_estimate estimate;
    double saved_frac;  /* of the activation memory without recompute */
    double slower_frac; /* of the step time without recompute */
    bool has_baseline;  /* the mode "none" is allowed, so that the two above are set */
    bool is_this_layout;
} nd_checkpoint_row;

typedef struct nd_estimate_view {
    nd_layout layout;
    nd_estimate estimate;
    nd_stage_split split;
    bool is_simulated; /* else why_not says why not */
    nd_simulation simulation;
    nd_error why_not;
    nd_comm_breakdown comm;
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT]; /* link rates that would hide it */
    int32_t needs_count;
    nd_checkpoint_row checkpoints[ND_CHECKPOINT_ROWS]; /* none, selective, full */
    int64_t effective_batch_seqs;
    double effective_batch_tokens;
    double lr_linear_factor; /* learning rate against one GPU with the same micro-batch and no accumulation */
    double lr_sqrt_factor;
} nd_estimate_view;

/** \param[in] layout  passed nd_layout_allowed() */
void nd_estimate_view_build(const nd_cost_context *cost, const nd_framework *framework, const nd_layout *layout,
                            nd_estimate_view *out);

ND_END_DECLS

#endif
