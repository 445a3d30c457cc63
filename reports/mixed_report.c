#include "reports/mixed_report.h"

#include <string.h>

#include "reports/answer.h"
#include "reports/format.h"
#include "reports/stage_text.h"

enum { CELL_MAX = 64 };

static const char *gpu_of(const nd_mixed_cluster *cluster, const nd_mixed_group *group)
{
    return group->part >= 0 ? cluster->parts[group->part].gpu.name : "slowest";
}

void nd_mixed_label(const nd_mixed_cluster *cluster, const nd_mixed_option *option, char *text)
{
    size_t used = 0;
    switch (option->way) {
    case ND_MIXED_ALONE:
        (void)snprintf(text, ND_MIXED_LABEL_MAX, "%s alone", cluster->parts[option->groups[0].part].name);
        return;
    case ND_MIXED_SLOWEST:
        (void)snprintf(text, ND_MIXED_LABEL_MAX, "all as the slowest");
        return;
    case ND_MIXED_STAGES:
    case ND_MIXED_WAY_COUNT:
        break;
    }
    (void)snprintf(text, ND_MIXED_LABEL_MAX, "stages by kind");
    for (int32_t g = 0; g < option->groups_count && used + 1 < ND_MIXED_LABEL_MAX; g++) {
        (void)snprintf(text + used, ND_MIXED_LABEL_MAX - used, "%s%s", g == 0 ? "stages " : ", then ",
                       gpu_of(cluster, &option->groups[g]));
        used = strlen(text);
    }
}

static bool is_better(const nd_mixed_plan *plan, int32_t a, int32_t b)
{
    const nd_mixed_option *first = &plan->options[a];
    const nd_mixed_option *second = &plan->options[b];
    if (a == plan->best || b == plan->best) {
        return a == plan->best;
    }
    if (first->found != second->found) {
        return first->found;
    }
    return first->found && first->time.step_s < second->time.step_s;
}

int32_t nd_mixed_rank(const nd_mixed_plan *plan, int32_t order[ND_MIXED_OPTIONS_MAX])
{
    for (int32_t i = 0; i < plan->count; i++) {
        int32_t slot = i;
        for (; slot > 0 && is_better(plan, i, order[slot - 1]); slot--) {
            order[slot] = order[slot - 1];
        }
        order[slot] = i;
    }
    return plan->count;
}

/* Layers of each stage of one group, as "8 x2,7". */
static void stage_layers_text(const nd_mixed_option *option, int32_t group, char *text, size_t bytes)
{
    nd_stage_runs runs;
    int32_t first = 0;
    memset(&runs, 0, sizeof runs);
    for (int32_t g = 0; g < group; g++) {
        first += option->groups[g].stages;
    }
    for (int32_t s = first; s < first + option->groups[group].stages; s++) {
        int32_t layers = option->stage_layers[s];
        if (runs.count > 0 && runs.runs[runs.count - 1].layers == layers) {
            runs.runs[runs.count - 1].stages++;
        } else if (runs.count < ND_STAGE_RUNS_MAX) {
            runs.runs[runs.count].stages = 1;
            runs.runs[runs.count++].layers = layers;
        } else {
            runs.more = true;
        }
    }
    nd_stage_runs_text(&runs, text, bytes);
}

/* "24+8": layers of each group. */
static void group_layers_text(const nd_mixed_option *option, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t g = 0; g < option->groups_count && used + 1 < bytes; g++) {
        (void)snprintf(text + used, bytes - used, "%s%lld", g > 0 ? "+" : "", (long long)option->groups[g].layers);
        used = strlen(text);
    }
}

/* The fastest option of one way, or NULL. */
static const nd_mixed_option *fastest_of(const nd_mixed_plan *plan, nd_mixed_way way)
{
    const nd_mixed_option *fastest = NULL;
    for (int32_t i = 0; i < plan->count; i++) {
        const nd_mixed_option *option = &plan->options[i];
        if (option->way == way && option->found && (fastest == NULL || option->time.step_s < fastest->time.step_s)) {
            fastest = option;
        }
    }
    return fastest;
}

