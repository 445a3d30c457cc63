#include "core/layout.h"

#include <assert.h>

#define ND_NAME_ROW(enumerator, text) [enumerator] = (text),
static const char *const axis_names[ND_AXIS_COUNT] = {ND_AXIS_LIST(ND_NAME_ROW)};
static const char *const sharding_names[ND_SHARDING_COUNT] = {ND_SHARDING_LIST(ND_NAME_ROW)};
static const char *const recompute_names[ND_RECOMPUTE_COUNT] = {ND_RECOMPUTE_LIST(ND_NAME_ROW)};
static const char *const cp_method_names[ND_CP_METHOD_COUNT] = {ND_CP_METHOD_LIST(ND_NAME_ROW)};
static const char *const schedule_names[ND_SCHEDULE_COUNT] = {ND_SCHEDULE_LIST(ND_NAME_ROW)};
static const char *const split_names[ND_SPLIT_COUNT] = {ND_SPLIT_LIST(ND_NAME_ROW)};
static const char *const offload_names[ND_OFFLOAD_COUNT] = {ND_OFFLOAD_LIST(ND_NAME_ROW)};
#undef ND_NAME_ROW

static const char *const key_names[ND_LAYOUT_KEY_COUNT] = {
    [ND_LAYOUT_KEY_PP] = "pp",
    [ND_LAYOUT_KEY_DP_REPLICATE] = "dp_replicate",
    [ND_LAYOUT_KEY_DP_SHARD] = "dp_shard",
    [ND_LAYOUT_KEY_CP] = "cp",
    [ND_LAYOUT_KEY_TP] = "tp",
    [ND_LAYOUT_KEY_EP] = "ep",
    [ND_LAYOUT_KEY_VPP] = "vpp",
    [ND_LAYOUT_KEY_SP] = "sp",
    [ND_LAYOUT_KEY_CP_METHOD] = "cp_method",
    [ND_LAYOUT_KEY_SCHEDULE] = "schedule",
    [ND_LAYOUT_KEY_SPLIT] = "split",
    [ND_LAYOUT_KEY_MICRO_BATCH] = "micro_batch",
    [ND_LAYOUT_KEY_GRAD_ACCUM] = "grad_accum",
    [ND_LAYOUT_KEY_SHARDING] = "sharding",
    [ND_LAYOUT_KEY_RECOMPUTE] = "recompute",
    [ND_LAYOUT_KEY_OFFLOAD] = "offload",
};

const char *nd_axis_name(nd_axis axis)
{
    assert(axis < ND_AXIS_COUNT);
    return axis_names[axis];
}

const char *nd_sharding_name(nd_sharding sharding)
{
    assert(sharding < ND_SHARDING_COUNT);
    return sharding_names[sharding];
}

const char *nd_recompute_name(nd_recompute recompute)
{
    assert(recompute < ND_RECOMPUTE_COUNT);
    return recompute_names[recompute];
}

const char *nd_cp_method_name(nd_cp_method method)
{
    assert(method < ND_CP_METHOD_COUNT);
    return cp_method_names[method];
}

const char *nd_schedule_name(nd_schedule schedule)
{
    assert(schedule < ND_SCHEDULE_COUNT);
    return schedule_names[schedule];
}

const char *nd_split_name(nd_split split)
{
    assert(split < ND_SPLIT_COUNT);
    return split_names[split];
}

const char *nd_offload_name(nd_offload offload)
{
    assert(offload < ND_OFFLOAD_COUNT);
    return offload_names[offload];
}

const char *nd_layout_key_name(nd_layout_key key)
{
    assert(key < ND_LAYOUT_KEY_COUNT);
    return key_names[key];
}

nd_layout nd_layout_single(void)
{
    nd_layout layout = {
        .ep = 1,
        .vpp = 1,
        .micro_batch = 1,
        .grad_accum = 1,
        .cp_method = ND_CP_METHOD_RING,
        .schedule = ND_SCHEDULE_1F1B,
        .split = ND_SPLIT_EVEN,
        .sharding = ND_SHARDING_NONE,
        .recompute = ND_RECOMPUTE_NONE,
        .recompute_every = 1,
        .offload = ND_OFFLOAD_NONE,
    };
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        layout.size[axis] = 1;
    }
    return layout;
}

int64_t nd_layout_ranks(const nd_layout *layout)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        ranks *= layout->size[axis];
    }
    return ranks;
}

int64_t nd_layout_data_ranks(const nd_layout *layout)
{
    return (int64_t)layout->size[ND_AXIS_DP_REPLICATE] * layout->size[ND_AXIS_DP_SHARD];
}

int64_t nd_layout_shard_ranks(const nd_layout *layout)
{
    if (layout->sharding == ND_SHARDING_NONE) {
        return 1;
    }
    return (int64_t)layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP];
}

int64_t nd_layout_global_batch_seqs(const nd_layout *layout)
{
    return layout->micro_batch * layout->grad_accum * nd_layout_data_ranks(layout);
}

int64_t nd_layout_key_value(const nd_layout *layout, nd_layout_key key)
{
    switch (key) {
    case ND_LAYOUT_KEY_PP:
        return layout->size[ND_AXIS_PP];
    case ND_LAYOUT_KEY_DP_REPLICATE:
        return layout->size[ND_AXIS_DP_REPLICATE];
    case ND_LAYOUT_KEY_DP_SHARD:
        return layout->size[ND_AXIS_DP_SHARD];
    case ND_LAYOUT_KEY_CP:
        return layout->size[ND_AXIS_CP];
    case ND_LAYOUT_KEY_TP:
        return layout->size[ND_AXIS_TP];
    case ND_LAYOUT_KEY_EP:
        return layout->ep;
    case ND_LAYOUT_KEY_VPP:
        return layout->vpp;
    case ND_LAYOUT_KEY_SP:
        return layout->sequence_parallel;
    case ND_LAYOUT_KEY_CP_METHOD:
        return (int64_t)layout->cp_method;
    case ND_LAYOUT_KEY_SCHEDULE:
        return (int64_t)layout->schedule;
    case ND_LAYOUT_KEY_SPLIT:
        return (int64_t)layout->split;
    case ND_LAYOUT_KEY_MICRO_BATCH:
        return layout->micro_batch;
    case ND_LAYOUT_KEY_GRAD_ACCUM:
        return layout->grad_accum;
    case ND_LAYOUT_KEY_SHARDING:
        return (int64_t)layout->sharding;
    case ND_LAYOUT_KEY_RECOMPUTE:
        return ((int64_t)layout->recompute << 32) + layout->recompute_every;
    case ND_LAYOUT_KEY_OFFLOAD:
        return (int64_t)layout->offload;
    case ND_LAYOUT_KEY_COUNT:
        break;
    }
    return 0;
}
