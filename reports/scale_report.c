#include "reports/scale_report.h"

#include <string.h>

#include "core/text.h"
#include "cost_model/run_cost.h"
#include "reports/format.h"

static void print_cost(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    nd_run_cost first;
    nd_run_cost second;
    if (list->count < 2) {
        return;
    }
    nd_run_cost_of(context->cost, &list->plans[0].layout, &list->plans[0].estimate, context->run, &first);
    nd_run_cost_of(context->cost, &list->plans[1].layout, &list->plans[1].estimate, context->run, &second);
    double less = 1.0 - first.usd_per_million_tokens / second.usd_per_million_tokens;
    double speed = first.tokens_per_s / second.tokens_per_s;
    nd_report_paragraph(stream, &context->style, 0, 2,
                        "#1 before #2: a million tokens cost %s USD instead of %s USD (%s %% less), at %s times its "
                        "speed.",
                        nd_format_number(first.usd_per_million_tokens).text,
                        nd_format_number(second.usd_per_million_tokens).text, nd_format_percent(less).text,
                        nd_format_number(speed).text);
}

static void print_fewest(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    if (list->count == 0) {
        return;
    }
    const nd_plan *first = &list->plans[0];
    int64_t gpus = nd_layout_ranks(&first->layout);
    if (first->estimate.memory.verdict != ND_VERDICT_FITS) {
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "No size surely fits up to %s GPU%s; the smallest that may fit is %s GPU%s (#1).",
                            nd_format_count(context->cost->cluster->gpus).text,
                            nd_text_plural(context->cost->cluster->gpus), nd_format_count(gpus).text,
                            nd_text_plural(gpus));
        return;
    }
    char below[96] = "";
    int64_t fewer = list->count > 1 ? nd_layout_ranks(&list->plans[1].layout) : gpus;
    if (fewer < gpus) {
        (void)snprintf(below, sizeof below, " On %s GPU%s one may fit (#2), which is borderline.",
                       nd_format_count(fewer).text, nd_text_plural(fewer));
    }
    nd_report_paragraph(stream, &context->style, 0, 2, "Fewest GPUs on which a layout surely fits: %s (#1).%s",
                        nd_format_count(gpus).text, below);
    if (list->count > 1) {
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "Order: the fastest that surely fits is #1; %sthe others by step time, sure or not (~).",
                            fewer < gpus ? "then #2 on fewer GPUs; " : "");
    }
}

static void print_front(FILE *stream, const nd_report_context *context)
{
    char thinned[160] = "";
    if (context->scale->coarseness_frac > 0.0) {
        (void)snprintf(thinned, sizeof thinned,
                       " Left out: points at most %.0f %% better in each of the three than one shown; --top N shows "
                       "more.",
                       context->scale->coarseness_frac * 100.0);
    }
    nd_report_paragraph(stream, &context->style, 0, 2,
                        "No layout of these sizes is at least as fast, as small in memory and on as few GPUs as one of "
                        "these and better in one of the three.%s",
                        thinned);
}

/* "Sizes: 1, 2, 4, 8, 16 GPUs; not searched: 1, 2 (...)". */
static void print_sizes(FILE *stream, const nd_report_context *context)
{
    const nd_scale_list *scale = context->scale;
    char texts[2][256] = {"", ""};
    size_t used[2] = {0, 0};
    int64_t last = 0;
    for (int32_t i = 0; i < scale->sizes_count; i++) {
        int which = scale->sizes[i].searched ? 0 : 1;
        int length = snprintf(texts[which] + used[which], sizeof texts[which] - used[which], "%s%s",
                              used[which] > 0 ? " " : "", nd_format_count(scale->sizes[i].gpus).text);
        used[which] += (size_t)length;
        used[which] = used[which] < sizeof texts[which] ? used[which] : sizeof texts[which] - 1;
        last = scale->sizes[i].searched ? scale->sizes[i].gpus : last;
    }
    nd_report_paragraph(
        stream, &context->style, 0, 2,
        "Sizes searched: %s GPU%s, the global batch always the same; the refusals below are those of %s "
        "GPU%s.%s%s%s",
        texts[0], nd_text_plural(strcmp(texts[0], "1") == 0 ? 1 : 2), nd_format_count(last).text, nd_text_plural(last),
        texts[1][0] != '\0' ? " Not searched: " : "", texts[1],
        texts[1][0] != '\0' ? ", where bounds or the given degrees leave nothing to find." : "");
}

void nd_report_scale(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    switch (context->scale_goal) {
    case ND_SCALE_COST:
        print_cost(stream, context, list);
        break;
    case ND_SCALE_GPUS:
        print_fewest(stream, context, list);
        break;
    case ND_SCALE_PARETO:
        print_front(stream, context);
        break;
    }
    print_sizes(stream, context);
}

void nd_report_scale_next_step(FILE *stream, const nd_report_context *context, const nd_layout *layout)
{
    char text[512];
    nd_cluster_spec cluster;
    nd_error err;
    (void)nd_layout_format(layout, text, sizeof text);
    bool known = nd_scale_cluster(context->cost->cluster, nd_layout_ranks(layout), &cluster, &err) == ND_OK;
    /* no name stands for a part of a built-in node */
    if (known && cluster.gpus_per_node < context->cost->cluster->gpus_per_node) {
        (void)snprintf(cluster.name, sizeof cluster.name, "%lldx%s", (long long)cluster.gpus, cluster.gpu.name);
    }
    nd_report_paragraph(stream, &context->style, 0, 2,
                        "In full: ndplan estimate ... --cluster %s --global-batch %lld "
                        "--layout %s",
                        known ? cluster.name : "C", (long long)context->cost->train->global_batch_seqs, text);
}
