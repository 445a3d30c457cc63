/** Memory, communication and step time of one layout in closed form.
 *
 * A context is prepared once; an estimate then takes microseconds and allocates nothing. The search prices
 * blocks once for all layouts that share them (nd_block_prices depends on tp, cp, ep, sequence parallelism,
 * micro_batch and recompute, not on pp, dp_replicate or dp_shard).
 */
#ifndef ND_COST_MODEL_ESTIMATE_H
#define ND_COST_MODEL_ESTIMATE_H

#include "core/layout.h"
#include "core/train_spec.h"
#include "cost_model/calibration.h"
#include "cost_model/stack.h"
#include "cost_model/uncertainty.h"
#include "models/model_spec.h"
#include "program/block.h"
#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

typedef struct nd_cost_context {
    const nd_model_spec *model; /* borrowed; must outlive the context */
    const nd_cluster_spec *cluster;
    const nd_train_spec *train;
    const nd_stack *stack;
    const nd_calibration *calibration;
    bool simulates; /* time pipelines pass by pass (cost_model/simulate.h) where that takes a few milliseconds at most;
                     * false after nd_cost_context_init(): fits and validation use the closed form alone */
    nd_time_uncertainty uncertainty; /* of priors after nd_cost_context_init(); nd_fitted_uncertainty() knows better */
    nd_param_counts params;
    double flops_per_token;                                             /* full convention */
    double flops_per_token_causal;                                      /* causal convention */
    double lora_params;                                                 /* trainable parameters with LoRA, else 0 */
    int32_t layers_before[ND_LAYER_KINDS_MAX][ND_MODEL_LAYERS_MAX + 1]; /* of each kind, before layer i */
} nd_cost_context;

/** Prepare a context; the arguments are borrowed. ND_EINVAL when the GPU cannot compute in the precision. */
nd_status nd_cost_context_init(const nd_model_spec *model, const nd_cluster_spec *cluster, const nd_train_spec *train,
                               const nd_stack *stack, const nd_calibration *calibration, nd_cost_context *out,
                               nd_error *err) ND_NODISCARD;

/** The same for another cluster, training or stack (each may be that of `base`): model, calibration and everything that
 * was set after nd_cost_context_init() are those of `base`. */
nd_status nd_cost_context_like(const nd_cost_context *base, const nd_cluster_spec *cluster, const nd_train_spec *train,
                               const nd_stack *stack, nd_cost_context *out, nd_error *err) ND_NODISCARD;

typedef enum nd_verdict { ND_VERDICT_FITS, ND_VERDICT_BORDERLINE, ND_VERDICT_NO } nd_verdict;
const char *nd_verdict_name(nd_verdict verdict); /* "fits", "borderline", "no" */

/** Phases in which the peak can fall. */
typedef enum nd_phase {
    ND_PHASE_LOAD,
    ND_PHASE_FORWARD,  /* end of the last forward: everything saved, logits alive */
    ND_PHASE_BACKWARD, /* first layers of backward: gathered layers, gradients, recomputed layer */
    ND_PHASE_OPTIMIZER,
    ND_PHASE_SAVE,
    ND_PHASE_COUNT
} nd_phase;
const char *nd_phase_name(nd_phase phase); /* "load", "forward", "backward", "optimizer", "save" */

/** Memory of the rank and phase that peak. The terms add up to allocated_bytes. */
typedef struct nd_memory_breakdown {
    double weights_bytes;
    double grads_bytes;
    double optimizer_bytes; /* states and master weights */
    double activations_bytes;
    double gather_buffers_bytes; /* unsharded weights and gradients, communication buffers */
    double logits_bytes;
    double allocated_bytes;                 /* sum of the above: what the framework's allocator reports */
    double overhead_bytes;                  /* fragmentation, context, communicators */
    double peak_bytes;                      /* allocated + overhead: what nvidia-smi shows */
    double peak_low_bytes, peak_high_bytes; /* 80 % interval */
    double capacity_bytes;
    double load_whole_bytes; /* of a GPU on which a loader puts the whole model before sharding; 0: loaders shard */
    double host_bytes;       /* host memory of one node, all its ranks */
    double host_load_bytes;  /* the same while loading */
    double phase_bytes[ND_PHASE_COUNT]; /* peak of each phase over all stages, overhead included */
    nd_phase phase;                     /* where the peak is */
    int32_t stage;                      /* pipeline stage that peaks, from 0 */
    nd_verdict verdict;
} nd_memory_breakdown;

/** Seconds of one optimizer step. compute_s + ... + other_s = step_s. */
typedef struct nd_time_breakdown {
    double step_s;
    double step_low_s, step_high_s; /* 80 % interval */
    double closed_step_s;           /* of the closed form; step_s unless the pipeline was simulated */
    double compute_s;               /* forward and backward kernels of the busiest stage, without recompute */
    double recompute_s;             /* repeated forward work (its repeated collectives count as communication) */
    double exposed_comm_s;
    double bubble_s;
    double optimizer_s;
    double other_s; /* contention, host, stragglers */
    /* parts of the above, for explanations */
    double gemm_s, attention_s, elementwise_s, head_s;                           /* of compute_s */
    double exposed_tp_s, exposed_cp_s, exposed_ep_s, exposed_pp_s, exposed_dp_s; /* of exposed_comm_s */
    double hidden_comm_s;                                                        /* communication behind compute */
    double contention_s, straggler_s, host_s, offload_s;                         /* of other_s */
} nd_time_breakdown;

