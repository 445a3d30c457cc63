/** What one pipeline rank holds. Private building block of the estimate. */
#ifndef ND_COST_MODEL_STAGES_H
#define ND_COST_MODEL_STAGES_H

#include "cost_model/split.h"

ND_BEGIN_DECLS

/** Micro-batches' worth of activations of this rank's layers that are alive at once. docs/MODEL.md,
 * "Micro-batches in flight". */
double nd_stage_in_flight(const nd_layout *layout, int32_t stage);

/** Share of a layer kind's layers that are recomputed: 1 for full, 1/k for every k-th, 0 otherwise. */
double nd_recomputed_frac(const nd_layout *layout);

/** Share of the recompute pass that the backward pass runs: selective runs all of its (short) pass in every layer. */
double nd_rerun_frac(const nd_layout *layout);

/** Bytes that one pipeline rank sends to the next per micro-batch and chunk. */
double nd_stage_send_bytes(const nd_cost_context *context, const nd_layout *layout);

/** Share of those transfers that compute does not hide. */
double nd_stage_send_visible_frac(const nd_cost_context *context);

/** Whether an FSDP stack reduces gradients only in the last micro-batch: PyTorch's pipeline schedules switch gradient
 * synchronisation off until then (torch.distributed.pipelining stage.py), so whole gradients add up meanwhile. */
bool nd_reduces_once(const nd_cost_context *context, const nd_layout *layout);

enum { ND_STAGE_CANDIDATES_MAX = 16 };

/** Stages among which the one with the most memory is. Of equal layers fewer micro-batches are in flight on later
 * stages, so with one layer kind it is an end, the stage after the first, or the first with an extra layer: exact. With
 * more kinds all stages when there are at most eight, else eight spread over the pipeline. Of a balanced split both
 * ends and the first of each kind of stage between them: exact up to 14 kinds.
 * \return how many were written to `stages` */
int32_t nd_stage_candidates(const nd_cost_context *context, const nd_stage_split *split,
                            int32_t stages[ND_STAGE_CANDIDATES_MAX]);

ND_END_DECLS

#endif
