/* What the tests of this folder share. */
#ifndef ND_TESTS_TOPOLOGIES_TOPOLOGY_CHECK_H
#define ND_TESTS_TOPOLOGIES_TOPOLOGY_CHECK_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"
#include "topologies/cluster_spec.h"

/* What every accepted cluster must satisfy; returns the first thing that is wrong, or NULL. */
static inline const char *broken_invariant(const nd_cluster_spec *cluster)
{
    int64_t below = 0;
    if (cluster->gpus != cluster->nodes * cluster->gpus_per_node || cluster->gpus < 1) {
        return "gpus is not nodes x gpus_per_node";
    }
    if (cluster->tiers_count < 1 || cluster->tiers_count > ND_TIERS_MAX) {
        return "number of tiers";
    }
    for (int64_t i = 0; i < cluster->tiers_count; i++) {
        const nd_link_tier *tier = &cluster->tiers[i];
        if (tier->span_gpus <= below) {
            return "spans do not grow";
        }
        if (!(tier->bytes_per_s > 0.0) || !isfinite(tier->bytes_per_s)) {
            return "rate of a tier";
        }
        if (!(tier->efficiency_frac > 0.0) || tier->efficiency_frac > 1.0) {
            return "efficiency of a tier";
        }
        if (!(tier->step_latency_s >= 0.0) || !(tier->oversubscription >= 1.0)) {
            return "latency or oversubscription of a tier";
        }
        if (tier->source[0] == '\0') {
            return "a tier without a source";
        }
        below = tier->span_gpus;
    }
    return below == cluster->gpus ? NULL : "the last tier does not span the cluster";
}

/* Load what must load; a failure is reported and leaves a zeroed cluster. */
static inline nd_cluster_spec loaded(const char *text)
{
    nd_cluster_spec cluster;
    nd_error err;
    memset(&cluster, 0, sizeof cluster);
    ND_ASSERT_OK(nd_cluster_load(text, &cluster, &err));
    const char *broken = broken_invariant(&cluster);
    if (broken != NULL) {
        fprintf(stderr, "%s: %s\n", text, broken);
    }
    CU_ASSERT_PTR_NULL(broken);
    return cluster;
}

enum { UNTOUCHED = 0x5a };

/* Every byte is still the one that the test put there. */
static inline bool is_untouched(const void *object, size_t bytes)
{
    const unsigned char *byte = object;
    for (size_t i = 0; i < bytes; i++) {
        if (byte[i] != UNTOUCHED) {
            return false;
        }
    }
    return true;
}

/* A refusal: its status, its exact message, and outputs untouched. */
static inline void check_refused(const char *text, nd_status status, const char *message)
{
    nd_cluster_spec cluster;
    nd_error err;
    memset(&cluster, UNTOUCHED, sizeof cluster);
    err.message[0] = '\0';
    CU_ASSERT_EQUAL(nd_cluster_load(text, &cluster, &err), status);
    if (strcmp(err.message, message) != 0) {
        fprintf(stderr, "got:      %s\nexpected: %s\n", err.message, message);
        CU_FAIL("message");
    }
    CU_ASSERT_TRUE(is_untouched(&cluster, sizeof cluster));
    CU_ASSERT_EQUAL(nd_cluster_load(text, &cluster, NULL), status);
}

#endif
