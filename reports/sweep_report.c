#include "reports/sweep_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "reports/bandwidth_text.h"
#include "reports/format.h"

static const double bits_per_byte = 8.0;

typedef struct quantity_words {
    const char *column, *unit; /* of its column */
    const char *heading;
    const char *counted; /* behind values in a sentence */
} quantity_words;

static const quantity_words words[ND_SWEEP_QUANTITY_COUNT] = {
    [ND_SWEEP_GPUS] = {"GPUs", NULL, "Best layout on each number of GPUs", "GPUs"},
    [ND_SWEEP_SEQ_LEN] = {"sequence", "tokens", "Best layout at each sequence length", "tokens"},
    [ND_SWEEP_GLOBAL_BATCH] = {"batch", "seqs", "Best layout at each global batch", "sequences"},
    [ND_SWEEP_NIC] = {"NICs", "Gb/s", "Best layout at each rate of a node's NICs", "Gb/s"},
    [ND_SWEEP_NVLINK_DOMAIN] = {"domain", "GPUs", "Best layout at each size of the NVLink domain", "GPUs"},
};

static nd_text value_text(const nd_sweep_view *view, const nd_sweep_point *point)
{
    if (view->quantity == ND_SWEEP_NIC) {
        return nd_format_number(point->value * bits_per_byte / ND_GIGA);
    }
    return nd_format_count(llround(point->value));
}

static nd_tone verdict_tone(nd_verdict verdict)
{
    return verdict == ND_VERDICT_FITS ? ND_TONE_GOOD : verdict == ND_VERDICT_BORDERLINE ? ND_TONE_WARN : ND_TONE_BAD;
}

static void add_point(nd_table *table, const nd_sweep_view *view, const nd_sweep_point *point)
{
    const nd_estimate *estimate = &point->point.best.estimate;
    nd_table_add(table, value_text(view, point).text);
    nd_table_add(table, point->changed ? "*" : "");
    if (!point->point.fits) {
        const nd_memory_breakdown *closest = &point->point.closest.estimate.memory;
        nd_table_add(table, point->point.has_closest ? nd_format_gib(closest->peak_bytes).text : "-");
        nd_table_add_tone(table, "no", ND_TONE_BAD);
        for (int i = 0; i < 5; i++) {
            nd_table_add(table, "-");
        }
        return;
    }
    nd_verdict verdict = estimate->memory.verdict;
    nd_table_add(table, nd_format_gib(estimate->memory.peak_bytes).text);
    nd_table_add_tone(table, verdict == ND_VERDICT_FITS ? "yes" : "~", verdict_tone(verdict));
    nd_table_add(table, nd_format_number(estimate->time.step_s).text);
    nd_table_add(table, nd_format_number(estimate->tokens_per_s).text);
    nd_table_add(table, nd_format_number(estimate->tokens_per_s_per_gpu).text);
    nd_table_add(table, nd_format_percent(point->efficiency_frac).text);
    nd_table_add(table, estimate->bound_by);
}

