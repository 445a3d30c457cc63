#include "tests/topologies/topology_check.h"

static void check_tier(const nd_cluster_spec *cluster, int64_t index, nd_tier_kind kind, int64_t span,
                       double bytes_per_s)
{
    CU_ASSERT_TRUE_FATAL(index < cluster->tiers_count);
    const nd_link_tier *tier = &cluster->tiers[index];
    CU_ASSERT_EQUAL(tier->kind, kind);
    CU_ASSERT_EQUAL(tier->span_gpus, span);
    ND_ASSERT_REL(tier->bytes_per_s, bytes_per_s, 1e-9);
}

static void an_hgx_cluster_has_nvlink_and_one_rail_per_gpu(void)
{
    nd_cluster_spec cluster = loaded("2x8xh100");
    CU_ASSERT_EQUAL(cluster.tiers_count, 2);
    check_tier(&cluster, 0, ND_TIER_NVLINK, 8, 450e9);
    check_tier(&cluster, 1, ND_TIER_NETWORK, 16, 50e9);
    ND_ASSERT_REL(cluster.tiers[1].efficiency_frac, 0.98, 1e-12);
    nd_cluster_spec p4d = loaded("p4d.24xlarge:2");
    check_tier(&p4d, 1, ND_TIER_NETWORK, 16, 6.25e9); /* 4 x 100 Gb/s for 8 GPUs */
}

static void a_rack_is_one_nvlink_domain(void)
{
    nd_cluster_spec part = loaded("4x4xgb200");
    CU_ASSERT_EQUAL(part.tiers_count, 1);
    CU_ASSERT_EQUAL(part.nvlink_domain, 16);
    nd_cluster_spec rack = loaded("gb200-nvl72:18");
    CU_ASSERT_EQUAL(rack.tiers_count, 1);
    check_tier(&rack, 0, ND_TIER_NVLINK, 72, 900e9);
    nd_cluster_spec two = loaded("36x4xgb200");
    CU_ASSERT_EQUAL(two.nvlink_domain, 72);
    check_tier(&two, 1, ND_TIER_NETWORK, 144, 50e9);
}

static void racks_are_used_evenly_when_that_is_cheap(void)
{
    nd_cluster_spec cluster = loaded("32x4xgb200");
    check_tier(&cluster, 0, ND_TIER_NVLINK, 64, 900e9);
    ND_ASSERT_CONTAINS(cluster.note, "racks used evenly: 64 of 72 GPUs each");
    CU_ASSERT_EQUAL(loaded("256x4xgb200").nvlink_domain, 64); /* 16 racks instead of 15 */
    CU_ASSERT_EQUAL(loaded("100x4xgb200").nvlink_domain, 72); /* 10 racks instead of 6: too many */
    CU_ASSERT_EQUAL(loaded("19x4xgb200").nvlink_domain, 72);  /* a prime number of nodes */
}

static void nvlink_does_not_leave_an_hgx_node(void)
{
    nd_cluster_spec cluster = loaded("4x1xh100");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 1);
    CU_ASSERT_EQUAL(cluster.tiers_count, 1);
    check_tier(&cluster, 0, ND_TIER_NETWORK, 4, 50e9);
    nd_cluster_spec half = loaded("2x4xh100");
    check_tier(&half, 0, ND_TIER_NVLINK, 4, 450e9);
    check_tier(&half, 1, ND_TIER_NETWORK, 8, 50e9);
}

static void domains_nest_in_odd_nodes(void)
{
    nd_cluster_spec cluster = loaded("2x12xh100");
    check_tier(&cluster, 0, ND_TIER_NVLINK, 6, 450e9);
    CU_ASSERT_EQUAL(cluster.tiers[1].kind, ND_TIER_PCIE);
    CU_ASSERT_EQUAL(cluster.tiers[1].span_gpus, 12);
    ND_ASSERT_CONTAINS(cluster.note, "12 GPUs per node: links join 6 of them");
    CU_ASSERT_EQUAL(loaded("3x7xh100").nvlink_domain, 7);
    CU_ASSERT_EQUAL(loaded("1x11xh100").nvlink_domain, 1);
}

static void pcie_servers_have_host_bridges(void)
{
    nd_cluster_spec cluster = loaded("2x8xl4");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 1);
    CU_ASSERT_EQUAL(cluster.tiers_count, 3);
    check_tier(&cluster, 0, ND_TIER_PCIE, 4, 31.5e9);
    check_tier(&cluster, 1, ND_TIER_PCIE, 8, 4e9); /* 16 GB/s between bridges, shared by 4 */
    check_tier(&cluster, 2, ND_TIER_NETWORK, 16, 12.5e9 / 8.0);
    ND_ASSERT_REL(cluster.tiers[0].efficiency_frac, 0.76, 1e-12); /* 24 of 31.5 */
    ND_ASSERT_REL(cluster.tiers[1].efficiency_frac, 1.0, 1e-12);
}

