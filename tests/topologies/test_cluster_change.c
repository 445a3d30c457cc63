/* What-ifs of a cluster keep everything but what was asked for. */
#include "tests/topologies/topology_check.h"

static nd_cluster_spec load(const char *text)
{
    nd_error err;
    nd_cluster_spec cluster;
    memset(&cluster, 0, sizeof cluster);
    ND_ASSERT_OK(nd_cluster_load(text, &cluster, &err));
    return cluster;
}

static void test_gpus_are_whole_nodes_or_a_part_of_one(void)
{
    nd_error err;
    nd_cluster_spec out;
    nd_cluster_spec base = load("2x8xh100");
    ND_ASSERT_OK(nd_cluster_resize_gpus(&base, 40, &out, &err));
    CU_ASSERT_STRING_EQUAL(out.name, "5x8xh100");
    CU_ASSERT_PTR_NULL(broken_invariant(&out));
    ND_ASSERT_OK(nd_cluster_resize_gpus(&base, 4, &out, &err));
    CU_ASSERT_STRING_EQUAL(out.name, "4xh100");
    CU_ASSERT_EQUAL(out.gpus, 4);
    CU_ASSERT_EQUAL(out.nvlink_domain, 4);
    CU_ASSERT_EQUAL(out.host_memory_bytes, base.host_memory_bytes / 2);
    CU_ASSERT_PTR_NULL(broken_invariant(&out));
    ND_ASSERT_OK(nd_cluster_resize_gpus(&base, 1, &out, &err));
    CU_ASSERT_EQUAL(out.gpus, 1);
    CU_ASSERT_PTR_NULL(broken_invariant(&out));
    base = load("p5.48xlarge:2");
    ND_ASSERT_OK(nd_cluster_resize_gpus(&base, 2, &out, &err));
    CU_ASSERT_STRING_EQUAL(out.name, "p5.48xlarge, 2 of 8 GPUs");
}

static void test_other_counts_name_their_neighbours(void)
{
    nd_error err;
    nd_cluster_spec out;
    nd_cluster_spec base = load("2x8xh100");
    CU_ASSERT_EQUAL(nd_cluster_resize_gpus(&base, 3, &out, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nearest: 2 or 4");
    CU_ASSERT_EQUAL(nd_cluster_resize_gpus(&base, 6, &out, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nearest: 4 or 8");
    CU_ASSERT_EQUAL(nd_cluster_resize_gpus(&base, 20, &out, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nearest: 16 or 24");
    CU_ASSERT_EQUAL(nd_cluster_resize_gpus(&base, 0, &out, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_cluster_resize_gpus(&base, INT64_MAX, &out, &err), ND_EINVAL);
}

static void test_nics_change_the_network_alone(void)
{
    nd_error err;
    nd_cluster_spec out;
    nd_cluster_spec base = load("2x8xh100");
    ND_ASSERT_OK(nd_cluster_with_nics(&base, 12.5e9, &out, &err)); /* one NIC of 100 Gb/s for the node */
    ND_ASSERT_REL(out.nic_bytes_per_s, 12.5e9, 1e-12);
    CU_ASSERT_EQUAL_FATAL(out.tiers_count, base.tiers_count);
    ND_ASSERT_REL(out.tiers[1].bytes_per_s, 12.5e9 / 8.0, 1e-12);
    CU_ASSERT_EQUAL(memcmp(&out.tiers[0], &base.tiers[0], sizeof out.tiers[0]), 0);
    nd_cluster_spec single = load("8xh100");
    CU_ASSERT_EQUAL(nd_cluster_with_nics(&single, 12.5e9, &out, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nothing crosses a network");
    CU_ASSERT_EQUAL(nd_cluster_with_nics(&base, 0.0, &out, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_cluster_with_nics(&base, (double)NAN, &out, &err), ND_EINVAL);
}

static void test_link_domains_divide_or_hold_nodes(void)
{
    nd_error err;
    nd_cluster_spec out;
    nd_cluster_spec base = load("9x8xh100");
    ND_ASSERT_OK(nd_cluster_with_link_domain(&base, 4, &out, &err));
    CU_ASSERT_EQUAL(out.nvlink_domain, 4);
    ND_ASSERT_OK(nd_cluster_with_link_domain(&base, 72, &out, &err));
    CU_ASSERT_EQUAL(out.nvlink_domain, 72);
    CU_ASSERT_EQUAL(out.tiers_count, 1);
    CU_ASSERT_PTR_NULL(broken_invariant(&out));
    ND_ASSERT_OK(nd_cluster_with_link_domain(&base, 8, &out, &err));
    CU_ASSERT_EQUAL(memcmp(out.tiers, base.tiers, sizeof out.tiers), 0);
    CU_ASSERT_EQUAL(nd_cluster_with_link_domain(&base, 3, &out, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_cluster_with_link_domain(&base, 12, &out, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_cluster_with_link_domain(&base, 0, &out, &err), ND_EINVAL);
    nd_cluster_spec pcie = load("2x8xl40s");
    CU_ASSERT_EQUAL(nd_cluster_with_link_domain(&pcie, 8, &out, &err), ND_EINVAL);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_gpus_are_whole_nodes_or_a_part_of_one),
        ND_TEST(test_other_counts_name_their_neighbours),
        ND_TEST(test_nics_change_the_network_alone),
        ND_TEST(test_link_domains_divide_or_hold_nodes),
        {NULL, NULL},
    };
    return nd_test_main("topologies/cluster_change", cases);
}
