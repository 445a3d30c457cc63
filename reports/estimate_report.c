#include "reports/estimate_report.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "reports/answer.h"
#include "reports/bandwidth_text.h"
#include "reports/comm_table.h"
#include "reports/format.h"
#include "reports/run_report.h"
#include "reports/stage_text.h"
#include "reports/terms.h"

static nd_tone verdict_tone(nd_verdict verdict)
{
    return verdict == ND_VERDICT_FITS ? ND_TONE_GOOD : verdict == ND_VERDICT_BORDERLINE ? ND_TONE_WARN : ND_TONE_BAD;
}

static void print_stages(FILE *stream, const nd_report_context *context, const nd_estimate_view *view)
{
    int32_t pp = view->layout.size[ND_AXIS_PP];
    if (pp == 1) {
        return;
    }
    char stages[128];
    char chunks[32] = "";
    nd_stage_runs_text(&view->estimate.stages, stages, sizeof stages);
    if (view->layout.vpp > 1) {
        (void)snprintf(chunks, sizeof chunks, ", in %d chunks each", (int)view->layout.vpp);
    }
    nd_report_paragraph(stream, &context->style, 0, 11, "Stages     layers per stage %s%s", stages, chunks);
}

static void print_summary(FILE *stream, const nd_report_context *context, const nd_estimate *estimate)
{
    const nd_memory_breakdown *memory = &estimate->memory;
    const nd_report_style *style = &context->style;
    char step[ND_INTERVAL_TEXT_MAX];
    const char *words = nd_verdict_words(memory->verdict);
    char rest[256];
    nd_step_interval_text(&estimate->time, step);
    (void)snprintf(rest, sizeof rest, ": %s of %s GiB a GPU, step %s", nd_format_gib(memory->peak_bytes).text,
                   nd_format_gib(memory->capacity_bytes).text, step);
    if (style->width >= (int32_t)(strlen(words) + strlen(rest))) {
        nd_report_tone(stream, style, verdict_tone(memory->verdict), words);
        fprintf(stream, "%s\n", rest);
    } else {
        nd_report_paragraph(stream, style, 0, 2, "%s%s", words, rest);
    }
    nd_report_paragraph(
        stream, &context->style, 2, 2,
        "%s tokens/s, %s tokens/s per GPU, MFU %s %%, HFU %s %%, bound by %s; 80 %% interval of the "
        "memory: %s to %s GiB",
        nd_format_number(estimate->tokens_per_s).text, nd_format_number(estimate->tokens_per_s_per_gpu).text,
        nd_format_percent(estimate->mfu_frac).text, nd_format_percent(estimate->hfu_frac).text, estimate->bound_by,
        nd_format_gib(memory->peak_low_bytes).text, nd_format_gib(memory->peak_high_bytes).text);
    fputc('\n', stream);
}

static nd_status print_and_free(nd_table *table, FILE *stream, const nd_report_context *context, nd_error *err)
{
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    return status;
}

static nd_status start_table(const nd_column *columns, int32_t count, nd_table **out, nd_error *err)
{
    *out = nd_table_create(columns, count);
    return *out != NULL ? ND_OK : nd_fail(err, ND_ENOMEM, "out of memory while laying out the report");
}

static nd_status print_memory(FILE *stream, const nd_report_context *context, const nd_memory_breakdown *memory,
                              nd_error *err)
{
    static const nd_column columns[] = {
        {"term", NULL, ND_ALIGN_LEFT, 0, 0},
        {"memory", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"share", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 3, &table, err));
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        double bytes = nd_memory_term(memory, term);
        nd_table_add(table, term->label);
        nd_table_add(table, nd_format_gib(bytes).text);
        nd_table_add(table, nd_format_percent(bytes / memory->peak_bytes).text);
    }
    nd_table_add_tone(table, "peak", ND_TONE_STRONG);
    nd_table_add_tone(table, nd_format_gib(memory->peak_bytes).text, ND_TONE_STRONG);
    nd_table_add(table, "100.0");
    char heading[96];
    (void)snprintf(heading, sizeof heading, "Memory of one GPU at its peak (phase %s, stage %d)",
                   nd_phase_name(memory->phase), (int)memory->stage);
    nd_report_heading(stream, &context->style, heading);
    return print_and_free(table, stream, context, err);
}

