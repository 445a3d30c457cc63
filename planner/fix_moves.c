/* Single changes of a layout or its training. What makes no sense is left out here; what is not legal, later. */
#include "planner/constraints.h"
#include "planner/constraints_internal.h"
#include "planner/fixes_internal.h"

/* More nodes are tried up to this factor. */
enum { NODES_FACTOR_MAX = 16 };
/* Rank of adapters that nobody chose yet: the default of Axolotl's examples and of many LoRA recipes. */
enum { LORA_RANK = 16 };
/* Chunks of torchtune's CEWithChunkedOutputLoss (num_output_chunks); fused-linear kernels like Liger's use about as
 * many at usual vocabularies. */
static const double chunked_loss_chunks = 8.0;

typedef struct scene {
    const nd_cost_context *context;
    const nd_framework *framework;
    const nd_fix_state *from;
    nd_fix_moves *out;
} scene;

static void add(const scene *s, nd_fix_kind kind, const nd_fix_state *state)
{
    if (s->out->count < ND_FIX_MOVES_MAX) {
        s->out->moves[s->out->count++] = (nd_fix_move){kind, *state};
    }
}

static void add_layout(const scene *s, nd_fix_kind kind, const nd_layout *layout)
{
    nd_fix_state state = *s->from;
    state.layout = *layout;
    add(s, kind, &state);
}

static void add_recompute(const scene *s)
{
    const nd_recompute now = s->from->layout.recompute;
    const struct {
        nd_recompute mode;
        int32_t every;
        bool more;
    } modes[] = {
        {ND_RECOMPUTE_SELECTIVE, 1, now == ND_RECOMPUTE_NONE},
        {ND_RECOMPUTE_EVERY, 2,
         now == ND_RECOMPUTE_NONE || now == ND_RECOMPUTE_SELECTIVE ||
             (now == ND_RECOMPUTE_EVERY && s->from->layout.recompute_every > 2)},
        {ND_RECOMPUTE_FULL, 1, now != ND_RECOMPUTE_FULL},
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (modes[i].more) {
            nd_layout layout = s->from->layout;
            layout.recompute = modes[i].mode;
            layout.recompute_every = modes[i].every;
            add_layout(s, ND_FIX_RECOMPUTE, &layout);
        }
    }
}

static void add_micro_batch(const scene *s)
{
    const nd_layout *from = &s->from->layout;
    for (int32_t micro_batch = from->micro_batch - 1; micro_batch >= 1; micro_batch--) {
        bool halves = micro_batch == 1 || micro_batch * 2 == from->micro_batch;
        if (halves && from->micro_batch % micro_batch == 0) {
            nd_layout layout = *from;
            layout.micro_batch = micro_batch;
            layout.grad_accum *= from->micro_batch / micro_batch;
            add_layout(s, ND_FIX_MICRO_BATCH, &layout);
        }
    }
}

/* Stronger sharding of the ranks that share already, and all data ranks in one shard group. */
static void add_sharding(const scene *s)
{
    nd_layout layout = s->from->layout;
    bool shares = layout.size[ND_AXIS_DP_SHARD] * layout.size[ND_AXIS_CP] > 1;
    for (int mode = (int)layout.sharding + 1; shares && mode < ND_SHARDING_COUNT; mode++) {
        layout.sharding = (nd_sharding)mode;
        add_layout(s, ND_FIX_SHARDING, &layout);
    }
    layout = s->from->layout;
    if (layout.size[ND_AXIS_DP_REPLICATE] == 1) {
        return;
    }
    layout.size[ND_AXIS_DP_SHARD] *= layout.size[ND_AXIS_DP_REPLICATE];
    layout.size[ND_AXIS_DP_REPLICATE] = 1;
    int first = layout.sharding == ND_SHARDING_NONE ? (int)ND_SHARDING_ZERO1 : (int)layout.sharding;
    for (int mode = first; mode < ND_SHARDING_COUNT; mode++) {
        layout.sharding = (nd_sharding)mode;
        add_layout(s, ND_FIX_SHARDING, &layout);
    }
}

static void add_sequence_parallel(const scene *s)
{
    nd_layout layout = s->from->layout;
    if (layout.size[ND_AXIS_TP] > 1 && !layout.sequence_parallel) {
        layout.sequence_parallel = true;
        add_layout(s, ND_FIX_SEQUENCE_PARALLEL, &layout);
    }
}

/* Halve the data ranks, which leaves two micro-batches to each for every one before; false when there are none. */
static bool take_data_ranks(nd_layout *layout)
{
    nd_axis axis = layout->size[ND_AXIS_DP_SHARD] % 2 == 0 ? ND_AXIS_DP_SHARD : ND_AXIS_DP_REPLICATE;
    if (layout->size[axis] % 2 != 0) {
        return false;
    }
    layout->size[axis] /= 2;
    layout->grad_accum *= 2;
    return true;
}

/* Sharding over one rank is none. */
static void settle_sharding(const nd_cost_context *context, nd_layout *layout)
{
    bool shares = layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] > 1;
    if (!shares) {
        layout->sharding = ND_SHARDING_NONE;
    } else if (layout->sharding == ND_SHARDING_NONE && !nd_mask_has(context->stack->shardings, (int)ND_SHARDING_NONE)) {
        layout->sharding = context->stack->default_sharding;
    }
}

static void add_tp(const scene *s)
{
    nd_layout layout = s->from->layout;
    if (!take_data_ranks(&layout)) {
        return;
    }
    bool first = layout.size[ND_AXIS_TP] == 1;
    layout.size[ND_AXIS_TP] *= 2;
    settle_sharding(s->context, &layout);
    if (first) {
        layout.sequence_parallel = true;
        if (!nd_layout_allowed(s->context, s->framework, &layout, NULL, NULL)) {
            layout.sequence_parallel = false; /* where the software has none */
        }
    }
    add_layout(s, ND_FIX_TP, &layout);
}