/* What each other way reaches, and by how much the best is ahead of it. */
static void print_others(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan)
{
    const nd_mixed_option *best = &plan->options[plan->best];
    char text[768];
    size_t used = 0;
    text[0] = '\0';
    for (int way = 0; way < ND_MIXED_WAY_COUNT && used + 1 < sizeof text; way++) {
        const nd_mixed_option *option = fastest_of(plan, (nd_mixed_way)way);
        char label[ND_MIXED_LABEL_MAX];
        if (option == NULL || way == (int)best->way) {
            continue;
        }
        nd_mixed_label(context->mixed, option, label);
        (void)snprintf(text + used, sizeof text - used, "%s%s %% than %s (%s)", used > 0 ? ", " : "",
                       nd_format_percent(best->tokens_per_s / option->tokens_per_s - 1.0).text, label,
                       nd_format_number(option->tokens_per_s).text);
        used = strlen(text);
    }
    if (used > 0) {
        nd_report_paragraph(stream, &context->style, 2, 2, "Faster by %s.", text);
    }
}

/* "1 of h100 with 19 layers (116 ms a micro-batch), 2 of a100 with 13 layers (...)" */
static void stages_text(const nd_mixed_cluster *cluster, const nd_mixed_option *option, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t g = 0; g < option->groups_count && used + 1 < bytes; g++) {
        const nd_mixed_group *group = &option->groups[g];
        (void)snprintf(text + used, bytes - used, "%s%d of %s with %lld layer%s (%s a micro-batch)", g > 0 ? ", " : "",
                       (int)group->stages, gpu_of(cluster, group), (long long)group->layers,
                       group->layers == 1 ? "" : "s", nd_format_seconds(group->slowest_stage_s).text);
        used = strlen(text);
    }
}

/* Why the best is the best. */
static void print_reason(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan)
{
    const nd_mixed_option *best = &plan->options[plan->best];
    const nd_mixed_option *stages = fastest_of(plan, ND_MIXED_STAGES);
    if (best->way == ND_MIXED_STAGES) {
        char text[512];
        stages_text(context->mixed, best, text, sizeof text);
        nd_report_paragraph(stream, &context->style, 2, 2, "Each kind works at its own pace: %s stages, %s.",
                            nd_format_count(best->layout.size[ND_AXIS_PP]).text, text);
        return;
    }
    if (best->way == ND_MIXED_ALONE) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "The other %s GPU%s would add less than waiting for them costs.",
                            nd_format_count(best->idle_gpus).text, best->idle_gpus == 1 ? "" : "s");
    }
    if (stages != NULL) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "With stages by kind the busiest stage would wait %s %% of the step for the others.",
                            nd_format_percent(stages->time.bubble_s / stages->time.step_s).text);
    }
}

static void print_answer(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan)
{
    if (plan->best < 0) {
        nd_report_paragraph(stream, &context->style, 0, 0,
                            "Nothing fits on any of the kinds of GPU or on all of them.");
        fputc('\n', stream);
        return;
    }
    const nd_mixed_option *best = &plan->options[plan->best];
    char label[ND_MIXED_LABEL_MAX];
    char step[ND_INTERVAL_TEXT_MAX];
    nd_mixed_label(context->mixed, best, label);
    nd_step_interval_text(&best->time, step);
    nd_report_paragraph(stream, &context->style, 0, 2, "Best: %s, step %s, %s", label, step,
                        nd_verdict_words(nd_mixed_fullest(best)->memory.verdict));
    fputc('\n', stream);
}

static void print_explanation(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan,
                              const int32_t order[ND_MIXED_OPTIONS_MAX])
{
    const nd_mixed_option *best = &plan->options[plan->best];
    nd_report_paragraph(stream, &context->style, 0, 2, "#1 makes %s tokens/s on %s of %s GPUs.",
                        nd_format_number(best->tokens_per_s).text, nd_format_count(best->gpus).text,
                        nd_format_count(context->mixed->gpus).text);
    print_reason(stream, context, plan);
    print_others(stream, context, plan);
    const nd_mixed_option *second = plan->count > 1 ? &plan->options[order[1]] : NULL;
    if (second != NULL && second->found && second->time.step_low_s < best->time.step_s) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "The next one is within the model's uncertainty: measure both when it matters.");
    }
}

