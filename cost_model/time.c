#include "cost_model/time.h"

#include <math.h>
#include <string.h>

#include "cost_model/data_parallel.h"
#include "cost_model/stages.h"

/* Squared norm for clipping: one read of the fp32 gradients at half the bandwidth. */
static const double norm_bytes_per_param = 8.0;
static const int32_t optimizer_kernels = 20;
/* CPU Adam reads and writes weight, gradient and two moments in fp32; host memory of one node (own assumption: eight
 * to twelve channels reach about 200 GB/s). */
static const double cpu_adam_bytes_per_param = 28.0;
static const double host_memory_bytes_per_s = 200e9;

/* Adam over this rank's shard: HBM traffic, kernels, and the norm; or transfers and CPU Adam when offloaded. */
static void optimizer_time(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           const nd_pipeline *p, nd_time_breakdown *out)
{
    const nd_cluster_spec *cluster = context->cluster;
    bool lora = context->train->lora_rank > 0;
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    double dense = lora ? 0.0
                        : (p->busiest_stage == 0 ? prices->params_embedding : 0.0) +
                              (p->busiest_stage == last ? prices->params_head : 0.0);
    double expert = 0.0;
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        dense += (double)p->counts[kind] * (lora ? prices->params_lora[kind] : prices->params_dense[kind]);
        expert += lora ? 0.0 : (double)p->counts[kind] * prices->params_expert[kind];
    }
    if (layout->sharding != ND_SHARDING_NONE) {
        dense /= (double)nd_layout_shard_ranks(layout);
        expert /= (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks;
    }
    double params = dense + expert;
    double hbm = cluster->gpu.hbm_bytes_per_s;
    double norm_s = params * norm_bytes_per_param / hbm;
    if (layout->offload == ND_OFFLOAD_OPTIMIZER || layout->offload == ND_OFFLOAD_PARAMS) {
        double ranks = (double)cluster->gpus_per_node;
        double link = nd_cluster_host_copy_bytes_per_s(cluster);
        double transfer = params * (context->stack->grad_bytes + 2.0) / link;
        out->offload_s = transfer + params * cpu_adam_bytes_per_param * ranks / host_memory_bytes_per_s;
        out->optimizer_s = norm_s;
        return;
    }
    double traffic = params * context->stack->optimizer_traffic_bytes;
    out->optimizer_s = traffic / (hbm * context->calibration->hbm_frac) +
                       (double)optimizer_kernels * context->calibration->kernel_s + norm_s;
}

/* What the layers of a stage keep for one backward pass, all of it. */
static double moved_activation_bytes(const nd_cost_context *context, const nd_layout *layout,
                                     const nd_block_prices *prices, const nd_pipeline *p)
{
    double recomputed = layout->recompute == ND_RECOMPUTE_EVERY ? nd_recomputed_frac(layout) : 1.0;
    double bytes = 0.0;
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        double whole = (1.0 - recomputed) * prices->saved_bytes_none[kind];
        bytes += (double)p->counts[kind] * (recomputed * prices->saved_bytes[kind] + whole);
    }
    return bytes;
}

/* Weights of offloaded layers come from the host for both passes of every micro-batch. Activations go there in the
 * forward pass and come back in the backward pass. What the compute of that pass cannot cover stays visible. */
double nd_offload_exposed_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                            const nd_pipeline *p)
{
    const nd_cluster_spec *cluster = context->cluster;
    double link = nd_cluster_host_copy_bytes_per_s(cluster);
    double micro_batches = (double)layout->grad_accum;
    double bytes = 0.0;
    if (layout->offload == ND_OFFLOAD_ACTIVATIONS) {
        double copy_s = moved_activation_bytes(context, layout, prices, p) / link;
        return micro_batches * (fmax(0.0, copy_s - p->busiest.forward_s) + fmax(0.0, copy_s - p->busiest.backward_s));
    }
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        double layers = (double)p->counts[kind];
        if (layout->offload == ND_OFFLOAD_PARAMS) {
            double params = prices->params_dense[kind] / (double)nd_layout_shard_ranks(layout) +
                            prices->params_expert[kind] / (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks;
            bytes += 2.0 * layers * params * context->stack->weight_bytes;
        }
    }
    return micro_batches * fmax(0.0, bytes / link - nd_stage_work_s(&p->busiest));
}

/* Host launches that the GPU does not hide. One direction may wait for the host while the other does not, and some
 * kernels of a layer are longer than their launch while others are shorter, so the slower of the two does not win all
 * at once: a p-norm. p = 3 fits vTrain's one-node steps, where layers go from host to GPU bound (VIA-Research/vTrain).
 */
static const double launch_norm = 3.0;

static double launch_bound_s(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *p)
{
    double gpu_s = nd_stage_work_s(&p->busiest);
    double ratio = p->busiest.launches * context->stack->launch_s / gpu_s;
    if (ratio < 0.1) {
        return 0.0; /* less than a thousandth of the micro-batch */
    }
    return (double)layout->grad_accum * gpu_s * (pow(1.0 + pow(ratio, launch_norm), 1.0 / launch_norm) - 1.0);
}

