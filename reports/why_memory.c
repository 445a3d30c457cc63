/* What takes the memory, which degree divides it, and what would make the layout fit. */
#include <math.h>

#include "reports/fixes_table.h"
#include "reports/format.h"
#include "reports/why_report_internal.h"

enum { FIXES_SHOWN = 8 };

static nd_status print_terms(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    static const nd_column columns[] = {
        {"term", NULL, ND_ALIGN_LEFT, 0, 0},
        {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"less with more of", NULL, ND_ALIGN_LEFT, 0, 16},
    };
    const nd_memory_breakdown *memory = &why->estimate.memory;
    nd_table *table = nd_table_create(columns, 3);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the memory");
    }
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        char axes[ND_WHY_AXES_TEXT_MAX];
        nd_why_dividing_axes(&why->divisions, term, axes);
        nd_table_add(table, term->label);
        nd_table_add(table, nd_format_gib(nd_memory_term(memory, term)).text);
        nd_table_add(table, nd_memory_term(memory, term) > 0.0 ? axes : "-");
    }
    nd_table_add_tone(table, "peak", ND_TONE_STRONG);
    nd_table_add_tone(table, nd_format_gib(memory->peak_bytes).text, ND_TONE_STRONG);
    nd_table_add(table, "");
    nd_table_add(table, "the GPU has");
    nd_table_add(table, nd_format_gib(memory->capacity_bytes).text);
    nd_table_add(table, "");
    char heading[96];
    (void)snprintf(heading, sizeof heading, "Memory of one GPU at its peak (phase %s, stage %d)",
                   nd_phase_name(memory->phase), (int)memory->stage);
    nd_report_heading(stream, &context->style, heading);
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    return status;
}

static void print_shares(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    const nd_memory_breakdown *memory = &why->estimate.memory;
    double states = nd_why_state_bytes(memory);
    const nd_term *largest = nd_why_largest_memory(memory);
    char axes[ND_WHY_AXES_TEXT_MAX];
    nd_why_dividing_axes(&why->divisions, largest, axes);
    double over = memory->peak_bytes - memory->capacity_bytes;
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "States alone (weights, gradients, optimizer) are %s GiB, activations %s GiB, all else %s GiB: "
                        "%s GiB %s. The largest term, %s, gets smaller with more of %s.",
                        nd_format_gib(states).text, nd_format_gib(memory->activations_bytes).text,
                        nd_format_gib(memory->peak_bytes - states - memory->activations_bytes).text,
                        nd_format_gib(fabs(over)).text, over > 0.0 ? "too much" : "to spare", largest->label, axes);
}

static void print_fix(FILE *stream, const nd_report_context *context, const char *what, const nd_fix *fix)
{
    char change[2 * ND_FIX_TEXT_MAX];
    char text[512];
    const nd_memory_breakdown *memory = &fix->estimate.memory;
    nd_fix_change(fix, change, sizeof change);
    (void)nd_layout_format(&fix->layout, text, sizeof text);
    nd_report_paragraph(stream, &context->style, 2, 4, "%s: %s", what, change);
    nd_report_paragraph(
        stream, &context->style, 4, 4, "%s GiB a GPU (%s to %s, %s), time of a token x %s. In full: --layout %s%s%s",
        nd_format_gib(memory->peak_bytes).text, nd_format_gib(memory->peak_low_bytes).text,
        nd_format_gib(memory->peak_high_bytes).text, nd_verdict_name(memory->verdict),
        nd_format_number(1.0 + fix->slower_frac).text, text, fix->options[0] != '\0' ? " with " : "", fix->options);
}

/* Everybody's first idea is shown wherever it stands: the last place that is shown is its own at worst. NULL where it
 * is no change, or saves nothing. */
static const nd_fix *show_full_recompute(nd_fix *fixes, int32_t count)
{
    int32_t at = 0;
    while (at < count && !(fixes[at].kind == ND_FIX_RECOMPUTE && fixes[at].layout.recompute == ND_RECOMPUTE_FULL)) {
        at++;
    }
    if (at == count) {
        return NULL;
    }
    nd_fix full = fixes[at];
    for (; at >= FIXES_SHOWN; at--) {
        fixes[at] = fixes[at - 1];
    }
    fixes[at] = full;
    return &fixes[at];
}

