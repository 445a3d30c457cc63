#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "topologies/cluster_internal.h"
#include "topologies/figure_internal.h"

/* Usable part of a PCIe link: NCCL counts 12, 24, 48 GB/s of 15.75, 31.5, 63 (generations 3, 4, 5; 16 lanes). */
static const double pcie_efficiency = 0.76;
/* Without peer access every byte crosses the host bridge twice; own assumption. */
static const double staged_factor = 0.5;
/* Between host bridges when the file is silent: NVIDIA/nccl src/graph/topo.h, AMD 16, Intel 10 to 40 GB/s. */
static const double bridge_default_bytes_per_s = 16e9;
/* An 8-GPU PCIe server has two sockets. */
static const int64_t bridge_default_gpus = 4;
/* 8xRTX PRO 6000, fit. */
static const double pcie_step_s = 1.5e-6;
/* 8xRTX PRO 6000, fit on all operations (docs/MODEL.md, "Collectives"). */
static const nd_tier_costs pcie_costs = {4.0e-6, 1.5e-6, 5.0e-6, 0.95, 0.0, 0.67e-6, 1.35, 0.84};

const char *nd_tier_kind_name(nd_tier_kind kind)
{
    static const char *const names[ND_TIER_KIND_COUNT] = {
#define ND_TIER_TEXT(name, text) [name] = (text),
        ND_TIER_KIND_LIST(ND_TIER_TEXT)
#undef ND_TIER_TEXT
    };
    return (int)kind >= 0 && kind < ND_TIER_KIND_COUNT ? names[kind] : "unknown";
}

/* One ring step over NVLink, from small messages on 2, 4 and 8 GPUs: A100 0.80-1.02, H100 and H200 0.84-1.07,
 * B200 and B300 1.35-1.43 us. */
static double link_step_s(const nd_gpu_spec *gpu)
{
    if (strncmp(gpu->arch, "blackwell", strlen("blackwell")) == 0) {
        return 1.4e-6;
    }
    return strcmp(gpu->arch, "hopper") == 0 ? 0.9e-6 : 1.0e-6;
}

/* Large messages against the data sheet. NVLink: ring all-reduce of 8 GPUs A100 234.9 of 300, H200 366 of 450, B200 682
 * to 704 of 900. Bridge: A100 pair 208 of 300. xGMI: MI300X 310 of 448. Mesh: 4 x GH200 339 of 450. */
static double link_efficiency(nd_tier_kind kind)
{
    switch (kind) {
    case ND_TIER_NVLINK:
        return 0.78;
    case ND_TIER_NVLINK_BRIDGE:
    case ND_TIER_XGMI:
        return 0.69;
    case ND_TIER_MESH:
        return 0.75;
    case ND_TIER_PCIE:
    case ND_TIER_NETWORK:
    case ND_TIER_SPINE:
    case ND_TIER_KIND_COUNT:
        break;
    }
    return pcie_efficiency;
}

nd_node_facts nd_node_facts_default(const nd_gpu_spec *gpu)
{
    nd_node_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.link = gpu->nvlink_bytes_per_s > 0.0 ? ND_TIER_NVLINK : ND_TIER_PCIE;
    facts.link_domain_gpus = 8;
    facts.link_bytes_per_s = gpu->nvlink_bytes_per_s;
    facts.peer_to_peer = true;
    facts.oversubscription = 1.0;
    return facts;
}

static int64_t largest_divisor(int64_t value, int64_t limit)
{
    int64_t divisor = limit < value ? limit : value;
    while (divisor > 1 && value % divisor != 0) {
        divisor--;
    }
    return divisor < 1 ? 1 : divisor;
}

/* GPUs of one rack that a job uses. Schedulers place whole blocks, so 128 GPUs on racks of 72 run as 64 + 64: take the
 * largest equal share that costs at most a seventh more racks than filling them; otherwise fill them. */
static int64_t rack_domain(const nd_cluster_spec *spec, int64_t limit)
{
    int64_t nodes_per_rack = limit / spec->gpus_per_node;
    assert(nodes_per_rack >= 1); /* link_domain() looked */
    if (spec->nodes <= nodes_per_rack) {
        return spec->gpus;
    }
    int64_t racks = (spec->nodes + nodes_per_rack - 1) / nodes_per_rack;
    int64_t share = largest_divisor(spec->nodes, nodes_per_rack);
    assert(share >= 1);
    bool equal_share_is_near = spec->nodes / share * 7 <= racks * 8;
    return (equal_share_is_near ? share : nodes_per_rack) * spec->gpus_per_node;
}

