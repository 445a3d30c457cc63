#include "planner/advice.h"

#include <stdlib.h>
#include <string.h>

#include "planner/fixes_internal.h"

static const uint32_t advised_kinds = 1u << ND_FIX_OPTIMIZER | 1u << ND_FIX_OFFLOAD | 1u << ND_FIX_LOSS |
                                      1u << ND_FIX_SEQ_LEN | 1u << ND_FIX_LORA | 1u << ND_FIX_QLORA;
/* Twice the nodes, and so on. */
enum { NODES_FACTOR_MAX = 16 };
/* Searches that find nothing look at nearly all layouts: together at so many, a few seconds. Others end early. */
static const int64_t searched_max = 2000000;

typedef struct adviser {
    nd_fix_origin origin;
    nd_search_options search;
    nd_advice *out;
    int64_t searched; /* without success */
} adviser;

static bool pinned(const adviser *a, nd_layout_key key)
{
    return (a->search.pinned >> key & 1u) != 0;
}

/* The changes of `from`, the mildest of a kind first. */
static void list_moves(const adviser *a, const nd_fix_state *from, uint32_t kinds, nd_fix_moves *out)
{
    const nd_fix_origin *o = &a->origin;
    uint32_t offload = pinned(a, ND_LAYOUT_KEY_OFFLOAD) ? 1u << ND_FIX_OFFLOAD : 0;
    nd_fix_moves others;
    /* part of a node is not made larger by more such parts */
    bool nodes = (kinds >> ND_FIX_NODES & 1u) != 0 && from->nodes == o->state.nodes &&
                 (o->context->cluster->nodes > 1 || o->context->cluster->gpus_per_node > 1);
    out->count = 0;
    for (int64_t factor = 2; nodes && factor <= NODES_FACTOR_MAX && out->count < ND_FIX_MOVES_MAX; factor *= 2) {
        nd_fix_move move = {ND_FIX_NODES, *from};
        move.state.nodes *= factor;
        out->moves[out->count++] = move;
    }
    nd_fix_moves_of(o->context, o->framework, from, kinds & ~offload & ~(1u << ND_FIX_NODES), &others);
    for (int32_t i = 0; i < others.count && out->count < ND_FIX_MOVES_MAX; i++) {
        out->moves[out->count++] = others.moves[i];
    }
}

/* The closest layout under a change. On more nodes it is none. */
static bool keep_layout(adviser *a, const nd_fix_state *state, nd_fix *fix)
{
    return state->nodes == a->origin.state.nodes && nd_fix_judge(&a->origin, state, fix) &&
           nd_fix_suffices(fix, ND_VERDICT_BORDERLINE);
}