static void add_cp(const scene *s)
{
    nd_layout layout = s->from->layout;
    if (!take_data_ranks(&layout)) {
        return;
    }
    for (int method = 0; layout.size[ND_AXIS_CP] == 1 && method < ND_CP_METHOD_COUNT; method++) {
        if (nd_mask_has(s->context->stack->cp_methods, method)) {
            layout.cp_method = (nd_cp_method)method;
            break;
        }
    }
    layout.size[ND_AXIS_CP] *= 2;
    settle_sharding(s->context, &layout);
    add_layout(s, ND_FIX_CP, &layout);
}

static void add_pp(const scene *s)
{
    nd_layout layout = s->from->layout;
    if (take_data_ranks(&layout)) {
        layout.size[ND_AXIS_PP] *= 2;
        settle_sharding(s->context, &layout);
        add_layout(s, ND_FIX_PP, &layout);
    }
}

static void add_ep(const scene *s)
{
    nd_layout layout = s->from->layout;
    if (s->context->model->experts > 0) {
        layout.ep *= 2;
        add_layout(s, ND_FIX_EP, &layout);
    }
}

/* All other modes: more of it frees the GPU, less of it the host. */
static void add_offload(const scene *s)
{
    static const nd_offload modes[] = {ND_OFFLOAD_NONE, ND_OFFLOAD_OPTIMIZER, ND_OFFLOAD_PARAMS,
                                       ND_OFFLOAD_ACTIVATIONS};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (modes[i] != s->from->layout.offload) {
            nd_layout layout = s->from->layout;
            layout.offload = modes[i];
            add_layout(s, ND_FIX_OFFLOAD, &layout);
        }
    }
}

/* 16-bit states mean more than states where the weights are the master copy: weights and gradients follow. */
static void add_optimizer(const scene *s)
{
    nd_fix_state state = *s->from;
    if (state.train.optimizer != ND_OPTIMIZER_ADAMW || state.train.lora_rank > 0) {
        return;
    }
    state.train.optimizer = ND_OPTIMIZER_ADAMW_8BIT;
    add(s, ND_FIX_OPTIMIZER, &state);
    if (s->context->stack->master_bytes <= 0.0 && state.train.precision == ND_DTYPE_BF16) {
        state.train.optimizer = ND_OPTIMIZER_ADAMW_BF16;
        add(s, ND_FIX_OPTIMIZER, &state);
    }
}

static void add_loss(const scene *s)
{
    nd_fix_state state = *s->from;
    if (state.loss_chunks < chunked_loss_chunks) {
        state.loss_chunks = chunked_loss_chunks;
        add(s, ND_FIX_LOSS, &state);
    }
}

/* More nodes widen the shard group; a layout without one gains nothing from them. */
static void add_nodes(const scene *s)
{
    for (int32_t factor = 2; factor <= NODES_FACTOR_MAX; factor++) {
        nd_fix_state state = *s->from;
        if (state.layout.sharding == ND_SHARDING_NONE || state.layout.grad_accum % factor != 0) {
            continue;
        }
        state.nodes *= factor;
        state.layout.size[ND_AXIS_DP_SHARD] *= factor;
        state.layout.grad_accum /= factor;
        add(s, ND_FIX_NODES, &state);
    }
}

static void add_seq_len(const scene *s)
{
    nd_fix_state state = *s->from;
    if (state.train.seq_len_tokens % 2 == 0) {
        state.train.seq_len_tokens /= 2;
        add(s, ND_FIX_SEQ_LEN, &state);
    }
}

static void add_lora(const scene *s)
{
    nd_fix_state state = *s->from;
    if (state.train.lora_rank == 0) {
        state.train.lora_rank = LORA_RANK;
        add(s, ND_FIX_LORA, &state);
    }
}

static void add_qlora(const scene *s)
{
    nd_fix_state state = *s->from;
    if (state.train.lora_rank == 0 || state.train.base_bits > 4) {
        state.train.lora_rank = state.train.lora_rank > 0 ? state.train.lora_rank : LORA_RANK;
        state.train.base_bits = 4;
        add(s, ND_FIX_QLORA, &state);
    }
}

void nd_fix_moves_of(const nd_cost_context *context, const nd_framework *framework, const nd_fix_state *from,
                     uint32_t kinds, nd_fix_moves *out)
{
    static void (*const adders[ND_FIX_COUNT])(const scene *) = {
        [ND_FIX_RECOMPUTE] = add_recompute,
        [ND_FIX_MICRO_BATCH] = add_micro_batch,
        [ND_FIX_SHARDING] = add_sharding,
        [ND_FIX_TP] = add_tp,
        [ND_FIX_CP] = add_cp,
        [ND_FIX_PP] = add_pp,
        [ND_FIX_EP] = add_ep,
        [ND_FIX_SEQUENCE_PARALLEL] = add_sequence_parallel,
        [ND_FIX_OFFLOAD] = add_offload,
        [ND_FIX_OPTIMIZER] = add_optimizer,
        [ND_FIX_LOSS] = add_loss,
        [ND_FIX_NODES] = add_nodes,
        [ND_FIX_SEQ_LEN] = add_seq_len,
        [ND_FIX_LORA] = add_lora,
        [ND_FIX_QLORA] = add_qlora,
    };
    scene s = {context, framework, from, out};
    out->count = 0;
    for (int kind = 0; kind < ND_FIX_COUNT; kind++) {
        if ((kinds >> kind & 1u) != 0) {
            adders[kind](&s);
        }
    }
}
