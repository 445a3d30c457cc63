/* The one sentence, and the words that text and sentence share. */
#include <math.h>
#include <string.h>

#include "reports/format.h"
#include "reports/why_report_internal.h"

/* A doubled degree divides a term when it leaves less than this of it. */
static const double divided_frac = 0.95;

const char *nd_why_time_label(const char *key)
{
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        if (strcmp(term->key, key) == 0) {
            return term->label;
        }
    }
    return key;
}

const nd_term *nd_why_largest_memory(const nd_memory_breakdown *memory)
{
    const nd_term *largest = nd_memory_terms;
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        if (nd_memory_term(memory, term) > nd_memory_term(memory, largest)) {
            largest = term;
        }
    }
    return largest;
}

double nd_why_state_bytes(const nd_memory_breakdown *memory)
{
    return memory->weights_bytes + memory->grads_bytes + memory->optimizer_bytes;
}

static bool divides(const nd_divisions *divisions, int axis, const nd_term *term)
{
    const nd_division *division = &divisions->axis[axis];
    double before = nd_memory_term(&divisions->memory, term);
    return division->rule == NULL && before > 0.0 && nd_memory_term(&division->memory, term) < divided_frac * before;
}

void nd_why_dividing_axes(const nd_divisions *divisions, const nd_term *term, char out[ND_WHY_AXES_TEXT_MAX])
{
    int left = 0;
    for (int axis = 0; axis < ND_DIVISION_AXES; axis++) {
        left += divides(divisions, axis, term);
    }
    (void)snprintf(out, ND_WHY_AXES_TEXT_MAX, "%s", left == 0 ? "no degree" : "");
    bool first = true;
    for (int axis = 0; axis < ND_DIVISION_AXES; axis++) {
        if (divides(divisions, axis, term)) {
            size_t used = strlen(out);
            const char *separator = first ? "" : left == 1 ? " and " : ", ";
            (void)snprintf(out + used, ND_WHY_AXES_TEXT_MAX - used, "%s%s", separator, divisions->axis[axis].axis);
            first = false;
            left--;
        }
    }
}

const char *nd_why_other_name(const nd_why *why)
{
    return why->place.rank == 0 ? "the other layout" : why->comparison.slower.was_asked ? "the first" : "the next";
}

static void describe_cost(const nd_fix *fix, char *out, size_t out_bytes)
{
    if (fix->slower_frac > 0.0005) {
        (void)snprintf(out, out_bytes, "for %s %% more time a token", nd_format_percent(fix->slower_frac).text);
    } else if (fix->slower_frac < -0.0005) {
        (void)snprintf(out, out_bytes, "in %s %% less time a token", nd_format_percent(-fix->slower_frac).text);
    } else {
        (void)snprintf(out, out_bytes, "at no cost of time");
    }
}

/* "; recompute=full makes it fit for 25.1 % more time a token" */
static void describe_remedy(const nd_why *why, char *out, size_t out_bytes)
{
    const nd_fix *fix = why->has_sure ? &why->sure : why->has_likely ? &why->likely : NULL;
    if (fix != NULL && !why->has_search_fit) {
        char change[2 * ND_FIX_TEXT_MAX];
        char cost[96];
        nd_fix_change(fix, change, sizeof change);
        describe_cost(fix, cost, sizeof cost);
        (void)snprintf(out, out_bytes, "; %s makes it %s %s", change, why->has_sure ? "surely fit" : "borderline",
                       cost);
        return;
    }
    if (why->has_search_fit) {
        char text[320];
        (void)nd_layout_format(&why->search_fit.layout, text, sizeof text);
        (void)snprintf(out, out_bytes, "; no one or two changes make it fit, but %s does", text);
        return;
    }
    (void)snprintf(out, out_bytes, "; no one or two changes and no other layout of these GPUs fit");
}

static void say_illegal(const nd_why *why, char *out)
{
    const nd_repair *repair = &why->repair;
    const nd_refusal *refusal = &repair->steps[0].refusal;
    char remedy[384] = "";
    if (repair->found && repair->count == 1) {
        (void)snprintf(remedy, sizeof remedy, "; with %s it is legal", repair->steps[0].change);
    } else if (repair->found) {
        (void)snprintf(remedy, sizeof remedy, "; with %s it meets the next of %d rules", repair->steps[0].change,
                       (int)repair->count);
    } else if (refusal->nearest[0] != '\0') {
        (void)snprintf(remedy, sizeof remedy, "; nearest legal: %s", refusal->nearest);
    }
    (void)snprintf(out, ND_WHY_SENTENCE_MAX, "No, it is not legal: %s (%s)%s.", refusal->message, refusal->rule,
                   remedy);
}

static void say_unfit(const nd_why *why, char *out)
{
    const nd_memory_breakdown *memory = &why->estimate.memory;
    const nd_term *largest = nd_why_largest_memory(memory);
    char remedy[448];
    describe_remedy(why, remedy, sizeof remedy);
    (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                   "No, it does not fit: it needs %s GiB a GPU in phase %s and has %s GiB, and the largest part is %s "
                   "with %s GiB%s.",
                   nd_format_gib(memory->peak_bytes).text, nd_phase_name(memory->phase),
                   nd_format_gib(memory->capacity_bytes).text, largest->label,
                   nd_format_gib(nd_memory_term(memory, largest)).text, remedy);
}

static void say_host(const nd_why *why, char *out)
{
    char remedy[448];
    describe_remedy(why, remedy, sizeof remedy);
    (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                   "No: it fits the GPUs, but its nodes need %s GiB of host memory each and have %s GiB%s.",
                   nd_format_gib(why->estimate.memory.host_bytes).text, nd_format_gib(why->host_memory_bytes).text,
                   remedy);
}

