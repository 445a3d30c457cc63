/* How many layouts are below a branch, without visiting them. The loops mirror those of search_walk.c. */
#include "planner/search_internal.h"

int64_t nd_count_below_pipeline(const nd_search_space *space, nd_layout layout, nd_layout *first)
{
    int32_t cp = layout.size[ND_AXIS_CP];
    int64_t inner = (int64_t)cp * layout.size[ND_AXIS_TP];
    int32_t ranks = (int32_t)(space->context->cluster->gpus / inner / layout.size[ND_AXIS_PP]);
    int64_t count = 0;
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t shard = space->divisors[i];
        if (!nd_space_has_data_split(space, &layout, ranks, shard)) {
            continue;
        }
        if (count == 0 && first != NULL) {
            nd_sharding shardings[ND_SHARDING_COUNT];
            (void)nd_space_shardings(space, shard, cp, shardings);
            *first = layout;
            first->size[ND_AXIS_DP_SHARD] = shard;
            first->size[ND_AXIS_DP_REPLICATE] = ranks / shard;
            first->sharding = shardings[0];
        }
        count += space->shardings_count[shard > 1][cp > 1];
    }
    return count;
}

int64_t nd_count_below_unit(const nd_search_space *space, int32_t micro_batch_index, nd_layout layout, nd_layout *first)
{
    int32_t ranks = (int32_t)(space->context->cluster->gpus / layout.size[ND_AXIS_CP] / layout.size[ND_AXIS_TP]);
    int64_t count = 0;
    layout.micro_batch = space->micro_batches[micro_batch_index];
    for (int32_t i = 0; i < space->divisors_count && space->divisors[i] <= ranks; i++) {
        int32_t pp = space->divisors[i];
        if (ranks % pp != 0 || space->pipelines_count[i] == 0 ||
            !nd_space_has_micro_batch(space, micro_batch_index, ranks / pp, &layout.grad_accum)) {
            continue;
        }
        layout.size[ND_AXIS_PP] = pp;
        nd_pipeline_choice choices[ND_PIPELINES_MAX];
        if (count == 0 && first != NULL) {
            (void)nd_space_pipelines(space, pp, choices);
            layout.vpp = choices[0].vpp;
            layout.split = choices[0].split;
            layout.schedule = choices[0].schedule;
        }
        count += space->pipelines_count[i] * nd_count_below_pipeline(space, layout, count == 0 ? first : NULL);
    }
    return count;
}
