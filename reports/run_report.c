#include "reports/run_report.h"

#include <math.h>

#include "core/text.h"
#include "core/units.h"
#include "reports/format.h"

static const double day_s = 86400.0;

static nd_run_cost cost_of(const nd_report_context *context, const nd_plan *plan)
{
    nd_run_cost run;
    nd_run_cost_of(context->cost, &plan->layout, &plan->estimate, context->run, &run);
    return run;
}

static bool has_tokens(const nd_report_context *context)
{
    return context->run->tokens > 0.0;
}

static bool has_price(const nd_report_context *context)
{
    return context->run->price_usd_per_gpu_hour > 0.0;
}

/* "6.88 USD a GPU hour (2026-07-20; on demand ...)" */
static void price_text(const nd_report_context *context, char *text, size_t text_bytes)
{
    const nd_cluster_spec *cluster = context->cost->cluster;
    (void)snprintf(text, text_bytes, "%s USD a GPU hour (%s%s%s)",
                   nd_format_number(context->run->price_usd_per_gpu_hour).text, cluster->price_date,
                   cluster->price_date[0] != '\0' ? "; " : "",
                   cluster->price_source[0] != '\0' ? cluster->price_source : "no source stated");
}

static void print_length(FILE *stream, const nd_report_context *context, const nd_run_cost *run)
{
    if (!has_tokens(context)) {
        return;
    }
    nd_report_paragraph(
        stream, &context->style, 2, 4,
        "%s tokens are %s steps: %s in steps, %s with checkpoints and failures (80 %% interval of the step: %s to %s).",
        nd_format_tokens(context->run->tokens).text, nd_format_number(run->steps).text,
        nd_format_seconds(run->steady_s).text, nd_format_seconds(run->wall_s).text,
        nd_format_seconds(run->wall_low_s).text, nd_format_seconds(run->wall_high_s).text);
}

static void print_money(FILE *stream, const nd_report_context *context, const nd_run_cost *run)
{
    char price[384];
    if (!has_price(context)) {
        nd_report_paragraph(stream, &context->style, 2, 4,
                            "Price: none is known for this cluster; --price USD sets it.%s%s",
                            has_tokens(context) ? " GPU hours: " : "",
                            has_tokens(context) ? nd_format_number(run->gpu_hours).text : "");
        return;
    }
    price_text(context, price, sizeof price);
    if (has_tokens(context)) {
        nd_report_paragraph(stream, &context->style, 2, 4,
                            "Price: %s USD (80 %% interval of the step: %s to %s) for %s GPU hours at %s.",
                            nd_format_usd(run->usd).text, nd_format_usd(run->usd_low).text,
                            nd_format_usd(run->usd_high).text, nd_format_number(run->gpu_hours).text, price);
    } else {
        nd_report_paragraph(stream, &context->style, 2, 4, "Price: %s.", price);
    }
    nd_report_paragraph(stream, &context->style, 4, 4, "%s USD a million tokens, %s tokens a dollar.",
                        nd_format_number(run->usd_per_million_tokens).text, nd_format_tokens(run->tokens_per_usd).text);
}

static void print_energy(FILE *stream, const nd_report_context *context, const nd_run_cost *run)
{
    const nd_run_spec *spec = context->run;
    if (!(run->gpu_power_w > 0.0)) {
        nd_report_paragraph(stream, &context->style, 2, 4, "Energy: the power of %s is not known.",
                            context->cost->cluster->gpu.title);
        return;
    }
    char total[160] = "";
    if (has_tokens(context)) {
        (void)snprintf(total, sizeof total, "%s by the GPUs at their power cap, %s by the site; ",
                       nd_format_energy(run->gpu_joule).text, nd_format_energy(run->site_joule).text);
    }
    nd_report_paragraph(stream, &context->style, 2, 4,
                        "Energy: %s%s J a token: %s W a GPU, x %s with the rest of its node, x %s with cooling and "
                        "losses of the site.",
                        total, nd_format_number(run->joule_per_token).text,
                        nd_format_number(context->cost->cluster->gpu.power_w).text,
                        nd_format_number(spec->host_factor).text, nd_format_number(spec->facility_factor).text);
}

static void print_failures(FILE *stream, const nd_report_context *context, const nd_run_cost *run)
{
    if (isinf(run->mtbf_s)) {
        nd_report_paragraph(stream, &context->style, 2, 4, "Failures: none assumed.");
        return;
    }
    char count[80] = "";
    if (has_tokens(context)) {
        (void)snprintf(count, sizeof count, ", about %s in the run", nd_format_number(run->failures).text);
    }
    nd_report_paragraph(
        stream, &context->style, 2, 4,
        "Failures: one every %s on %s GPU%s%s; each costs %s to restart and read the checkpoint, and the "
        "work since the last save.",
        nd_format_seconds(run->mtbf_s).text, nd_format_count(run->gpus).text, nd_text_plural(run->gpus), count,
        nd_format_seconds(run->restart_s).text);
}

static void add_saves(nd_table *table, const char *name, const nd_save_plan *plan)
{
    nd_table_add(table, name);
    nd_table_add(table, nd_format_seconds(plan->blocking_s).text);
    nd_table_add(table, isinf(plan->interval_s) ? "never" : nd_format_seconds(plan->interval_s).text);
    nd_table_add(table, isinf(plan->best_interval_s) ? "never" : nd_format_seconds(plan->best_interval_s).text);
    nd_table_add(table, nd_format_percent(plan->goodput_frac).text);
}

