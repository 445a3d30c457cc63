/** In which order a pipeline rank runs the passes of a step. Simulation and program share it. docs/MODEL.md,
 * "Simulated step". */
#ifndef ND_PROGRAM_SCHEDULE_H
#define ND_PROGRAM_SCHEDULE_H

#include "core/layout.h"

ND_BEGIN_DECLS

typedef enum nd_work_kind {
    ND_WORK_FORWARD,
    ND_WORK_BACKWARD,        /* whole, or of the inputs alone where the schedule keeps weight gradients apart */
    ND_WORK_WEIGHT_GRADIENT, /* zero bubble only */
    ND_WORK_NONE             /* the step is done */
} nd_work_kind;

typedef struct nd_work_item {
    nd_work_kind kind;
    int32_t chunk;       /* of this rank, from 0: the model's chunk is chunk x pp + stage */
    int64_t micro_batch; /* from 0 */
} nd_work_item;

/** Where a rank is in its order. */
typedef struct nd_work_order {
    int64_t total;       /* passes of one direction in a step, chunks included */
    int64_t group;       /* micro-batches that go through one chunk after the other ... */
    int64_t long_groups; /* ... and one more in so many first groups */
    int64_t warm_up;     /* forward passes before the first backward pass */
    int64_t lag;         /* backward passes whose weight gradients wait; -1: they are not apart */
    int32_t pp, vpp;
    int64_t forwards, backwards, weight_gradients; /* done */
} nd_work_order;

/** The order of `stage`: 1F1B; GPipe, whose backward passes take the micro-batches in the order of the forward passes,
 * as PyTorch's do (torch.distributed.pipelining, ScheduleGPipe); interleaved 1F1B in groups of pp micro-batches as
 * Megatron-LM runs it; or ZB-H1, which holds no more than 1F1B's first stage does: pp micro-batches on every stage.
 *
 * Where pp does not divide the micro-batches, groups of interleaved stages are as equal as possible and no smaller than
 * pp: Megatron-LM refuses smaller ones, and stages could wait for each other for ever. Fewer micro-batches than pp are
 * one group. */
nd_work_order nd_work_order_start(const nd_layout *layout, int32_t stage);

/** What comes next; nd_work_order_done() moves on. */
nd_work_item nd_work_order_next(const nd_work_order *order);
void nd_work_order_done(nd_work_order *order, nd_work_kind kind);

ND_END_DECLS

#endif
