/** The program of one rank: everything that it does in one training step, as one flat list.
 *
 * The list is built once from model, layout and rank. The same list is executed (executor/), timed (cost_model/),
 * replayed for peak memory (program/replay.h) and checked for deadlocks (program/check.h), so that what was predicted
 * and what was measured compare instruction by instruction. docs/EXECUTOR.md shows one.
 */
#ifndef ND_PROGRAM_PROGRAM_H
#define ND_PROGRAM_PROGRAM_H

#include "core/layout.h"
#include "core/train_spec.h"
#include "models/model_spec.h"
#include "program/instruction.h"
#include "program/placement.h"

ND_BEGIN_DECLS

/** Planted mistakes: each must fail the comparison with one rank (tests only). */
#define ND_MUTATION_LIST(X)                                                                                            \
    X(ND_MUTATION_NONE, "none")                                                                                        \
    X(ND_MUTATION_ROPE_POSITIONS, "rope_positions")       /* cp ranks count positions from their first row */          \
    X(ND_MUTATION_MEAN_OF_MEANS, "mean_of_means")         /* every rank divides by its own number of labels */         \
    X(ND_MUTATION_SP_NORM_SUM, "sp_norm_sum")             /* gradients of norms are not summed over tp */              \
    X(ND_MUTATION_KV_REPLICA_SUM, "kv_replica_sum")       /* gradients of copied key-value heads are not summed */     \
    X(ND_MUTATION_NORM_DOUBLE_COUNT, "norm_double_count") /* copies count in the gradient norm */                      \
    X(ND_MUTATION_TIED_SUM, "tied_sum")                   /* the two gradients of a tied embedding are not summed */   \
    X(ND_MUTATION_RING_LAST_HOP, "ring_last_hop")         /* gradients of keys and values stop one hop from home */    \
    X(ND_MUTATION_ROUTER_SUM, "router_sum")               /* gradients of the router are not summed over tp */         \
    X(ND_MUTATION_REPLICA_SUM, "replica_sum")             /* gradients are not summed over dp_replicate */

typedef enum nd_mutation {
#define ND_MUTATION_ENUM(name, text) name,
    ND_MUTATION_LIST(ND_MUTATION_ENUM)
#undef ND_MUTATION_ENUM
        ND_MUTATION_COUNT
} nd_mutation;

typedef struct nd_program_options {
    nd_elem real;     /* compute type: fp64, fp32 or bf16 (which keeps fp32 masters) */
    double clip_norm; /* 0: gradients are not clipped */
    double norm_eps;  /* of the norms */
    double rope_theta;
    /* Add gradients of sequences as one binary tree over the global batch, and over data ranks before all others: with
     * one sequence a micro-batch every split of the batch then gives the same bits. Costs a copy of the gradients per
     * doubling of grad_accum. */
    bool batch_first;
    nd_chunk_map chunks; /* chunks.chunks 0: nd_chunk_map_even() */
    nd_mutation mutation;
} nd_program_options;

/** fp32, clip at 1, eps 1e-5, theta 10,000. */
nd_program_options nd_program_options_default(void);

typedef struct nd_buffer {
    int64_t elements;
    nd_elem elem;
    nd_memory_class memory_class;
    int64_t offset;     /* bytes into the rank's arena; multiple of ND_ARENA_ALIGN_BYTES */
    int32_t born, dies; /* instructions that allocate and free it; -1: lives as long as the run */
    const char *tag;    /* static storage */
} nd_buffer;

enum { ND_ARENA_ALIGN_BYTES = 64 };

/** Bytes that a buffer takes in the arena: its elements, rounded up to the alignment. */
int64_t nd_buffer_bytes(const nd_buffer *buffer);

/** Where the state of a unit lives. Of shards: elements shard_index x shard_elements .. of the flat unit. */
typedef struct nd_unit_state {
    int32_t weights; /* buffer in the compute type: whole and padded, or with zero3 the shard */
    nd_ref master;   /* this rank's shard in the wide type; part of `weights` when compute and wide type are one */
    int32_t m, v;    /* moments of the shard, wide */
    int32_t grads;   /* wide: whole (none, zero1), or the shard; 0 with batch_first, whose gradients are temporary */
} nd_unit_state;

typedef struct nd_program {
    int64_t rank;
    nd_layout layout;
    nd_train_spec train;
    nd_program_options options;
    nd_chunk_map chunks;
    nd_param_list params;
    nd_placement placement;
    nd_unit_state *states; /* one per unit of the placement */

    int32_t ins_count;
    nd_ins *ins;
    int32_t buffers_count; /* buffer 0 is none */
    nd_buffer *buffers;
    int64_t arena_bytes;     /* that the buffers' places span */
    double expert_rows_frac; /* of the rows that the experts of a rank get at most: what they get when all experts get
                              * the same; 1 where no expert lives on another rank */
    int32_t loss, grad_norm; /* buffers, fp64[1]: what the step leaves; loss is summed over all ranks */
} nd_program;

/** Build the program of `rank`.
 *
 * \param[in]  layout  legal (planner) and executable, see nd_program_supports()
 * \return ND_EUNSUPPORTED, ND_ENOMEM. Free with nd_program_free(). */
nd_status nd_program_create(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            const nd_program_options *options, int64_t rank, nd_program **out,
                            nd_error *err) ND_NODISCARD;
void nd_program_free(nd_program *program); /* NULL is fine */

/** Whether model and layout can be built into programs, by the arithmetic of shapes (heads, sequence, batch) and by
 * what exists: ND_EINVAL or ND_EUNSUPPORTED says which and what would work. */
nd_status nd_program_supports(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              nd_error *err) ND_NODISCARD;

/** The type that `real` accumulates in: fp64, fp32, fp32. */
nd_elem nd_wide_elem(nd_elem real);

const char *nd_mutation_name(nd_mutation mutation); /* "rope_positions"; never NULL */

ND_END_DECLS

#endif