enum { ND_STAGE_RUNS_MAX = 24 };

/** Layers per pipeline stage as runs of equal neighbours. */
typedef struct nd_stage_runs {
    int32_t count;
    bool more; /* there are runs after these */
    struct {
        int32_t stages, layers;
    } runs[ND_STAGE_RUNS_MAX];
} nd_stage_runs;

typedef struct nd_estimate {
    nd_memory_breakdown memory;
    nd_time_breakdown time;
    nd_stage_runs stages; /* of one stage without a pipeline */
    double tokens_per_s;
    double tokens_per_s_per_gpu;
    double mfu_frac; /* full attention convention, no recompute */
    double hfu_frac; /* recompute counted */
    double flops_per_token;
    const char *bound_by; /* "compute", "memory bandwidth", "tp", "dp", "pipeline bubble", ...; static storage */
} nd_estimate;

/** Price of one model part for one micro-batch on one rank. */
typedef struct nd_part_price {
    double gemm_s[ND_PASS_COUNT];
    double attention_s[ND_PASS_COUNT];
    double elementwise_s[ND_PASS_COUNT];
    double exposed_tp_s[ND_PASS_COUNT];
    double exposed_cp_s[ND_PASS_COUNT];
    double exposed_ep_s[ND_PASS_COUNT];
    double hidden_s[ND_PASS_COUNT]; /* communication behind compute */
    double launches[ND_PASS_COUNT]; /* kernels and collectives that the host starts */
    double forward_flops;
    double recompute_flops;
} nd_part_price;

typedef struct nd_block_prices {
    nd_part_price layer[ND_LAYER_KINDS_MAX];
    nd_part_price embedding, head;
    double saved_bytes[ND_LAYER_KINDS_MAX];      /* with the layout's recompute mode */
    double saved_bytes_none[ND_LAYER_KINDS_MAX]; /* without recompute: what a re-run layer holds */
    double params_dense[ND_LAYER_KINDS_MAX];     /* of one layer and rank, after tp, before data sharding */
    double params_expert[ND_LAYER_KINDS_MAX];    /* the same for routed experts, after ep or tp */
    double params_lora[ND_LAYER_KINDS_MAX];      /* adapters of one layer and rank */
    double working_bytes[ND_LAYER_KINDS_MAX];    /* beside the saved tensors, in the backward pass of a layer */
    double params_embedding, params_head;        /* head counts 0 when tied */
} nd_block_prices;

void nd_price_blocks(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *out);

/** Turn the prices of a layout into those of `layout`, which differs from it in recompute only: a fraction of the work
 * of nd_price_blocks(), with the same result. */
void nd_price_recompute(const nd_cost_context *context, const nd_layout *layout, nd_block_prices *prices);

/** Which layers each pipeline stage holds: cost_model/split.h. */
typedef struct nd_stage_split nd_stage_split;

/** Memory alone (cheap: used to drop layouts that cannot fit). `layout` passed nd_layout_allowed(). */
void nd_estimate_memory(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                        nd_memory_breakdown *out);

/** Memory of one pipeline stage that holds `counts` layers of each kind, whatever the others hold. */
void nd_estimate_stage_memory(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              int32_t stage, const int64_t counts[ND_LAYER_KINDS_MAX], nd_memory_breakdown *out);

/** The same for a layout whose layers are divided already (nd_split_stages()). */
void nd_estimate_memory_split(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              const nd_stage_split *split, nd_memory_breakdown *out);

/** The same in one phase alone: its terms at the stage that needs most then, whatever other phases need. */
void nd_estimate_memory_phase(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                              nd_phase phase, nd_memory_breakdown *out);

/** Everything. */
void nd_estimate_priced(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                        nd_estimate *out);

/** nd_price_blocks + nd_estimate_priced. */
void nd_estimate_layout(const nd_cost_context *context, const nd_layout *layout, nd_estimate *out);

/** One line of the communication table of `ndplan estimate`. */
typedef struct nd_comm_line {
    const char *name; /* "tp reduce-scatter (attention)", ...; static storage */
    nd_collective collective;
    nd_group_kind group_kind;
    nd_group group;
    double bytes; /* full buffer of one call */
    double calls_per_step;
    double call_s;
    double total_s;            /* calls_per_step x call_s */
    double exposed_s;          /* of total_s */
    double needed_bytes_per_s; /* link rate per GPU at which it would be hidden; 0 when it cannot be */
    const char *link;          /* "nvlink", "network", ...: slowest tier crossed; static storage */
} nd_comm_line;

enum { ND_COMM_LINES_MAX = 64 };

typedef struct nd_comm_breakdown {
    int32_t count;
    nd_comm_line lines[ND_COMM_LINES_MAX];
} nd_comm_breakdown;

/** Every collective of one step of the busiest rank. */
void nd_estimate_comm(const nd_cost_context *context, const nd_layout *layout, nd_comm_breakdown *out);

ND_END_DECLS

#endif
