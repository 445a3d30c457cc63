#include <string.h>

#include "tests/topologies/topology_check.h"
#include "topologies/cluster_internal.h"

static void every_type_has_sane_figures_and_a_source(void)
{
    size_t count = 0;
    for (const nd_network_type *type = nd_network_types(); type->name != NULL; type++) {
        CU_ASSERT_TRUE(type->efficiency_frac >= 0.5 && type->efficiency_frac <= 1.0);
        CU_ASSERT_TRUE(type->step_latency_s >= 1e-6 && type->step_latency_s < 1e-3);
        CU_ASSERT_TRUE(strlen(type->source) > 8 && strlen(type->source) < 128);
        CU_ASSERT_PTR_EQUAL(nd_network_find(type->name), type);
        count++;
    }
    CU_ASSERT_TRUE(count >= 14);
    CU_ASSERT_PTR_NULL(nd_network_find("token-ring"));
}

static void infiniband_costs_what_nccl_says(void)
{
    const nd_network_type *type = nd_network_find("ib-ndr");
    ND_ASSERT_REL(2.0 * type->step_latency_s, 10e-6, 1e-12); /* tree: two hops of 5.0 us per doubling */
    ND_ASSERT_REL(type->efficiency_frac, 0.98, 1e-12); /* xxrjun/nccl-tests-cluster: 48.9 of 50, 98.3 of 100 GB/s */
}

static void measured_networks_match_their_measurement(void)
{
    /* two hops per doubling: CSCS Alps 17.5 us; p5 from one node to two, 70.7 - 16.0 us; p4de 161 - 22 us */
    ND_ASSERT_REL(2.0 * nd_network_find("slingshot")->step_latency_s, 17.5e-6, 0.10);
    ND_ASSERT_REL(2.0 * nd_network_find("efa-v2")->step_latency_s, 54.7e-6, 0.15);
    ND_ASSERT_REL(2.0 * nd_network_find("efa-v1")->step_latency_s, 139e-6, 0.05);
    ND_ASSERT_REL(loaded("alcf-polaris:8").tiers[1].efficiency_frac, 0.73, 1e-12);
}

static void every_type_prices_rings_exchanges_and_sends(void)
{
    for (const nd_network_type *type = nd_network_types(); type->name != NULL; type++) {
        const nd_tier_costs *costs = &type->costs;
        CU_ASSERT_TRUE(costs->ring_step_s >= type->step_latency_s); /* a ring hop is no faster than a tree's */
        CU_ASSERT_TRUE(costs->large_step_s > 0.0 && costs->large_step_s < 1e-3);
        CU_ASSERT_TRUE(costs->ring_loss_frac > 0.0 && costs->tree_ramp_s > 0.0 && costs->peer_s > 0.0);
        CU_ASSERT_TRUE(costs->exchange_frac > 0.3 && costs->exchange_frac <= 1.0);
        CU_ASSERT_TRUE(costs->send_frac > 0.3 && costs->send_frac <= 1.0);
    }
}

/* A file that states one hop's latency moves the other hops with it. */
static void a_stated_latency_scales_all_hops(void)
{
    nd_cluster_spec stated;
    nd_error err = {.message = ""};
    static const char text[] = "{\"gpu\": \"h100\", \"nodes\": 2, \"gpus_per_node\": 8, \"network\": {\"type\": "
                               "\"ib-ndr\", \"nics_per_node\": 8, \"nic_bytes_per_s\": 50000000000, "
                               "\"step_latency_s\": 10e-6, \"source\": \"measured here\"}}";
    ND_ASSERT_OK(nd_cluster_parse(text, sizeof text - 1, "x.json", &stated, &err));
    const nd_network_type *type = nd_network_find("ib-ndr");
    ND_ASSERT_REL(stated.tiers[1].step_latency_s, 2.0 * type->step_latency_s, 1e-12);
    ND_ASSERT_REL(stated.tiers[1].costs.ring_step_s, 2.0 * type->costs.ring_step_s, 1e-12);
    ND_ASSERT_REL(stated.tiers[1].costs.large_step_s, 2.0 * type->costs.large_step_s, 1e-12);
    ND_ASSERT_REL(stated.tiers[1].costs.exchange_frac, type->costs.exchange_frac, 1e-12);
}

static void every_built_in_cluster_uses_a_known_type(void)
{
    for (size_t i = 0; i < nd_cluster_builtin_count(); i++) {
        CU_ASSERT_PTR_NOT_NULL(nd_network_find(loaded(nd_cluster_builtin_name(i)).network));
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(every_type_has_sane_figures_and_a_source),
        ND_TEST(infiniband_costs_what_nccl_says),
        ND_TEST(measured_networks_match_their_measurement),
        ND_TEST(every_type_prices_rings_exchanges_and_sends),
        ND_TEST(a_stated_latency_scales_all_hops),
        ND_TEST(every_built_in_cluster_uses_a_known_type),
        {NULL, NULL},
    };
    return nd_test_main("topologies/network", cases);
}
