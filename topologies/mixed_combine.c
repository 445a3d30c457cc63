/* Kinds of node taken together: the slowest in every respect, and the network between two of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topologies/cluster_internal.h"
#include "topologies/figure_internal.h"
#include "topologies/mixed_cluster.h"

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int64_t least_count(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a large collective inside a node moves per second and GPU: the tier that joins all GPUs of the node decides. */
static double inside_rate(const nd_cluster_spec *part)
{
    const nd_link_tier *tier = &part->tiers[0];
    for (int64_t i = 1; i < part->tiers_count && part->tiers[i].span_gpus <= part->gpus_per_node; i++) {
        tier = &part->tiers[i];
    }
    return tier->bytes_per_s * tier->efficiency_frac;
}

/* What the NICs of a node move per second. */
static double network_rate(const nd_cluster_spec *part)
{
    const nd_network_type *type = nd_network_find(part->network);
    double efficiency = part->facts.network_efficiency_frac;
    if (efficiency <= 0.0 && type != NULL) {
        efficiency = type->efficiency_frac;
    }
    return part->nic_bytes_per_s * efficiency;
}

static double network_rate_per_gpu(const nd_cluster_spec *part)
{
    return network_rate(part) / (double)part->gpus_per_node;
}

static const nd_cluster_spec *slowest_by(const nd_mixed_cluster *mixed, double (*rate)(const nd_cluster_spec *part))
{
    const nd_cluster_spec *slowest = &mixed->parts[0];
    for (int32_t i = 1; i < mixed->parts_count; i++) {
        slowest = rate(&mixed->parts[i]) < rate(slowest) ? &mixed->parts[i] : slowest;
    }
    return slowest;
}

/* The highest peak that trains: what makes one kind "the slowest" where nothing else tells. */
static double matrix_peak(const nd_cluster_spec *part)
{
    return fmax(part->gpu.peak_flops_per_s[ND_DTYPE_BF16], part->gpu.peak_flops_per_s[ND_DTYPE_FP16]);
}

static void take_network(const nd_cluster_spec *from, nd_cluster_spec *spec)
{
    memcpy(spec->network, from->network, sizeof spec->network);
    spec->facts.nics_per_node = from->facts.nics_per_node;
    spec->facts.nic_bytes_per_s = from->facts.nic_bytes_per_s;
    spec->facts.network_efficiency_frac = from->facts.network_efficiency_frac;
    spec->facts.network_step_latency_s = from->facts.network_step_latency_s;
    spec->facts.nodes_per_leaf = from->facts.nodes_per_leaf;
    spec->facts.oversubscription = from->facts.oversubscription;
    memcpy(spec->facts.network_source, from->facts.network_source, sizeof spec->facts.network_source);
}

static void lower_gpu(const nd_gpu_spec *from, nd_gpu_spec *gpu)
{
    gpu->memory_bytes = least_count(gpu->memory_bytes, from->memory_bytes);
    gpu->hbm_bytes_per_s = least(gpu->hbm_bytes_per_s, from->hbm_bytes_per_s);
    gpu->nvlink_bytes_per_s = least(gpu->nvlink_bytes_per_s, from->nvlink_bytes_per_s);
    gpu->pcie_bytes_per_s = least(gpu->pcie_bytes_per_s, from->pcie_bytes_per_s);
    for (int type = 0; type < ND_DTYPE_COUNT; type++) {
        gpu->peak_flops_per_s[type] = least(gpu->peak_flops_per_s[type], from->peak_flops_per_s[type]);
    }
}

static void lower(const nd_cluster_spec *part, nd_cluster_spec *spec)
{
    nd_node_facts *facts = &spec->facts;
    lower_gpu(&part->gpu, &spec->gpu);
    spec->gpus_per_node = least_count(spec->gpus_per_node, part->gpus_per_node);
    spec->host_bytes_per_s = least(spec->host_bytes_per_s, part->host_bytes_per_s);
    spec->host_memory_bytes = least_count(spec->host_memory_bytes, part->host_memory_bytes);
    facts->link_domain_gpus = least_count(facts->link_domain_gpus, part->facts.link_domain_gpus);
    facts->link_crosses_nodes = facts->link_crosses_nodes && part->facts.link_crosses_nodes;
    facts->peer_to_peer = facts->peer_to_peer && part->facts.peer_to_peer;
    facts->oversubscription = fmax(facts->oversubscription, part->facts.oversubscription);
    if (part->facts.nodes_per_leaf > 0) {
        facts->nodes_per_leaf = facts->nodes_per_leaf > 0
                                    ? least_count(facts->nodes_per_leaf, part->facts.nodes_per_leaf)
                                    : part->facts.nodes_per_leaf;
    }
}

nd_status nd_mixed_cluster_slowest(const nd_mixed_cluster *mixed, nd_cluster_spec *out, int64_t *idle, nd_error *err)
{
    nd_cluster_spec spec = *slowest_by(mixed, matrix_peak);
    const nd_cluster_spec *linked = slowest_by(mixed, inside_rate);
    spec.facts = linked->facts;
    take_network(slowest_by(mixed, network_rate), &spec);
    spec.nodes = 0;
    for (int32_t i = 0; i < mixed->parts_count; i++) {
        lower(&mixed->parts[i], &spec);
        spec.nodes += mixed->parts[i].nodes;
    }
    spec.base_name[0] = '\0';
    spec.note[0] = '\0';
    spec.price_usd_per_gpu_hour = 0.0;
    nd_figure_copy(spec.name, sizeof spec.name, mixed->name);
    ND_TRY(nd_cluster_build(&spec, err));
    if (idle != NULL) {
        *idle = mixed->gpus - spec.gpus;
    }
    *out = spec;
    return ND_OK;
}

nd_status nd_mixed_cluster_between(const nd_mixed_cluster *mixed, int32_t a, int32_t b, nd_cluster_spec *out,
                                   nd_error *err)
{
    const nd_cluster_spec *first = &mixed->parts[a];
    const nd_cluster_spec *second = &mixed->parts[b];
    nd_cluster_spec spec = network_rate_per_gpu(second) < network_rate_per_gpu(first) ? *second : *first;
    spec.nodes = 2;
    spec.facts.link_crosses_nodes = false;                             /* a rack's links end at its kind of node */
    spec.facts.nodes_per_leaf = spec.facts.nodes_per_leaf > 0 ? 1 : 0; /* the kinds are under different leaves */
    if (mixed->between_stated) {
        nd_cluster_spec stated = {.facts = mixed->between};
        memcpy(stated.network, mixed->between_network, sizeof stated.network);
        take_network(&stated, &spec);
    }
    ND_TRY(nd_cluster_build(&spec, err));
    *out = spec;
    return ND_OK;
}
