/** What the parts of the builder share: the list under construction, buffers that are freed at their last use, and the
 * sizes of this rank. */
#ifndef ND_PROGRAM_BUILDER_INTERNAL_H
#define ND_PROGRAM_BUILDER_INTERNAL_H

#include "program/block.h"
#include "program/program.h"

enum { ND_TREE_LEVELS_MAX = 40 };

/** A unit while the program runs. */
typedef struct nd_unit_use {
    int32_t gathered;                 /* buffer of the whole weights while zero3 holds them, else 0 */
    int32_t gathers;                  /* users of it */
    int32_t grads;                    /* buffer of whole gradients under construction, else 0 */
    nd_ref reduced;                   /* after the last micro-batch: gradients of this rank's shard */
    int64_t done;                     /* micro-batches whose gradients are complete */
    int32_t tree[ND_TREE_LEVELS_MAX]; /* batch_first: gradients of 2^level sequences */
} nd_unit_use;

/** A weight gradient: dW of `role` in `unit`, from `offset` elements on, += what `ins` computes. Where gradients go is
 * known when it is emitted: with zero_bubble later than it is thought of. */
typedef struct nd_weight_grad_of {
    nd_ins ins; /* without its output */
    int32_t unit;
    nd_role role;
    int64_t offset;
    int32_t chunk, micro, layer;
} nd_weight_grad_of;

typedef struct nd_builder {
    nd_program *program;
    const nd_model_spec *model;
    nd_layout layout;
    bool failed; /* out of memory: everything becomes a no-op */

    nd_elem real, wide;
    int32_t coords[ND_AXIS_COUNT];
    int32_t tp, cp, pp, micro_batch;
    bool sp;
    int64_t region_rows;     /* rows of a micro-batch on a cp member: inside the tp region */
    int64_t stream_rows;     /* rows of the residual stream: region_rows / tp under sequence parallelism */
    int64_t heads, kv_heads; /* of this rank */
    int64_t qk_dim, v_dim;

    nd_unit_use *uses;
    int32_t *refs; /* per buffer */
    int32_t buffers_capacity, ins_capacity;

    /* labels of what is emitted */
    int32_t layer, micro;
    nd_pass pass;

    bool defers; /* weight gradients go to `deferred` */
    int32_t chunk;
    nd_weight_grad_of *deferred;
    int32_t deferred_count, deferred_capacity;
} nd_builder;

/* The list. */

/** Append an instruction; its layer, micro-batch and pass are the builder's. */
void nd_emit(nd_builder *b, const nd_ins *ins);

/** A new buffer with one reference; emits ALLOC. */
int32_t nd_buffer_new(nd_builder *b, int64_t elements, nd_elem elem, nd_memory_class memory_class, const char *tag);

/** A buffer that lives as long as the run. */
int32_t nd_buffer_persistent(nd_builder *b, int64_t elements, nd_elem elem, nd_memory_class memory_class,
                             const char *tag);
void nd_retain(nd_builder *b, int32_t buffer);
/** Drop a reference; the last one emits FREE. Sets *buffer to 0. */
void nd_release(nd_builder *b, int32_t *buffer);

static inline nd_ref nd_at(int32_t buffer, int64_t offset)
{
    return (nd_ref){.buffer = buffer, .offset = offset};
}

static inline nd_ref nd_whole(int32_t buffer)
{
    return (nd_ref){.buffer = buffer, .offset = 0};
}

void nd_emit_zero(nd_builder *b, nd_ref out, int64_t elements);
void nd_emit_add(nd_builder *b, nd_ref a, nd_ref c, nd_ref out, int64_t elements, const char *tag);
void nd_emit_copy(nd_builder *b, nd_ref from, nd_ref to, int64_t elements);

/* Units. */

/** Index of the unit of this kind and layer; the builder only asks for units that the rank holds. */
int32_t nd_unit_find(const nd_builder *b, nd_unit_kind kind, int32_t layer);
bool nd_unit_has(const nd_builder *b, int32_t unit, nd_role role);

/** Whether each rank keeps only its shard of the weights between uses. */
bool nd_unit_shards_weights(const nd_builder *b, int32_t unit);

/** Make the weights of a unit available (zero3 gathers), give them back (zero3 frees after the last user). */
void nd_unit_open(nd_builder *b, int32_t unit);
void nd_unit_close(nd_builder *b, int32_t unit);

/** A weight of an open unit. */
nd_ref nd_weight(const nd_builder *b, int32_t unit, nd_role role);

/** The gradient of a weight, wide, always added to. */
nd_ref nd_weight_grad(nd_builder *b, int32_t unit, nd_role role);

/** All gradients of a micro-batch are in: reduce them as the sharding says. */
void nd_unit_reduce(nd_builder *b, int32_t unit);