static void spread_busiest(const nd_layout *layout, const nd_pipeline *p, nd_time_breakdown *out)
{
    double m = (double)layout->grad_accum;
    const nd_stage_work *work = &p->busiest;
    out->gemm_s = m * work->gemm_s;
    out->attention_s = m * work->attention_s;
    out->elementwise_s = m * work->elementwise_s;
    out->head_s = m * work->head_s;
    out->compute_s = out->gemm_s + out->attention_s + out->elementwise_s;
    out->recompute_s = m * work->recompute_s;
    out->exposed_tp_s = m * work->tp_s;
    out->exposed_cp_s = m * work->cp_s;
    out->exposed_ep_s = m * work->ep_s;
    out->hidden_comm_s = m * work->hidden_s;
}

/* Parts of the step that follow each fitted constant. Bubbles repeat what the busiest stage does, recompute what the
 * forward pass does: mostly GEMMs. */
static void set_interval(const nd_cost_context *context, double launches_s, nd_time_breakdown *out)
{
    double busy = out->compute_s + out->recompute_s + out->exposed_tp_s + out->exposed_cp_s + out->exposed_ep_s;
    double repeated = busy > 0.0 ? 1.0 + out->bubble_s / busy : 1.0;
    const double seconds[ND_TIME_FACTOR_COUNT] = {
        [ND_FACTOR_GEMM] = (out->gemm_s + out->recompute_s) * repeated,
        [ND_FACTOR_ATTENTION] = out->attention_s * repeated,
        [ND_FACTOR_MEMORY] = out->elementwise_s * repeated + out->optimizer_s,
        [ND_FACTOR_CONTENTION] = out->contention_s,
        [ND_FACTOR_LAUNCH] = launches_s,
        [ND_FACTOR_LINKS] = out->exposed_comm_s,
    };
    double shares[ND_TIME_FACTOR_COUNT];
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        shares[i] = seconds[i] / out->step_s;
    }
    bool hard = context->model->experts > 0 || context->train->precision == ND_DTYPE_FP8;
    double spread = exp(nd_interval80_sd * nd_time_log_sd(&context->uncertainty, shares, hard));
    out->step_low_s = out->step_s / spread;
    out->step_high_s = out->step_s * spread;
}

/* The sum of the terms, and what slow ranks add to it. */
static void add_up(const nd_cost_context *context, nd_time_breakdown *out)
{
    out->exposed_comm_s =
        out->exposed_tp_s + out->exposed_cp_s + out->exposed_ep_s + out->exposed_pp_s + out->exposed_dp_s;
    double sum = out->compute_s + out->recompute_s + out->exposed_comm_s + out->bubble_s + out->optimizer_s +
                 out->contention_s + out->host_s + out->offload_s;
    double nodes = (double)context->cluster->nodes;
    out->straggler_s = sum * context->calibration->straggler_frac * log2(fmax(1.0, nodes));
    out->other_s = out->contention_s + out->host_s + out->offload_s + out->straggler_s;
    out->step_s = sum + out->straggler_s;
    out->closed_step_s = out->step_s;
}

/* All terms but data parallelism, the optimizer and offloading. */
static void pipeline_terms(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *pipeline,
                           nd_time_breakdown *out)
{
    memset(out, 0, sizeof *out);
    double m = (double)layout->grad_accum;
    spread_busiest(layout, pipeline, out);
    double visible = nd_stage_send_visible_frac(context);
    /* a chunk receives and sends, forward and backward */
    out->exposed_pp_s = m * (double)layout->vpp * (2.0 * pipeline->send_s * visible + 4.0 * pipeline->send_host_s);
    out->bubble_s = pipeline->bubble_s;
    out->contention_s = context->calibration->contention_frac * out->hidden_comm_s;
    out->host_s = context->stack->host_s + launch_bound_s(context, layout, pipeline);
}

void nd_time_without_data_parallel(const nd_cost_context *context, const nd_layout *layout, const nd_pipeline *pipeline,
                                   nd_time_breakdown *out)
{
    pipeline_terms(context, layout, pipeline, out);
    add_up(context, out);
}

void nd_estimate_time_piped(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                            const nd_pipeline *pipeline, nd_time_breakdown *out)
{
    pipeline_terms(context, layout, pipeline, out);
    nd_dp_cost dp = nd_dp_cost_of_stage(context, layout, prices, pipeline->busiest_stage, pipeline->counts);
    out->exposed_dp_s = dp.exposed_s;
    out->contention_s = context->calibration->contention_frac * (dp.pressure_s + out->hidden_comm_s);
    out->hidden_comm_s += dp.hidden_s;
    optimizer_time(context, layout, prices, pipeline, out);
    out->offload_s += nd_offload_exposed_s(context, layout, prices, pipeline);
    add_up(context, out);
    set_interval(context, out->host_s - context->stack->host_s, out);
}

void nd_estimate_time(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                      nd_time_breakdown *out)
{
    nd_pipeline pipeline;
    nd_price_pipeline(context, layout, prices, &pipeline);
    nd_estimate_time_piped(context, layout, prices, &pipeline, out);
}
