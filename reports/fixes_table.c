#include "reports/fixes_table.h"

#include <math.h>

#include "core/units.h"
#include "reports/format.h"

/* A change of time that percents with one decimal do not show. */
static const double no_time_frac = 0.0005;

/* "12.5 more", "9.8 less": a percentage of the time of a token, and of nothing else. */
static nd_text time_change(double slower_frac)
{
    nd_text out = {"-"};
    if (fabs(slower_frac) >= no_time_frac) {
        (void)snprintf(out.text, sizeof out.text, "%.20s %s", nd_format_percent(fabs(slower_frac)).text,
                       slower_frac > 0.0 ? "more" : "less");
    }
    return out;
}

static void add_fix(nd_table *table, const nd_fix *fix)
{
    const nd_memory_breakdown *memory = &fix->estimate.memory;
    char change[2 * ND_FIX_TEXT_MAX];
    nd_fix_change(fix, change, sizeof change);
    nd_table_add(table, change);
    nd_table_add(table, nd_format_gib(fix->saved_bytes).text);
    nd_table_add(table, time_change(fix->slower_frac).text);
    bool free_of_cost = fix->slower_frac < no_time_frac;
    nd_table_add(table, free_of_cost ? "-" : nd_format_number(fix->saved_bytes_per_frac / ND_GIB / 100.0).text);
    nd_table_add(table, nd_format_gib(memory->peak_bytes).text);
    nd_table_add_tone(table, fix->host_fits ? nd_verdict_name(memory->verdict) : "host",
                      memory->verdict == ND_VERDICT_FITS && fix->host_fits ? ND_TONE_GOOD : ND_TONE_WARN);
}

nd_status nd_report_fixes(FILE *stream, const nd_report_context *context, const nd_fix *fixes, int32_t count,
                          int32_t shown, nd_error *err)
{
    static const nd_column columns[] = {
        {"change", NULL, ND_ALIGN_LEFT, 0, 20},     {"saves", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"time", "%", ND_ALIGN_RIGHT, 0, 0},        {"saves", "GiB/%", ND_ALIGN_RIGHT, 2, 0},
        {"then peak", "GiB", ND_ALIGN_RIGHT, 0, 0}, {"fits", NULL, ND_ALIGN_LEFT, 0, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the changes");
    }
    shown = shown < count ? shown : count;
    for (int32_t i = 0; i < shown; i++) {
        add_fix(table, &fixes[i]);
    }
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK && shown < count) {
        nd_report_paragraph(stream, &context->style, 2, 2, "and %d more: -v shows them all", (int)(count - shown));
    }
    return status;
}
