/** Steps between a topology file and a finished cluster. */
#ifndef ND_TOPOLOGIES_CLUSTER_INTERNAL_H
#define ND_TOPOLOGIES_CLUSTER_INTERNAL_H

#include "core/json.h"
#include "topologies/cluster_spec.h"

enum { ND_NODES_MAX = 65536, ND_GPUS_PER_NODE_MAX = 72, ND_CLUSTER_GPUS_MAX = 1048576 };

/** What a network type reaches when the file does not say. */
typedef struct nd_network_type {
    const char *name;
    double efficiency_frac; /* of the NIC rate, large messages */
    double step_latency_s;  /* one hop of a tree, small messages */
    nd_tier_costs costs;
    const char *source;
} nd_network_type;

/** The table (ends with a NULL name). */
const nd_network_type *nd_network_types(void);
/** The type called `name`, or NULL. */
const nd_network_type *nd_network_find(const char *name);

/** Facts that hold for a node of which nothing is stated. */
nd_node_facts nd_node_facts_default(const nd_gpu_spec *gpu);

/** Read the parts of `object` that describe a node (link, pcie, network, host, gpus_per_node) over what
 * `spec` holds. */
nd_status nd_cluster_parse_node(nd_json object, nd_cluster_spec *spec, nd_error *err) ND_NODISCARD;

/** Read object[key], a network, over what `spec` holds. */
nd_status nd_cluster_parse_network(nd_json object, const char *key, nd_cluster_spec *spec, nd_error *err) ND_NODISCARD;

/** The reference node of a GPU (its "reference_node") over the defaults; `gpu_object` is the GPU's JSON. */
nd_status nd_cluster_reference_node(nd_json gpu_object, nd_cluster_spec *spec, nd_error *err) ND_NODISCARD;

/** Read a whole topology file or built-in cluster from its root. */
nd_status nd_cluster_parse_root(nd_json root, nd_cluster_spec *out, nd_error *err) ND_NODISCARD;

/** Derive gpus, nvlink_domain, nic_bytes_per_s and the tiers from gpu, nodes, gpus_per_node and facts. */
nd_status nd_cluster_build(nd_cluster_spec *spec, nd_error *err) ND_NODISCARD;

/** Name the cluster after its GPU or base and its counts. */
void nd_cluster_set_name(nd_cluster_spec *spec);

/** NICs and host memory belong to a node's number of GPUs; a node of another number gets its share. */
void nd_cluster_scale_node(nd_cluster_spec *spec, int64_t gpus_per_node);

/** Say in the note where the fast links join fewer GPUs than the node or rack could. */
void nd_cluster_note_domain(nd_cluster_spec *spec);

/** Add a sentence to spec->note (cut when the note is full). */
void nd_cluster_add_note(nd_cluster_spec *spec, const char *format, ...) ND_PRINTF(2, 3);

#endif
