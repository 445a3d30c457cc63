/** A cluster: equal nodes of one GPU type, and the bandwidth tiers that connect ranks.
 *
 * Global ranks fill a node before the next one. Tiers are sorted from the narrowest to the widest span; the
 * last one spans the whole cluster. A group of ranks that fits in span_gpus consecutive ranks communicates
 * over that tier (and the faster ones below it).
 */
#ifndef ND_TOPOLOGIES_CLUSTER_SPEC_H
#define ND_TOPOLOGIES_CLUSTER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "topologies/gpu_spec.h"

ND_BEGIN_DECLS

enum { ND_TIERS_MAX = 6, ND_CLUSTER_NAME_MAX = 96 };

/* X(enumerator, text) */
#define ND_TIER_KIND_LIST(X)                                                                                           \
    X(ND_TIER_NVLINK, "nvlink")               /* switched: every pair at full rate */                                  \
    X(ND_TIER_NVLINK_BRIDGE, "nvlink-bridge") /* pairs */                                                              \
    X(ND_TIER_XGMI, "xgmi")                   /* full mesh: a pair sees 1 / (n - 1) */                                 \
    X(ND_TIER_MESH, "mesh")                   /* NVLink or on-chip Ethernet without a switch: like xgmi */             \
    X(ND_TIER_PCIE, "pcie")                   /* through switches and host bridges */                                  \
    X(ND_TIER_NETWORK, "network")             /* NICs under one leaf, rail aligned */                                  \
    X(ND_TIER_SPINE, "spine")                 /* above the leaves, maybe oversubscribed */

typedef enum nd_tier_kind {
#define ND_TIER_ENUM(name, text) name,
    ND_TIER_KIND_LIST(ND_TIER_ENUM)
#undef ND_TIER_ENUM
        ND_TIER_KIND_COUNT
} nd_tier_kind;

/** What collectives pay on a tier beside its rate (docs/MODEL.md, "Collectives"). Zero on NVLink and meshes, where the
 * calibration of the GPU speaks. */
typedef struct nd_tier_costs {
    double base_s;         /* the call itself; 0: as on the GPU's own links */
    double ring_step_s;    /* small messages: one hop of a ring (all-gather, reduce-scatter) */
    double large_step_s;   /* large messages: one hop of a ring of any kind */
    double ring_loss_frac; /* small messages of a ring: extra time per second at full rate */
    double tree_ramp_s;    /* all-reduce by trees: how slowly the rate builds up, per (ring hop)^(2/3) */
    double peer_s;         /* all-to-all: each peer beyond the tier below */
    double exchange_frac;  /* all-to-all: rate across this tier against that of a ring */
    double send_frac;      /* send-recv: rate against that of a ring */
} nd_tier_costs;

typedef struct nd_link_tier {
    nd_tier_kind kind;
    int64_t span_gpus;       /* consecutive ranks that this tier joins */
    double bytes_per_s;      /* per GPU, one direction, when all GPUs below it use it at once; data sheet */
    double efficiency_frac;  /* what large transfers reach of it */
    double step_latency_s;   /* added by one hop; a tree all-reduce makes two per doubling of the domains */
    double oversubscription; /* >= 1: the rate above is divided by it */
    nd_tier_costs costs;
    char source[256];
} nd_link_tier;

/** What the tiers are built from; 0 stands for "not stated". A topology file may override each. */
typedef struct nd_node_facts {
    nd_tier_kind link;        /* fast links between GPUs; ND_TIER_PCIE: none */
    int64_t link_domain_gpus; /* GPUs of one full domain: 8, 72, 2 */
    bool link_crosses_nodes;  /* a rack: the domain holds several nodes */
    double link_bytes_per_s;  /* of one GPU, all its links */
    double link_efficiency_frac;
    double link_step_latency_s;
    bool peer_to_peer;         /* over PCIe; otherwise every byte passes through host memory */
    int64_t bridge_gpus;       /* GPUs under one host bridge (socket) */
    double bridge_bytes_per_s; /* what traffic between host bridges reaches, one direction, all GPUs together */
    double pcie_efficiency_frac;
    double pcie_step_latency_s;
    int64_t nics_per_node;
    double nic_bytes_per_s; /* of one NIC */
    double network_efficiency_frac;
    double network_step_latency_s;
    int64_t nodes_per_leaf; /* 0: one leaf holds all */
    double oversubscription;
    char link_source[160], pcie_source[160], network_source[160];
} nd_node_facts;

