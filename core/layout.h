/** A layout: how one training step is divided over ranks and over time.
 *
 * Mesh axes from slowest to fastest rank: pp, dp_replicate, dp_shard, cp, tp. Their product is the number
 * of ranks. `ep` re-cuts dp_shard x cp x tp (ep fastest) for the experts only.
 */
#ifndef ND_CORE_LAYOUT_H
#define ND_CORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

/* X(enumerator, text): slowest axis first. */
#define ND_AXIS_LIST(X)                                                                                                \
    X(ND_AXIS_PP, "pp")                                                                                                \
    X(ND_AXIS_DP_REPLICATE, "dp_replicate")                                                                            \
    X(ND_AXIS_DP_SHARD, "dp_shard")                                                                                    \
    X(ND_AXIS_CP, "cp")                                                                                                \
    X(ND_AXIS_TP, "tp")

#define ND_SHARDING_LIST(X)                                                                                            \
    X(ND_SHARDING_NONE, "none")                                                                                        \
    X(ND_SHARDING_ZERO1, "zero1")                                                                                      \
    X(ND_SHARDING_ZERO2, "zero2")                                                                                      \
    X(ND_SHARDING_ZERO3, "zero3")

#define ND_RECOMPUTE_LIST(X)                                                                                           \
    X(ND_RECOMPUTE_NONE, "none")                                                                                       \
    X(ND_RECOMPUTE_SELECTIVE, "selective")                                                                             \
    X(ND_RECOMPUTE_FULL, "full")                                                                                       \
    X(ND_RECOMPUTE_EVERY, "every")

#define ND_CP_METHOD_LIST(X)                                                                                           \
    X(ND_CP_METHOD_RING, "ring")                                                                                       \
    X(ND_CP_METHOD_ALLGATHER, "allgather")                                                                             \
    X(ND_CP_METHOD_ULYSSES, "ulysses")

#define ND_SCHEDULE_LIST(X)                                                                                            \
    X(ND_SCHEDULE_1F1B, "1f1b")                                                                                        \
    X(ND_SCHEDULE_INTERLEAVED, "interleaved")                                                                          \
    X(ND_SCHEDULE_ZERO_BUBBLE, "zero_bubble")                                                                          \
    X(ND_SCHEDULE_GPIPE, "gpipe")

#define ND_SPLIT_LIST(X)                                                                                               \
    X(ND_SPLIT_EVEN, "even")                                                                                           \
    X(ND_SPLIT_BALANCED, "balanced")

#define ND_OFFLOAD_LIST(X)                                                                                             \
    X(ND_OFFLOAD_NONE, "none")                                                                                         \
    X(ND_OFFLOAD_OPTIMIZER, "optimizer")                                                                               \
    X(ND_OFFLOAD_PARAMS, "params")                                                                                     \
    X(ND_OFFLOAD_ACTIVATIONS, "activations")

#define ND_ENUM_ENTRY(name, text) name,
typedef enum nd_axis { ND_AXIS_LIST(ND_ENUM_ENTRY) ND_AXIS_COUNT } nd_axis;
/** What the ranks of dp_shard (x cp) share: nothing, optimizer states, + gradients, + weights.
 * zero3 is FSDP that frees gathered weights after the forward pass; zero2 on an FSDP stack is FSDP that
 * keeps them (reshard_after_forward=False). */
typedef enum nd_sharding { ND_SHARDING_LIST(ND_ENUM_ENTRY) ND_SHARDING_COUNT } nd_sharding;
/** Activation checkpointing; ND_RECOMPUTE_EVERY recomputes every recompute_every-th layer in full. */
typedef enum nd_recompute { ND_RECOMPUTE_LIST(ND_ENUM_ENTRY) ND_RECOMPUTE_COUNT } nd_recompute;
typedef enum nd_cp_method { ND_CP_METHOD_LIST(ND_ENUM_ENTRY) ND_CP_METHOD_COUNT } nd_cp_method;
/** ND_SCHEDULE_GPIPE runs all forward passes, then all backward passes: the bubble of 1F1B with more in flight. */
typedef enum nd_schedule { ND_SCHEDULE_LIST(ND_ENUM_ENTRY) ND_SCHEDULE_COUNT } nd_schedule;
/** How layers are divided over pipeline stages: as equal counts as possible, or so that the slowest stage is fastest.
 */
typedef enum nd_split { ND_SPLIT_LIST(ND_ENUM_ENTRY) ND_SPLIT_COUNT } nd_split;
/** What lives in host memory: optimizer states; + sharded weights and gradients; or saved activations. */
typedef enum nd_offload { ND_OFFLOAD_LIST(ND_ENUM_ENTRY) ND_OFFLOAD_COUNT } nd_offload;
#undef ND_ENUM_ENTRY

