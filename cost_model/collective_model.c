#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/collective_internal.h"
#include "cost_model/collectives.h"

static const nd_link_tier *top_tier(const nd_cluster_spec *cluster, nd_group group)
{
    int64_t span = group.ranks * group.stride;
    int64_t i = 0;
    while (i + 1 < cluster->tiers_count && cluster->tiers[i].span_gpus < span) {
        i++;
    }
    return &cluster->tiers[i];
}

/* The name of the link that decides, NULL for the GPU's own. */
static const char *link_type(const nd_cluster_spec *cluster, nd_group group)
{
    const nd_link_tier *top = top_tier(cluster, group);
    if (top->kind == ND_TIER_PCIE) {
        return "pcie";
    }
    return top->kind == ND_TIER_NETWORK || top->kind == ND_TIER_SPINE ? cluster->network : NULL;
}

int32_t nd_collective_series_link(const nd_collective_data *data, const nd_collective_model *model, int32_t series)
{
    const nd_collective_series *s = &data->series[series];
    const char *type = link_type(&data->clusters[s->cluster], s->group);
    for (int32_t i = 0; type != NULL && i < model->links_count; i++) {
        if (strcmp(model->links[i].type, type) == 0) {
            return i;
        }
    }
    return -1;
}

bool nd_collective_on_own_links(const nd_collective_data *data, const nd_collective_series *series)
{
    return top_tier(&data->clusters[series->cluster], series->group)->kind == ND_TIER_NVLINK;
}

static nd_status add_link(const nd_cluster_spec *cluster, nd_group group, nd_collective_model *out, nd_error *err)
{
    const char *type = link_type(cluster, group);
    if (type == NULL) {
        return ND_OK;
    }
    const nd_link_tier *tier = top_tier(cluster, group);
    bool stated = cluster->facts.network_efficiency_frac > 0.0 || cluster->facts.network_step_latency_s > 0.0;
    nd_link_constants link = {
        .efficiency_frac = tier->efficiency_frac, .step_latency_s = tier->step_latency_s, .costs = tier->costs};
    (void)snprintf(link.type, sizeof link.type, "%s", type);
    for (int32_t i = 0; i < out->links_count; i++) {
        if (strcmp(out->links[i].type, type) == 0) {
            out->links[i] = stated ? out->links[i] : link;
            return ND_OK;
        }
    }
    if (out->links_count == ND_LINKS_MAX) {
        return nd_fail(err, ND_EINVAL, "more than %d kinds of networks", (int)ND_LINKS_MAX);
    }
    out->links[out->links_count++] = link;
    return ND_OK;
}

nd_status nd_collective_model_shipped(const nd_collective_data *data, nd_collective_model *out, nd_error *err)
{
    if (data->families_count > ND_FAMILIES_MAX) {
        return nd_fail(err, ND_EINVAL, "more than %d GPU families", (int)ND_FAMILIES_MAX);
    }
    nd_collective_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the constants of collectives");
    }
    nd_status status = ND_OK;
    for (int32_t i = 0; i < data->families_count; i++) {
        model->families[i] = data->families[i];
        model->families[i].network_frac = 1.0;
    }
    model->families_count = data->families_count;
    for (int32_t i = 0; status == ND_OK && i < data->series_count; i++) {
        status = add_link(&data->clusters[data->series[i].cluster], data->series[i].group, model, err);
    }
    if (status == ND_OK) {
        *out = *model;
    }
    free(model);
    return status;
}

static void set_tier(const nd_cluster_spec *cluster, const nd_link_constants *link, nd_link_tier *tier)
{
    bool pcie = tier->kind == ND_TIER_PCIE;
    if (!pcie && !(cluster->facts.network_efficiency_frac > 0.0)) {
        tier->efficiency_frac = link->efficiency_frac;
    }
    if (!((pcie ? cluster->facts.pcie_step_latency_s : cluster->facts.network_step_latency_s) > 0.0)) {
        tier->step_latency_s = link->step_latency_s;
        tier->costs = link->costs;
    }
}

/* The cluster as the model sees it. */
static void set_cluster(const nd_collective_model *model, nd_cluster_spec *cluster)
{
    for (int64_t t = 0; t < cluster->tiers_count; t++) {
        nd_link_tier *tier = &cluster->tiers[t];
        bool network = tier->kind == ND_TIER_NETWORK || tier->kind == ND_TIER_SPINE;
        for (int32_t i = 0; i < model->links_count; i++) {
            const char *type = model->links[i].type;
            if ((network && strcmp(type, cluster->network) == 0) ||
                (tier->kind == ND_TIER_PCIE && strcmp(type, "pcie") == 0)) {
                set_tier(cluster, &model->links[i], tier);
            }
        }
    }
}

void nd_collective_predict_series(const nd_collective_data *data, const nd_collective_model *model, int32_t series,
                                  double *seconds)
{
    const nd_collective_series *s = &data->series[series];
    nd_cluster_spec cluster = data->clusters[s->cluster];
    set_cluster(model, &cluster);
    nd_group_placement place = nd_group_place(&cluster, &model->families[s->family], s->group);
    for (int64_t i = 0; i < s->count; i++) {
        seconds[i] = nd_collective_s(&place, s->collective, data->points[s->first + i].bytes);
    }
}

nd_status nd_collective_model_predict(const nd_collective_data *data, const nd_collective_model *model, double *seconds,
                                      nd_error *err)
{
    for (int32_t i = 0; i < data->series_count; i++) {
        nd_collective_predict_series(data, model, i, &seconds[data->series[i].first]);
    }
    for (int64_t i = 0; i < data->points_count; i++) {
        if (!(seconds[i] > 0.0 && isfinite(seconds[i]))) {
            return nd_fail(err, ND_EINVAL, "the model predicts %g s for point %lld", seconds[i], (long long)i);
        }
    }
    return ND_OK;
}
