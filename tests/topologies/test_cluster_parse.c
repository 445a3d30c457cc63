#include <stdlib.h>

#include "core/resource.h"
#include "tests/topologies/topology_check.h"

extern const nd_resource nd_cluster_resources[];

static nd_status parse(const char *text, nd_cluster_spec *out, nd_error *err)
{
    return nd_cluster_parse(text, strlen(text), "t.json", out, err);
}

static nd_cluster_spec parsed(const char *text)
{
    nd_cluster_spec cluster;
    nd_error err;
    memset(&cluster, 0, sizeof cluster);
    ND_ASSERT_OK(parse(text, &cluster, &err));
    CU_ASSERT_PTR_NULL(broken_invariant(&cluster));
    return cluster;
}

/* The first fenced JSON block of docs/TOPOLOGY.md, or an empty text. */
static const char *documented_example(void)
{
    static char text[65536];
    FILE *stream = fopen(ND_TEST_DATA "/../../../docs/TOPOLOGY.md", "rb");
    if (stream == NULL) {
        return "";
    }
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    (void)fclose(stream);
    char *start = strstr(text, "```json\n");
    char *end = start != NULL ? strstr(start + 8, "```") : NULL;
    if (end == NULL) {
        return "";
    }
    *end = '\0';
    return start + 8;
}

static void the_example_of_the_documentation_works(void)
{
    nd_cluster_spec cluster = parsed(documented_example());
    CU_ASSERT_STRING_EQUAL(cluster.name, "site-a");
    CU_ASSERT_EQUAL(cluster.gpus, 512);
    CU_ASSERT_EQUAL(cluster.tiers_count, 3);
    CU_ASSERT_EQUAL(cluster.tiers[1].span_gpus, 256);
    CU_ASSERT_EQUAL(cluster.tiers[2].kind, ND_TIER_SPINE);
    ND_ASSERT_REL(cluster.tiers[2].oversubscription, 2.0, 1e-12);
    ND_ASSERT_REL(cluster.tiers[1].efficiency_frac, 0.95, 1e-12);
    ND_ASSERT_CONTAINS(cluster.tiers[1].source, "ibstat on node 1: 400 Gb/s");
    ND_ASSERT_REL(cluster.price_usd_per_gpu_hour, 2.5, 1e-12);
    CU_ASSERT_STRING_EQUAL(cluster.price_source, "contract");
    CU_ASSERT_STRING_EQUAL(cluster.price_date, "2026-11");
    CU_ASSERT_STRING_EQUAL(cluster.note, "");
}

static void what_a_file_leaves_out_is_assumed_and_said(void)
{
    nd_cluster_spec cluster = parsed("{\"gpu\": \"h100\", \"gpus_per_node\": 8, \"nodes\": 2}");
    CU_ASSERT_STRING_EQUAL(cluster.name, "cluster");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 8);
    CU_ASSERT_STRING_EQUAL(cluster.note,
                           "link not stated: as in the reference node of h100; network not stated: 8 x 400 "
                           "Gb/s ib-ndr as in the reference node of h100");
    CU_ASSERT_STRING_EQUAL(parsed("{\"gpu\": \"h100\", \"gpus_per_node\": 1}").note, "");
}

static void a_gpu_can_be_written_in_the_file(void)
{
    nd_cluster_spec cluster = parsed("{\"gpu\": {\"based_on\": \"a100\", \"name\": \"a100-cut\", \"power_w\": 300}, "
                                     "\"gpus_per_node\": 8, \"nodes\": 2}");
    CU_ASSERT_STRING_EQUAL(cluster.gpu.name, "a100-cut");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 8); /* the reference node of the a100 */
    ND_ASSERT_REL(cluster.tiers[1].bytes_per_s, 25e9, 1e-12);
    cluster = parsed("{\"gpu\": {\"name\": \"own\", \"memory_bytes\": 5e10, \"hbm_bytes_per_s\": 2e12, "
                     "\"pcie_bytes_per_s\": 6e10, \"sm_count\": 64, \"peak_flops_per_s\": {\"bf16\": 3e14}}, "
                     "\"gpus_per_node\": 4}");
    CU_ASSERT_EQUAL(cluster.tiers[0].kind, ND_TIER_PCIE);
}