/* GPUs that really form one domain: it nests with the nodes (divides one, or holds whole ones). */
static int64_t link_domain(const nd_cluster_spec *spec)
{
    int64_t limit = spec->facts.link_domain_gpus;
    if (spec->facts.link == ND_TIER_PCIE || limit <= 1) {
        return 1;
    }
    if (spec->facts.link_crosses_nodes && limit >= spec->gpus_per_node) {
        return rack_domain(spec, limit);
    }
    return largest_divisor(spec->gpus_per_node, limit);
}

/* Add a tier unless it spans no more than the one before it. */
static nd_link_tier *push(nd_cluster_spec *spec, nd_tier_kind kind, int64_t span, double bytes_per_s)
{
    int64_t count = spec->tiers_count;
    int64_t below = count > 0 ? spec->tiers[count - 1].span_gpus : 1;
    if (span <= below || count >= ND_TIERS_MAX) {
        return NULL;
    }
    nd_link_tier *tier = &spec->tiers[count];
    memset(tier, 0, sizeof *tier);
    tier->kind = kind;
    tier->span_gpus = span;
    tier->bytes_per_s = bytes_per_s;
    tier->oversubscription = 1.0;
    spec->tiers_count = count + 1;
    return tier;
}

static double or_default(double value, double fallback)
{
    return value > 0.0 ? value : fallback;
}

static void describe_link(const nd_cluster_spec *spec, nd_link_tier *tier)
{
    const nd_node_facts *facts = &spec->facts;
    tier->efficiency_frac = or_default(facts->link_efficiency_frac, link_efficiency(facts->link));
    tier->step_latency_s = or_default(facts->link_step_latency_s, link_step_s(&spec->gpu));
    nd_figure_copy(tier->source, sizeof tier->source,
                   facts->link_source[0] != '\0' ? facts->link_source : spec->gpu.source);
}

/* A stated latency is that of one small hop; the others of the same link are in proportion (own choice). */
static nd_tier_costs scaled_costs(const nd_tier_costs *costs, double factor)
{
    nd_tier_costs scaled = *costs;
    scaled.ring_step_s *= factor;
    scaled.large_step_s *= factor;
    scaled.peer_s *= factor;
    scaled.tree_ramp_s *= factor;
    return scaled;
}

double nd_cluster_host_copy_bytes_per_s(const nd_cluster_spec *cluster)
{
    double link = cluster->host_bytes_per_s > 0.0 ? cluster->host_bytes_per_s : cluster->gpu.pcie_bytes_per_s;
    return link * or_default(cluster->facts.pcie_efficiency_frac, pcie_efficiency);
}

static void describe_pcie(const nd_cluster_spec *spec, nd_link_tier *tier)
{
    const nd_node_facts *facts = &spec->facts;
    double efficiency = or_default(facts->pcie_efficiency_frac, pcie_efficiency);
    tier->efficiency_frac = facts->peer_to_peer ? efficiency : efficiency * staged_factor;
    tier->step_latency_s = or_default(facts->pcie_step_latency_s, pcie_step_s);
    tier->costs = scaled_costs(&pcie_costs, tier->step_latency_s / pcie_step_s);
    nd_figure_copy(tier->source, sizeof tier->source,
                   facts->pcie_source[0] != '\0'
                       ? facts->pcie_source
                       : "NVIDIA/nccl src/graph/topo.h (usable part of a link; rate between host bridges)");
}

/* PCIe below and between host bridges, for what the fast links do not join. A ring leaves a linked pair through one of
 * its GPUs (three A100 PCIe with one bridge: 20 GB/s, NVIDIA/nccl-tests issue 178), so the pair shares one link. */
static void add_pcie(nd_cluster_spec *spec, int64_t domain)
{
    const nd_node_facts *facts = &spec->facts;
    int64_t wanted = facts->bridge_gpus > 0 ? facts->bridge_gpus : bridge_default_gpus;
    int64_t bridge = largest_divisor(spec->gpus_per_node, wanted);
    assert(domain >= 1);
    double link = spec->gpu.pcie_bytes_per_s / (double)domain;
    if (bridge % domain != 0) {
        bridge = domain; /* the pairs reach across host bridges */
    }
    nd_link_tier *tier = push(spec, ND_TIER_PCIE, bridge, link);
    if (tier != NULL) {
        describe_pcie(spec, tier);
    }
    tier = push(spec, ND_TIER_PCIE, spec->gpus_per_node, link);
    if (tier != NULL) {
        double between = or_default(facts->bridge_bytes_per_s, bridge_default_bytes_per_s) / (double)bridge;
        describe_pcie(spec, tier);
        if (between < tier->bytes_per_s * tier->efficiency_frac) {
            tier->bytes_per_s = between;
            tier->efficiency_frac = 1.0; /* stated as what traffic between host bridges reaches */
        }
    }
}

