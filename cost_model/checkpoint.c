#include "cost_model/checkpoint.h"

#include <math.h>

#include "cost_model/memory_internal.h"

/* Bytes of one trained parameter in a checkpoint. */
typedef struct saved_widths {
    double weight, optimizer;
} saved_widths;

static saved_widths widths_of(const nd_cost_context *context)
{
    double states = (double)nd_optimizer_state_bytes(context->train->optimizer);
    if (context->train->lora_rank > 0) {
        return (saved_widths){4.0, states}; /* fp32 adapters */
    }
    return (saved_widths){nd_memory_weight_bytes(context), context->stack->master_bytes + states};
}

/* Muon keeps one moment for matrices but uses Adam for embedding and head. */
static double more_state_bytes(const nd_cost_context *context)
{
    bool muon = context->train->optimizer == ND_OPTIMIZER_MUON && context->train->lora_rank == 0;
    return muon ? 4.0 * (double)(context->params.input_embedding + context->params.head) : 0.0;
}

static double trained_params(const nd_cost_context *context)
{
    return context->train->lora_rank > 0 ? context->lora_params : (double)context->params.total;
}

/* Routed experts are cut by ep where there is one, the rest by tp; both by pp and by what shards the optimizer.
 * Adapters are not on routed experts. */
static double largest_share(const nd_cost_context *context, const nd_layout *layout)
{
    double all = (double)context->params.total;
    double experts = context->train->lora_rank > 0 ? 0.0 : (double)context->params.experts_total;
    double pp = (double)layout->size[ND_AXIS_PP];
    double tp = (double)layout->size[ND_AXIS_TP];
    bool sharded = layout->sharding != ND_SHARDING_NONE;
    double shard = sharded ? (double)nd_layout_shard_ranks(layout) : 1.0;
    double expert_cut = tp * shard;
    if (layout->ep > 1) {
        expert_cut = (double)layout->ep;
        expert_cut *= sharded ? (double)nd_mesh_group(layout, ND_GROUP_EXPERT_SHARD).ranks : 1.0;
    }
    return ((all - experts) / (tp * shard) + experts / expert_cut) / (pp * all);
}

double nd_saved_bytes(const nd_cost_context *context)
{
    saved_widths widths = widths_of(context);
    return (widths.weight + widths.optimizer) * trained_params(context) + more_state_bytes(context);
}

nd_saved_state nd_saved_state_of(const nd_cost_context *context, const nd_layout *layout)
{
    saved_widths widths = widths_of(context);
    double params = trained_params(context);
    return (nd_saved_state){
        .weights_bytes = widths.weight * params,
        .optimizer_bytes = widths.optimizer * params + more_state_bytes(context),
        .rank_bytes = nd_saved_bytes(context) * largest_share(context, layout),
    };
}

nd_save_times nd_save_times_of(const nd_cost_context *context, const nd_saved_state *state, double storage_bytes_per_s)
{
    double bytes = state->weights_bytes + state->optimizer_bytes;
    double copy_s = state->rank_bytes / context->cluster->host_bytes_per_s;
    double stored_s = bytes / storage_bytes_per_s;
    return (nd_save_times){.copy_s = copy_s, .write_s = fmax(copy_s, stored_s), .read_s = fmax(copy_s, stored_s)};
}
