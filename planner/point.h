/** The best layouts at one point of a family of inputs that differ in one quantity: what limits and sweeps ask. */
#ifndef ND_PLANNER_POINT_H
#define ND_PLANNER_POINT_H

#include "planner/search.h"

ND_BEGIN_DECLS

/** What all points have in common. */
typedef struct nd_task {
    const nd_cost_context *context;
    const nd_framework *framework; /* NULL: the stack's abilities alone decide */
    uint32_t pinned;               /* keys that the user fixed, bit (1u << nd_layout_key) ... */
    nd_layout pin;                 /* ... and their values */
    bool whole_layout;             /* the user gave a whole layout: `pin` has a value for every key */
    bool batch_given;              /* the global batch is the user's, else it may follow the quantity */
    int64_t batch_tokens;          /* the user gave the batch in tokens: it stays so; 0: in sequences */
    nd_search_control control;     /* of every search of the task */
} nd_task;

/** What a search found at one point. The cluster and training are those of the point. */
typedef struct nd_point {
    int64_t value; /* of the quantity */
    nd_cluster_spec cluster;
    nd_train_spec train;
    bool fits; /* surely or borderline: `best` is the first plan, as `ndplan suggest` ranks them */
    nd_plan best;
    bool fits_likely; /* the expected peak of `best` is within the memory (nd_memory_doubt() is 0) */
    bool fits_surely; /* `sure` is the best of the plans that surely fit */
    nd_plan sure;
    bool has_closest; /* nothing is expected to fit, but something is legal: `closest` needs least memory */
    nd_plan closest;
    bool contradictory; /* the pins contradict each other or this point: nothing was searched */
    char reason[512];   /* when nothing is legal: the rule that most layouts broke, or the contradiction of the pins */
} nd_point;

/** Search one point. Contradictory pins are no failure: nothing fits then, and `reason` says why.
 *
 * \param[in]  value    kept in the result
 * \param[in]  cluster, train  of the point, copied
 * \param[in]  pinned, pin     as in the task, for what this point fixes
 * \return ND_ENOMEM, ND_EINVAL when the GPU cannot compute in the precision, ND_EINTERRUPTED when the control stops it.
 */
nd_status nd_point_search(const nd_task *task, int64_t value, const nd_cluster_spec *cluster,
                          const nd_train_spec *train, uint32_t pinned, const nd_layout *pin, nd_point *out,
                          nd_error *err) ND_NODISCARD;

/** The same where only fits, fits_surely and, when nothing fits, the closest layout matter: faster, and `best` and
 * `sure` are some plans that fit, not the best. \param[in] any_closest  of the closest layout only matters that there
 * is one */
nd_status nd_point_ask(const nd_task *task, int64_t value, const nd_cluster_spec *cluster, const nd_train_spec *train,
                       uint32_t pinned, const nd_layout *pin, bool any_closest, nd_point *out,
                       nd_error *err) ND_NODISCARD;

/** The context of a point, which the result borrows. \return as nd_cost_context_init() */
nd_status nd_point_context(const nd_task *task, const nd_point *point, nd_cost_context *out,
                           nd_error *err) ND_NODISCARD;

/** Sequences of one step at `gpus` GPUs when the batch follows the GPUs: `micro_batch` for each GPU, or what a whole
 * layout's accumulation makes it. */
int64_t nd_task_batch_seqs(const nd_task *task, int64_t gpus, int64_t micro_batch);

/** Keys that stay pinned when the number of GPUs changes under a whole layout: all but the data-parallel degree that
 * follows (dp_shard; dp_replicate where nothing is sharded) and the accumulation. */
uint32_t nd_task_pinned_at_any_gpus(const nd_task *task);

static inline uint32_t nd_layout_key_bit(nd_layout_key key)
{
    return 1u << key;
}

ND_END_DECLS

#endif
