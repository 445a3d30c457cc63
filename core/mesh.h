/** Ranks and coordinates: which ranks form the group of a rank along a set of axes.
 *
 * rank = ((((pp * R + dp_replicate) * S + dp_shard) * C + cp) * T + tp): tp varies fastest.
 * A group over neighbouring axes is an arithmetic progression: `ranks` members, `stride` apart.
 */
#ifndef ND_CORE_MESH_H
#define ND_CORE_MESH_H

#include <stdint.h>

#include "core/layout.h"

ND_BEGIN_DECLS

/** Sets of axes that communicate together. */
typedef enum nd_group_kind {
    ND_GROUP_TP,
    ND_GROUP_CP,
    ND_GROUP_SHARD,     /* dp_shard x cp: the FSDP / ZeRO group */
    ND_GROUP_REPLICATE, /* dp_replicate */
    ND_GROUP_GRAD,      /* dp_replicate x dp_shard x cp: where whole gradients are averaged */
    ND_GROUP_PP,
    ND_GROUP_EP,           /* ep fastest inside dp_shard x cp x tp */
    ND_GROUP_EXPERT_SHARD, /* the ranks of dp_shard x cp x tp that hold the same experts */
    ND_GROUP_EXPERT_GRAD,  /* the same across dp_replicate too */
    ND_GROUP_COUNT
} nd_group_kind;

typedef struct nd_group {
    int64_t ranks;  /* members, >= 1 */
    int64_t stride; /* distance of neighbouring members in global rank */
} nd_group;

/** "tp", "cp", "shard", ...; never NULL. */
const char *nd_group_kind_name(nd_group_kind kind);

/** Size and stride of the groups of `kind` under `layout`. */
nd_group nd_mesh_group(const nd_layout *layout, nd_group_kind kind);

/** Coordinates of `rank` (0 <= rank < nd_layout_ranks()) along every axis. */
void nd_mesh_coords(const nd_layout *layout, int64_t rank, int32_t coords[ND_AXIS_COUNT]);

/** Inverse of nd_mesh_coords(). */
int64_t nd_mesh_rank(const nd_layout *layout, const int32_t coords[ND_AXIS_COUNT]);

ND_END_DECLS

#endif
