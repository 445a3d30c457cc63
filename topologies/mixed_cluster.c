#include "topologies/mixed_cluster.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "topologies/cluster_internal.h"
#include "topologies/figure_internal.h"

enum { TEXT_MAX = 4096 };

static const char form[] = "write PART+PART, like 2x8xh100+4x8xa100";

static bool same_peaks(const nd_gpu_spec *a, const nd_gpu_spec *b)
{
    for (int type = 0; type < ND_DTYPE_COUNT; type++) {
        if (a->peak_flops_per_s[type] != b->peak_flops_per_s[type]) {
            return false;
        }
    }
    return true;
}

static bool same_gpu(const nd_gpu_spec *a, const nd_gpu_spec *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->arch, b->arch) == 0 && a->memory_bytes == b->memory_bytes &&
           a->hbm_bytes_per_s == b->hbm_bytes_per_s && a->nvlink_bytes_per_s == b->nvlink_bytes_per_s &&
           a->pcie_bytes_per_s == b->pcie_bytes_per_s && a->sm_count == b->sm_count && same_peaks(a, b);
}

static bool same_links(const nd_node_facts *a, const nd_node_facts *b)
{
    return a->link == b->link && a->link_domain_gpus == b->link_domain_gpus &&
           a->link_crosses_nodes == b->link_crosses_nodes && a->link_bytes_per_s == b->link_bytes_per_s &&
           a->link_efficiency_frac == b->link_efficiency_frac && a->link_step_latency_s == b->link_step_latency_s &&
           a->peer_to_peer == b->peer_to_peer && a->bridge_gpus == b->bridge_gpus &&
           a->bridge_bytes_per_s == b->bridge_bytes_per_s && a->pcie_efficiency_frac == b->pcie_efficiency_frac &&
           a->pcie_step_latency_s == b->pcie_step_latency_s;
}

static bool same_network(const nd_cluster_spec *a, const nd_cluster_spec *b)
{
    const nd_node_facts *x = &a->facts;
    const nd_node_facts *y = &b->facts;
    return strcmp(a->network, b->network) == 0 && x->nics_per_node == y->nics_per_node &&
           x->nic_bytes_per_s == y->nic_bytes_per_s && x->network_efficiency_frac == y->network_efficiency_frac &&
           x->network_step_latency_s == y->network_step_latency_s && x->nodes_per_leaf == y->nodes_per_leaf &&
           x->oversubscription == y->oversubscription;
}

/* Nodes that a job could not tell apart. */
static bool same_node(const nd_cluster_spec *a, const nd_cluster_spec *b)
{
    return a->gpus_per_node == b->gpus_per_node && same_gpu(&a->gpu, &b->gpu) && same_links(&a->facts, &b->facts) &&
           same_network(a, b) && a->host_bytes_per_s == b->host_bytes_per_s &&
           a->host_memory_bytes == b->host_memory_bytes;
}

static nd_status add_part(nd_mixed_cluster *mixed, const nd_cluster_spec *part, nd_error *err)
{
    mixed->gpus += part->gpus;
    if (mixed->gpus > ND_CLUSTER_GPUS_MAX) {
        return nd_fail(err, ND_EINVAL, "a cluster has at most %d GPUs, and the parts have %lld", ND_CLUSTER_GPUS_MAX,
                       (long long)mixed->gpus);
    }
    for (int32_t i = 0; i < mixed->parts_count; i++) {
        nd_cluster_spec *known = &mixed->parts[i];
        bool vendors_known = known->gpu.vendor[0] != '\0' && part->gpu.vendor[0] != '\0';
        if (vendors_known && strcmp(known->gpu.vendor, part->gpu.vendor) != 0) {
            return nd_fail(err, ND_EINVAL,
                           "%.60s and %.60s are GPUs of %s and %s, whose collectives do not talk to each other; plan "
                           "each alone",
                           known->name, part->name, known->gpu.vendor, part->gpu.vendor);
        }
        if (same_node(known, part)) {
            ND_TRY(nd_cluster_resize(known, known->nodes + part->nodes, known, err));
            nd_figure_copy(mixed->note, sizeof mixed->note, "equal nodes that were named apart are one part");
            return ND_OK;
        }
    }
    if (mixed->parts_count == ND_MIXED_PARTS_MAX) {
        return nd_fail(err, ND_EINVAL, "%.60s is one more than the %d kinds of node that a mixed cluster may have",
                       part->name, ND_MIXED_PARTS_MAX);
    }
    mixed->parts[mixed->parts_count++] = *part;
    return ND_OK;
}

