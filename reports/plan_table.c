#include "reports/plan_table.h"

#include <math.h>
#include <string.h>

#include "planner/advice.h"
#include "reports/format.h"
#include "reports/rejections.h"
#include "reports/run_report.h"
#include "reports/scale_report.h"
#include "reports/terms.h"

enum { CELL_MAX = 64, NOTED_PLANS = 3 };

typedef void (*cell_writer)(const nd_plan *plan, int32_t rank, char *cell);
typedef void (*run_writer)(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes);

/* A column that says the same in every row is left out; what it says goes into one line below unless it is the
 * neutral value. */
typedef struct plan_column {
    nd_column column;
    const char *key;     /* how the line below names it; NULL: the column always stays */
    const char *neutral; /* not worth saying */
    const char *where;   /* the rows that have a value at all: the others say the neutral one; NULL: all */
    cell_writer write;
    run_writer write_run; /* instead of `write`: what depends on the run or on the sizes searched; "" hides it */
} plan_column;

static void write_rank(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)plan;
    (void)snprintf(cell, CELL_MAX, "%d", (int)rank);
}

static void write_degree(int32_t degree, char *cell)
{
    (void)snprintf(cell, CELL_MAX, "%d", (int)degree);
}

#define AXIS_WRITER(name, axis)                                                                                        \
    static void write_##name(const nd_plan *plan, int32_t rank, char *cell)                                            \
    {                                                                                                                  \
        (void)rank;                                                                                                    \
        write_degree(plan->layout.size[axis], cell);                                                                   \
    }
AXIS_WRITER(pp, ND_AXIS_PP)
AXIS_WRITER(dp_replicate, ND_AXIS_DP_REPLICATE)
AXIS_WRITER(dp_shard, ND_AXIS_DP_SHARD)
AXIS_WRITER(cp, ND_AXIS_CP)
AXIS_WRITER(tp, ND_AXIS_TP)

static void write_ep(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    write_degree(plan->layout.ep, cell);
}

static void write_vpp(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    if (plan->layout.size[ND_AXIS_PP] > 1) {
        write_degree(plan->layout.vpp, cell);
    } else {
        (void)snprintf(cell, CELL_MAX, "-");
    }
}

static void write_sp(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    const char *text = plan->layout.size[ND_AXIS_TP] == 1 ? "-" : plan->layout.sequence_parallel ? "on" : "off";
    (void)snprintf(cell, CELL_MAX, "%s", text);
}

static void write_batch(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%dx%lld", (int)plan->layout.micro_batch, (long long)plan->layout.grad_accum);
}

static void write_sharding(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_sharding_name(plan->layout.sharding));
}

static void write_recompute(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    if (plan->layout.recompute == ND_RECOMPUTE_EVERY) {
        (void)snprintf(cell, CELL_MAX, "every:%d", (int)plan->layout.recompute_every);
        return;
    }
    (void)snprintf(cell, CELL_MAX, "%s", nd_recompute_name(plan->layout.recompute));
}

static void write_cp_method(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    const char *text = plan->layout.size[ND_AXIS_CP] == 1 ? "-" : nd_cp_method_name(plan->layout.cp_method);
    (void)snprintf(cell, CELL_MAX, "%s", text);
}

static void write_schedule(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    const char *text = plan->layout.size[ND_AXIS_PP] == 1 ? "-" : nd_schedule_name(plan->layout.schedule);
    (void)snprintf(cell, CELL_MAX, "%s", text);
}

static void write_split(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    const char *text = plan->layout.size[ND_AXIS_PP] == 1 ? "-" : nd_split_name(plan->layout.split);
    (void)snprintf(cell, CELL_MAX, "%s", text);
}

static void write_offload(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_offload_name(plan->layout.offload));
}

static void write_memory(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_format_gib(plan->estimate.memory.peak_bytes).text);
}

static void write_verdict(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    static const char *const short_words[] = {
        [ND_VERDICT_FITS] = "yes", [ND_VERDICT_BORDERLINE] = "~", [ND_VERDICT_NO] = "no"};
    (void)snprintf(cell, CELL_MAX, "%s", short_words[plan->estimate.memory.verdict]);
}

static void write_step(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_format_number(plan->estimate.time.step_s).text);
}

static void write_tokens(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_format_number(plan->estimate.tokens_per_s).text);
}

static void write_tokens_per_gpu(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_format_number(plan->estimate.tokens_per_s_per_gpu).text);
}