static void without_peer_access_pcie_is_half_as_fast(void)
{
    nd_cluster_spec cluster = loaded("server-8x4090");
    check_tier(&cluster, 0, ND_TIER_PCIE, 4, 31.5e9);
    ND_ASSERT_REL(cluster.tiers[0].efficiency_frac, 0.38, 1e-12);
    check_tier(&cluster, 1, ND_TIER_PCIE, 8, 2.5e9);
}

static void bridges_join_pairs_over_pcie(void)
{
    nd_cluster_spec cluster = loaded("8xa100-pcie");
    CU_ASSERT_EQUAL(cluster.nvlink_domain, 2);
    CU_ASSERT_EQUAL(cluster.tiers_count, 3);
    check_tier(&cluster, 0, ND_TIER_NVLINK_BRIDGE, 2, 300e9);
    check_tier(&cluster, 1, ND_TIER_PCIE, 4, 15.75e9); /* a ring leaves the pair through one of the two */
    check_tier(&cluster, 2, ND_TIER_PCIE, 8, 4e9);
    nd_cluster_spec pair = loaded("workstation-2x3090");
    CU_ASSERT_EQUAL(pair.tiers_count, 1);
    check_tier(&pair, 0, ND_TIER_NVLINK_BRIDGE, 2, 56.25e9);
}

static void direct_links_are_a_mesh(void)
{
    nd_cluster_spec amd = loaded("8xmi300x");
    check_tier(&amd, 0, ND_TIER_XGMI, 8, 448e9);
    nd_cluster_spec alps = loaded("cscs-alps:2");
    check_tier(&alps, 0, ND_TIER_MESH, 4, 450e9);
    nd_cluster_spec gaudi = loaded("server-8xgaudi2");
    check_tier(&gaudi, 0, ND_TIER_MESH, 8, 262.5e9); /* 21 of 24 ports */
}

static void large_clusters_reach_the_spine(void)
{
    nd_cluster_spec small = loaded("cscs-alps:256");
    CU_ASSERT_EQUAL(small.tiers_count, 2);
    nd_cluster_spec large = loaded("cscs-alps:512");
    CU_ASSERT_EQUAL(large.tiers_count, 3);
    check_tier(&large, 1, ND_TIER_NETWORK, 1024, 25e9);
    check_tier(&large, 2, ND_TIER_SPINE, 2048, 25e9);
    ND_ASSERT_REL(large.tiers[2].oversubscription, 1.9, 1e-12);
    ND_ASSERT_REL(large.tiers[1].oversubscription, 1.0, 1e-12);
}

static void leaves_hold_whole_racks(void)
{
    static const char text[] = "{\"gpu\":\"gb200\",\"gpus_per_node\":4,\"nodes\":72,\"network\":{\"nodes_per_leaf\":40,"
                               "\"oversubscription\":2}}";
    nd_cluster_spec cluster;
    nd_error err;
    ND_ASSERT_OK(nd_cluster_parse(text, strlen(text), "t.json", &cluster, &err));
    check_tier(&cluster, 0, ND_TIER_NVLINK, 72, 900e9);
    check_tier(&cluster, 1, ND_TIER_NETWORK, 144, 50e9); /* 160 would split a rack */
    check_tier(&cluster, 2, ND_TIER_SPINE, 288, 50e9);
}

static void steps_depend_on_the_generation(void)
{
    ND_ASSERT_REL(loaded("8xa100").tiers[0].step_latency_s, 1.0e-6, 1e-12);
    ND_ASSERT_REL(loaded("8xh200").tiers[0].step_latency_s, 0.9e-6, 1e-12);
    ND_ASSERT_REL(loaded("8xb300").tiers[0].step_latency_s, 1.4e-6, 1e-12);
}

static void kinds_have_names(void)
{
    CU_ASSERT_STRING_EQUAL(nd_tier_kind_name(ND_TIER_NVLINK_BRIDGE), "nvlink-bridge");
    CU_ASSERT_STRING_EQUAL(nd_tier_kind_name(ND_TIER_SPINE), "spine");
    CU_ASSERT_STRING_EQUAL(nd_tier_kind_name(ND_TIER_KIND_COUNT), "unknown");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(an_hgx_cluster_has_nvlink_and_one_rail_per_gpu),
        ND_TEST(a_rack_is_one_nvlink_domain),
        ND_TEST(racks_are_used_evenly_when_that_is_cheap),
        ND_TEST(nvlink_does_not_leave_an_hgx_node),
        ND_TEST(domains_nest_in_odd_nodes),
        ND_TEST(pcie_servers_have_host_bridges),
        ND_TEST(without_peer_access_pcie_is_half_as_fast),
        ND_TEST(bridges_join_pairs_over_pcie),
        ND_TEST(direct_links_are_a_mesh),
        ND_TEST(large_clusters_reach_the_spine),
        ND_TEST(leaves_hold_whole_racks),
        ND_TEST(steps_depend_on_the_generation),
        ND_TEST(kinds_have_names),
        {NULL, NULL},
    };
    return nd_test_main("topologies/tiers", cases);
}
