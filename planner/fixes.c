#include "planner/fixes.h"

#include <math.h>
#include <stdlib.h>

#include "planner/constraints.h"
#include "planner/fixes_internal.h"

/* Where a search for the smallest change looks, the least disturbing first. */
typedef struct tier {
    uint32_t first, second; /* kinds of the first and of the second change; second 0: a single change */
} tier;

static const char *const kind_names[ND_FIX_COUNT] = {
#define FIX_NAME(name, text, class) [name] = (text),
    ND_FIX_LIST(FIX_NAME)
#undef FIX_NAME
};

static const nd_fix_class kind_classes[ND_FIX_COUNT] = {
#define FIX_CLASS(name, text, class) [name] = (class),
    ND_FIX_LIST(FIX_CLASS)
#undef FIX_CLASS
};

const char *nd_fix_kind_name(nd_fix_kind kind)
{
    return kind_names[kind];
}

nd_fix_class nd_fix_kind_class(nd_fix_kind kind)
{
    return kind_classes[kind];
}

nd_fix_options nd_fix_options_default(void)
{
    return (nd_fix_options){.kinds = (1u << ND_FIX_COUNT) - 1u};
}

static bool same_training(const nd_train_spec *a, const nd_train_spec *b)
{
    return a->seq_len_tokens == b->seq_len_tokens && a->global_batch_seqs == b->global_batch_seqs &&
           a->precision == b->precision && a->optimizer == b->optimizer && a->attention == b->attention &&
           a->lora_rank == b->lora_rank && a->base_bits == b->base_bits;
}

const nd_cost_context *nd_fix_context(nd_fix_origin *o, const nd_fix_state *state)
{
    const nd_cost_context *base = o->context;
    nd_fix_changed *c = &o->scratch;
    nd_error err;
    bool same_stack = state->loss_chunks == o->state.loss_chunks;
    if (same_stack && state->nodes == o->state.nodes && same_training(&state->train, &o->state.train)) {
        return base;
    }
    c->cluster = *base->cluster;
    c->train = state->train;
    c->stack = *base->stack;
    c->stack.style.loss_chunks = state->loss_chunks;
    if (state->nodes != o->state.nodes && nd_cluster_resize(base->cluster, state->nodes, &c->cluster, &err) != ND_OK) {
        return NULL;
    }
    if (nd_train_spec_check(&c->train, &err) != ND_OK ||
        nd_cost_context_like(base, &c->cluster, &c->train, &c->stack, &c->context, &err) != ND_OK) {
        return NULL;
    }
    return &c->context;
}

static bool host_fits(const nd_cost_context *context, const nd_estimate *estimate)
{
    double host = (double)context->cluster->host_memory_bytes;
    return host <= 0.0 || estimate->memory.host_bytes <= host;
}

void nd_fix_start(nd_fix_origin *o, const nd_cost_context *context, const nd_framework *framework,
                  const nd_layout *layout)
{
    o->context = context;
    o->framework = framework;
    o->state = (nd_fix_state){*layout, *context->train, context->cluster->nodes, context->stack->style.loss_chunks};
    nd_estimate_layout(context, layout, &o->estimate);
    o->host_fits = host_fits(context, &o->estimate);
}

bool nd_fix_suffices(const nd_fix *fix, nd_verdict worst)
{
    const nd_memory_breakdown *memory = &fix->estimate.memory;
    return fix->host_fits && memory->verdict <= worst &&
           (memory->verdict == ND_VERDICT_FITS || memory->peak_bytes <= memory->capacity_bytes);
}

bool nd_fix_judge(nd_fix_origin *o, const nd_fix_state *state, nd_fix *out)
{
    const nd_cost_context *context = nd_fix_context(o, state);
    if (context == NULL || !nd_layout_allowed(context, o->framework, &state->layout, NULL, NULL)) {
        return false;
    }
    out->layout = state->layout;
    out->train = state->train;
    out->nodes = state->nodes;
    out->loss_chunks = state->loss_chunks;
    nd_estimate_layout(context, &state->layout, &out->estimate);
    out->host_fits = host_fits(context, &out->estimate);
    out->saved_bytes = o->estimate.memory.peak_bytes - out->estimate.memory.peak_bytes;
    out->slower_frac = o->estimate.tokens_per_s_per_gpu / out->estimate.tokens_per_s_per_gpu - 1.0;
    out->saved_bytes_per_frac = out->slower_frac > 0.0 ? out->saved_bytes / out->slower_frac : HUGE_VAL;
    return true;
}

/* More nodes are one change whatever their number: the fewest that fit, or else the fewest. True when `fix` took the
 * place of another one or is dropped. */
static bool merge_nodes(const nd_fix *fix, nd_fix *out, int32_t count)
{
    for (int32_t i = 0; fix->kind == ND_FIX_NODES && i < count; i++) {
        if (out[i].kind == ND_FIX_NODES) {
            if (out[i].estimate.memory.verdict == ND_VERDICT_NO && fix->estimate.memory.verdict != ND_VERDICT_NO) {
                out[i] = *fix;
            }
            return true;
        }
    }
    return false;
}

