/* Memory per rank: the maximum over pipeline stages and phases. docs/MODEL.md, "Memory". */
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "cost_model/memory_internal.h"
#include "cost_model/stages.h"

/* Host memory of one training process beside offloaded state: interpreter, libraries, pinned staging (own
 * assumption, 2 to 5 GiB are seen). */
static const double host_process_bytes = 2.0 * ND_GIB;
/* Of the optimizer's temporaries a fused optimizer needs no more than this (DeepSpeed's fp32 gradients; own count). */
static const double fused_temp_frac = 0.5;
/* DeepSpeed sizes host memory of offloaded state with this buffer factor (memory estimators of its docs). */
static const double host_buffer_factor = 1.5;

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

/* What is alive at the peak of one phase. */
typedef struct alive {
    double weights, grads, optimizer, activations, logits, buffers;
    double temp; /* part of optimizer that comes and goes */
} alive;

static double sum(const alive *a)
{
    return a->weights + a->grads + a->optimizer + a->activations + a->logits + a->buffers;
}

/* The head's backward pass (gradient of the logits, whole gradient of the head) or that of a layer, which runs when
 * the logits are gone. */
static void backward_phase(const nd_states *s, const nd_activations *a, alive *out)
{
    bool head = a->logit_gradient + s->end_grads > a->working + s->layer_grads && a->logits > 0.0;
    out->activations = a->saved + (head ? 0.0 : a->working);
    out->logits = a->waiting_logits + (head ? a->logit_gradient : 0.0);
    out->buffers = s->buffers + s->gathered + (head ? s->end_grads : s->layer_grads);
}

/* Load: the shards, and on top the largest whole tensor that passes through in fp32. Save: the shards, and one unit
 * gathered to write it. */
static alive alive_in(nd_phase phase, const nd_states *s, const nd_activations *a)
{
    alive out = {.weights = s->weights, .grads = s->grads, .optimizer = s->optimizer};
    switch (phase) {
    case ND_PHASE_LOAD:
        out.grads = 0.0;
        out.optimizer = 0.0;
        out.buffers = s->load_unit;
        break;
    case ND_PHASE_SAVE:
        out.grads = 0.0;
        out.buffers = s->buffers + s->load_unit;
        break;
    case ND_PHASE_OPTIMIZER:
        out.optimizer += s->optimizer_temp;
        out.temp = s->optimizer_temp;
        out.buffers = s->buffers;
        break;
    case ND_PHASE_FORWARD:
        out.activations = a->saved;
        out.logits = a->logits + a->waiting_logits;
        out.buffers = s->buffers + s->gathered;
        break;
    case ND_PHASE_BACKWARD:
    case ND_PHASE_COUNT:
        backward_phase(s, a, &out);
        break;
    }
    return out;
}

static void record_terms(const alive *a, nd_memory_breakdown *out)
{
    out->weights_bytes = a->weights;
    out->grads_bytes = a->grads;
    out->optimizer_bytes = a->optimizer;
    out->activations_bytes = a->activations;
    out->logits_bytes = a->logits;
    out->gather_buffers_bytes = a->buffers;
    out->allocated_bytes = sum(a);
}

/* The 80 % interval: that of measured runs, and in stacks without any what their activations, loss and buffers may
 * differ by. */
static void widen(const nd_cost_context *context, const alive *a, double peak, nd_memory_breakdown *out)
{
    const nd_stack *stack = context->stack;
    double spread = a->activations + a->logits + a->buffers;
    double low = peak * context->calibration->memory_low_frac - stack->spread_low_frac * spread -
                 (1.0 - fused_temp_frac) * a->temp;
    double high = peak * context->calibration->memory_high_frac + stack->spread_high_frac * spread;
    out->peak_low_bytes = fmax(out->peak_low_bytes, low);
    out->peak_high_bytes = fmax(out->peak_high_bytes, high);
}

/* `phases`: which to look at, bit (1u << nd_phase). */
static void estimate_stage(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX], double fixed, uint32_t phases,
                           nd_memory_breakdown *out)
{
    nd_holdings h = nd_memory_hold(context, layout, prices, stage, counts);
    nd_states s = nd_memory_states(context, layout, &h);
    nd_activations a = nd_memory_activations(context, layout, prices, stage, counts);
    for (int i = 0; i < ND_PHASE_COUNT; i++) {
        if ((phases >> i & 1u) == 0) {
            continue;
        }
        alive phase = alive_in((nd_phase)i, &s, &a);
        double peak = with_overhead(context, sum(&phase), fixed);
        out->phase_bytes[i] = fmax(out->phase_bytes[i], peak);
        widen(context, &phase, peak, out);
        if (peak > out->peak_bytes) {
            out->peak_bytes = peak;
            out->phase = (nd_phase)i;
            out->stage = stage;
            record_terms(&phase, out);
        }
    }
    double ranks = (double)context->cluster->gpus_per_node;
    double host = ranks * (host_process_bytes + host_buffer_factor * s.host + a.host);
    out->host_bytes = fmax(out->host_bytes, host);
}

