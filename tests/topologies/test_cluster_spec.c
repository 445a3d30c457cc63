#include "topologies/cluster_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/topologies/topology_check.h"

static void short_forms_state_nodes_gpus_and_type(void)
{
    nd_cluster_spec cluster = loaded("2x8xh100");
    CU_ASSERT_EQUAL(cluster.nodes, 2);
    CU_ASSERT_EQUAL(cluster.gpus_per_node, 8);
    CU_ASSERT_EQUAL(cluster.gpus, 16);
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 8);
    CU_ASSERT_STRING_EQUAL(cluster.gpu.name, "h100");
    CU_ASSERT_STRING_EQUAL(cluster.name, "2x8xh100");
    CU_ASSERT_STRING_EQUAL(cluster.network, "ib-ndr");
    ND_ASSERT_REL(cluster.nic_bytes_per_s, 400e9, 1e-12);
    CU_ASSERT_STRING_EQUAL(cluster.note, "assumed per node: 8 x 400 Gb/s ib-ndr");
    CU_ASSERT_STRING_EQUAL(loaded("1X8XH100").name, "8xh100");
    CU_ASSERT_STRING_EQUAL(loaded("8xH100-SXM").name, "8xh100");
    CU_ASSERT_STRING_EQUAL(loaded("8xMI300X").name, "8xmi300x");
    CU_ASSERT_STRING_EQUAL(loaded("2x3090").name, "2xrtx3090");
    CU_ASSERT_EQUAL(loaded("65536x16xa100").gpus, 1048576);
}

static void one_gpu_is_a_cluster(void)
{
    nd_cluster_spec cluster = loaded("h100");
    CU_ASSERT_EQUAL(cluster.gpus, 1);
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 1);
    CU_ASSERT_EQUAL(cluster.tiers_count, 1);
    CU_ASSERT_EQUAL(cluster.tiers[0].span_gpus, 1);
    CU_ASSERT_EQUAL(loaded("1x1xl4").tiers[0].kind, ND_TIER_PCIE);
}

static void every_gpu_type_works_in_every_short_form(void)
{
    static const char *const forms[] = {"%s",     "1x%s",    "8x%s",    "2x1x%s", "3x5x%s",
                                        "4x8x%s", "18x4x%s", "9x12x%s", "1x72x%s"};
    for (size_t i = 0; i < nd_gpu_builtin_count(); i++) {
        for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
            char text[64];
            char *mark = NULL;
            (void)snprintf(text, sizeof text, "%s", forms[f]);
            mark = strstr(text, "%s");
            (void)snprintf(mark, sizeof text - (size_t)(mark - text), "%s", nd_gpu_builtin_name(i));
            nd_cluster_spec cluster = loaded(text);
            CU_ASSERT_TRUE(cluster.host_bytes_per_s > 0.0);
        }
    }
}

static void nics_follow_the_gpus_of_the_node(void)
{
    ND_ASSERT_REL(loaded("2x4xh100").nic_bytes_per_s, 200e9, 1e-12);
    ND_ASSERT_REL(loaded("2x8xa100").nic_bytes_per_s, 200e9, 1e-12);
    ND_ASSERT_REL(loaded("2x8xb300").nic_bytes_per_s, 800e9, 1e-12);
    ND_ASSERT_REL(loaded("2x4xrtx4090").nic_bytes_per_s, 12.5e9, 1e-12);
    CU_ASSERT_STRING_EQUAL(loaded("2x4xrtx4090").note,
                           "assumed per node: 1 x 100 Gb/s ethernet; GPUs joined by PCIe without peer access");
}

