#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "topologies/catalog_internal.h"
#include "topologies/cluster_internal.h"
#include "topologies/figure_internal.h"

static const char *const cluster_keys[] = {"name",
                                           "title",
                                           "aliases",
                                           "gpu",
                                           "nodes",
                                           "gpus_per_node",
                                           "link",
                                           "pcie",
                                           "network",
                                           "host",
                                           "price_usd_per_gpu_hour",
                                           "source",
                                           "note",
                                           "remarks",
                                           NULL};
static const char *const node_keys[] = {"gpus_per_node", "link", "pcie", "network", "host", "source", NULL};

static const double rate_min = 1e6, rate_max = 1e15; /* 1 MB/s catches figures given in GB/s or Gb/s */
static const double latency_max = 1.0;

void nd_cluster_add_note(nd_cluster_spec *spec, const char *format, ...)
{
    char text[sizeof spec->note];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t used = strlen(spec->note);
    if (used + 3 < sizeof spec->note) {
        (void)snprintf(spec->note + used, sizeof spec->note - used, "%s", used > 0 ? "; " : "");
        used = strlen(spec->note);
        nd_figure_copy(spec->note + used, sizeof spec->note - used, text);
    }
}

static nd_status parse_link_type(nd_json link, nd_node_facts *facts, nd_error *err)
{
    static const struct {
        const char *name;
        nd_tier_kind kind;
    } links[] = {{"nvlink", ND_TIER_NVLINK},
                 {"nvlink-bridge", ND_TIER_NVLINK_BRIDGE},
                 {"xgmi", ND_TIER_XGMI},
                 {"mesh", ND_TIER_MESH},
                 {"none", ND_TIER_PCIE}};
    const char *text = NULL;
    nd_json value;
    if (!nd_json_find(link, "type", &value)) {
        return ND_OK;
    }
    ND_TRY(nd_json_as_string(value, "type", &text, err));
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        if (strcmp(links[i].name, text) == 0) {
            if (facts->link != links[i].kind) {
                facts->link_efficiency_frac = 0.0; /* that of another kind says nothing */
                facts->link_step_latency_s = 0.0;
                facts->link_domain_gpus = links[i].kind == ND_TIER_NVLINK_BRIDGE ? 2 : 8;
            }
            facts->link = links[i].kind;
            return ND_OK;
        }
    }
    return nd_json_fail(value, err, "unknown link type '%.40s'; use nvlink, nvlink-bridge, xgmi, mesh or none", text);
}

static nd_status parse_link(nd_json object, nd_cluster_spec *spec, nd_error *err)
{
    static const char *const keys[] = {"type",           "domain_gpus", "bytes_per_s", "efficiency_frac",
                                       "step_latency_s", "source",      NULL};
    nd_node_facts *facts = &spec->facts;
    nd_json link;
    nd_json stated;
    bool found = false;
    ND_TRY(nd_figure_object(object, "link", &link, &found, err));
    if (!found) {
        return ND_OK;
    }
    char *source = facts->link_source;
    size_t size = sizeof facts->link_source;
    ND_TRY(nd_figure_check_keys(link, "'link'", keys, err));
    ND_TRY(nd_figure_text(link, "source", source, size, true, err));
    ND_TRY(parse_link_type(link, facts, err));
    ND_TRY(nd_figure_int(link, "domain_gpus", 1, 4096, &facts->link_domain_gpus, NULL, 0, err));
    if (nd_json_find(link, "domain_gpus", &stated)) {
        facts->link_crosses_nodes = facts->link_domain_gpus > spec->gpus_per_node;
    }
    ND_TRY(nd_figure_double(link, "bytes_per_s", rate_min, rate_max, &facts->link_bytes_per_s, source, size, err));
    ND_TRY(nd_figure_double(link, "efficiency_frac", 0.01, 1.0, &facts->link_efficiency_frac, NULL, 0, err));
    return nd_figure_double(link, "step_latency_s", 0.0, latency_max, &facts->link_step_latency_s, NULL, 0, err);
}

