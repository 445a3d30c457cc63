/** The same training on every sensible part of a cluster: which size costs least, which is the smallest that fits, and
 * what step time, memory and GPUs trade for one another.
 *
 * Sizes: 1, 2, 4, ... GPUs of one node, then 1 to 8 nodes, then 2^k and 3 x 2^k nodes, and the whole cluster. The
 * global batch stays the same; on a size that it does not divide over, no layout is legal.
 */
#ifndef ND_PLANNER_SCALE_H
#define ND_PLANNER_SCALE_H

#include "cost_model/run_cost.h"
#include "planner/search.h"

ND_BEGIN_DECLS

enum { ND_SCALE_SIZES_MAX = 64 };

typedef enum nd_scale_goal {
    ND_SCALE_COST,  /* least dollars for the tokens: one layout of every size, cheapest first; those in doubt last */
    ND_SCALE_GPUS,  /* fewest GPUs on which a layout surely fits; then what may fit on fewer; then its other layouts */
    ND_SCALE_PARETO /* no other layout is as fast, as small and on as few GPUs; fastest first */
} nd_scale_goal;

typedef struct nd_scale_options {
    nd_scale_goal goal;
    nd_search_options search; /* its `objective` is not used */
    const nd_run_spec *run;   /* price, failures and storage of ND_SCALE_COST; NULL otherwise */
} nd_scale_options;

/** What was done about one size. */
typedef struct nd_scale_size {
    int64_t gpus;
    bool searched; /* false: a bound showed that it cannot help, or the options leave it no layout */
    int64_t fitting;
} nd_scale_size;

typedef struct nd_scale_list {
    nd_plan_list plans; /* of all sizes, at most search.top; counts are sums, rejections those of the last search */
    nd_scale_size sizes[ND_SCALE_SIZES_MAX];
    int32_t sizes_count;
    double coarseness_frac; /* ND_SCALE_PARETO: nd_pareto_front() */
} nd_scale_list;

/** Sizes of parts of `cluster` in GPUs, ascending.
 * \param[in] whole_nodes  no part of a node: instances of a cloud are rented whole
 * \return how many */
int32_t nd_scale_sizes(const nd_cluster_spec *cluster, bool whole_nodes, int64_t out[ND_SCALE_SIZES_MAX]);

/** The part of `cluster` that has `gpus` GPUs, one of nd_scale_sizes(). */
nd_status nd_scale_cluster(const nd_cluster_spec *cluster, int64_t gpus, nd_cluster_spec *out,
                           nd_error *err) ND_NODISCARD;

/** Search the sizes of context->cluster.
 * \param[out] out  free out->plans with nd_plan_list_free()
 * \return when no size can be searched, what nd_search() says of the whole cluster */
nd_status nd_scale_search(const nd_cost_context *context, const nd_framework *framework,
                          const nd_scale_options *options, nd_scale_list *out, nd_error *err) ND_NODISCARD;

/** Fewest GPUs over which weights and optimizer can be divided: no layout fits on fewer. 1 where offload, LoRA or
 * options->include_unfit leave no such bound. */
int64_t nd_scale_least_gpus(const nd_cost_context *context, const nd_search_options *options);

/** No layout of `gpus` GPUs trains a million tokens for less: every FLOP at the peak rate, causal attention, and only
 * the failures and saves that every layout has. */
double nd_scale_least_usd_per_million_tokens(const nd_cost_context *context, const nd_run_spec *run, int64_t gpus);

ND_END_DECLS

#endif