static nd_status search_layout(adviser *a, nd_fix_state *state, nd_fix *fix, bool *found, nd_error *err)
{
    nd_error inner;
    nd_plan_list list = {0};
    nd_search_options options = a->search;
    const nd_cost_context *context = nd_fix_context(&a->origin, state);
    *found = false;
    if (context == NULL) {
        return ND_OK;
    }
    options.pin.offload = state->layout.offload;
    options.pinned |= 1u << ND_LAYOUT_KEY_OFFLOAD;
    nd_status status = nd_search(context, a->origin.framework, &options, &list, &inner);
    if (status != ND_OK) { /* pins that this change contradicts */
        return status == ND_EINVAL ? ND_OK : nd_fail(err, status, "%s", inner.message);
    }
    a->searched += list.fitting == 0 ? list.searched : 0;
    for (int32_t i = 0; i < list.count; i++) {
        nd_fix other = *fix;
        state->layout = list.plans[i].layout;
        bool better = !*found || list.plans[i].estimate.memory.verdict < fix->estimate.memory.verdict;
        if (better && nd_fix_judge(&a->origin, state, &other) && nd_fix_suffices(&other, ND_VERDICT_BORDERLINE)) {
            *fix = other;
            *found = true;
        }
    }
    if (*found) {
        state->layout = fix->layout;
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

static bool has_kind(const nd_advice *out, nd_fix_kind kind, nd_fix_kind second)
{
    for (int32_t i = 0; i < out->count; i++) {
        if (out->fixes[i].kind == kind && (second == ND_FIX_COUNT || out->fixes[i].second == second)) {
            return true;
        }
    }
    return false;
}

/* Once as it is, once with a search. */
typedef enum effort { KEEP, SEARCH } effort;

static nd_status try_move(adviser *a, const nd_fix_move *move, nd_fix_kind second, effort how, bool *found,
                          nd_error *err)
{
    nd_fix fix = {.kind = move->kind, .second = second};
    nd_fix_state state = move->state;
    *found = false;
    if (a->out->count == ND_ADVICE_MAX) {
        return ND_OK;
    }
    if (how == KEEP) {
        *found = keep_layout(a, &state, &fix);
    } else if (a->searched < searched_max) {
        ND_TRY(search_layout(a, &state, &fix, found, err));
    }
    if (*found) {
        nd_fix_describe(a->origin.context, &a->origin.state, &state, &fix);
        a->out->fixes[a->out->count++] = fix;
    }
    return ND_OK;
}

static nd_status try_singles(adviser *a, const nd_fix_moves *moves, nd_error *err)
{
    bool done[ND_FIX_MOVES_MAX] = {false};
    for (int step = KEEP; step <= SEARCH; step++) {
        for (int32_t i = 0; i < moves->count; i++) {
            /* a mildest one of a kind is enough to search for */
            bool enough = step == SEARCH && has_kind(a->out, moves->moves[i].kind, ND_FIX_COUNT);
            if (!done[i] && !enough) {
                ND_TRY(try_move(a, &moves->moves[i], ND_FIX_COUNT, (effort)step, &done[i], err));
            }
        }
    }
    return ND_OK;
}

/* Each pair of kinds once, the second change made on top of the first. */
static nd_status try_pairs(adviser *a, const nd_fix_moves *moves, nd_error *err)
{
    nd_fix_moves second;
    for (int32_t i = 0; i < moves->count; i++) {
        const nd_fix_move *move = &moves->moves[i];
        uint32_t later = advised_kinds & ~((2u << move->kind) - 1u);
        later = move->kind == ND_FIX_NODES ? advised_kinds : later;
        if (move->kind == ND_FIX_LORA) {
            later &= ~(1u << ND_FIX_QLORA); /* which is one change */
        }
        list_moves(a, &move->state, later, &second);
        for (int32_t k = 0; k < second.count; k++) {
            nd_fix_kind kind = second.moves[k].kind;
            const nd_fix_move both = {move->kind, second.moves[k].state};
            bool found = has_kind(a->out, move->kind, kind);
            for (int step = KEEP; step <= SEARCH && !found; step++) {
                ND_TRY(try_move(a, &both, kind, (effort)step, &found, err));
            }
        }
    }
    return ND_OK;
}

static nd_fix_class class_of(const nd_fix *fix)
{
    nd_fix_class first = nd_fix_kind_class(fix->kind);
    nd_fix_class second = fix->second == ND_FIX_COUNT ? first : nd_fix_kind_class(fix->second);
    return first > second ? first : second;
}

static int by_effort(const void *left, const void *right)
{
    int order = (int)class_of(left) - (int)class_of(right);
    return order != 0 ? order : nd_fix_compare(left, right);
}

nd_status nd_advice_find(const nd_cost_context *context, const nd_framework *framework,
                         const nd_search_options *options, const nd_layout *closest, nd_advice *out, nd_error *err)
{
    nd_fix_moves moves;
    adviser *a = calloc(1, sizeof *a);
    memset(out, 0, sizeof *out);
    if (a == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for advice");
    }
    a->search = options != NULL ? *options : nd_search_options_default();
    a->search.control.progress = NULL;
    a->search.top = 2; /* the fastest, and the fastest that surely fits */
    a->search.include_unfit = false;
    a->search.front = false;
    a->out = out;
    nd_fix_start(&a->origin, context, framework, closest);
    list_moves(a, &a->origin.state, advised_kinds | 1u << ND_FIX_NODES, &moves);
    nd_status status = try_singles(a, &moves, err);
    if (status == ND_OK && out->count == 0) {
        out->pairs = true;
        status = try_pairs(a, &moves, err);
    }
    qsort(out->fixes, (size_t)out->count, sizeof out->fixes[0], by_effort);
    free(a);
    return status;
}