static void name_mixed(nd_mixed_cluster *mixed)
{
    char name[sizeof mixed->name] = "";
    for (int32_t i = 0; i < mixed->parts_count; i++) {
        size_t used = strlen(name);
        (void)snprintf(name + used, sizeof name - used, "%s%s", i > 0 ? "+" : "", mixed->parts[i].name);
    }
    memcpy(mixed->name, name, sizeof name);
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The parts between the '+' of `text`. */
static nd_status load_joined(const char *text, nd_mixed_cluster *mixed, nd_error *err)
{
    char part[TEXT_MAX];
    for (const char *start = text; start != NULL;) {
        const char *plus = strchr(start, '+');
        size_t length = plus != NULL ? (size_t)(plus - start) : strlen(start);
        nd_cluster_spec spec;
        if (length == 0) {
            return nd_fail(err, ND_EINVAL, "'%.60s' has nothing %s a '+'; %s", text,
                           start == text ? "before" : "behind", form);
        }
        if (length >= sizeof part) {
            return nd_fail(err, ND_EINVAL, "a part of the cluster has %zu characters; %s", length, form);
        }
        memcpy(part, start, length);
        part[length] = '\0';
        ND_TRY(nd_cluster_load(part, &spec, err));
        ND_TRY(add_part(mixed, &spec, err));
        start = plus != NULL ? plus + 1 : NULL;
    }
    name_mixed(mixed);
    return ND_OK;
}

/* A part of a file: a name with its count, or a cluster object. */
static nd_status parse_part(nd_json value, nd_cluster_spec *out, nd_error *err)
{
    const char *name = NULL;
    nd_error inner;
    if (nd_json_typeof(value) == ND_JSON_OBJECT) {
        return nd_cluster_parse_root(value, out, err);
    }
    ND_TRY(nd_json_as_string(value, "parts", &name, err));
    return nd_cluster_load(name, out, &inner) == ND_OK ? ND_OK : nd_json_fail(value, err, "%s", inner.message);
}

/* Nothing stands in for what is left out here: there is no reference for a network between kinds of node. */
static nd_status parse_between(nd_json root, nd_mixed_cluster *mixed, nd_error *err)
{
    static const char *const needed[] = {"type", "nics_per_node", "nic_bytes_per_s"};
    nd_cluster_spec spec;
    nd_json network;
    nd_json value;
    ND_TRY(nd_figure_object(root, "network_between", &network, &mixed->between_stated, err));
    if (!mixed->between_stated) {
        return ND_OK;
    }
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        ND_TRY(nd_json_need(network, needed[i], &value, err));
    }
    memset(&spec, 0, sizeof spec);
    spec.facts.oversubscription = 1.0;
    ND_TRY(nd_cluster_parse_network(root, "network_between", &spec, err));
    memcpy(mixed->between_network, spec.network, sizeof mixed->between_network);
    mixed->between = spec.facts;
    return ND_OK;
}

static nd_status parse_root(nd_json root, nd_mixed_cluster *out, nd_error *err)
{
    static const char *const keys[] = {"name", "title", "parts", "network_between", "source", "remarks", NULL};
    nd_mixed_cluster mixed;
    nd_json parts;
    nd_error inner;
    memset(&mixed, 0, sizeof mixed);
    ND_TRY(nd_figure_check_keys(root, "a topology file with parts", keys, err));
    ND_TRY(nd_json_need(root, "parts", &parts, err));
    if (nd_json_typeof(parts) != ND_JSON_ARRAY || nd_json_size(parts) == 0) {
        return nd_json_fail(parts, err, "\"parts\" must be a list of clusters: names with counts, or objects");
    }
    for (size_t i = 0; i < nd_json_size(parts); i++) {
        nd_cluster_spec spec;
        nd_json value = nd_json_at(parts, i);
        ND_TRY(parse_part(value, &spec, err));
        if (add_part(&mixed, &spec, &inner) != ND_OK) {
            return nd_json_fail(value, err, "%s", inner.message);
        }
    }
    ND_TRY(parse_between(root, &mixed, err));
    name_mixed(&mixed);
    ND_TRY(nd_figure_text(root, "name", mixed.name, sizeof mixed.name, false, err));
    *out = mixed;
    return ND_OK;
}

/* A file that reads as JSON and has "parts". */
static bool is_mixed_file(const char *path)
{
    nd_json_doc *doc = NULL;
    nd_json parts;
    if (!is_file(path) || nd_json_load(path, &doc, NULL) != ND_OK) {
        return false;
    }
    bool found =
        nd_json_typeof(nd_json_root(doc)) == ND_JSON_OBJECT && nd_json_find(nd_json_root(doc), "parts", &parts);
    nd_json_free(doc);
    return found;
}

bool nd_mixed_cluster_is(const char *text)
{
    return text != NULL && (is_file(text) ? is_mixed_file(text) : strchr(text, '+') != NULL);
}

nd_status nd_mixed_cluster_load(const char *text, nd_mixed_cluster *out, nd_error *err)
{
    nd_mixed_cluster mixed;
    nd_json_doc *doc = NULL;
    if (text != NULL && is_mixed_file(text)) {
        ND_TRY(nd_json_load(text, &doc, err));
        nd_status status = parse_root(nd_json_root(doc), out, err);
        nd_json_free(doc);
        return status;
    }
    memset(&mixed, 0, sizeof mixed);
    if (nd_mixed_cluster_is(text)) {
        ND_TRY(load_joined(text, &mixed, err));
    } else {
        nd_cluster_spec spec;
        ND_TRY(nd_cluster_load(text, &spec, err));
        ND_TRY(add_part(&mixed, &spec, err));
        name_mixed(&mixed);
    }
    *out = mixed;
    return ND_OK;
}

nd_status nd_mixed_cluster_parse(const char *text, size_t length, const char *origin, nd_mixed_cluster *out,
                                 nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_parse(text, length, origin, &doc, err));
    nd_status status = parse_root(nd_json_root(doc), out, err);
    nd_json_free(doc);
    return status;
}

nd_status nd_mixed_cluster_single(const nd_mixed_cluster *mixed, nd_cluster_spec *out, nd_error *err)
{
    if (mixed->parts_count == 1) {
        *out = mixed->parts[0];
        nd_cluster_add_note(out, "%s", mixed->note);
        return ND_OK;
    }
    return nd_fail(err, ND_EUNSUPPORTED,
                   "'%.90s' has %d kinds of node, which only `ndplan suggest` plans together; name one of them here, "
                   "like %.90s",
                   mixed->name, (int)mixed->parts_count, mixed->parts[0].name);
}
