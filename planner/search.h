/** Complete enumeration of pp x dp_replicate x dp_shard x cp x tp x ep, sequence parallelism, micro-batch,
 * accumulation, sharding, recompute, vpp and cp method; the ranked best of it. */
#ifndef ND_PLANNER_SEARCH_H
#define ND_PLANNER_SEARCH_H

#include "planner/constraints.h"
#include "planner/plan.h"

ND_BEGIN_DECLS

typedef struct nd_search_options {
    int32_t top; /* plans to return, 1..ND_PLANS_MAX */
    nd_objective objective;
    nd_layout pin;      /* values of the pinned keys ... */
    uint32_t pinned;    /* ... bit (1u << nd_layout_key) set when pinned */
    nd_layout max;      /* upper limits of degrees ... */
    uint32_t limited;   /* ... bit set when limited (degrees and micro_batch only) */
    bool include_unfit; /* also rank layouts that do not fit */
} nd_search_options;

nd_search_options nd_search_options_default(void); /* top 10, throughput, nothing pinned */

/** Search all layouts of context->cluster->gpus ranks.
 *
 * \param[in]  framework may be NULL (the stack's abilities alone decide)
 * \param[out] out       plans may be empty: then rejections say why, and `closest` what comes nearest.
 *                       Free with nd_plan_list_free().
 * \return ND_EINVAL for contradictory pins or limits, ND_ENOMEM.
 * Two layouts of equal time rank by memory, then by fewer axes: the order is total, the same on every run.
 */
nd_status nd_search(const nd_cost_context *context, const nd_framework *framework, const nd_search_options *options,
                    nd_plan_list *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