static nd_status print_points(FILE *stream, const nd_report_context *context, const nd_sweep_view *view, nd_error *err)
{
    const quantity_words *w = &words[view->quantity];
    const nd_column columns[] = {
        {w->column, w->unit, ND_ALIGN_RIGHT, 0, 0}, {"", NULL, ND_ALIGN_LEFT, 0, 0},
        {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0},    {"fits", NULL, ND_ALIGN_LEFT, 0, 0},
        {"step", "s", ND_ALIGN_RIGHT, 0, 0},        {"tokens/s", NULL, ND_ALIGN_RIGHT, 2, 0},
        {"tok/s", "per GPU", ND_ALIGN_RIGHT, 0, 0}, {"effi-", "ciency %", ND_ALIGN_RIGHT, 0, 0},
        {"bound by", NULL, ND_ALIGN_LEFT, 0, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the sweep");
    }
    for (int32_t i = 0; i < view->count; i++) {
        add_point(table, view, &view->points[i]);
    }
    nd_report_heading(stream, &context->style, w->heading);
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    return status;
}

static bool any(const nd_sweep_view *view, bool (*holds)(const nd_sweep_point *point))
{
    for (int32_t i = 0; i < view->count; i++) {
        if (holds(&view->points[i])) {
            return true;
        }
    }
    return false;
}

static bool is_borderline(const nd_sweep_point *point)
{
    return point->point.fits && point->point.best.estimate.memory.verdict == ND_VERDICT_BORDERLINE;
}

static bool fits(const nd_sweep_point *point)
{
    return point->point.fits;
}

static bool has_links(const nd_sweep_point *point)
{
    return point->needs_count > 0;
}

static bool is_changed(const nd_sweep_point *point)
{
    return point->changed;
}

static bool is_unfit(const nd_sweep_point *point)
{
    return !point->point.fits;
}

/* "16, 64 and 128" */
static void values_text(const nd_sweep_view *view, bool (*holds)(const nd_sweep_point *point), char *out,
                        size_t out_bytes)
{
    int32_t left = 0;
    size_t used = 0;
    for (int32_t i = 0; i < view->count; i++) {
        left += holds(&view->points[i]) ? 1 : 0;
    }
    out[0] = '\0';
    for (int32_t i = 0; i < view->count && used + 1 < out_bytes; i++) {
        if (holds(&view->points[i])) {
            left--;
            (void)snprintf(out + used, out_bytes - used, "%s%s", value_text(view, &view->points[i]).text,
                           left > 1    ? ", "
                           : left == 1 ? " and "
                                       : "");
            used = strlen(out);
        }
    }
}

/* Where the best layout changes, and where nothing fits. */
static void print_answer(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    const char *counted = words[view->quantity].counted;
    char changes[768];
    char unfit[768];
    char misses[832] = "";
    values_text(view, is_changed, changes, sizeof changes);
    values_text(view, is_unfit, unfit, sizeof unfit);
    if (unfit[0] != '\0') {
        (void)snprintf(misses, sizeof misses, "; nothing fits at %s", unfit);
    }
    if (!any(view, fits)) {
        nd_report_paragraph(stream, &context->style, 0, 2, "Nothing fits at %s %s.", unfit, counted);
    } else if (changes[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 0, 2, "The best layout changes at %s %s%s.", changes, counted,
                            misses);
    } else {
        char all[768];
        const nd_sweep_point *first = view->points; /* replaced: something fits */
        const nd_sweep_point *last = NULL;
        values_text(view, fits, all, sizeof all);
        for (int32_t i = 0; i < view->count; i++) {
            if (fits(&view->points[i])) {
                first = last == NULL ? &view->points[i] : first;
                last = &view->points[i];
            }
        }
        last = last != NULL ? last : first;
        nd_report_paragraph(stream, &context->style, 0, 2, "The same layout at %s %s: %s%s%s tokens/s%s.", all, counted,
                            nd_format_number(first->point.best.estimate.tokens_per_s).text, first != last ? " to " : "",
                            first != last ? nd_format_number(last->point.best.estimate.tokens_per_s).text : "", misses);
    }
    fputc('\n', stream);
}

static void print_legend(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    const nd_sweep_point *first = NULL;
    for (int32_t i = view->count - 1; i >= 0; i--) {
        first = view->points[i].point.fits ? &view->points[i] : first;
    }
    if (first == NULL || context->quiet) {
        return;
    }
    nd_report_paragraph(stream, &context->style, 2, 2, "efficiency: tokens/s per GPU against those at %s%s",
                        value_text(view, first).text, any(view, is_borderline) ? "; ~ borderline" : "");
}

static void print_positions(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    int64_t longest = context->cost->model->max_seq_len_tokens;
    double last = view->points[view->count - 1].value;
    if (view->quantity == ND_SWEEP_SEQ_LEN && longest > 0 && last > (double)longest) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "More than the %s positions of the model's config need an extended position encoding.",
                            nd_format_count(longest).text);
    }
}

/* The layout of the first value and of each at which it changes. */
static void print_layouts(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    bool first = true;
    nd_report_heading(stream, &context->style,
                      any(view, fits) ? "Layouts (* where they change)" : "Nothing fits at any value");
    for (int32_t i = 0; i < view->count; i++) {
        const nd_sweep_point *point = &view->points[i];
        char layout[512];
        if (!point->point.fits || !(point->changed || first)) {
            continue;
        }
        (void)nd_layout_format(&point->point.best.layout, layout, sizeof layout);
        nd_report_paragraph(stream, &context->style, 2, 4, "%s%s: %s", value_text(view, point).text, first ? "" : " *",
                            layout);
        if (point->changed) {
            nd_report_paragraph(stream, &context->style, 4, 6, "changed: %s", point->changes);
        }
        first = false;
    }
}