typedef struct nd_layout {
    int32_t size[ND_AXIS_COUNT]; /* degree of each axis, >= 1 */
    int32_t ep;                  /* expert parallel degree, divides dp_shard x cp x tp */
    int32_t vpp;                 /* model chunks per pipeline rank; > 1 means interleaved */
    int32_t micro_batch;         /* sequences of one data-parallel rank in one micro-batch */
    int64_t grad_accum;          /* micro-batches of one step (pipeline micro-batches included) */
    bool sequence_parallel;      /* norms and residual divided over tp */
    nd_cp_method cp_method;
    nd_schedule schedule; /* pipeline schedule; meaningless when pp is 1 */
    nd_split split;       /* of the layers over stages; meaningless when pp is 1 */
    nd_sharding sharding;
    nd_recompute recompute;
    int32_t recompute_every; /* k of ND_RECOMPUTE_EVERY, >= 1; otherwise 1 */
    nd_offload offload;
} nd_layout;

/** Names of the enumerators as the command line and JSON write them; never NULL. */
const char *nd_axis_name(nd_axis axis);
const char *nd_sharding_name(nd_sharding sharding);
const char *nd_recompute_name(nd_recompute recompute);
const char *nd_cp_method_name(nd_cp_method method);
const char *nd_schedule_name(nd_schedule schedule);
const char *nd_split_name(nd_split split);
const char *nd_offload_name(nd_offload offload);

/** All degrees 1, micro_batch 1, grad_accum 1, no sharding, no recompute. */
nd_layout nd_layout_single(void);

/** Product of the axis sizes. */
int64_t nd_layout_ranks(const nd_layout *layout);

/** dp_replicate x dp_shard: ranks that see different samples. */
int64_t nd_layout_data_ranks(const nd_layout *layout);

/** Ranks over which model state is sharded: dp_shard x cp when `sharding` is not none, else 1. */
int64_t nd_layout_shard_ranks(const nd_layout *layout);

/** micro_batch x grad_accum x dp_replicate x dp_shard. */
int64_t nd_layout_global_batch_seqs(const nd_layout *layout);

/** Which keys of a layout string were given by the user (bit per key, see nd_layout_key). */
typedef enum nd_layout_key {
    ND_LAYOUT_KEY_PP,
    ND_LAYOUT_KEY_DP_REPLICATE,
    ND_LAYOUT_KEY_DP_SHARD,
    ND_LAYOUT_KEY_CP,
    ND_LAYOUT_KEY_TP,
    ND_LAYOUT_KEY_EP,
    ND_LAYOUT_KEY_VPP,
    ND_LAYOUT_KEY_SP,
    ND_LAYOUT_KEY_CP_METHOD,
    ND_LAYOUT_KEY_SCHEDULE,
    ND_LAYOUT_KEY_SPLIT,
    ND_LAYOUT_KEY_MICRO_BATCH,
    ND_LAYOUT_KEY_GRAD_ACCUM,
    ND_LAYOUT_KEY_SHARDING,
    ND_LAYOUT_KEY_RECOMPUTE,
    ND_LAYOUT_KEY_OFFLOAD,
    ND_LAYOUT_KEY_COUNT
} nd_layout_key;

/** The key as users write it ("dp_shard"); never NULL. */
const char *nd_layout_key_name(nd_layout_key key);

/** The value of one key as a number: modes by their enumerators, recompute with its distance. Equal exactly where the
 * layouts agree in that key; of degrees and counts the number itself. */
int64_t nd_layout_key_value(const nd_layout *layout, nd_layout_key key);

/** Parse "dp_replicate=2,dp_shard=2,cp=2,tp=2,micro_batch=1,recompute=full".
 *
 * \param[in]  text  keys separated by commas, each at most once; `recompute=every:4`; `sp=on|off`
 * \param[out] out   unnamed degrees are 1
 * \param[out] given bit (1u << nd_layout_key) for every key that `text` names; may be NULL
 * \return ND_OK, or ND_EINVAL naming the key, the value and what is allowed (nearest key for a typo).
 */
nd_status nd_layout_parse(const char *text, nd_layout *out, uint32_t *given, nd_error *err) ND_NODISCARD;

/** Write the layout in the syntax of nd_layout_parse(), axes of size 1 left out; always terminated.
 * \return the length that the whole text needs, as snprintf does. */
size_t nd_layout_format(const nd_layout *layout, char *buffer, size_t buffer_bytes);

ND_END_DECLS

#endif
