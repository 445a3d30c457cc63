#include "topologies/cluster_spec.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "topologies/catalog_internal.h"
#include "topologies/cluster_internal.h"
#include "topologies/figure_internal.h"
#include "topologies/mixed_cluster.h"

enum { TEXT_MAX = 4096 };

static const char forms[] = "write NODESxGPUSxTYPE (2x8xh100), a cluster and a count (p5.48xlarge:4) or a .json file";

void nd_cluster_set_name(nd_cluster_spec *spec)
{
    if (spec->base_name[0] != '\0') {
        (void)snprintf(spec->name, sizeof spec->name, spec->nodes > 1 ? "%.80s:%lld" : "%.80s", spec->base_name,
                       (long long)spec->nodes);
    } else if (spec->nodes > 1) {
        (void)snprintf(spec->name, sizeof spec->name, "%lldx%lldx%s", (long long)spec->nodes,
                       (long long)spec->gpus_per_node, spec->gpu.name);
    } else if (spec->gpus_per_node > 1) {
        (void)snprintf(spec->name, sizeof spec->name, "%lldx%s", (long long)spec->gpus_per_node, spec->gpu.name);
    } else {
        nd_figure_copy(spec->name, sizeof spec->name, spec->gpu.name);
    }
}

void nd_cluster_scale_node(nd_cluster_spec *spec, int64_t gpus_per_node)
{
    int64_t reference = spec->gpus_per_node > 0 ? spec->gpus_per_node : gpus_per_node;
    int64_t nics = spec->facts.nics_per_node * gpus_per_node / reference;
    if (spec->facts.nics_per_node > 0) {
        spec->facts.nics_per_node = nics > 0 ? nics : 1;
    }
    spec->host_memory_bytes = spec->host_memory_bytes / reference * gpus_per_node;
    spec->gpus_per_node = gpus_per_node;
}

static void note_reference(nd_cluster_spec *spec)
{
    if (spec->nodes > 1 && spec->nic_bytes_per_s > 0.0) {
        nd_cluster_add_note(spec, "assumed per node: %lld x %.0f Gb/s %s", (long long)spec->facts.nics_per_node,
                            spec->facts.nic_bytes_per_s * 8e-9, spec->network);
    }
    if (spec->gpus_per_node > 1 && spec->facts.link == ND_TIER_PCIE) {
        nd_cluster_add_note(spec, "GPUs joined by PCIe%s", spec->facts.peer_to_peer ? "" : " without peer access");
    }
    nd_cluster_note_domain(spec);
}

static void usual_nodes(int64_t gpus, int64_t usual, const char *type, char out[ND_CLUSTER_NAME_MAX])
{
    int64_t size = usual < gpus ? usual : gpus;
    while (size > 1 && gpus % size != 0) {
        size--;
    }
    assert(size >= 1); /* both counts are */
    if (gpus > size) {
        (void)snprintf(out, ND_CLUSTER_NAME_MAX, "%lldx%lldx%s", (long long)(gpus / size), (long long)size, type);
    } else {
        (void)snprintf(out, ND_CLUSTER_NAME_MAX, "%lldx%s", (long long)size, type);
    }
}

bool nd_cluster_in_usual_nodes(const nd_cluster_spec *cluster, char out[ND_CLUSTER_NAME_MAX])
{
    bool larger = cluster->usual_gpus_per_node > 0 && cluster->gpus_per_node > cluster->usual_gpus_per_node;
    out[0] = '\0';
    if (larger) {
        usual_nodes(cluster->gpus, cluster->usual_gpus_per_node, cluster->gpu.name, out);
    }
    return larger;
}

