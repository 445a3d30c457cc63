#include "cost_model/stage_work.h"

#include <string.h>

#include "cost_model/price.h"
#include "cost_model/stages.h"

double nd_stage_work_s(const nd_stage_work *work)
{
    return work->forward_s + work->backward_s;
}

static void add_exposed(const nd_part_price *price, nd_pass pass, double times, nd_stage_work *work)
{
    work->tp_s += times * price->exposed_tp_s[pass];
    work->cp_s += times * price->exposed_cp_s[pass];
    work->ep_s += times * price->exposed_ep_s[pass];
    work->hidden_s += times * price->hidden_s[pass];
}

static void add_part(const nd_part_price *price, double times, double recomputed, nd_stage_work *work)
{
    for (int pass = ND_PASS_FORWARD; pass <= ND_PASS_BACKWARD; pass++) {
        work->gemm_s += times * price->gemm_s[pass];
        work->attention_s += times * price->attention_s[pass];
        work->elementwise_s += times * price->elementwise_s[pass];
        add_exposed(price, (nd_pass)pass, times, work);
    }
    double rerun = times * recomputed;
    add_exposed(price, ND_PASS_RECOMPUTE, rerun, work);
    work->recompute_s += rerun * nd_part_compute_s(price, ND_PASS_RECOMPUTE);
    work->forward_s += times * nd_part_pass_s(price, ND_PASS_FORWARD);
    work->backward_s +=
        times * nd_part_pass_s(price, ND_PASS_BACKWARD) + rerun * nd_part_pass_s(price, ND_PASS_RECOMPUTE);
    work->launches += times * (price->launches[ND_PASS_FORWARD] + price->launches[ND_PASS_BACKWARD]) +
                      rerun * price->launches[ND_PASS_RECOMPUTE];
    /* of the two backward GEMMs one computes the weight gradient */
    work->weight_gradient_s += times * price->gemm_s[ND_PASS_BACKWARD] / 2.0;
}

bool nd_stage_accumulates(const nd_cost_context *context, const nd_layout *layout)
{
    return layout->grad_accum > 1 && layout->sharding != ND_SHARDING_ZERO3 && context->train->lora_rank == 0;
}

/* Adding a micro-batch's whole gradients to those of the others, where no GEMM does it on the way. */
static double accumulate_s(const nd_cost_context *context, const nd_block_prices *prices,
                           const int64_t counts[ND_LAYER_KINDS_MAX], bool first, bool last)
{
    double params = (first ? prices->params_embedding : 0.0) + (last ? prices->params_head : 0.0);
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        params += (double)counts[kind] * (prices->params_dense[kind] + prices->params_expert[kind]);
    }
    double hbm = context->cluster->gpu.hbm_bytes_per_s * context->calibration->hbm_frac;
    return params * context->stack->accumulate_bytes / hbm;
}

nd_stage_work nd_stage_work_of(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                               const int64_t counts[ND_LAYER_KINDS_MAX], bool first, bool last)
{
    nd_stage_work work;
    memset(&work, 0, sizeof work);
    double recomputed = nd_rerun_frac(layout);
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        if (counts[kind] > 0) {
            add_part(&prices->layer[kind], (double)counts[kind], recomputed, &work);
        }
    }
    if (nd_stage_accumulates(context, layout)) {
        double accumulate = accumulate_s(context, prices, counts, first, last);
        work.elementwise_s += accumulate;
        work.backward_s += accumulate;
    }
    if (first) {
        add_part(&prices->embedding, 1.0, 0.0, &work);
    }
    if (last) {
        add_part(&prices->head, 1.0, 0.0, &work);
        work.head_s =
            nd_part_compute_s(&prices->head, ND_PASS_FORWARD) + nd_part_compute_s(&prices->head, ND_PASS_BACKWARD);
    }
    return work;
}
