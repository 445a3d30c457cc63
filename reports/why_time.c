/* Why one layout takes longer than another: the terms in the order of what they lose, and what each comes from. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "reports/format.h"
#include "reports/why_report_internal.h"

enum { REASON_MAX = 512 };

/* What the link of a collective reaches, per GPU. 0: unknown. */
static double link_bytes_per_s(const nd_cluster_spec *cluster, const char *link)
{
    for (int64_t i = 0; i < cluster->tiers_count; i++) {
        const nd_link_tier *tier = &cluster->tiers[i];
        if (strcmp(nd_tier_kind_name(tier->kind), link) == 0) {
            return tier->bytes_per_s / tier->oversubscription * tier->efficiency_frac;
        }
    }
    return 0.0;
}

/* From one step of a side to the tokens of the asked layout's step. */
static double scale_of(const nd_comparison_side *side)
{
    return side->step_s / side->estimate.time.step_s;
}

static void reason_comm(const nd_report_context *context, const nd_comparison_side *slower, const char *key, char *out)
{
    const nd_comm_line *line = nd_comm_largest_of(&slower->comm, key);
    if (line == NULL) {
        out[0] = '\0';
        return;
    }
    double scale = scale_of(slower);
    double rate = link_bytes_per_s(context->cost->cluster, line->link);
    char hidden[96] = "; nothing runs beside it, so no link rate hides it";
    if (line->needed_bytes_per_s > rate) {
        (void)snprintf(hidden, sizeof hidden, "; it would be hidden at %s GB/s",
                       nd_format_gb_per_s(line->needed_bytes_per_s).text);
    } else if (line->needed_bytes_per_s > 0.0) {
        hidden[0] = '\0'; /* what is left is latency */
    }
    (void)snprintf(out, REASON_MAX,
                   "mostly %s: %s calls of %s among %s ranks, %s exposed; the %s carries %s GB/s a GPU%s", line->name,
                   nd_format_number(scale * line->calls_per_step).text, nd_format_bytes(line->bytes).text,
                   nd_format_count(line->group.ranks).text, nd_format_seconds(scale * line->exposed_s).text, line->link,
                   nd_format_gb_per_s(rate).text, hidden);
}

static double rows_of(const nd_report_context *context, const nd_layout *layout)
{
    return (double)layout->micro_batch * (double)context->cost->train->seq_len_tokens /
           (double)layout->size[ND_AXIS_CP];
}

static void reason_kernels(const nd_report_context *context, const nd_layout *a, const nd_layout *b, char *out)
{
    (void)snprintf(out, REASON_MAX,
                   "a kernel works on %s tokens and 1/%d of the width, %s times a step, against %s tokens and 1/%d, %s "
                   "times",
                   nd_format_number(rows_of(context, a)).text, (int)a->size[ND_AXIS_TP],
                   nd_format_count(a->grad_accum).text, nd_format_number(rows_of(context, b)).text,
                   (int)b->size[ND_AXIS_TP], nd_format_count(b->grad_accum).text);
}

static double ideal_bubble(const nd_layout *layout)
{
    return (double)(layout->size[ND_AXIS_PP] - 1) / ((double)layout->grad_accum * (double)layout->vpp);
}

static void reason_bubble(const nd_layout *a, const nd_layout *b, char *out)
{
    (void)snprintf(out, REASON_MAX,
                   "%d stages with %s micro-batches idle for %s %% of the work by (pp - 1) / (micro-batches x vpp); "
                   "%d with %s for %s %%",
                   (int)a->size[ND_AXIS_PP], nd_format_count(a->grad_accum).text,
                   nd_format_percent(ideal_bubble(a)).text, (int)b->size[ND_AXIS_PP],
                   nd_format_count(b->grad_accum).text, nd_format_percent(ideal_bubble(b)).text);
}

/* Ranks over which the optimizer's work is divided. */
static int64_t update_ranks(const nd_layout *layout)
{
    return nd_layout_shard_ranks(layout) * layout->size[ND_AXIS_TP] * layout->size[ND_AXIS_PP];
}

static void name_recompute(const nd_layout *layout, char out[32])
{
    if (layout->recompute == ND_RECOMPUTE_EVERY) {
        (void)snprintf(out, 32, "every:%d", (int)layout->recompute_every);
    } else {
        (void)snprintf(out, 32, "%s", nd_recompute_name(layout->recompute));
    }
}

static void reason_other(const nd_report_context *context, const nd_comparison *c, const char *key, char *out)
{
    const nd_layout *a = &c->slower.layout;
    const nd_layout *b = &c->faster.layout;
    out[0] = '\0';
    if (strcmp(key, "gemm_s") == 0 || strcmp(key, "attention_s") == 0 || strcmp(key, "elementwise_s") == 0) {
        reason_kernels(context, a, b, out);
    } else if (strcmp(key, "recompute_s") == 0) {
        char modes[2][32];
        name_recompute(a, modes[0]);
        name_recompute(b, modes[1]);
        (void)snprintf(out, REASON_MAX, "recompute=%s against recompute=%s", modes[0], modes[1]);
    } else if (strcmp(key, "bubble_s") == 0) {
        reason_bubble(a, b, out);
    } else if (strcmp(key, "optimizer_s") == 0) {
        (void)snprintf(out, REASON_MAX, "a rank updates 1/%" PRId64 " of the parameters against 1/%" PRId64,
                       update_ranks(a), update_ranks(b));
    } else if (strcmp(key, "contention_s") == 0) {
        (void)snprintf(out, REASON_MAX, "%s of communication runs behind kernels and slows them, against %s",
                       nd_format_seconds(scale_of(&c->slower) * c->slower.estimate.time.hidden_comm_s).text,
                       nd_format_seconds(scale_of(&c->faster) * c->faster.estimate.time.hidden_comm_s).text);
    } else if (strcmp(key, "offload_s") == 0) {
        (void)snprintf(out, REASON_MAX, "offload=%s against offload=%s", nd_offload_name(a->offload),
                       nd_offload_name(b->offload));
    } else if (strcmp(key, "host_s") == 0) {
        (void)snprintf(out, REASON_MAX, "%s micro-batches to launch against %s", nd_format_count(a->grad_accum).text,
                       nd_format_count(b->grad_accum).text);
    }
}

