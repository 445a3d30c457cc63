/** The changes themselves, apart from what they bring. Private to planner/fix*.c. */
#ifndef ND_PLANNER_FIXES_INTERNAL_H
#define ND_PLANNER_FIXES_INTERNAL_H

#include "planner/fixes.h"

ND_BEGIN_DECLS

enum { ND_FIX_MOVES_MAX = 64 };

/** Everything that a change may touch. */
typedef struct nd_fix_state {
    nd_layout layout;
    nd_train_spec train;
    int64_t nodes;
    double loss_chunks;
} nd_fix_state;

typedef struct nd_fix_move {
    nd_fix_kind kind;
    nd_fix_state state; /* after the change; may be illegal */
} nd_fix_move;

typedef struct nd_fix_moves {
    int32_t count;
    nd_fix_move moves[ND_FIX_MOVES_MAX];
} nd_fix_moves;

/** A context for a changed training, cluster or stack; borrows itself, so it is not copied. */
typedef struct nd_fix_changed {
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_cost_context context;
} nd_fix_changed;

/** The layout before, and what it needs. */
typedef struct nd_fix_origin {
    const nd_cost_context *context;
    const nd_framework *framework;
    nd_fix_state state;
    nd_estimate estimate;
    bool host_fits;
    nd_fix_changed scratch;
} nd_fix_origin;

void nd_fix_start(nd_fix_origin *o, const nd_cost_context *context, const nd_framework *framework,
                  const nd_layout *layout);

/** The context in which `state` is judged: the origin's own when only the layout differs, else o->scratch. NULL: there
 * is none. */
const nd_cost_context *nd_fix_context(nd_fix_origin *o, const nd_fix_state *state);

/** Estimate `state`. \return false when it is not legal */
bool nd_fix_judge(nd_fix_origin *o, const nd_fix_state *state, nd_fix *out);

/** Whether it fits, or will rather fit than not; the host, too. */
bool nd_fix_suffices(const nd_fix *fix, nd_verdict worst);

/** For qsort: the order of nd_fixes_find(). */
int nd_fix_compare(const void *left, const void *right);

/** All single changes of `from`, of the kinds in the mask; steps of one kind from the mildest to the strongest. */
void nd_fix_moves_of(const nd_cost_context *context, const nd_framework *framework, const nd_fix_state *from,
                     uint32_t kinds, nd_fix_moves *out);

/** The keys in which two layouts differ, as `b` has them: "tp=2,dp_shard=4"; empty when they do not. */
void nd_fix_layout_keys(const nd_layout *a, const nd_layout *b, char out[ND_FIX_TEXT_MAX]);

/** What differs between two states, as nd_fix.layout_keys and nd_fix.options say it. */
void nd_fix_describe(const nd_cost_context *context, const nd_fix_state *from, const nd_fix_state *to, nd_fix *out);

ND_END_DECLS

#endif
