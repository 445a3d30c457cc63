#include "reports/plan_table.h"

#include <math.h>

#include "core/text.h"
#include "planner/advice.h"
#include "reports/answer.h"
#include "reports/format.h"
#include "reports/plan_columns.h"
#include "reports/rejections.h"
#include "reports/run_report.h"
#include "reports/scale_report.h"
#include "reports/terms.h"

enum { NOTED_PLANS = 3 };

/* Why the first is before the second: the term of the step time in which they differ most. */
static void print_reason(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                         nd_objective objective)
{
    if (list->count < 2) {
        return;
    }
    const nd_estimate *first = &list->plans[0].estimate;
    const nd_estimate *second = &list->plans[1].estimate;
    if (objective == ND_OBJECTIVE_MEMORY) {
        nd_report_paragraph(stream, &context->style, 0, 2, "#1 before #2: it needs %s GiB instead of %s GiB.",
                            nd_format_gib(first->memory.peak_bytes).text,
                            nd_format_gib(second->memory.peak_bytes).text);
        return;
    }
    double ahead_s = second->time.step_s - first->time.step_s;
    const nd_term *term = nd_time_terms_largest_difference(&first->time, &second->time, 0.0);
    if (ahead_s <= 1e-9 * first->time.step_s || term == NULL) {
        nd_report_paragraph(
            stream, &context->style, 0, 2, "#1 before #2: the same step time; it needs %s GiB instead of %s GiB.",
            nd_format_gib(first->memory.peak_bytes).text, nd_format_gib(second->memory.peak_bytes).text);
        return;
    }
    double first_s = nd_time_term(&first->time, term);
    double second_s = nd_time_term(&second->time, term);
    nd_report_paragraph(stream, &context->style, 0, 2,
                        "#1 before #2: its step is %s %% (%s) shorter; it gains most in %s: %s against %s.",
                        nd_format_percent(ahead_s / second->time.step_s).text, nd_format_seconds(ahead_s).text,
                        term->label, nd_format_seconds(first_s).text, nd_format_seconds(second_s).text);
    if (second->time.step_low_s < first->time.step_s) {
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "That is within the model's uncertainty: measure both when it matters.");
    }
}

/* What "~" means, and which plan to take when the first carries it. */
static void print_borderline(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    int32_t borderline = 0;
    int32_t first_sure = 0;
    for (int32_t i = list->count; i > 0; i--) {
        nd_verdict verdict = list->plans[i - 1].estimate.memory.verdict;
        borderline += verdict == ND_VERDICT_BORDERLINE;
        first_sure = verdict == ND_VERDICT_FITS ? i : first_sure;
    }
    if (borderline == 0) {
        return;
    }
    char sure[64] = "";
    if (first_sure > 1) {
        (void)snprintf(sure, sizeof sure, " The best that fits for sure is #%d.", (int)first_sure);
    }
    nd_report_paragraph(stream, &context->style, 0, 2,
                        "~ borderline: whether it fits is within the model's uncertainty.%s", sure);
    if (first_sure == 0 && list->has_sure) { /* a list of one */
        char text[512];
        const nd_estimate *estimate = &list->sure.estimate;
        (void)nd_layout_format(&list->sure.layout, text, sizeof text);
        nd_report_paragraph(stream, &context->style, 0, 2, "The best that fits for sure: %s (%s GiB, step %s).", text,
                            nd_format_gib(estimate->memory.peak_bytes).text,
                            nd_format_seconds(estimate->time.step_s).text);
    }
}

static void print_notes(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    print_borderline(stream, context, list);
    int32_t shown = context->verbose || list->count < NOTED_PLANS ? list->count : NOTED_PLANS;
    for (int32_t i = 0; i < shown; i++) {
        char note[256];
        for (int32_t n = 0; nd_plan_note(&list->plans[i], n, note, sizeof note); n++) {
            nd_report_paragraph(stream, &context->style, 0, 4, "#%d %s", (int)(i + 1), note);
        }
    }
}

static void print_next_step(FILE *stream, const nd_report_context *context, const nd_layout *layout)
{
    char text[512];
    if (context->scale != NULL) {
        nd_report_scale_next_step(stream, context, layout);
        return;
    }
    (void)nd_layout_format(layout, text, sizeof text);
    nd_report_paragraph(stream, &context->style, 0, 2, "In full: ndplan estimate ... --layout %s", text);
}

/* The largest part of the closest layout, so that the reader knows what to divide. */
static const nd_term *largest_memory_term(const nd_memory_breakdown *memory)
{
    const nd_term *largest = nd_memory_terms;
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        if (nd_memory_term(memory, term) > nd_memory_term(memory, largest)) {
            largest = term;
        }
    }
    return largest;
}

/* "--lora r=16,bits=4 with recompute=full"; with more nodes the search finds the degrees. */
static void print_fix(FILE *stream, const nd_report_context *context, const nd_fix *fix)
{
    bool pin = fix->kind == ND_FIX_OFFLOAD || fix->second == ND_FIX_OFFLOAD;
    bool nodes = fix->kind == ND_FIX_NODES || fix->second == ND_FIX_NODES;
    bool keys = fix->layout_keys[0] != '\0' && !nodes;
    bool both = keys && fix->options[0] != '\0';
    nd_report_paragraph(stream, &context->style, 4, 6, "%s%s%s%s: %s GiB, %s", fix->options, both ? " with " : "",
                        keys && pin ? "--pin " : "", keys ? fix->layout_keys : "",
                        nd_format_gib(fix->estimate.memory.peak_bytes).text,
                        nd_verdict_name(fix->estimate.memory.verdict));
}

