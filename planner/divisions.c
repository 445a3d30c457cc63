#include "planner/divisions.h"

#include <string.h>

#include "planner/constraints.h"

static const struct {
    const char *name;
    nd_axis axis; /* ND_AXIS_COUNT: ep */
} axes[ND_DIVISION_AXES] = {
    {"dp_replicate", ND_AXIS_DP_REPLICATE},
    {"dp_shard", ND_AXIS_DP_SHARD},
    {"cp", ND_AXIS_CP},
    {"tp", ND_AXIS_TP},
    {"pp", ND_AXIS_PP},
    {"ep", ND_AXIS_COUNT},
};

/* A cluster of twice the GPUs and the batch that goes with it. Borrows itself. */
typedef struct doubled {
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_cost_context context;
} doubled;

/* Twice the nodes keep the GPU and its memory, which is all that matters here. */
static bool double_cluster(const nd_cost_context *context, doubled *out)
{
    nd_error err;
    out->train = *context->train;
    return nd_cluster_resize(context->cluster, 2 * context->cluster->nodes, &out->cluster, &err) == ND_OK &&
           nd_cost_context_like(context, &out->cluster, &out->train, context->stack, &out->context, &err) == ND_OK;
}

static void settle_modes(const nd_cost_context *context, const nd_layout *from, nd_layout *layout)
{
    const nd_stack *stack = context->stack;
    if (layout->sharding == ND_SHARDING_NONE && layout->size[ND_AXIS_DP_SHARD] > 1) {
        layout->sharding = stack->default_sharding;
    }
    if (from->size[ND_AXIS_TP] == 1 && layout->size[ND_AXIS_TP] > 1) {
        layout->sequence_parallel = stack->tp_implies_sp || !stack->tp_without_sp || stack->tp_usually_sp;
    }
    for (int method = 0; from->size[ND_AXIS_CP] == 1 && method < ND_CP_METHOD_COUNT; method++) {
        if ((stack->cp_methods >> method & 1u) != 0) {
            layout->cp_method = (nd_cp_method)method;
            break;
        }
    }
}

static void memory_in(const nd_cost_context *context, const nd_layout *layout, nd_phase phase, nd_memory_breakdown *out)
{
    nd_block_prices prices;
    nd_price_blocks(context, layout, &prices);
    nd_estimate_memory_phase(context, layout, &prices, phase, out);
}

void nd_divide_memory(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      nd_divisions *out)
{
    nd_block_prices prices;
    nd_memory_breakdown whole;
    doubled twice;
    memset(out, 0, sizeof *out);
    nd_price_blocks(context, layout, &prices);
    nd_estimate_memory(context, layout, &prices, &whole);
    memory_in(context, layout, whole.phase, &out->memory);
    bool can_double = double_cluster(context, &twice);
    for (int i = 0; i < ND_DIVISION_AXES; i++) {
        nd_division *division = &out->axis[i];
        nd_layout wider = *layout;
        bool ep = axes[i].axis == ND_AXIS_COUNT;
        const nd_cost_context *used = ep ? context : &twice.context;
        division->axis = axes[i].name;
        if (!ep && !can_double) {
            division->rule = "cluster-size";
            continue;
        }
        if (ep) {
            wider.ep *= 2;
        } else {
            bool data = axes[i].axis == ND_AXIS_DP_REPLICATE || axes[i].axis == ND_AXIS_DP_SHARD;
            wider.size[axes[i].axis] *= 2;
            twice.train.global_batch_seqs = context->train->global_batch_seqs * (data ? 2 : 1);
        }
        settle_modes(context, layout, &wider);
        if (nd_layout_allowed(used, framework, &wider, &division->rule, NULL)) {
            division->rule = NULL;
            memory_in(used, &wider, whole.phase, &division->memory);
        }
    }
}