static void write_mfu(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", nd_format_percent(plan->estimate.mfu_frac).text);
}

static void write_bound(const nd_plan *plan, int32_t rank, char *cell)
{
    (void)rank;
    (void)snprintf(cell, CELL_MAX, "%s", plan->estimate.bound_by);
}

/* Without a search over sizes all plans use all GPUs. */
static void write_gpus(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes)
{
    (void)snprintf(cell, cell_bytes, "%s",
                   context->scale != NULL ? nd_format_count(nd_layout_ranks(&plan->layout)).text : "");
}

#define LEFT  ND_ALIGN_LEFT
#define RIGHT ND_ALIGN_RIGHT
static const plan_column plan_columns[] = {
    {{"#", NULL, RIGHT, 0, 0}, NULL, NULL, NULL, write_rank, NULL},
    {{"GPUs", NULL, RIGHT, 0, 0}, NULL, NULL, NULL, NULL, write_gpus},
    {{"pp", NULL, RIGHT, 0, 0}, "pp", "1", NULL, write_pp, NULL},
    {{"dp", "repl", RIGHT, 0, 0}, "dp_replicate", "1", NULL, write_dp_replicate, NULL},
    {{"dp", "shard", RIGHT, 0, 0}, "dp_shard", "1", NULL, write_dp_shard, NULL},
    {{"cp", NULL, RIGHT, 0, 0}, "cp", "1", NULL, write_cp, NULL},
    {{"tp", NULL, RIGHT, 0, 0}, "tp", "1", NULL, write_tp, NULL},
    {{"ep", NULL, RIGHT, 0, 0}, "ep", "1", NULL, write_ep, NULL},
    {{"vpp", NULL, RIGHT, 3, 0}, "vpp", "-", "pp > 1", write_vpp, NULL},
    {{"sp", NULL, LEFT, 4, 0}, "sp", "-", "tp > 1", write_sp, NULL},
    {{"batch", "x acc", RIGHT, 0, 0}, NULL, NULL, NULL, write_batch, NULL},
    {{"shar-", "ding", LEFT, 0, 0}, "sharding", "none", NULL, write_sharding, NULL},
    {{"recompute", NULL, LEFT, 0, 0}, "recompute", "", NULL, write_recompute, NULL},
    {{"cp", "method", LEFT, 5, 0}, "cp_method", "-", "cp > 1", write_cp_method, NULL},
    {{"schedule", NULL, LEFT, 6, 0}, "schedule", "-", "pp > 1", write_schedule, NULL},
    {{"split", NULL, LEFT, 1, 0}, "split", "-", "pp > 1", write_split, NULL},
    {{"offload", NULL, LEFT, 2, 0}, "offload", "none", NULL, write_offload, NULL},
    {{"memory", "GiB", RIGHT, 0, 0}, NULL, NULL, NULL, write_memory, NULL},
    {{"fits", NULL, LEFT, 0, 0}, "fits", "", NULL, write_verdict, NULL},
    {{"step", "s", RIGHT, 0, 0}, NULL, NULL, NULL, write_step, NULL},
    {{"days", NULL, RIGHT, 1, 0}, NULL, NULL, NULL, NULL, nd_run_days_text},
    {{"USD", NULL, RIGHT, 1, 0}, NULL, NULL, NULL, NULL, nd_run_usd_text},
    {{"USD/M", "tokens", RIGHT, 1, 0}, NULL, NULL, NULL, NULL, nd_run_rate_text},
    {{"tokens/s", NULL, RIGHT, 10, 0}, NULL, NULL, NULL, write_tokens, NULL},
    {{"tok/s", "per GPU", RIGHT, 7, 0}, NULL, NULL, NULL, write_tokens_per_gpu, NULL},
    {{"MFU", "%", RIGHT, 8, 0}, NULL, NULL, NULL, write_mfu, NULL},
    {{"bound by", NULL, LEFT, 9, 0}, "bound by", "", NULL, write_bound, NULL},
};
enum { PLAN_COLUMNS = sizeof plan_columns / sizeof plan_columns[0] };

/* A column of degrees is left out only when they are all 1. Larger degrees stay even when they are all the same, since
 * a reader expects to see how the ranks are divided. */
static bool is_degree(const plan_column *column)
{
    return strcmp(column->neutral, "1") == 0;
}

