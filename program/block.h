/** The operations of one model part under a layout: written once, priced by the cost model, unrolled by the
 * executor's program.
 *
 * Sizes are those of one rank and one micro-batch. T = micro_batch x seq_len / cp tokens.
 * docs/MODEL.md, section "Operations".
 */
#ifndef ND_PROGRAM_BLOCK_H
#define ND_PROGRAM_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/layout.h"
#include "core/mesh.h"
#include "core/train_spec.h"
#include "models/model_spec.h"

ND_BEGIN_DECLS

enum { ND_BLOCK_OPS_MAX = 96 };

typedef enum nd_op_kind {
    ND_OP_GEMM,        /* [m,k] x [k,n], `groups` times (1 unless grouped experts) */
    ND_OP_ATTENTION,   /* flash attention core */
    ND_OP_ELEMENTWISE, /* memory-bound kernels: hbm_bytes over `kernels` launches */
    ND_OP_COLLECTIVE,
    ND_OP_KIND_COUNT
} nd_op_kind;

typedef enum nd_collective {
    ND_ALL_REDUCE,
    ND_ALL_GATHER,
    ND_REDUCE_SCATTER,
    ND_ALL_TO_ALL,
    ND_SEND_RECV,
    ND_COLLECTIVE_COUNT
} nd_collective;

typedef enum nd_pass { ND_PASS_FORWARD, ND_PASS_BACKWARD, ND_PASS_RECOMPUTE, ND_PASS_COUNT } nd_pass;

/** What a part of the model is. */
typedef enum nd_part_kind {
    ND_PART_EMBEDDING,
    ND_PART_LAYER, /* of one layer kind */
    ND_PART_HEAD   /* final norm, output projection, loss */
} nd_part_kind;

typedef struct nd_op {
    nd_op_kind kind;
    const char *name;   /* "qkv", "ffn_up", "tp_all_gather", ...; static storage */
    double flops;       /* matrix work, whole op */
    double hbm_bytes;   /* read and written */
    double saved_bytes; /* kept from forward until the matching backward (forward pass only) */
    int32_t kernels;    /* launches */
    /* GEMM */
    int64_t m, n, k, groups;
    bool accumulate_fp32;                  /* the output is added into an fp32 buffer (weight gradients) */
    bool fp8;                              /* runs in fp8 when the precision says so (not head, router, attention) */
    double cast_activations, cast_weights; /* elements first converted for this GEMM when it runs in fp8 */
    /* attention */
    int64_t batch, q_len, kv_len, heads, qk_dim, v_dim;
    double pairs;  /* query-key pairs of one head and sequence that are computed by this rank */
    bool backward; /* attention backward kernel */
    bool math;     /* batched GEMMs over the whole score matrix, which goes through memory */
    /* collective */
    nd_collective collective;
    nd_group_kind group;
    int64_t copies;               /* ep all-to-all: how often a row is in `bytes`, once per expert it goes to; else 0 */
    double bytes;                 /* of the full (gathered or reduced) buffer; for send-recv what one rank sends */
    int32_t repeats;              /* how often per pass (ring steps) */
    double overlap_frac;          /* part of it that runs behind the GEMM that consumes it */
    bool hidden_behind_attention; /* ring steps run beside the attention blocks */
} nd_op;

typedef struct nd_op_list {
    int32_t count;
    nd_op ops[ND_BLOCK_OPS_MAX];
} nd_op_list;

/** What the software does with the same mathematics (filled from a stack). */
typedef struct nd_block_style {
    bool fused_elementwise;      /* one kernel for norm, residual, activation chains; else eager */
    bool accumulate_wgrad_fp32;  /* weight gradients are added into an fp32 buffer by the GEMM */
    bool selective_is_per_op;    /* selective keeps every second matmul (torch); else all but core attention */
    bool gathers_sp_in_backward; /* sequence-parallel inputs are saved sharded and gathered again */
    bool fp8_saved_inputs;       /* fp8 matrices keep their inputs in fp8 (Transformer Engine), else in 16 bit */
    bool gathers_fp8;   /* tensor-parallel all-gathers carry fp8 in fp8 training (Transformer Engine's user buffers) */
    double logit_bytes; /* memory of the loss, bytes per logit */
    double loss_traffic_bytes; /* HBM traffic of the loss, bytes per logit, forward + backward */
    double loss_chunks;        /* >= 1: chunked or fused-linear loss */
} nd_block_style;

/** List the operations of a part for one pass.
 *
 * \param[in]  layer_kind index into model->layer_kinds for ND_PART_LAYER, else 0
 * \param[out] out        overwritten; ND_PASS_RECOMPUTE is empty when the layout recomputes nothing there
 *
 * Recompute of ND_RECOMPUTE_EVERY lists the pass of a recomputed layer; the caller knows which layers are.
 */
void nd_block_ops(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                  const nd_block_style *style, nd_part_kind part, int32_t layer_kind, nd_pass pass, nd_op_list *out);

/** Bytes that one layer keeps for its backward pass, per micro-batch and rank.
 * \param[in] recompute  the mode of this very layer: none, selective or full */
double nd_block_saved_bytes(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            const nd_block_style *style, int32_t layer_kind, nd_recompute recompute);

/** Tokens of one rank and micro-batch: micro_batch x seq_len / cp. */
double nd_block_tokens(const nd_layout *layout, const nd_train_spec *train);

/** Query heads and key-value heads of one rank; key-value heads are replicated when tp exceeds them. */
int64_t nd_block_heads(const nd_model_spec *model, const nd_layout *layout);
int64_t nd_block_kv_heads(const nd_model_spec *model, const nd_layout *layout);

/** Parameters of LoRA adapters on one layer and rank (attention and dense or shared feed-forward, not routed
 * experts): rank x (inputs + outputs) of each matrix after tensor parallelism. */
double nd_block_lora_params(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            int32_t layer_kind);

/** Bytes that the backward pass of one layer needs at once beside what was saved. */
double nd_block_working_bytes(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              int32_t layer_kind);

/** Ranks that divide one expert's matrices: tp without expert parallelism, 1 with it. */
int32_t nd_expert_tp(const nd_layout *layout);

const char *nd_collective_name(nd_collective collective);
const char *nd_op_kind_name(nd_op_kind kind);

ND_END_DECLS

#endif
