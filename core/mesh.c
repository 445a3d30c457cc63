#include "core/mesh.h"

#include <assert.h>

static const char *const kind_names[ND_GROUP_COUNT] = {
    [ND_GROUP_TP] = "tp",
    [ND_GROUP_CP] = "cp",
    [ND_GROUP_SHARD] = "shard",
    [ND_GROUP_REPLICATE] = "replicate",
    [ND_GROUP_GRAD] = "grad",
    [ND_GROUP_PP] = "pp",
    [ND_GROUP_EP] = "ep",
    [ND_GROUP_EXPERT_SHARD] = "expert_shard",
    [ND_GROUP_EXPERT_GRAD] = "expert_grad",
};

const char *nd_group_kind_name(nd_group_kind kind)
{
    assert(kind < ND_GROUP_COUNT);
    return kind_names[kind];
}

/* With ep the experts' ranks are all of dp_shard x cp x tp, cut into pieces of ep neighbours; without it
 * experts are divided by tp as every other weight is. */
static nd_group expert_shard(const nd_layout *layout)
{
    const int32_t *size = layout->size;
    int64_t dense = (int64_t)size[ND_AXIS_DP_SHARD] * size[ND_AXIS_CP];
    if (layout->ep == 1) {
        return (nd_group){.ranks = dense, .stride = size[ND_AXIS_TP]};
    }
    int64_t ranks = dense * size[ND_AXIS_TP] / layout->ep;
    return (nd_group){.ranks = ranks > 0 ? ranks : 1, .stride = layout->ep}; /* 0: an ep that a check will refuse */
}

nd_group nd_mesh_group(const nd_layout *layout, nd_group_kind kind)
{
    const int32_t *size = layout->size;
    int64_t tp = size[ND_AXIS_TP];
    int64_t replicates = size[ND_AXIS_DP_REPLICATE];
    int64_t shard = (int64_t)size[ND_AXIS_DP_SHARD] * size[ND_AXIS_CP];
    nd_group expert = expert_shard(layout);
    switch (kind) {
    case ND_GROUP_TP:
        return (nd_group){.ranks = tp, .stride = 1};
    case ND_GROUP_CP:
        return (nd_group){.ranks = size[ND_AXIS_CP], .stride = tp};
    case ND_GROUP_SHARD:
        return (nd_group){.ranks = shard, .stride = tp};
    case ND_GROUP_REPLICATE:
        return (nd_group){.ranks = replicates, .stride = shard * tp};
    case ND_GROUP_GRAD:
        return (nd_group){.ranks = replicates * shard, .stride = tp};
    case ND_GROUP_PP:
        return (nd_group){.ranks = size[ND_AXIS_PP], .stride = replicates * shard * tp};
    case ND_GROUP_EP:
        return (nd_group){.ranks = layout->ep, .stride = 1};
    case ND_GROUP_EXPERT_SHARD:
        return expert;
    case ND_GROUP_EXPERT_GRAD: /* replicas follow each other without a gap, so the stride stays */
        return (nd_group){.ranks = replicates * expert.ranks, .stride = expert.stride};
    case ND_GROUP_COUNT:
        break;
    }
    assert(false);
    return (nd_group){.ranks = 1, .stride = 1};
}

void nd_mesh_coords(const nd_layout *layout, int64_t rank, int32_t coords[ND_AXIS_COUNT])
{
    assert(rank >= 0 && rank < nd_layout_ranks(layout));
    for (int axis = ND_AXIS_COUNT - 1; axis >= 0; axis--) {
        coords[axis] = (int32_t)(rank % layout->size[axis]);
        rank /= layout->size[axis];
    }
}

int64_t nd_mesh_rank(const nd_layout *layout, const int32_t coords[ND_AXIS_COUNT])
{
    int64_t rank = 0;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        assert(coords[axis] >= 0 && coords[axis] < layout->size[axis]);
        rank = rank * layout->size[axis] + coords[axis];
    }
    return rank;
}