typedef struct nd_cluster_spec {
    char name[ND_CLUSTER_NAME_MAX];
    char base_name[ND_CLUSTER_NAME_MAX]; /* of the built-in or file, without a count; empty for NODESxGPUSxTYPE */
    nd_gpu_spec gpu;
    int64_t nodes;
    int64_t gpus_per_node;
    int64_t gpus;                  /* nodes x gpus_per_node */
    int64_t usual_gpus_per_node;   /* of the GPU's reference node, when the node was given by a count; else 0 */
    int64_t nvlink_domain;         /* GPUs that see each other over NVLink (8; 72 in a rack; 1: none) */
    double nic_bytes_per_s;        /* of one node, all NICs, one direction; 0: unknown or single node */
    char network[48];              /* "ib-ndr", "roce", "efa", "tcpx", "slingshot", "ethernet", ... */
    double host_bytes_per_s;       /* GPU to host memory, one GPU, one direction (PCIe or C2C) */
    int64_t host_memory_bytes;     /* of one node; 0: unknown */
    double price_usd_per_gpu_hour; /* 0: unknown */
    char price_source[256];        /* where the price is from; empty: not stated */
    char price_date[16];           /* when it was valid: "2026-07-20" or "2026-07"; empty: not stated */
    int64_t tiers_count;           /* >= 1 */
    nd_link_tier tiers[ND_TIERS_MAX];
    nd_node_facts facts; /* nd_cluster_resize() builds the tiers again from these */
    char source[512];
    char note[256]; /* what was assumed ("NICs not stated: 8 x 400 Gb/s"), or empty */
} nd_cluster_spec;

/** As many GPUs as this cluster has in nodes of at most the usual size, "4x8xh100".
 * \return false when its nodes are no larger than usual, or the usual size is not known; `out` is empty then */
bool nd_cluster_in_usual_nodes(const nd_cluster_spec *cluster, char out[ND_CLUSTER_NAME_MAX]);

const char *nd_tier_kind_name(nd_tier_kind kind);

/** Resolve what `--cluster` was given:
 *   "2x8xh100" (nodes x GPUs x type), "8xh100" (one node), "h100" (one GPU);
 *   "p5.48xlarge:4", "dgx-a100:16" (a built-in cluster or instance and a node count; ":N" left out means 1);
 *   a path to a topology file (JSON, the format of docs/TOPOLOGY.md);
 *   parts of equal nodes, "2x8xh100+2x8xh100"; those of several kinds are for topologies/mixed_cluster.h.
 * \return ND_ENOTFOUND with the nearest name, ND_EPARSE with file, line and column, ND_EINVAL for absurd counts
 *         (nodes 1..65536, GPUs per node 1..72, at most 1,048,576 GPUs), ND_EUNSUPPORTED for several kinds of node.
 */
nd_status nd_cluster_load(const char *text, nd_cluster_spec *out, nd_error *err) ND_NODISCARD;

/** Parse the text of a topology file. */
nd_status nd_cluster_parse(const char *text, size_t length, const char *origin, nd_cluster_spec *out,
                           nd_error *err) ND_NODISCARD;

/** The same cluster with another number of nodes (tiers follow). */
nd_status nd_cluster_resize(const nd_cluster_spec *cluster, int64_t nodes, nd_cluster_spec *out,
                            nd_error *err) ND_NODISCARD;

/** The same cluster with another number of GPUs: whole nodes, or a part of one node (a divisor of its GPUs) with its
 * share of the NICs and of the host memory. ND_EINVAL names the nearest counts. */
nd_status nd_cluster_resize_gpus(const nd_cluster_spec *cluster, int64_t gpus, nd_cluster_spec *out,
                                 nd_error *err) ND_NODISCARD;

/** The same cluster with another network rate.
 * \param[in] node_bytes_per_s  of all NICs of one node together, one direction
 * \return ND_EINVAL when nothing crosses the network, or for a rate that is none. */
nd_status nd_cluster_with_nics(const nd_cluster_spec *cluster, double node_bytes_per_s, nd_cluster_spec *out,
                               nd_error *err) ND_NODISCARD;

/** The same cluster whose fast links join `domain_gpus` GPUs: a divisor of a node's GPUs, or a multiple (a rack; tiers
 * follow as in a topology file, so racks that a job would not fill are used evenly). ND_EINVAL for other counts and
 * where the GPUs have no such links. */
nd_status nd_cluster_with_link_domain(const nd_cluster_spec *cluster, int64_t domain_gpus, nd_cluster_spec *out,
                                      nd_error *err) ND_NODISCARD;

/** One node of the same cluster of which only `gpus_per_node` GPUs exist, with their share of its NICs and host memory.
 * ND_EINVAL unless 1 <= gpus_per_node <= the cluster's own. */
nd_status nd_cluster_part_of_node(const nd_cluster_spec *cluster, int64_t gpus_per_node, nd_cluster_spec *out,
                                  nd_error *err) ND_NODISCARD;

size_t nd_cluster_builtin_count(void);
const char *nd_cluster_builtin_name(size_t index);

/** How a group (`ranks` members, `stride` apart in global rank) lies on the tiers.
 * members[i] = how many members of it share one domain of tier i (1..ranks; the last tier has all). */
void nd_cluster_group_members(const nd_cluster_spec *cluster, int64_t ranks, int64_t stride,
                              int64_t members[ND_TIERS_MAX]);

/** What copies between a GPU and host memory reach in one direction: the usable part of the link (NVIDIA/nccl
 * src/graph/topo.h counts 0.76 of PCIe; assumed for C2C, too). All GPUs of a node at once reach it as well: node specs
 * have no bandwidth of the host's memory to share (own assumption). */
double nd_cluster_host_copy_bytes_per_s(const nd_cluster_spec *cluster);

ND_END_DECLS

#endif
