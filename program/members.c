#include "program/members.h"

#include <assert.h>

static const char *const names[ND_MEMBERS_COUNT] = {
#define ND_MEMBERS_NAME(name, text) [name] = (text),
    ND_MEMBERS_LIST(ND_MEMBERS_NAME)
#undef ND_MEMBERS_NAME
};

const char *nd_members_name(nd_members_kind kind)
{
    assert(kind < ND_MEMBERS_COUNT);
    return names[kind];
}

/* The group of `rank` in a mesh where the group's own coordinate counts in steps of `stride` and has `count` values. */
static nd_members along(int64_t rank, int64_t stride, int64_t count)
{
    int64_t index = rank / stride % count;
    return (nd_members){
        .first = rank - index * stride, .stride = stride, .count = (int32_t)count, .index = (int32_t)index};
}

static nd_members of_mesh(const nd_layout *layout, nd_group_kind kind, int64_t rank)
{
    nd_group group = nd_mesh_group(layout, kind);
    return along(rank, group.stride, group.ranks);
}

static nd_members embed(const nd_layout *layout, int64_t rank)
{
    int64_t stages = layout->size[ND_AXIS_PP];
    int64_t per_stage = nd_layout_ranks(layout) / stages;
    int64_t stage = rank / per_stage;
    if (stages == 1 || (stage != 0 && stage != stages - 1)) {
        return along(rank, 1, 1);
    }
    return along(rank, per_stage * (stages - 1), 2);
}

nd_members nd_members_of(const nd_layout *layout, int64_t kv_heads, nd_members_kind kind, int64_t rank)
{
    int64_t tp = layout->size[ND_AXIS_TP];
    int64_t inner = (int64_t)layout->size[ND_AXIS_CP] * tp;
    switch (kind) {
    case ND_MEMBERS_TP:
        return of_mesh(layout, ND_GROUP_TP, rank);
    case ND_MEMBERS_CP:
        return of_mesh(layout, ND_GROUP_CP, rank);
    case ND_MEMBERS_SHARD:
        return of_mesh(layout, ND_GROUP_SHARD, rank);
    case ND_MEMBERS_DP_SHARD:
        return along(rank, inner, layout->size[ND_AXIS_DP_SHARD]);
    case ND_MEMBERS_REPLICATE:
        return of_mesh(layout, ND_GROUP_REPLICATE, rank);
    case ND_MEMBERS_GRAD:
        return of_mesh(layout, ND_GROUP_GRAD, rank);
    case ND_MEMBERS_EP:
        return of_mesh(layout, ND_GROUP_EP, rank);
    case ND_MEMBERS_EXPERT_SHARD:
        return of_mesh(layout, ND_GROUP_EXPERT_SHARD, rank);
    case ND_MEMBERS_EXPERT_GRAD:
        return of_mesh(layout, ND_GROUP_EXPERT_GRAD, rank);
    case ND_MEMBERS_KV_REPLICA:
        return along(rank, 1, tp > kv_heads ? tp / kv_heads : 1);
    case ND_MEMBERS_EMBED:
        return embed(layout, rank);
    case ND_MEMBERS_WORLD:
        return along(rank, 1, nd_layout_ranks(layout));
    case ND_MEMBERS_COUNT:
        break;
    }
    assert(false);
    return along(rank, 1, 1);
}
