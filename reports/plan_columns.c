/* The columns of the table of plans, and which of them a list needs. */
#include "reports/plan_columns.h"

#include <string.h>

#include "reports/format.h"
#include "reports/run_report.h"

enum { CELL_MAX = 64 };

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

nd_status nd_report_plan_rows(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
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
