/** The hard rules in groups, so that a search checks each group once per loop level.
 *
 * nd_layout_allowed() runs the groups in this order and then the framework's rules. A group looks only at what
 * is named here, which is what lets a search count everything below a broken rule without looking at it.
 */
#ifndef ND_PLANNER_CONSTRAINTS_INTERNAL_H
#define ND_PLANNER_CONSTRAINTS_INTERNAL_H

#include "planner/constraints.h"

ND_BEGIN_DECLS

/** Every count at least 1, enumerators in range, and as many ranks as GPUs: holds by construction in a search. */
bool nd_rules_shape(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal);

/** tp, cp, cp_method, sequence_parallel, ep against model, sequence and stack. */
bool nd_rules_block(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal);

/** recompute, recompute_every, offload. */
bool nd_rules_memory_modes(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                           nd_refusal *refusal);

/** pp, vpp, schedule, split. */
bool nd_rules_pipeline(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal);

/** dp_replicate, dp_shard, ep in the mesh, sharding, micro_batch, grad_accum. */
bool nd_rules_data(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal);

/** Whether the stack can run `value` of an enumeration (one bit per enumerator). */
static inline bool nd_mask_has(uint32_t mask, int value)
{
    return (mask >> value & 1u) != 0;
}

/** Write "KEY=A or KEY=B" into refusal->nearest: the nearest values below and above `value`, both dividing
 * `divides` (0: anything), up to `max`, for which `legal` holds. False always. */
typedef bool (*nd_degree_test)(const nd_cost_context *context, const nd_layout *layout, int64_t value);
bool nd_nearest_degree(const nd_cost_context *context, const nd_layout *layout, const char *key, int64_t value,
                       int64_t divides, int64_t max, nd_degree_test legal, nd_refusal *refusal);

ND_END_DECLS

#endif
