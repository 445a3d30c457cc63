#include "cost_model/fit_collectives.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/collective_internal.h"
#include "cost_model/fit.h"

/* Repeated points of one curve scatter by about this much. */
static const double point_log_sd = 0.05;
/* A system counts at most like this many points: one that measured more does not drown the others. */
static const double system_points = 50.0;

/* A constant: where it stands, and what is believed before any data (own choice, wide). */
typedef struct parameter {
    const char *name;
    size_t offset;
    double prior, prior_log_sd, min, max;
} parameter;

#define FAMILY(name, prior, sd, low, high)                                                                             \
    {                                                                                                                  \
#name, offsetof(nd_collective_constants, name), prior, sd, low, high                                           \
    }
#define LINK(name, prior, sd, low, high)                                                                               \
    {                                                                                                                  \
#name, offsetof(nd_link_constants, name), prior, sd, low, high                                                 \
    }

static const parameter family_parameters[] = {
    FAMILY(efficiency2_frac, 0.70, 0.3, 0.05, 1.2),
    FAMILY(efficiency4_frac, 0.75, 0.3, 0.05, 1.2),
    FAMILY(efficiency8_frac, 0.80, 0.3, 0.05, 1.2),
    FAMILY(base_s, 6e-6, 0.7, 1e-7, 1e-3),
    FAMILY(step_s, 1e-6, 0.7, 1e-8, 1e-4),
    FAMILY(small_loss_frac, 0.5, 1.0, 0.01, 50.0),
    FAMILY(large_base_s, 12e-6, 0.7, 1e-7, 1e-3),
    FAMILY(large_step_s, 2e-6, 0.7, 1e-8, 1e-4),
    FAMILY(ramp_s, 10e-6, 1.0, 1e-7, 1e-3),
    FAMILY(switch_frac, 0.58, 0.2, 0.05, 1.2), /* only where the switch reduces */
};

/* Pairs know no group size; channels are added with the size, which shows as a late second line. */
static const parameter pair_parameters[] = {
    FAMILY(efficiency8_frac, 0.80, 0.1, 0.05, 1.2),
    FAMILY(base_s, 10e-6, 0.5, 1e-7, 1e-3),
    FAMILY(small_loss_frac, 1.0, 1.0, 0.01, 50.0),
    FAMILY(large_base_s, 50e-6, 1.5, 1e-7, 1e-2),
};

/* Hop latencies come first: only small messages tell them from the rest. */
static const parameter link_parameters[] = {
    LINK(step_latency_s, 10e-6, 1.0, 1e-7, 1e-2),      LINK(costs.ring_step_s, 15e-6, 1.0, 1e-7, 1e-2),
    LINK(efficiency_frac, 0.95, 0.03, 0.05, 1.0),      LINK(costs.large_step_s, 25e-6, 1.0, 1e-7, 1e-2),
    LINK(costs.ring_loss_frac, 5.0, 1.0, 0.01, 200.0), LINK(costs.tree_ramp_s, 30e-6, 1.0, 1e-8, 1e-2),
};
/* PCIe: no trees, and the rate belongs to the server. */
static const parameter pcie_parameters[] = {
    LINK(costs.base_s, 5e-6, 0.7, 1e-7, 1e-3),
    LINK(costs.ring_step_s, 1.5e-6, 0.7, 1e-7, 1e-4),
    LINK(costs.large_step_s, 4e-6, 1.0, 1e-7, 1e-3),
    LINK(costs.ring_loss_frac, 1.0, 1.0, 0.01, 200.0),
};
static const parameter exchange_parameters[] = {
    LINK(costs.peer_s, 4e-6, 1.0, 1e-8, 1e-3), LINK(costs.exchange_frac, 0.9, 0.4, 0.05, 1.5),
    LINK(costs.send_frac, 0.7, 0.4, 0.05, 1.1), /* of PCIe: the pair behind one bridge */
};
static const parameter send_parameters[] = {
    LINK(costs.send_frac, 0.7, 0.4, 0.05, 1.1),
};

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof(array)[0]))

/* Latencies of small messages are fitted where such were measured. */
static const double small_bytes = 65536.0;

static double *at(void *object, size_t offset)
{
    return (double *)(void *)((char *)object + offset);
}

/* One fit: the series that take part, and the constants that it sets in the model. */
typedef struct fit {
    const nd_collective_data *data;
    nd_collective_model *model;
    void *object; /* nd_collective_constants or nd_link_constants of the model */
    const parameter *parameters[ND_FIT_PARAMETERS_MAX];
    int32_t parameters_count;
    bool pairs_only; /* send-recv: a pair knows no group size, one efficiency stands for all */
    int32_t *series;
    int32_t series_count;
    int64_t points_count;
} fit;

