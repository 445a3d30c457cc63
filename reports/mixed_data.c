/* Machine-readable answers on clusters of several kinds of node. */
#include "reports/csv_report.h"
#include "reports/json_report_internal.h"
#include "reports/mixed_report.h"

static void put_parts(nd_json_writer *json, const nd_mixed_input *input)
{
    nd_json_key(json, "parts");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        const nd_cluster_spec *part = &input->cluster->parts[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "name", part->name);
        nd_json_put_int(json, "gpus", part->gpus);
        nd_json_put_int(json, "nodes", part->nodes);
        nd_json_put_int(json, "gpus_per_node", part->gpus_per_node);
        nd_json_put_string(json, "gpu", part->gpu.name);
        nd_json_put_string(json, "attention", nd_attention_name(input->parts[i]->train->attention));
        nd_json_put_string(json, "calibration", input->parts[i]->calibration->name);
        nd_json_put_string(json, "note", part->note);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

/* `part` is null where all parts are meant. */
static void put_group(nd_json_writer *json, const nd_mixed_cluster *cluster, const nd_mixed_option *option,
                      int32_t index, int32_t first_stage)
{
    const nd_mixed_group *group = &option->groups[index];
    nd_json_begin_object(json);
    nd_json_key(json, "part");
    if (group->part < 0) {
        nd_json_null(json);
    } else {
        nd_json_string(json, cluster->parts[group->part].name);
    }
    nd_json_put_int(json, "stages", group->stages);
    nd_json_put_int(json, "layers", group->layers);
    nd_json_put_int(json, "gpus", group->gpus);
    if (option->way == ND_MIXED_STAGES) {
        nd_json_put_double(json, "slowest_stage_s", group->slowest_stage_s);
        nd_json_key(json, "stage_layers");
        nd_json_begin_array(json);
        for (int32_t s = 0; s < group->stages; s++) {
            nd_json_int(json, option->stage_layers[first_stage + s]);
        }
        nd_json_end_array(json);
    }
    nd_json_put_memory(json, &group->memory);
    nd_json_end_object(json);
}

static void put_option(nd_json_writer *json, const nd_mixed_cluster *cluster, const nd_mixed_option *option,
                       int32_t rank)
{
    char label[ND_MIXED_LABEL_MAX];
    nd_mixed_label(cluster, option, label);
    nd_json_begin_object(json);
    nd_json_put_int(json, "rank", rank);
    nd_json_put_string(json, "way", nd_mixed_way_name(option->way));
    nd_json_put_string(json, "label", label);
    nd_json_put_bool(json, "found", option->found);
    if (!option->found) {
        nd_json_put_string(json, "why_not", option->why_not);
        nd_json_end_object(json);
        return;
    }
    nd_json_put_layout(json, &option->layout);
    nd_json_put_time(json, &option->time);
    nd_json_put_double(json, "tokens_per_s", option->tokens_per_s);
    nd_json_put_double(json, "mfu_frac", option->mfu_frac);
    nd_json_put_int(json, "gpus", option->gpus);
    nd_json_put_int(json, "idle_gpus", option->idle_gpus);
    nd_json_key(json, "groups");
    nd_json_begin_array(json);
    int32_t first = 0;
    for (int32_t g = 0; g < option->groups_count; g++) {
        put_group(json, cluster, option, g, first);
        first += option->groups[g].stages;
    }
    nd_json_end_array(json);
    nd_json_end_object(json);
}

void nd_json_mixed(FILE *stream, const nd_report_context *context, const nd_mixed_input *input,
                   const nd_mixed_plan *plan)
{
    int32_t order[ND_MIXED_OPTIONS_MAX];
    int32_t count = nd_mixed_rank(plan, order);
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/suggest-mixed/1");
    put_parts(&json, input);
    nd_json_key(&json, "ways");
    nd_json_begin_array(&json);
    for (int32_t i = 0; i < count; i++) {
        put_option(&json, input->cluster, &plan->options[order[i]], i + 1);
    }
    nd_json_end_array(&json);
    nd_json_put_bool(&json, "fits", plan->best >= 0);
    nd_json_put_int(&json, "searched", plan->searched);
    nd_json_put_double(&json, "elapsed_s", plan->elapsed_s);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

/* "8,8,7,9" would be four fields to careless readers: layers are joined by spaces. */
static void stage_layers(const nd_mixed_option *option, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t s = 0; option->way == ND_MIXED_STAGES && s < option->layout.size[ND_AXIS_PP] && used + 1 < bytes;
         s++) {
        int length = snprintf(text + used, bytes - used, "%s%d", s > 0 ? " " : "", (int)option->stage_layers[s]);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void csv_row(nd_csv_writer *csv, const nd_mixed_cluster *cluster, const nd_mixed_option *option, int32_t rank)
{
    const nd_mixed_group *fullest = nd_mixed_fullest(option);
    char text[512];
    nd_csv_writer_int(csv, rank);
    nd_csv_writer_text(csv, nd_mixed_way_name(option->way));
    nd_mixed_label(cluster, option, text);
    nd_csv_writer_text(csv, text);
    (void)nd_layout_format(&option->layout, text, sizeof text);
    nd_csv_writer_text(csv, text);
    stage_layers(option, text, sizeof text);
    nd_csv_writer_text(csv, text);
    nd_csv_writer_int(csv, option->gpus);
    nd_csv_writer_int(csv, option->idle_gpus);
    nd_csv_writer_double(csv, fullest->memory.peak_bytes);
    nd_csv_writer_double(csv, fullest->memory.capacity_bytes);
    nd_csv_writer_text(csv, nd_verdict_name(fullest->memory.verdict));
    nd_csv_writer_double(csv, option->time.step_s);
    nd_csv_writer_double(csv, option->time.step_low_s);
    nd_csv_writer_double(csv, option->time.step_high_s);
    nd_csv_writer_double(csv, option->tokens_per_s);
    nd_csv_writer_double(csv, option->mfu_frac);
    nd_csv_writer_end_row(csv);
}

void nd_csv_mixed(FILE *stream, const nd_mixed_cluster *cluster, const nd_mixed_plan *plan)
{
    static const char *const titles[] = {"rank",   "way",        "label",       "layout",         "stage_layers",
                                         "gpus",   "idle_gpus",  "peak_bytes",  "capacity_bytes", "verdict",
                                         "step_s", "step_low_s", "step_high_s", "tokens_per_s",   "mfu_frac"};
    int32_t order[ND_MIXED_OPTIONS_MAX];
    int32_t count = nd_mixed_rank(plan, order);
    nd_csv_writer csv = {stream, false};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        nd_csv_writer_text(&csv, titles[i]);
    }
    nd_csv_writer_end_row(&csv);
    for (int32_t i = 0; i < count; i++) {
        if (plan->options[order[i]].found) {
            csv_row(&csv, cluster, &plan->options[order[i]], i + 1);
        }
    }
}
