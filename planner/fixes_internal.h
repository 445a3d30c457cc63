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

/** All single changes of `from`, of the kinds in the mask; steps of one kind from the mildest to the strongest. */
void nd_fix_moves_of(const nd_cost_context *context, const nd_framework *framework, const nd_fix_state *from,
                     uint32_t kinds, nd_fix_moves *out);

/** The keys in which two layouts differ, as `b` has them: "tp=2,dp_shard=4"; empty when they do not. */
void nd_fix_layout_keys(const nd_layout *a, const nd_layout *b, char out[ND_FIX_TEXT_MAX]);

/** What differs between two states, as nd_fix.layout_keys and nd_fix.options say it. */
void nd_fix_describe(const nd_cost_context *context, const nd_fix_state *from, const nd_fix_state *to, nd_fix *out);

ND_END_DECLS

#endif
