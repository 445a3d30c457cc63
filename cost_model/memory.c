/* Memory per rank: the maximum over pipeline stages and phases. docs/MODEL.md, "Memory". */
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "cost_model/estimate.h"
#include "cost_model/stages.h"

/* Host memory of one training process beside offloaded state: interpreter, libraries, pinned staging (own
 * assumption, 2 to 5 GiB are seen). */
static const double host_process_bytes = 3.0 * ND_GIB;
/* DeepSpeed sizes host memory of offloaded state with this buffer factor (memory estimators of its docs). */
static const double host_buffer_factor = 1.5;
/* Two layers of checkpoints stay on the GPU while others travel. */
static const double offloaded_layers_resident = 2.0;
/* 4-bit weights with double-quantised scales, bytes per weight (QLoRA). */
static const double four_bit_bytes = 0.52;

static const char *const verdict_names[] = {"fits", "borderline", "no"};
static const char *const phase_names[ND_PHASE_COUNT] = {
    [ND_PHASE_LOAD] = "load",           [ND_PHASE_FORWARD] = "forward", [ND_PHASE_BACKWARD] = "backward",
    [ND_PHASE_OPTIMIZER] = "optimizer", [ND_PHASE_SAVE] = "save",
};

const char *nd_verdict_name(nd_verdict verdict)
{
    return verdict_names[verdict];
}

const char *nd_phase_name(nd_phase phase)
{
    return phase_names[phase];
}

/* Parameters of one rank, before data-parallel sharding, and the largest unit that is gathered at once. */
typedef struct holdings {
    double dense, expert; /* layers, embedding and head; routed experts */
    double embeddings;    /* part of dense that stays 16 bit under quantisation */
    double lora;
    double largest_layer; /* dense part and expert part of the widest layer */
    double largest_unit;  /* that, or an embedding or head */
    double distinct;      /* sum over distinct weight shapes: one of each layer kind */
} holdings;

static holdings hold(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                     int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX])
{
    int32_t last = layout->size[ND_AXIS_PP] - 1;
    holdings h = {0};
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
    double end_unit = fmax(stage == 0 ? prices->params_embedding : 0.0,
                           stage == last ? fmax(prices->params_head, prices->params_embedding) : 0.0);
    h.dense += ends;
    h.embeddings = ends;
    h.largest_unit = fmax(h.largest_layer, end_unit);
    return h;
}

typedef struct states {
    double weights, grads, optimizer; /* resident all through the step */
    double gather_forward, gather_backward;
    double optimizer_temp;
    double host;
} states;

/* Muon keeps one moment for matrices but uses Adam for embedding and head. */
static double state_bytes(const nd_cost_context *context, double params, double embeddings)
{
    double bytes = params * (double)nd_optimizer_state_bytes(context->train->optimizer);
    return context->train->optimizer == ND_OPTIMIZER_MUON ? bytes + 4.0 * embeddings : bytes;
}

static void offload_states(const nd_layout *layout, states *s)
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

