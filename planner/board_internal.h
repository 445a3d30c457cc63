/** What a search knows so far: the best layouts of each kind, and what can still matter.
 *
 * Every branch of the search fills a board of its own, beside a board of what was known when it began; boards are
 * merged in a fixed order. So the result is the same for any number of threads.
 */
#ifndef ND_PLANNER_BOARD_INTERNAL_H
#define ND_PLANNER_BOARD_INTERNAL_H

#include "planner/front_internal.h"
#include "planner/ranking_internal.h"
#include "planner/rejections_internal.h"

ND_BEGIN_DECLS

enum { ND_AXES_MAX = ND_AXIS_COUNT + 1 }; /* of more than one rank, ep among them */

typedef struct nd_board {
    nd_ranking meshes, all;
    nd_ranked safe; /* the best layout that surely fits */
    bool has_safe;
    nd_front *front; /* borrowed; NULL: the lists are wanted, else this instead of them */
    /* for the case that nothing fits: the legal layout of least peak memory among those with so many axes in use */
    nd_ranked least[ND_AXES_MAX + 1];
    bool has_least[ND_AXES_MAX + 1];
    double least_peak_bytes; /* of all; HUGE_VAL: none yet */
    int64_t evaluated, fitting, unfit;
    nd_rejections rejections;
} nd_board;

/** What no layout of a branch can beat. */
typedef struct nd_bound {
    double step_s, peak_bytes;
    double peak_low_bytes, peak_high_bytes;
    double capacity_bytes;
} nd_bound;

/** Entries that nd_board_init() needs for lists of `top`. */
size_t nd_board_entries(int32_t top);

/** And tags. */
size_t nd_board_tags(int32_t top);

/** \param[in] entries  borrowed, nd_board_entries(top) of them
 * \param[in] tags     borrowed, nd_board_tags(top) of them */
void nd_board_init(nd_board *board, nd_objective objective, int32_t top, nd_ranked *entries, uint32_t *tags);

/** Whether no layout of a branch with this bound can enter any list of the board. */
bool nd_board_is_closed(const nd_board *board, const nd_bound *bound);

/** Whether the board would take the layout, asked before its time is known exactly. */
bool nd_board_would_take(const nd_board *board, const nd_ranked *candidate);

/** A layout that is ranked. */
void nd_board_add(nd_board *board, const nd_ranked *candidate);

/** Any legal layout, whether it fits or not. */
void nd_board_note_memory(nd_board *board, const nd_ranked *candidate);

/** Whether a layout of at least this peak memory can still be the closest one to fitting. */
bool nd_board_may_be_closest(const nd_board *board, double peak_bytes);

/** The layout closest to fitting: least memory; among those within 2 % the one that uses fewest axes, since every axis
 * looks like advice. NULL when no legal layout was noted. */
const nd_ranked *nd_board_closest(const nd_board *board);

/** Take everything of `other` in. */
void nd_board_merge(nd_board *board, const nd_board *other);

ND_END_DECLS

#endif
