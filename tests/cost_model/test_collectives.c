#include "cost_model/collectives.h"

#include <math.h>
#include <stdio.h>

#include "tests/cost_model/fixture.h"

static fixture one_node, ten_nodes, two_nodes, rack, pcie, ampere, blackwell;

static void test_the_fixtures_load(void)
{
    fixture_make(&one_node, "llama-3.1-8b", "1x8xh100", "ndplan", 8192, 64);
    fixture_make(&ten_nodes, "llama-3.1-8b", "10x8xh100", "ndplan", 8192, 80);
    fixture_make(&rack, "llama-3.1-8b", "gb200-nvl72:36", "ndplan", 8192, 144);
    fixture_make(&two_nodes, "llama-3.1-8b", "2x8xh100", "ndplan", 8192, 64);
    fixture_make(&ampere, "llama-3.1-8b", "2x8xa100", "ndplan", 8192, 64);
    fixture_make(&blackwell, "llama-3.1-8b", "1x8xb200", "ndplan", 8192, 64);
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

static double seconds_of(const fixture *f, nd_collective collective, int64_t ranks, int64_t stride, double bytes)
{
    nd_group_placement place = nd_group_place(&f->cluster, &f->calibration, (nd_group){ranks, stride});
    return nd_collective_s(&place, collective, bytes);
}

/* Measured bus bandwidth at 512 MiB on 8 H100 (GB/s): all-reduce 445, all-gather 336, reduce-scatter 335, all-to-all
 * 317 (NCCL 2.29 tables of ai-dynamo/aiconfigurator); B200 all-reduce 703. The fit's median error on large messages is
 * 2 to 4 %. */
static void test_nvlink_rates_match_the_measured_tables(void)
{
    double bytes = 512.0 * 1048576.0;
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 8, 1, bytes), 445e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_GATHER, 8, 1, bytes), 336e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_REDUCE_SCATTER, 8, 1, bytes), 335e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_TO_ALL, 8, 1, bytes), 317e9, 0.05);
    ND_ASSERT_REL(busbw(&blackwell, ND_ALL_REDUCE, 8, 1, bytes), 703e9, 0.07);
}

/* The same tables at 1 KiB and 1 MiB, all-reduce, in us: what tensor parallelism pays on short sequences. */
static void test_small_all_reduces_match_the_measured_tables(void)
{
    ND_ASSERT_REL(seconds_of(&one_node, ND_ALL_REDUCE, 2, 1, 1024.0), 6.1e-6, 0.15);
    ND_ASSERT_REL(seconds_of(&one_node, ND_ALL_REDUCE, 4, 1, 1024.0), 9.4e-6, 0.15);
    ND_ASSERT_REL(seconds_of(&one_node, ND_ALL_REDUCE, 8, 1, 1024.0), 15.6e-6, 0.15);
    ND_ASSERT_REL(seconds_of(&one_node, ND_ALL_REDUCE, 8, 1, 1048576.0), 25.4e-6, 0.15);
    ND_ASSERT_REL(seconds_of(&blackwell, ND_ALL_REDUCE, 8, 1, 1024.0), 25.2e-6, 0.15);
    ND_ASSERT_REL(seconds_of(&ampere, ND_ALL_REDUCE, 8, 1, 1024.0), 21.8e-6, 0.15);
}

/* stas00/ml-engineering, network (SHARP), 8 GiB on H200, GB/s: ring 363 on 4 GPUs, NVLS 414 on 5, 436 on 6, 473 on 8;
 * on B200 NVLS starts with 6. */
static void test_the_switch_reduces_with_enough_ranks(void)
{
    double bytes = 8589934592.0;
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 4, 1, bytes), 363e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 5, 1, bytes), 414e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 6, 1, bytes), 436e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_REDUCE, 8, 1, bytes), 473e9, 0.05);
    ND_ASSERT_REL(busbw(&one_node, ND_ALL_GATHER, 8, 1, bytes), 366e9, 0.05); /* nothing to reduce */
    double ring = 5.0 / (2.0 * 5.0 / 6.0);
    double six = busbw(&blackwell, ND_ALL_REDUCE, 6, 1, bytes) / busbw(&blackwell, ND_ALL_REDUCE, 5, 1, bytes);
    CU_ASSERT_TRUE(six > 1.05 && six < ring);
    CU_ASSERT_TRUE(busbw(&ampere, ND_ALL_REDUCE, 8, 1, bytes) < 240e9); /* no reduction in the switch */
}

