#include "cost_model/collectives.h"

#include <math.h>
#include <string.h>

/* A send and its matching receive, both sides ready: launch and handshake. Prototype fit on pipeline runs. */
static const double send_recv_latency_s = 10e-6;
/* Ring collectives beyond this many domains switch to logarithmic algorithms (trees, PAT). */
static const double linear_domains = 8.0;

double nd_collective_factor(nd_collective collective, int64_t ranks)
{
    double n = (double)ranks;
    if (collective == ND_SEND_RECV) {
        return 1.0;
    }
    return (collective == ND_ALL_REDUCE ? 2.0 : 1.0) * (n - 1.0) / n;
}

/* Efficiency between the measured group sizes 2, 4 and 8, linear in log2 of the size. */
static double efficiency(const nd_collective_constants *c, int64_t ranks)
{
    if (ranks <= 2) {
        return c->efficiency2_frac;
    }
    if (ranks >= 8) {
        return c->efficiency8_frac;
    }
    double level = log2((double)ranks);
    if (level <= 2.0) {
        return c->efficiency2_frac + (level - 1.0) * (c->efficiency4_frac - c->efficiency2_frac);
    }
    return c->efficiency4_frac + (level - 2.0) * (c->efficiency8_frac - c->efficiency4_frac);
}

static bool is_nvlink(nd_tier_kind kind)
{
    return kind == ND_TIER_NVLINK || kind == ND_TIER_NVLINK_BRIDGE;
}

/* Large-message rate inside one domain of the narrowest tier. */
static double inner_rate(const nd_link_tier *tier, const nd_collective_constants *c, int64_t ranks)
{
    double rate = tier->bytes_per_s / tier->oversubscription;
    if (is_nvlink(tier->kind)) {
        return rate * efficiency(c, ranks);
    }
    if ((tier->kind == ND_TIER_XGMI || tier->kind == ND_TIER_MESH) && tier->span_gpus > 1) {
        /* a full mesh: fewer ranks use fewer of a GPU's links */
        rate *= (double)(ranks - 1) / (double)(tier->span_gpus - 1);
    }
    return rate * tier->efficiency_frac;
}

/* Hops between domains: logarithmic for trees (all-reduce), linear at first for rings. */
static double outer_hops(nd_collective collective, double domains)
{
    double doublings = log2(domains);
    if (collective == ND_ALL_REDUCE) {
        return 2.0 * doublings;
    }
    double linear = domains - 1.0;
    return fmin(linear, linear_domains + doublings);
}

static double latency(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_collective collective,
                      const nd_group_placement *p)
{
    const nd_collective_constants *c = &calibration->collective[collective];
    double passes = collective == ND_ALL_REDUCE ? 2.0 : 1.0;
    double inner_steps = passes * (double)(p->inner_ranks - 1);
    if (collective == ND_SEND_RECV) {
        return send_recv_latency_s;
    }
    if (p->domains == 1) {
        return c->base_s + c->step_s * inner_steps;
    }
    if (collective == ND_ALL_TO_ALL) {
        return c->base_s + c->step_s * (double)(p->ranks - 1) +
               cluster->tiers[p->top_tier].step_latency_s * log2((double)p->domains);
    }
    return c->base_s + c->step_s * inner_steps +
           cluster->tiers[p->top_tier].step_latency_s * outer_hops(collective, (double)p->domains);
}

/* The slowest tier above the narrowest one, as a rate per rank of a narrowest domain: members that share the domain
 * below a tier each own a share of its uplink. */
static double outer_rate(const nd_cluster_spec *cluster, const nd_calibration *calibration,
                         const int64_t members[ND_TIERS_MAX], int32_t top)
{
    double slowest = HUGE_VAL;
    for (int32_t i = 1; i <= top; i++) {
        if (members[i] == members[i - 1]) {
            continue; /* nothing crosses this tier */
        }
        const nd_link_tier *tier = &cluster->tiers[i];
        double rate = tier->bytes_per_s * tier->efficiency_frac / tier->oversubscription;
        if (tier->kind == ND_TIER_NETWORK || tier->kind == ND_TIER_SPINE) {
            rate *= calibration->network_frac;
        }
        rate *= (double)members[i - 1] / (double)members[0]; /* every rank below has its own share */
        slowest = rate < slowest ? rate : slowest;
    }
    return slowest;
}

nd_group_placement nd_group_place(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group)
{
    int64_t members[ND_TIERS_MAX];
    nd_group_placement p;
    memset(&p, 0, sizeof p);
    nd_cluster_group_members(cluster, group.ranks, group.stride, members);
    p.ranks = group.ranks;
    p.inner_ranks = members[0] > 0 ? members[0] : 1;
    p.domains = (group.ranks + p.inner_ranks - 1) / p.inner_ranks;
    while (p.top_tier + 1 < cluster->tiers_count && members[p.top_tier] < group.ranks) {
        p.top_tier++;
    }
    for (int c = 0; c < ND_COLLECTIVE_COUNT; c++) {
        const nd_collective_constants *constants = &calibration->collective[c];
        p.inner_bytes_per_s[c] = p.inner_ranks > 1 ? inner_rate(&cluster->tiers[0], constants, p.inner_ranks) : 0.0;
        p.latency_s[c] = latency(cluster, calibration, (nd_collective)c, &p);
        p.ramp_s[c] = constants->ramp_s;
    }
    p.outer_bytes_per_s = p.domains > 1 ? outer_rate(cluster, calibration, members, p.top_tier) : 0.0;
    return p;
}

double nd_collective_rate(const nd_group_placement *p, nd_collective collective)
{
    double inner = p->inner_bytes_per_s[collective];
    if (p->domains == 1) {
        return inner;
    }
    if (collective == ND_SEND_RECV) {
        return p->outer_bytes_per_s; /* one rank to one rank: its own rail */
    }
    double rails = (double)p->inner_ranks * p->outer_bytes_per_s;
    if (p->inner_ranks == 1) {
        return rails;
    }
    if (collective == ND_ALL_REDUCE && p->domains == 2) {
        /* two domains exchange halves instead of running a ring: (n-1)/(n-g) more than the rails */
        rails *= (double)(p->ranks - 1) / (double)(p->ranks - p->inner_ranks);
    } else if (collective == ND_ALL_REDUCE) {
        /* across domains the reduction inside them is a ring: the in-switch gain is lost */
        inner = fmin(inner, p->inner_bytes_per_s[ND_ALL_GATHER]);
    }
    return fmin(inner, rails);
}

/* Part of an all-to-all stays inside the domain, the rest leaves through one rank's own rail. */
static double all_to_all_base_s(const nd_group_placement *p, double bytes)
{
    double n = (double)p->ranks;
    double local = bytes / n * (double)(p->inner_ranks - 1);
    double remote = bytes / n * (double)(p->ranks - p->inner_ranks);
    double local_s = p->inner_ranks > 1 ? local / p->inner_bytes_per_s[ND_ALL_TO_ALL] : 0.0;
    double remote_s = p->domains > 1 ? remote / p->outer_bytes_per_s : 0.0;
    return fmax(local_s, remote_s);
}

double nd_collective_s(const nd_group_placement *p, nd_collective collective, double bytes)
{
    if (p->ranks <= 1 || bytes <= 0.0) {
        return 0.0;
    }
    double base_s;
    if (collective == ND_ALL_TO_ALL) {
        base_s = all_to_all_base_s(p, bytes);
    } else {
        base_s = bytes * nd_collective_factor(collective, p->ranks) / nd_collective_rate(p, collective);
    }
    return p->latency_s[collective] + base_s + sqrt(base_s * p->ramp_s[collective]);
}