/* Each change was tried, with a search of all layouts where the closest does not fit with it. */
static nd_status print_advice(FILE *stream, const nd_report_context *context, const nd_layout *layout, nd_error *err)
{
    nd_advice advice;
    ND_TRY(nd_advice_find(context->cost, context->framework, context->search, layout, &advice, err));
    if (advice.count == 0) {
        nd_report_paragraph(
            stream, &context->style, 2, 2,
            "Neither an 8-bit optimizer, half the sequence, offload, a chunked loss, more nodes nor LoRA makes any "
            "layout fit, nor do two of them; --all ranks the layouts that do not fit.");
        return ND_OK;
    }
    nd_report_paragraph(stream, &context->style, 2, 2,
                        advice.pairs ? "No one change suffices. What makes it fit, two changes each:"
                                     : "What makes it fit, each alone:");
    for (int32_t i = 0; i < advice.count; i++) {
        print_fix(stream, context, &advice.fixes[i]);
    }
    return ND_OK;
}

/* What the first plan of the list is the best in. */
static void label_of(const nd_report_context *context, const nd_plan_list *list, nd_objective objective, char *out,
                     size_t out_bytes)
{
    if (context->scale == NULL) {
        (void)snprintf(out, out_bytes, objective == ND_OBJECTIVE_MEMORY ? "Least memory" : "Best");
        return;
    }
    int64_t ranks = nd_layout_ranks(&list->plans[0].layout);
    const char *plural = nd_text_plural(ranks);
    nd_text gpus = nd_format_count(ranks);
    switch (context->scale_goal) {
    case ND_SCALE_COST:
        (void)snprintf(out, out_bytes, "Cheapest, %s GPU%s", gpus.text, plural);
        return;
    case ND_SCALE_GPUS:
        (void)snprintf(out, out_bytes, "Fewest GPUs, %s", gpus.text);
        return;
    case ND_SCALE_PARETO:
        break;
    }
    (void)snprintf(out, out_bytes, "Fastest, %s GPU%s", gpus.text, plural);
}

static void print_answer(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                         nd_objective objective)
{
    char text[ND_SHORT_LAYOUT_MAX];
    nd_text gpus = nd_format_count(context->cost->cluster->gpus);
    const char *plural = nd_text_plural(context->cost->cluster->gpus);
    const nd_rejection *telling = nd_rejection_telling(list);
    if (list->fitting > 0 && list->count > 0) {
        char label[96];
        label_of(context, list, objective, label, sizeof label);
        nd_report_plan_answer(stream, context, label, &list->plans[0]);
    } else if (list->has_closest) {
        const nd_memory_breakdown *memory = &list->closest.estimate.memory;
        nd_layout_degrees_text(&list->closest.layout, text);
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "Nothing fits on %s GPU%s: the closest, %s, needs %s of %s GiB a GPU.", gpus.text, plural,
                            text, nd_format_gib(memory->peak_bytes).text, nd_format_gib(memory->capacity_bytes).text);
    } else {
        nd_report_paragraph(stream, &context->style, 0, 2, "No layout of %s GPU%s is legal here%s%s%s%s.", gpus.text,
                            plural, telling != NULL ? ": " : "", telling != NULL ? telling->message : "",
                            telling != NULL && telling->nearest[0] != '\0' ? "; nearest: " : "",
                            telling != NULL ? telling->nearest : "");
    }
    fputc('\n', stream);
}

static nd_status print_nothing(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    if (!list->has_closest) {
        nd_report_paragraph(stream, &context->style, 0, 0, "The rules that refused the layouts:");
        return ND_OK;
    }
    const nd_memory_breakdown *memory = &list->closest.estimate.memory;
    const nd_term *largest = largest_memory_term(memory);
    char text[512];
    (void)nd_layout_format(&list->closest.layout, text, sizeof text);
    nd_report_paragraph(stream, &context->style, 0, 2, "Closest: %s", text);
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "It needs %s GiB a GPU in phase %s and has %s GiB: %s GiB too much. Its largest part is %s "
                        "with %s GiB.",
                        nd_format_gib(memory->peak_bytes).text, nd_phase_name(memory->phase),
                        nd_format_gib(memory->capacity_bytes).text,
                        nd_format_gib(fmax(0.0, memory->peak_bytes - memory->capacity_bytes)).text, largest->label,
                        nd_format_gib(nd_memory_term(memory, largest)).text);
    return print_advice(stream, context, &list->closest.layout, err);
}

nd_status nd_report_plans(FILE *stream, const nd_report_context *context, const nd_plan_list *list,
                          nd_objective objective, nd_error *err)
{
    print_answer(stream, context, list, objective);
    nd_report_preamble(stream, context);
    fputc('\n', stream);
    if (list->fitting == 0) {
        ND_TRY(print_nothing(stream, context, list, err));
        fputc('\n', stream);
    }
    if (list->count > 0) {
        ND_TRY(nd_report_plan_rows(stream, context, list, err));
        if (!context->quiet) {
            fputc('\n', stream);
            if (context->scale != NULL) {
                nd_report_scale(stream, context, list);
            } else {
                print_reason(stream, context, list, objective);
            }
            print_notes(stream, context, list);
            nd_report_run_short(stream, context, &list->plans[0]);
            nd_report_batch(stream, context);
            print_next_step(stream, context, &list->plans[0].layout);
        }
    }
    if (context->quiet && list->count > 0) {
        return ND_OK;
    }
    return nd_report_rejections(stream, context, list, err);
}
