#include "cost_model/estimate.h"

#include <string.h>

#include "cost_model/simulate.h"
#include "cost_model/stages.h"
#include "cost_model/time.h"

static void count_layers_before(const nd_model_spec *model, nd_cost_context *out)
{
    for (int64_t layer = 0; layer < model->layers; layer++) {
        for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
            out->layers_before[kind][layer + 1] =
                out->layers_before[kind][layer] + (model->kind_of_layer[layer] == kind ? 1 : 0);
        }
    }
}

static double count_lora_params(const nd_model_spec *model, const nd_train_spec *train)
{
    nd_layout single = nd_layout_single();
    double params = 0.0;
    for (int64_t kind = 0; train->lora_rank > 0 && kind < model->layer_kinds_count; kind++) {
        params += (double)model->layer_kinds[kind].layers * nd_block_lora_params(model, &single, train, (int32_t)kind);
    }
    return params;
}

/* Frozen weights have no gradient: a third of the matrix work of a step falls away (the adapters' is below 2 %). */
static double frozen_flops_per_token(const nd_model_spec *model, const nd_param_counts *counts)
{
    int64_t multiplying = counts->active - counts->input_embedding - counts->positions;
    return 2.0 * (double)(multiplying + (model->tied_embeddings ? counts->input_embedding : 0));
}

nd_status nd_cost_context_init(const nd_model_spec *model, const nd_cluster_spec *cluster, const nd_train_spec *train,
                               const nd_stack *stack, const nd_calibration *calibration, nd_cost_context *out,
                               nd_error *err)
{
    if (cluster->gpu.peak_flops_per_s[train->precision] <= 0.0) {
        return nd_fail(err, ND_EINVAL, "%s cannot compute in %s; choose another --precision", cluster->gpu.title,
                       nd_dtype_name(train->precision));
    }
    ND_TRY(nd_train_spec_check(train, err));
    memset(out, 0, sizeof *out);
    out->model = model;
    out->cluster = cluster;
    out->train = train;
    out->stack = stack;
    out->calibration = calibration;
    out->uncertainty = nd_time_uncertainty_prior(calibration->borrowed);
    out->params = nd_model_params(model);
    out->flops_per_token = nd_model_flops_per_token(model, train->seq_len_tokens, ND_FLOPS_FULL);
    out->flops_per_token_causal = nd_model_flops_per_token(model, train->seq_len_tokens, ND_FLOPS_CAUSAL);
    if (train->lora_rank > 0) {
        double saved = frozen_flops_per_token(model, &out->params);
        out->flops_per_token -= saved;
        out->flops_per_token_causal -= saved;
    }
    out->lora_params = count_lora_params(model, train);
    count_layers_before(model, out);
    return ND_OK;
}

nd_status nd_cost_context_like(const nd_cost_context *base, const nd_cluster_spec *cluster, const nd_train_spec *train,
                               const nd_stack *stack, nd_cost_context *out, nd_error *err)
{
    ND_TRY(nd_cost_context_init(base->model, cluster, train, stack, base->calibration, out, err));
    out->uncertainty = base->uncertainty;
    out->simulates = base->simulates;
    return ND_OK;
}

typedef struct candidate {
    const char *name;
    double seconds;
} candidate;

/* The largest part of the step in the words that users think in. */
enum { FIRST_COMMUNICATION = 3, LAST_COMMUNICATION = 7 }; /* in the table below */

static const char *name_bound(const nd_time_breakdown *time)
{
    const candidate candidates[] = {
        {"matrix compute", time->gemm_s + time->recompute_s},
        {"attention", time->attention_s},
        {"memory bandwidth", time->elementwise_s + time->optimizer_s},
        {"tp communication", time->exposed_tp_s},
        {"cp communication", time->exposed_cp_s},
        {"ep communication", time->exposed_ep_s},
        {"pp communication", time->exposed_pp_s},
        {"dp communication", time->exposed_dp_s},
        {"pipeline bubble", time->bubble_s},
        {"host", time->host_s},
        {"offload", time->offload_s},
    };
    /* communication that outweighs the matrix work bounds the step, on whichever axis most of it is */
    size_t first = time->exposed_comm_s > candidates[0].seconds ? FIRST_COMMUNICATION : 0;
    size_t last = first > 0 ? LAST_COMMUNICATION : sizeof candidates / sizeof candidates[0] - 1;
    const candidate *largest = &candidates[first];
    for (size_t i = first + 1; i <= last; i++) {
        largest = candidates[i].seconds > largest->seconds ? &candidates[i] : largest;
    }
    return largest->name;
}

/* FLOPs that the GPUs execute again for one token, all stages together. */
static double recompute_flops_per_token(const nd_cost_context *context, const nd_layout *layout,
                                        const nd_block_prices *prices)
{
    const nd_model_spec *model = context->model;
    double recomputed = nd_rerun_frac(layout);
    double flops = 0.0;
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        flops += (double)model->layer_kinds[kind].layers * prices->layer[kind].recompute_flops;
    }
    /* per rank and micro-batch; tp ranks share the work of T tokens */
    return recomputed * flops * (double)layout->size[ND_AXIS_TP] / nd_block_tokens(layout, context->train);
}

void nd_estimate_priced(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                        nd_estimate *out)
{
    const nd_train_spec *train = context->train;
    nd_stage_split split;
    nd_pipeline pipeline;
    nd_split_stages(context, layout, prices, &split);
    nd_estimate_memory_split(context, layout, prices, &split, &out->memory);
    nd_price_pipeline_split(context, layout, prices, &split, &pipeline);
    nd_estimate_time_piped(context, layout, prices, &pipeline, &out->time);
    if (nd_is_simulated(context, layout)) {
        nd_time_retime(nd_simulated_step_s(context, layout, prices), &out->time);
    }
    out->stages = nd_stage_runs_of(&split);
    double tokens = (double)nd_layout_global_batch_seqs(layout) * (double)train->seq_len_tokens;
    double gpus = (double)nd_layout_ranks(layout);
    double peak = context->cluster->gpu.peak_flops_per_s[train->precision];
    out->tokens_per_s = tokens / out->time.step_s;
    out->tokens_per_s_per_gpu = out->tokens_per_s / gpus;
    out->flops_per_token = context->flops_per_token;
    out->mfu_frac = context->flops_per_token * out->tokens_per_s_per_gpu / peak;
    out->hfu_frac =
        out->mfu_frac + recompute_flops_per_token(context, layout, prices) * out->tokens_per_s_per_gpu / peak;
    out->bound_by = name_bound(&out->time);
}

void nd_estimate_layout(const nd_cost_context *context, const nd_layout *layout, nd_estimate *out)
{
    nd_block_prices prices;
    nd_price_blocks(context, layout, &prices);
    nd_estimate_priced(context, layout, &prices, out);
}