static nd_status print_remedies(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    nd_fix fixes[ND_FIXES_MAX];
    char text[512];
    nd_report_heading(stream, &context->style, "What makes it fit");
    if (why->has_likely && (!why->has_sure || why->likely.slower_frac != why->sure.slower_frac)) {
        print_fix(stream, context, "Smallest change after which it may fit", &why->likely);
    }
    if (why->has_sure) {
        print_fix(stream, context, "Smallest change after which it surely fits", &why->sure);
    }
    if (why->has_search_fit) {
        const nd_estimate *estimate = &why->search_fit.estimate;
        (void)nd_layout_format(&why->search_fit.layout, text, sizeof text);
        nd_report_paragraph(stream, &context->style, 2, 4,
                            "No one or two changes of layout or software suffice. What a search finds for these GPUs: "
                            "%s (%s GiB, %s, step %s).",
                            text, nd_format_gib(estimate->memory.peak_bytes).text,
                            nd_verdict_name(estimate->memory.verdict), nd_format_seconds(estimate->time.step_s).text);
    } else if (!why->has_likely && !why->has_sure) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            why->answer == ND_WHY_BORDERLINE
                                ? "No one or two changes make it surely fit."
                                : "No one or two changes suffice, and a search finds nothing else that fits.");
    }
    int32_t count = nd_fixes_find(context->cost, context->framework, &why->layout, NULL, fixes);
    if (count == 0) {
        return ND_OK;
    }
    nd_report_heading(stream, &context->style,
                      "Single changes, most GiB for the least time first, another training last");
    const nd_fix *recompute = show_full_recompute(fixes, count);
    ND_TRY(nd_report_fixes(stream, context, fixes, count, context->verbose ? count : FIXES_SHOWN, err));
    if (recompute != NULL && recompute->estimate.memory.verdict == ND_VERDICT_NO) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "recompute=full alone does not suffice: %s of %s GiB are left.",
                            nd_format_gib(recompute->estimate.memory.peak_bytes).text,
                            nd_format_gib(recompute->estimate.memory.capacity_bytes).text);
    }
    return ND_OK;
}

nd_status nd_report_why_memory(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    if (why->answer != ND_WHY_HOST_UNFIT) {
        ND_TRY(print_terms(stream, context, why, err));
        print_shares(stream, context, why);
    }
    return print_remedies(stream, context, why, err);
}

/* Advice to offload moves the need to the host: the figures of the layout asked for would be those of another one. */
static void print_offloaded(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    const nd_fix *fix = why->has_sure ? &why->sure : why->has_likely ? &why->likely : NULL;
    if (fix != NULL && fix->layout.offload != why->layout.offload && fix->layout.offload != ND_OFFLOAD_NONE) {
        nd_report_paragraph(stream, &context->style, 2, 2, "With the change above, offload=%s: %s GiB while training.",
                            nd_offload_name(fix->layout.offload), nd_format_gib(fix->estimate.memory.host_bytes).text);
    }
}

void nd_report_why_host(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    const nd_memory_breakdown *memory = &why->estimate.memory;
    double host = why->host_memory_bytes;
    char has[96] = "how much it has is not known";
    if (host > 0.0) {
        (void)snprintf(has, sizeof has, "it has %s GiB", nd_format_gib(host).text);
    }
    nd_report_heading(stream, &context->style, "Host memory and loading");
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "With this layout a node needs %s GiB while training and %s GiB while loading; %s.",
                        nd_format_gib(memory->host_bytes).text, nd_format_gib(memory->host_load_bytes).text, has);
    print_offloaded(stream, context, why);
    if (host > 0.0 && memory->host_load_bytes > host && memory->host_bytes <= host) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "Loading needs more than the node has: load one rank at a time, or on the meta device.");
    }
    if (memory->load_whole_bytes > 0.0) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "A loader that puts the whole model on a GPU before it is sharded needs %s GiB there%s.",
                            nd_format_gib(memory->load_whole_bytes).text,
                            memory->load_whole_bytes > memory->capacity_bytes
                                ? ", more than it has: load on the CPU or on the meta device"
                                : "");
    }
}

static void add_division(nd_table *table, const nd_divisions *divisions, const nd_term *term, double before)
{
    nd_table_add(table, term != NULL ? term->label : "peak of that phase");
    nd_table_add(table, nd_format_gib(before).text);
    for (int axis = 0; axis < ND_DIVISION_AXES; axis++) {
        const nd_division *division = &divisions->axis[axis];
        double after = term != NULL ? nd_memory_term(&division->memory, term) : division->memory.peak_bytes;
        char cell[32];
        if (division->rule != NULL || before <= 0.0) {
            (void)snprintf(cell, sizeof cell, "-");
        } else {
            (void)snprintf(cell, sizeof cell, "x %.2f", after / before);
        }
        nd_table_add(table, cell);
    }
}

nd_status nd_report_why_divisions(FILE *stream, const nd_report_context *context, const nd_divisions *divisions,
                                  nd_error *err)
{
    static const nd_column columns[] = {
        {"term", NULL, ND_ALIGN_LEFT, 0, 12}, {"now", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"dp", "repl", ND_ALIGN_RIGHT, 0, 0}, {"dp", "shard", ND_ALIGN_RIGHT, 0, 0},
        {"cp", NULL, ND_ALIGN_RIGHT, 0, 0},   {"tp", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"pp", NULL, ND_ALIGN_RIGHT, 0, 0},   {"ep", NULL, ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the divisions");
    }
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        add_division(table, divisions, term, nd_memory_term(&divisions->memory, term));
    }
    add_division(table, divisions, NULL, divisions->memory.peak_bytes);
    nd_report_heading(stream, &context->style, "What twice the degree leaves of each term");
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "With twice the GPUs (ep: the same ones), each rank with as many micro-batches as before, "
                            "in phase %s; -: a rule forbids it, or there is nothing to divide.",
                            nd_phase_name(divisions->memory.phase));
    }
    return status;
}
