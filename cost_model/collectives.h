/** Time of one collective on the tiers that its group crosses. docs/MODEL.md, "Collectives". */
#ifndef ND_COST_MODEL_COLLECTIVES_H
#define ND_COST_MODEL_COLLECTIVES_H

#include "core/mesh.h"
#include "cost_model/calibration.h"
#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

/** Where a group lies and how fast it can go; prepared once per group, used for many sizes. */
typedef struct nd_group_placement {
    int64_t ranks;
    int64_t inner_ranks;                           /* members in one domain of the narrowest tier */
    int64_t domains;                               /* such domains that the group crosses */
    int32_t top_tier;                              /* index of the widest tier that it crosses */
    double inner_bytes_per_s[ND_COLLECTIVE_COUNT]; /* inside one domain; 0 when inner_ranks is 1 */
    double outer_bytes_per_s;                      /* of one rank between domains, when every rank has its own rail */
    double latency_s[ND_COLLECTIVE_COUNT];
    double ramp_s[ND_COLLECTIVE_COUNT];
} nd_group_placement;

nd_group_placement nd_group_place(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group);

/** Seconds of one call.
 * \param[in] bytes  of the full buffer (gathered, reduced or exchanged by one rank); for send-recv what one rank sends
 * 0 for a group of one rank or no bytes. */
double nd_collective_s(const nd_group_placement *placement, nd_collective collective, double bytes);

/** Bytes that one rank moves per byte of buffer: 2(n-1)/n for all-reduce, (n-1)/n, 1 for send-recv. */
double nd_collective_factor(nd_collective collective, int64_t ranks);

/** The rate that large messages of this collective reach, bytes of bus traffic per second and rank. */
double nd_collective_rate(const nd_group_placement *placement, nd_collective collective);

ND_END_DECLS

#endif
