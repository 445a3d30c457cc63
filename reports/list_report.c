#include "reports/list_report.h"

#include "core/json_writer.h"
#include "cost_model/stack.h"
#include "frameworks/framework.h"
#include "models/model_spec.h"
#include "reports/csv_report.h"
#include "reports/format.h"
#include "topologies/cluster_spec.h"

/* One built-in; only the members of the kind at hand are set. */
typedef struct list_row {
    nd_model_spec model;
    nd_param_counts params;
    nd_gpu_spec gpu;
    nd_cluster_spec cluster;
    nd_stack stack;
    const nd_framework *framework;
} list_row;

typedef struct list_value {
    const char *text; /* NULL: a number */
    int64_t count;
    double real;
} list_value;

/* Type of a field, and how a table shows it. */
typedef enum show {
    SHOW_TEXT,
    SHOW_COUNT,
    SHOW_PARAMS,
    SHOW_GIB,
    SHOW_TFLOPS,
    SHOW_GB_PER_S,
    HIDE_TEXT, /* JSON and CSV only */
    HIDE_COUNT
} show;

typedef struct list_field {
    const char *key;
    show show;
    nd_column column;
    list_value (*get)(const list_row *row);
} list_field;

#define FIELD(name, member, expression)                                                                                \
    static list_value name(const list_row *row)                                                                        \
    {                                                                                                                  \
        return (list_value){.member = (expression)};                                                                   \
    }
FIELD(model_name, text, row->model.name)
FIELD(model_family, text, row->model.family)
FIELD(model_params, count, row->params.total)
FIELD(model_active, count, row->params.active)
FIELD(model_layers, count, row->model.layers)
FIELD(model_hidden, count, row->model.hidden)
FIELD(model_heads, count, row->model.heads)
FIELD(model_kv_heads, count, row->model.kv_heads)
FIELD(model_experts, count, row->model.experts)
FIELD(model_seq_len, count, row->model.max_seq_len_tokens)
FIELD(model_vocab, count, row->model.vocab)
FIELD(model_note, text, row->model.note)
FIELD(gpu_name, text, row->gpu.name)
FIELD(gpu_title, text, row->gpu.title)
FIELD(gpu_arch, text, row->gpu.arch)
FIELD(gpu_memory, count, row->gpu.memory_bytes)
FIELD(gpu_bf16, real, row->gpu.peak_flops_per_s[ND_DTYPE_BF16])
FIELD(gpu_fp16, real, row->gpu.peak_flops_per_s[ND_DTYPE_FP16])
FIELD(gpu_fp8, real, row->gpu.peak_flops_per_s[ND_DTYPE_FP8])
FIELD(gpu_hbm, real, row->gpu.hbm_bytes_per_s)
FIELD(gpu_nvlink, real, row->gpu.nvlink_bytes_per_s)
FIELD(gpu_source, text, row->gpu.source)
FIELD(cluster_name, text, row->cluster.name)
FIELD(cluster_gpu, text, row->cluster.gpu.name)
FIELD(cluster_gpus, count, row->cluster.gpus_per_node)
FIELD(cluster_nvlink, count, row->cluster.nvlink_domain)
FIELD(cluster_network, text, row->cluster.network)
FIELD(cluster_nic, real, row->cluster.nic_bytes_per_s)
FIELD(cluster_host, count, row->cluster.host_memory_bytes)
FIELD(cluster_source, text, row->cluster.source)
FIELD(framework_name, text, row->framework->name)
FIELD(framework_version, text, row->framework->version)
FIELD(framework_stack, text, row->framework->stack)
FIELD(framework_title, text, row->framework->title)
FIELD(framework_source, text, row->framework->source)
FIELD(stack_name, text, row->stack.name)
FIELD(stack_title, text, row->stack.title)
FIELD(stack_sharding, text, nd_sharding_name(row->stack.default_sharding))
FIELD(stack_ep, text, row->stack.expert_parallel ? "yes" : "no")
FIELD(stack_source, text, row->stack.source)
#define STACK_AXIS(name, which) FIELD(name, text, row->stack.axis[which] ? "yes" : "no")
STACK_AXIS(stack_pp, ND_AXIS_PP)
STACK_AXIS(stack_dp_replicate, ND_AXIS_DP_REPLICATE)
STACK_AXIS(stack_dp_shard, ND_AXIS_DP_SHARD)
STACK_AXIS(stack_cp, ND_AXIS_CP)
STACK_AXIS(stack_tp, ND_AXIS_TP)