static nd_status print_phases(FILE *stream, const nd_report_context *context, const nd_memory_breakdown *memory,
                              nd_error *err)
{
    static const nd_column columns[] = {
        {"phase", NULL, ND_ALIGN_LEFT, 0, 0},
        {"peak", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"free", "GiB", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 3, &table, err));
    for (int phase = 0; phase < ND_PHASE_COUNT; phase++) {
        double left = memory->capacity_bytes - memory->phase_bytes[phase];
        nd_table_add(table, nd_phase_name((nd_phase)phase));
        nd_table_add(table, nd_format_gib(memory->phase_bytes[phase]).text);
        nd_table_add_tone(table, nd_format_gib(left).text, left < 0.0 ? ND_TONE_BAD : ND_TONE_PLAIN);
    }
    nd_report_heading(stream, &context->style, "Memory by phase");
    return print_and_free(table, stream, context, err);
}

static void print_host(FILE *stream, const nd_report_context *context, const nd_memory_breakdown *memory)
{
    double host = (double)context->cost->cluster->host_memory_bytes;
    char has[64] = "the cluster file does not say how much it has";
    if (host > 0.0) {
        (void)snprintf(has, sizeof has, "it has %s GiB", nd_format_gib(host).text);
    }
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "Host memory of one node: %s GiB while training, %s GiB while loading; %s.",
                        nd_format_gib(memory->host_bytes).text, nd_format_gib(memory->host_load_bytes).text, has);
    if (host > 0.0 && (memory->host_bytes > host || memory->host_load_bytes > host)) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "That is more than the node has: load sharded, one rank at "
                            "a time, or offload less.");
    }
}

static nd_status print_time(FILE *stream, const nd_report_context *context, const nd_time_breakdown *time,
                            nd_error *err)
{
    static const nd_column columns[] = {
        {"term", NULL, ND_ALIGN_LEFT, 0, 0},
        {"time", "ms", ND_ALIGN_RIGHT, 0, 0},
        {"share", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 3, &table, err));
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        double seconds = nd_time_term(time, term);
        if (term->part && seconds == 0.0) {
            continue;
        }
        char label[64];
        (void)snprintf(label, sizeof label, "%s%s", term->part ? "  " : "", term->label);
        nd_table_add(table, label);
        nd_table_add(table, nd_format_number(seconds / ND_MILLI).text);
        nd_table_add(table, nd_format_percent(seconds / time->step_s).text);
    }
    nd_table_add_tone(table, "step", ND_TONE_STRONG);
    nd_table_add_tone(table, nd_format_number(time->step_s / ND_MILLI).text, ND_TONE_STRONG);
    nd_table_add(table, "100.0");
    nd_report_heading(stream, &context->style, "Time of one step (indented: parts of the line above)");
    ND_TRY(print_and_free(table, stream, context, err));
    nd_report_paragraph(stream, &context->style, 2, 2, "Communication hidden behind compute: %s, not in the step.",
                        nd_format_seconds(time->hidden_comm_s).text);
    return ND_OK;
}

/* The pipeline pass by pass, beside the closed form. */
static void print_simulation(FILE *stream, const nd_report_context *context, const nd_estimate_view *view)
{
    const nd_simulation *simulation = &view->simulation;
    double closed_s = view->estimate.time.closed_step_s;
    if (view->layout.size[ND_AXIS_PP] == 1) {
        return;
    }
    if (!view->is_simulated) {
        nd_report_paragraph(stream, &context->style, 2, 2, "Not simulated pass by pass: %s.", view->why_not.message);
        return;
    }
    double difference = simulation->step_s / closed_s - 1.0;
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "Pass by pass: simulated step %s (closed form %s, %s%s %%); stage %d waits least, %s.",
                        nd_format_seconds(simulation->step_s).text, nd_format_seconds(closed_s).text,
                        difference < 0.0 ? "-" : "+", nd_format_percent(fabs(difference)).text,
                        (int)simulation->busiest_stage,
                        nd_format_seconds(simulation->bubble_s[simulation->busiest_stage]).text);
}