static void print_reason(FILE *stream, const nd_report_context *context, const nd_comparison *c,
                         const nd_gap_term *term)
{
    char reason[REASON_MAX];
    reason_comm(context, &c->slower, term->key, reason);
    if (reason[0] == '\0') {
        reason_other(context, c, term->key, reason);
    }
    nd_report_paragraph(stream, &context->style, 2, 4, "%s of %s (%s against %s)%s%s.",
                        nd_format_seconds(term->lost_s).text, nd_why_time_label(term->key),
                        nd_format_seconds(term->slower_s).text, nd_format_seconds(term->faster_s).text,
                        reason[0] != '\0' ? ": " : "", reason);
}

static void add_row(nd_table *table, const char *label, double slower_s, double faster_s, double lost_s, double factor)
{
    nd_table_add(table, label);
    nd_table_add(table, nd_format_number(slower_s / ND_MILLI).text);
    nd_table_add(table, nd_format_number(faster_s / ND_MILLI).text);
    nd_table_add(table, nd_format_number(lost_s / ND_MILLI).text);
    char cell[32];
    (void)snprintf(cell, sizeof cell, "x %.3f", factor);
    nd_table_add(table, cell);
}

/* All terms, or those that lose or win more than a thousandth of the step. */
static nd_status print_terms(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    const nd_comparison *c = &why->comparison;
    bool asked_slower = c->slower.was_asked;
    const char *other = why->place.rank == 0 ? "other" : asked_slower ? "first" : "next";
    const nd_column columns[] = {
        {"term", NULL, ND_ALIGN_LEFT, 0, 0},
        {asked_slower ? "this" : other, "ms", ND_ALIGN_RIGHT, 0, 0},
        {asked_slower ? other : "this", "ms", ND_ALIGN_RIGHT, 0, 0},
        {"lost", "ms", ND_ALIGN_RIGHT, 0, 0},
        {"factor", NULL, ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the comparison");
    }
    double left_s = c->lost_s;
    double left_factor = c->slower.step_s / c->faster.step_s;
    double slower_s = c->slower.step_s;
    double faster_s = c->faster.step_s;
    int32_t hidden = 0;
    for (int32_t i = 0; i < c->count; i++) {
        const nd_gap_term *term = &c->terms[i];
        if (!context->verbose && i >= c->explaining && fabs(term->lost_s) < 1e-3 * c->slower.step_s) {
            hidden++;
            continue;
        }
        add_row(table, nd_why_time_label(term->key), term->slower_s, term->faster_s, term->lost_s, term->factor_frac);
        left_s -= term->lost_s;
        left_factor /= term->factor_frac;
        slower_s -= term->slower_s;
        faster_s -= term->faster_s;
    }
    if (hidden > 0) {
        add_row(table, "all else", slower_s, faster_s, left_s, left_factor);
    }
    add_row(table, "step", c->slower.step_s, c->faster.step_s, c->lost_s, c->slower.step_s / c->faster.step_s);
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    return status;
}

nd_status nd_report_why_time(FILE *stream, const nd_report_context *context, const nd_why *why, nd_error *err)
{
    const nd_comparison *c = &why->comparison;
    const nd_comparison_side *other = c->slower.was_asked ? &c->faster : &c->slower;
    const char *name = nd_why_other_name(why);
    char heading[96];
    char text[512];
    (void)nd_layout_format(&other->layout, text, sizeof text);
    (void)snprintf(heading, sizeof heading, c->slower.was_asked ? "What it loses to %s" : "What %s loses to it", name);
    nd_report_heading(stream, &context->style, heading);
    nd_report_paragraph(stream, &context->style, 2, 4, "%c%s: %s", (char)(name[0] - 'a' + 'A'), name + 1, text);
    nd_report_paragraph(stream, &context->style, 4, 4, "%s, %s of %s GiB (%s)", nd_format_seconds(other->step_s).text,
                        nd_format_gib(other->estimate.memory.peak_bytes).text,
                        nd_format_gib(other->estimate.memory.capacity_bytes).text,
                        nd_verdict_name(other->estimate.memory.verdict));
    if (c->batch_factor != 1.0) {
        nd_report_paragraph(stream, &context->style, 4, 4,
                            "Its step has another batch: its times are multiplied by %s, to the same tokens.",
                            nd_format_number(c->batch_factor).text);
    }
    ND_TRY(print_terms(stream, context, why, err));
    for (int32_t i = 0; i < c->explaining; i++) {
        print_reason(stream, context, c, &c->terms[i]);
    }
    if (c->within_uncertainty && c->explaining > 0) {
        const nd_time_breakdown *time = &c->slower.estimate.time;
        double scale = scale_of(&c->slower);
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "That is within the model's uncertainty (80 %% interval of the slower one: %s to %s): "
                            "measure both when it matters.",
                            nd_format_seconds(scale * time->step_low_s).text,
                            nd_format_seconds(scale * time->step_high_s).text);
    }
    return ND_OK;
}
