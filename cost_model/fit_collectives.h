/** Constants of collectives from measured points, with standard errors. docs/MODEL.md, "Collectives".
 *
 * Two kinds of constants: those of a GPU family's own links, per operation (nd_collective_constants), from groups
 * inside one NVLink domain; and those of a kind of network (nd_link_constants), from groups that cross it, all
 * operations at once, with the family's constants given. Priors are the same for every family and network, so a fit
 * without a system has never seen it.
 */
#ifndef ND_COST_MODEL_FIT_COLLECTIVES_H
#define ND_COST_MODEL_FIT_COLLECTIVES_H

#include "cost_model/collective_data.h"

ND_BEGIN_DECLS

enum { ND_LINKS_MAX = 24, ND_FAMILIES_MAX = 16, ND_FITTED_MAX = 1024 };

/** What collectives reach on one kind of link beyond the fast ones: a network type, or "pcie". */
typedef struct nd_link_constants {
    char type[48];
    double efficiency_frac; /* unused for pcie, where it belongs to the server */
    double step_latency_s;
    nd_tier_costs costs;
} nd_link_constants;

/** One fitted constant, for reports: "h100 all_reduce base_s". */
typedef struct nd_fitted_constant {
    char name[96];
    double value;
    double log_sd;   /* relative standard error */
    bool identified; /* false: the prior was kept */
} nd_fitted_constant;

typedef struct nd_collective_model {
    nd_calibration families[ND_FAMILIES_MAX]; /* as in the data; the collective constants count */
    nd_link_constants links[ND_LINKS_MAX];
    int32_t families_count, links_count;
    nd_fitted_constant fitted[ND_FITTED_MAX];
    int32_t fitted_count;
} nd_collective_model;

/** The shipped constants for everything in the data. A benchmark has the network to itself, so network_frac, which says
 * what a training run gets of it, is 1. Links that a cluster file gives figures of its own keep these.
 * \return ND_EINVAL for more families or links than fit */
nd_status nd_collective_model_shipped(const nd_collective_data *data, nd_collective_model *out,
                                      nd_error *err) ND_NODISCARD;

/** Seconds of every point under a model.
 * \param[out] seconds  data->points_count */
nd_status nd_collective_model_predict(const nd_collective_data *data, const nd_collective_model *model, double *seconds,
                                      nd_error *err) ND_NODISCARD;

/** Fit one family (index) or one link (index in model->links) in place; operations and constants without data keep
 * what `model` holds.
 * \param[in] without  index of a system that is left out; -1: none */
nd_status nd_collective_fit_family(const nd_collective_data *data, int32_t family, int32_t without,
                                   nd_collective_model *model, nd_error *err) ND_NODISCARD;
nd_status nd_collective_fit_link(const nd_collective_data *data, int32_t link, int32_t without,
                                 nd_collective_model *model, nd_error *err) ND_NODISCARD;

/** All families, then all links. */
nd_status nd_collective_fit(const nd_collective_data *data, nd_collective_model *model, nd_error *err) ND_NODISCARD;

/** Predict every point from a fit of its family and its link without its system. What only that system measured stays
 * as in `model`: pass shipped constants only when they come from elsewhere.
 * \param[out] seconds  data->points_count
 * \param[out] covered  data->points_count: the fit of the point's own constants had other systems' points; or NULL */
nd_status nd_collective_leave_one_out(const nd_collective_data *data, const nd_collective_model *model, double *seconds,
                                      bool *covered, nd_error *err) ND_NODISCARD;

/** Median and 90th percentile of |predicted / measured - 1| over the points that `take` accepts (NULL: all).
 * \return how many points; both are NaN when 0 */
typedef bool (*nd_collective_filter)(const nd_collective_data *data, int64_t point, const void *user);
int64_t nd_collective_errors(const nd_collective_data *data, const double *seconds, nd_collective_filter take,
                             const void *user, double *median, double *p90);

/** Index of the link that the series' group crosses, -1 for groups inside one domain of fast links. */
int32_t nd_collective_series_link(const nd_collective_data *data, const nd_collective_model *model, int32_t series);

ND_END_DECLS

#endif
