/* Which values a sweep visits. */
#include <math.h>

#include "planner/sweep.h"

enum {
    SEQ_LEN_FROM = 2048, /* usual fine-tuning length ... */
    SEQ_LEN_TO = 131072, /* ... and the longest that many published models were trained for */
    SEQ_LEN_STEP = 128,  /* a tile of today's kernels */
    DOMAIN_TO = 64       /* a rack used evenly */
};

static const double gpus_growth = 8.0;
static const double batch_growth = 16.0;
static const double nic_shrink = 1.0 / 8.0;
static const double nic_growth = 4.0;

static nd_sweep_range default_range(const nd_cluster_spec *cluster, nd_sweep_quantity quantity)
{
    double gpus = (double)cluster->gpus;
    switch (quantity) {
    case ND_SWEEP_GPUS:
        return (nd_sweep_range){(double)cluster->gpus_per_node, gpus_growth * gpus, 0};
    case ND_SWEEP_SEQ_LEN:
        return (nd_sweep_range){SEQ_LEN_FROM, SEQ_LEN_TO, 0};
    case ND_SWEEP_GLOBAL_BATCH:
        return (nd_sweep_range){gpus, batch_growth * gpus, 0};
    case ND_SWEEP_NIC:
        return (nd_sweep_range){nic_shrink * cluster->nic_bytes_per_s, nic_growth * cluster->nic_bytes_per_s, 0};
    case ND_SWEEP_NVLINK_DOMAIN:
        return (nd_sweep_range){fmin(2.0, gpus), fmin(DOMAIN_TO, gpus), 0};
    case ND_SWEEP_QUANTITY_COUNT:
        break;
    }
    return (nd_sweep_range){1.0, 1.0, 0};
}

/* The nearest value, by ratio, that parts or holds whole nodes. */
static double nearest_count(int64_t node, double value)
{
    if (value >= (double)node) {
        return fmax(1.0, round(value / (double)node)) * (double)node;
    }
    double nearest = (double)node;
    for (int64_t part = 1; part < node; part++) {
        bool divides = node % part == 0;
        if (divides && fabs(log(value / (double)part)) < fabs(log(value / nearest))) {
            nearest = (double)part;
        }
    }
    return nearest;
}

static double rounded(const nd_cluster_spec *cluster, nd_sweep_quantity quantity, double value)
{
    switch (quantity) {
    case ND_SWEEP_GPUS:
    case ND_SWEEP_NVLINK_DOMAIN:
        return nearest_count(cluster->gpus_per_node, value);
    case ND_SWEEP_SEQ_LEN:
        return value < SEQ_LEN_STEP ? round(value) : round(value / SEQ_LEN_STEP) * SEQ_LEN_STEP;
    case ND_SWEEP_GLOBAL_BATCH: /* the more divisors, the more layouts: whole sequences for each GPU */
        return value < (double)cluster->gpus ? round(value)
                                             : round(value / (double)cluster->gpus) * (double)cluster->gpus;
    case ND_SWEEP_NIC:
    case ND_SWEEP_QUANTITY_COUNT:
        break;
    }
    return value;
}

nd_status nd_sweep_values(const nd_cluster_spec *cluster, nd_sweep_quantity quantity, const nd_sweep_range *range,
                          double out[ND_SWEEP_POINTS_MAX], int32_t *count, nd_error *err)
{
    const nd_cluster_spec any = {.nodes = 1, .gpus_per_node = 1, .gpus = 1};
    cluster = cluster != NULL ? cluster : &any;
    nd_sweep_range r = default_range(cluster, quantity);
    r.from = range->from > 0.0 ? range->from : range->to > 0.0 ? fmin(r.from, range->to) : r.from;
    r.to = range->to > 0.0 ? range->to : fmax(r.to, r.from);
    if (r.from > r.to) {
        return nd_fail(err, ND_EINVAL, "--from %g is above --to %g; exchange them", r.from, r.to);
    }
    int32_t steps = range->steps;
    if (steps > ND_SWEEP_POINTS_MAX) {
        return nd_fail(err, ND_EINVAL, "at most %d points, got %d", (int)ND_SWEEP_POINTS_MAX, (int)steps);
    }
    if (steps == 0) {
        steps = (int32_t)ceil(log2(r.to / r.from) - 1e-9) + 1;
    }
    double factor = range->steps > 1 ? pow(r.to / r.from, 1.0 / (double)(steps - 1)) : 2.0;
    if (steps > ND_SWEEP_POINTS_MAX) {
        return nd_fail(err, ND_EINVAL, "doubling from %g to %g makes %d points, at most %d are drawn; use --steps",
                       r.from, r.to, (int)steps, (int)ND_SWEEP_POINTS_MAX);
    }
    *count = 0;
    for (int32_t i = 0; i < steps; i++) {
        bool last = i + 1 == steps && steps > 1;
        double value = i == 0 ? r.from : last ? r.to : rounded(cluster, quantity, r.from * pow(factor, (double)i));
        double below = *count > 0 ? out[*count - 1] : 0.0;
        if (value > below && value <= r.to) {
            out[(*count)++] = value;
        }
    }
    return ND_OK;
}