static void describe_network(const nd_cluster_spec *spec, nd_link_tier *tier)
{
    const nd_node_facts *facts = &spec->facts;
    const nd_network_type *type = nd_network_find(spec->network);
    tier->efficiency_frac = or_default(facts->network_efficiency_frac, type->efficiency_frac);
    tier->step_latency_s = or_default(facts->network_step_latency_s, type->step_latency_s);
    tier->costs = scaled_costs(&type->costs, tier->step_latency_s / type->step_latency_s);
    (void)snprintf(tier->source, sizeof tier->source, "%s%s%s", facts->network_source,
                   facts->network_source[0] != '\0' ? "; " : "", type->source);
}

/* Rails under one leaf, then the spine. A leaf holds whole NVLink domains. */
static void add_network(nd_cluster_spec *spec, int64_t domain)
{
    const nd_node_facts *facts = &spec->facts;
    assert(domain >= 1);
    double rail = spec->nic_bytes_per_s / (double)spec->gpus_per_node;
    int64_t leaf = spec->gpus;
    if (facts->nodes_per_leaf > 0 && facts->nodes_per_leaf < spec->nodes) {
        leaf = facts->nodes_per_leaf * spec->gpus_per_node;
        if (leaf > domain) {
            leaf -= leaf % domain;
        }
    }
    nd_link_tier *tier = push(spec, ND_TIER_NETWORK, leaf, rail);
    if (tier != NULL) {
        describe_network(spec, tier);
    }
    tier = push(spec, ND_TIER_SPINE, spec->gpus, rail);
    if (tier != NULL) {
        describe_network(spec, tier);
        tier->oversubscription = facts->oversubscription >= 1.0 ? facts->oversubscription : 1.0;
    }
}

/* A single GPU still has one tier, so that every cluster has a last one. */
static void add_single(nd_cluster_spec *spec)
{
    nd_link_tier *tier = &spec->tiers[0];
    bool linked = spec->facts.link != ND_TIER_PCIE && spec->facts.link_bytes_per_s > 0.0;
    memset(tier, 0, sizeof *tier);
    tier->kind = linked ? spec->facts.link : ND_TIER_PCIE;
    tier->span_gpus = 1;
    tier->bytes_per_s = linked ? spec->facts.link_bytes_per_s : spec->gpu.pcie_bytes_per_s;
    tier->oversubscription = 1.0;
    spec->tiers_count = 1;
    if (linked) {
        describe_link(spec, tier);
    } else {
        describe_pcie(spec, tier);
    }
}

static nd_status check_counts(const nd_cluster_spec *spec, nd_error *err)
{
    if (spec->nodes < 1 || spec->nodes > ND_NODES_MAX) {
        return nd_fail(err, ND_EINVAL, "nodes must be 1 to %d, got %lld", ND_NODES_MAX, (long long)spec->nodes);
    }
    if (spec->gpus_per_node < 1 || spec->gpus_per_node > ND_GPUS_PER_NODE_MAX) {
        return nd_fail(err, ND_EINVAL, "GPUs per node must be 1 to %d, got %lld", ND_GPUS_PER_NODE_MAX,
                       (long long)spec->gpus_per_node);
    }
    if (spec->nodes * spec->gpus_per_node > ND_CLUSTER_GPUS_MAX) {
        return nd_fail(err, ND_EINVAL, "a cluster has at most %d GPUs, got %lld x %lld", ND_CLUSTER_GPUS_MAX,
                       (long long)spec->nodes, (long long)spec->gpus_per_node);
    }
    return ND_OK;
}

nd_status nd_cluster_build(nd_cluster_spec *spec, nd_error *err)
{
    ND_TRY(check_counts(spec, err));
    spec->gpus = spec->nodes * spec->gpus_per_node;
    spec->nic_bytes_per_s = (double)spec->facts.nics_per_node * spec->facts.nic_bytes_per_s;
    spec->nvlink_domain = link_domain(spec);
    spec->tiers_count = 0;
    if (spec->nvlink_domain > 1) {
        nd_link_tier *tier = push(spec, spec->facts.link, spec->nvlink_domain, spec->facts.link_bytes_per_s);
        describe_link(spec, tier);
    }
    if (spec->nvlink_domain < spec->gpus_per_node) {
        add_pcie(spec, spec->nvlink_domain);
    }
    if (spec->nvlink_domain < spec->gpus && spec->nodes > 1) {
        if (!(spec->nic_bytes_per_s > 0.0) || nd_network_find(spec->network) == NULL) {
            return nd_fail(
                err, ND_EINVAL,
                "the network between the %lld nodes of '%s' is unknown; state network.type, nics_per_node and "
                "nic_bytes_per_s in a topology file",
                (long long)spec->nodes, spec->name);
        }
        add_network(spec, spec->nvlink_domain);
    }
    if (spec->tiers_count == 0) {
        add_single(spec);
    }
    return ND_OK;
}
