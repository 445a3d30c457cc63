/** The parts of a search. docs/SEARCH.md explains why they find what plain loops over all layouts would find.
 *
 * A *unit* fixes what the prices of a block depend on (tp, cp, its method, sequence parallelism, ep, micro-batch);
 * below it are recompute, pp with its chunks and schedule, data parallelism and sharding. Units are priced, sorted by a
 * lower bound of their step time, and walked in rounds; when the bound of the next unit cannot enter the list, none of
 * the rest can.
 */
#ifndef ND_PLANNER_SEARCH_INTERNAL_H
#define ND_PLANNER_SEARCH_INTERNAL_H

#include "planner/board_internal.h"
#include "planner/search_space_internal.h"

ND_BEGIN_DECLS

typedef struct nd_search_unit {
    nd_layout layout; /* with the unit's keys set; grad_accum, pp, data parallelism are not */
    int32_t micro_batch_index;
    int64_t order;   /* in the enumeration */
    int64_t layouts; /* complete layouts below it */
    double floor_s;  /* none of them is faster */
} nd_search_unit;

/** What the units share; nothing here changes while they are walked. */
typedef struct nd_search_scene {
    const nd_cost_context *context;
    const nd_framework *framework;
    const nd_search_options *options;
    nd_search_space space;
    const nd_board *known; /* from the rounds before */
    nd_layout base;        /* keys that are not searched */
} nd_search_scene;

/** Rules that are not about legality. */
extern const char nd_rule_memory[];
extern const char nd_rule_slower[];
extern const char nd_rule_same_split[];

/** search_count.c. Complete layouts below one choice of tp, cp, ep and micro-batch, for one recompute mode.
 * \param[out] first  the first of them, keys above pp as they come in; may be NULL
 * \return 0 when there is none */
int64_t nd_count_below_unit(const nd_search_space *space, int32_t micro_batch_index, nd_layout layout,
                            nd_layout *first);

/** The same for one pp, vpp and schedule: ways to divide the data ranks and to shard over them. */
int64_t nd_count_below_pipeline(const nd_search_space *space, nd_layout layout, nd_layout *first);

/** search_units.c. All units that no rule of the block forbids; what is forbidden is counted in `rejections`.
 * \param[out] out       to be freed with free(), also on failure
 * \param[out] searched  complete layouts, forbidden ones included
 * \return ND_ENOMEM */
nd_status nd_search_units(const nd_search_scene *scene, nd_search_unit **out, int64_t *count, int64_t *searched,
                          nd_rejections *rejections, nd_error *err) ND_NODISCARD;

/** Set unit->floor_s. */
void nd_search_bound_unit(const nd_search_scene *scene, nd_search_unit *unit);

/** search_walk.c. Walk everything below a unit; `board` is the unit's own and empty. */
void nd_search_walk(const nd_search_scene *scene, const nd_search_unit *unit, nd_board *board);

ND_END_DECLS

#endif
