/* The split of a run: no cluster says how long a layer takes, so layers weigh what they compute. docs/MODEL.md,
 * "Pipeline split". */
#include <string.h>

#include "cost_model/price.h"
#include "cost_model/split.h"

/* FLOPs in the place of seconds. */
static void count_pass(const nd_cost_context *context, const nd_layout *layout, nd_part_kind part, int32_t kind,
                       nd_pass pass, nd_part_price *out)
{
    nd_op_list list;
    nd_block_ops(context->model, layout, context->train, &context->stack->style, part, kind, pass, &list);
    for (int32_t i = 0; i < list.count; i++) {
        out->gemm_s[pass] += list.ops[i].flops;
    }
}

static void count_part(const nd_cost_context *context, const nd_layout *layout, nd_part_kind part, int32_t kind,
                       nd_part_price *out)
{
    for (int pass = 0; pass < ND_PASS_COUNT; pass++) {
        count_pass(context, layout, part, kind, (nd_pass)pass, out);
    }
}

static void count_flops(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *out)
{
    nd_recompute mode = layout->recompute == ND_RECOMPUTE_EVERY ? ND_RECOMPUTE_FULL : layout->recompute;
    memset(out, 0, sizeof *out);
    for (int32_t kind = 0; kind < (int32_t)context->model->layer_kinds_count; kind++) {
        count_part(context, layout, ND_PART_LAYER, kind, &out->layer[kind]);
        out->saved_bytes[kind] =
            nd_block_saved_bytes(context->model, layout, context->train, &context->stack->style, kind, mode);
    }
    count_part(context, layout, ND_PART_EMBEDDING, 0, &out->embedding);
    count_part(context, layout, ND_PART_HEAD, 0, &out->head);
    nd_price_params(context, layout, out);
}

void nd_split_stages_by_flops(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              const nd_stack *stack, nd_stage_split *out)
{
    nd_cost_context context; /* of which a split reads no more than this */
    nd_block_prices prices;
    memset(&context, 0, sizeof context);
    context.model = model;
    context.train = train;
    context.stack = stack;
    context.params = nd_model_params(model);
    count_flops(&context, layout, &prices);
    nd_split_stages(&context, layout, &prices, out);
}

nd_chunk_map nd_stage_split_chunks(const nd_stage_split *split)
{
    nd_chunk_map map = {.chunks = split->chunks};
    for (int32_t chunk = 0; chunk <= split->chunks; chunk++) {
        map.first[chunk] = (int32_t)nd_split_start(split, chunk);
    }
    return map;
}
