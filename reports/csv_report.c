#include "reports/csv_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/run_cost.h"
#include "reports/terms.h"

static void separate(nd_csv_writer *csv)
{
    if (csv->in_row) {
        fputc(',', csv->stream);
    }
    csv->in_row = true;
}

void nd_csv_writer_text(nd_csv_writer *csv, const char *text)
{
    separate(csv);
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
    if (!formula && strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, csv->stream);
        return;
    }
    fputs(formula ? "\"'" : "\"", csv->stream);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"') {
            fputc('"', csv->stream);
        }
        fputc(*c, csv->stream);
    }
    fputc('"', csv->stream);
}

void nd_csv_writer_int(nd_csv_writer *csv, int64_t value)
{
    separate(csv);
    fprintf(csv->stream, "%" PRId64, value);
}

void nd_csv_writer_double(nd_csv_writer *csv, double value)
{
    separate(csv);
    if (!isfinite(value)) {
        return;
    }
    char text[32];
    for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back the same */
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, csv->stream);
}

void nd_csv_writer_end_row(nd_csv_writer *csv)
{
    fputs("\r\n", csv->stream);
    csv->in_row = false;
}

static void plan_header(nd_csv_writer *csv)
{
    nd_csv_writer_text(csv, "rank");
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        nd_csv_writer_text(csv, nd_axis_name((nd_axis)axis));
    }
    static const char *const rest[] = {
        "ep",          "vpp",        "sp",       "cp_method", "schedule",        "split",
        "micro_batch", "grad_accum", "sharding", "recompute", "recompute_every", "offload"};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        nd_csv_writer_text(csv, rest[i]);
    }
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        nd_csv_writer_text(csv, term->key);
    }
    static const char *const memory[] = {"peak_bytes",     "peak_low_bytes", "peak_high_bytes",
                                         "capacity_bytes", "host_bytes",     "verdict",
                                         "step_s",         "step_low_s",     "step_high_s"};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        nd_csv_writer_text(csv, memory[i]);
    }
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        nd_csv_writer_text(csv, term->key);
    }
    static const char *const speed[] = {"tokens_per_s", "tokens_per_s_per_gpu", "mfu_frac",
                                        "hfu_frac",     "flops_per_token",      "bound_by"};
    for (size_t i = 0; i < sizeof speed / sizeof speed[0]; i++) {
        nd_csv_writer_text(csv, speed[i]);
    }
    static const char *const run[] = {"gpus",
                                      "run_tokens",
                                      "run_wall_s",
                                      "run_goodput_frac",
                                      "run_gpu_hours",
                                      "run_usd",
                                      "usd_per_million_tokens",
                                      "run_site_joule"};
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) {
        nd_csv_writer_text(csv, run[i]);
    }
    nd_csv_writer_end_row(csv);
}

static void plan_layout(nd_csv_writer *csv, const nd_layout *layout)
{
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        nd_csv_writer_int(csv, layout->size[axis]);
    }
    nd_csv_writer_int(csv, layout->ep);
    nd_csv_writer_int(csv, layout->vpp);
    nd_csv_writer_text(csv, layout->sequence_parallel ? "true" : "false");
    nd_csv_writer_text(csv, nd_cp_method_name(layout->cp_method));
    nd_csv_writer_text(csv, nd_schedule_name(layout->schedule));
    nd_csv_writer_text(csv, nd_split_name(layout->split));
    nd_csv_writer_int(csv, layout->micro_batch);
    nd_csv_writer_int(csv, layout->grad_accum);
    nd_csv_writer_text(csv, nd_sharding_name(layout->sharding));
    nd_csv_writer_text(csv, nd_recompute_name(layout->recompute));
    nd_csv_writer_int(csv, layout->recompute_every);
    nd_csv_writer_text(csv, nd_offload_name(layout->offload));
}

static void plan_estimate(nd_csv_writer *csv, const nd_estimate *estimate)
{
    const nd_memory_breakdown *memory = &estimate->memory;
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        nd_csv_writer_double(csv, nd_memory_term(memory, term));
    }
    nd_csv_writer_double(csv, memory->peak_bytes);
    nd_csv_writer_double(csv, memory->peak_low_bytes);
    nd_csv_writer_double(csv, memory->peak_high_bytes);
    nd_csv_writer_double(csv, memory->capacity_bytes);
    nd_csv_writer_double(csv, memory->host_bytes);
    nd_csv_writer_text(csv, nd_verdict_name(memory->verdict));
    nd_csv_writer_double(csv, estimate->time.step_s);
    nd_csv_writer_double(csv, estimate->time.step_low_s);
    nd_csv_writer_double(csv, estimate->time.step_high_s);
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        nd_csv_writer_double(csv, nd_time_term(&estimate->time, term));
    }
    nd_csv_writer_double(csv, estimate->tokens_per_s);
    nd_csv_writer_double(csv, estimate->tokens_per_s_per_gpu);
    nd_csv_writer_double(csv, estimate->mfu_frac);
    nd_csv_writer_double(csv, estimate->hfu_frac);
    nd_csv_writer_double(csv, estimate->flops_per_token);
    nd_csv_writer_text(csv, estimate->bound_by);
}

/* What was not asked or is not known is an empty field. */
static void put_known(nd_csv_writer *csv, bool known, double value)
{
    nd_csv_writer_double(csv, known ? value : HUGE_VAL);
}

static void plan_run(nd_csv_writer *csv, const nd_report_context *context, const nd_plan *plan)
{
    nd_run_cost cost = {0};
    const nd_run_spec *run = context != NULL ? context->run : NULL;
    bool tokens = run != NULL && run->tokens > 0.0;
    bool price = run != NULL && run->price_usd_per_gpu_hour > 0.0;
    if (run != NULL) {
        nd_run_cost_of(context->cost, &plan->layout, &plan->estimate, run, &cost);
    }
    nd_csv_writer_int(csv, nd_layout_ranks(&plan->layout));
    put_known(csv, tokens, tokens ? run->tokens : 0.0);
    put_known(csv, tokens, cost.wall_s);
    put_known(csv, run != NULL, cost.plain.goodput_frac);
    put_known(csv, tokens, cost.gpu_hours);
    put_known(csv, tokens && price, cost.usd);
    put_known(csv, price, cost.usd_per_million_tokens);
    put_known(csv, tokens && cost.gpu_power_w > 0.0, cost.site_joule);
}

void nd_csv_plans_run(FILE *stream, const nd_report_context *context, const nd_plan *plans, int32_t count)
{
    nd_csv_writer csv = {stream, false};
    plan_header(&csv);
    for (int32_t i = 0; i < count; i++) {
        nd_csv_writer_int(&csv, i + 1);
        plan_layout(&csv, &plans[i].layout);
        plan_estimate(&csv, &plans[i].estimate);
        plan_run(&csv, context, &plans[i]);
        nd_csv_writer_end_row(&csv);
    }
}

void nd_csv_plans(FILE *stream, const nd_plan *plans, int32_t count)
{
    nd_csv_plans_run(stream, NULL, plans, count);
}
