#include "cost_model/collectives.h"

#include "tests/cost_model/fixture.h"

static fixture one_node, ten_nodes, rack, pcie;

static void test_the_fixtures_load(void)
{
    fixture_make(&one_node, "llama-3.1-8b", "1x8xh100", "ndplan", 8192, 64);
    fixture_make(&ten_nodes, "llama-3.1-8b", "10x8xh100", "ndplan", 8192, 80);
    fixture_make(&rack, "llama-3.1-8b", "gb200-nvl72:36", "ndplan", 8192, 144);
    fixture_make(&pcie, "llama-3.1-8b", "1x8xl40s", "ndplan", 8192, 64);
}

static double busbw(const fixture *f, nd_collective collective, int64_t ranks, int64_t stride, double bytes)
{
    nd_group_placement place = nd_group_place(&f->cluster, &f->calibration, (nd_group){ranks, stride});
    double seconds = nd_collective_s(&place, collective, bytes);
    return bytes * nd_collective_factor(collective, ranks) / seconds;
}

static void test_factors_are_those_of_the_algorithms(void)
{
    ND_ASSERT_REL(nd_collective_factor(ND_ALL_REDUCE, 8), 2.0 * 7.0 / 8.0, 1e-15);
    ND_ASSERT_REL(nd_collective_factor(ND_ALL_GATHER, 8), 7.0 / 8.0, 1e-15);
    ND_ASSERT_REL(nd_collective_factor(ND_SEND_RECV, 2), 1.0, 1e-15);
}

static void test_one_rank_costs_nothing(void)
{
    nd_group_placement place = nd_group_place(&one_node.cluster, &one_node.calibration, (nd_group){1, 1});
    CU_ASSERT_EQUAL(nd_collective_s(&place, ND_ALL_REDUCE, 1e9), 0.0);
}

/* Measured bus bandwidth at 512 MiB on 8 H100 (GB/s): all-reduce 445, all-gather 336, reduce-scatter 335, all-to-all
 * 317 (NCCL 2.29 tables of ai-dynamo/aiconfigurator). The fit's p90 error on large messages is 10 %. */
static void test_nvlink_rates_match_the_measured_tables(void)
{
    double bytes = 512.0 * 1048576.0;
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 8, 1, bytes), 445e9, 0.10);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_GATHER, 8, 1, bytes), 336e9, 0.10);
    ND_ASSERT_REL(busbw(&one_node, ND_REDUCE_SCATTER, 8, 1, bytes), 335e9, 0.10);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_TO_ALL, 8, 1, bytes), 317e9, 0.10);
}

/* xxrjun/nccl-tests-cluster: 10 nodes of 8 H100 with 400 Gb/s NICs, GB/s. One GPU a node owns one rail; all eight are
 * bound by the NVLink ring. 15 %: networks of one kind differ that much. */
static void test_rails_multiply_the_network_rate(void)
{
    double bytes = 1e9;
    ND_ASSERT_REL(busbw(&ten_nodes, ND_ALL_REDUCE, 10, 8, bytes), 48.9e9, 0.15);
    ND_ASSERT_REL(busbw(&ten_nodes, ND_ALL_REDUCE, 80, 1, 8.0 * bytes), 344.9e9, 0.15);
    ND_ASSERT_REL(busbw(&ten_nodes, ND_ALL_TO_ALL, 80, 1, bytes), 50.5e9, 0.15);
}

static void test_a_rack_of_72_is_one_nvlink_domain(void)
{
    nd_group_placement place = nd_group_place(&rack.cluster, &rack.calibration, (nd_group){72, 1});
    CU_ASSERT_EQUAL(place.domains, 1);
    place = nd_group_place(&rack.cluster, &rack.calibration, (nd_group){144, 1});
    CU_ASSERT_EQUAL(place.domains, 2);
}

/* Links of a full mesh are per pair: two of four ranks use one of a GPU's three links. */
static void test_a_pair_in_a_mesh_sees_its_own_link_only(void)
{
    static fixture mesh;
    fixture_make(&mesh, "llama-3.1-8b", "cscs-alps:2", "ndplan", 8192, 64);
    CU_ASSERT_EQUAL(mesh.cluster.tiers[0].kind, ND_TIER_MESH);
    nd_group_placement pair = nd_group_place(&mesh.cluster, &mesh.calibration, (nd_group){2, 1});
    nd_group_placement all = nd_group_place(&mesh.cluster, &mesh.calibration, (nd_group){4, 1});
    ND_ASSERT_REL(nd_collective_rate(&pair, ND_ALL_GATHER), nd_collective_rate(&all, ND_ALL_GATHER) / 3.0, 1e-12);
}

static void test_pcie_is_an_order_slower_than_nvlink(void)
{
    double bytes = 256e6;
    CU_ASSERT_TRUE(busbw(&pcie, ND_ALL_REDUCE, 8, 1, bytes) < busbw(&one_node, ND_ALL_REDUCE, 8, 1, bytes) / 5.0);
}

static void test_time_grows_with_bytes_and_with_domains(void)
{
    for (int c = 0; c < ND_COLLECTIVE_COUNT; c++) {
        double last = 0.0;
        nd_group_placement place = nd_group_place(&ten_nodes.cluster, &ten_nodes.calibration, (nd_group){16, 1});
        for (double bytes = 1024.0; bytes < 1e10; bytes *= 4.0) {
            double seconds = nd_collective_s(&place, (nd_collective)c, bytes);
            CU_ASSERT_TRUE(seconds > last);
            last = seconds;
        }
    }
    nd_group_placement two = nd_group_place(&ten_nodes.cluster, &ten_nodes.calibration, (nd_group){2, 8});
    nd_group_placement ten = nd_group_place(&ten_nodes.cluster, &ten_nodes.calibration, (nd_group){10, 8});
    CU_ASSERT_TRUE(nd_collective_s(&ten, ND_ALL_GATHER, 1e8) > nd_collective_s(&two, ND_ALL_GATHER, 1e8));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_fixtures_load),
        ND_TEST(test_factors_are_those_of_the_algorithms),
        ND_TEST(test_one_rank_costs_nothing),
        ND_TEST(test_nvlink_rates_match_the_measured_tables),
        ND_TEST(test_rails_multiply_the_network_rate),
        ND_TEST(test_a_rack_of_72_is_one_nvlink_domain),
        ND_TEST(test_a_pair_in_a_mesh_sees_its_own_link_only),
        ND_TEST(test_pcie_is_an_order_slower_than_nvlink),
        ND_TEST(test_time_grows_with_bytes_and_with_domains),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/collectives", cases);
}