static void links_can_be_taken_away_or_changed(void)
{
    nd_cluster_spec cluster = parsed("{\"gpu\":\"h100\",\"gpus_per_node\":8,\"link\":{\"type\":\"none\"}}");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 1);
    CU_ASSERT_EQUAL(cluster.tiers[0].kind, ND_TIER_PCIE);
    cluster = parsed("{\"gpu\":\"rtx3090\",\"gpus_per_node\":4,\"link\":{\"type\":\"nvlink-bridge\"}}");
    CU_ASSERT_EQUAL(cluster.tiers[0].kind, ND_TIER_NVLINK_BRIDGE);
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 2);
    cluster = parsed("{\"gpu\":\"h100\",\"gpus_per_node\":8,\"nodes\":32,\"link\":{\"domain_gpus\":256}}");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 256); /* NVLink across nodes, because the file says so */
    CU_ASSERT_EQUAL(cluster.tiers_count, 1);
}

static void pcie_facts_shape_the_node(void)
{
    nd_cluster_spec cluster = parsed(
        "{\"gpu\":\"l4\",\"gpus_per_node\":8,\"pcie\":{\"gpus_per_bridge\":2,\"bridge_bytes_per_s\":{\"value\":1e10,"
        "\"source\":\"measured here\"},\"efficiency_frac\":0.7,\"peer_to_peer\":false}}");
    CU_ASSERT_EQUAL(cluster.tiers[0].span_gpus, 2);
    ND_ASSERT_REL(cluster.tiers[0].efficiency_frac, 0.35, 1e-12);
    ND_ASSERT_REL(cluster.tiers[1].bytes_per_s, 5e9, 1e-12);
    CU_ASSERT_STRING_EQUAL(cluster.tiers[1].source, "measured here");
}

static void every_built_in_figure_has_a_source(void)
{
    for (const nd_resource *entry = nd_cluster_resources; entry->name != NULL; entry++) {
        static const char *const parts[] = {"link", "network"};
        nd_json_doc *doc = NULL;
        nd_json part;
        const char *text = NULL;
        nd_error err;
        ND_ASSERT_OK(nd_json_parse(entry->text, entry->length, entry->name, &doc, &err));
        for (size_t i = 0; i < 2; i++) {
            CU_ASSERT_TRUE_FATAL(nd_json_find(nd_json_root(doc), parts[i], &part));
            ND_ASSERT_OK(nd_json_need_string(part, "source", &text, &err));
            CU_ASSERT_TRUE(text != NULL && strlen(text) > 3);
        }
        if (nd_json_find(nd_json_root(doc), "price_usd_per_gpu_hour", &part)) {
            ND_ASSERT_OK(nd_json_need_string(part, "source", &text, &err));
            CU_ASSERT_PTR_NOT_NULL(strstr(text, "https://"));
            ND_ASSERT_OK(nd_json_need_string(part, "date", &text, &err));
        }
        if (nd_json_find(nd_json_root(doc), "host", &part) && nd_json_find(part, "memory_bytes", &part)) {
            ND_ASSERT_OK(nd_json_need_string(part, "source", &text, &err));
        }
        nd_json_free(doc);
    }
}

#define H100 "{\"gpu\":\"h100\",\"gpus_per_node\":8,\"nodes\":2,\n"