/* NODESxGPUSxTYPE: nodes like the reference node of the GPU. */
static nd_status load_reference(const nd_resource *entry, int64_t nodes, int64_t gpus_per_node, nd_cluster_spec *out,
                                nd_error *err)
{
    nd_cluster_spec spec;
    nd_json_doc *doc = NULL;
    memset(&spec, 0, sizeof spec);
    ND_TRY(nd_catalog_open(entry, &doc, err));
    nd_status status = nd_gpu_parse(nd_json_root(doc), &spec.gpu, err);
    if (status == ND_OK) {
        status = nd_cluster_reference_node(nd_json_root(doc), &spec, err);
    }
    nd_json_free(doc);
    if (status != ND_OK) {
        return status;
    }
    spec.usual_gpus_per_node = spec.gpus_per_node;
    nd_cluster_scale_node(&spec, gpus_per_node);
    spec.nodes = nodes;
    nd_figure_copy(spec.source, sizeof spec.source, spec.gpu.source);
    nd_cluster_set_name(&spec);
    ND_TRY(nd_cluster_build(&spec, err));
    note_reference(&spec);
    *out = spec;
    return ND_OK;
}

static nd_status load_builtin(const nd_resource *entry, int64_t nodes, nd_cluster_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    nd_cluster_spec spec;
    ND_TRY(nd_catalog_open(entry, &doc, err));
    nd_status status = nd_cluster_parse_root(nd_json_root(doc), &spec, err);
    nd_json_free(doc);
    if (status != ND_OK) {
        return status;
    }
    return nd_cluster_resize(&spec, nodes, out, err);
}

/* A count before 'x': digits only, otherwise the text is a name. Returns what follows, or NULL. */
static const char *after_count(const char *text)
{
    const char *c = text;
    while (isdigit((unsigned char)*c)) {
        c++;
    }
    return c > text && (*c == 'x' || *c == 'X') ? c + 1 : NULL;
}

static nd_status parse_count(const char *text, const char *end, const char *what, int64_t max, int64_t *out,
                             nd_error *err)
{
    char digits[32];
    size_t length = (size_t)(end - text);
    if (length >= sizeof digits) {
        return nd_fail(err, ND_EINVAL, "%s must be 1 to %lld, got a number of %zu digits", what, (long long)max,
                       length);
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    return nd_text_int(digits, what, 1, max, out, err);
}

static nd_status fail_type(const char *whole, const char *type, nd_error *err)
{
    if (type[0] == '\0' || strspn(type, "0123456789xX") == strlen(type)) {
        return nd_fail(err, ND_EINVAL, "'%.60s' names no GPU type; write NODESxGPUSxTYPE, like 2x8xh100", whole);
    }
    const char *nearest = nd_catalog_nearest(nd_gpu_resources, type);
    if (nearest != NULL) {
        return nd_fail(err, ND_ENOTFOUND, "unknown GPU '%.60s' in '%.60s'; did you mean '%s'?", type, whole, nearest);
    }
    if (nd_catalog_find(nd_cluster_resources, type) != NULL) {
        return nd_fail(err, ND_EINVAL, "'%.60s' is a cluster, not a GPU; write %.60s:N for N nodes", type, type);
    }
    return nd_fail(err, ND_ENOTFOUND, "unknown GPU '%.60s' in '%.60s'; `ndplan list gpus` shows what is known", type,
                   whole);
}

static nd_status load_counted(const char *text, nd_cluster_spec *out, nd_error *err)
{
    int64_t nodes = 1;
    int64_t gpus_per_node = 1;
    const char *second = after_count(text);
    const char *type = after_count(second);
    if (type != NULL) {
        ND_TRY(parse_count(text, second - 1, "the number of nodes", ND_NODES_MAX, &nodes, err));
        ND_TRY(parse_count(second, type - 1, "GPUs per node", ND_GPUS_PER_NODE_MAX, &gpus_per_node, err));
    } else {
        type = second;
        const nd_resource *known = nd_catalog_find(nd_gpu_resources, type);
        if (known == NULL) {
            return fail_type(text, type, err);
        }
        ND_TRY(parse_count(text, second - 1, "GPUs per node", ND_GPUS_PER_NODE_MAX, &gpus_per_node, err));
    }
    const nd_resource *entry = nd_catalog_find(nd_gpu_resources, type);
    return entry != NULL ? load_reference(entry, nodes, gpus_per_node, out, err) : fail_type(text, type, err);
}

/* The shortest built-in cluster that starts like `text`: "p5" stands for p5.48xlarge. */
static const char *completed(const char *text)
{
    char start[ND_CLUSTER_NAME_MAX];
    const char *shortest = NULL;
    nd_text_canonical(text, start, sizeof start);
    for (const nd_resource *entry = nd_cluster_resources; start[0] != '\0' && entry->name != NULL; entry++) {
        char name[ND_CLUSTER_NAME_MAX];
        nd_text_canonical(entry->name, name, sizeof name);
        bool starts = strncmp(name, start, strlen(start)) == 0;
        if (starts && (shortest == NULL || strlen(entry->name) < strlen(shortest))) {
            shortest = entry->name;
        }
    }
    return shortest;
}

/* "x8xh100", "-1x8xh100", "1e9x8xh100": a count and a GPU at the end, but no count in front. */
static bool is_broken_count(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        const char *type = *c == 'x' || *c == 'X' ? after_count(c + 1) : NULL;
        if (type != NULL && nd_catalog_find(nd_gpu_resources, type) != NULL) {
            return true;
        }
    }
    return false;
}

