#include "reports/estimate_view.h"

#include <math.h>

static void build_checkpoint(const nd_cost_context *cost, const nd_framework *framework, const nd_layout *layout,
                             nd_recompute recompute, nd_checkpoint_row *row)
{
    nd_layout variant = *layout;
    variant.recompute = recompute;
    variant.recompute_every = 1;
    *row = (nd_checkpoint_row){.recompute = recompute, .is_this_layout = recompute == layout->recompute};
    row->allowed = nd_layout_allowed(cost, framework, &variant, &row->rule, NULL);
    if (row->allowed) {
        nd_estimate_layout(cost, &variant, &row->estimate);
    }
}

static void compare_checkpoints(nd_checkpoint_row rows[ND_CHECKPOINT_ROWS])
{
    const nd_checkpoint_row *none = &rows[0];
    double activations = none->estimate.memory.activations_bytes;
    if (!none->allowed || !(activations > 0.0) || !(none->estimate.time.step_s > 0.0)) {
        return;
    }
    for (int32_t i = 0; i < ND_CHECKPOINT_ROWS; i++) {
        if (rows[i].allowed) {
            rows[i].has_baseline = true;
            rows[i].saved_frac = 1.0 - rows[i].estimate.memory.activations_bytes / activations;
            rows[i].slower_frac = rows[i].estimate.time.step_s / none->estimate.time.step_s - 1.0;
        }
    }
}

void nd_estimate_view_build(const nd_cost_context *cost, const nd_framework *framework, const nd_layout *layout,
                            nd_estimate_view *out)
{
    static const nd_recompute modes[ND_CHECKPOINT_ROWS] = {ND_RECOMPUTE_NONE, ND_RECOMPUTE_SELECTIVE,
                                                           ND_RECOMPUTE_FULL};
    *out = (nd_estimate_view){.layout = *layout};
    nd_block_prices prices;
    nd_price_blocks(cost, layout, &prices);
    nd_estimate_priced(cost, layout, &prices, &out->estimate);
    nd_split_stages(cost, layout, &prices, &out->split);
    out->is_simulated = nd_simulate_step(cost, layout, &prices, NULL, NULL, &out->simulation, &out->why_not) == ND_OK;
    nd_estimate_comm(cost, layout, &out->comm);
    out->needs_count = nd_bandwidth_needs(cost, layout, out->needs);
    for (int32_t i = 0; i < ND_CHECKPOINT_ROWS; i++) {
        build_checkpoint(cost, framework, layout, modes[i], &out->checkpoints[i]);
    }
    compare_checkpoints(out->checkpoints);
    out->effective_batch_seqs = nd_layout_global_batch_seqs(layout);
    out->effective_batch_tokens = (double)out->effective_batch_seqs * (double)cost->train->seq_len_tokens;
    out->lr_linear_factor = (double)out->effective_batch_seqs / (double)layout->micro_batch;
    out->lr_sqrt_factor = sqrt(out->lr_linear_factor);
}