/** After the last micro-batch: sum over the ranks that hold copies, clip, update, gather. */
void nd_build_update(nd_builder *b);
void nd_build_states(nd_builder *b);
void nd_build_step_start(nd_builder *b, int32_t *count);

/* Pieces of a layer. Inputs are read; results are new buffers that the caller releases. */

/** A matrix of a unit: `n` outputs and `k` inputs on this rank, from `row` rows below the start of the weight. */
typedef struct nd_matrix_of {
    int32_t unit;
    nd_role role;
    int64_t row, n, k;
    const char *tag;
} nd_matrix_of;

/** out[rows, n] = x[rows, k] W^T, into a new buffer or into `out`. */
int32_t nd_linear(nd_builder *b, int32_t x, int64_t rows, const nd_matrix_of *w);
void nd_linear_into(nd_builder *b, int32_t x, int64_t rows, const nd_matrix_of *w, nd_ref out);
/** x[rows, n] += bias, where the unit has that role. */
void nd_bias(nd_builder *b, nd_ref x, int64_t rows, int32_t unit, nd_role role, int64_t n);
void nd_bias_grad(nd_builder *b, nd_ref dy, int64_t rows, int32_t unit, nd_role role, int64_t n);
/** dx[rows, k] (+)= dy[rows, n] W; *dx 0: a new buffer, else added to it. */
void nd_linear_grad_input(nd_builder *b, nd_ref dy, int64_t rows, const nd_matrix_of *w, int32_t *dx);
/** dW += dy^T x, now or, when weight gradients are deferred, later. */
void nd_linear_grad_weight(nd_builder *b, nd_ref dy, int32_t x, int64_t rows, const nd_matrix_of *w);
/** Emit a weight gradient, or keep it and its inputs for later when weight gradients are deferred. */
void nd_emit_weight_grad(nd_builder *b, const nd_weight_grad_of *grad);
/** Emit the deferred weight gradients of a chunk and micro-batch. */
void nd_emit_deferred(nd_builder *b, int32_t chunk, int32_t micro);

/** A norm of a unit over `cols` columns; bias ND_ROLE_COUNT: none. */
typedef struct nd_norm_of {
    int32_t unit;
    nd_role role, bias;
    int64_t rows, cols;
    const char *tag;
} nd_norm_of;

/** Normalised rows; *stats 0: a new buffer too. */
int32_t nd_norm(nd_builder *b, int32_t x, const nd_norm_of *norm, int32_t *stats);
void nd_norm_into(nd_builder *b, int32_t x, const nd_norm_of *norm, int32_t *stats, nd_ref out);
/** dx of a norm, added to *dx (0: a new buffer); gradients of its weights. */
void nd_norm_grad(nd_builder *b, int32_t x, int32_t stats, nd_ref dy, const nd_norm_of *norm, int32_t *dx);

/** Enter the tensor-parallel region: the input of its column-parallel matrices (a new reference or a gathered buffer).
 * Leave it: *y, partial over tp, becomes the summed rows of the residual stream. */
int32_t nd_region_enter(nd_builder *b, int32_t x, const char *tag);
void nd_region_leave(nd_builder *b, int32_t *y, const char *tag);
/** The same backwards: the output gradient inside the region; *dx, partial over tp, becomes that of the stream. */
int32_t nd_region_enter_back(nd_builder *b, int32_t dy, const char *tag);
void nd_region_leave_back(nd_builder *b, int32_t *dx, const char *tag);

/** What the forward pass of one layer keeps, by name; 0: not kept. */
typedef struct nd_kept_attention {
    int32_t q_pre, q_stats, k_pre, k_stats;          /* before the norms of queries and keys */
    int32_t q_latent, q_latent_norm, q_latent_stats; /* MLA */
    int32_t kv_latent, kv_latent_norm, kv_latent_stats;
    int32_t q, kv;          /* as the core reads them; kv: keys, then values */
    int32_t o, o_core, lse; /* o_core: of the whole sequence and a part of the heads (ulysses), else o again */
    int32_t out, out_stats; /* before the norm ahead of the residual */
} nd_kept_attention;

typedef struct nd_kept_experts {
    int32_t probs, experts, weights;                           /* router */
    int32_t slots, offsets, counts;                            /* sorted by expert */
    int32_t back_slots, back_offsets, send_rows, receive_rows; /* ep */
    int32_t rows;                                              /* permuted input */
    int32_t gate, up, product;
    int32_t out; /* in sorted order, back at its rank */
} nd_kept_experts;

typedef struct nd_kept_ffn {
    int32_t gate, up, product;
    int32_t shared_out, shared_scale; /* Qwen2-MoE: before the gate, and the gate */
    nd_kept_experts experts;
    int32_t out, out_stats; /* before the norm ahead of the residual */
} nd_kept_ffn;

