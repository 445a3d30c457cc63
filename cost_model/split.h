/** Which layers each pipeline stage holds. docs/MODEL.md, "Pipeline split". */
#ifndef ND_COST_MODEL_SPLIT_H
#define ND_COST_MODEL_SPLIT_H

#include "cost_model/estimate.h"
#include "program/placement.h"

ND_BEGIN_DECLS

/** The layers in pp x vpp contiguous chunks; chunk c runs on stage c mod pp. */
struct nd_stage_split {
    int32_t stages, chunks;
    bool balanced;
    int64_t base, extra, first_extra;       /* even: layers of a chunk, chunks with one more, the first of those */
    int32_t start[ND_MODEL_LAYERS_MAX + 1]; /* balanced: first layer of each chunk, and the number of layers */
};

/** Divide the layers as layout->split says.
 *
 * even: chunks as equal as possible, the extra layers in the middle, away from embedding and head.
 *
 * balanced: the slowest stage is as fast as possible, embedding and head counted, every chunk with a layer at least.
 * Exact over all contiguous partitions with vpp 1, and with any vpp when all layers cost the same; otherwise chunks
 * take equal shares of their stage's budget, and the result is never slower than even. Of splits with the same pace one
 * whose fullest stage holds least (weights, gradients and saved activations of a full pipeline), so that early stages,
 * which have most micro-batches in flight, get what the pace leaves over; even where that is one of them. Gradient
 * accumulation in a pass of its own (nd_stage_accumulates()) is not weighed, nor is the schedule: under gpipe all
 * stages hold as many micro-batches. Deterministic.
 *
 * Depends on `prices` (balanced only), pp, vpp and the recompute mode that belongs to the prices: a search computes it
 * once per (prices, pp, vpp). Needs pp x vpp <= layers when balanced. */
void nd_split_stages(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                     nd_stage_split *out);

/** The same without a cluster, for a layout that is executed: balanced stages have as equal FLOPs of matrix products
 * and attention as can be (both passes, what is computed again, the head), which is what processors spend their time
 * on. Of `stack` style and bytes of a parameter count. */
void nd_split_stages_by_flops(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              const nd_stack *stack, nd_stage_split *out);

/** The split as a program takes it. */
nd_chunk_map nd_stage_split_chunks(const nd_stage_split *split);

/** First layer of `chunk`; of chunk `chunks` the number of layers. */
int64_t nd_split_start(const nd_stage_split *split, int64_t chunk);

/** Whether both put the same layers into the same chunks. */
bool nd_stage_split_same(const nd_stage_split *a, const nd_stage_split *b);

/** Layers of a chunk by layer kind. */
void nd_chunk_layers(const nd_cost_context *context, const nd_stage_split *split, int64_t chunk,
                     int64_t counts[ND_LAYER_KINDS_MAX]);

/** Layers of pipeline rank `stage` by layer kind, all of its chunks together. */
void nd_stage_layers(const nd_cost_context *context, const nd_stage_split *split, int32_t stage,
                     int64_t counts[ND_LAYER_KINDS_MAX]);

/** The same, all kinds together. */
int64_t nd_stage_layers_count(const nd_stage_split *split, int32_t stage);

nd_stage_runs nd_stage_runs_of(const nd_stage_split *split);

ND_END_DECLS

#endif