static nd_status parse_pcie(nd_json object, nd_node_facts *facts, nd_error *err)
{
    static const char *const keys[] = {
        "peer_to_peer", "gpus_per_bridge", "bridge_bytes_per_s", "efficiency_frac", "step_latency_s", "source", NULL};
    nd_json pcie;
    bool found = false;
    ND_TRY(nd_figure_object(object, "pcie", &pcie, &found, err));
    if (!found) {
        return ND_OK;
    }
    char *source = facts->pcie_source;
    size_t size = sizeof facts->pcie_source;
    ND_TRY(nd_figure_check_keys(pcie, "'pcie'", keys, err));
    ND_TRY(nd_figure_text(pcie, "source", source, size, true, err));
    ND_TRY(nd_json_opt_bool(pcie, "peer_to_peer", &facts->peer_to_peer, err));
    ND_TRY(nd_figure_int(pcie, "gpus_per_bridge", 1, ND_GPUS_PER_NODE_MAX, &facts->bridge_gpus, NULL, 0, err));
    ND_TRY(nd_figure_double(pcie, "bridge_bytes_per_s", rate_min, rate_max, &facts->bridge_bytes_per_s, source, size,
                            err));
    ND_TRY(nd_figure_double(pcie, "efficiency_frac", 0.01, 1.0, &facts->pcie_efficiency_frac, NULL, 0, err));
    return nd_figure_double(pcie, "step_latency_s", 0.0, latency_max, &facts->pcie_step_latency_s, NULL, 0, err);
}

static nd_status parse_network_type(nd_json network, nd_cluster_spec *spec, nd_error *err)
{
    const char *names[32];
    size_t count = 0;
    const char *text = NULL;
    nd_json value;
    if (!nd_json_find(network, "type", &value)) {
        return ND_OK;
    }
    ND_TRY(nd_json_as_string(value, "type", &text, err));
    if (nd_network_find(text) != NULL) {
        if (strcmp(spec->network, text) != 0) {
            spec->facts.network_efficiency_frac = 0.0;
            spec->facts.network_step_latency_s = 0.0;
        }
        nd_figure_copy(spec->network, sizeof spec->network, text);
        return ND_OK;
    }
    for (const nd_network_type *type = nd_network_types(); type->name != NULL && count < 32; type++) {
        names[count++] = type->name;
    }
    const char *nearest = nd_text_nearest(text, names, count);
    return nearest != NULL ? nd_json_fail(value, err, "unknown network type '%.40s'; did you mean '%s'?", text, nearest)
                           : nd_json_fail(value, err,
                                          "unknown network type '%.40s'; use ib, ib-hdr, ib-ndr, ib-xdr, roce, efa, "
                                          "efa-v1 to efa-v4, tcpx, tcpxo, slingshot, ethernet or tcp",
                                          text);
}

nd_status nd_cluster_parse_network(nd_json object, const char *key, nd_cluster_spec *spec, nd_error *err)
{
    static const char *const keys[] = {"type",
                                       "nics_per_node",
                                       "nic_bytes_per_s",
                                       "efficiency_frac",
                                       "step_latency_s",
                                       "nodes_per_leaf",
                                       "oversubscription",
                                       "source",
                                       NULL};
    nd_node_facts *facts = &spec->facts;
    nd_json network;
    char what[48];
    bool found = false;
    ND_TRY(nd_figure_object(object, key, &network, &found, err));
    if (!found) {
        return ND_OK;
    }
    char *source = facts->network_source;
    size_t size = sizeof facts->network_source;
    source[0] = '\0'; /* a reference node's source does not speak for this network */
    (void)snprintf(what, sizeof what, "'%s'", key);
    ND_TRY(nd_figure_check_keys(network, what, keys, err));
    ND_TRY(nd_figure_text(network, "source", source, size, true, err));
    ND_TRY(parse_network_type(network, spec, err));
    ND_TRY(nd_figure_int(network, "nics_per_node", 1, 1024, &facts->nics_per_node, NULL, 0, err));
    ND_TRY(
        nd_figure_double(network, "nic_bytes_per_s", rate_min, rate_max, &facts->nic_bytes_per_s, source, size, err));
    ND_TRY(nd_figure_double(network, "efficiency_frac", 0.01, 1.0, &facts->network_efficiency_frac, NULL, 0, err));
    ND_TRY(nd_figure_double(network, "step_latency_s", 0.0, latency_max, &facts->network_step_latency_s, NULL, 0, err));
    ND_TRY(nd_figure_int(network, "nodes_per_leaf", 1, ND_NODES_MAX, &facts->nodes_per_leaf, NULL, 0, err));
    return nd_figure_double(network, "oversubscription", 1.0, 1000.0, &facts->oversubscription, NULL, 0, err);
}

static nd_status parse_host(nd_json object, nd_cluster_spec *spec, nd_error *err)
{
    static const char *const keys[] = {"memory_bytes", "bytes_per_s", "source", NULL};
    nd_json host;
    bool found = false;
    ND_TRY(nd_figure_object(object, "host", &host, &found, err));
    if (!found) {
        return ND_OK;
    }
    ND_TRY(nd_figure_check_keys(host, "'host'", keys, err));
    ND_TRY(nd_figure_int(host, "memory_bytes", (int64_t)1 << 28, (int64_t)1 << 50, &spec->host_memory_bytes, NULL, 0,
                         err));
    return nd_figure_double(host, "bytes_per_s", rate_min, rate_max, &spec->host_bytes_per_s, NULL, 0, err);
}

