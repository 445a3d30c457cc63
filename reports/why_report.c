#include "reports/why_report.h"

#include <string.h>

#include "reports/format.h"
#include "reports/why_report_internal.h"

static nd_tone answer_tone(nd_why_answer answer)
{
    bool no = answer == ND_WHY_ILLEGAL || answer == ND_WHY_UNFIT || answer == ND_WHY_HOST_UNFIT;
    return no ? ND_TONE_BAD : answer == ND_WHY_BORDERLINE ? ND_TONE_WARN : ND_TONE_GOOD;
}

/* The first word in a tone: the rest of the sentence wraps, which tones do not. */
static void print_answer(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    char sentence[ND_WHY_SENTENCE_MAX];
    nd_why_sentence(why, sentence);
    if (context->style.color) {
        nd_report_tone(stream, &context->style, answer_tone(why->answer), "*");
        fputc(' ', stream);
    }
    nd_report_paragraph(stream, &context->style, 0, 2, "%s", sentence);
    fputc('\n', stream);
}

static void print_plan(FILE *stream, const nd_report_context *context, const char *what, const nd_layout *layout,
                       const nd_estimate *estimate)
{
    char text[512];
    (void)nd_layout_format(layout, text, sizeof text);
    nd_report_paragraph(stream, &context->style, 2, 4, "%s: %s", what, text);
    nd_report_paragraph(stream, &context->style, 4, 4, "%s of %s GiB a GPU (%s), step %s, %s tokens/s, MFU %s %%",
                        nd_format_gib(estimate->memory.peak_bytes).text,
                        nd_format_gib(estimate->memory.capacity_bytes).text, nd_verdict_name(estimate->memory.verdict),
                        nd_format_seconds(estimate->time.step_s).text, nd_format_number(estimate->tokens_per_s).text,
                        nd_format_percent(estimate->mfu_frac).text);
}

static void print_rules(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    const nd_repair *repair = &why->repair;
    nd_report_heading(stream, &context->style,
                      repair->count == 1 ? "The rule" : "The rules, each after the last change");
    for (int32_t i = 0; i < repair->count; i++) {
        const nd_repair_step *step = &repair->steps[i];
        nd_report_paragraph(stream, &context->style, 2, 4, "%s: %s", step->refusal.rule, step->refusal.message);
        if (step->refusal.nearest[0] != '\0') {
            nd_report_paragraph(stream, &context->style, 4, 6, "nearest legal: %s", step->refusal.nearest);
        }
        if (step->change[0] != '\0') {
            bool last = repair->found && i + 1 == repair->count;
            nd_report_paragraph(stream, &context->style, 4, 6, "with %s%s", step->change,
                                last ? " the layout is legal" : " the next rule counts");
        }
    }
    fputc('\n', stream);
    if (repair->found) {
        print_plan(stream, context, "Nearest legal layout", &repair->layout, &repair->estimate);
    } else if (why->has_legal) {
        print_plan(stream, context, "Legal layout that differs least", &why->legal.layout, &why->legal.estimate);
    } else {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "No layout of these GPUs is legal here: `ndplan suggest` counts the rules.");
    }
}

static void print_layout(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    nd_report_layout(stream, &why->layout);
    if (why->answer == ND_WHY_ILLEGAL) {
        return;
    }
    const nd_estimate *estimate = &why->estimate;
    nd_report_paragraph(stream, &context->style, 11, 11, "%s of %s GiB a GPU (%s), step %s, bound by %s",
                        nd_format_gib(estimate->memory.peak_bytes).text,
                        nd_format_gib(estimate->memory.capacity_bytes).text, nd_verdict_name(estimate->memory.verdict),
                        nd_format_seconds(estimate->time.step_s).text, estimate->bound_by);
}

static void print_place(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    const nd_why_place *place = &why->place;
    nd_report_heading(stream, &context->style, "Where it stands");
    nd_report_paragraph(
        stream, &context->style, 2, 2,
        "Rank %s%s of %s%s mesh%s, by step time; a search of %s layout%s finds %s that fit%s.",
        nd_format_count(place->rank).text, place->at_least && place->rank == place->meshes ? " or later" : "",
        place->at_least ? "at least " : "", nd_format_count(place->meshes).text, place->meshes == 1 ? "" : "es",
        nd_format_count(place->searched).text, place->searched == 1 ? "" : "s", nd_format_count(place->fitting).text,
        place->fitting == 1 ? "s" : "");
    if (place->has_variant) {
        print_plan(stream, context, "Best variant of the same mesh", &place->variant.layout, &place->variant.estimate);
    }
}

nd_status nd_report_why(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    print_answer(stream, context, why);
    nd_report_preamble(stream, context);
    print_layout(stream, context, why);
    if (context->quiet) {
        return ND_OK;
    }
    if (why->answer == ND_WHY_ILLEGAL) {
        print_rules(stream, context, why);
        return ND_OK;
    }
    bool fits = why->answer == ND_WHY_FIRST || why->answer == ND_WHY_NOT_FIRST;
    if (!fits) {
        ND_TRY(nd_report_why_memory(stream, context, why, err));
    }
    if (context->verbose) {
        ND_TRY(nd_report_why_divisions(stream, context, &why->divisions, err));
    }
    if (why->place.rank > 0) {
        print_place(stream, context, why);
    }
    if (why->has_comparison) {
        ND_TRY(nd_report_why_time(stream, context, why, err));
    }
    nd_report_why_host(stream, context, why);
    return ND_OK;
}
