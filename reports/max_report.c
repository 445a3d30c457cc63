#include "reports/max_report.h"

#include <stdio.h>
#include <string.h>

#include "reports/fixes_table.h"
#include "reports/format.h"
#include "reports/terms.h"

enum { FIXES_SHOWN = 6 };

/* A term of memory counts as not divided when more GPUs leave this part of it. */
static const double undivided_frac = 0.97;

nd_status nd_limit_view_build(const nd_task *task, const nd_limit *limit, nd_limit_view *out, nd_error *err)
{
    /* what is asked for is no change */
    static const uint32_t own_kinds[ND_LIMIT_QUANTITY_COUNT] = {
        [ND_LIMIT_MICRO_BATCH] = 1u << ND_FIX_MICRO_BATCH,
        [ND_LIMIT_SEQ_LEN] = 1u << ND_FIX_SEQ_LEN | 1u << ND_FIX_MICRO_BATCH,
        [ND_LIMIT_GPUS] = 1u << ND_FIX_NODES,
    };
    memset(out, 0, sizeof *out);
    out->limit = limit;
    if (!limit->has_beyond || !limit->beyond.has_closest) {
        return ND_OK;
    }
    const nd_layout *closest = &limit->beyond.closest.layout;
    nd_fix_options options = nd_fix_options_default();
    options.kinds &= ~own_kinds[limit->quantity];
    options.only_fitting = true;
    ND_TRY(nd_point_context(task, &limit->beyond, &out->beyond, err));
    out->fixes_count = nd_fixes_find(&out->beyond, task->framework, closest, &options, out->fixes);
    out->fixes_suffice = out->fixes_count > 0;
    if (out->fixes_count == 0) {
        options.only_fitting = false;
        out->fixes_count = nd_fixes_find(&out->beyond, task->framework, closest, &options, out->fixes);
    }
    return ND_OK;
}

/* A value of the quantity with its unit. */
static nd_text value_text(const nd_limit *limit, int64_t value)
{
    static const char *const one[ND_LIMIT_QUANTITY_COUNT] = {
        [ND_LIMIT_MICRO_BATCH] = "sequence", [ND_LIMIT_SEQ_LEN] = "token", [ND_LIMIT_GPUS] = "GPU"};
    nd_text out;
    (void)snprintf(out.text, sizeof out.text, "%.30s %s%s", nd_format_count(value).text, one[limit->quantity],
                   value == 1 ? "" : "s");
    return out;
}

static const char *name_of(const nd_limit *limit)
{
    static const char *const names[ND_LIMIT_QUANTITY_COUNT] = {[ND_LIMIT_MICRO_BATCH] = "Largest micro-batch",
                                                               [ND_LIMIT_SEQ_LEN] = "Longest sequence",
                                                               [ND_LIMIT_GPUS] = "Fewest GPUs"};
    return names[limit->quantity];
}

static void print_plan(FILE *stream, const nd_report_context *context, const nd_limit *limit, const nd_point *point,
                       const nd_plan *plan)
{
    char layout[512];
    const nd_estimate *estimate = &plan->estimate;
    (void)nd_layout_format(&plan->layout, layout, sizeof layout);
    nd_report_paragraph(stream, &context->style, 2, 4, "%s", layout);
    nd_report_paragraph(
        stream, &context->style, 2, 4,
        "%s of %s GiB a GPU; step %s for %s sequence%s, %s tokens/s, %s per GPU, MFU %s %%, bound by %s",
        nd_format_gib(estimate->memory.peak_bytes).text, nd_format_gib(estimate->memory.capacity_bytes).text,
        nd_format_seconds(estimate->time.step_s).text, nd_format_count(point->train.global_batch_seqs).text,
        point->train.global_batch_seqs == 1 ? "" : "s", nd_format_number(estimate->tokens_per_s).text,
        nd_format_number(estimate->tokens_per_s_per_gpu).text, nd_format_percent(estimate->mfu_frac).text,
        estimate->bound_by);
    if (limit->quantity == ND_LIMIT_GPUS) {
        nd_report_paragraph(stream, &context->style, 2, 4, "cluster %s", point->cluster.name);
        nd_report_grown_network(stream, context, &point->cluster);
    }
}