#define LEFT  ND_ALIGN_LEFT
#define RIGHT ND_ALIGN_RIGHT
#define HIDDEN                                                                                                         \
    {                                                                                                                  \
        NULL, NULL, ND_ALIGN_LEFT, 0, false                                                                            \
    }
static const list_field model_fields[] = {
    {"name", SHOW_TEXT, {"model", NULL, LEFT, 0, 0}, model_name},
    {"params_count", SHOW_PARAMS, {"params", NULL, RIGHT, 0, 0}, model_params},
    {"active_params_count", SHOW_PARAMS, {"active", NULL, RIGHT, 3, 0}, model_active},
    {"layers", SHOW_COUNT, {"layers", NULL, RIGHT, 0, 0}, model_layers},
    {"hidden", SHOW_COUNT, {"hidden", NULL, RIGHT, 2, 0}, model_hidden},
    {"heads", SHOW_COUNT, {"heads", NULL, RIGHT, 0, 0}, model_heads},
    {"kv_heads", SHOW_COUNT, {"kv", "heads", RIGHT, 1, 0}, model_kv_heads},
    {"experts", SHOW_COUNT, {"experts", NULL, RIGHT, 4, 0}, model_experts},
    {"max_seq_len_tokens", SHOW_COUNT, {"sequence", "max", RIGHT, 0, 0}, model_seq_len},
    {"vocab", HIDE_COUNT, HIDDEN, model_vocab},
    {"family", HIDE_TEXT, HIDDEN, model_family},
    {"note", HIDE_TEXT, HIDDEN, model_note},
};
static const list_field gpu_fields[] = {
    {"name", SHOW_TEXT, {"gpu", NULL, LEFT, 0, 0}, gpu_name},
    {"title", SHOW_TEXT, {"full name", NULL, LEFT, 0, 24}, gpu_title},
    {"memory_bytes", SHOW_GIB, {"memory", "GiB", RIGHT, 0, 0}, gpu_memory},
    {"bf16_flops_per_s", SHOW_TFLOPS, {"bf16", "TFLOP/s", RIGHT, 0, 0}, gpu_bf16},
    {"fp16_flops_per_s", SHOW_TFLOPS, {"fp16", "TFLOP/s", RIGHT, 3, 0}, gpu_fp16},
    {"fp8_flops_per_s", SHOW_TFLOPS, {"fp8", "TFLOP/s", RIGHT, 2, 0}, gpu_fp8},
    {"hbm_bytes_per_s", SHOW_GB_PER_S, {"memory", "GB/s", RIGHT, 0, 0}, gpu_hbm},
    {"nvlink_bytes_per_s", SHOW_GB_PER_S, {"nvlink", "GB/s", RIGHT, 1, 0}, gpu_nvlink},
    {"arch", HIDE_TEXT, HIDDEN, gpu_arch},
    {"source", HIDE_TEXT, HIDDEN, gpu_source},
};
static const list_field cluster_fields[] = {
    {"name", SHOW_TEXT, {"cluster", NULL, LEFT, 0, 0}, cluster_name},
    {"gpu", SHOW_TEXT, {"gpu", NULL, LEFT, 0, 0}, cluster_gpu},
    {"gpus_per_node", SHOW_COUNT, {"GPUs", "a node", RIGHT, 0, 0}, cluster_gpus},
    {"nvlink_domain", SHOW_COUNT, {"NVLink", "domain", RIGHT, 2, 0}, cluster_nvlink},
    {"network", SHOW_TEXT, {"network", NULL, LEFT, 1, 0}, cluster_network},
    {"nic_bytes_per_s", SHOW_GB_PER_S, {"a node", "GB/s", RIGHT, 0, 0}, cluster_nic},
    {"host_memory_bytes", SHOW_GIB, {"host", "GiB", RIGHT, 3, 0}, cluster_host},
    {"source", HIDE_TEXT, HIDDEN, cluster_source},
};
static const list_field framework_fields[] = {
    {"name", SHOW_TEXT, {"framework", NULL, LEFT, 0, 0}, framework_name},
    {"version", SHOW_TEXT, {"version", NULL, LEFT, 0, 0}, framework_version},
    {"stack", SHOW_TEXT, {"stack", NULL, LEFT, 0, 0}, framework_stack},
    {"title", SHOW_TEXT, {"full name", NULL, LEFT, 0, 24}, framework_title},
    {"source", HIDE_TEXT, HIDDEN, framework_source},
};
static const list_field stack_fields[] = {
    {"name", SHOW_TEXT, {"stack", NULL, LEFT, 0, 0}, stack_name},
    {"pp", SHOW_TEXT, {"pp", NULL, LEFT, 0, 0}, stack_pp},
    {"dp_replicate", SHOW_TEXT, {"dp", "repl", LEFT, 0, 0}, stack_dp_replicate},
    {"dp_shard", SHOW_TEXT, {"dp", "shard", LEFT, 0, 0}, stack_dp_shard},
    {"cp", SHOW_TEXT, {"cp", NULL, LEFT, 0, 0}, stack_cp},
    {"tp", SHOW_TEXT, {"tp", NULL, LEFT, 0, 0}, stack_tp},
    {"ep", SHOW_TEXT, {"ep", NULL, LEFT, 0, 0}, stack_ep},
    {"default_sharding", SHOW_TEXT, {"sharding", NULL, LEFT, 1, 0}, stack_sharding},
    {"title", SHOW_TEXT, {"full name", NULL, LEFT, 0, 24}, stack_title},
    {"source", HIDE_TEXT, HIDDEN, stack_source},
};

