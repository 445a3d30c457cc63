#include "cost_model/collectives.h"

#include <math.h>
#include <string.h>

/* NCCL's own estimate, by which it leaves the tree all-reduce for the ring (NVIDIA/nccl src/graph/tuning.cc, Simple
 * protocol): seconds per hop, the multi-node correction of the ring, and what it believes the tree's rate to be
 * (0.92 x 0.85 of the ring's). It errs, so the choice is not the minimum of the real times. */
static const double nccl_ring_local_s = 3.4e-6, nccl_ring_network_s = 14e-6, nccl_ring_correction = 1.4;
static const double nccl_tree_local_s = 4.0e-6, nccl_tree_network_s = 14e-6;
static const double nccl_tree_rate_frac = 0.92 * 0.85;

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

static bool is_network(nd_tier_kind kind)
{
    return kind == ND_TIER_NETWORK || kind == ND_TIER_SPINE;
}

/* Large-message rate of a ring inside one domain of the narrowest tier. */
static double ring_rate(const nd_link_tier *tier, const nd_collective_constants *c, int64_t ranks)
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

/* Rate inside one domain of the narrowest tier; 0 when no two members share one. */
static double inner_rate(const nd_link_tier *tier, const nd_collective_constants *c, nd_collective collective,
                         const nd_group_placement *p)
{
    if (p->inner_ranks <= 1) {
        return 0.0;
    }
    double ring = ring_rate(tier, c, p->inner_ranks);
    bool in_switch = tier->kind == ND_TIER_NVLINK && c->switch_frac > 0.0 && (double)p->inner_ranks >= c->switch_ranks;
    if (in_switch && p->domains <= 2) { /* across more domains the reduction inside them is a ring: no gain */
        double rate = tier->bytes_per_s / tier->oversubscription * c->switch_frac;
        return fmax(ring, rate * nd_collective_factor(collective, p->inner_ranks));
    }
    if (collective == ND_ALL_REDUCE && p->domains == 2 && p->nodes == 2) {
        return ring * nccl_tree_rate_frac; /* two nodes run a tree */
    }
    bool pairwise = collective == ND_ALL_TO_ALL || collective == ND_SEND_RECV;
    return tier->kind == ND_TIER_PCIE && pairwise ? ring * tier->costs.send_frac : ring;
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
        if (is_network(tier->kind)) {
            rate *= calibration->network_frac;
        }
        rate *= (double)members[i - 1] / (double)members[0]; /* every rank below has its own share */
        slowest = rate < slowest ? rate : slowest;
    }
    return slowest;
}

/* Bus rate of all but the all-to-all. */
static double bus_rate(const nd_group_placement *p, const nd_tier_costs *top, nd_collective collective)
{
    double inner = p->inner_bytes_per_s[collective];
    if (p->domains == 1) {
        return inner;
    }
    if (collective == ND_SEND_RECV) {
        return p->outer_bytes_per_s * top->send_frac; /* one rank to one rank: its own rail */
    }
    double rails = (double)p->inner_ranks * p->outer_bytes_per_s;
    if (p->inner_ranks == 1) {
        return rails;
    }
    if (collective == ND_ALL_REDUCE && p->domains == 2 && p->nodes == 2) {
        /* two trees, rooted in either node, exchange halves: (n-1)/(n-g) more than the rails */
        rails *= (double)(p->ranks - 1) / (double)(p->ranks - p->inner_ranks);
    }
    return fmin(inner, rails);
}

/* Part of an all-to-all stays inside the domain, the rest leaves through one rank's own rail. */
static double all_to_all_s_per_byte(const nd_group_placement *p, const nd_tier_costs *top)
{
    double n = (double)p->ranks;
    double local = (double)(p->inner_ranks - 1) / n;
    double remote = (double)(p->ranks - p->inner_ranks) / n;
    double local_s = p->inner_ranks > 1 ? local / p->inner_bytes_per_s[ND_ALL_TO_ALL] : 0.0;
    double remote_s = p->domains > 1 ? remote / (p->outer_bytes_per_s * top->exchange_frac) : 0.0;
    return fmax(local_s, remote_s);
}

/* Hops inside nodes and between them, and what one costs. */
typedef struct hops {
    double local, network;
} hops;

/* A chunk of a ring passes every edge but one: all the borders between nodes in the worst case. */
static hops ring_hops(const nd_group_placement *p)
{
    double network = p->nodes > 1 ? fmin((double)p->nodes, (double)p->ranks - 1.0) : 0.0;
    return (hops){(double)p->ranks - 1.0 - network, network};
}

/* Up and down a chain inside each node and a binary tree of nodes. */
static hops tree_hops(const nd_group_placement *p)
{
    return (hops){2.0 * (double)(p->node_ranks - 1), 2.0 * log2((double)p->nodes)};
}