nd_status nd_cluster_parse_node(nd_json object, nd_cluster_spec *spec, nd_error *err)
{
    ND_TRY(nd_figure_int(object, "gpus_per_node", 1, ND_GPUS_PER_NODE_MAX, &spec->gpus_per_node, NULL, 0, err));
    ND_TRY(parse_link(object, spec, err));
    ND_TRY(parse_pcie(object, &spec->facts, err));
    ND_TRY(nd_cluster_parse_network(object, "network", spec, err));
    return parse_host(object, spec, err);
}

nd_status nd_cluster_reference_node(nd_json gpu_object, nd_cluster_spec *spec, nd_error *err)
{
    nd_json node;
    bool found = false;
    spec->facts = nd_node_facts_default(&spec->gpu);
    spec->host_bytes_per_s = spec->gpu.pcie_bytes_per_s;
    ND_TRY(nd_figure_object(gpu_object, "reference_node", &node, &found, err));
    if (found) {
        ND_TRY(nd_figure_check_keys(node, "'reference_node'", node_keys, err));
        ND_TRY(nd_cluster_parse_node(node, spec, err));
    }
    return ND_OK;
}

/* The GPU of a cluster, by name or as an object, and its reference node as the starting point. */
static nd_status parse_gpu(nd_json root, nd_cluster_spec *spec, nd_error *err)
{
    nd_json value;
    nd_json_doc *doc = NULL;
    const char *name = NULL;
    nd_error inner;
    ND_TRY(nd_json_need(root, "gpu", &value, err));
    if (nd_json_typeof(value) == ND_JSON_OBJECT) {
        ND_TRY(nd_gpu_parse(value, &spec->gpu, err));
        nd_json base;
        if (!nd_json_find(value, "based_on", &base) || nd_json_find(value, "reference_node", &base)) {
            return nd_cluster_reference_node(value, spec, err);
        }
        ND_TRY(nd_json_as_string(base, "based_on", &name, err));
    } else {
        ND_TRY(nd_json_as_string(value, "gpu", &name, err));
        if (nd_gpu_find(name, &spec->gpu, &inner) != ND_OK) {
            return nd_json_fail(value, err, "%s", inner.message);
        }
    }
    const nd_resource *entry = nd_catalog_find(nd_gpu_resources, name);
    if (entry == NULL) {
        return nd_json_fail(value, err, "unknown GPU '%.60s'", name);
    }
    ND_TRY(nd_catalog_open(entry, &doc, err));
    nd_status status = nd_cluster_reference_node(nd_json_root(doc), spec, err);
    nd_json_free(doc);
    return status;
}

/* What the file left to the reference node of its GPU, so that nobody takes it for stated. */
static void note_assumptions(nd_json root, nd_cluster_spec *spec)
{
    nd_json ignored;
    if (!nd_json_find(root, "link", &ignored) && spec->gpus_per_node > 1) {
        nd_cluster_add_note(spec, "link not stated: as in the reference node of %s", spec->gpu.name);
    }
    if (!nd_json_find(root, "network", &ignored) && spec->nodes > 1) {
        nd_cluster_add_note(spec, "network not stated: %lld x %.0f Gb/s %s as in the reference node of %s",
                            (long long)spec->facts.nics_per_node, spec->facts.nic_bytes_per_s * 8e-9, spec->network,
                            spec->gpu.name);
    }
}

void nd_cluster_note_domain(nd_cluster_spec *spec)
{
    int64_t limit = spec->facts.link_domain_gpus;
    if (spec->facts.link == ND_TIER_PCIE || spec->nvlink_domain >= limit || spec->gpus <= spec->nvlink_domain) {
        return;
    }
    if (spec->nvlink_domain < spec->gpus_per_node) {
        nd_cluster_add_note(spec, "%lld GPUs per node: links join %lld of them", (long long)spec->gpus_per_node,
                            (long long)spec->nvlink_domain);
    } else if (spec->facts.link_crosses_nodes) {
        nd_cluster_add_note(spec, "racks used evenly: %lld of %lld GPUs each", (long long)spec->nvlink_domain,
                            (long long)limit);
    }
}