static nd_status load_model(size_t index, list_row *row, nd_error *err)
{
    ND_TRY(nd_model_load(nd_model_builtin_name(index), false, &row->model, err));
    row->params = nd_model_params(&row->model);
    return ND_OK;
}

static nd_status load_gpu(size_t index, list_row *row, nd_error *err)
{
    return nd_gpu_find(nd_gpu_builtin_name(index), &row->gpu, err);
}

static nd_status load_cluster(size_t index, list_row *row, nd_error *err)
{
    return nd_cluster_load(nd_cluster_builtin_name(index), &row->cluster, err);
}

static nd_status load_framework(size_t index, list_row *row, nd_error *err)
{
    (void)err;
    row->framework = nd_framework_at(index);
    return ND_OK;
}

static nd_status load_stack(size_t index, list_row *row, nd_error *err)
{
    return nd_stack_find(nd_stack_builtin_name(index), &row->stack, err);
}

typedef struct list_source {
    const char *name;
    const list_field *fields;
    int32_t fields_count;
    size_t (*count)(void);
    nd_status (*load)(size_t index, list_row *row, nd_error *err);
} list_source;

#define FIELDS(array) array, (int32_t)(sizeof(array) / sizeof(array)[0])
static const list_source sources[ND_LIST_KIND_COUNT] = {
    [ND_LIST_MODELS] = {"models", FIELDS(model_fields), nd_model_builtin_count, load_model},
    [ND_LIST_GPUS] = {"gpus", FIELDS(gpu_fields), nd_gpu_builtin_count, load_gpu},
    [ND_LIST_CLUSTERS] = {"clusters", FIELDS(cluster_fields), nd_cluster_builtin_count, load_cluster},
    [ND_LIST_FRAMEWORKS] = {"frameworks", FIELDS(framework_fields), nd_framework_count, load_framework},
    [ND_LIST_STACKS] = {"stacks", FIELDS(stack_fields), nd_stack_builtin_count, load_stack},
};

const char *nd_list_kind_name(nd_list_kind kind)
{
    return sources[kind].name;
}

static bool is_text(const list_field *field)
{
    return field->show == SHOW_TEXT || field->show == HIDE_TEXT;
}

static bool is_count(const list_field *field)
{
    return field->show == SHOW_COUNT || field->show == SHOW_PARAMS || field->show == SHOW_GIB ||
           field->show == HIDE_COUNT;
}