static void add_count(nd_table *table, int64_t value)
{
    nd_table_add(table, nd_format_count(value).text);
}

static void add_row(nd_table *table, const nd_mixed_cluster *cluster, const nd_mixed_option *option, int32_t rank)
{
    const nd_layout *layout = &option->layout;
    const nd_memory_breakdown *memory = &nd_mixed_fullest(option)->memory;
    char label[ND_MIXED_LABEL_MAX];
    char cell[CELL_MAX];
    nd_mixed_label(cluster, option, label);
    add_count(table, rank);
    nd_table_add(table, label);
    add_count(table, option->gpus);
    add_count(table, option->idle_gpus);
    add_count(table, layout->size[ND_AXIS_PP]);
    group_layers_text(option, cell, sizeof cell);
    nd_table_add(table, cell);
    add_count(table, nd_layout_data_ranks(layout));
    add_count(table, layout->size[ND_AXIS_CP]);
    add_count(table, layout->size[ND_AXIS_TP]);
    (void)snprintf(cell, sizeof cell, "%dx%lld", (int)layout->micro_batch, (long long)layout->grad_accum);
    nd_table_add(table, cell);
    nd_table_add(table, nd_format_gib(memory->peak_bytes).text);
    static const nd_tone tones[] = {
        [ND_VERDICT_FITS] = ND_TONE_GOOD, [ND_VERDICT_BORDERLINE] = ND_TONE_WARN, [ND_VERDICT_NO] = ND_TONE_BAD};
    static const char *const words[] = {
        [ND_VERDICT_FITS] = "yes", [ND_VERDICT_BORDERLINE] = "~", [ND_VERDICT_NO] = "no"};
    nd_table_add_tone(table, words[memory->verdict], tones[memory->verdict]);
    nd_table_add(table, nd_format_number(option->time.step_s).text);
    nd_table_add(table, nd_format_number(option->tokens_per_s).text);
    nd_table_add(table, nd_format_percent(option->mfu_frac).text);
}

static nd_status print_table(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan,
                             const int32_t order[ND_MIXED_OPTIONS_MAX], int32_t top, nd_error *err)
{
    static const nd_column columns[] = {
        {"#", NULL, ND_ALIGN_RIGHT, 0, 0},       {"way", NULL, ND_ALIGN_LEFT, 0, 14},
        {"GPUs", NULL, ND_ALIGN_RIGHT, 0, 0},    {"idle", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"pp", NULL, ND_ALIGN_RIGHT, 2, 0},      {"layers", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"dp", NULL, ND_ALIGN_RIGHT, 4, 0},      {"cp", NULL, ND_ALIGN_RIGHT, 6, 0},
        {"tp", NULL, ND_ALIGN_RIGHT, 3, 0},      {"batch", "x acc", ND_ALIGN_RIGHT, 5, 0},
        {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0}, {"fits", NULL, ND_ALIGN_LEFT, 1, 0},
        {"step", "s", ND_ALIGN_RIGHT, 0, 0},     {"tokens/s", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"MFU", "%", ND_ALIGN_RIGHT, 7, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the table");
    }
    for (int32_t i = 0; i < plan->count && i < top; i++) {
        if (plan->options[order[i]].found) {
            add_row(table, context->mixed, &plan->options[order[i]], i + 1);
        }
    }
    nd_status status = nd_table_print(table, stream, &context->style, 0, err);
    int32_t hidden = nd_table_hidden(table, &context->style, 0);
    nd_table_free(table);
    if (status == ND_OK && hidden > 0) {
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "%d more column%s on a wider terminal, or with --csv, --json", (int)hidden,
                            hidden == 1 ? "" : "s");
    }
    return status;
}

