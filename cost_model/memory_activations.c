/* Activations of one rank: what layers keep for the backward pass, what it needs beside that, and the loss.
 * docs/MODEL.md, "Activations". */
#include <math.h>

#include "cost_model/memory_internal.h"
#include "cost_model/stages.h"

/* Two layers of checkpoints stay on the GPU while others travel. */
static const double offloaded_layers_resident = 2.0;

/* What a loss keeps between its passes: the rest of what it takes are gradients (own assumption after the table of
 * docs/MODEL.md, "Logits": eager 6 of 14 bytes, compiled 2 of 4). */
static const double kept_logits_frac = 0.5;

/* Logits of the last stage: bytes of each while the loss is computed, and what its gradient leaves. */
static void count_logits(const nd_cost_context *context, const nd_layout *layout, double tokens, nd_activations *a)
{
    const nd_block_style *style = &context->stack->style;
    double tp = (double)layout->size[ND_AXIS_TP];
    double elements = tokens * (double)context->model->vocab / tp / style->loss_chunks;
    a->logits = elements * (tp > 1.0 ? context->stack->logit_bytes_tp : style->logit_bytes);
    a->logit_gradient = elements * (double)nd_dtype_compute_bytes(context->train->precision);
    /* other schedules run the last stage's backward pass right after its forward pass; a chunked loss keeps no logits
     */
    if (layout->schedule == ND_SCHEDULE_GPIPE && layout->size[ND_AXIS_PP] > 1 && style->loss_chunks <= 1.0) {
        a->waiting_logits = ((double)layout->grad_accum - 1.0) * kept_logits_frac * a->logits;
    }
}

/* Inputs, outputs and gradients at the edges of a stage, of all micro-batches of a step (none where a stack frees
 * them at once). */
static double stage_buffer_bytes(const nd_cost_context *context, const nd_layout *layout, double residual)
{
    double chunks = (double)layout->grad_accum * (double)layout->vpp;
    return layout->size[ND_AXIS_PP] > 1 ? context->stack->stage_buffers * chunks * residual : 0.0;
}

double nd_memory_saved_per_layer(const nd_layout *layout, const nd_block_prices *prices, int64_t kind)
{
    double recomputed = nd_recomputed_frac(layout);
    double bytes = prices->saved_bytes[kind];
    return layout->recompute == ND_RECOMPUTE_EVERY
               ? recomputed * bytes + (1.0 - recomputed) * prices->saved_bytes_none[kind]
               : bytes;
}

nd_activations nd_memory_activations(const nd_cost_context *context, const nd_layout *layout,
                                     const nd_block_prices *prices, int32_t stage,
                                     const int64_t counts[ND_LAYER_KINDS_MAX])
{
    const nd_train_spec *train = context->train;
    double in_flight = nd_stage_in_flight(layout, stage);
    double recomputed = nd_recomputed_frac(layout);
    double element_bytes = (double)nd_dtype_compute_bytes(train->precision);
    double tokens = nd_block_tokens(layout, train);
    double split = layout->sequence_parallel ? (double)layout->size[ND_AXIS_TP] : 1.0;
    double residual = element_bytes * tokens * (double)context->model->hidden / split;
    nd_activations a = {0};
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        if (counts[kind] == 0) {
            continue;
        }
        double per_layer = nd_memory_saved_per_layer(layout, prices, kind);
        a.saved += (double)counts[kind] * per_layer;
        double rerun = recomputed > 0.0 || layout->recompute == ND_RECOMPUTE_SELECTIVE
                           ? prices->saved_bytes_none[kind] - (recomputed > 0.0 ? 0.0 : per_layer)
                           : 0.0;
        a.working = fmax(a.working, fmax(rerun, 0.0) + prices->working_bytes[kind]);
    }
    a.saved *= in_flight * (1.0 + context->stack->fragmentation_frac);
    if (layout->offload == ND_OFFLOAD_ACTIVATIONS) {
        double resident = fmin(a.saved, offloaded_layers_resident * residual);
        a.host = a.saved - resident;
        a.saved = resident;
    }
    if (stage == layout->size[ND_AXIS_PP] - 1) {
        count_logits(context, layout, tokens, &a);
        double losses = layout->schedule == ND_SCHEDULE_GPIPE ? in_flight : 1.0;
        a.saved += losses * 2.0 * residual; /* input and output of the final norm */
    }
    a.saved += stage_buffer_bytes(context, layout, residual);
    return a;
}