/* The whole model as it is loaded: fp32 where the weights train in fp32, else 16 bit. */
static double loaded_bytes(const nd_cost_context *context)
{
    double bytes = context->train->lora_rank > 0 ? 2.0 : context->stack->weight_bytes;
    return bytes * (double)context->params.total;
}

/* While loading, the node's processes hold whole copies of the model, or one of them does. */
static double host_load_bytes(const nd_cost_context *context)
{
    double ranks = (double)context->cluster->gpus_per_node;
    double copies = context->stack->load_full_model > 0.0 ? ranks : 1.0;
    return ranks * host_process_bytes + copies * loaded_bytes(context);
}

/* A stack that is known to fill GPUs while loading does not surely fit where the whole model is larger than one. */
static nd_verdict judge(const nd_stack *stack, const nd_memory_breakdown *m)
{
    bool loads = !stack->load_on_gpu || m->load_whole_bytes <= m->capacity_bytes;
    if (m->peak_high_bytes <= m->capacity_bytes && loads) {
        return ND_VERDICT_FITS;
    }
    return m->peak_low_bytes > m->capacity_bytes ? ND_VERDICT_NO : ND_VERDICT_BORDERLINE;
}

/* What every rank holds beside what the framework's allocator counts. */
static double fixed_bytes(const nd_cost_context *context, const nd_layout *layout)
{
    return context->stack->context_bytes + communicator_bytes(context, layout);
}

/* What follows from the peak, once all stages have been looked at. */
static void conclude(const nd_cost_context *context, const nd_layout *layout, double fixed, nd_memory_breakdown *out)
{
    out->overhead_bytes = out->peak_bytes - out->allocated_bytes;
    if (context->stack->load_full_model > 0.0 && layout->sharding >= ND_SHARDING_ZERO2 &&
        layout->offload != ND_OFFLOAD_PARAMS) {
        out->load_whole_bytes = with_overhead(context, loaded_bytes(context), fixed);
    }
    out->capacity_bytes = (double)context->cluster->gpu.memory_bytes;
    out->host_load_bytes = host_load_bytes(context);
    out->verdict = judge(context->stack, out);
}

/* All of them: what an estimate looks at. */
static const uint32_t every_phase = (1u << ND_PHASE_COUNT) - 1u;

static void estimate_phases(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                            const nd_stage_split *split, uint32_t phases, nd_memory_breakdown *out)
{
    memset(out, 0, sizeof *out);
    int32_t stages[ND_STAGE_CANDIDATES_MAX];
    int32_t count = nd_stage_candidates(context, split, stages);
    double fixed = fixed_bytes(context, layout);
    for (int32_t i = 0; i < count; i++) {
        int64_t counts[ND_LAYER_KINDS_MAX];
        nd_stage_layers(context, split, stages[i], counts);
        estimate_stage(context, layout, prices, stages[i], counts, fixed, phases, out);
    }
    conclude(context, layout, fixed, out);
}

void nd_estimate_memory_split(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              const nd_stage_split *split, nd_memory_breakdown *out)
{
    estimate_phases(context, layout, prices, split, every_phase, out);
}

void nd_estimate_memory(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                        nd_memory_breakdown *out)
{
    nd_stage_split split;
    nd_split_stages(context, layout, prices, &split);
    estimate_phases(context, layout, prices, &split, every_phase, out);
}

void nd_estimate_memory_phase(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              nd_phase phase, nd_memory_breakdown *out)
{
    nd_stage_split split;
    nd_split_stages(context, layout, prices, &split);
    estimate_phases(context, layout, prices, &split, 1u << phase, out);
}

void nd_estimate_stage_memory(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX], nd_memory_breakdown *out)
{
    memset(out, 0, sizeof *out);
    double fixed = fixed_bytes(context, layout);
    estimate_stage(context, layout, prices, stage, counts, fixed, every_phase, out);
    conclude(context, layout, fixed, out);
}
