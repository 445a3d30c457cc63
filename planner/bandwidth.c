#include "planner/bandwidth.h"

#include <math.h>
#include <string.h>

const double nd_hidden_frac = 0.01;

/* Rates are tried from a thousandth of a thousandth of the present one to a thousand times it. */
enum { FACTOR_LOG2_MIN = -20, FACTOR_LOG2_MAX = 10, BISECTIONS = 12 };

static nd_link_class class_of(nd_tier_kind kind)
{
    switch (kind) {
    case ND_TIER_NETWORK:
    case ND_TIER_SPINE:
        return ND_LINK_CLASS_NETWORK;
    case ND_TIER_PCIE:
        return ND_LINK_CLASS_PCIE;
    case ND_TIER_NVLINK:
    case ND_TIER_NVLINK_BRIDGE:
    case ND_TIER_XGMI:
    case ND_TIER_MESH:
    case ND_TIER_KIND_COUNT:
        break;
    }
    return ND_LINK_CLASS_GPU;
}

nd_link_class nd_link_class_of_line(const nd_comm_line *line)
{
    for (int kind = 0; kind < ND_TIER_KIND_COUNT; kind++) {
        if (strcmp(line->link, nd_tier_kind_name((nd_tier_kind)kind)) == 0) {
            return class_of((nd_tier_kind)kind);
        }
    }
    return ND_LINK_CLASS_GPU;
}

/* Which part of the exposed time a group's collectives belong to. */
typedef enum exposure { EXPOSED_TP, EXPOSED_CP, EXPOSED_EP, EXPOSED_PP, EXPOSED_DP, EXPOSURES } exposure;

static exposure exposure_of(nd_group_kind kind)
{
    switch (kind) {
    case ND_GROUP_TP:
        return EXPOSED_TP;
    case ND_GROUP_CP:
        return EXPOSED_CP;
    case ND_GROUP_EP:
        return EXPOSED_EP;
    case ND_GROUP_PP:
        return EXPOSED_PP;
    case ND_GROUP_SHARD:
    case ND_GROUP_REPLICATE:
    case ND_GROUP_GRAD:
    case ND_GROUP_EXPERT_SHARD:
    case ND_GROUP_EXPERT_GRAD:
    case ND_GROUP_COUNT:
        break;
    }
    return EXPOSED_DP;
}

typedef struct exposed {
    double step_s;
    double seconds[ND_LINK_CLASS_COUNT];
    bool used[ND_LINK_CLASS_COUNT]; /* something is sent over such a link, hidden or not */
} exposed;

/* The table of collectives says over which link each goes, the step says how much of each kind is exposed: they look at
 * different stages, so that the table's parts are scaled to the step's. */
static exposed expose(const nd_cost_context *context, const nd_layout *layout)
{
    nd_estimate estimate;
    nd_comm_breakdown comm;
    double sums[EXPOSURES] = {0.0};
    nd_estimate_layout(context, layout, &estimate);
    nd_estimate_comm(context, layout, &comm);
    const nd_time_breakdown *time = &estimate.time;
    const double of_step[EXPOSURES] = {
        [EXPOSED_TP] = time->exposed_tp_s, [EXPOSED_CP] = time->exposed_cp_s, [EXPOSED_EP] = time->exposed_ep_s,
        [EXPOSED_PP] = time->exposed_pp_s, [EXPOSED_DP] = time->exposed_dp_s,
    };
    exposed out = {.step_s = time->step_s};
    for (int32_t i = 0; i < comm.count; i++) {
        sums[exposure_of(comm.lines[i].group_kind)] += comm.lines[i].exposed_s;
    }
    for (int32_t i = 0; i < comm.count; i++) {
        const nd_comm_line *line = &comm.lines[i];
        exposure kind = exposure_of(line->group_kind);
        nd_link_class link_class = nd_link_class_of_line(line);
        out.used[link_class] = true;
        if (sums[kind] > 0.0) {
            out.seconds[link_class] += of_step[kind] * line->exposed_s / sums[kind];
        }
    }
    return out;
}

/* One class of links at other rates; everything else stays. */
typedef struct trial {
    const nd_cost_context *base;
    const nd_layout *layout;
    nd_link_class link_class;
    nd_cluster_spec cluster;
    nd_cost_context context; /* borrows `cluster` */
} trial;

static double exposed_frac_at(trial *t, double factor)
{
    for (int64_t i = 0; i < t->cluster.tiers_count; i++) {
        const nd_link_tier *tier = &t->base->cluster->tiers[i];
        bool changes = class_of(tier->kind) == t->link_class;
        t->cluster.tiers[i].bytes_per_s = changes ? tier->bytes_per_s * factor : tier->bytes_per_s;
    }
    exposed e = expose(&t->context, t->layout);
    return e.seconds[t->link_class] / e.step_s;
}

/* The least factor at which the class is hidden, or 0. */
static double needed_factor(trial *t, double frac_now)
{
    int step = frac_now < nd_hidden_frac ? -1 : 1;
    int exponent = 0;
    bool crossed = false;
    while (!crossed && exponent > FACTOR_LOG2_MIN && exponent < FACTOR_LOG2_MAX) {
        exponent += step;
        crossed = (exposed_frac_at(t, ldexp(1.0, exponent)) < nd_hidden_frac) == (step > 0);
    }
    if (!crossed && step > 0) {
        return 0.0;
    }
    double hidden_log2 = (double)(step > 0 || !crossed ? exponent : exponent + 1);
    double open_log2 = crossed ? hidden_log2 - 1.0 : hidden_log2;
    for (int i = 0; crossed && i < BISECTIONS; i++) {
        double middle = (hidden_log2 + open_log2) / 2.0;
        if (exposed_frac_at(t, exp2(middle)) < nd_hidden_frac) {
            hidden_log2 = middle;
        } else {
            open_log2 = middle;
        }
    }
    return exp2(hidden_log2);
}

static const nd_link_tier *narrowest(const nd_cluster_spec *cluster, nd_link_class link_class)
{
    for (int64_t i = 0; i < cluster->tiers_count; i++) {
        if (class_of(cluster->tiers[i].kind) == link_class) {
            return &cluster->tiers[i];
        }
    }
    return NULL;
}

int32_t nd_bandwidth_needs(const nd_cost_context *context, const nd_layout *layout,
                           nd_bandwidth_need out[ND_LINK_CLASS_COUNT])
{
    exposed now = expose(context, layout);
    int32_t count = 0;
    for (int c = 0; c < ND_LINK_CLASS_COUNT; c++) {
        const nd_link_tier *tier = narrowest(context->cluster, (nd_link_class)c);
        if (!now.used[c] || tier == NULL) {
            continue;
        }
        trial t = {context, layout, (nd_link_class)c, *context->cluster, *context};
        t.context.cluster = &t.cluster;
        nd_bandwidth_need *need = &out[count++];
        *need = (nd_bandwidth_need){.link_class = (nd_link_class)c, .kind = tier->kind};
        need->has_bytes_per_s = tier->bytes_per_s;
        need->exposed_s = now.seconds[c];
        need->exposed_frac = now.seconds[c] / now.step_s;
        need->needed_bytes_per_s = tier->bytes_per_s * needed_factor(&t, need->exposed_frac);
        need->least_frac = exposed_frac_at(&t, ldexp(1.0, FACTOR_LOG2_MAX));
    }
    return count;
}
