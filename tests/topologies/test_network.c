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
    ND_ASSERT_REL(type->efficiency_frac, 0.93, 1e-12);
}

static void measured_networks_match_their_measurement(void)
{
    /* two hops per doubling: CSCS Alps 17.5 us; p5 from one node to two, 70.7 - 16.0 us */
    ND_ASSERT_REL(2.0 * nd_network_find("slingshot")->step_latency_s, 17.5e-6, 1e-12);
    ND_ASSERT_REL(2.0 * nd_network_find("efa-v2")->step_latency_s, 54.7e-6, 0.02);
    ND_ASSERT_REL(loaded("alcf-polaris:8").tiers[1].efficiency_frac, 0.73, 1e-12);
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
        ND_TEST(every_built_in_cluster_uses_a_known_type),
        {NULL, NULL},
    };
    return nd_test_main("topologies/network", cases);
}
