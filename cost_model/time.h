/** Step time in closed form. Private building block of the estimate. docs/MODEL.md, "Step time". */
#ifndef ND_COST_MODEL_TIME_H
#define ND_COST_MODEL_TIME_H

#include "cost_model/estimate.h"
#include "cost_model/stage_work.h"

ND_BEGIN_DECLS

/** The pipeline as a whole: the busiest stage, and what the others add while it fills and drains.
 *
 * On a given cluster it depends on `prices`, pp, vpp, schedule, split and whether nd_stage_accumulates(), and on
 * nothing else: layouts that differ only in dp_replicate, dp_shard, sharding or grad_accum share it. */
typedef struct nd_pipeline {
    nd_stage_work busiest;              /* of one micro-batch */
    int32_t busiest_stage;              /* the first of them */
    int64_t counts[ND_LAYER_KINDS_MAX]; /* layers of the busiest stage by kind */
    double sum_s;                       /* of all stages, one micro-batch */
    double send_s;                      /* one transfer between stages */
    double send_host_s;                 /* host time of it that nothing hides */
    double bubble_s;                    /* idle time of the busiest stage in one step */
} nd_pipeline;

/** Seconds of one transfer between neighbouring stages; 0 without a pipeline. */
double nd_stage_send_s(const nd_cost_context *context, const nd_layout *layout);

/** Price the stages; each distinct one once. */
void nd_price_pipeline(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                       nd_pipeline *out);

/** The same for a layout whose layers are divided already (nd_split_stages()). */
void nd_price_pipeline_split(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                             const nd_stage_split *split, nd_pipeline *out);

/** Step time of a layout whose pipeline is priced. */
void nd_estimate_time_piped(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                            const nd_pipeline *pipeline, nd_time_breakdown *out);

/** What the pipeline alone says about a step: all terms but data parallelism, the optimizer and offloading. step_s is
 * their sum with stragglers: every step of this pipeline takes longer. */
void nd_time_without_data_parallel(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *pipeline,
                                   nd_time_breakdown *out);

/** Seconds of one step in which the busiest stage waits for offloaded weights or activations (of time->offload_s). */
double nd_offload_exposed_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                            const nd_pipeline *pipeline);

/** nd_price_pipeline + nd_estimate_time_piped. */
void nd_estimate_time(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                      nd_time_breakdown *out);

ND_END_DECLS

#endif