/* "64h100" for 8x8xh100: a count and a GPU without the 'x' between them. */
static bool lacks_x(const char *text, char out[ND_CLUSTER_NAME_MAX])
{
    nd_error err;
    nd_cluster_spec one;
    int64_t gpus = 0;
    size_t digits = strspn(text, "0123456789");
    const nd_resource *entry = nd_catalog_find(nd_gpu_resources, text + digits);
    if (digits == 0 || entry == NULL ||
        parse_count(text, text + digits, "GPUs", (int64_t)ND_NODES_MAX, &gpus, &err) != ND_OK ||
        load_reference(entry, 1, 1, &one, &err) != ND_OK) {
        return false;
    }
    usual_nodes(gpus, one.usual_gpus_per_node > 0 ? one.usual_gpus_per_node : gpus, entry->name, out);
    return true;
}

static nd_status fail_name(const char *text, nd_error *err)
{
    char meant[ND_CLUSTER_NAME_MAX];
    if (lacks_x(text, meant)) {
        return nd_fail(err, ND_ENOTFOUND, "unknown cluster '%.60s'; did you mean '%.60s'? Otherwise %s", text, meant,
                       forms);
    }
    if (is_broken_count(text)) {
        return nd_fail(err, ND_EINVAL,
                       "'%.60s' does not start with a number of nodes; write NODESxGPUSxTYPE, like 2x8xh100", text);
    }
    const char *nearest = completed(text);
    if (nearest == NULL) {
        nearest = nd_catalog_nearest(nd_cluster_resources, text);
    }
    if (nearest == NULL) {
        nearest = nd_catalog_nearest(nd_gpu_resources, text);
    }
    if (nearest != NULL) {
        return nd_fail(err, ND_ENOTFOUND, "unknown cluster '%.60s'; did you mean '%s'? Otherwise %s", text, nearest,
                       forms);
    }
    return nd_fail(err, ND_ENOTFOUND, "unknown cluster '%.60s'; %s; `ndplan list clusters` shows what is known", text,
                   forms);
}

