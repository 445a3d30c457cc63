#include "cost_model/price.h"

#include <math.h>
#include <string.h>

#include "cost_model/collectives.h"
#include "cost_model/kernels.h"

/* Zig-zag ring attention runs its blocks at 85 % of the whole kernel's rate forward and 90 % over forward and
 * backward (zhuzilin/ring-flash-attention README). */
static const double ring_attention_frac[2] = {0.85, 0.90};

typedef struct pricing {
    const nd_cost_context *context;
    const nd_layout *layout;
    nd_kernel_model kernels;
    nd_group_placement tp, cp, ep;
} pricing;

static pricing prepare(const nd_cost_context *context, const nd_layout *layout)
{
    const nd_cluster_spec *cluster = context->cluster;
    const nd_calibration *calibration = context->calibration;
    nd_kernel_model kernels = nd_kernel_model_make(&cluster->gpu, calibration, context->train);
    kernels.matrix.burst_flops_per_s *= context->stack->gemm_frac;
    kernels.fp8.burst_flops_per_s *= context->stack->gemm_frac * context->stack->fp8_frac;
    kernels.attention_flops_per_s *= context->stack->attention_frac;
    return (pricing){
        .context = context,
        .layout = layout,
        .kernels = kernels,
        .tp = nd_group_place(cluster, calibration, nd_mesh_group(layout, ND_GROUP_TP)),
        .cp = nd_group_place(cluster, calibration, nd_mesh_group(layout, ND_GROUP_CP)),
        .ep = nd_group_place(cluster, calibration, nd_mesh_group(layout, ND_GROUP_EP)),
    };
}

/* Dispatch that sends a row once to each domain that has some of its experts, and spreads it there over the fast links.
 * Of D domains a row with k independent choices reaches D (1 - (1 - 1/D)^k). */
static double deduplicated_s(const nd_group_placement *place, const nd_op *op)
{
    double domains = (double)place->domains;
    double reached = domains * (1.0 - pow(1.0 - 1.0 / domains, (double)op->copies));
    double across_s = nd_collective_s(place, op->collective, op->bytes * reached / (double)op->copies);
    double inside_s = place->inner_ranks > 1 ? op->bytes / place->inner_bytes_per_s[ND_ALL_TO_ALL] : 0.0;
    return fmax(across_s, inside_s);
}

static double collective_s(const pricing *p, const nd_group_placement *place, const nd_op *op)
{
    bool once = op->copies > 1 && place->domains > 1 && p->context->stack->ep_deduplicates;
    return once ? deduplicated_s(place, op) : nd_collective_s(place, op->collective, op->bytes);
}

static void price_collective(const pricing *p, const nd_op *op, nd_pass pass, double *ring_s, nd_part_price *out)
{
    const nd_group_placement *place = op->group == ND_GROUP_TP ? &p->tp : op->group == ND_GROUP_CP ? &p->cp : &p->ep;
    double seconds = (double)op->repeats * collective_s(p, place, op);
    if (op->hidden_behind_attention) {
        *ring_s += seconds;
        return;
    }
    double hidden = seconds * op->overlap_frac;
    if (op->group == ND_GROUP_TP) {
        hidden += (seconds - hidden) * p->context->stack->tp_overlap_frac;
        out->exposed_tp_s[pass] += seconds - hidden;
    } else if (op->group == ND_GROUP_CP) {
        out->exposed_cp_s[pass] += seconds - hidden;
    } else {
        out->exposed_ep_s[pass] += seconds - hidden;
    }
    out->hidden_s[pass] += hidden;
}

/* Ring steps run beside the attention of the block that is already there; (cp-1)/cp of the attention can hide them. */
static void price_ring(const pricing *p, nd_pass pass, double ring_s, nd_part_price *out)
{
    if (ring_s <= 0.0) {
        return;
    }
    double cp = (double)p->layout->size[ND_AXIS_CP];
    double whole_s = out->attention_s[pass];
    double cover_s = whole_s * (cp - 1.0) / cp;
    double exposed = ring_s > cover_s ? ring_s - cover_s : 0.0;
    out->attention_s[pass] = whole_s / ring_attention_frac[pass == ND_PASS_BACKWARD];
    out->exposed_cp_s[pass] += exposed;
    out->hidden_s[pass] += ring_s - exposed;
}

static void price_ops(const pricing *p, const nd_op_list *list, nd_pass pass, nd_part_price *out)
{
    double ring_s = 0.0;
    for (int32_t i = 0; i < list->count; i++) {
        const nd_op *op = &list->ops[i];
        out->launches[pass] += op->kind == ND_OP_COLLECTIVE ? (double)op->repeats : (double)op->kernels;
        switch (op->kind) {
        case ND_OP_GEMM:
            out->gemm_s[pass] += nd_gemm_s(&p->kernels, op);
            break;
        case ND_OP_ATTENTION:
            out->attention_s[pass] += nd_attention_s(&p->kernels, op);
            break;
        case ND_OP_ELEMENTWISE:
            out->elementwise_s[pass] += nd_elementwise_s(&p->kernels, op->hbm_bytes, op->kernels);
            break;
        case ND_OP_COLLECTIVE:
            price_collective(p, op, pass, &ring_s, out);
            break;
        case ND_OP_KIND_COUNT:
            break;
        }
        if (pass == ND_PASS_FORWARD) {
            out->forward_flops += op->flops;
        } else if (pass == ND_PASS_RECOMPUTE) {
            out->recompute_flops += op->flops;
        }
    }
    price_ring(p, pass, ring_s, out);
}