static void print_fastest(FILE *stream, const nd_report_context *context, const nd_limit *limit)
{
    if (!limit->has_fastest) {
        return;
    }
    const nd_plan *slower = limit->has_sure ? &limit->sure.sure : &limit->possible.best;
    double gain = limit->fastest.best.estimate.tokens_per_s / slower->estimate.tokens_per_s - 1.0;
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "Not the fastest: at the same global batch micro_batch %s is %s %% faster:",
                        nd_format_count(limit->fastest.value).text, nd_format_percent(gain).text);
    print_plan(stream, context, limit, &limit->fastest, &limit->fastest.best);
}

static void print_positions(FILE *stream, const nd_report_context *context, const nd_limit *limit)
{
    int64_t longest = context->cost->model->max_seq_len_tokens;
    int64_t value = limit->has_sure ? limit->sure.value : limit->possible.value;
    if (limit->quantity == ND_LIMIT_SEQ_LEN && longest > 0 && value > longest) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "That is more than the %s positions of the model's config: its position encoding must be "
                            "extended.",
                            nd_format_count(longest).text);
    }
}

/* What the search kept to, so that nobody takes its limits for those of the hardware. */
static void print_scope(FILE *stream, const nd_report_context *context, const nd_limit *limit)
{
    if (context->quiet) {
        return;
    }
    if (limit->quantity == ND_LIMIT_MICRO_BATCH) {
        nd_report_paragraph(stream, &context->style, 2, 2, "Tried up to %s.", value_text(limit, limit->ceiling).text);
    } else if (limit->quantity == ND_LIMIT_SEQ_LEN) {
        const nd_plan *plan = limit->has_sure ? &limit->sure.sure : limit->has_possible ? &limit->possible.best : NULL;
        nd_report_paragraph(stream, &context->style, 2, 2, "In steps of %s, up to %s; micro-batch %d.",
                            value_text(limit, limit->step).text, value_text(limit, limit->ceiling).text,
                            plan != NULL ? (int)plan->layout.micro_batch : 1);
    }
}

/* Which term of memory more GPUs did not divide. */
static void print_floor(FILE *stream, const nd_report_context *context, const nd_limit *limit)
{
    const nd_memory_breakdown *few = &limit->earlier.closest.estimate.memory;
    const nd_memory_breakdown *many = &limit->beyond.closest.estimate.memory;
    const nd_term *largest = NULL;
    if (!limit->has_earlier || !limit->earlier.has_closest || !limit->beyond.has_closest) {
        return;
    }
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        double bytes = nd_memory_term(many, term);
        bool stays = bytes > undivided_frac * nd_memory_term(few, term);
        if (stays && (largest == NULL || bytes > nd_memory_term(many, largest))) {
            largest = term;
        }
    }
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "More GPUs do not help: the smallest layout needs %s GiB a GPU on %s and %s GiB on %s.",
                        nd_format_gib(few->peak_bytes).text, value_text(limit, limit->earlier.value).text,
                        nd_format_gib(many->peak_bytes).text, nd_format_count(limit->beyond.value).text);
    if (largest != NULL) {
        nd_report_paragraph(
            stream, &context->style, 2, 2, "What no legal degree divides further: %s, %s GiB on %s and %s GiB on %s.",
            largest->label, nd_format_gib(nd_memory_term(few, largest)).text,
            value_text(limit, limit->earlier.value).text, nd_format_gib(nd_memory_term(many, largest)).text,
            nd_format_count(limit->beyond.value).text);
    }
}

