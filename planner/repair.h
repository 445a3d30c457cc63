/** From a layout that is not legal to the nearest one that is: every rule it breaks, one after the other. */
#ifndef ND_PLANNER_REPAIR_H
#define ND_PLANNER_REPAIR_H

#include "planner/constraints.h"

ND_BEGIN_DECLS

enum { ND_REPAIR_STEPS_MAX = 5, ND_REPAIR_TEXT_MAX = 160 };

/** A broken rule and the change that satisfies it. */
typedef struct nd_repair_step {
    nd_refusal refusal;
    char change[ND_REPAIR_TEXT_MAX]; /* "tp=2,dp_shard=8", "--seq-len 4096"; empty: none was found */
} nd_repair_step;

typedef struct nd_repair {
    int32_t count;                             /* rules broken; 0: the layout is legal */
    nd_repair_step steps[ND_REPAIR_STEPS_MAX]; /* the first is that of nd_layout_broken() */
    bool found;                                /* after the last change the layout is legal: */
    nd_layout layout;
    nd_train_spec train; /* differs when a rule asks for another sequence, batch or attention kernel */
    nd_estimate estimate;
} nd_repair;

/** The rule that a user wants to hear of first: the framework's own, when one was named, else the first hard rule.
 * \param[in] framework may be NULL
 * \return false when the layout is legal */
bool nd_layout_broken(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      nd_refusal *refusal);

/** Follow the nearest legal values of each broken rule until the layout is legal. Of the ways of equally few steps one
 * that keeps the training, then one that fits, then the fastest. Degrees that change take ranks from dp_shard or give
 * them to it, and accumulation follows the global batch.
 *
 * \param[in] given  bit (1u << nd_layout_key) of what the user wrote: sharding, sp and schedule that nobody wrote
 * follow from the stack
 */
void nd_layout_repair(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      uint32_t given, nd_repair *out);

ND_END_DECLS

#endif
