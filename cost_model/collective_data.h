/** Measured collectives: a table of points, sorted into systems and series, each on the cluster that it ran on. */
#ifndef ND_COST_MODEL_COLLECTIVE_DATA_H
#define ND_COST_MODEL_COLLECTIVE_DATA_H

#include "core/csv.h"
#include "cost_model/calibration.h"
#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

enum { ND_SYSTEM_TEXT_MAX = 96 };

/** Who measured: one value of the column "group". Leave-one-system-out leaves one of these out. */
typedef struct nd_collective_system {
    char name[ND_SYSTEM_TEXT_MAX];
    int64_t points;
} nd_collective_system;

/** One curve: an operation on a group of one size, one library version. */
typedef struct nd_collective_series {
    int32_t system;  /* index */
    int32_t cluster; /* index */
    int32_t family;  /* index: of its GPU's architecture */
    nd_collective collective;
    nd_group group; /* members spread evenly over the nodes */
    int64_t nodes;
    int64_t first, count; /* points */
    char version[24];     /* of the library, as the table has it */
} nd_collective_series;

typedef struct nd_collective_point {
    double bytes, seconds;
    int32_t series; /* index */
    size_t row;     /* of the table, for messages */
} nd_collective_point;

/** Rows left out, by reason. */
typedef struct nd_collective_skip {
    char cluster[ND_SYSTEM_TEXT_MAX];
    char reason[ND_SYSTEM_TEXT_MAX];
    int64_t rows;
} nd_collective_skip;

typedef struct nd_collective_data {
    nd_collective_system *systems;
    nd_cluster_spec *clusters;
    nd_calibration *families; /* the shipped calibrations of the architectures */
    nd_collective_series *series;
    nd_collective_point *points; /* by series, then by row */
    nd_collective_skip *skips;
    int32_t systems_count, clusters_count, families_count, series_count, skips_count;
    int64_t points_count;
} nd_collective_data;

/** Sort a table into series.
 *
 * Columns: cluster, gpus, nodes, collective (all_reduce, all_gather, reduce_scatter, alltoall, sendrecv), message_bytes
 * (nccl-tests' "size": the full buffer), time_us, group, and optionally condition, note and nccl_version. The cluster
 * is free text; the first of these that it contains decides: the name of a built-in cluster ("GCP a3-megagpu-8g
 * (H100)"), or a GPU ("8xH100-SXM5": a node like its reference node; the count in front is that of a node). Left out,
 * with a reason in skips: clusters that cannot be told, conditions other than "ok", rows whose note says that the
 * in-switch reduction was off. \return ND_EPARSE with file and line for a missing column or a bad value, or when no row
 * is left; ND_ENOMEM */
nd_status nd_collective_data_read(const nd_csv *csv, nd_collective_data **out, nd_error *err) ND_NODISCARD;

void nd_collective_data_free(nd_collective_data *data); /* NULL is fine */

/** The cluster that a free text names, see above. ND_ENOTFOUND when it names none, or not one of this many GPUs. */
nd_status nd_collective_cluster(const char *text, int64_t gpus, int64_t nodes, nd_cluster_spec *out,
                                nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