static nd_status check_link(nd_json root, const nd_cluster_spec *spec, nd_error *err)
{
    const nd_node_facts *facts = &spec->facts;
    nd_json at;
    nd_json domain;
    bool joins = facts->link_crosses_nodes || spec->gpus_per_node > 1;
    if (!nd_json_find(root, "link", &at)) {
        at = root;
    }
    if (facts->link != ND_TIER_PCIE && joins && !(facts->link_bytes_per_s > 0.0)) {
        return nd_json_fail(at, err,
                            "GPU '%s' has no NVLink rate; add link.bytes_per_s or say \"link\": {\"type\": \"none\"}",
                            spec->gpu.name);
    }
    if (facts->link == ND_TIER_PCIE || !nd_json_find(at, "domain_gpus", &domain)) {
        return ND_OK;
    }
    if (!facts->link_crosses_nodes && spec->gpus_per_node % facts->link_domain_gpus != 0) {
        return nd_json_fail(domain, err, "domain_gpus %lld does not divide gpus_per_node %lld",
                            (long long)facts->link_domain_gpus, (long long)spec->gpus_per_node);
    }
    return ND_OK;
}

/* "2026-07-20" or "2026-07". */
static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    size_t length = strlen(text);
    for (size_t i = 0; i < length && i < sizeof form - 1; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !digit : text[i] != '-') {
            return false;
        }
    }
    return length == 7 || length == 10;
}

/* Prices age, so beside the source of every figure they have a date. */
static nd_status parse_price(nd_json root, nd_cluster_spec *spec, nd_error *err)
{
    static const char key[] = "price_usd_per_gpu_hour";
    static const char *const allowed[] = {"value", "source", "date", NULL};
    nd_json price;
    nd_json number;
    nd_json at;
    if (!nd_json_find(root, key, &price)) {
        return ND_OK;
    }
    number = price;
    if (nd_json_typeof(price) == ND_JSON_OBJECT) {
        ND_TRY(nd_figure_check_keys(price, "'price_usd_per_gpu_hour'", allowed, err));
        ND_TRY(nd_json_need(price, "value", &number, err));
        ND_TRY(nd_figure_text(price, "source", spec->price_source, sizeof spec->price_source, true, err));
        ND_TRY(nd_figure_text(price, "date", spec->price_date, sizeof spec->price_date, false, err));
        if (nd_json_find(price, "date", &at) && !is_date(spec->price_date)) {
            return nd_json_fail(at, err, "'date' must be like 2026-07-20 or 2026-07, got '%s'", spec->price_date);
        }
    }
    return nd_json_as_double(number, key, 0.0, 1e6, &spec->price_usd_per_gpu_hour, err);
}

nd_status nd_cluster_parse_root(nd_json root, nd_cluster_spec *out, nd_error *err)
{
    nd_cluster_spec spec;
    char title[160] = "";
    nd_error inner;
    memset(&spec, 0, sizeof spec);
    spec.nodes = 1;
    ND_TRY(nd_figure_check_keys(root, "the topology file", cluster_keys, err));
    ND_TRY(parse_gpu(root, &spec, err));
    nd_json value;
    ND_TRY(nd_json_need(root, "gpus_per_node", &value, err));
    ND_TRY(nd_figure_text(root, "name", spec.name, sizeof spec.name, false, err));
    ND_TRY(nd_figure_text(root, "title", title, sizeof title, true, err));
    ND_TRY(nd_figure_int(root, "nodes", 1, ND_NODES_MAX, &spec.nodes, NULL, 0, err));
    ND_TRY(nd_cluster_parse_node(root, &spec, err));
    ND_TRY(parse_price(root, &spec, err));
    ND_TRY(nd_figure_text(root, "source", spec.source, sizeof spec.source, true, err));
    ND_TRY(nd_figure_text(root, "note", spec.note, sizeof spec.note, true, err));
    if (spec.name[0] == '\0') {
        nd_figure_copy(spec.name, sizeof spec.name, "cluster");
    }
    nd_figure_copy(spec.base_name, sizeof spec.base_name, spec.name);
    note_assumptions(root, &spec);
    ND_TRY(check_link(root, &spec, err));
    if (nd_cluster_build(&spec, &inner) != ND_OK) {
        return nd_json_fail(root, err, "%s", inner.message);
    }
    nd_cluster_note_domain(&spec);
    *out = spec;
    return ND_OK;
}

nd_status nd_cluster_parse(const char *text, size_t length, const char *origin, nd_cluster_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_parse(text, length, origin, &doc, err));
    nd_status status = nd_cluster_parse_root(nd_json_root(doc), out, err);
    nd_json_free(doc);
    return status;
}
