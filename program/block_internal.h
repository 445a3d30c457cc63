/** Builder shared by the files that list operations. Private to program/. */
#ifndef ND_PROGRAM_BLOCK_INTERNAL_H
#define ND_PROGRAM_BLOCK_INTERNAL_H

#include "program/block.h"

/* T tokens of one rank and micro-batch; u = T x hidden elements, the residual stream. */
typedef struct nd_block_builder {
    const nd_model_spec *model;
    const nd_layout *layout;
    const nd_train_spec *train;
    const nd_block_style *style;
    nd_pass pass;
    int32_t layer_kind;
    nd_op_list *list;
    int64_t tokens; /* T */
    int64_t tp;
    int64_t residual_split; /* tp with sequence parallelism, else 1: division of norms and residual */
    double element_bytes;   /* of an activation */
    nd_recompute recompute; /* of this very layer */
} nd_block_builder;

/** One weight matrix: forward [T,in] x [in,out]; on backward both gradients (unless frozen by LoRA);
 * `per_op_recompute` says whether per-op selective checkpointing runs it again. */
typedef struct nd_matrix {
    const char *name;
    int64_t rows; /* T, or rows per expert */
    int64_t out, in;
    int64_t groups;
    double per_op_recompute_frac; /* share of the op that selective per-op checkpointing repeats */
    bool fp8;
    bool frozen_adapter; /* no LoRA adapter on it (routed experts, router) */
} nd_matrix;

void nd_builder_matrix(nd_block_builder *builder, const nd_matrix *matrix);
/** An element-wise chain that moves `bytes` in `kernels` launches. */
void nd_builder_elementwise(nd_block_builder *builder, const char *name, double bytes, int32_t kernels);
/** A collective of `bytes` over `group`, `repeats` times. */
nd_op *nd_builder_collective(nd_block_builder *builder, const char *name, nd_collective collective, nd_group_kind group,
                             double bytes);
/** Tensor-parallel collective on entering (column-parallel) or leaving (row-parallel) a divided pair. */
void nd_builder_tp_enter(nd_block_builder *builder);
void nd_builder_tp_leave(nd_block_builder *builder);
/** Bytes of one element of a matrix input that is kept for the weight gradient. */
double nd_builder_input_bytes(const nd_block_builder *builder);
/** Add bytes to what the last op saves for the backward pass (forward pass only). `selective_frac` of it stays
 * under per-op selective checkpointing; core-attention selective keeps everything but what says so. */
void nd_builder_keep(nd_block_builder *builder, double bytes, double selective_frac);

/** Memory passes of the element-wise work of half a layer in one pass. */
typedef struct nd_traffic {
    double residual;   /* of the residual stream around one norm and the residual sum */
    double extra_norm; /* of the residual stream for each norm beyond one per half */
    double rotary;     /* of queries and keys */
    double activation; /* of the widest activation, per matrix that feeds it or is fed by it */
    double permute;    /* of the routed rows */
    int32_t kernels;   /* launches of norm and residual in half a layer, */
    int32_t rotary_kernels, activation_kernels;
} nd_traffic;
nd_traffic nd_builder_traffic(const nd_block_builder *builder);
/** Norm and residual of half a layer: traffic, and what they save. */
void nd_builder_residual(nd_block_builder *builder);

void nd_builder_attention(nd_block_builder *builder);
void nd_builder_ffn(nd_block_builder *builder);
void nd_builder_embedding(nd_block_builder *builder);
void nd_builder_head(nd_block_builder *builder);

#endif
