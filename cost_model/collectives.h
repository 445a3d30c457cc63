/** Time of one collective on the tiers that its group crosses. docs/MODEL.md, "Collectives". */
#ifndef ND_COST_MODEL_COLLECTIVES_H
#define ND_COST_MODEL_COLLECTIVES_H

#include "core/mesh.h"
#include "cost_model/calibration.h"
#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

/** One operation of a placed group. With y = bytes x seconds_per_byte, the time at full rate, NCCL runs the first of
 *   small_s + (1 + small_loss_frac) y + small_ramp sqrt(y)    (LL and LL128; trees between nodes)
 *   large_s + y + large_ramp sqrt(y)                           (Simple; rings)
 * up to y = switch_s and the second beyond; the time never falls at the switch. */
typedef struct nd_collective_cost {
    double seconds_per_byte; /* of buffer, at the rate that large messages reach */
    double small_s, small_loss_frac, small_ramp;
    double large_s, large_ramp;
    double switch_s;
    double at_switch_s; /* time of the first at the switch */
} nd_collective_cost;

/** Where a group lies and how fast it can go; prepared once per group, used for many sizes. */
typedef struct nd_group_placement {
    int64_t ranks;
    int64_t inner_ranks;                           /* members in one domain of the narrowest tier */
    int64_t domains;                               /* such domains that the group crosses */
    int64_t node_ranks;                            /* members below the network */
    int64_t nodes;                                 /* such parts of the group; 1: no network crossed */
    int32_t top_tier;                              /* index of the widest tier that it crosses */
    double inner_bytes_per_s[ND_COLLECTIVE_COUNT]; /* inside one domain; 0 when inner_ranks is 1 */
    double outer_bytes_per_s;                      /* of one rank between domains, when every rank has its own rail */
    nd_collective_cost cost[ND_COLLECTIVE_COUNT];
} nd_group_placement;

nd_group_placement nd_group_place(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group);

/** The same for one operation only, when no other will be asked for: several times cheaper. */
nd_group_placement nd_group_place_for(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group,
                                      nd_collective collective);

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