static void say_borderline(const nd_why *why, char *out)
{
    const nd_memory_breakdown *memory = &why->estimate.memory;
    char remedy[448] = "";
    if (why->has_sure) {
        describe_remedy(why, remedy, sizeof remedy);
    }
    if (memory->peak_high_bytes <= memory->capacity_bytes) {
        (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                       "Maybe: it fits once loaded, but a loader that puts the whole model on each GPU needs %s GiB of "
                       "%s GiB%s.",
                       nd_format_gib(memory->load_whole_bytes).text, nd_format_gib(memory->capacity_bytes).text,
                       remedy);
        return;
    }
    (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                   "Maybe: it is legal, but its peak is between %s and %s GiB (80 %% interval) of %s GiB a GPU%s.",
                   nd_format_gib(memory->peak_low_bytes).text, nd_format_gib(memory->peak_high_bytes).text,
                   nd_format_gib(memory->capacity_bytes).text, remedy);
}

/* "rank 3 of 28 meshes that fit", or what it is compared with when no search was made. */
static void describe_place(const nd_why *why, char *out, size_t out_bytes)
{
    const nd_why_place *place = &why->place;
    if (place->rank > 0) {
        bool last_listed = place->at_least && place->rank == place->meshes;
        (void)snprintf(out, out_bytes, "rank %s%s of %s%s mesh%s that fit%s", nd_format_count(place->rank).text,
                       last_listed ? " or later" : "", place->at_least ? "at least " : "",
                       nd_format_count(place->meshes).text, place->meshes == 1 ? "" : "es",
                       place->meshes == 1 ? "s" : "");
    } else {
        (void)snprintf(out, out_bytes, "%s", why->comparison.slower.was_asked ? "the slower one" : "the faster one");
    }
}

/* Of a loss that is won back in part, the gap is less than its largest term. */
static void describe_loss(const nd_comparison *c, char *out, size_t out_bytes)
{
    const nd_gap_term *term = &c->terms[0];
    if (c->count > 0) {
        (void)snprintf(out, out_bytes, "%s lost in %s (%s%s%s)",
                       term->lost_s > c->lost_s / 2.0 ? "most of it" : "the largest part of it",
                       nd_why_time_label(term->key), nd_format_seconds(term->lost_s).text,
                       term->lost_s > c->lost_s ? ", partly won back elsewhere; in all " : " of ",
                       nd_format_seconds(c->lost_s).text);
    }
}

static void say_place(const nd_why *why, char *out)
{
    const nd_comparison *c = &why->comparison;
    char place[192];
    describe_place(why, place, sizeof place);
    if (!why->has_comparison) {
        (void)snprintf(out, ND_WHY_SENTENCE_MAX, "Yes: it is legal and fits, and no other layout here does.");
        return;
    }
    char other[96];
    const nd_comparison_side *side = c->slower.was_asked ? &c->faster : &c->slower;
    (void)snprintf(other, sizeof other, "%s%s", nd_why_other_name(why),
                   side->estimate.memory.verdict == ND_VERDICT_NO ? " (which does not fit)" : "");
    char lost[256] = "";
    describe_loss(c, lost, sizeof lost);
    bool asked_slower = c->slower.was_asked;
    if (c->explaining == 0) {
        bool by_memory = why->place.rank > 0 && asked_slower;
        (void)snprintf(out, ND_WHY_SENTENCE_MAX, "Yes: it is legal and fits, %s, with the same step time as %s%s.",
                       place, other, by_memory ? "; what fits as surely or needs less memory comes first" : "");
        return;
    }
    char unsure[64] = "";
    if (c->within_uncertainty) {
        (void)snprintf(unsure, sizeof unsure, ", which is within the model's uncertainty");
    }
    if (asked_slower) {
        (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                       "Yes, it is legal and fits, but it is %s: its step takes %s x as long as that of %s%s, %s.",
                       place, nd_format_number(c->slower.step_s / c->faster.step_s).text, other, unsure, lost);
    } else {
        (void)snprintf(out, ND_WHY_SENTENCE_MAX,
                       "Yes: it is legal, fits, and is %s: %s takes %s x as long%s, %s; this one is bound by %s.",
                       place, other, nd_format_number(c->slower.step_s / c->faster.step_s).text, unsure, lost,
                       why->estimate.bound_by);
    }
}

/* What fits may not load: every process of a node may read the whole checkpoint. */
static void add_loading(const nd_why *why, char *out)
{
    const nd_memory_breakdown *memory = &why->estimate.memory;
    bool fits = why->answer == ND_WHY_BORDERLINE || why->answer == ND_WHY_NOT_FIRST || why->answer == ND_WHY_FIRST;
    size_t used = strlen(out);
    if (fits && why->host_memory_bytes > 0.0 && memory->host_load_bytes > why->host_memory_bytes) {
        (void)snprintf(out + used, ND_WHY_SENTENCE_MAX - used,
                       " But loading the checkpoint needs %s GiB of host memory a node, which has %s GiB: load one "
                       "rank at a time, or on the meta device.",
                       nd_format_gib(memory->host_load_bytes).text, nd_format_gib(why->host_memory_bytes).text);
    }
}

void nd_why_sentence(const nd_why *why, char out[ND_WHY_SENTENCE_MAX])
{
    switch (why->answer) {
    case ND_WHY_ILLEGAL:
        say_illegal(why, out);
        break;
    case ND_WHY_UNFIT:
        say_unfit(why, out);
        break;
    case ND_WHY_HOST_UNFIT:
        say_host(why, out);
        break;
    case ND_WHY_BORDERLINE:
        say_borderline(why, out);
        break;
    case ND_WHY_NOT_FIRST:
    case ND_WHY_FIRST:
        say_place(why, out);
        break;
    }
    add_loading(why, out);
}
