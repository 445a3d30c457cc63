#include "reports/advice.h"

#include <stdio.h>

#include "planner/constraints.h"

/* More nodes are tried up to this factor. */
enum { NODES_FACTOR_MAX = 16 };

typedef struct attempts {
    const nd_framework *framework;
    nd_advice *out;
    int32_t count;
} attempts;

/* Take the change in when the layout is legal with it and may fit. */
static bool try_change(attempts *a, const char *change, const nd_cost_context *cost, const nd_layout *layout)
{
    if (a->count == ND_ADVICE_MAX || !nd_layout_allowed(cost, a->framework, layout, NULL, NULL)) {
        return false;
    }
    nd_block_prices prices;
    nd_memory_breakdown memory;
    nd_price_blocks(cost, layout, &prices);
    nd_estimate_memory(cost, layout, &prices, &memory);
    if (memory.verdict == ND_VERDICT_NO) {
        return false;
    }
    nd_advice *advice = &a->out[a->count++];
    (void)snprintf(advice->change, sizeof advice->change, "%s", change);
    advice->memory = memory;
    return true;
}

static void try_training(attempts *a, const char *change, const nd_cost_context *cost, const nd_layout *layout,
                         const nd_train_spec *train)
{
    nd_cost_context changed;
    nd_error err;
    if (nd_cost_context_init(cost->model, cost->cluster, train, cost->stack, cost->calibration, &changed, &err) ==
        ND_OK) {
        (void)try_change(a, change, &changed, layout);
    }
}

static void try_offload(attempts *a, const nd_cost_context *cost, const nd_layout *layout)
{
    static const nd_offload modes[] = {ND_OFFLOAD_OPTIMIZER, ND_OFFLOAD_PARAMS};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        nd_layout changed = *layout;
        char change[64];
        changed.offload = modes[i];
        (void)snprintf(change, sizeof change, "--pin offload=%s", nd_offload_name(modes[i]));
        if (try_change(a, change, cost, &changed)) {
            return; /* the milder one is enough */
        }
    }
}

/* More nodes widen the shard group; a layout without one gains nothing from them. */
static void try_nodes(attempts *a, const nd_cost_context *cost, const nd_layout *layout)
{
    for (int32_t factor = 2; layout->sharding != ND_SHARDING_NONE && factor <= NODES_FACTOR_MAX; factor++) {
        nd_cluster_spec cluster;
        nd_cost_context changed;
        nd_layout wider = *layout;
        nd_error err;
        char change[64];
        if (layout->grad_accum % factor != 0 ||
            nd_cluster_resize(cost->cluster, cost->cluster->nodes * factor, &cluster, &err) != ND_OK ||
            nd_cost_context_init(cost->model, &cluster, cost->train, cost->stack, cost->calibration, &changed, &err) !=
                ND_OK) {
            continue;
        }
        wider.size[ND_AXIS_DP_SHARD] *= factor;
        wider.grad_accum /= factor;
        (void)snprintf(change, sizeof change, "%lld nodes", (long long)cluster.nodes);
        if (try_change(a, change, &changed, &wider)) {
            return;
        }
    }
}

int32_t nd_advice_find(const nd_cost_context *cost, const nd_framework *framework, const nd_layout *layout,
                       nd_advice out[ND_ADVICE_MAX])
{
    attempts a = {framework, out, 0};
    nd_train_spec train = *cost->train;
    if (train.lora_rank == 0 && train.optimizer == ND_OPTIMIZER_ADAMW) {
        train.optimizer = ND_OPTIMIZER_ADAMW_8BIT;
        try_training(&a, "--optimizer adamw-8bit", cost, layout, &train);
    }
    train = *cost->train;
    if (train.seq_len_tokens % 2 == 0) {
        char change[64];
        train.seq_len_tokens /= 2;
        (void)snprintf(change, sizeof change, "--seq-len %lld", (long long)train.seq_len_tokens);
        try_training(&a, change, cost, layout, &train);
    }
    try_offload(&a, cost, layout);
    try_nodes(&a, cost, layout);
    train = *cost->train;
    if (train.lora_rank == 0) {
        train.lora_rank = 16;
        try_training(&a, "--lora r=16", cost, layout, &train);
        train.base_bits = 4;
        try_training(&a, "--lora r=16,bits=4", cost, layout, &train);
    }
    return a.count;
}
