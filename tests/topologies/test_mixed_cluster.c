#include "topologies/mixed_cluster.h"

#include <string.h>

#include "tests/topologies/topology_check.h"

static nd_mixed_cluster mixed_of(const char *text)
{
    nd_mixed_cluster mixed;
    nd_error err;
    memset(&mixed, 0, sizeof mixed);
    ND_ASSERT_OK(nd_mixed_cluster_load(text, &mixed, &err));
    return mixed;
}

static nd_mixed_cluster parsed(const char *text)
{
    nd_mixed_cluster mixed;
    nd_error err;
    memset(&mixed, 0, sizeof mixed);
    ND_ASSERT_OK(nd_mixed_cluster_parse(text, strlen(text), "mixed.json", &mixed, &err));
    return mixed;
}

static void refused(const char *text, nd_status status, const char *part)
{
    nd_mixed_cluster mixed;
    nd_error err;
    CU_ASSERT_EQUAL(nd_mixed_cluster_load(text, &mixed, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void refused_file(const char *text, const char *part)
{
    nd_mixed_cluster mixed;
    nd_error err;
    CU_ASSERT_EQUAL(nd_mixed_cluster_parse(text, strlen(text), "mixed.json", &mixed, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void parts_are_what_clusters_are(void)
{
    nd_mixed_cluster mixed = mixed_of("2x8xh100+4x8xa100");
    CU_ASSERT_STRING_EQUAL(mixed.name, "2x8xh100+4x8xa100");
    CU_ASSERT_EQUAL(mixed.parts_count, 2);
    CU_ASSERT_EQUAL(mixed.gpus, 48);
    CU_ASSERT_EQUAL(mixed.parts[0].gpus, 16);
    CU_ASSERT_STRING_EQUAL(mixed.parts[1].gpu.name, "a100");
    CU_ASSERT_EQUAL(mixed.parts[1].gpus, 32);
    mixed = mixed_of("p5.48xlarge:2+p4d.24xlarge:4");
    CU_ASSERT_STRING_EQUAL(mixed.name, "p5.48xlarge:2+p4d.24xlarge:4");
    CU_ASSERT_STRING_EQUAL(mixed.parts[1].gpu.name, "a100-40gb");
    CU_ASSERT_EQUAL(mixed_of("8xh100").parts_count, 1);
    CU_ASSERT_TRUE(nd_mixed_cluster_is("h100+a100"));
    CU_ASSERT_FALSE(nd_mixed_cluster_is("2x8xh100"));
    CU_ASSERT_FALSE(nd_mixed_cluster_is(NULL));
}

static void equal_nodes_are_one_part(void)
{
    nd_mixed_cluster mixed = mixed_of("8xh100+2x8xh100+8xH100-SXM");
    CU_ASSERT_EQUAL(mixed.parts_count, 1);
    CU_ASSERT_STRING_EQUAL(mixed.parts[0].name, "4x8xh100");
    ND_ASSERT_CONTAINS(mixed.note, "one part");
    nd_cluster_spec joined = loaded("2x8xh100+2x8xh100");
    nd_cluster_spec whole = loaded("4x8xh100");
    CU_ASSERT_EQUAL(joined.gpus, whole.gpus);
    CU_ASSERT_EQUAL(joined.tiers_count, whole.tiers_count);
    CU_ASSERT_EQUAL(joined.tiers[1].span_gpus, whole.tiers[1].span_gpus);
    mixed = mixed_of("8xh100+8xa100+8xh100");
    CU_ASSERT_EQUAL(mixed.parts_count, 2);
    CU_ASSERT_STRING_EQUAL(mixed.name, "2x8xh100+8xa100");
    /* the same GPU in another node is another kind */
    CU_ASSERT_EQUAL(mixed_of("8xh100+4xh100").parts_count, 2);
    CU_ASSERT_EQUAL(mixed_of("p5.48xlarge:2+2x8xh100").parts_count, 2);
}

static void what_is_no_mixed_cluster_is_refused(void)
{
    refused("2x8xh100+", ND_EINVAL, "nothing behind a '+'");
    refused("+2x8xh100", ND_EINVAL, "nothing before a '+'");
    refused("8xh100++8xa100", ND_EINVAL, "nothing behind a '+'");
    refused("+", ND_EINVAL, "nothing before a '+'");
    refused("2x8xh100+4x8xa1000", ND_ENOTFOUND, "unknown GPU 'a1000'");
    refused("2x8xh100+0x8xa100", ND_EINVAL, "the number of nodes");
    refused("65536x16xh100+8xa100", ND_EINVAL, "at most 1048576 GPUs, and the parts have 1048584");
    refused("65536x8xh100+8xh100", ND_EINVAL, "nodes must be 1 to 65536, got 65537");
    refused("8xh100+8xh200+8xa100+8xb200+8xl40s", ND_EINVAL, "one more than the 4 kinds");
    refused("8xh100+8xmi300x", ND_EINVAL, "nvidia and amd");
    nd_cluster_spec cluster;
    nd_error err;
    CU_ASSERT_EQUAL(nd_cluster_load("8xh100+8xa100", &cluster, &err), ND_EUNSUPPORTED);
    ND_ASSERT_CONTAINS(err.message, "name one of them here, like 8xh100");
}

static void files_have_parts_too(void)
{
    nd_mixed_cluster mixed =
        parsed("{\"name\": \"site\", \"parts\": [\"2x8xh100\", {\"name\": \"old\", \"gpu\": \"a100\", \"nodes\": 3,"
               " \"gpus_per_node\": 8}], \"network_between\": {\"type\": \"ethernet\", \"nics_per_node\": 1,"
               " \"nic_bytes_per_s\": 12.5e9}}");
    CU_ASSERT_STRING_EQUAL(mixed.name, "site");
    CU_ASSERT_EQUAL(mixed.parts_count, 2);
    CU_ASSERT_STRING_EQUAL(mixed.parts[1].name, "old");
    CU_ASSERT_EQUAL(mixed.gpus, 40);
    nd_cluster_spec between;
    nd_error err;
    ND_ASSERT_OK(nd_mixed_cluster_between(&mixed, 0, 1, &between, &err));
    CU_ASSERT_STRING_EQUAL(between.network, "ethernet");
    ND_ASSERT_REL(between.nic_bytes_per_s, 12.5e9, 1e-12);
}

static void bad_files_are_refused(void)
{
    refused_file("{\"parts\": []}", "must be a list");
    refused_file("{\"parts\": \"2x8xh100\"}", "must be a list");
    refused_file("{\"parts\": [\"8xh100\", \"8xh1000\"]}", "unknown GPU");
    refused_file("{\"parts\": [7]}", "parts");
    refused_file("{\"parts\": [\"8xh100\"], \"nodes\": 2}", "nodes");
    refused_file("{\"parts\": [{\"parts\": [\"8xh100\"]}]}", "parts");
    refused_file("{\"parts\": [\"8xh100\", \"8xa100\"], \"network_between\": {\"type\": \"ib\"}}", "nics_per_node");
    refused_file("{\"parts\": [\"8xh100\", \"8xa100\"], \"network_between\": {\"type\": \"wet string\","
                 " \"nics_per_node\": 1, \"nic_bytes_per_s\": 1e9}}",
                 "unknown network type");
}

static void the_slowest_of_each_figure_counts(void)
{
    nd_mixed_cluster mixed = mixed_of("2x8xh100+4x8xa100-40gb");
    nd_cluster_spec slow;
    nd_error err;
    int64_t idle = -1;
    ND_ASSERT_OK(nd_mixed_cluster_slowest(&mixed, &slow, &idle, &err));
    CU_ASSERT_EQUAL(idle, 0);
    CU_ASSERT_EQUAL(slow.gpus, 48);
    for (int32_t i = 0; i < 2; i++) {
        const nd_cluster_spec *part = &mixed.parts[i];
        CU_ASSERT_TRUE(slow.gpu.memory_bytes <= part->gpu.memory_bytes);
        CU_ASSERT_TRUE(slow.gpu.hbm_bytes_per_s <= part->gpu.hbm_bytes_per_s);
        CU_ASSERT_TRUE(slow.nic_bytes_per_s <= part->nic_bytes_per_s);
        CU_ASSERT_TRUE(slow.tiers[0].bytes_per_s <= part->tiers[0].bytes_per_s);
        CU_ASSERT_TRUE(slow.host_bytes_per_s <= part->host_bytes_per_s);
        for (int type = 0; type < ND_DTYPE_COUNT; type++) {
            CU_ASSERT_TRUE(slow.gpu.peak_flops_per_s[type] <= part->gpu.peak_flops_per_s[type]);
        }
    }
    CU_ASSERT_EQUAL(slow.gpu.peak_flops_per_s[ND_DTYPE_FP8], 0.0); /* A100 has none */
}

static void the_smaller_node_decides_and_the_rest_idles(void)
{
    nd_mixed_cluster mixed = mixed_of("2x8xh100+3x4xa100");
    nd_cluster_spec slow;
    nd_error err;
    int64_t idle = 0;
    ND_ASSERT_OK(nd_mixed_cluster_slowest(&mixed, &slow, &idle, &err));
    CU_ASSERT_EQUAL(slow.gpus_per_node, 4);
    CU_ASSERT_EQUAL(slow.nodes, 5);
    CU_ASSERT_EQUAL(slow.gpus, 20);
    CU_ASSERT_EQUAL(idle, 8);
}

static void the_slowest_of_equal_kinds_is_that_kind(void)
{
    nd_mixed_cluster twice = mixed_of("2x8xh100");
    twice.parts[1] = twice.parts[0];
    twice.parts_count = 2;
    twice.gpus *= 2;
    nd_cluster_spec slow;
    nd_cluster_spec whole = loaded("4x8xh100");
    nd_error err;
    ND_ASSERT_OK(nd_mixed_cluster_slowest(&twice, &slow, NULL, &err));
    CU_ASSERT_EQUAL(slow.gpus, whole.gpus);
    CU_ASSERT_EQUAL(slow.tiers_count, whole.tiers_count);
    for (int64_t i = 0; i < whole.tiers_count; i++) {
        CU_ASSERT_EQUAL(slow.tiers[i].span_gpus, whole.tiers[i].span_gpus);
        CU_ASSERT_EQUAL(slow.tiers[i].bytes_per_s, whole.tiers[i].bytes_per_s);
        CU_ASSERT_EQUAL(slow.tiers[i].efficiency_frac, whole.tiers[i].efficiency_frac);
    }
}

static void the_slower_nics_join_the_parts(void)
{
    nd_mixed_cluster mixed = mixed_of("8xh100+8xa100");
    nd_cluster_spec between;
    nd_error err;
    for (int32_t first = 0; first < 2; first++) {
        ND_ASSERT_OK(nd_mixed_cluster_between(&mixed, first, 1 - first, &between, &err));
        CU_ASSERT_EQUAL(between.nodes, 2);
        ND_ASSERT_REL(between.nic_bytes_per_s, mixed.parts[1].nic_bytes_per_s, 1e-12);
        CU_ASSERT_STRING_EQUAL(between.network, mixed.parts[1].network);
        CU_ASSERT_EQUAL(between.tiers[between.tiers_count - 1].kind, ND_TIER_NETWORK);
    }
    /* fast links of a rack end where the other kind begins */
    mixed = mixed_of("gb200-nvl72+8xh100");
    ND_ASSERT_OK(nd_mixed_cluster_between(&mixed, 0, 1, &between, &err));
    CU_ASSERT_TRUE(between.tiers[between.tiers_count - 1].kind >= ND_TIER_NETWORK);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(parts_are_what_clusters_are),
        ND_TEST(equal_nodes_are_one_part),
        ND_TEST(what_is_no_mixed_cluster_is_refused),
        ND_TEST(files_have_parts_too),
        ND_TEST(bad_files_are_refused),
        ND_TEST(the_slowest_of_each_figure_counts),
        ND_TEST(the_smaller_node_decides_and_the_rest_idles),
        ND_TEST(the_slowest_of_equal_kinds_is_that_kind),
        ND_TEST(the_slower_nics_join_the_parts),
        {NULL, NULL},
    };
    return nd_test_main("mixed_cluster", cases);
}
