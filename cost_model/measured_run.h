/** Measured training runs as the model sees them: one row of a CSV into model, cluster, training, layout and stack.
 *
 * The columns are those of cost_model/measurements/runs.csv; docs/ACCURACY.md lists them. Only `gpu`, `gpus` and a
 * model (a built-in name, a config.json, or its shape) must be there. What a row does not state is assumed, and the
 * assumption is recorded.
 */
#ifndef ND_COST_MODEL_MEASURED_RUN_H
#define ND_COST_MODEL_MEASURED_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/csv.h"
#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** How peak memory was read: by the framework's allocator (allocated, or reserved from the driver), or off the
 * device (nvidia-smi: context and communicators included). */
typedef enum nd_memory_kind { ND_MEMORY_ALLOCATED, ND_MEMORY_RESERVED, ND_MEMORY_DEVICE } nd_memory_kind;

/* X(enumerator, text): what may be assumed. */
#define ND_ASSUMPTION_LIST(X)                                                                                          \
    X(ND_ASSUMED_SHAPE, "shape")                 /* vocabulary, feed-forward size or heads */                          \
    X(ND_ASSUMED_NETWORK, "network")             /* the usual NICs of such nodes */                                    \
    X(ND_ASSUMED_STACK, "stack")                 /* an unknown framework: the project's own */                         \
    X(ND_ASSUMED_DATA_PARALLEL, "data parallel") /* all ranks that tp, cp and pp leave */                              \
    X(ND_ASSUMED_SHARDING, "sharding")           /* the stack's default */                                             \
    X(ND_ASSUMED_MICRO_BATCH, "micro_batch")     /* the fastest that fits */                                           \
    X(ND_ASSUMED_GLOBAL_BATCH, "global_batch")   /* no accumulation */                                                 \
    X(ND_ASSUMED_INTERLEAVING, "vpp")            /* the fastest that fits */                                           \
    X(ND_ASSUMED_RECOMPUTE, "recompute")         /* the least that fits */                                             \
    X(ND_ASSUMED_PARTIAL, "partial recompute")   /* every second layer */                                              \
    X(ND_ASSUMED_SEQ_LEN, "seq_len")             /* 2,048 */                                                           \
    X(ND_ASSUMED_PRECISION, "precision")         /* bf16 */                                                            \
    X(ND_ASSUMED_ATTENTION, "attention")         /* the stack's kernel */                                              \
    X(ND_ASSUMED_LORA, "lora rank")              /* 16 */                                                              \
    X(ND_ASSUMED_PACKING, "packing")             /* documents fill the sequence */

typedef enum nd_run_assumption {
#define ND_ASSUMPTION_ENUM(name, text) name,
    ND_ASSUMPTION_LIST(ND_ASSUMPTION_ENUM)
#undef ND_ASSUMPTION_ENUM
        ND_ASSUMPTION_COUNT
} nd_run_assumption;

typedef struct nd_measured_run {
    char id[40];
    char source[24]; /* what rows are grouped by: the letters before '-' in the id, else the source column */
    char framework[64];
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_layout layout;
    double step_s;     /* measured; 0 when not reported */
    double peak_bytes; /* measured; 0 when not reported */
    nd_memory_kind memory_kind;
    char grade;         /* 'A', 'B', 'C', or ' ' when the table has no grades */
    bool contradictory; /* the notes carry FLAG: the source contradicts itself */
    uint32_t assumed;   /* bit per nd_run_assumption */
} nd_measured_run;

const char *nd_run_assumption_name(nd_run_assumption assumption);

/** ND_EPARSE unless the table's columns are known and can describe a run. */
nd_status nd_measured_check(const nd_csv *csv, nd_error *err) ND_NODISCARD;

/** Read one row.
 * \return ND_EPARSE for a cell that is no number, or out of range ("FILE:LINE: ..."); ND_EUNSUPPORTED for a row that
 *         cannot be predicted (unknown GPU or shape, degrees that do not multiply to the GPUs): out->id and
 *         out->source are then set, the message says why. */
nd_status nd_measured_read(const nd_csv *csv, size_t row, nd_measured_run *out, nd_error *err) ND_NODISCARD;

/** Choose what the row left open and the model must decide: micro_batch and recompute. */
nd_status nd_measured_complete(nd_measured_run *run, const nd_calibration *calibration, nd_error *err) ND_NODISCARD;

/** Predict a run with a calibration. */
nd_status nd_measured_predict(const nd_measured_run *run, const nd_calibration *calibration, nd_estimate *out,
                              nd_error *err) ND_NODISCARD;

/** Predicted bytes that compare with what the row measured. */
double nd_measured_memory(const nd_measured_run *run, const nd_memory_breakdown *memory);

/** True for fp8 and narrower training, and for mixtures of experts: their errors are larger. */
bool nd_measured_is_hard(const nd_measured_run *run);

ND_END_DECLS

#endif
