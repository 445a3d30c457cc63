/** Who takes part in a collective: the members of a rank's groups, as global ranks in the order of the group.
 *
 * core/mesh.h says how large the groups of a layout are and how far apart; here are those that only a running program
 * needs too: who holds the same key-value heads, both copies of a tied embedding, the data ranks of one cp member.
 */
#ifndef ND_PROGRAM_MEMBERS_H
#define ND_PROGRAM_MEMBERS_H

#include "core/layout.h"
#include "core/mesh.h"

ND_BEGIN_DECLS

#define ND_MEMBERS_LIST(X)                                                                                             \
    X(ND_MEMBERS_TP, "tp")                                                                                             \
    X(ND_MEMBERS_CP, "cp")                                                                                             \
    X(ND_MEMBERS_SHARD, "shard")               /* dp_shard x cp */                                                     \
    X(ND_MEMBERS_DP_SHARD, "dp_shard")         /* dp_shard alone */                                                    \
    X(ND_MEMBERS_REPLICATE, "replicate")       /* dp_replicate */                                                      \
    X(ND_MEMBERS_GRAD, "grad")                 /* dp_replicate x dp_shard x cp */                                      \
    X(ND_MEMBERS_EP, "ep")                     /* pieces of ep neighbours of dp_shard x cp x tp */                     \
    X(ND_MEMBERS_EXPERT_SHARD, "expert_shard") /* ranks of dp_shard x cp x tp with the same experts */                 \
    X(ND_MEMBERS_EXPERT_GRAD, "expert_grad")   /* the same across dp_replicate too */                                  \
    X(ND_MEMBERS_KV_REPLICA, "kv_replica")     /* ranks of tp with the same key-value head (tp > kv heads) */          \
    X(ND_MEMBERS_EMBED, "embed")               /* first and last stage */                                              \
    X(ND_MEMBERS_WORLD, "world")

typedef enum nd_members_kind {
#define ND_MEMBERS_ENUM(name, text) name,
    ND_MEMBERS_LIST(ND_MEMBERS_ENUM)
#undef ND_MEMBERS_ENUM
        ND_MEMBERS_COUNT
} nd_members_kind;

enum { ND_MEMBERS_MAX = 1 << 20 };

/** The group of one rank: member i is `first + i x stride` (every group is an arithmetic progression). */
typedef struct nd_members {
    int64_t first, stride;
    int32_t count; /* >= 1 */
    int32_t index; /* of the rank itself */
} nd_members;

const char *nd_members_name(nd_members_kind kind); /* "tp"; never NULL */

/** The group of `rank`. A stage between the first and the last is alone in its "embed" group.
 * \param[in] kv_heads  of the model; any number where tp does not exceed it */
nd_members nd_members_of(const nd_layout *layout, int64_t kv_heads, nd_members_kind kind, int64_t rank);

ND_END_DECLS

#endif