static void errors_name_line_column_key_and_cure(void)
{
    static const char *const cases[][2] = {
        {"", "t.json:1:1: "},
        {"[]", "t.json:1:1: the topology file must be an object, got an array"},
        {"{\"gpus_per_node\": 8}", "t.json:1:1: missing key 'gpu'"},
        {"{\"gpu\": \"h100\"}", "t.json:1:1: missing key 'gpus_per_node'"},
        {"{\"gpu\": 5, \"gpus_per_node\": 8}", "t.json:1:9: 'gpu' must be"},
        {"{\n  \"gpu\": \"h1000\"}", "t.json:2:10: unknown GPU 'h1000'; did you mean 'h100'?"},
        {H100 "\"price_usd_per_gpu_hour\": {\"value\": 2, \"date\": \"May 2026\"}}",
         "'date' must be like 2026-07-20 or 2026-07, got 'May 2026'"},
        {H100 "\"netwrok\": {}}", "t.json:2:12: unknown key 'netwrok' in the topology file; did you mean 'network'?"},
        {H100 "\"network\": {\"nic_bytes_per_sec\": 1e9}}",
         "t.json:2:34: unknown key 'nic_bytes_per_sec' in 'network'; did you mean 'nic_bytes_per_s'?"},
        {H100 "\"network\": {\"type\": \"infinband\"}}", "unknown network type 'infinband'; use ib, ib-hdr"},
        {H100 "\"network\": {\"type\": \"ib-ndrr\"}}", "unknown network type 'ib-ndrr'; did you mean 'ib-ndr'?"},
        {H100 "\"network\": {\"nic_bytes_per_s\": 400}}", "t.json:2:32: 'nic_bytes_per_s' must be"},
        {H100 "\"network\": {\"nic_bytes_per_s\": NaN}}", "t.json:2:32: "},
        {H100 "\"network\": {\"nic_bytes_per_s\": 1e999}}", "t.json:2:"},
        {H100 "\"network\": {\"nic_bytes_per_s\": -5e10}}", "t.json:2:32: 'nic_bytes_per_s' must be"},
        {H100 "\"network\": {\"nics_per_node\": 0}}", "'nics_per_node' must be"},
        {H100 "\"network\": {\"oversubscription\": 0.5}}", "'oversubscription' must be"},
        {H100 "\"network\": []}", "t.json:2:12: 'network' must be an object, got an array"},
        {H100 "\"nodes\": 3}", "t.json:2:1: duplicate object key near '\"nodes\"'"},
        {"{\"gpu\":\"h100\",\"gpus_per_node\":8,\"nodes\":0}", "'nodes' must be"},
        {"{\"gpu\":\"h100\",\"gpus_per_node\":8,\"nodes\":1e9}", "'nodes' must be"},
        {"{\"gpu\":\"h100\",\"gpus_per_node\":73}", "'gpus_per_node' must be"},
        {"{\"gpu\":\"h100\",\"gpus_per_node\":64,\"nodes\":65536}",
         "a cluster has at most 1048576 GPUs, got 65536 x 64"},
        {H100 "\"link\": {\"type\": \"nvlnk\"}}",
         "t.json:2:18: unknown link type 'nvlnk'; use nvlink, nvlink-bridge, xgmi, mesh or none"},
        {H100 "\"link\": {\"domain_gpus\": 3}}", "t.json:2:25: domain_gpus 3 does not divide gpus_per_node 8"},
        {"{\"gpu\":\"l4\",\"gpus_per_node\":8,\n\"link\": {\"type\": \"nvlink\"}}",
         "t.json:2:9: GPU 'l4' has no NVLink rate; add link.bytes_per_s or say \"link\": {\"type\": \"none\"}"},
        {H100 "\"pcie\": {\"peer_to_peer\": \"yes\"}}", "'peer_to_peer' must be"},
        {H100 "\"host\": {\"memory_bytes\": 2048}}", "'memory_bytes' must be"},
        {"{\"gpu\": {\"name\": \"own\", \"memory_bytes\": 5e10, \"hbm_bytes_per_s\": 2e12, \"pcie_bytes_per_s\": 6e10, "
         "\"sm_count\": 64, \"peak_flops_per_s\": {\"bf16\": 3e14}}, \"gpus_per_node\": 4, \"nodes\": 2}",
         "the network between the 2 nodes of 'cluster' is unknown; state network.type, nics_per_node and "
         "nic_bytes_per_s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nd_cluster_spec cluster;
        nd_error err;
        memset(&cluster, UNTOUCHED, sizeof cluster);
        CU_ASSERT_EQUAL(parse(cases[i][0], &cluster, &err), ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, cases[i][1]);
        CU_ASSERT_TRUE(is_untouched(&cluster, sizeof cluster));
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(the_example_of_the_documentation_works),
        ND_TEST(what_a_file_leaves_out_is_assumed_and_said),
        ND_TEST(a_gpu_can_be_written_in_the_file),
        ND_TEST(links_can_be_taken_away_or_changed),
        ND_TEST(pcie_facts_shape_the_node),
        ND_TEST(every_built_in_figure_has_a_source),
        ND_TEST(errors_name_line_column_key_and_cure),
        {NULL, NULL},
    };
    return nd_test_main("topologies/cluster_parse", cases);
}