/* Two nodes exchange halves: H100 with 3.2 Tb/s keeps NVLS (467 to 487), A100 with 1.6 Tb/s runs a tree (183.7 and
 * 189.6 on ALCF Sophia and OCI); ten nodes run a ring (345 on xxrjun's cluster). GB/s at 8 GiB. */
static void test_two_nodes_are_not_a_ring(void)
{
    double bytes = 8589934592.0;
    ND_ASSERT_REL(busbw(&two_nodes, ND_ALL_REDUCE, 16, 1, bytes), 477e9, 0.08);
    ND_ASSERT_REL(busbw(&ampere, ND_ALL_REDUCE, 16, 1, bytes), 187e9, 0.12);
    CU_ASSERT_TRUE(busbw(&ten_nodes, ND_ALL_REDUCE, 80, 1, bytes) < 371e9);
}

/* xxrjun/nccl-tests-cluster: 10 nodes of 8 H100 with 400 Gb/s NICs, GB/s at 1 GiB. Each GPU of a node owns one rail;
 * eight are bound by the NVLink ring. Training gets network_frac of the NICs. */
static void test_rails_multiply_the_network_rate(void)
{
    static fixture alone;
    double bytes = 1073741824.0;
    alone = ten_nodes;
    alone.calibration.network_frac = 1.0;
    ND_ASSERT_REL(busbw(&alone, ND_ALL_REDUCE, 10, 8, bytes), 48.6e9, 0.08);
    ND_ASSERT_REL(busbw(&alone, ND_ALL_REDUCE, 20, 4, bytes), 97.7e9, 0.08);
    ND_ASSERT_REL(busbw(&alone, ND_ALL_REDUCE, 40, 2, bytes), 195.2e9, 0.12);
    ND_ASSERT_REL(busbw(&alone, ND_ALL_REDUCE, 80, 1, bytes), 344.9e9, 0.15);
    ND_ASSERT_REL(busbw(&alone, ND_ALL_TO_ALL, 80, 1, bytes), 50.1e9, 0.08);
    ND_ASSERT_REL(busbw(&alone, ND_ALL_GATHER, 10, 8, bytes), 46.9e9, 0.08);
}

/* What a network adds to a small all-reduce on two nodes: awslabs measured 161 us on p4de and 69 on p5. */
static void test_each_network_has_its_latency(void)
{
    static fixture p4de, p5;
    fixture_make(&p4de, "llama-3.1-8b", "p4de.24xlarge:2", "ndplan", 8192, 64);
    fixture_make(&p5, "llama-3.1-8b", "p5.48xlarge:2", "ndplan", 8192, 64);
    ND_ASSERT_REL(seconds_of(&p4de, ND_ALL_REDUCE, 16, 1, 512.0), 162.3e-6, 0.10);
    ND_ASSERT_REL(seconds_of(&p5, ND_ALL_REDUCE, 16, 1, 512.0), 69.5e-6, 0.20);
    CU_ASSERT_TRUE(seconds_of(&two_nodes, ND_ALL_REDUCE, 16, 1, 512.0) < 60e-6); /* InfiniBand */
}

/* argonne-lcf/alcf-nccl-tests: small all-gathers on 32, 1024 and 2160 GPUs take 155, 8,100 and 17,200 us: every rank
 * adds its hop; trees do not (small all-reduces 55, 141 and 227 us). */
static void test_rings_are_linear_and_trees_logarithmic(void)
{
    static fixture polaris;
    const int64_t nodes[] = {8, 256, 540};
    const double gather[] = {155e-6, 8.1e-3, 17.2e-3};
    const double reduce[] = {55e-6, 141e-6, 227e-6};
    for (int i = 0; i < 3; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "alcf-polaris:%lld", (long long)nodes[i]);
        fixture_make(&polaris, "llama-3.1-8b", name, "ndplan", 8192, 64);
        ND_ASSERT_REL(seconds_of(&polaris, ND_ALL_GATHER, 4 * nodes[i], 1, 1024.0), gather[i], 0.35);
        ND_ASSERT_REL(seconds_of(&polaris, ND_ALL_REDUCE, 4 * nodes[i], 1, 8.0), reduce[i], 0.35);
    }
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

/* Traffic between host bridges is slower: 8 x RTX PRO 6000 reach 24.7 GB/s, two behind one bridge 38.6
 * (ai-dynamo/aiconfigurator). */