/* Transient copies: gathered layers, whole gradients, and Transformer Engine's dummy weight gradients. */
static void add_transients(const nd_cost_context *context, const nd_layout *layout, const holdings *h, bool fsdp,
                           double weight_bytes, double grad_bytes, states *s)
{
    const nd_stack *stack = context->stack;
    double compute_bytes = (double)nd_dtype_compute_bytes(context->train->precision);
    bool trains = context->train->lora_rank == 0;
    if (layout->sharding == ND_SHARDING_ZERO3) {
        double gathered = stack->gathered_layers * weight_bytes * h->largest_layer + compute_bytes * h->largest_unit;
        s->gather_forward += gathered;
        s->gather_backward += gathered;
    }
    if (trains && (fsdp || layout->sharding == ND_SHARDING_ZERO3 || layout->sharding == ND_SHARDING_ZERO2)) {
        /* the whole gradient of one unit, and the buffer it is reduced in */
        s->gather_backward += (compute_bytes + grad_bytes) * h->largest_unit;
    }
    if (trains && stack->dummy_wgrad) {
        s->gather_backward += compute_bytes * h->distinct;
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

static division divide(const nd_cost_context *context, const nd_layout *layout, const holdings *h)
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
static states lora_states(const nd_cost_context *context, const nd_layout *layout, const holdings *h, const division *d)
{
    const nd_train_spec *train = context->train;
    double base_bytes = train->base_bits == 4 ? four_bit_bytes : (double)train->base_bits / 8.0;
    bool shards_weights = layout->sharding == ND_SHARDING_ZERO3;
    double base_share = shards_weights ? d->sharded / d->params : 1.0;
    double adapters = h->lora / (layout->sharding >= ND_SHARDING_ZERO1 ? d->shard : 1.0);
    states s = {0};
    s.weights = ((d->params - h->embeddings) * base_bytes + h->embeddings * d->compute_bytes) * base_share;
    s.weights += 4.0 * (shards_weights ? h->lora / d->shard : h->lora);
    s.grads = 4.0 * adapters;
    s.optimizer = adapters * (double)nd_optimizer_state_bytes(train->optimizer);
    add_transients(context, layout, h, d->fsdp, fmax(base_bytes, d->compute_bytes), 0.0, &s);
    return s;
}

static states full_states(const nd_cost_context *context, const nd_layout *layout, const holdings *h, const division *d)
{
    const nd_stack *stack = context->stack;
    bool shards_weights = layout->sharding == ND_SHARDING_ZERO3 || d->fsdp;
    bool keeps_gathered = d->fsdp && layout->sharding == ND_SHARDING_ZERO2;
    bool keeps_casts = layout->sharding == ND_SHARDING_NONE && stack->weight_bytes > d->compute_bytes; /* autocast */
    bool shards_optimizer = layout->sharding >= ND_SHARDING_ZERO1;
    double optimizer_params = shards_optimizer ? d->sharded : d->params;
    states s = {0};
    s.weights = stack->weight_bytes * (shards_weights ? d->sharded : d->params);
    if (keeps_gathered || keeps_casts) {
        s.weights += d->compute_bytes * d->params;
    }
    double grad_bytes = context->train->precision == ND_DTYPE_BF16 ? stack->bf16_grad_bytes : stack->grad_bytes;
    s.grads = grad_bytes * (layout->sharding >= ND_SHARDING_ZERO2 ? d->sharded : d->params);
    if (nd_reduces_once(context, layout)) {
        s.grads += stack->grad_reduce_bytes * d->params; /* whole gradients add up until the last micro-batch */
    }
    s.optimizer = stack->master_bytes * optimizer_params +
                  state_bytes(context, optimizer_params, h->embeddings / (shards_optimizer ? d->shard : 1.0));
    s.optimizer_temp = stack->optimizer_temp_bytes * optimizer_params;
    add_transients(context, layout, h, d->fsdp, d->compute_bytes, stack->grad_reduce_bytes, &s);
    return s;
}

static states count_states(const nd_cost_context *context, const nd_layout *layout, const holdings *h)
{
    division d = divide(context, layout, h);
    states s =
        context->train->lora_rank > 0 ? lora_states(context, layout, h, &d) : full_states(context, layout, h, &d);
    offload_states(layout, &s);
    return s;
}

typedef struct activations {
    double saved, working, logits, host;
} activations;

static activations count_activations(const nd_cost_context *context, const nd_layout *layout,
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
    activations a = {0};
    for (int64_t kind = 0; kind < context->model->layer_kinds_count; kind++) {
        if (counts[kind] == 0) {
            continue;
        }
        double per_layer = prices->saved_bytes[kind];
        if (layout->recompute == ND_RECOMPUTE_EVERY) {
            per_layer = recomputed * per_layer + (1.0 - recomputed) * prices->saved_bytes_none[kind];
        }
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
        double columns = (double)context->model->vocab / (double)layout->size[ND_AXIS_TP];
        a.logits = tokens * columns * context->stack->style.logit_bytes / context->stack->style.loss_chunks;
        a.saved += 2.0 * residual; /* input and output of the final norm */
    }
    return a;
}

/* Process groups with more than one rank: each has its own communicator buffers. */
static double communicator_bytes(const nd_cost_context *context, const nd_layout *layout)
{
    const nd_group_kind kinds[] = {ND_GROUP_TP,        ND_GROUP_CP, ND_GROUP_SHARD,
                                   ND_GROUP_REPLICATE, ND_GROUP_PP, ND_GROUP_EP};
    int groups = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        groups += nd_mesh_group(layout, kinds[i]).ranks > 1;
    }
    return (double)groups * context->stack->group_bytes;
}

static double with_overhead(const nd_cost_context *context, double allocated, double fixed)
{
    return allocated * context->stack->reserved_ratio + fixed;
}

/* Load: the shards, and on top the largest whole tensor that passes through in fp32. Save: the shards, and one unit
 * gathered to write it. */
static void other_phases(const nd_cost_context *context, const states *s, const holdings *h, double fixed,
                         double phase[ND_PHASE_COUNT])
{
    phase[ND_PHASE_LOAD] = with_overhead(context, s->weights + 4.0 * h->largest_unit, fixed);
    phase[ND_PHASE_OPTIMIZER] = with_overhead(context, s->weights + s->grads + s->optimizer + s->optimizer_temp, fixed);
    phase[ND_PHASE_SAVE] = with_overhead(context, s->weights + s->optimizer + 4.0 * h->largest_unit, fixed);
}

/* The terms of the phase that peaks. */
static void record_terms(const states *s, const activations *a, const holdings *h, nd_memory_breakdown *out)
{
    out->weights_bytes = s->weights;
    out->grads_bytes = 0.0;
    out->optimizer_bytes = s->optimizer;
    out->activations_bytes = 0.0;
    out->logits_bytes = 0.0;
    switch (out->phase) {
    case ND_PHASE_LOAD:
        out->optimizer_bytes = 0.0;
        out->gather_buffers_bytes = 4.0 * h->largest_unit;
        break;
    case ND_PHASE_SAVE:
        out->gather_buffers_bytes = 4.0 * h->largest_unit;
        break;
    case ND_PHASE_OPTIMIZER:
        out->grads_bytes = s->grads;
        out->optimizer_bytes += s->optimizer_temp;
        out->gather_buffers_bytes = 0.0;
        break;
    case ND_PHASE_FORWARD:
    case ND_PHASE_BACKWARD:
    case ND_PHASE_COUNT:
        out->grads_bytes = s->grads;
        out->activations_bytes = a->saved + (out->phase == ND_PHASE_BACKWARD ? a->working : 0.0);
        out->logits_bytes = a->logits;
        out->gather_buffers_bytes = out->phase == ND_PHASE_BACKWARD ? s->gather_backward : s->gather_forward;
        break;
    }
}

static void estimate_stage(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           int32_t stage, double fixed, nd_memory_breakdown *out)
{
    int64_t counts[ND_LAYER_KINDS_MAX];
    nd_stage_layers(context, layout, stage, counts);
    holdings h = hold(context, layout, prices, stage, counts);
    states s = count_states(context, layout, &h);
    activations a = count_activations(context, layout, prices, stage, counts);
    double resident = s.weights + s.grads + s.optimizer;
    double phase[ND_PHASE_COUNT];
    other_phases(context, &s, &h, fixed, phase);
    double forward = resident + a.saved + a.logits + s.gather_forward;
    double backward = resident + a.saved + a.logits + a.working + s.gather_backward;
    phase[ND_PHASE_FORWARD] = with_overhead(context, forward, fixed);
    phase[ND_PHASE_BACKWARD] = with_overhead(context, backward, fixed);
    for (int i = 0; i < ND_PHASE_COUNT; i++) {
        out->phase_bytes[i] = fmax(out->phase_bytes[i], phase[i]);
        if (phase[i] > out->peak_bytes) {
            out->peak_bytes = phase[i];
            out->phase = (nd_phase)i;
            out->stage = stage;
            record_terms(&s, &a, &h, out);
        }
    }
    double ranks = (double)context->cluster->gpus_per_node;
    double host = ranks * (host_process_bytes + host_buffer_factor * s.host + a.host);
    out->host_bytes = fmax(out->host_bytes, host);
}

/* While loading, the node's processes hold whole copies of the 16-bit model, or one of them does. */
static double host_load_bytes(const nd_cost_context *context)
{
    double model_bytes = 2.0 * (double)context->params.total;
    double ranks = (double)context->cluster->gpus_per_node;
    double copies = context->stack->load_full_model > 0.0 ? ranks : 1.0;
    return ranks * host_process_bytes + copies * model_bytes;
}

static nd_verdict judge(const nd_memory_breakdown *m)
{
    if (m->peak_high_bytes <= m->capacity_bytes) {
        return ND_VERDICT_FITS;
    }
    return m->peak_low_bytes > m->capacity_bytes ? ND_VERDICT_NO : ND_VERDICT_BORDERLINE;
}

void nd_estimate_memory(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                        nd_memory_breakdown *out)
{
    memset(out, 0, sizeof *out);
    int32_t stages[8];
    int32_t count = nd_stage_candidates(context, layout, stages);
    double fixed = context->stack->context_bytes + communicator_bytes(context, layout);
    for (int32_t i = 0; i < count; i++) {
        estimate_stage(context, layout, prices, stages[i], fixed, out);
    }
    out->allocated_bytes = out->weights_bytes + out->grads_bytes + out->optimizer_bytes + out->activations_bytes +
                           out->gather_buffers_bytes + out->logits_bytes;
    out->overhead_bytes = out->peak_bytes - out->allocated_bytes;
    out->peak_low_bytes = out->peak_bytes * context->calibration->memory_low_frac;
    out->peak_high_bytes = out->peak_bytes * context->calibration->memory_high_frac;
    out->capacity_bytes = (double)context->cluster->gpu.memory_bytes;
    out->host_load_bytes = host_load_bytes(context);
    out->verdict = judge(out);
}