/* A column of the run is there when it says something of the first plan. */
static bool is_hidden(const plan_column *column, const nd_report_context *context, const nd_plan_list *list)
{
    char cell[CELL_MAX] = "";
    if (column->write_run != NULL) {
        column->write_run(context, &list->plans[0], cell, sizeof cell);
    }
    return column->write_run != NULL && cell[0] == '\0';
}

static void write_cell(const plan_column *column, const nd_report_context *context, const nd_plan_list *list,
                       int32_t index, char *cell)
{
    if (column->write_run != NULL) {
        column->write_run(context, &list->plans[index], cell, CELL_MAX);
    } else {
        column->write(&list->plans[index], index + 1, cell);
    }
}

/* Does the column say the same in every plan (that has a value for it)? What it says goes into `value`. */
static bool is_constant(const plan_column *column, const nd_plan_list *list, char *value)
{
    if (column->key == NULL) {
        return false;
    }
    (void)snprintf(value, CELL_MAX, "%s", column->where != NULL ? column->neutral : "");
    for (int32_t i = 0; i < list->count; i++) {
        char cell[CELL_MAX];
        column->write(&list->plans[i], i + 1, cell);
        if (column->where != NULL && strcmp(cell, column->neutral) == 0) {
            continue;
        }
        bool first = value[0] == '\0' || (column->where != NULL && strcmp(value, column->neutral) == 0);
        if (!first && strcmp(value, cell) != 0) {
            return false;
        }
        (void)snprintf(value, CELL_MAX, "%s", cell);
    }
    if (list->count == 1 || is_degree(column)) { /* there is nothing to compare, or the value matters by itself */
        return strcmp(value, column->neutral) == 0;
    }
    return true;
}

static nd_tone verdict_tone(nd_verdict verdict)
{
    return verdict == ND_VERDICT_FITS ? ND_TONE_GOOD : verdict == ND_VERDICT_BORDERLINE ? ND_TONE_WARN : ND_TONE_BAD;
}

static nd_status print_table(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    nd_column columns[PLAN_COLUMNS];
    const plan_column *shown[PLAN_COLUMNS];
    int32_t count = 0;
    char same[512] = "";
    for (int32_t c = 0; c < (int32_t)PLAN_COLUMNS; c++) {
        char value[CELL_MAX];
        if (is_hidden(&plan_columns[c], context, list)) {
            continue;
        }
        if (!is_constant(&plan_columns[c], list, value)) {
            columns[count] = plan_columns[c].column;
            shown[count++] = &plan_columns[c];
        } else if (strcmp(value, plan_columns[c].neutral) != 0) {
            size_t used = strlen(same);
            const char *where = plan_columns[c].where;
            (void)snprintf(same + used, sizeof same - used, "%s%s %s%s%s", used > 0 ? ", " : "", plan_columns[c].key,
                           value, where != NULL ? " where " : "", where != NULL ? where : "");
        }
    }
    nd_table *table = nd_table_create(columns, count);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the plans");
    }
    for (int32_t i = 0; i < list->count; i++) {
        for (int32_t c = 0; c < count; c++) {
            char cell[CELL_MAX];
            write_cell(shown[c], context, list, i, cell);
            bool verdict = shown[c]->write == write_verdict;
            nd_table_add_tone(table, cell,
                              verdict ? verdict_tone(list->plans[i].estimate.memory.verdict) : ND_TONE_PLAIN);
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
    if (status == ND_OK && same[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 0, 2, "In every plan: %s", same);
    }
    return status;
}

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

static nd_status print_nothing(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    const nd_cluster_spec *cluster = context->cost->cluster;
    if (!list->has_closest) {
        nd_report_paragraph(
            stream, &context->style, 0, 0,
            "No layout of %s GPUs is legal here. The rules that refused them:", nd_format_count(cluster->gpus).text);
        return ND_OK;
    }
    const nd_memory_breakdown *memory = &list->closest.estimate.memory;
    const nd_term *largest = largest_memory_term(memory);
    char text[512];
    (void)nd_layout_format(&list->closest.layout, text, sizeof text);
    nd_report_paragraph(stream, &context->style, 0, 0, "Nothing fits on %s GPU%s.", nd_format_count(cluster->gpus).text,
                        cluster->gpus == 1 ? "" : "s");
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
    nd_report_preamble(stream, context);
    fputc('\n', stream);
    if (list->fitting == 0) {
        ND_TRY(print_nothing(stream, context, list, err));
        fputc('\n', stream);
    }
    if (list->count > 0) {
        ND_TRY(print_table(stream, context, list, err));
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