static void print_batch(FILE *stream, const nd_report_context *context, const nd_estimate_view *view)
{
    const nd_layout *layout = &view->layout;
    nd_report_heading(stream, &context->style, "Batch and learning rate");
    nd_report_paragraph(
        stream, &context->style, 2, 4,
        "Effective batch: micro_batch %d x grad_accum %s x dp_replicate %d x dp_shard %d = %s sequence%s "
        "= %s tokens a step.",
        (int)layout->micro_batch, nd_format_count(layout->grad_accum).text, (int)layout->size[ND_AXIS_DP_REPLICATE],
        (int)layout->size[ND_AXIS_DP_SHARD], nd_format_count(view->effective_batch_seqs).text,
        view->effective_batch_seqs == 1 ? "" : "s", nd_format_number(view->effective_batch_tokens).text);
    nd_report_paragraph(stream, &context->style, 2, 4,
                        "Learning rate against one GPU with micro_batch %d and no accumulation: x %s by the linear "
                        "rule, x %s by the square-root rule (usual with Adam).",
                        (int)layout->micro_batch, nd_format_number(view->lr_linear_factor).text,
                        nd_format_number(view->lr_sqrt_factor).text);
}

static void add_checkpoint(nd_table *table, const nd_checkpoint_row *row)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s", nd_recompute_name(row->recompute), row->is_this_layout ? " *" : "");
    nd_table_add(table, name);
    if (!row->allowed) {
        nd_table_add(table, "-");
        nd_table_add(table, "-");
        nd_table_add(table, "-");
        nd_table_add(table, row->rule != NULL ? row->rule : "-");
        nd_table_add(table, "-");
        nd_table_add(table, "-");
        return;
    }
    const nd_estimate *estimate = &row->estimate;
    nd_table_add(table, nd_format_gib(estimate->memory.activations_bytes).text);
    nd_table_add(table, row->has_baseline ? nd_format_percent(row->saved_frac).text : "-");
    nd_table_add(table, nd_format_gib(estimate->memory.peak_bytes).text);
    nd_table_add_tone(table, nd_verdict_name(estimate->memory.verdict), verdict_tone(estimate->memory.verdict));
    nd_table_add(table, nd_format_number(estimate->time.step_s / ND_MILLI).text);
    nd_table_add(table, row->has_baseline ? nd_format_percent(row->slower_frac).text : "-");
}

/* Where full recompute leaves the ranges of the rule of thumb, and which figure of this step explains it. */
static void print_rule_of_thumb(FILE *stream, const nd_report_context *context, const nd_estimate_view *view)
{
    const nd_checkpoint_row *none = &view->checkpoints[0];
    const nd_checkpoint_row *full = &view->checkpoints[ND_CHECKPOINT_ROWS - 1];
    if (!full->allowed || !full->has_baseline) {
        return;
    }
    if (full->saved_frac > 0.8 || full->saved_frac < 0.6) {
        nd_report_paragraph(stream, &context->style, 2, 2, "Full saves %s %% here: %s.",
                            nd_format_percent(full->saved_frac).text,
                            full->saved_frac > 0.8 ? "of each layer only its input stays"
                                                   : "what the layers save is not most of the activation memory");
    }
    const nd_time_breakdown *time = &none->estimate.time;
    if (full->slower_frac < 0.2) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "Full costs %s %% here: only the forward pass of the layers repeats, and %s %% of the step "
                            "without recompute is no compute at all.",
                            nd_format_percent(full->slower_frac).text,
                            nd_format_percent(1.0 - time->compute_s / time->step_s).text);
    } else if (full->slower_frac > 0.3) {
        const nd_time_breakdown *with = &full->estimate.time;
        nd_report_paragraph(
            stream, &context->style, 2, 2,
            "Full costs %s %% here: %s of repeated compute and %s more of exposed communication and "
            "bubble.",
            nd_format_percent(full->slower_frac).text, nd_format_seconds(with->recompute_s).text,
            nd_format_seconds(with->exposed_comm_s + with->bubble_s - time->exposed_comm_s - time->bubble_s).text);
    }
}