/* Where NCCL leaves the tree for the ring, as seconds at full rate. */
static double nccl_tree_limit_s(const nd_group_placement *p, hops tree)
{
    double network = 2.0 * (double)(p->nodes - 1);
    double local = 2.0 * (double)(p->ranks - 1) - network;
    double ring_s = nccl_ring_correction * (local * nccl_ring_local_s + network * nccl_ring_network_s);
    double tree_s = tree.local * nccl_tree_local_s + tree.network * nccl_tree_network_s;
    return fmax(0.0, ring_s - tree_s) / (1.0 / nccl_tree_rate_frac - 1.0);
}

/* Latency per hop on the links inside a node: the GPU's own, or PCIe where the links do not join all members. */
typedef struct steps {
    double small_s, large_s;
} steps;

static steps local_steps(const nd_cluster_spec *cluster, const nd_group_placement *p, const nd_collective_constants *c)
{
    for (int32_t i = p->top_tier; i >= 0; i--) {
        const nd_link_tier *tier = &cluster->tiers[i];
        if (tier->kind == ND_TIER_PCIE && p->node_ranks > (i > 0 ? p->inner_ranks : 1)) {
            return (steps){tier->costs.ring_step_s, tier->costs.large_step_s};
        }
    }
    return (steps){c->step_s, c->large_step_s};
}

/* What one operation pays beside its rate, before the two ways are compared. */
typedef struct ways {
    hops small, large; /* hops of the two */
    double hop_s;      /* of a network hop of the first */
    double peers_s;    /* all-to-all: peers beyond the links of the node */
    double ramp_hops;  /* of the tree */
} ways;

static ways find_ways(const nd_group_placement *p, const nd_link_tier *top, nd_collective collective)
{
    hops ring = ring_hops(p);
    double beyond = (double)(p->ranks - (is_network(top->kind) ? p->node_ranks : p->inner_ranks));
    hops pair = {0.0, p->nodes > 1 ? 1.0 : 0.0};
    switch (collective) {
    case ND_ALL_REDUCE: {
        hops twice = {2.0 * ring.local, 2.0 * ring.network};
        bool tree = p->nodes > 1;
        /* the rate of trees builds up the more slowly the more nodes: exponent 0.73 on Alps, 0.59 on Polaris */
        return (ways){tree ? tree_hops(p) : twice, twice, tree ? top->step_latency_s : 0.0, 0.0,
                      tree ? cbrt(twice.network * twice.network) : 0.0};
    }
    case ND_ALL_TO_ALL: /* peers are served at once, each costs a little; across nodes one hop adds its way */
        pair.local = (double)((top->kind == ND_TIER_PCIE ? p->inner_ranks : p->node_ranks) - 1);
        return (ways){pair, pair, top->costs.ring_step_s, beyond * top->costs.peer_s, 0.0};
    case ND_SEND_RECV:
        return (ways){pair, pair, top->costs.ring_step_s, 0.0, 0.0};
    case ND_ALL_GATHER:
    case ND_REDUCE_SCATTER:
    case ND_COLLECTIVE_COUNT:
        break;
    }
    return (ways){ring, ring, top->costs.ring_step_s, 0.0, 0.0};
}

/* Where the two ways take equally long: loss z^2 + (ramp difference) z = large - small, with z = sqrt(y); one of the
 * two terms is 0. */
static double crossing_s(const nd_collective_cost *c)
{
    double gap = c->large_s - c->small_s;
    double slope = c->small_ramp - c->large_ramp;
    if (c->small_loss_frac > 0.0) {
        return gap / c->small_loss_frac;
    }
    return slope > 0.0 ? gap / slope * (gap / slope) : HUGE_VAL;
}

static double small_way_s(const nd_collective_cost *c, double rate_s, double root)
{
    return c->small_s + (1.0 + c->small_loss_frac) * rate_s + c->small_ramp * root;
}

/* Two nodes never run a ring; more do where NCCL says so, not where it would pay. */
static void set_tree_switch(const nd_group_placement *p, hops tree, nd_collective_cost *cost)
{
    cost->switch_s = HUGE_VAL;
    if (p->nodes > 2) {
        cost->switch_s = fmax(crossing_s(cost), nccl_tree_limit_s(p, tree));
    }
    if (cost->switch_s < HUGE_VAL) { /* a switch that is not the crossing leaves a gap */
        cost->at_switch_s = small_way_s(cost, cost->switch_s, sqrt(cost->switch_s));
    }
}

