#include "reports/report.h"

#include "core/units.h"
#include "reports/format.h"
#include "reports/stage_text.h"

static const double bits_per_byte = 8.0;

static void print_model(FILE *stream, const nd_report_context *context)
{
    const nd_cost_context *cost = context->cost;
    const nd_model_spec *model = cost->model;
    const nd_param_counts *params = &cost->params;
    if (model->experts > 0) {
        nd_report_paragraph(stream, &context->style, 0, 11, "Model      %s, %s parameters (%s active)", model->name,
                            nd_format_params(params->total).text, nd_format_params(params->active).text);
    } else {
        nd_report_paragraph(stream, &context->style, 0, 11, "Model      %s, %s parameters", model->name,
                            nd_format_params(params->total).text);
    }
    if (model->note[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 11, 11, "%s", model->note);
    }
}

static void print_nodes(FILE *stream, const nd_report_context *context, const nd_cluster_spec *cluster,
                        const char *label)
{
    nd_report_paragraph(stream, &context->style, 0, 11, "%-11s%s: %s GPU%s (%s x %s %s), %s GiB each", label,
                        cluster->name, nd_format_count(cluster->gpus).text, cluster->gpus == 1 ? "" : "s",
                        nd_format_count(cluster->nodes).text, nd_format_count(cluster->gpus_per_node).text,
                        cluster->gpu.title, nd_format_gib((double)cluster->gpu.memory_bytes).text);
    if (cluster->note[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 11, 11, "%s", cluster->note);
    }
}

static void print_cluster(FILE *stream, const nd_report_context *context)
{
    const nd_mixed_cluster *mixed = context->mixed;
    if (mixed == NULL) {
        print_nodes(stream, context, context->cost->cluster, "Cluster");
        return;
    }
    nd_report_paragraph(stream, &context->style, 0, 11, "Cluster    %s: %s GPUs, %d kinds of node", mixed->name,
                        nd_format_count(mixed->gpus).text, (int)mixed->parts_count);
    if (mixed->note[0] != '\0') {
        nd_report_paragraph(stream, &context->style, 11, 11, "%s", mixed->note);
    }
    for (int32_t i = 0; i < mixed->parts_count; i++) {
        print_nodes(stream, context, &mixed->parts[i], "");
    }
}

static void print_training(FILE *stream, const nd_report_context *context)
{
    const nd_train_spec *train = context->cost->train;
    char lora[48] = "";
    if (train->lora_rank > 0) {
        (void)snprintf(lora, sizeof lora, ", LoRA r=%d on a %d-bit base", (int)train->lora_rank, (int)train->base_bits);
    }
    nd_report_paragraph(stream, &context->style, 0, 11,
                        "Training   %s sequence%s of %s tokens a step (%s tokens), %s, %s, %s attention%s",
                        nd_format_count(train->global_batch_seqs).text, train->global_batch_seqs == 1 ? "" : "s",
                        nd_format_count(train->seq_len_tokens).text,
                        nd_format_number((double)train->global_batch_seqs * (double)train->seq_len_tokens).text,
                        nd_dtype_name(train->precision), nd_optimizer_name(train->optimizer),
                        nd_attention_name(train->attention), lora);
}

static void print_software(FILE *stream, const nd_report_context *context)
{
    const nd_framework *framework = context->framework;
    const nd_stack *stack = context->cost->stack;
    if (framework != NULL) {
        nd_report_paragraph(stream, &context->style, 0, 11, "Software   %s %s on stack %s (%s)", framework->title,
                            framework->version, stack->name, stack->title);
    } else {
        nd_report_paragraph(stream, &context->style, 0, 11, "Software   stack %s (%s)", stack->name, stack->title);
    }
}

void nd_report_preamble(FILE *stream, const nd_report_context *context)
{
    print_model(stream, context);
    print_cluster(stream, context);
    print_training(stream, context);
    print_software(stream, context);
    if (context->quiet) {
        return;
    }
    for (int32_t i = 0; i < context->assumptions_count; i++) {
        const nd_assumption *assumption = &context->assumptions[i];
        nd_report_paragraph(stream, &context->style, 0, 11, "%s%s%s%s: %s", i == 0 ? "Assumed    " : "           ",
                            assumption->option, assumption->option[0] != '\0' ? " " : "", assumption->value,
                            assumption->why);
    }
}

void nd_report_layout(FILE *stream, const nd_layout *layout)
{
    char text[512];
    (void)nd_layout_format(layout, text, sizeof text);
    fprintf(stream, "Layout     %s\n", text);
}

void nd_report_grown_network(FILE *stream, const nd_report_context *context, const nd_cluster_spec *cluster)
{
    const nd_node_facts *facts = &cluster->facts;
    if (context->cost->cluster->nodes > 1 || cluster->nodes == 1 || !(cluster->nic_bytes_per_s > 0.0)) {
        return;
    }
    int64_t nics = facts->nics_per_node > 0 ? facts->nics_per_node : 1;
    nd_report_paragraph(stream, &context->style, 2, 2, "between nodes: %s x %s Gb/s %s per node%s",
                        nd_format_count(nics).text,
                        nd_format_number(cluster->nic_bytes_per_s / (double)nics * bits_per_byte / ND_GIGA).text,
                        cluster->network, cluster->base_name[0] == '\0' ? ", assumed" : "");
}

static bool note_memory(const nd_memory_breakdown *memory, char *buffer, size_t buffer_bytes)
{
    if (memory->verdict == ND_VERDICT_BORDERLINE && memory->peak_high_bytes <= memory->capacity_bytes &&
        memory->load_whole_bytes > memory->capacity_bytes) {
        (void)snprintf(buffer, buffer_bytes,
                       "borderline: it fits once loaded, but a loader that puts the whole model on each GPU before "
                       "sharding needs %s GiB of %s GiB; load on the CPU or on the meta device",
                       nd_format_gib(memory->load_whole_bytes).text, nd_format_gib(memory->capacity_bytes).text);
        return true;
    }
    if (memory->verdict == ND_VERDICT_BORDERLINE) {
        (void)snprintf(buffer, buffer_bytes, "borderline: the peak is between %s and %s GiB (80 %% interval) of %s GiB",
                       nd_format_gib(memory->peak_low_bytes).text, nd_format_gib(memory->peak_high_bytes).text,
                       nd_format_gib(memory->capacity_bytes).text);
        return true;
    }
    if (memory->verdict == ND_VERDICT_NO) {
        (void)snprintf(buffer, buffer_bytes, "does not fit: needs %s GiB of %s GiB, in phase %s",
                       nd_format_gib(memory->peak_bytes).text, nd_format_gib(memory->capacity_bytes).text,
                       nd_phase_name(memory->phase));
        return true;
    }
    return false;
}

static bool note_split(const nd_plan *plan, char *buffer, size_t buffer_bytes)
{
    if (plan->layout.split == ND_SPLIT_EVEN) {
        return false;
    }
    char stages[128];
    nd_stage_runs_text(&plan->estimate.stages, stages, sizeof stages);
    (void)snprintf(buffer, buffer_bytes, "split=%s: layers per stage %s", nd_split_name(plan->layout.split), stages);
    return true;
}

bool nd_plan_note(const nd_plan *plan, int32_t index, char *buffer, size_t buffer_bytes)
{
    if (note_memory(&plan->estimate.memory, buffer, buffer_bytes)) {
        if (index == 0) {
            return true;
        }
        index--;
    }
    return index == 0 && note_split(plan, buffer, buffer_bytes);
}