static void price_pass(const pricing *p, nd_part_kind part, int32_t layer_kind, nd_pass pass, nd_part_price *out)
{
    const nd_cost_context *context = p->context;
    nd_op_list list;
    nd_block_ops(context->model, p->layout, context->train, &context->stack->style, part, layer_kind, pass, &list);
    price_ops(p, &list, pass, out);
}

static void price_part(const pricing *p, nd_part_kind part, int32_t layer_kind, nd_part_price *out)
{
    memset(out, 0, sizeof *out);
    price_pass(p, part, layer_kind, ND_PASS_FORWARD, out);
    price_pass(p, part, layer_kind, ND_PASS_BACKWARD, out);
}

/* Norms and router are replicated over tp. */
void nd_price_params(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *out)
{
    const nd_model_spec *model = context->model;
    const nd_param_counts *counts = &context->params;
    double tp = (double)layout->size[ND_AXIS_TP];
    double ep = (double)layout->ep;
    /* key-value heads beyond tp are held by several ranks */
    double kv_copies = model->attention == ND_ATTENTION_GQA && (double)model->kv_heads < tp
                           ? (tp / (double)model->kv_heads - 1.0) * 2.0 * (double)model->kv_heads *
                                 (double)model->head_dim * (double)model->hidden
                           : 0.0;
    for (int64_t kind = 0; kind < model->layer_kinds_count; kind++) {
        bool moe = model->layer_kinds[kind].moe;
        double divided = (double)counts->attention_layer + kv_copies +
                         (double)(moe ? counts->shared_layer : counts->dense_ffn_layer);
        double replicated = (double)counts->norms_layer + (moe ? (double)counts->router_layer : 0.0);
        out->params_dense[kind] = divided / tp + replicated;
        out->params_expert[kind] = moe ? (double)counts->expert * (double)model->experts / (ep > 1.0 ? ep : tp) : 0.0;
    }
    out->params_embedding = (double)(counts->input_embedding + counts->positions) / tp;
    out->params_head = (double)counts->head / tp + (double)counts->final_norm;
}

/* What recompute decides: the pass that runs again, and what is kept for it. */
static void price_recompute(const pricing *p, nd_block_prices *out)
{
    const nd_cost_context *context = p->context;
    const nd_layout *layout = p->layout;
    nd_recompute mode = layout->recompute == ND_RECOMPUTE_EVERY ? ND_RECOMPUTE_FULL : layout->recompute;
    for (int32_t kind = 0; kind < (int32_t)context->model->layer_kinds_count; kind++) {
        price_pass(p, ND_PART_LAYER, kind, ND_PASS_RECOMPUTE, &out->layer[kind]);
        out->saved_bytes[kind] =
            mode == ND_RECOMPUTE_NONE
                ? out->saved_bytes_none[kind]
                : nd_block_saved_bytes(context->model, layout, context->train, &context->stack->style, kind, mode);
    }
}

static void forget_recompute(nd_part_price *price)
{
    const int pass = ND_PASS_RECOMPUTE;
    price->gemm_s[pass] = 0.0;
    price->attention_s[pass] = 0.0;
    price->elementwise_s[pass] = 0.0;
    price->exposed_tp_s[pass] = 0.0;
    price->exposed_cp_s[pass] = 0.0;
    price->exposed_ep_s[pass] = 0.0;
    price->hidden_s[pass] = 0.0;
    price->launches[pass] = 0.0;
    price->recompute_flops = 0.0;
}

void nd_price_recompute(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *prices)
{
    pricing p = prepare(context, layout);
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        forget_recompute(&prices->layer[kind]);
    }
    price_recompute(&p, prices);
}

void nd_price_blocks(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *out)
{
    const nd_model_spec *model = context->model;
    pricing p = prepare(context, layout);
    memset(out, 0, sizeof *out);
    for (int32_t kind = 0; kind < (int32_t)model->layer_kinds_count; kind++) {
        price_part(&p, ND_PART_LAYER, kind, &out->layer[kind]);
        out->saved_bytes_none[kind] =
            nd_block_saved_bytes(model, layout, context->train, &context->stack->style, kind, ND_RECOMPUTE_NONE);
        out->working_bytes[kind] = nd_block_working_bytes(model, layout, context->train, kind);
        if (context->train->lora_rank > 0) {
            out->params_lora[kind] = nd_block_lora_params(model, layout, context->train, kind);
        }
    }
    price_part(&p, ND_PART_EMBEDDING, 0, &out->embedding);
    price_part(&p, ND_PART_HEAD, 0, &out->head);
    price_recompute(&p, out);
    nd_price_params(context, layout, out);
}

double nd_part_compute_s(const nd_part_price *price, nd_pass pass)
{
    return price->gemm_s[pass] + price->attention_s[pass] + price->elementwise_s[pass];
}

double nd_part_pass_s(const nd_part_price *price, nd_pass pass)
{
    return nd_part_compute_s(price, pass) + price->exposed_tp_s[pass] + price->exposed_cp_s[pass] +
           price->exposed_ep_s[pass];
}

double nd_part_passes_s(const nd_part_price *price, double rerun)
{
    return nd_part_pass_s(price, ND_PASS_FORWARD) + nd_part_pass_s(price, ND_PASS_BACKWARD) +
           rerun * nd_part_pass_s(price, ND_PASS_RECOMPUTE);
}
