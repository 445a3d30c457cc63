/** Size of a training checkpoint and the time to write and read it. Equations: docs/MODEL.md, "Runs". */
#ifndef ND_COST_MODEL_CHECKPOINT_H
#define ND_COST_MODEL_CHECKPOINT_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Weights and optimizer as the ranks hold them, each part once. */
typedef struct nd_saved_state {
    double weights_bytes;   /* of adapters with LoRA: the frozen base does not change */
    double optimizer_bytes; /* states and master weights */
    double rank_bytes;      /* of both what one rank hands over; replicas take turns, so the largest shard */
} nd_saved_state;

/** Bytes of weights and optimizer of the whole model: what a run cannot hold less of, over all its GPUs together. */
double nd_saved_bytes(const nd_cost_context *context);

/** \param[in] layout  passed nd_layout_allowed() */
nd_saved_state nd_saved_state_of(const nd_cost_context *context, const nd_layout *layout);

/** Seconds of one save and one load. */
typedef struct nd_save_times {
    double copy_s;  /* GPU to host memory, all ranks at once: all that blocks training when the save is asynchronous */
    double write_s; /* to the storage that all nodes share, and no faster than the copy */
    double read_s;  /* back */
} nd_save_times;

/** \param[in] storage_bytes_per_s  of the storage, all nodes together, > 0 */
nd_save_times nd_save_times_of(const nd_cost_context *context, const nd_saved_state *state, double storage_bytes_per_s);

ND_END_DECLS

#endif