static nd_status print_saves(FILE *stream, const nd_report_context *context, const nd_run_cost *run, nd_error *err)
{
    static const nd_column columns[] = {
        {"a save", NULL, ND_ALIGN_LEFT, 0, 0},  {"blocks for", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"after", NULL, ND_ALIGN_RIGHT, 0, 0},  {"best after", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"goodput", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_report_paragraph(stream, &context->style, 2, 4,
                        "Checkpoint: %s = weights %s + optimizer %s; %s from GPU to host memory, %s to a storage of %s "
                        "GB/s.",
                        nd_format_bytes(run->saved.weights_bytes + run->saved.optimizer_bytes).text,
                        nd_format_bytes(run->saved.weights_bytes).text,
                        nd_format_bytes(run->saved.optimizer_bytes).text, nd_format_seconds(run->save.copy_s).text,
                        nd_format_seconds(run->save.write_s).text, nd_format_gb_per_s(run->storage_bytes_per_s).text);
    nd_table *table = nd_table_create(columns, 5);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the report");
    }
    add_saves(table, "training waits *", &run->plain);
    add_saves(table, "asynchronous", &run->async);
    nd_status status = nd_table_print(table, stream, &context->style, 4, err);
    nd_table_free(table);
    return status;
}

nd_status nd_report_run(FILE *stream, const nd_report_context *context, const nd_plan *plan, nd_error *err)
{
    if (context->run == NULL) {
        return ND_OK;
    }
    nd_run_cost run = cost_of(context, plan);
    nd_report_heading(stream, &context->style, "The whole run (* what it counts with)");
    print_length(stream, context, &run);
    print_money(stream, context, &run);
    print_energy(stream, context, &run);
    print_failures(stream, context, &run);
    return print_saves(stream, context, &run, err);
}

void nd_report_run_short(FILE *stream, const nd_report_context *context, const nd_plan *plan)
{
    if (context->run == NULL) {
        return;
    }
    nd_run_cost run = cost_of(context, plan);
    char price[384];
    char usd[480] = "";
    if (has_price(context)) {
        price_text(context, price, sizeof price);
        (void)snprintf(usd, sizeof usd, ", %s USD%s at %s",
                       has_tokens(context) ? nd_format_usd(run.usd).text
                                           : nd_format_number(run.usd_per_million_tokens).text,
                       has_tokens(context) ? "" : " a million tokens", price);
    }
    if (has_tokens(context)) {
        nd_report_paragraph(stream, &context->style, 0, 2,
                            "#1 trains %s tokens in %s (%s to %s) at a goodput of %s %%: %s GPU hours, %s%s.",
                            nd_format_tokens(context->run->tokens).text, nd_format_seconds(run.wall_s).text,
                            nd_format_seconds(run.wall_low_s).text, nd_format_seconds(run.wall_high_s).text,
                            nd_format_percent(run.plain.goodput_frac).text, nd_format_number(run.gpu_hours).text,
                            nd_format_energy(run.site_joule).text, usd);
    } else {
        nd_report_paragraph(stream, &context->style, 0, 2, "#1 has a goodput of %s %%%s.",
                            nd_format_percent(run.plain.goodput_frac).text, usd);
    }
}

void nd_report_batch(FILE *stream, const nd_report_context *context)
{
    const nd_train_spec *train = context->cost->train;
    double seqs = (double)train->global_batch_seqs;
    char tokens[64];
    (void)snprintf(tokens, sizeof tokens, "%s", nd_format_number(seqs * (double)train->seq_len_tokens).text);
    if (!context->batch_assumed) {
        nd_report_paragraph(
            stream, &context->style, 0, 2,
            "Every layout makes steps of %s sequence%s (%s tokens): the learning rate is the same for all.",
            nd_format_count(train->global_batch_seqs).text, nd_text_plural(train->global_batch_seqs), tokens);
        return;
    }
    nd_report_paragraph(
        stream, &context->style, 0, 2,
        "Every layout makes steps of %s sequence%s (%s tokens), which were assumed: against steps of one "
        "sequence on one GPU the learning rate is x %s by the linear rule, x %s by the square-root rule "
        "(usual with Adam). A larger --global-batch accumulates and hides more communication.",
        nd_format_count(train->global_batch_seqs).text, nd_text_plural(train->global_batch_seqs), tokens,
        nd_format_number(seqs).text, nd_format_number(sqrt(seqs)).text);
}

void nd_run_days_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes)
{
    cell[0] = '\0';
    if (context->run != NULL && has_tokens(context)) {
        (void)snprintf(cell, cell_bytes, "%s", nd_format_number(cost_of(context, plan).wall_s / day_s).text);
    }
}

void nd_run_usd_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes)
{
    cell[0] = '\0';
    if (context->run != NULL && has_tokens(context) && has_price(context)) {
        (void)snprintf(cell, cell_bytes, "%s", nd_format_usd(cost_of(context, plan).usd).text);
    }
}

void nd_run_rate_text(const nd_report_context *context, const nd_plan *plan, char *cell, size_t cell_bytes)
{
    cell[0] = '\0';
    if (context->run != NULL && !has_tokens(context) && has_price(context)) {
        (void)snprintf(cell, cell_bytes, "%s", nd_format_number(cost_of(context, plan).usd_per_million_tokens).text);
    }
}
