#include <string.h>

#include "topologies/cluster_internal.h"

/* Part of the NIC rate that large messages reach; one hop of a small all-reduce, which makes two per doubling of the
 * nodes; then, as in nd_tier_costs: hops of small and of large rings, their loss, the ramp of trees, a peer of an
 * all-to-all, and what all-to-all and send-recv reach of the ring's rate. Fits: docs/MODEL.md, "Collectives". Where
 * only trees were measured, ring hops are 2.5 tree hops, as on Slingshot, and the ramp is 5.5, as on EFA; the loss
 * is RoCE's, and the last three are InfiniBand's (10 us a peer behind a plug-in, as Slingshot's 11.8). */
static const nd_network_type network_types[] = {
    {"ib-hdr",
     0.98,
     5e-6,
     {0.0, 12.5e-6, 12e-6, 5.0, 40e-6, 3.4e-6, 0.95, 0.9},
     "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; the rest: xxrjun/nccl-tests-cluster, hop of small rings own "
     "scaling"},
    {"ib-ndr",
     0.98,
     5e-6,
     {0.0, 12.5e-6, 12e-6, 5.0, 40e-6, 3.4e-6, 0.95, 0.9},
     "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; the rest: xxrjun/nccl-tests-cluster, hop of small rings own "
     "scaling"},
    {"ib-xdr",
     0.98,
     5e-6,
     {0.0, 12.5e-6, 12e-6, 5.0, 40e-6, 3.4e-6, 0.95, 0.9},
     "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; the rest as NDR, own assumption"},
    {"ib",
     0.98,
     5e-6,
     {0.0, 12.5e-6, 12e-6, 5.0, 40e-6, 3.4e-6, 0.95, 0.9},
     "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; the rest as NDR"},
    {"roce",
     0.93,
     8e-6,
     {0.0, 19.5e-6, 22e-6, 5.0, 75e-6, 3.4e-6, 0.95, 0.9},
     "GCP a3-ultra, a4 (fit); OCI A100 0.95, MI300X 0.90 of NIC rate; tree hop: ring hop / 2.5, own scaling"},
    {"efa-v1",
     0.93,
     71e-6,
     {0.0, 180e-6, 180e-6, 5.0, 330e-6, 10e-6, 0.95, 0.9},
     "fit of p4de (awslabs); aws/aws-ofi-nccl src/platform-aws.cpp says 75 us; rings: own scaling"},
    {"efa-v2",
     0.93,
     31e-6,
     {0.0, 77e-6, 77e-6, 5.0, 171e-6, 10e-6, 0.95, 0.9},
     "fit of p5 (awslabs) on 2 nodes; rings: 2.5 x the tree hop, own scaling"},
    {"efa-v3",
     0.93,
     14.5e-6,
     {0.0, 36e-6, 36e-6, 5.0, 80e-6, 5e-6, 0.95, 0.9},
     "EFA v2 x 35/75, the latencies in aws/aws-ofi-nccl src/platform-aws.cpp; own scaling"},
    {"efa-v4",
     0.93,
     14.5e-6,
     {0.0, 36e-6, 36e-6, 5.0, 80e-6, 5e-6, 0.95, 0.9},
     "p6-b200 measured 0.95 of NIC rate; hops: EFA v2 x 35/75 (aws-ofi-nccl), own scaling"},
    {"efa", 0.93, 31e-6, {0.0, 77e-6, 77e-6, 5.0, 171e-6, 10e-6, 0.95, 0.9}, "as EFA v2"},
    {"tcpx",
     0.7,
     14e-6,
     {0.0, 35e-6, 35e-6, 5.0, 77e-6, 10e-6, 0.95, 0.9},
     "GCP a3-highgpu measured 0.50 and 0.71 of NIC rate; hops as TCPXO, own assumption"},
    {"tcpxo",
     0.93,
     14e-6,
     {0.0, 35e-6, 35e-6, 5.0, 77e-6, 10e-6, 0.95, 0.9},
     "fit of GCP a3-megagpu all-gather, 8 MiB and more on 2 nodes; tree hop: / 2.5, own scaling"},
    {"slingshot",
     0.93,
     8.2e-6,
     {0.0, 21.5e-6, 85e-6, 27.6, 456e-6, 11.8e-6, 0.58, 0.9},
     "fit of CSCS Alps and ALCF Polaris, 2 to 540 nodes"},
    {"ethernet",
     0.9,
     30e-6,
     {0.0, 75e-6, 75e-6, 5.0, 165e-6, 10e-6, 0.95, 0.9},
     "efficiency: own assumption; hop: 1-GPU nodes over TCP, (69.5 us - launch) / 2; the rest own scaling"},
    {"tcp",
     0.7,
     30e-6,
     {0.0, 75e-6, 75e-6, 5.0, 165e-6, 10e-6, 0.95, 0.9},
     "efficiency: own assumption (as TCPX); hops as ethernet"},
    {NULL, 0.0, 0.0, {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, NULL},
};

const nd_network_type *nd_network_types(void)
{
    return network_types;
}

const nd_network_type *nd_network_find(const char *name)
{
    for (const nd_network_type *type = network_types; type->name != NULL; type++) {
        if (strcmp(type->name, name) == 0) {
            return type;
        }
    }
    return NULL;
}
