/** One quantity varied: the best layout at each value, where it changes, and what bandwidth it needs. */
#ifndef ND_PLANNER_SWEEP_H
#define ND_PLANNER_SWEEP_H

#include "planner/bandwidth.h"
#include "planner/point.h"

ND_BEGIN_DECLS

/* X(enumerator, text): the text is what --over takes. */
#define ND_SWEEP_LIST(X)                                                                                               \
    X(ND_SWEEP_GPUS, "gpus")                   /* whole nodes, or equal parts of one */                                \
    X(ND_SWEEP_SEQ_LEN, "seq-len")             /* tokens */                                                            \
    X(ND_SWEEP_GLOBAL_BATCH, "global-batch")   /* sequences */                                                         \
    X(ND_SWEEP_NIC, "nic")                     /* bytes per second of one node's NICs */                               \
    X(ND_SWEEP_NVLINK_DOMAIN, "nvlink-domain") /* GPUs */

typedef enum nd_sweep_quantity {
#define ND_SWEEP_ENUM(name, text) name,
    ND_SWEEP_LIST(ND_SWEEP_ENUM)
#undef ND_SWEEP_ENUM
        ND_SWEEP_QUANTITY_COUNT
} nd_sweep_quantity;

const char *nd_sweep_quantity_name(nd_sweep_quantity quantity); /* never NULL */

enum { ND_SWEEP_POINTS_MAX = 64, ND_SWEEP_CHANGES_MAX = 160 };

/** Where a sweep goes, in base units. What is 0 gets a default. */
typedef struct nd_sweep_range {
    double from, to;
    int32_t steps; /* points, spaced by equal factors; 0: doubling */
} nd_sweep_range;

/** The points of a range: ascending, rounded to what the quantity can be (whole nodes or equal parts of one, whole
 * sequences, 128 tokens), without repetitions; from and to are kept as they are.
 *
 * Defaults: GPUs from one node to eight times the cluster; sequences from 2,048 to 131,072 tokens; batches from one to
 * 16 sequences per GPU; NICs from an eighth to four times the present rate; domains from 2 GPUs to 64 (at most the
 * cluster).
 * \param[in] cluster  may be NULL for sequences, which do not depend on it
 * \return ND_EINVAL when from is above to, or for more than ND_SWEEP_POINTS_MAX points.
 */
nd_status nd_sweep_values(const nd_cluster_spec *cluster, nd_sweep_quantity quantity, const nd_sweep_range *range,
                          double out[ND_SWEEP_POINTS_MAX], int32_t *count, nd_error *err) ND_NODISCARD;

typedef struct nd_sweep_point {
    double value;                       /* base units */
    nd_point point;                     /* best plan of this value; see there when nothing fits */
    bool changed;                       /* another layout than at the last value at which something fits */
    char changes[ND_SWEEP_CHANGES_MAX]; /* in which keys: "tp=2,sharding=zero3"; degrees of data parallelism that only
                                         * follow the GPUs, and accumulation, are no change */
    double efficiency_frac;             /* tokens/s per GPU against the first point at which something fits */
    nd_bandwidth_need needs[ND_LINK_CLASS_COUNT];
    int32_t needs_count;
} nd_sweep_point;

/** The inputs of one value: the task's with that quantity changed.
 * \return ND_EINVAL when there is no such cluster or training (a count that no node divides, a batch in tokens that is
 *         no whole number of such sequences) */
nd_status nd_sweep_inputs(const nd_task *task, nd_sweep_quantity quantity, double value, nd_cluster_spec *cluster,
                          nd_train_spec *train, nd_error *err) ND_NODISCARD;

/** Search every value. The global batch is the same everywhere (unless it is what varies), so that the points compare.
 * \param[in]  values  checked by nd_sweep_inputs() before anything is searched
 * \param[out] out     count entries, count >= 1
 * \return ND_EINVAL also for pins that no value can meet
 */
nd_status nd_sweep_run(const nd_task *task, nd_sweep_quantity quantity, const double *values, int32_t count,
                       nd_sweep_point *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