static void set_latencies(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_collective collective,
                          const nd_group_placement *p, nd_collective_cost *cost)
{
    const nd_collective_constants *c = &calibration->collective[collective];
    const nd_link_tier *top = &cluster->tiers[p->top_tier];
    bool beyond_links = top->kind == ND_TIER_PCIE || is_network(top->kind);
    bool tree = collective == ND_ALL_REDUCE && p->nodes > 1;
    bool straight = is_network(top->kind) && (collective == ND_ALL_TO_ALL || collective == ND_SEND_RECV);
    steps local = local_steps(cluster, p, c);
    ways w = find_ways(p, top, collective);
    double base_s = top->costs.base_s > 0.0 ? top->costs.base_s : c->base_s;
    double large_base_s = top->costs.base_s > 0.0 ? base_s : c->large_base_s;
    cost->small_loss_frac = tree ? 0.0 : beyond_links ? top->costs.ring_loss_frac : c->small_loss_frac;
    cost->large_ramp = sqrt(c->ramp_s);
    cost->small_ramp = tree ? sqrt(fmax(c->ramp_s, top->costs.tree_ramp_s * w.ramp_hops)) : cost->large_ramp;
    cost->small_s = base_s + w.small.local * local.small_s + w.small.network * w.hop_s + w.peers_s;
    cost->large_s =
        large_base_s + w.large.local * local.large_s + w.large.network * top->costs.large_step_s + w.peers_s;
    cost->large_s = fmax(cost->large_s, cost->small_s);
    if (straight) { /* one line: nothing is passed on from rank to rank */
        cost->small_loss_frac = 0.0;
        cost->switch_s = HUGE_VAL;
    } else if (tree) {
        set_tree_switch(p, w.small, cost);
    } else {
        cost->switch_s = crossing_s(cost);
    }
}

static void set_shape(const nd_cluster_spec *cluster, nd_group group, const int64_t members[ND_TIERS_MAX],
                      nd_group_placement *p)
{
    p->ranks = group.ranks;
    p->inner_ranks = members[0] > 0 ? members[0] : 1;
    p->domains = (group.ranks + p->inner_ranks - 1) / p->inner_ranks;
    while (p->top_tier + 1 < cluster->tiers_count && members[p->top_tier] < group.ranks) {
        p->top_tier++;
    }
    p->node_ranks = group.ranks;
    for (int32_t i = 0; i <= p->top_tier; i++) {
        if (is_network(cluster->tiers[i].kind)) {
            p->node_ranks = i > 0 ? members[i - 1] : 1;
            break;
        }
    }
    p->node_ranks = p->node_ranks > 0 ? p->node_ranks : 1;
    p->nodes = (group.ranks + p->node_ranks - 1) / p->node_ranks;
}

static nd_group_placement place_shape(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group)
{
    int64_t members[ND_TIERS_MAX];
    nd_group_placement p;
    memset(&p, 0, sizeof p);
    nd_cluster_group_members(cluster, group.ranks, group.stride, members);
    set_shape(cluster, group, members, &p);
    p.outer_bytes_per_s = p.domains > 1 ? outer_rate(cluster, calibration, members, p.top_tier) : 0.0;
    return p;
}

static void place_operation(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_collective collective,
                            nd_group_placement *p)
{
    const nd_tier_costs *top = &cluster->tiers[p->top_tier].costs;
    nd_collective_cost *cost = &p->cost[collective];
    if (p->ranks <= 1) {
        return; /* nothing to send */
    }
    p->inner_bytes_per_s[collective] =
        calibration->link_frac * inner_rate(&cluster->tiers[0], &calibration->collective[collective], collective, p);
    cost->seconds_per_byte = collective == ND_ALL_TO_ALL
                                 ? all_to_all_s_per_byte(p, top)
                                 : nd_collective_factor(collective, p->ranks) / bus_rate(p, top, collective);
    set_latencies(cluster, calibration, collective, p, cost);
}

nd_group_placement nd_group_place(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group)
{
    nd_group_placement p = place_shape(cluster, calibration, group);
    for (int i = 0; i < ND_COLLECTIVE_COUNT; i++) {
        place_operation(cluster, calibration, (nd_collective)i, &p);
    }
    return p;
}

nd_group_placement nd_group_place_for(const nd_cluster_spec *cluster, const nd_calibration *calibration, nd_group group,
                                      nd_collective collective)
{
    nd_group_placement p = place_shape(cluster, calibration, group);
    place_operation(cluster, calibration, collective, &p);
    return p;
}

double nd_collective_rate(const nd_group_placement *p, nd_collective collective)
{
    return p->ranks > 1 ? nd_collective_factor(collective, p->ranks) / p->cost[collective].seconds_per_byte : 0.0;
}

double nd_collective_s(const nd_group_placement *p, nd_collective collective, double bytes)
{
    if (p->ranks <= 1 || bytes <= 0.0) {
        return 0.0;
    }
    const nd_collective_cost *c = &p->cost[collective];
    double rate_s = bytes * c->seconds_per_byte;
    double root = sqrt(rate_s);
    if (rate_s < c->switch_s) {
        return small_way_s(c, rate_s, root);
    }
    return fmax(c->at_switch_s, c->large_s + rate_s + c->large_ramp * root);
}
