/* Weights, gradients and optimizer of one rank. docs/MODEL.md, "Memory". */
#include <math.h>

#include "cost_model/memory_internal.h"
#include "cost_model/stages.h"

/* 4-bit weights with double-quantised scales, bytes per weight (QLoRA). */
static const double four_bit_bytes = 0.52;

nd_holdings nd_memory_hold(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX])
{
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    nd_holdings h = {0};
    double ends = (stage == 0 ? prices->params_embedding : 0.0) + (stage == last ? prices->params_head : 0.0);
    if (context->model->tied_embeddings && stage == last && last > 0) {
        ends += prices->params_embedding; /* the tied matrix is held at both ends */
    }
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        if (counts[kind] == 0) {
            continue;
        }
        double layers = (double)counts[kind];
        double layer = prices->params_dense[kind] + prices->params_expert[kind];
        double experts_here = (double)context->model->experts / (double)layout->ep;
        double one_expert = experts_here > 0.0 ? prices->params_expert[kind] / experts_here : 0.0;
        h.dense += layers * prices->params_dense[kind];
        h.expert += layers * prices->params_expert[kind];
        h.lora += layers * prices->params_lora[kind];
        h.largest_layer = fmax(h.largest_layer, layer);
        h.distinct =
            h.distinct > 0.0 && context->model->experts == 0 ? h.distinct : h.distinct + prices->params_dense[kind];
        h.distinct += context->model->layer_kinds[kind].moe ? one_expert : 0.0;
    }
    h.end_unit = fmax(stage == 0 ? prices->params_embedding : 0.0,
                      stage == last ? fmax(prices->params_head, prices->params_embedding) : 0.0);
    h.dense += ends;
    h.embeddings = ends;
    h.largest_unit = fmax(h.largest_layer, h.end_unit);
    return h;
}

/* Muon keeps one moment for matrices but uses Adam for embedding and head. */
static double state_bytes(const nd_cost_context *context, double params, double embeddings)
{
    double bytes = params * (double)nd_optimizer_state_bytes(context->train->optimizer);
    return context->train->optimizer == ND_OPTIMIZER_MUON ? bytes + 4.0 * embeddings : bytes;
}

static void offload_states(const nd_layout *layout, nd_states *s)
{
    if (layout->offload == ND_OFFLOAD_OPTIMIZER || layout->offload == ND_OFFLOAD_PARAMS) {
        s->host += s->optimizer;
        s->optimizer = 0.0;
        s->optimizer_temp = 0.0;
    }
    if (layout->offload == ND_OFFLOAD_PARAMS) {
        s->host += s->weights + s->grads;
        s->weights = 0.0;
        s->grads = 0.0;
    }
}

/* Unsharded weights: the layer in work and those prefetched, or as many as the stack keeps in case they are needed
 * again soon, and the widest unit of all. */
static double gathered_bytes(const nd_cost_context *context, const nd_holdings *h, double weight_bytes)
{
    const nd_stack *stack = context->stack;
    double compute_bytes = (double)nd_dtype_compute_bytes(context->train->precision);
    double layers = fmax(stack->gathered_layers * h->largest_layer, fmin(stack->live_params, h->dense + h->expert));
    return weight_bytes * layers + compute_bytes * h->largest_unit;
}

/* Transient copies: gathered layers, whole gradients, communication buffers, and Transformer Engine's dummy weight
 * gradients. */
static void add_transients(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *h, bool fsdp,
                           double weight_bytes, double grad_bytes, nd_states *s)
{
    const nd_stack *stack = context->stack;
    double compute_bytes = (double)nd_dtype_compute_bytes(context->train->precision);
    bool trains = context->train->lora_rank == 0;
    if (layout->sharding == ND_SHARDING_ZERO3) {
        s->gathered = gathered_bytes(context, h, weight_bytes);
    }
    if (trains && (fsdp || layout->sharding >= ND_SHARDING_ZERO2)) {
        /* the whole gradient of one unit, and the buffer it is reduced in */
        s->layer_grads = (compute_bytes + grad_bytes) * h->largest_layer;
        s->end_grads = (compute_bytes + grad_bytes) * h->end_unit;
    }
    if (trains && layout->sharding != ND_SHARDING_NONE) {
        /* below ZeRO-3 DeepSpeed fills one bucket while it reduces the other */
        s->buffers += stack->bucket_bytes * (layout->sharding == ND_SHARDING_ZERO3 ? 1.0 : 2.0);
    }
    if (trains && stack->dummy_wgrad) {
        s->buffers += compute_bytes * h->distinct; /* cached per shape, so they stay */
    }
}

/* How the states of one rank are divided. */
typedef struct division {
    double params;  /* of the rank before data-parallel sharding */
    double sharded; /* after it */
    double shard;   /* ranks that share the dense part */
    bool fsdp;      /* sharded in fp32, gathered in compute precision */
    double compute_bytes;
} division;