typedef struct nd_kept_layer {
    int32_t x, norm1, stats1, x_mid, norm2, stats2;
    nd_kept_attention attention;
    nd_kept_ffn ffn;
} nd_kept_layer;

/** The layer that is being built. */
typedef struct nd_layer_of {
    int32_t layer;
    int32_t unit, experts_unit; /* experts_unit -1: a dense layer */
    const nd_layer_kind *kind;
} nd_layer_of;

/** y partial over tp; x: input of the region. */
int32_t nd_build_attention(nd_builder *b, const nd_layer_of *at, int32_t x, nd_kept_attention *kept);
/** dx partial over tp, as a new buffer. */
int32_t nd_build_attention_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dy, nd_kept_attention *kept);

/** Queries, keys and values of multi-head latent attention. */
void nd_build_latent(nd_builder *b, const nd_layer_of *at, int32_t x, nd_kept_attention *kept);
void nd_build_latent_back(nd_builder *b, const nd_layer_of *at, int32_t x, int32_t dq, int32_t dkv,
                          nd_kept_attention *kept, int32_t *dx);
void nd_rope(nd_builder *b, nd_ref x, int64_t heads, int64_t dim, int64_t rot_dim, bool inverse);

/** The core between rotary embedding and output projection, over the context-parallel group: fills o, o_core and lse;
 * q and kv become what the backward pass needs. */
void nd_build_core(nd_builder *b, const nd_layer_of *at, nd_kept_attention *kept);
/** dq and dkv as new buffers in the compute type. */
void nd_build_core_back(nd_builder *b, const nd_layer_of *at, int32_t dout, nd_kept_attention *kept, int32_t *dq,
                        int32_t *dkv);

/** Feed-forward of a layer on the normed rows of the stream; complete rows of the stream. needs_out false: recompute
 * what the backward pass reads, and return 0. */
int32_t nd_build_ffn(nd_builder *b, const nd_layer_of *at, int32_t norm, bool needs_out, nd_kept_ffn *kept);
/** Gradient of the normed rows, as a new buffer. */
int32_t nd_build_ffn_back(nd_builder *b, const nd_layer_of *at, int32_t norm, int32_t dy, nd_kept_ffn *kept);

/** Routed experts of x[rows]: partial over tp without ep, else complete. */
int32_t nd_build_experts(nd_builder *b, const nd_layer_of *at, int32_t x, int64_t rows, bool needs_out,
                         nd_kept_experts *kept);
void nd_build_experts_back(nd_builder *b, const nd_layer_of *at, int32_t x, int64_t rows, int32_t dy,
                           nd_kept_experts *kept, int32_t *dx);

/** gate, up -> product of a gated or plain feed-forward; and backwards (dproduct is released). */
int32_t nd_build_product(nd_builder *b, int32_t gate, int32_t up, int64_t rows, int64_t cols, nd_ref live_rows);
void nd_build_product_back(nd_builder *b, int32_t gate, int32_t up, int32_t *dproduct, int64_t rows, int64_t cols,
                           nd_ref live_rows, int32_t *dgate, int32_t *dup);

/** One layer: takes x over (kept->x), the result is new. */
int32_t nd_build_layer(nd_builder *b, int32_t layer, int32_t x, nd_kept_layer *kept);
/** Takes dy over. */
int32_t nd_build_layer_back(nd_builder *b, int32_t layer, int32_t dy, nd_kept_layer *kept);

typedef struct nd_kept_head {
    int32_t x, norm, stats, dlogits;
} nd_kept_head;

/** Tokens or labels of the current micro-batch, int32[region_rows]. */
int32_t nd_build_load(nd_builder *b, bool labels);
/** This rank's positions of the sequence: of the region, or of its rows of the stream. */
nd_seq_map nd_region_map(const nd_builder *b);
nd_seq_map nd_stream_map(const nd_builder *b);

int32_t nd_build_embedding(nd_builder *b);
void nd_build_embedding_back(nd_builder *b, int32_t dx);
void nd_build_head(nd_builder *b, int32_t x, int32_t count, nd_kept_head *kept);
int32_t nd_build_head_back(nd_builder *b, nd_kept_head *kept);

/** Every micro-batch through every chunk of this rank in the order of the schedule. */
void nd_build_passes(nd_builder *b, int32_t count);

/* Passes over the finished list. */

/** Give every buffer its place in the arena. */
nd_status nd_place_buffers(nd_program *program, nd_error *err);
/** Insert WAITs so that streams may run at the same time. */
nd_status nd_insert_waits(nd_program *program, nd_error *err);

#endif
