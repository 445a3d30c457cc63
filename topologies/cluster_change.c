/* What-ifs: the same cluster with other counts and rates. The facts change, the tiers are built again from them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/text.h"
#include "topologies/cluster_internal.h"

/* Rates of a node's NICs that are no typing error: a modem, and a hundred times today's fastest node. */
static const double nics_min_bytes_per_s = 1e6;
static const double nics_max_bytes_per_s = 1e14;

static nd_status fail_part(const nd_cluster_spec *cluster, int64_t gpus, nd_error *err)
{
    int64_t node = cluster->gpus_per_node;
    int64_t below = gpus < node ? gpus : gpus / node * node;
    int64_t above = (gpus / node + 1) * node;
    while (below > 1 && below < node && node % below != 0) {
        below--;
    }
    for (int64_t part = gpus + 1; part < node; part++) {
        if (node % part == 0) {
            above = part;
            break;
        }
    }
    if (gpus < 1) {
        return nd_fail(err, ND_EINVAL, "%" PRId64 " GPUs: there must be at least 1", gpus);
    }
    return nd_fail(err, ND_EINVAL,
                   "%" PRId64 " GPUs are neither whole nodes of %" PRId64 " nor an equal part of one; nearest: %" PRId64
                   " or %" PRId64,
                   gpus, node, below, above);
}

nd_status nd_cluster_resize_gpus(const nd_cluster_spec *cluster, int64_t gpus, nd_cluster_spec *out, nd_error *err)
{
    int64_t node = cluster->gpus_per_node;
    if (gpus > ND_CLUSTER_GPUS_MAX) {
        return nd_fail(err, ND_EINVAL, "a cluster has at most %d GPUs, got %" PRId64, ND_CLUSTER_GPUS_MAX, gpus);
    }
    if (gpus >= node && gpus % node == 0) {
        return nd_cluster_resize(cluster, gpus / node, out, err);
    }
    if (gpus < 1 || gpus > node || node % gpus != 0) {
        return fail_part(cluster, gpus, err);
    }
    nd_cluster_spec spec = *cluster;
    spec.nodes = 1;
    nd_cluster_scale_node(&spec, gpus);
    ND_TRY(nd_cluster_build(&spec, err));
    nd_cluster_set_name(&spec);
    if (cluster->base_name[0] != '\0') { /* the name of a node does not say how many of its GPUs */
        (void)snprintf(spec.name, sizeof spec.name, "%.60s, %d of %d GPUs", cluster->base_name, (int)gpus, (int)node);
    }
    *out = spec;
    return ND_OK;
}

nd_status nd_cluster_with_nics(const nd_cluster_spec *cluster, double node_bytes_per_s, nd_cluster_spec *out,
                               nd_error *err)
{
    if (cluster->nodes < 2 || cluster->nvlink_domain >= cluster->gpus) {
        return nd_fail(err, ND_EINVAL, "nothing crosses a network in cluster %s: its %" PRId64 " GPU%s %s one %s",
                       cluster->name, cluster->gpus, nd_text_plural(cluster->gpus), cluster->gpus == 1 ? "is" : "are",
                       cluster->nodes < 2 ? "node" : "NVLink domain");
    }
    if (!(node_bytes_per_s >= nics_min_bytes_per_s && node_bytes_per_s <= nics_max_bytes_per_s)) {
        return nd_fail(err, ND_EINVAL, "the NICs of a node must carry %g to %g bytes/s, got %g", nics_min_bytes_per_s,
                       nics_max_bytes_per_s, node_bytes_per_s);
    }
    nd_cluster_spec spec = *cluster;
    spec.facts.nic_bytes_per_s = node_bytes_per_s / (double)spec.facts.nics_per_node;
    ND_TRY(nd_cluster_build(&spec, err));
    *out = spec;
    return ND_OK;
}

nd_status nd_cluster_with_link_domain(const nd_cluster_spec *cluster, int64_t domain_gpus, nd_cluster_spec *out,
                                      nd_error *err)
{
    int64_t node = cluster->gpus_per_node;
    if (cluster->facts.link == ND_TIER_PCIE || !(cluster->facts.link_bytes_per_s > 0.0)) {
        return nd_fail(err, ND_EINVAL, "the GPUs of cluster %s have no NVLink or other fast links to join them",
                       cluster->name);
    }
    bool nests = domain_gpus >= 1 && (domain_gpus <= node ? node % domain_gpus == 0 : domain_gpus % node == 0);
    if (!nests) {
        return nd_fail(err, ND_EINVAL,
                       "a domain of %" PRId64 " GPUs neither divides a node of %" PRId64 " nor holds whole nodes",
                       domain_gpus, node);
    }
    nd_cluster_spec spec = *cluster;
    spec.facts.link_domain_gpus = domain_gpus;
    spec.facts.link_crosses_nodes = domain_gpus > node;
    ND_TRY(nd_cluster_build(&spec, err));
    *out = spec;
    return ND_OK;
}