static void print_closest(FILE *stream, const nd_report_context *context, const nd_limit *limit)
{
    const nd_point *beyond = &limit->beyond;
    char layout[512];
    if (!limit->has_beyond) {
        return;
    }
    if (!beyond->has_closest) {
        nd_report_paragraph(stream, &context->style, 2, 2, "At %s no layout is legal. %s",
                            value_text(limit, beyond->value).text, beyond->reason);
        return;
    }
    const nd_memory_breakdown *memory = &beyond->closest.estimate.memory;
    (void)nd_layout_format(&beyond->closest.layout, layout, sizeof layout);
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "At %s the smallest layout needs %s GiB a GPU (phase %s) and has %s GiB: %s",
                        value_text(limit, beyond->value).text, nd_format_gib(memory->peak_bytes).text,
                        nd_phase_name(memory->phase), nd_format_gib(memory->capacity_bytes).text, layout);
    if (beyond->reason[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 2, 2, "More GPUs: %s", beyond->reason);
    }
}

static nd_status print_fixes(FILE *stream, const nd_report_context *context, const nd_limit_view *view, nd_error *err)
{
    if (context->quiet || !view->limit->has_beyond || !view->limit->beyond.has_closest) {
        return ND_OK;
    }
    if (view->fixes_count == 0) {
        nd_report_paragraph(stream, &context->style, 2, 2, "No change of it saves memory.");
        return ND_OK;
    }
    nd_report_paragraph(stream, &context->style, 2, 2,
                        view->fixes_suffice
                            ? "What makes it fit, each alone (most saved for the time lost first, another "
                              "training last):"
                            : "No change alone makes it fit; what saves memory:");
    return nd_report_fixes(stream, context, view->fixes, view->fixes_count,
                           context->verbose ? view->fixes_count : FIXES_SHOWN, err);
}

static void value_reached(const nd_limit *limit, char *out, size_t out_bytes)
{
    if (limit->has_sure) {
        (void)snprintf(out, out_bytes, "%s: %s, surely", name_of(limit), value_text(limit, limit->sure.value).text);
    } else if (limit->has_possible) {
        (void)snprintf(out, out_bytes, "%s: %s, borderline; none surely", name_of(limit),
                       value_text(limit, limit->possible.value).text);
    } else {
        (void)snprintf(out, out_bytes, "%s: none, nothing fits", name_of(limit));
    }
}

/* One line for each question. */
static void print_answers(FILE *stream, const nd_report_context *context, const nd_limit_view *views, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const nd_limit *limit = views[i].limit;
        char reached[160];
        char more[80] = "";
        value_reached(limit, reached, sizeof reached);
        if (limit->has_sure && limit->has_possible) {
            (void)snprintf(more, sizeof more, "; perhaps %s", nd_format_count(limit->possible.value).text);
        }
        nd_report_paragraph(stream, &context->style, 0, 2, "%s%s", reached, more);
    }
    fputc('\n', stream);
}

static nd_status print_limit(FILE *stream, const nd_report_context *context, const nd_limit_view *view, nd_error *err)
{
    const nd_limit *limit = view->limit;
    char heading[160];
    value_reached(limit, heading, sizeof heading);
    nd_report_heading(stream, &context->style, heading);
    if (limit->has_sure) {
        print_plan(stream, context, limit, &limit->sure, &limit->sure.sure);
    }
    if (limit->has_possible) {
        if (limit->has_sure) {
            nd_report_paragraph(stream, &context->style, 2, 2,
                                "%s may fit (borderline):", value_text(limit, limit->possible.value).text);
        }
        print_plan(stream, context, limit, &limit->possible, &limit->possible.best);
    }
    print_fastest(stream, context, limit);
    print_positions(stream, context, limit);
    print_scope(stream, context, limit);
    if (!limit->has_sure && !limit->has_possible) {
        print_floor(stream, context, limit);
    }
    print_closest(stream, context, limit);
    return print_fixes(stream, context, view, err);
}

nd_status nd_report_limits(FILE *stream, const nd_report_context *context, const nd_limit_view *views, int32_t count,
                           nd_error *err)
{
    print_answers(stream, context, views, count);
    nd_report_preamble(stream, context);
    for (int32_t i = 0; i < count; i++) {
        ND_TRY(print_limit(stream, context, &views[i], err));
    }
    return ND_OK;
}