/* Why nothing fits, where that is so. */
static void print_misses(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    for (int32_t i = 0; i < view->count; i++) {
        const nd_point *point = &view->points[i].point;
        nd_text value = value_text(view, &view->points[i]);
        char layout[512];
        if (point->fits) {
            continue;
        }
        if (!point->has_closest) {
            nd_report_paragraph(stream, &context->style, 2, 4, "%s: no layout is legal. %s", value.text, point->reason);
            continue;
        }
        const nd_memory_breakdown *memory = &point->closest.estimate.memory;
        (void)nd_layout_format(&point->closest.layout, layout, sizeof layout);
        nd_report_paragraph(stream, &context->style, 2, 4, "%s: nothing fits; closest, %s of %s GiB in phase %s: %s",
                            value.text, nd_format_gib(memory->peak_bytes).text,
                            nd_format_gib(memory->capacity_bytes).text, nd_phase_name(memory->phase), layout);
    }
}

static void add_need(nd_table *table, const nd_sweep_view *view, const nd_sweep_point *point, int32_t index)
{
    const nd_bandwidth_need *need = &point->needs[index];
    nd_table_add(table, index == 0 ? value_text(view, point).text : "");
    nd_table_add(table, nd_tier_kind_name(need->kind));
    nd_table_add(table, nd_format_percent(need->exposed_frac).text);
    nd_table_add(table, nd_format_link_rate(need, need->has_bytes_per_s).text);
    double fastest = nd_fastest_link_bytes_per_s(need->link_class);
    if (need->needed_bytes_per_s > fastest) {
        char beyond[64];
        (void)snprintf(beyond, sizeof beyond, "> %s", nd_format_link_rate(need, fastest).text);
        nd_table_add_tone(table, beyond, ND_TONE_WARN);
        nd_table_add(table, "-");
    } else if (need->needed_bytes_per_s > 0.0) {
        nd_tone tone = need->needed_bytes_per_s > need->has_bytes_per_s ? ND_TONE_WARN : ND_TONE_GOOD;
        nd_table_add_tone(table, nd_format_link_rate(need, need->needed_bytes_per_s).text, tone);
        nd_table_add(table, nd_format_number(need->needed_bytes_per_s / need->has_bytes_per_s).text);
    } else {
        nd_table_add_tone(table, "no rate", ND_TONE_WARN);
        nd_table_add(table, "-");
    }
}

static nd_status print_needs(FILE *stream, const nd_report_context *context, const nd_sweep_view *view, nd_error *err)
{
    const quantity_words *w = &words[view->quantity];
    const nd_column columns[] = {
        {w->column, w->unit, ND_ALIGN_RIGHT, 0, 0},     {"link", NULL, ND_ALIGN_LEFT, 0, 0},
        {"exposed", "% of step", ND_ALIGN_RIGHT, 0, 0}, {"has", "per GPU", ND_ALIGN_RIGHT, 0, 0},
        {"needs", "per GPU", ND_ALIGN_RIGHT, 0, 0},     {"needs", "/ has", ND_ALIGN_RIGHT, 1, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the links");
    }
    for (int32_t i = 0; i < view->count; i++) {
        for (int32_t n = 0; n < view->points[i].needs_count; n++) {
            add_need(table, view, &view->points[i], n);
        }
    }
    nd_report_heading(stream, &context->style, "Bandwidth that would hide the communication");
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK && !context->quiet) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "needs: the rate of that link at which less than %.3g %% of the step is exposed; >: "
                            "more than the fastest link there is; no rate: latency or other links keep it exposed.",
                            100.0 * nd_hidden_frac);
    }
    return status;
}

nd_status nd_report_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view, nd_error *err)
{
    print_answer(stream, context, view);
    nd_report_preamble(stream, context);
    ND_TRY(print_points(stream, context, view, err));
    nd_report_grown_network(stream, context, &view->points[view->count - 1].point.cluster); /* of the largest */
    print_legend(stream, context, view);
    print_positions(stream, context, view);
    print_layouts(stream, context, view);
    print_misses(stream, context, view);
    return any(view, has_links) ? print_needs(stream, context, view, err) : ND_OK;
}
