/** A software stack: what a framework's kernels, loss and allocator cost. One JSON file each in stacks/. */
#ifndef ND_COST_MODEL_STACK_H
#define ND_COST_MODEL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/layout.h"
#include "core/train_spec.h"
#include "program/block.h"

ND_BEGIN_DECLS

typedef struct nd_stack {
    char name[32];
    char title[96];
    /* what the stack can run: one bit per enumerator */
    uint32_t shardings, recomputes, cp_methods, schedules;
    uint32_t splits;          /* even only where the stack's file names none */
    bool axis[ND_AXIS_COUNT]; /* may be larger than 1 */
    bool expert_parallel;
    bool tp_implies_sp;           /* sequence parallelism is always on with tp */
    bool tp_without_sp;           /* tp with sequence parallelism off is possible */
    bool tp_usually_sp;           /* its recipes turn sequence parallelism on with tp */
    nd_sharding default_sharding; /* when dp_shard (or cp) is larger than 1 */
    nd_attention default_attention;
    /* time */
    double gemm_frac;      /* of its GEMM library against the GPU's calibration */
    double fp8_frac;       /* of its fp8 GEMMs against the GPU's calibration; 1 when the stack file has none */
    double attention_frac; /* of its attention kernel against the best of its generation */
    nd_block_style style;
    double grad_reduce_bytes; /* bytes of one gradient element on the wire */
    double tp_overlap_frac;   /* part of the tp collectives that is hidden */
    bool ep_deduplicates;     /* a row crosses the network once per domain, not once per expert there (DeepEP) */
    bool overlaps_dp;         /* gradient traffic runs behind the last backward pass */
    bool overlaps_pp;
    double accumulate_bytes;        /* HBM bytes per parameter to add a micro-batch's whole gradients to the others' */
    double optimizer_traffic_bytes; /* HBM bytes per updated parameter */
    double send_host_s;             /* host time of one transfer between stages, synchronisation included */
    double host_s;                  /* per step: launches, logging, data */
    double launch_s;                /* host time of one kernel launch; 0 when hidden by graphs */
    /* memory */
    bool fsdp;                     /* fp32 (or base) shards, gathered per layer in compute precision */
    double master_bytes;           /* bytes per trained parameter of the fp32 copy (0 when the weights are fp32) */
    double weight_bytes;           /* bytes per resident parameter shard */
    double grad_bytes;             /* bytes per resident gradient element */
    double bf16_grad_bytes;        /* the same in bf16 training, where fp16 needs none of its fp32 accumulators */
    double fragmentation_frac;     /* activations take this much more than their size in an old allocator */
    double gathered_layers;        /* unsharded layers alive at once under zero3 */
    bool dummy_wgrad;              /* one unsharded weight gradient per distinct shape (Transformer Engine) */
    double reserved_ratio;         /* reserved by the allocator / allocated */
    double context_bytes;          /* CUDA context, kernels, workspaces */
    double group_bytes;            /* communicator buffers of one process group */
    double optimizer_temp_bytes;   /* temporaries of the optimizer step, bytes per parameter that it updates at once */
    double optimizer_group_params; /* under ZeRO-3 so many are updated at once (0: the whole shard) */
    double live_params;            /* under ZeRO-3 unsharded parameters kept for reuse, in all (0: none) */
    double bucket_bytes;           /* a flat buffer in which gradients are reduced (0: none) */
    double stage_buffers;          /* stage-boundary tensors kept per micro-batch of a pipelined step */
    double spread_low_frac, spread_high_frac; /* activations, logits and buffers may be so much smaller or larger */
    bool load_on_gpu;                         /* the whole model may pass through each GPU before it is sharded */
    double logit_bytes_tp;  /* memory of the loss under tensor parallelism, bytes per logit of a rank */
    double load_full_model; /* 1: every rank's host process holds the whole model while loading; 0: rank 0 only */
    char source[512];
} nd_stack;

/** A built-in stack by name ("torch-fsdp2", "torch-ddp", "megatron", "deepspeed", "ndplan"). */
nd_status nd_stack_find(const char *name, nd_stack *out, nd_error *err) ND_NODISCARD;

/** Place of a fitted constant by its JSON key ("gemm_frac", "attention_frac", "launch_s"), or NULL. */
double *nd_stack_constant(nd_stack *stack, const char *key);

size_t nd_stack_builtin_count(void);
const char *nd_stack_builtin_name(size_t index);

ND_END_DECLS

#endif
