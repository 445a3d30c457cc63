#include "planner/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct time_term {
    const char *key;
    size_t offset; /* of the double in nd_time_breakdown */
} time_term;

#define TERM(name)                                                                                                     \
    {                                                                                                                  \
#name, offsetof(nd_time_breakdown, name)                                                                       \
    }
/* The terms without parts, which add up to the step (the head is a part of the kernels that are here already). */
static const time_term time_terms[] = {
    TERM(gemm_s),       TERM(attention_s),  TERM(elementwise_s), TERM(recompute_s),  TERM(exposed_tp_s),
    TERM(exposed_cp_s), TERM(exposed_ep_s), TERM(exposed_pp_s),  TERM(exposed_dp_s), TERM(bubble_s),
    TERM(optimizer_s),  TERM(contention_s), TERM(straggler_s),   TERM(host_s),       TERM(offload_s),
};
enum { TIME_TERMS = sizeof time_terms / sizeof time_terms[0] };

/* Of the gap, what the terms that are shown must explain; and differences that are rounding. */
static const double explained_frac = 0.9;
static const double rounding_frac = 1e-9;

static double term_of(const nd_time_breakdown *time, const time_term *term)
{
    double value = 0.0;
    memcpy(&value, (const char *)time + term->offset, sizeof value);
    return value;
}

static int compare_terms(const void *left, const void *right)
{
    const nd_gap_term *a = left;
    const nd_gap_term *b = right;
    if (a->lost_s != b->lost_s) {
        return a->lost_s > b->lost_s ? -1 : 1;
    }
    return strcmp(a->key, b->key);
}

static void add_term(nd_comparison *c, const char *key, double slower_s, double faster_s)
{
    c->terms[c->count++] =
        (nd_gap_term){.key = key, .slower_s = slower_s, .faster_s = faster_s, .lost_s = slower_s - faster_s};
}

static void fill_terms(nd_comparison *c)
{
    const nd_time_breakdown *slower = &c->slower.estimate.time;
    const nd_time_breakdown *faster = &c->faster.estimate.time;
    double slower_scale = c->slower.step_s / slower->step_s;
    double faster_scale = c->faster.step_s / faster->step_s;
    double slower_rest = c->slower.step_s;
    double faster_rest = c->faster.step_s;
    for (size_t i = 0; i < TIME_TERMS; i++) {
        double slower_s = slower_scale * term_of(slower, &time_terms[i]);
        double faster_s = faster_scale * term_of(faster, &time_terms[i]);
        slower_rest -= slower_s;
        faster_rest -= faster_s;
        if (slower_s != 0.0 || faster_s != 0.0) {
            add_term(c, time_terms[i].key, slower_s, faster_s);
        }
    }
    if (fabs(slower_rest - faster_rest) > rounding_frac * c->slower.step_s) {
        add_term(c, "other_s", slower_rest, faster_rest);
    }
    qsort(c->terms, (size_t)c->count, sizeof c->terms[0], compare_terms);
}

static void explain(nd_comparison *c)
{
    double explained = 0.0;
    double step = c->faster.step_s;
    bool equal = c->lost_s <= rounding_frac * c->slower.step_s;
    for (int32_t i = 0; i < c->count; i++) {
        nd_gap_term *term = &c->terms[i];
        term->factor_frac = (step + term->lost_s) / step;
        step += term->lost_s;
        if (!equal && explained < explained_frac * c->lost_s && term->lost_s > 0.0) {
            explained += term->lost_s;
            c->explaining = i + 1;
        }
    }
}

static nd_comparison_side side_of(const nd_cost_context *context, const nd_layout *layout, double scale, bool was_asked)
{
    nd_comparison_side side = {.layout = *layout, .was_asked = was_asked};
    nd_estimate_layout(context, layout, &side.estimate);
    nd_estimate_comm(context, layout, &side.comm);
    side.step_s = scale * side.estimate.time.step_s;
    return side;
}

void nd_compare_layouts(const nd_cost_context *context, const nd_layout *asked, const nd_cost_context *other_context,
                        const nd_layout *other, nd_comparison *out)
{
    memset(out, 0, sizeof *out);
    double seqs = (double)context->train->global_batch_seqs;
    out->batch_factor = seqs / (double)other_context->train->global_batch_seqs;
    nd_comparison_side mine = side_of(context, asked, 1.0, true);
    nd_comparison_side its = side_of(other_context, other, out->batch_factor, false);
    bool slower = mine.step_s >= its.step_s;
    out->slower = slower ? mine : its;
    out->faster = slower ? its : mine;
    out->lost_s = out->slower.step_s - out->faster.step_s;
    double scale = out->slower.step_s / out->slower.estimate.time.step_s;
    out->within_uncertainty = scale * out->slower.estimate.time.step_low_s < out->faster.step_s;
    fill_terms(out);
    explain(out);
}

static bool makes_up(nd_group_kind kind, const char *key)
{
    switch (kind) {
    case ND_GROUP_TP:
        return strcmp(key, "exposed_tp_s") == 0;
    case ND_GROUP_CP:
        return strcmp(key, "exposed_cp_s") == 0;
    case ND_GROUP_EP:
        return strcmp(key, "exposed_ep_s") == 0;
    case ND_GROUP_PP:
        return strcmp(key, "exposed_pp_s") == 0;
    case ND_GROUP_SHARD:
    case ND_GROUP_REPLICATE:
    case ND_GROUP_GRAD:
    case ND_GROUP_EXPERT_SHARD:
    case ND_GROUP_EXPERT_GRAD:
        return strcmp(key, "exposed_dp_s") == 0;
    case ND_GROUP_COUNT:
        break;
    }
    return false;
}

const nd_comm_line *nd_comm_largest_of(const nd_comm_breakdown *comm, const char *key)
{
    const nd_comm_line *largest = NULL;
    for (int32_t i = 0; i < comm->count; i++) {
        const nd_comm_line *line = &comm->lines[i];
        if (makes_up(line->group_kind, key) && line->exposed_s > (largest != NULL ? largest->exposed_s : 0.0)) {
            largest = line;
        }
    }
    return largest;
}
