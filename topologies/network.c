#include <string.h>

#include "topologies/cluster_internal.h"

/* Efficiency: large messages against min(NVLink ring, NICs x rate), measured on 13 clusters (docs/TOPOLOGY.md).
 * Latency of one hop: a tree all-reduce makes two per doubling of the nodes. */
static const nd_network_type network_types[] = {
    {"ib-hdr", 0.93, 5e-6, "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; efficiency: mean of measured ring rows"},
    {"ib-ndr", 0.93, 5e-6, "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; efficiency: mean of measured ring rows"},
    {"ib-xdr", 0.93, 5e-6, "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; efficiency: as NDR, own assumption"},
    {"ib", 0.93, 5e-6, "NVIDIA/nccl src/graph/tuning.cc: tree hop 5.0 us; efficiency: mean of measured ring rows"},
    {"roce", 0.93, 12.5e-6, "efficiency: OCI A100 0.95, MI300X 0.90 of NIC rate; hop 2.5 x InfiniBand, own assumption"},
    {"efa-v1", 0.93, 75e-6, "aws/aws-ofi-nccl src/platform-aws.cpp: 75 us; p4de measured 76 us per hop"},
    {"efa-v2", 0.93, 27e-6, "p5 measured: (70.7 us on 2 nodes - 16.0 us on 1) / 2 hops (awslabs tables)"},
    {"efa-v3", 0.93, 12.6e-6,
     "EFA v2 hop x 35/75, the latencies in aws/aws-ofi-nccl src/platform-aws.cpp; own scaling"},
    {"efa-v4", 0.93, 12.6e-6, "p6-b200 measured 0.95 of NIC rate; hop: EFA v2 x 35/75 (aws-ofi-nccl), own scaling"},
    {"efa", 0.93, 27e-6, "as EFA v2"},
    {"tcpx", 0.70, 109e-6, "GCP a3-highgpu measured 0.50 and 0.71 of NIC rate; hop as TCPXO, own assumption"},
    {"tcpxo", 0.93, 109e-6, "GCP a3-megagpu measured: all-gather 0.94 of NIC rate, 121 us on 2 nodes - 12 us on 1"},
    {"slingshot", 0.93, 8.75e-6, "CSCS Alps measured: 17.5 us per doubling of nodes, 0.93 of NIC rate with 4 NICs"},
    {"ethernet", 0.90, 30e-6, "efficiency: own assumption; hop: 1-GPU nodes over TCP, (69.5 us - launch) / 2 hops"},
    {"tcp", 0.70, 30e-6,
     "efficiency: own assumption (as TCPX); hop: 1-GPU nodes over TCP, (69.5 us - launch) / 2 hops"},
    {NULL, 0.0, 0.0, NULL},
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