/* Where the stages of the best way are, and what each kind of GPU holds. */
static nd_status print_groups(FILE *stream, const nd_report_context *context, const nd_mixed_option *best,
                              nd_error *err)
{
    static const nd_column columns[] = {
        {"stages on", NULL, ND_ALIGN_LEFT, 0, 0},
        {"stages", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"layers", "per stage", ND_ALIGN_LEFT, 0, 12},
        {"GPUs", "used", ND_ALIGN_RIGHT, 0, 0},
        {"of", NULL, ND_ALIGN_RIGHT, 1, 0},
        {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"of", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"slowest stage", "micro-batch", ND_ALIGN_RIGHT, 2, 0},
    };
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the table");
    }
    for (int32_t g = 0; g < best->groups_count; g++) {
        const nd_mixed_group *group = &best->groups[g];
        const nd_cluster_spec *part = &context->mixed->parts[group->part];
        char layers[256];
        stage_layers_text(best, g, layers, sizeof layers);
        nd_table_add(table, part->name);
        add_count(table, group->stages);
        nd_table_add(table, layers);
        add_count(table, group->gpus);
        add_count(table, part->gpus);
        nd_table_add(table, nd_format_gib(group->memory.peak_bytes).text);
        nd_table_add(table, nd_format_gib(group->memory.capacity_bytes).text);
        nd_table_add(table, nd_format_seconds(group->slowest_stage_s).text);
    }
    fputc('\n', stream);
    nd_status status = nd_table_print(table, stream, &context->style, 0, err);
    nd_table_free(table);
    return status;
}

static void print_next_step(FILE *stream, const nd_report_context *context, const nd_mixed_option *best)
{
    char text[512];
    (void)nd_layout_format(&best->layout, text, sizeof text);
    if (best->way == ND_MIXED_ALONE) {
        nd_report_paragraph(stream, &context->style, 0, 2, "In full: ndplan estimate ... --cluster %s --layout %s",
                            context->mixed->parts[best->groups[0].part].name, text);
    } else {
        nd_report_paragraph(stream, &context->style, 0, 2, "Layout of #1: %s", text);
    }
}

/* Ways that were not found, each with its reason. */
static void print_missing(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan)
{
    for (int32_t i = 0; i < plan->count; i++) {
        const nd_mixed_option *option = &plan->options[i];
        if (!option->found) {
            char label[ND_MIXED_LABEL_MAX];
            nd_mixed_label(context->mixed, option, label);
            nd_report_paragraph(stream, &context->style, 0, 2, "Not possible: %s: %s.", label, option->why_not);
        }
    }
}

nd_status nd_report_mixed(FILE *stream, const nd_report_context *context, const nd_mixed_plan *plan, int32_t top,
                          nd_error *err)
{
    int32_t order[ND_MIXED_OPTIONS_MAX];
    (void)nd_mixed_rank(plan, order);
    print_answer(stream, context, plan);
    nd_report_preamble(stream, context);
    if (plan->best >= 0) {
        const nd_mixed_option *best = &plan->options[plan->best];
        fputc('\n', stream);
        if (!context->quiet) {
            print_explanation(stream, context, plan, order);
            fputc('\n', stream);
        }
        ND_TRY(print_table(stream, context, plan, order, top, err));
        if (best->way == ND_MIXED_STAGES) {
            ND_TRY(print_groups(stream, context, best, err));
        }
    }
    if (context->quiet && plan->best >= 0) {
        return ND_OK;
    }
    fputc('\n', stream);
    if (plan->best >= 0) {
        print_next_step(stream, context, &plan->options[plan->best]);
    }
    print_missing(stream, context, plan);
    nd_report_paragraph(stream, &context->style, 0, 2, "Looked at %s layout%s in %s.",
                        nd_format_count(plan->searched).text, plan->searched == 1 ? "" : "s",
                        nd_format_seconds(plan->elapsed_s).text);
    return ND_OK;
}