static void set_values(fit *f, const double *values)
{
    for (int32_t i = 0; i < f->parameters_count; i++) {
        *at(f->object, f->parameters[i]->offset) = values[i];
    }
    if (f->pairs_only) {
        nd_collective_constants *c = f->object;
        c->efficiency2_frac = c->efficiency4_frac = c->efficiency8_frac;
    }
}

static void predict_fit(const double *values, double *predicted, void *user)
{
    fit *f = user;
    set_values(f, values);
    for (int32_t i = 0; i < f->series_count; i++) {
        nd_collective_predict_series(f->data, f->model, f->series[i], predicted);
        predicted += f->data->series[f->series[i]].count;
    }
}

static void add_parameters(fit *f, const parameter *parameters, int32_t first, int32_t count)
{
    for (int32_t i = first; i < count; i++) {
        f->parameters[f->parameters_count++] = &parameters[i];
    }
}

/* Points of one system weigh less the more there are. */
static void fill_measured(const fit *f, double *measured, double *log_sd)
{
    int64_t k = 0;
    for (int32_t i = 0; i < f->series_count; i++) {
        const nd_collective_series *s = &f->data->series[f->series[i]];
        double of_system = 0.0;
        for (int32_t j = 0; j < f->series_count; j++) {
            const nd_collective_series *other = &f->data->series[f->series[j]];
            of_system += other->system == s->system ? (double)other->count : 0.0;
        }
        for (int64_t p = 0; p < s->count; p++, k++) {
            measured[k] = f->data->points[s->first + p].seconds;
            log_sd[k] = point_log_sd * fmax(1.0, sqrt(of_system / system_points));
        }
    }
}

static void record(fit *f, const nd_fit_result *result, const char *what)
{
    for (int32_t i = 0; i < f->parameters_count && f->model->fitted_count < ND_FITTED_MAX; i++) {
        nd_fitted_constant *constant = &f->model->fitted[f->model->fitted_count++];
        (void)snprintf(constant->name, sizeof constant->name, "%s %s", what, f->parameters[i]->name);
        constant->value = result->value[i];
        constant->log_sd = result->log_sd[i];
        constant->identified = result->identified[i];
    }
}

/* Run the fit; constants that the data do not identify keep what the model had. */
static nd_status run(fit *f, const char *what, nd_error *err)
{
    nd_fit_parameter parameters[ND_FIT_PARAMETERS_MAX];
    double before[ND_FIT_PARAMETERS_MAX] = {0.0};
    nd_fit_result result;
    double *measured = calloc((size_t)f->points_count * 2, sizeof *measured);
    if (measured == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a fit of %lld points", (long long)f->points_count);
    }
    for (int32_t i = 0; i < f->parameters_count; i++) {
        const parameter *p = f->parameters[i];
        parameters[i] = (nd_fit_parameter){p->name, p->prior, p->prior_log_sd, p->min, p->max};
        before[i] = *at(f->object, p->offset);
    }
    fill_measured(f, measured, measured + f->points_count);
    nd_fit_problem problem = {.parameters = parameters,
                              .parameters_count = f->parameters_count,
                              .measured = measured,
                              .log_sd = measured + f->points_count,
                              .measured_count = f->points_count,
                              .model = predict_fit,
                              .user = f};
    nd_status status = nd_fit(&problem, &result, NULL, NULL, err);
    if (status == ND_OK) {
        for (int32_t i = 0; i < f->parameters_count; i++) {
            result.value[i] = result.identified[i] ? result.value[i] : before[i];
        }
        set_values(f, result.value);
        record(f, &result, what);
    } else {
        set_values(f, before);
    }
    free(measured);
    return status;
}

typedef bool (*takes)(const fit *f, const nd_collective_series *series, int32_t what);

static void collect(fit *f, takes take, int32_t what, int32_t without)
{
    for (int32_t i = 0; i < f->data->series_count; i++) {
        const nd_collective_series *s = &f->data->series[i];
        if (s->system != without && take(f, s, what)) {
            f->series[f->series_count++] = i;
            f->points_count += s->count;
        }
    }
}

static nd_status run_if_any(fit *f, takes take, int32_t what, int32_t without, const char *name, nd_error *err)
{
    f->series = calloc((size_t)f->data->series_count, sizeof *f->series);
    if (f->series == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %d series", (int)f->data->series_count);
    }
    collect(f, take, what, without);
    nd_status status = f->points_count > 0 ? run(f, name, err) : ND_OK;
    free(f->series);
    return status;
}

