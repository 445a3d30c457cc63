/** Complete enumeration of pp x dp_replicate x dp_shard x cp x tp x ep, sequence parallelism, micro-batch,
 * accumulation, sharding, recompute, vpp and cp method; the ranked best of it.
 *
 * Enumerated: every factorisation of the GPU count over the five axes, every ep that divides dp_shard x cp x tp, and of
 * the modes those that the stack has. Caps, unless the key is pinned: micro_batch up to 64 (all divisors), vpp up to 8
 * (all that cut the layers equally), recompute none, selective, full and every:2; offload none.
 *
 * The list is one plan per mesh (pp, dp_replicate, dp_shard, cp, tp, ep), its best variant, because ten plans that
 * differ only in sharding mode or micro-batch would hide the choices that matter. When that variant is only
 * borderline, the mesh's best that surely fits is listed too. Borderline plans whose expected peak is above the
 * capacity come after all others, and a list of two or more holds the best plan that surely fits. Places that are left
 * when fewer meshes fit than were asked for go to the best other variants. Pin a mesh to see all of its variants.
 */
#ifndef ND_PLANNER_SEARCH_H
#define ND_PLANNER_SEARCH_H

#include "planner/constraints.h"
#include "planner/plan.h"

ND_BEGIN_DECLS

/** How a search runs; no result depends on it. All zero: as many threads as processors, nothing is told. */
typedef struct nd_search_control {
    int32_t threads; /* 0: as many as there are processors; at most ND_THREADS_MAX */
    /** Called now and then by the caller's thread with the part that is done; false: stop, and return what is known.
     * May be NULL. */
    bool (*progress)(void *data, double done_frac);
    void *data; /* of progress */
} nd_search_control;

typedef struct nd_search_options {
    int32_t top; /* plans to return, 1..ND_PLANS_MAX */
    nd_objective objective;
    nd_layout pin;    /* values of the pinned keys ... */
    uint32_t pinned;  /* ... bit (1u << nd_layout_key) set when pinned */
    nd_layout max;    /* upper limits of degrees ... */
    uint32_t limited; /* ... bit set when limited (degrees and micro_batch only) */
    bool front; /* instead of a ranked list every layout that no other one beats in step time and peak memory at once:
                 * `top` and `objective` do not matter, and plans may be more than ND_PLANS_MAX */
    bool include_unfit; /* also rank layouts that do not fit */
    bool exhaustive;    /* look at every layout, however slow: for tests and comparisons; the plans are the same */
    bool plans_only;    /* rejections and their counts are not asked for: which bound left a layout out is not told
                         * apart, which saves time; the plans and the closest layout are the same */
    bool until_sure;  /* ask only whether something surely fits, or is expected to: end with the first round that finds
                       * it, whatever its  time. When nothing does, the closest layout is the same as without */
    bool any_closest; /* where nothing fits, it does not matter how close the closest layout comes */
    nd_search_control control;
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
