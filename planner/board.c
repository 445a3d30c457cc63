#include <math.h>
#include <string.h>

#include "planner/board_internal.h"

/* A list of meshes is this much longer than what is shown: the same mesh may be there with each verdict. */
enum { MESHES_PER_PLAN = 3 };
/* Peaks within this of the least are alike. */
static const double alike_frac = 1.02;

size_t nd_board_entries(int32_t top)
{
    return (size_t)(MESHES_PER_PLAN + 1) * (size_t)top;
}

size_t nd_board_tags(int32_t top)
{
    return (size_t)MESHES_PER_PLAN * (size_t)top;
}

void nd_board_init(nd_board *board, nd_objective objective, int32_t top, nd_ranked *entries, uint32_t *tags)
{
    memset(board, 0, sizeof *board);
    board->meshes = (nd_ranking){objective, ND_RANKING_MESH_AND_VERDICT, entries, MESHES_PER_PLAN * top, 0, tags};
    board->all =
        (nd_ranking){objective, ND_RANKING_EVERY_LAYOUT, entries + (size_t)MESHES_PER_PLAN * (size_t)top, top, 0, NULL};
    board->least_peak_bytes = HUGE_VAL;
}

/* What will rather not fit is on no front; while nothing is, it may be what comes nearest. */
static bool front_is_closed(const nd_board *board, const nd_bound *bound)
{
    bool too_large = bound->peak_bytes > bound->capacity_bytes && board->front->count > 0;
    return too_large || nd_front_beats(board->front, bound->step_s, bound->peak_bytes);
}

bool nd_board_is_closed(const nd_board *board, const nd_bound *bound)
{
    if (board->front != NULL) {
        return front_is_closed(board, bound);
    }
    nd_ranked best = {nd_layout_single(), bound->step_s, bound->peak_bytes, bound->capacity_bytes, ND_VERDICT_FITS};
    if (!nd_ranking_is_closed(&board->meshes, &best) || !nd_ranking_is_closed(&board->all, &best)) {
        return false;
    }
    bool may_be_safe = bound->peak_high_bytes <= bound->capacity_bytes;
    return !may_be_safe || (board->has_safe && nd_ranked_compare(board->all.objective, &best, &board->safe) >= 0);
}

static bool is_safest(const nd_board *board, const nd_ranked *candidate)
{
    return candidate->verdict == ND_VERDICT_FITS &&
           (!board->has_safe || nd_ranked_compare(board->all.objective, candidate, &board->safe) < 0);
}

bool nd_board_would_take(const nd_board *board, const nd_ranked *candidate)
{
    if (board->front != NULL) {
        return candidate->peak_bytes <= candidate->capacity_bytes &&
               !nd_front_beats(board->front, candidate->step_s, candidate->peak_bytes);
    }
    return nd_ranking_would_take(&board->meshes, candidate) || nd_ranking_would_take(&board->all, candidate) ||
           is_safest(board, candidate);
}

void nd_board_add(nd_board *board, const nd_ranked *candidate)
{
    if (board->front != NULL) {
        nd_front_add(board->front, candidate);
        return;
    }
    nd_ranking_add(&board->meshes, candidate);
    nd_ranking_add(&board->all, candidate);
    if (is_safest(board, candidate)) {
        board->safe = *candidate;
        board->has_safe = true;
    }
}

void nd_board_note_memory(nd_board *board, const nd_ranked *candidate)
{
    int axes = nd_axes_in_use(&candidate->layout);
    nd_ranked *least = &board->least[axes];
    if (!board->has_least[axes] || nd_ranked_compare_memory(candidate, least) < 0) {
        *least = *candidate;
        board->has_least[axes] = true;
        board->least_peak_bytes = fmin(board->least_peak_bytes, candidate->peak_bytes);
    }
}

bool nd_board_may_be_closest(const nd_board *board, double peak_bytes)
{
    return board->fitting == 0 && peak_bytes <= alike_frac * board->least_peak_bytes;
}

const nd_ranked *nd_board_closest(const nd_board *board)
{
    for (int axes = 0; axes <= ND_AXES_MAX; axes++) {
        if (board->has_least[axes] && board->least[axes].peak_bytes <= alike_frac * board->least_peak_bytes) {
            return &board->least[axes];
        }
    }
    return NULL;
}

void nd_board_merge(nd_board *board, const nd_board *other)
{
    for (int32_t i = 0; i < other->meshes.count; i++) {
        nd_ranking_add(&board->meshes, &other->meshes.entries[i]);
    }
    for (int32_t i = 0; i < other->all.count; i++) {
        nd_ranking_add(&board->all, &other->all.entries[i]);
    }
    if (other->has_safe && is_safest(board, &other->safe)) {
        board->safe = other->safe;
        board->has_safe = true;
    }
    if (board->front != NULL && other->front != NULL) {
        nd_front_merge(board->front, other->front);
    }
    for (int axes = 0; axes <= ND_AXES_MAX; axes++) {
        if (other->has_least[axes]) {
            nd_board_note_memory(board, &other->least[axes]);
        }
    }
    board->evaluated += other->evaluated;
    board->fitting += other->fitting;
    board->unfit += other->unfit;
    nd_rejections_merge(&board->rejections, &other->rejections);
}