static void built_in_clusters_take_a_count(void)
{
    nd_cluster_spec cluster = loaded("p5.48xlarge:4");
    CU_ASSERT_EQUAL(cluster.nodes, 4);
    CU_ASSERT_EQUAL(cluster.gpus, 32);
    CU_ASSERT_STRING_EQUAL(cluster.name, "p5.48xlarge:4");
    CU_ASSERT_STRING_EQUAL(cluster.network, "efa-v2");
    ND_ASSERT_REL(cluster.nic_bytes_per_s, 400e9, 1e-12); /* 32 x 100 Gb/s */
    ND_ASSERT_REL(cluster.price_usd_per_gpu_hour, 6.88, 1e-12);
    CU_ASSERT_EQUAL(cluster.host_memory_bytes, (int64_t)2048 << 30);
    CU_ASSERT_EQUAL(loaded("p5.48xlarge").nodes, 1);
    CU_ASSERT_EQUAL(loaded("DGX-A100:16").gpus, 128);
    CU_ASSERT_STRING_EQUAL(loaded("Standard_ND96isr_H100_v5:2").name, "nd96isr-h100-v5:2");
    ND_ASSERT_REL(loaded("cscs-alps").host_bytes_per_s, 450e9, 1e-12);
}

static void a_part_of_a_node_is_the_node_with_fewer_gpus(void)
{
    nd_error err;
    nd_cluster_spec part;
    nd_cluster_spec whole = loaded("4x8xh100");
    nd_cluster_spec direct = loaded("2xh100");
    ND_ASSERT_OK(nd_cluster_part_of_node(&whole, 2, &part, &err));
    CU_ASSERT_EQUAL(part.gpus, 2);
    CU_ASSERT_STRING_EQUAL(part.name, "2xh100");
    CU_ASSERT_EQUAL(part.tiers_count, direct.tiers_count);
    CU_ASSERT_EQUAL(part.tiers[0].span_gpus, direct.tiers[0].span_gpus);
    ND_ASSERT_REL(part.tiers[0].bytes_per_s, direct.tiers[0].bytes_per_s, 1e-12);
    CU_ASSERT_EQUAL(part.host_memory_bytes, direct.host_memory_bytes);
    whole = loaded("p5.48xlarge:4");
    ND_ASSERT_OK(nd_cluster_part_of_node(&whole, 4, &part, &err));
    CU_ASSERT_STRING_EQUAL(part.name, "p5.48xlarge (4 of 8 GPUs)");
    CU_ASSERT_EQUAL(nd_cluster_part_of_node(&whole, 9, &part, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_cluster_part_of_node(&whole, 0, &part, &err), ND_EINVAL);
}

static void every_built_in_cluster_loads_alone_and_as_many_nodes(void)
{
    CU_ASSERT_TRUE(nd_cluster_builtin_count() >= 55);
    for (size_t i = 0; i < nd_cluster_builtin_count(); i++) {
        char text[ND_CLUSTER_NAME_MAX];
        nd_cluster_spec one = loaded(nd_cluster_builtin_name(i));
        CU_ASSERT_STRING_EQUAL(one.name, nd_cluster_builtin_name(i));
        CU_ASSERT_TRUE(one.source[0] != '\0');
        (void)snprintf(text, sizeof text, "%s:1000", nd_cluster_builtin_name(i));
        CU_ASSERT_EQUAL(loaded(text).nodes, 1000);
    }
    CU_ASSERT_PTR_NULL(nd_cluster_builtin_name(nd_cluster_builtin_count()));
}

static void bad_counts_are_refused(void)
{
    check_refused("0x8xh100", ND_EINVAL, "the number of nodes must be from 1 to 65536, got 0");
    check_refused("2x0xh100", ND_EINVAL, "GPUs per node must be from 1 to 72, got 0");
    check_refused("2x73xh100", ND_EINVAL, "GPUs per node must be from 1 to 72, got 73");
    check_refused("1000000000xh100", ND_EINVAL, "GPUs per node must be from 1 to 72, got 1000000000");
    check_refused("65536x72xh100", ND_EINVAL, "a cluster has at most 1048576 GPUs, got 65536 x 72");
    check_refused("99999999999999999999x8xh100", ND_EINVAL,
                  "the number of nodes must be from 1 to 65536, got 99999999999999999999");
    check_refused("9999999999999999999999999999999999x8xh100", ND_EINVAL,
                  "the number of nodes must be 1 to 65536, got a number of 34 digits");
    check_refused("p5.48xlarge:0", ND_EINVAL, "the number of nodes must be from 1 to 65536, got 0");
    check_refused("p5.48xlarge:", ND_EINVAL, "the number of nodes must be a whole number from 1 to 65536, got ''");
    check_refused("p5.48xlarge:-1", ND_EINVAL, "the number of nodes must be from 1 to 65536, got -1");
}

static void bad_names_say_what_to_write(void)
{
    check_refused("2x8", ND_EINVAL, "'2x8' names no GPU type; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("2x8x", ND_EINVAL, "'2x8x' names no GPU type; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("2x8xh1000", ND_ENOTFOUND, "unknown GPU 'h1000' in '2x8xh1000'; did you mean 'h100'?");
    check_refused("2x8xzzzzzz", ND_ENOTFOUND,
                  "unknown GPU 'zzzzzz' in '2x8xzzzzzz'; `ndplan list gpus` shows what is known");
    check_refused("2xp5.48xlarge", ND_EINVAL, "'p5.48xlarge' is a cluster, not a GPU; write p5.48xlarge:N for N nodes");
    check_refused("h100:4", ND_EINVAL, "'h100' is a GPU, not a cluster; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("x8xh100", ND_EINVAL,
                  "'x8xh100' does not start with a number of nodes; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("-1x8xh100", ND_EINVAL,
                  "'-1x8xh100' does not start with a number of nodes; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("1e9x8xh100", ND_EINVAL,
                  "'1e9x8xh100' does not start with a number of nodes; write NODESxGPUSxTYPE, like 2x8xh100");
    check_refused("quite-different", ND_ENOTFOUND,
                  "unknown cluster 'quite-different'; write NODESxGPUSxTYPE (2x8xh100), a cluster and a count "
                  "(p5.48xlarge:4) or a .json file; `ndplan list clusters` shows what is known");
    check_refused("dgx-h10", ND_ENOTFOUND,
                  "unknown cluster 'dgx-h10'; did you mean 'dgx-h100'? Otherwise write NODESxGPUSxTYPE (2x8xh100), a "
                  "cluster and a count (p5.48xlarge:4) or a .json file");
    check_refused("dgx-h10:2", ND_ENOTFOUND,
                  "unknown cluster 'dgx-h10'; did you mean 'dgx-h100'? Otherwise write NODESxGPUSxTYPE (2x8xh100), a "
                  "cluster and a count (p5.48xlarge:4) or a .json file");
    check_refused("64h100", ND_ENOTFOUND,
                  "unknown cluster '64h100'; did you mean '8x8xh100'? Otherwise write NODESxGPUSxTYPE (2x8xh100), a "
                  "cluster and a count (p5.48xlarge:4) or a .json file");
    check_refused("8H100", ND_ENOTFOUND,
                  "unknown cluster '8H100'; did you mean '8xh100'? Otherwise write NODESxGPUSxTYPE (2x8xh100), a "
                  "cluster and a count (p5.48xlarge:4) or a .json file");
    check_refused("", ND_EINVAL,
                  "empty cluster; write NODESxGPUSxTYPE (2x8xh100), a cluster and a count (p5.48xlarge:4) or a .json "
                  "file");
    check_refused(
        "local", ND_EUNSUPPORTED,
        "'local' needs the detection of this machine, which is not available yet; name the GPUs instead, like "
        "8xh100 (see nvidia-smi -L)");
    check_refused("nowhere.json", ND_EIO, "cannot read 'nowhere.json': No such file or directory");
}

static void hostile_text_is_refused_in_one_line(void)
{
    static char text[200000];
    static const char *const cases[] = {"2x8x\x01\x02", "\xff\xfe",   ":",         "::::",       "x",         "xx",
                                        "2xx",          "x2",         "-1x8xh100", "1e9x8xh100", "+2x8xh100", " ",
                                        "%s%n",         "2x8x%s%s%n", ".",         "..",         "/",         "//"};
    nd_cluster_spec cluster;
    nd_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CU_ASSERT_NOT_EQUAL(nd_cluster_load(cases[i], &cluster, &err), ND_OK);
        CU_ASSERT_PTR_NULL(strpbrk(err.message, "\n\x01"));
        CU_ASSERT_TRUE(strlen(err.message) > 10);
    }
    memset(text, '9', sizeof text - 1);
    CU_ASSERT_EQUAL(nd_cluster_load(text, &cluster, &err), ND_EINVAL);
    memset(text, 'h', 3000);
    text[3000] = '\0';
    CU_ASSERT_EQUAL(nd_cluster_load(text, &cluster, &err), ND_ENOTFOUND);
    CU_ASSERT_EQUAL(nd_cluster_load(NULL, &cluster, &err), ND_EINVAL);
}

static void resizing_builds_the_tiers_again(void)
{
    nd_cluster_spec one = loaded("dgx-h100");
    nd_cluster_spec many;
    nd_cluster_spec back;
    nd_error err;
    CU_ASSERT_EQUAL(one.tiers_count, 1);
    ND_ASSERT_OK(nd_cluster_resize(&one, 32, &many, &err));
    CU_ASSERT_EQUAL(many.gpus, 256);
    CU_ASSERT_EQUAL(many.tiers_count, 2);
    CU_ASSERT_STRING_EQUAL(many.name, "dgx-h100:32");
    CU_ASSERT_PTR_NULL(broken_invariant(&many));
    ND_ASSERT_OK(nd_cluster_resize(&many, 1, &back, &err));
    CU_ASSERT_STRING_EQUAL(back.name, "dgx-h100");
    CU_ASSERT_EQUAL(back.tiers_count, 1);
    nd_cluster_spec form = loaded("2x8xh100");
    ND_ASSERT_OK(nd_cluster_resize(&form, 4, &many, &err));
    CU_ASSERT_STRING_EQUAL(many.name, "4x8xh100");
    CU_ASSERT_EQUAL(nd_cluster_resize(&one, 0, &many, &err), ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.message, "nodes must be 1 to 65536, got 0");
    CU_ASSERT_EQUAL(nd_cluster_resize(&one, -5, &many, &err), ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(many.name, "4x8xh100");
}

static void a_path_reads_a_file(void)
{
    nd_cluster_spec cluster = loaded(ND_TEST_DATA "/site.json");
    CU_ASSERT_STRING_EQUAL(cluster.name, "site");
    CU_ASSERT_EQUAL(cluster.gpus, 32);
    if (chdir(ND_TEST_DATA) == 0) {
        CU_ASSERT_STRING_EQUAL(loaded("site.json").name, "site");
        CU_ASSERT_STRING_EQUAL(loaded("plain-name").name, "site"); /* a file without the ending */
    }
}

static void test_larger_nodes_than_usual_are_known_as_such(void)
{
    char usual[ND_CLUSTER_NAME_MAX];
    nd_cluster_spec cluster = loaded("32xh100");
    CU_ASSERT_TRUE(nd_cluster_in_usual_nodes(&cluster, usual));
    CU_ASSERT_STRING_EQUAL(usual, "4x8xh100");
    cluster = loaded("2x12xh100");
    CU_ASSERT_TRUE(nd_cluster_in_usual_nodes(&cluster, usual));
    CU_ASSERT_STRING_EQUAL(usual, "3x8xh100");
    cluster = loaded("4x8xh100");
    CU_ASSERT_FALSE(nd_cluster_in_usual_nodes(&cluster, usual));
    cluster = loaded("a2-megagpu-16g:2");
    CU_ASSERT_FALSE(nd_cluster_in_usual_nodes(&cluster, usual)); /* stated, not assumed */
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(short_forms_state_nodes_gpus_and_type),
        ND_TEST(one_gpu_is_a_cluster),
        ND_TEST(every_gpu_type_works_in_every_short_form),
        ND_TEST(nics_follow_the_gpus_of_the_node),
        ND_TEST(built_in_clusters_take_a_count),
        ND_TEST(a_part_of_a_node_is_the_node_with_fewer_gpus),
        ND_TEST(every_built_in_cluster_loads_alone_and_as_many_nodes),
        ND_TEST(bad_counts_are_refused),
        ND_TEST(bad_names_say_what_to_write),
        ND_TEST(hostile_text_is_refused_in_one_line),
        ND_TEST(resizing_builds_the_tiers_again),
        ND_TEST(a_path_reads_a_file),
        ND_TEST(test_larger_nodes_than_usual_are_known_as_such),
        {NULL, NULL},
    };
    return nd_test_main("topologies/cluster_spec", cases);
}