static nd_status print_checkpoints(FILE *stream, const nd_report_context *context, const nd_estimate_view *view,
                                   nd_error *err)
{
    static const nd_column columns[] = {
        {"recompute", NULL, ND_ALIGN_LEFT, 0, 0}, {"activations", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"saved", "%", ND_ALIGN_RIGHT, 0, 0},     {"peak", "GiB", ND_ALIGN_RIGHT, 0, 0},
        {"verdict", NULL, ND_ALIGN_LEFT, 0, 0},   {"step", "ms", ND_ALIGN_RIGHT, 0, 0},
        {"slower", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_table *table = NULL;
    ND_TRY(start_table(columns, 7, &table, err));
    for (int32_t i = 0; i < ND_CHECKPOINT_ROWS; i++) {
        add_checkpoint(table, &view->checkpoints[i]);
    }
    nd_report_heading(stream, &context->style, "What checkpointing saves and costs (* this layout)");
    ND_TRY(print_and_free(table, stream, context, err));
    nd_report_paragraph(stream, &context->style, 2, 2,
                        "The usual rule of thumb: 60-80 %% of the activation memory for 20-30 %% more time.");
    print_rule_of_thumb(stream, context, view);
    return ND_OK;
}

static void print_sources(FILE *stream, const nd_report_context *context)
{
    const nd_cost_context *cost = context->cost;
    const nd_calibration *calibration = cost->calibration;
    bool own = strcmp(calibration->gpu, cost->cluster->gpu.name) == 0;
    nd_report_heading(stream, &context->style, "Where the numbers come from");
    nd_report_paragraph(stream, &context->style, 2, 4, "GPU %s: %s", cost->cluster->gpu.name,
                        cost->cluster->gpu.source);
    nd_report_paragraph(stream, &context->style, 2, 4, "Calibration %s%s%s%s: %s", calibration->name,
                        own ? "" : " (fitted on ", own ? "" : calibration->gpu,
                        own ? "" : ", there is none for this GPU)", calibration->source);
    nd_report_paragraph(stream, &context->style, 2, 4, "Stack %s: %s", cost->stack->name, cost->stack->source);
    for (int64_t i = 0; i < cost->cluster->tiers_count; i++) {
        const nd_link_tier *tier = &cost->cluster->tiers[i];
        nd_report_paragraph(stream, &context->style, 2, 4, "Link %s, %s GPU%s: %s GB/s a GPU, reaches %s %% of it; %s",
                            nd_tier_kind_name(tier->kind), nd_format_count(tier->span_gpus).text,
                            tier->span_gpus == 1 ? "" : "s",
                            nd_format_gb_per_s(tier->bytes_per_s / tier->oversubscription).text,
                            nd_format_percent(tier->efficiency_frac).text, tier->source);
    }
    if (cost->cluster->source[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 2, 4, "Cluster: %s", cost->cluster->source);
    }
    nd_report_paragraph(stream, &context->style, 2, 4,
                        "FLOPs a token: %s GFLOP with the full attention matrix (MFU uses these), %s GFLOP causal.",
                        nd_format_number(cost->flops_per_token / ND_GIGA).text,
                        nd_format_number(cost->flops_per_token_causal / ND_GIGA).text);
}

nd_status nd_report_estimate(FILE *stream, const nd_report_context *context, const nd_estimate_view *view,
                             nd_error *err)
{
    print_summary(stream, context, &view->estimate);
    nd_report_preamble(stream, context);
    nd_report_layout(stream, &view->layout);
    print_stages(stream, context, view);
    if (context->quiet) {
        return ND_OK;
    }
    ND_TRY(print_memory(stream, context, &view->estimate.memory, err));
    ND_TRY(print_phases(stream, context, &view->estimate.memory, err));
    print_host(stream, context, &view->estimate.memory);
    ND_TRY(print_time(stream, context, &view->estimate.time, err));
    print_simulation(stream, context, view);
    ND_TRY(nd_report_comm(stream, context, &view->comm, err));
    nd_report_bandwidth(stream, context, view->needs, view->needs_count);
    print_batch(stream, context, view);
    ND_TRY(print_checkpoints(stream, context, view, err));
    ND_TRY(nd_report_run(stream, context, &(nd_plan){view->layout, view->estimate}, err));
    print_sources(stream, context);
    return ND_OK;
}

void nd_report_illegal(FILE *stream, const nd_report_context *context, const nd_layout *layout,
                       const nd_refusal *refusal)
{
    nd_report_paragraph(stream, &context->style, 0, 2, "Not legal (%s): %s", refusal->rule, refusal->message);
    if (refusal->nearest[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 0, 2, "Nearest legal: %s", refusal->nearest);
    }
    fputc('\n', stream);
    nd_report_preamble(stream, context);
    nd_report_layout(stream, layout);
}