/* "name:count" */
static nd_status load_with_count(const char *text, const char *colon, nd_cluster_spec *out, nd_error *err)
{
    char name[ND_CLUSTER_NAME_MAX];
    int64_t nodes = 1;
    size_t length = (size_t)(colon - text);
    if (length >= sizeof name) {
        return fail_name(text, err);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    const nd_resource *entry = nd_catalog_find(nd_cluster_resources, name);
    if (entry == NULL && nd_catalog_find(nd_gpu_resources, name) != NULL) {
        return nd_fail(err, ND_EINVAL, "'%.60s' is a GPU, not a cluster; write NODESxGPUSxTYPE, like 2x8x%.60s", name,
                       name);
    }
    if (entry == NULL) {
        return fail_name(name, err);
    }
    ND_TRY(parse_count(colon + 1, colon + strlen(colon), "the number of nodes", ND_NODES_MAX, &nodes, err));
    return load_builtin(entry, nodes, out, err);
}

static bool looks_like_path(const char *text)
{
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Several parts are one cluster here when their nodes are equal. */
static nd_status load_mixed(const char *text, nd_cluster_spec *out, nd_error *err)
{
    nd_mixed_cluster mixed;
    ND_TRY(nd_mixed_cluster_load(text, &mixed, err));
    return nd_mixed_cluster_single(&mixed, out, err);
}

static nd_status load_file(const char *path, nd_cluster_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_load(path, &doc, err));
    nd_status status = nd_cluster_parse_root(nd_json_root(doc), out, err);
    nd_json_free(doc);
    return status;
}

/* A text without digits and 'x' in front: "name:count", a name, or a file in this folder. */
static nd_status load_named(const char *text, nd_cluster_spec *out, nd_error *err)
{
    const char *colon = strrchr(text, ':');
    if (colon != NULL && !is_file(text)) {
        return load_with_count(text, colon, out, err);
    }
    const nd_resource *entry = nd_catalog_find(nd_cluster_resources, text);
    if (entry != NULL) {
        return load_builtin(entry, 1, out, err);
    }
    entry = nd_catalog_find(nd_gpu_resources, text);
    if (entry != NULL) {
        return load_reference(entry, 1, 1, out, err);
    }
    return is_file(text) ? load_file(text, out, err) : fail_name(text, err);
}

nd_status nd_cluster_load(const char *text, nd_cluster_spec *out, nd_error *err)
{
    if (text == NULL || text[0] == '\0') {
        return nd_fail(err, ND_EINVAL, "empty cluster; %s", forms);
    }
    if (strlen(text) >= TEXT_MAX) {
        return nd_fail(err, ND_EINVAL, "the cluster has %zu characters; %s", strlen(text), forms);
    }
    if (nd_mixed_cluster_is(text)) {
        return load_mixed(text, out, err);
    }
    if (looks_like_path(text)) {
        return load_file(text, out, err);
    }
    if (strcmp(text, "local") == 0) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "'local' needs the detection of this machine, which is not available yet; name the GPUs "
                       "instead, like 8xh100 (see nvidia-smi -L)");
    }
    return after_count(text) != NULL ? load_counted(text, out, err) : load_named(text, out, err);
}

nd_status nd_cluster_resize(const nd_cluster_spec *cluster, int64_t nodes, nd_cluster_spec *out, nd_error *err)
{
    nd_cluster_spec spec = *cluster;
    spec.nodes = nodes;
    ND_TRY(nd_cluster_build(&spec, err));
    nd_cluster_set_name(&spec);
    *out = spec;
    return ND_OK;
}

nd_status nd_cluster_part_of_node(const nd_cluster_spec *cluster, int64_t gpus_per_node, nd_cluster_spec *out,
                                  nd_error *err)
{
    nd_cluster_spec spec = *cluster;
    if (gpus_per_node < 1 || gpus_per_node > cluster->gpus_per_node) {
        return nd_fail(err, ND_EINVAL, "a part of a node must have 1 to %lld GPUs, got %lld",
                       (long long)cluster->gpus_per_node, (long long)gpus_per_node);
    }
    spec.nodes = 1;
    nd_cluster_scale_node(&spec, gpus_per_node);
    ND_TRY(nd_cluster_build(&spec, err));
    if (spec.base_name[0] != '\0' && gpus_per_node < cluster->gpus_per_node) {
        (void)snprintf(spec.name, sizeof spec.name, "%.36s (%lld of %lld GPUs)", spec.base_name,
                       (long long)gpus_per_node, (long long)cluster->gpus_per_node);
    } else {
        nd_cluster_set_name(&spec);
    }
    *out = spec;
    return ND_OK;
}

size_t nd_cluster_builtin_count(void)
{
    return nd_resource_count(nd_cluster_resources);
}

const char *nd_cluster_builtin_name(size_t index)
{
    return index < nd_cluster_builtin_count() ? nd_cluster_resources[index].name : NULL;
}