int nd_fix_compare(const void *left, const void *right)
{
    const nd_fix *a = left;
    const nd_fix *b = right;
    bool other_a = nd_fix_kind_class(a->kind) == ND_FIX_CLASS_TRAINING;
    bool other_b = nd_fix_kind_class(b->kind) == ND_FIX_CLASS_TRAINING;
    if (other_a != other_b) {
        return other_a ? 1 : -1;
    }
    if (a->saved_bytes_per_frac != b->saved_bytes_per_frac) {
        return a->saved_bytes_per_frac > b->saved_bytes_per_frac ? -1 : 1;
    }
    if (a->saved_bytes != b->saved_bytes) {
        return a->saved_bytes > b->saved_bytes ? -1 : 1;
    }
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : 0;
}

int32_t nd_fixes_find(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      const nd_fix_options *options, nd_fix out[ND_FIXES_MAX])
{
    nd_fix_options chosen = options != NULL ? *options : nd_fix_options_default();
    nd_fix_origin o;
    nd_fix_moves moves = {0};
    int32_t count = 0;
    nd_fix_start(&o, context, framework, layout);
    nd_fix_moves_of(context, framework, &o.state, chosen.kinds, &moves);
    for (int32_t i = 0; i < moves.count && count < ND_FIXES_MAX; i++) {
        nd_fix fix = {.kind = moves.moves[i].kind, .second = ND_FIX_COUNT};
        if (!nd_fix_judge(&o, &moves.moves[i].state, &fix)) {
            continue;
        }
        nd_verdict verdict = fix.estimate.memory.verdict;
        bool helps = fix.saved_bytes > 0.0 || verdict < o.estimate.memory.verdict ||
                     (fix.host_fits && !o.host_fits && verdict <= o.estimate.memory.verdict);
        if (!helps || (chosen.only_fitting && !nd_fix_suffices(&fix, ND_VERDICT_BORDERLINE))) {
            continue;
        }
        nd_fix_describe(context, &o.state, &moves.moves[i].state, &fix);
        if (!merge_nodes(&fix, out, count)) {
            out[count++] = fix;
        }
    }
    qsort(out, (size_t)count, sizeof out[0], nd_fix_compare);
    return count;
}

/* What the smallest change looks for, and the best so far. */
typedef struct choice {
    nd_verdict worst;
    nd_fix best;
    bool found;
} choice;

static void consider(nd_fix_origin *o, choice *c, nd_fix_kind kind, nd_fix_kind second, const nd_fix_state *state)
{
    nd_fix fix = {.kind = kind, .second = second};
    if (!nd_fix_judge(o, state, &fix) || !nd_fix_suffices(&fix, c->worst)) {
        return;
    }
    if (!c->found || fix.slower_frac < c->best.slower_frac) {
        nd_fix_describe(o->context, &o->state, state, &fix);
        c->best = fix;
        c->found = true;
    }
}

static void consider_tier(nd_fix_origin *o, choice *c, const tier *t)
{
    nd_fix_moves first = {0};
    nd_fix_moves second = {0};
    nd_fix_moves_of(o->context, o->framework, &o->state, t->first, &first);
    for (int32_t i = 0; i < first.count; i++) {
        const nd_fix_move *move = &first.moves[i];
        if (t->second == 0) {
            consider(o, c, move->kind, ND_FIX_COUNT, &move->state);
            continue;
        }
        /* a pair once: the two masks may overlap */
        uint32_t later = t->first == t->second ? ~((2u << move->kind) - 1u) : ~(1u << move->kind);
        nd_fix_moves_of(o->context, o->framework, &move->state, t->second & later, &second);
        for (int32_t j = 0; j < second.count; j++) {
            consider(o, c, move->kind, second.moves[j].kind, &second.moves[j].state);
        }
    }
}

static uint32_t kinds_of(nd_fix_class from, nd_fix_class to)
{
    uint32_t kinds = 0;
    for (int kind = 0; kind < ND_FIX_COUNT; kind++) {
        kinds |= kind_classes[kind] >= from && kind_classes[kind] <= to ? 1u << kind : 0;
    }
    return kinds;
}

bool nd_fixes_smallest_that_fits(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                                 nd_verdict worst, nd_fix *out)
{
    uint32_t same = kinds_of(ND_FIX_CLASS_LAYOUT, ND_FIX_CLASS_SOFTWARE);
    uint32_t nodes = kinds_of(ND_FIX_CLASS_HARDWARE, ND_FIX_CLASS_HARDWARE);
    uint32_t training = kinds_of(ND_FIX_CLASS_TRAINING, ND_FIX_CLASS_TRAINING);
    const tier tiers[] = {{same, 0}, {same, same}, {nodes, 0}, {training, 0}, {nodes, same}, {training, same | nodes}};
    nd_fix_origin o;
    choice c = {.worst = worst};
    nd_fix_start(&o, context, framework, layout);
    for (size_t i = 0; !c.found && i < sizeof tiers / sizeof tiers[0]; i++) {
        consider_tier(&o, &c, &tiers[i]);
    }
    if (c.found) {
        *out = c.best;
    }
    return c.found;
}