static void test_pcie_pairs_are_faster_than_the_server(void)
{
    static fixture server;
    double bytes = 512.0 * 1048576.0;
    fixture_make(&server, "llama-3.1-8b", "server-8xrtx-pro-6000", "ndplan", 8192, 64);
    ND_ASSERT_REL(busbw(&server, ND_ALL_REDUCE, 2, 1, bytes), 38.6e9, 0.05);
    ND_ASSERT_REL(busbw(&server, ND_ALL_REDUCE, 8, 1, bytes), 24.7e9, 0.05);
    ND_ASSERT_REL(busbw(&server, ND_ALL_TO_ALL, 8, 1, bytes), 18.4e9, 0.15);
    ND_ASSERT_REL(seconds_of(&server, ND_ALL_REDUCE, 8, 1, 512.0), 24.6e-6, 0.15);
}

/* A pair with a bridge is fast, three GPUs are not: NVIDIA/nccl-tests issue 178 measures 208 and 20 GB/s on A100. */
static void test_a_bridge_helps_its_pair_only(void)
{
    static fixture pairs;
    fixture_make(&pairs, "llama-3.1-8b", "server-8xa100-pcie-pairs", "ndplan", 8192, 64);
    CU_ASSERT_TRUE(busbw(&pairs, ND_ALL_REDUCE, 2, 1, 1e9) > 150e9);
    CU_ASSERT_TRUE(busbw(&pairs, ND_ALL_REDUCE, 4, 1, 1e9) < 40e9);
}

/* Steps as fine as a part in a thousand, across every switch of algorithm, on groups of every kind. */
static void test_time_never_falls_as_bytes_grow(void)
{
    static fixture alps, polaris;
    fixture_make(&alps, "llama-3.1-8b", "cscs-alps:64", "ndplan", 8192, 64);
    fixture_make(&polaris, "llama-3.1-8b", "alcf-polaris:8", "ndplan", 8192, 64);
    const fixture *all[] = {&one_node, &ten_nodes, &two_nodes, &rack, &pcie, &ampere, &alps, &polaris};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int64_t ranks = 2; ranks <= all[i]->cluster.gpus; ranks *= 2) {
            nd_group_placement place = nd_group_place(&all[i]->cluster, &all[i]->calibration, (nd_group){ranks, 1});
            for (int c = 0; c < ND_COLLECTIVE_COUNT; c++) {
                double last = 0.0;
                int64_t falls = 0;
                for (double bytes = 1.0; bytes < 1e11; bytes *= 1.001) {
                    double seconds = nd_collective_s(&place, (nd_collective)c, bytes);
                    falls += !(seconds >= last) || !isfinite(seconds);
                    last = seconds;
                }
                CU_ASSERT_EQUAL(falls, 0);
            }
        }
    }
}

/* CSCS Alps stays with the tree until NCCL's own estimate favours the ring: on 64 nodes 512 MiB take 23.9 ms (45 GB/s)
 * and 1 GiB 24.6 ms (87 GB/s), 4 GiB reach 92 GB/s. */
static void test_large_all_reduces_leave_the_tree(void)
{
    static fixture alps;
    fixture_make(&alps, "llama-3.1-8b", "cscs-alps:64", "ndplan", 8192, 64);
    alps.calibration.network_frac = 1.0;
    double small = busbw(&alps, ND_ALL_REDUCE, 256, 1, 268435456.0);
    double large = busbw(&alps, ND_ALL_REDUCE, 256, 1, 4294967296.0);
    ND_ASSERT_REL(large, 92.2e9, 0.15);
    CU_ASSERT_TRUE(small < 0.75 * large);
}

static void test_time_grows_with_domains(void)
{
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
        ND_TEST(test_small_all_reduces_match_the_measured_tables),
        ND_TEST(test_the_switch_reduces_with_enough_ranks),
        ND_TEST(test_two_nodes_are_not_a_ring),
        ND_TEST(test_rails_multiply_the_network_rate),
        ND_TEST(test_each_network_has_its_latency),
        ND_TEST(test_rings_are_linear_and_trees_logarithmic),
        ND_TEST(test_a_rack_of_72_is_one_nvlink_domain),
        ND_TEST(test_a_pair_in_a_mesh_sees_its_own_link_only),
        ND_TEST(test_pcie_is_an_order_slower_than_nvlink),
        ND_TEST(test_pcie_pairs_are_faster_than_the_server),
        ND_TEST(test_a_bridge_helps_its_pair_only),
        ND_TEST(test_time_never_falls_as_bytes_grow),
        ND_TEST(test_large_all_reduces_leave_the_tree),
        ND_TEST(test_time_grows_with_domains),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/collectives", cases);
}