static division divide(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *h)
{
    division d = {
        .params = h->dense + h->expert,
        .shard = (double)nd_layout_shard_ranks(layout),
        .fsdp = context->stack->fsdp && layout->sharding >= ND_SHARDING_ZERO2,
        .compute_bytes = (double)nd_dtype_compute_bytes(context->train->precision),
    };
    double expert_shard =
        layout->sharding == ND_SHARDING_NONE ? 1.0 : (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks;
    d.sharded = h->dense / d.shard + h->expert / expert_shard;
    return d;
}

/* A frozen base, whole or sharded, and fp32 adapters with gradients and states. Embedding and head are not quantised.
 */
static nd_states lora_states(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *h,
                             const division *d)
{
    const nd_train_spec *train = context->train;
    double base_bytes = train->base_bits == 4 ? four_bit_bytes : (double)train->base_bits / 8.0;
    bool shards_weights = layout->sharding == ND_SHARDING_ZERO3;
    double base_share = shards_weights ? d->sharded / d->params : 1.0;
    double adapters = h->lora / (layout->sharding >= ND_SHARDING_ZERO1 ? d->shard : 1.0);
    nd_states s = {0};
    s.weights = ((d->params - h->embeddings) * base_bytes + h->embeddings * d->compute_bytes) * base_share;
    s.weights += 4.0 * (shards_weights ? h->lora / d->shard : h->lora);
    s.grads = 4.0 * adapters;
    s.optimizer = adapters * (double)nd_optimizer_state_bytes(train->optimizer);
    add_transients(context, layout, h, d->fsdp, fmax(base_bytes, d->compute_bytes), 0.0, &s);
    return s;
}

/* Parameters of one optimizer step: all of the rank, or under ZeRO-3 one of DeepSpeed's sub-groups. */
static double updated_at_once(const nd_stack *stack, const nd_layout *layout, double params)
{
    bool groups = stack->optimizer_group_params > 0.0 && layout->sharding == ND_SHARDING_ZERO3;
    return groups ? fmin(params, stack->optimizer_group_params) : params;
}

/* Bytes of one parameter's weight, gradient, whole gradient while it is reduced, and optimizer temporaries. */
typedef struct widths {
    double weight, grad, reduce, temp;
} widths;

/* PyTorch's optimizers keep their states in the precision of the weights. So where the weights are the master copy,
 * 16-bit states mean that weights and gradients are 16 bit too ("pure bf16"). */
static widths measure(const nd_cost_context *context, double compute_bytes)
{
    const nd_stack *stack = context->stack;
    const nd_train_spec *train = context->train;
    if (train->optimizer == ND_OPTIMIZER_ADAMW_BF16 && stack->master_bytes <= 0.0) {
        return (widths){compute_bytes, compute_bytes, compute_bytes, fmin(stack->optimizer_temp_bytes, compute_bytes)};
    }
    return (widths){.weight = stack->weight_bytes,
                    .grad = train->precision == ND_DTYPE_BF16 ? stack->bf16_grad_bytes : stack->grad_bytes,
                    .reduce = stack->grad_reduce_bytes,
                    .temp = stack->optimizer_temp_bytes};
}

double nd_memory_weight_bytes(const nd_cost_context *context)
{
    return measure(context, (double)nd_dtype_compute_bytes(context->train->precision)).weight;
}

static nd_states full_states(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *h,
                             const division *d)
{
    const nd_stack *stack = context->stack;
    bool shards_weights = layout->sharding == ND_SHARDING_ZERO3 || d->fsdp;
    bool keeps_gathered = d->fsdp && layout->sharding == ND_SHARDING_ZERO2;
    widths w = measure(context, d->compute_bytes);
    bool keeps_casts = layout->sharding == ND_SHARDING_NONE && w.weight > d->compute_bytes; /* autocast */
    bool shards_optimizer = layout->sharding >= ND_SHARDING_ZERO1;
    double optimizer_params = shards_optimizer ? d->sharded : d->params;
    nd_states s = {0};
    s.weights = w.weight * (shards_weights ? d->sharded : d->params);
    if (keeps_gathered || keeps_casts) {
        s.weights += d->compute_bytes * d->params;
    }
    s.grads = w.grad * (layout->sharding >= ND_SHARDING_ZERO2 ? d->sharded : d->params);
    if (nd_reduces_once(context, layout)) {
        s.grads += w.reduce * d->params; /* whole gradients add up until the last micro-batch */
    }
    s.optimizer = stack->master_bytes * optimizer_params +
                  state_bytes(context, optimizer_params, h->embeddings / (shards_optimizer ? d->shard : 1.0));
    s.optimizer_temp = w.temp * updated_at_once(stack, layout, optimizer_params);
    add_transients(context, layout, h, d->fsdp, d->compute_bytes, w.reduce, &s);
    return s;
}

nd_states nd_memory_states(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *h)
{
    division d = divide(context, layout, h);
    nd_states s =
        context->train->lora_rank > 0 ? lora_states(context, layout, h, &d) : full_states(context, layout, h, &d);
    s.load_unit = 4.0 * h->largest_unit;
    offload_states(layout, &s);
    return s;
}
