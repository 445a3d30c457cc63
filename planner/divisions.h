/** Which degree divides which term of memory: the layout again with twice the ranks along one axis. */
#ifndef ND_PLANNER_DIVISIONS_H
#define ND_PLANNER_DIVISIONS_H

#include "cost_model/estimate.h"
#include "frameworks/framework.h"

ND_BEGIN_DECLS

/** The degrees that are doubled. All but ep need twice the GPUs; ep cuts the same ones again. */
enum { ND_DIVISION_AXES = 6 };

typedef struct nd_division {
    const char *axis;           /* "dp_shard", ..., "ep"; static storage */
    const char *rule;           /* static id of the rule that forbids it; NULL: allowed */
    nd_memory_breakdown memory; /* with the degree doubled, in the phase of nd_divisions.memory; unset where a rule
                                 * forbids it */
} nd_division;

typedef struct nd_divisions {
    nd_memory_breakdown memory; /* of the layout, in the phase in which it peaks */
    nd_division axis[ND_DIVISION_AXES];
} nd_divisions;

/** The global batch grows with the data ranks, so that each rank has as many micro-batches as before.
 * \param[in] layout  passed nd_layout_allowed() */
void nd_divide_memory(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      nd_divisions *out);

ND_END_DECLS

#endif