static nd_text show_number(const list_field *field, const list_value *value)
{
    if (value->count == 0 && value->real == 0.0) {
        return (nd_text){"-"}; /* none or unknown */
    }
    switch (field->show) {
    case SHOW_PARAMS:
        return nd_format_params(value->count);
    case SHOW_GIB:
        return nd_format_gib((double)value->count);
    case SHOW_TFLOPS:
        return nd_format_tflops(value->real);
    case SHOW_GB_PER_S:
        return nd_format_gb_per_s(value->real);
    case SHOW_TEXT:
    case SHOW_COUNT:
    case HIDE_TEXT:
    case HIDE_COUNT:
        break;
    }
    return nd_format_count(value->count);
}

static void add_row(nd_table *table, const list_source *source, const list_row *row)
{
    for (int32_t f = 0; f < source->fields_count; f++) {
        const list_field *field = &source->fields[f];
        if (field->column.title == NULL) {
            continue;
        }
        list_value value = field->get(row);
        nd_table_add(table, value.text != NULL ? value.text : show_number(field, &value).text);
    }
}

static nd_status print_text(FILE *stream, const list_source *source, const nd_report_style *style, nd_error *err)
{
    nd_column columns[ND_TABLE_COLUMNS_MAX];
    int32_t count = 0;
    for (int32_t f = 0; f < source->fields_count; f++) {
        if (source->fields[f].column.title != NULL) {
            columns[count++] = source->fields[f].column;
        }
    }
    nd_table *table = nd_table_create(columns, count);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the list");
    }
    nd_status status = ND_OK;
    for (size_t i = 0; i < source->count() && status == ND_OK; i++) {
        list_row row = {0};
        status = source->load(i, &row, err);
        if (status == ND_OK) {
            add_row(table, source, &row);
        }
    }
    if (status == ND_OK) {
        status = nd_table_print(table, stream, style, 0, err);
    }
    nd_table_free(table);
    return status;
}

static void put_field(nd_json_writer *json, const list_field *field, const list_row *row)
{
    list_value value = field->get(row);
    if (is_text(field)) {
        nd_json_put_string(json, field->key, value.text);
    } else if (is_count(field)) {
        nd_json_put_int(json, field->key, value.count);
    } else {
        nd_json_put_double(json, field->key, value.real);
    }
}

static nd_status print_json(FILE *stream, const list_source *source, nd_error *err)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", "ndplan/list/1");
    nd_json_put_string(&json, "kind", source->name);
    nd_json_key(&json, "items");
    nd_json_begin_array(&json);
    for (size_t i = 0; i < source->count(); i++) {
        list_row row = {0};
        ND_TRY(source->load(i, &row, err));
        nd_json_begin_object(&json);
        for (int32_t f = 0; f < source->fields_count; f++) {
            put_field(&json, &source->fields[f], &row);
        }
        nd_json_end_object(&json);
    }
    nd_json_end_array(&json);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
    return ND_OK;
}

static nd_status print_csv(FILE *stream, const list_source *source, nd_error *err)
{
    nd_csv_writer csv = {stream, false};
    for (int32_t f = 0; f < source->fields_count; f++) {
        nd_csv_writer_text(&csv, source->fields[f].key);
    }
    nd_csv_writer_end_row(&csv);
    for (size_t i = 0; i < source->count(); i++) {
        list_row row = {0};
        ND_TRY(source->load(i, &row, err));
        for (int32_t f = 0; f < source->fields_count; f++) {
            list_value value = source->fields[f].get(&row);
            if (is_text(&source->fields[f])) {
                nd_csv_writer_text(&csv, value.text);
            } else if (is_count(&source->fields[f])) {
                nd_csv_writer_int(&csv, value.count);
            } else {
                nd_csv_writer_double(&csv, value.real);
            }
        }
        nd_csv_writer_end_row(&csv);
    }
    return ND_OK;
}

nd_status nd_report_list(FILE *stream, nd_list_kind kind, nd_report_format format, const nd_report_style *style,
                         nd_error *err)
{
    const list_source *source = &sources[kind];
    switch (format) {
    case ND_REPORT_JSON:
        return print_json(stream, source, err);
    case ND_REPORT_CSV:
        return print_csv(stream, source, err);
    case ND_REPORT_TEXT:
        break;
    }
    return print_text(stream, source, style, err);
}
