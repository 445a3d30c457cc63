/** Parts of the memory estimate: what a rank holds, its states, its activations. Private to cost_model/memory*.c
 * and checkpoint.c. */
#ifndef ND_COST_MODEL_MEMORY_INTERNAL_H
#define ND_COST_MODEL_MEMORY_INTERNAL_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Parameters of one rank, before data-parallel sharding, and the largest unit that is gathered at once. */
typedef struct nd_holdings {
    double dense, expert; /* layers, embedding and head; routed experts */
    double embeddings;    /* part of dense that stays 16 bit under quantisation */
    double lora;
    double largest_layer; /* dense part and expert part of the widest layer */
    double end_unit;      /* embedding or head of this stage, the larger one */
    double largest_unit;  /* the larger of the two */
    double distinct;      /* sum over distinct weight shapes: one of each layer kind */
} nd_holdings;

/** Bytes of weights, gradients and optimizer of one rank, and what comes and goes with them. */
typedef struct nd_states {
    double weights, grads, optimizer; /* resident all through the step */
    double buffers;                   /* flat communication buffers and cached gradients, resident once allocated */
    double gathered;                  /* unsharded weights alive in forward and backward */
    double layer_grads, end_grads;    /* whole gradient of a layer, or of the head, and the buffer it is reduced in */
    double optimizer_temp;            /* of the optimizer step */
    double load_unit;                 /* the largest tensor that passes whole while loading and saving */
    double host;
} nd_states;

typedef struct nd_activations {
    double saved;          /* kept for the backward pass, all layers and micro-batches in flight */
    double working;        /* beside that in the backward pass of the widest layer */
    double logits;         /* while the loss is computed and differentiated */
    double logit_gradient; /* of that what is left when the head's backward pass runs */
    double waiting_logits; /* what the losses of other micro-batches keep until their backward pass */
    double host;
} nd_activations;

/** memory_states.c. `counts` are the layers of each kind on `stage`. */
nd_holdings nd_memory_hold(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX]);
nd_states nd_memory_states(const nd_cost_context *context, const nd_layout *layout, const nd_holdings *holdings);
/** Bytes of one trained weight as it is held, without its master copy. */
double nd_memory_weight_bytes(const nd_cost_context *context);

/** memory_activations.c. What a layer of one kind keeps of one micro-batch for its backward pass, without
 * fragmentation. */
double nd_memory_saved_per_layer(const nd_layout *layout, const nd_block_prices *prices, int64_t kind);
nd_activations nd_memory_activations(const nd_cost_context *context, const nd_layout *layout,
                                     const nd_block_prices *prices, int32_t stage,
                                     const int64_t counts[ND_LAYER_KINDS_MAX]);

ND_END_DECLS

#endif
