/** The tables of the framework files, and what several of them check in the same way. */
#ifndef ND_FRAMEWORKS_FRAMEWORKS_INTERNAL_H
#define ND_FRAMEWORKS_FRAMEWORKS_INTERNAL_H

#include "frameworks/framework.h"
#include "frameworks/refusal.h"

ND_BEGIN_DECLS

extern const nd_framework nd_framework_accelerate;
extern const nd_framework nd_framework_axolotl;
extern const nd_framework nd_framework_torchtitan;
extern const nd_framework nd_framework_torchtitan_main;
extern const nd_framework nd_framework_megatron;
extern const nd_framework nd_framework_deepspeed;
extern const nd_framework nd_framework_nanotron;
extern const nd_framework nd_framework_pytorch_ddp;
extern const nd_framework nd_framework_ndplan;

/** One rule of a framework: true when the layout keeps it; otherwise it refuses. Rules run in table order. */
typedef bool (*nd_framework_rule)(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                                  const char **rule, nd_refusal *refusal);

/** Apply `rules` (ends with NULL) until one refuses. */
bool nd_framework_apply(const nd_framework_rule *rules, const nd_model_spec *model, const nd_layout *layout,
                        const nd_train_spec *train, const char **rule, nd_refusal *refusal);

/** The nearest degrees that divide `count`, written as "tp=4 or tp=8"; the upper one only up to `max`. */
bool nd_refuse_nearest_divisor(nd_refusal *refusal, const char *key, int64_t value, int64_t count, int64_t max);

/** The parts of FSDP2 that Accelerate and Axolotl share. `name` is what messages call the framework, `id` the
 * prefixed rule id. */
bool nd_fsdp2_replicate_needs_shard(const char *name, const char *id, const nd_layout *layout, const char **rule,
                                    nd_refusal *refusal);
/** Tensor-parallel plans of transformers: one must exist, and key-value heads must divide where attention does. */
bool nd_transformers_tp_plan(const char *name, const char *plan_id, const char *heads_id, const nd_model_spec *model,
                             const nd_layout *layout, const char **rule, nd_refusal *refusal);
/** FSDP2 shards gradients and optimizer at least (zero2 or zero3), moves all state to the host or none, and shards
 * over cp whenever cp is on. */
bool nd_fsdp2_sharding(const char *name, const char *id, const nd_layout *layout, const char **rule,
                       nd_refusal *refusal);
bool nd_fsdp2_offload(const char *name, const char *id, const nd_layout *layout, const char **rule,
                      nd_refusal *refusal);

/** Shorthand for layout->size[...]. */
static inline int32_t nd_degree(const nd_layout *layout, nd_axis axis)
{
    return layout->size[axis];
}

ND_END_DECLS

#endif
