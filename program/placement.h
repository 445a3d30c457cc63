/** Who holds which element of which parameter under a layout: the one answer that the builder, initialisation,
 * checkpoints and comparisons share.
 *
 * Parameters are grouped into units that are sharded, gathered and reduced as one: the embedding, each layer without
 * its routed experts, the routed experts of each layer, and final norm with head. A rank holds, of every unit of its
 * pipeline stage, a tensor-parallel piece of each parameter, one after the other in a flat buffer; the buffer is padded
 * to a multiple of the ranks that share it and cut into equal shards. The routed experts that a rank holds are stacked
 * by role ([experts][rows][cols] of all gates, then of all ups, then of all downs), as grouped products take them.
 */
#ifndef ND_PROGRAM_PLACEMENT_H
#define ND_PROGRAM_PLACEMENT_H

#include "program/members.h"
#include "program/params.h"

ND_BEGIN_DECLS

typedef enum nd_unit_kind { ND_UNIT_EMBED, ND_UNIT_LAYER, ND_UNIT_EXPERTS, ND_UNIT_HEAD } nd_unit_kind;

/** What one rank holds of a parameter: rows row_first .. and columns col_first .. of the whole. */
typedef struct nd_piece {
    int32_t param; /* index into nd_param_list */
    int64_t rows, cols;
    int64_t row_first, col_first;
    int64_t valid_rows; /* rows that exist; the others pad the vocabulary and stay 0 */
    int64_t offset;     /* in the flat buffer of the unit */
    bool primary;       /* of the ranks that hold the same elements of this tp piece's parameter (tp copies, key-value
                         * replicas, both copies of a tied embedding) this one counts them in norms and saves them.
                         * Copies of whole units are the caller's to skip: other dp_replicate members, and with
                         * sharding=none all but member 0 of the unit's `shard` group */
} nd_piece;

typedef struct nd_unit {
    nd_unit_kind kind;
    int32_t layer; /* -1: none */
    int32_t first_piece, pieces;
    int64_t elements;       /* of all pieces */
    nd_members_kind shard;  /* who shares it: "shard", of experts "expert_shard" */
    int32_t shards;         /* ranks in that group; 1 with sharding=none */
    int32_t shard_index;    /* of this rank; 0 with sharding=none */
    int64_t shard_elements; /* of one shard, a multiple of 16; shards x shard_elements >= elements */
} nd_unit;

typedef struct nd_placement {
    int64_t rank;
    int32_t units_count;
    nd_unit *units; /* embedding, layers of this rank in order of the model, head; only what its stage holds */
    int32_t pieces_count;
    nd_piece *pieces;
} nd_placement;

/** Which layers the model's chunks hold: chunk c (of pp x vpp) holds first[c] .. first[c + 1] - 1 and is on stage c %
 * pp.
 */
typedef struct nd_chunk_map {
    int32_t chunks;
    int32_t first[ND_MODEL_LAYERS_MAX + 1];
} nd_chunk_map;

/** Equal counts, the middle chunks one more where they do not divide: the cost model's split=even. */
nd_chunk_map nd_chunk_map_even(const nd_model_spec *model, const nd_layout *layout);

/** What `rank` holds.
 * \param[in] layout  legal for the model
 * \return ND_ENOMEM. Free with nd_placement_free(). */
nd_status nd_placement_create(const nd_model_spec *model, const nd_param_list *params, const nd_layout *layout,
                              const nd_chunk_map *chunks, int64_t rank, nd_placement *out, nd_error *err) ND_NODISCARD;
void nd_placement_free(nd_placement *placement); /* NULL and an empty placement are fine */

/** The unit of this kind and layer, or NULL when the rank does not hold it. */
const nd_unit *nd_placement_unit(const nd_placement *placement, nd_unit_kind kind, int32_t layer);

/** The piece of this role in a unit (of experts: of the first expert that the rank holds; the others follow in order),
 * or NULL when the model has none. */
const nd_piece *nd_placement_piece(const nd_placement *placement, const nd_param_list *params, const nd_unit *unit,
                                   nd_role role);

/** The stored range of a unit as runs of consecutive elements of one row of one parameter: calls `run` for every run
 * within flat elements first .. first + count - 1, padding left out.
 * \param[in] run  (user, piece, flat index, row and column in the whole parameter, elements in the run) */
typedef void (*nd_placement_run)(void *user, const nd_piece *piece, int64_t flat, int64_t row, int64_t col,
                                 int64_t elements);
void nd_placement_runs(const nd_placement *placement, const nd_unit *unit, int64_t first, int64_t count,
                       nd_placement_run run, void *user);

ND_END_DECLS

#endif
