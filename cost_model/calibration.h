/** Fitted constants of one GPU type: what its kernels and links reach. One JSON file each in calibrations/. */
#ifndef ND_COST_MODEL_CALIBRATION_H
#define ND_COST_MODEL_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "program/block.h"
#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

/** Constants of the collectives on the links of the GPU (NVLink), per operation. docs/MODEL.md, "Collectives". */
typedef struct nd_collective_constants {
    double efficiency2_frac; /* ring, of the tier's data-sheet rate for 2, 4 and 8 or more ranks */
    double efficiency4_frac;
    double efficiency8_frac;
    double base_s;          /* small messages: latency of the call, */
    double step_s;          /* and of one ring step */
    double small_loss_frac; /* small messages: extra time per second at full rate */
    double large_base_s;    /* large messages: latency of the call, */
    double large_step_s;    /* and of one ring step */
    double ramp_s;          /* rho: how slowly the rate builds up with size */
    double switch_frac;     /* reduction in the switch: bytes of buffer per second, of the data-sheet rate; 0: none */
    double switch_ranks;    /* from this many ranks on */
} nd_collective_constants;

typedef struct nd_calibration {
    char name[48]; /* calibration file */
    char gpu[48];  /* GPU that it was fitted on; differs from the cluster's GPU for a family default */
    bool borrowed; /* that GPU is another chip than the cluster\'s */
    /* kernels: docs/MODEL.md, "Kernels" */
    double gemm_frac;              /* epsilon_g: part of the matrix peak that long kernels sustain at the power limit */
    double gemm_burst_frac;        /* epsilon_b >= epsilon_g: the same of short kernels, below the power limit */
    double gemm_power_s;           /* tau: kernel time at which half of the way between the two is gone */
    double gemm_k0;                /* prologue, in units of k */
    double wave_frac;              /* mu: how much of a partial last wave is lost */
    double tile_exponent;          /* a: a tile of 1/x the size of 256 x 128 runs at x^-a of the rate */
    double gemm_hbm_frac;          /* part of the HBM rate that GEMM operands reach */
    double kernel_s;               /* t0: fixed cost of one kernel */
    double grouped_frac;           /* grouped GEMM against plain GEMM */
    double fp8_frac;               /* fp8 efficiency against bf16 efficiency */
    double fp8_cast_bytes;         /* HBM bytes per activation or gradient element that is cast to fp8 */
    double fp8_weight_cast_bytes;  /* the same per weight element and micro-batch */
    double attention_frac;         /* epsilon_a of the newest flash kernel, forward */
    double attention_s0;           /* causal sequence length at which half of it is reached */
    double flash2_frac;            /* FlashAttention-2 against the newest kernel */
    double flash1_frac;            /* FlashAttention 1 or its Triton port against the newest kernel */
    double attention_bwd_frac;     /* backward against forward rate */
    double head_dim64_frac;        /* head size 64 against 128, newest kernel */
    double flash2_head_dim64_frac; /* the same, older kernels */
    double wide_head_bwd_frac;     /* head size above 128 against 128, backward */
    double hbm_frac;               /* epsilon_h: part of the HBM rate that element-wise kernels reach */
    double link_frac;              /* fast links in a training step against a benchmark that has the GPU to itself */
    double network_frac;           /* part of the NIC rate that collectives reach, times the tier's own efficiency */
    double contention_frac;        /* chi: slowdown of compute per hidden communication second */
    double straggler_frac;         /* sigma: loss per doubling of the nodes */
    nd_collective_constants collective[ND_COLLECTIVE_COUNT];
    double memory_low_frac, memory_high_frac; /* 80 % interval of peak memory as factors */
    char source[768];
} nd_calibration;

/** The shipped calibration of a GPU, or its architecture's default when it has none of its own
 * (out->gpu then names another GPU). */
nd_status nd_calibration_for_gpu(const nd_gpu_spec *gpu, nd_calibration *out, nd_error *err) ND_NODISCARD;

/** The calibration that stands for a GPU's architecture, whether or not the GPU has one of its own: "h100" for all
 * Hopper. */
const char *nd_calibration_family(const nd_gpu_spec *gpu);

/** Place of a scalar constant by its JSON key ("gemm_frac"), or NULL. */
double *nd_calibration_constant(nd_calibration *calibration, const char *key);

ND_END_DECLS

#endif
