/** What no layout below a branch of a search can beat, whatever its data parallelism: lower bounds that let the search
 * leave the branch without looking at its layouts. docs/SEARCH.md. */
#ifndef ND_COST_MODEL_FLOORS_H
#define ND_COST_MODEL_FLOORS_H

#include "cost_model/split.h"
#include "cost_model/time.h"

ND_BEGIN_DECLS

/** Lower bounds of nd_memory_breakdown over all ways to divide `data_ranks` into dp_replicate x dp_shard and over all
 * shardings. 0 stands for "no bound". */
typedef struct nd_memory_floor {
    double peak_low_bytes, peak_bytes, peak_high_bytes;
} nd_memory_floor;

/** The forward phase of the first stage: what it saves for the backward pass, exactly, and states as if they were
 * divided over all data-parallel ranks.
 * \param[in] layout  everything but dp_replicate, dp_shard and sharding is read; grad_accum is that of `data_ranks`
 * \param[in] split   of the layout's pipeline */
nd_memory_floor nd_memory_floor_of(const nd_cost_context *context, const nd_layout *layout,
                                   const nd_block_prices *prices, const nd_stage_split *split, int64_t data_ranks);

/** The same for every balanced split, and when the layout's is even for that, too, without computing one. With vpp 1
 * every other vpp is included. With a layer of S bytes of states and A bytes of
 * activations of a micro-batch, of which f_i are in flight on stage i, stage i has room for P / (S + f_i A) layers in P
 * bytes; all layers find room only where P >= layers / sum of 1 / (S + f_i A), embedding and head beside them. With
 * several kinds of layer each is weighed where it takes least of that.
 *
 * No bound (all 0) with one stage, and where adapters train or activations are offloaded: states and activations are
 * not in proportion to the layers then. Nor where the estimate may miss the fullest stage (nd_stage_candidates()). */
nd_memory_floor nd_memory_floor_any_split(const nd_cost_context *context, const nd_layout *layout,
                                          const nd_block_prices *prices, int64_t data_ranks);

/** Seconds of forward and backward of one micro-batch through the whole model on one rank of each stage, embedding and
 * head included, without recompute. */
double nd_work_floor_s(const nd_cost_context *context, const nd_block_prices *prices);

/** The step of any layout with the tp, cp and micro_batch of `layout` on this cluster, whatever pp is: a stage does at
 * least its share of the work, and each rank its share of the batch. */
double nd_unit_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices);

/** What recompute adds to nd_work_floor_s() under the mode and the prices of `layout`. */
double nd_rework_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices);

/** The step of a pipeline of which only the work of all stages together is known: no stage is busier than it must be,
 * nothing is launched.
 * \param[in] work_s  nd_work_floor_s() and what recompute adds */
double nd_filling_floor_s(const nd_cost_context *context, const nd_layout *layout, double work_s);

/** The step without what data parallelism and the optimizer add. Exact in everything else. */
double nd_pipeline_floor_s(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *pipeline);

ND_END_DECLS

#endif