/* Series of the operation whose constants are fitted. */
static bool takes_operation(const fit *f, const nd_collective_series *s, int32_t family)
{
    const nd_collective_constants *c = &f->model->families[family].collective[s->collective];
    return s->family == family && c == f->object && nd_collective_on_own_links(f->data, s);
}

static bool crosses(const fit *f, const nd_collective_series *s, int32_t link)
{
    return nd_collective_series_link(f->data, f->model, (int32_t)(s - f->data->series)) == link;
}

static bool takes_rings_and_trees(const fit *f, const nd_collective_series *s, int32_t link)
{
    return s->collective != ND_ALL_TO_ALL && s->collective != ND_SEND_RECV && crosses(f, s, link);
}

static bool takes_exchanges(const fit *f, const nd_collective_series *s, int32_t link)
{
    return s->collective == ND_ALL_TO_ALL && crosses(f, s, link);
}

static bool takes_sends(const fit *f, const nd_collective_series *s, int32_t link)
{
    return s->collective == ND_SEND_RECV && crosses(f, s, link);
}

/* Did another system send small messages by trees (all-reduce) or by rings over the link? */
static bool small_measured(const fit *f, int32_t link, int32_t without, bool trees)
{
    for (int32_t i = 0; i < f->data->series_count; i++) {
        const nd_collective_series *s = &f->data->series[i];
        bool fits =
            s->system != without && takes_rings_and_trees(f, s, link) && (s->collective == ND_ALL_REDUCE) == trees;
        for (int64_t p = s->first; fits && p < s->first + s->count; p++) {
            if (f->data->points[p].bytes <= small_bytes) {
                return true;
            }
        }
    }
    return false;
}

nd_status nd_collective_fit_family(const nd_collective_data *data, int32_t family, int32_t without,
                                   nd_collective_model *model, nd_error *err)
{
    for (int i = 0; i < ND_COLLECTIVE_COUNT; i++) {
        char name[80];
        nd_collective_constants *constants = &model->families[family].collective[i];
        fit f = {.data = data, .model = model, .object = constants};
        bool in_switch = constants->switch_frac > 0.0;
        f.pairs_only = i == ND_SEND_RECV;
        if (f.pairs_only) {
            add_parameters(&f, pair_parameters, 0, COUNT(pair_parameters));
        } else {
            add_parameters(&f, family_parameters, 0, COUNT(family_parameters) - (in_switch ? 0 : 1));
        }
        (void)snprintf(name, sizeof name, "%s %s", model->families[family].name, nd_collective_name((nd_collective)i));
        ND_TRY(run_if_any(&f, takes_operation, family, without, name, err));
    }
    return ND_OK;
}

nd_status nd_collective_fit_link(const nd_collective_data *data, int32_t link, int32_t without,
                                 nd_collective_model *model, nd_error *err)
{
    nd_link_constants *object = &model->links[link];
    const fit empty = {.data = data, .model = model, .object = object};
    bool pcie = strcmp(object->type, "pcie") == 0;
    fit rings = empty;
    if (pcie) {
        add_parameters(&rings, pcie_parameters, 0, COUNT(pcie_parameters));
    } else {
        for (int32_t i = 0; i < 2; i++) {
            add_parameters(&rings, link_parameters, i, small_measured(&empty, link, without, i == 0) ? i + 1 : i);
        }
        add_parameters(&rings, link_parameters, 2, COUNT(link_parameters));
    }
    ND_TRY(run_if_any(&rings, takes_rings_and_trees, link, without, object->type, err));
    fit exchanges = empty;
    add_parameters(&exchanges, exchange_parameters, 0, COUNT(exchange_parameters) - (pcie ? 0 : 1));
    ND_TRY(run_if_any(&exchanges, takes_exchanges, link, without, object->type, err));
    fit sends = empty;
    add_parameters(&sends, send_parameters, 0, COUNT(send_parameters));
    return run_if_any(&sends, takes_sends, link, without, object->type, err);
}

nd_status nd_collective_fit(const nd_collective_data *data, nd_collective_model *model, nd_error *err)
{
    for (int32_t i = 0; i < model->families_count; i++) {
        ND_TRY(nd_collective_fit_family(data, i, -1, model, err));
    }
    for (int32_t i = 0; i < model->links_count; i++) {
        ND_TRY(nd_collective_fit_link(data, i, -1, model, err));
    }
    return ND_OK;
}
