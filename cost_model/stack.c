#include "cost_model/stack.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/resource.h"
#include "core/text.h"
#include "core/units.h"

extern const nd_resource nd_stack_resources[];

enum { STACKS_MAX = 32 };

typedef const char *(*name_function)(int index);

static const char *sharding_name(int index)
{
    return nd_sharding_name((nd_sharding)index);
}

static const char *recompute_name(int index)
{
    return nd_recompute_name((nd_recompute)index);
}

static const char *cp_method_name(int index)
{
    return nd_cp_method_name((nd_cp_method)index);
}

static const char *schedule_name(int index)
{
    return nd_schedule_name((nd_schedule)index);
}

static const char *split_name(int index)
{
    return nd_split_name((nd_split)index);
}

static const char *axis_name(int index)
{
    return nd_axis_name((nd_axis)index);
}

/* Position of `text` among `count` names, or -1. */
static int index_of(const char *text, name_function name, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, name(i)) == 0) {
            return i;
        }
    }
    return -1;
}

/* An array of names becomes a bit set. */
static nd_status read_set(nd_json object, const char *key, name_function name, int count, uint32_t *out, nd_error *err)
{
    nd_json array;
    uint32_t set = 0;
    ND_TRY(nd_json_need(object, key, &array, err));
    for (size_t i = 0; i < nd_json_size(array); i++) {
        const char *text = NULL;
        nd_json item = nd_json_at(array, i);
        ND_TRY(nd_json_as_string(item, key, &text, err));
        int index = index_of(text, name, count);
        if (index < 0) {
            return nd_json_fail(item, err, "'%s' names no %s", text, key);
        }
        set |= 1u << index;
    }
    *out = set;
    return ND_OK;
}

static nd_status read_abilities(nd_json root, nd_stack *stack, nd_error *err)
{
    uint32_t axes = 0;
    const char *text = NULL;
    ND_TRY(read_set(root, "axes", axis_name, ND_AXIS_COUNT, &axes, err));
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        stack->axis[axis] = (axes >> axis & 1u) != 0;
    }
    ND_TRY(read_set(root, "shardings", sharding_name, ND_SHARDING_COUNT, &stack->shardings, err));
    ND_TRY(read_set(root, "recomputes", recompute_name, ND_RECOMPUTE_COUNT, &stack->recomputes, err));
    ND_TRY(read_set(root, "cp_methods", cp_method_name, ND_CP_METHOD_COUNT, &stack->cp_methods, err));
    ND_TRY(read_set(root, "schedules", schedule_name, ND_SCHEDULE_COUNT, &stack->schedules, err));
    nd_json ignored;
    stack->splits = 1u << ND_SPLIT_EVEN;
    if (nd_json_find(root, "splits", &ignored)) {
        ND_TRY(read_set(root, "splits", split_name, ND_SPLIT_COUNT, &stack->splits, err));
    }
    ND_TRY(nd_json_opt_bool(root, "expert_parallel", &stack->expert_parallel, err));
    ND_TRY(nd_json_opt_bool(root, "tp_implies_sp", &stack->tp_implies_sp, err));
    ND_TRY(nd_json_opt_bool(root, "tp_without_sp", &stack->tp_without_sp, err));
    stack->tp_usually_sp = stack->tp_implies_sp;
    ND_TRY(nd_json_opt_bool(root, "tp_usually_sp", &stack->tp_usually_sp, err));
    ND_TRY(nd_json_need_string(root, "default_sharding", &text, err));
    int sharding = index_of(text, sharding_name, ND_SHARDING_COUNT);
    if (sharding < 0) {
        return nd_json_fail(root, err, "default_sharding '%s' is unknown", text);
    }
    stack->default_sharding = (nd_sharding)sharding;
    ND_TRY(nd_json_need_string(root, "default_attention", &text, err));
    return nd_attention_parse(text, &stack->default_attention, err);
}

/* A figure is an object {"value": 4.0, "source": "..."}. */
static nd_status read_figure(nd_json root, const char *key, double min, double max, double *out, nd_error *err)
{
    nd_json figure;
    ND_TRY(nd_json_need(root, key, &figure, err));
    return nd_json_need_double(figure, "value", min, max, out, err);
}

/* The same, but the figure may be absent: *out keeps its value. */
static nd_status read_optional_figure(nd_json root, const char *key, double min, double max, double *out, nd_error *err)
{
    nd_json ignored;
    return nd_json_find(root, key, &ignored) ? read_figure(root, key, min, max, out, err) : ND_OK;
}

static nd_status read_time_figures(nd_json root, nd_stack *stack, nd_error *err)
{
    nd_block_style *style = &stack->style;
    ND_TRY(nd_json_opt_bool(root, "fused_elementwise", &style->fused_elementwise, err));
    ND_TRY(nd_json_opt_bool(root, "accumulate_wgrad_fp32", &style->accumulate_wgrad_fp32, err));
    ND_TRY(nd_json_opt_bool(root, "selective_is_per_op", &style->selective_is_per_op, err));
    ND_TRY(nd_json_opt_bool(root, "gathers_sp_in_backward", &style->gathers_sp_in_backward, err));
    ND_TRY(nd_json_opt_bool(root, "gathers_fp8", &style->gathers_fp8, err));
    ND_TRY(nd_json_opt_bool(root, "ep_deduplicates", &stack->ep_deduplicates, err));
    ND_TRY(nd_json_opt_bool(root, "overlaps_dp", &stack->overlaps_dp, err));
    ND_TRY(nd_json_opt_bool(root, "overlaps_pp", &stack->overlaps_pp, err));
    ND_TRY(read_figure(root, "gemm_frac", 0.1, 2.0, &stack->gemm_frac, err));
    stack->fp8_frac = 1.0;
    ND_TRY(read_optional_figure(root, "fp8_frac", 0.1, 2.0, &stack->fp8_frac, err));
    ND_TRY(read_figure(root, "attention_frac", 0.1, 2.0, &stack->attention_frac, err));
    ND_TRY(read_figure(root, "logit_bytes", 0.0, 64.0, &style->logit_bytes, err));
    ND_TRY(read_figure(root, "loss_traffic_bytes", 0.0, 256.0, &style->loss_traffic_bytes, err));
    ND_TRY(read_figure(root, "loss_chunks", 1.0, 4096.0, &style->loss_chunks, err));
    ND_TRY(read_figure(root, "grad_reduce_bytes", 1.0, 8.0, &stack->grad_reduce_bytes, err));
    ND_TRY(read_figure(root, "tp_overlap_frac", 0.0, 1.0, &stack->tp_overlap_frac, err));
    ND_TRY(read_figure(root, "optimizer_traffic_bytes", 1.0, 256.0, &stack->optimizer_traffic_bytes, err));
    ND_TRY(read_optional_figure(root, "send_host_s", 0.0, 1.0, &stack->send_host_s, err));
    ND_TRY(read_optional_figure(root, "accumulate_bytes", 0.0, 64.0, &stack->accumulate_bytes, err));
    ND_TRY(read_figure(root, "host_s", 0.0, 10.0, &stack->host_s, err));
    return read_figure(root, "launch_s", 0.0, 1e-3, &stack->launch_s, err);
}

static nd_status read_memory_figures(nd_json root, nd_stack *stack, nd_error *err)
{
    bool full = false;
    ND_TRY(nd_json_opt_bool(root, "fsdp", &stack->fsdp, err));
    ND_TRY(nd_json_opt_bool(root, "dummy_wgrad", &stack->dummy_wgrad, err));
    ND_TRY(nd_json_opt_bool(root, "fp8_saved_inputs", &stack->style.fp8_saved_inputs, err));
    ND_TRY(nd_json_opt_bool(root, "load_full_model", &full, err));
    stack->load_full_model = full ? 1.0 : 0.0;
    ND_TRY(read_figure(root, "master_bytes", 0.0, 8.0, &stack->master_bytes, err));
    ND_TRY(read_figure(root, "weight_bytes", 1.0, 8.0, &stack->weight_bytes, err));
    ND_TRY(read_figure(root, "grad_bytes", 1.0, 8.0, &stack->grad_bytes, err));
    stack->bf16_grad_bytes = stack->grad_bytes;
    ND_TRY(read_optional_figure(root, "bf16_grad_bytes", 1.0, 16.0, &stack->bf16_grad_bytes, err));
    ND_TRY(read_optional_figure(root, "fragmentation_frac", 0.0, 1.0, &stack->fragmentation_frac, err));
    ND_TRY(read_figure(root, "gathered_layers", 0.0, 16.0, &stack->gathered_layers, err));
    ND_TRY(read_optional_figure(root, "optimizer_group_params", 0.0, 1e12, &stack->optimizer_group_params, err));
    ND_TRY(read_optional_figure(root, "live_params", 0.0, 1e12, &stack->live_params, err));
    ND_TRY(read_optional_figure(root, "bucket_bytes", 0.0, 16.0 * ND_GIB, &stack->bucket_bytes, err));
    ND_TRY(read_optional_figure(root, "spread_low_frac", 0.0, 1.0, &stack->spread_low_frac, err));
    ND_TRY(read_optional_figure(root, "spread_high_frac", 0.0, 4.0, &stack->spread_high_frac, err));
    ND_TRY(nd_json_opt_bool(root, "load_on_gpu", &stack->load_on_gpu, err));
    ND_TRY(read_optional_figure(root, "stage_buffers", 0.0, 16.0, &stack->stage_buffers, err));
    stack->logit_bytes_tp = stack->style.logit_bytes;
    ND_TRY(read_optional_figure(root, "logit_bytes_tp", 0.0, 64.0, &stack->logit_bytes_tp, err));
    ND_TRY(read_figure(root, "reserved_ratio", 1.0, 2.0, &stack->reserved_ratio, err));
    ND_TRY(read_figure(root, "context_bytes", 0.0, 16.0 * ND_GIB, &stack->context_bytes, err));
    ND_TRY(read_figure(root, "group_bytes", 0.0, 16.0 * ND_GIB, &stack->group_bytes, err));
    return read_figure(root, "optimizer_temp_bytes", 0.0, 64.0, &stack->optimizer_temp_bytes, err);
}

static nd_status read_stack(nd_json root, nd_stack *stack, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(root, "name", &text, err));
    (void)snprintf(stack->name, sizeof stack->name, "%s", text);
    ND_TRY(nd_json_need_string(root, "title", &text, err));
    (void)snprintf(stack->title, sizeof stack->title, "%s", text);
    ND_TRY(nd_json_need_string(root, "source", &text, err));
    (void)snprintf(stack->source, sizeof stack->source, "%s", text);
    ND_TRY(read_abilities(root, stack, err));
    ND_TRY(read_time_figures(root, stack, err));
    return read_memory_figures(root, stack, err);
}

nd_status nd_stack_find(const char *name, nd_stack *out, nd_error *err)
{
    const nd_resource *resource = nd_resource_find(nd_stack_resources, name);
    if (resource == NULL) {
        const char *names[STACKS_MAX];
        size_t count = nd_resource_count(nd_stack_resources);
        for (size_t i = 0; i < count && i < STACKS_MAX; i++) {
            names[i] = nd_stack_resources[i].name;
        }
        const char *nearest = nd_text_nearest(name, names, count < STACKS_MAX ? count : STACKS_MAX);
        return nd_fail(err, ND_ENOTFOUND, "no stack is called '%s'%s%s%s; see `ndplan list stacks`", name,
                       nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'" : "");
    }
    nd_json_doc *doc = NULL;
    nd_stack stack;
    memset(&stack, 0, sizeof stack);
    ND_TRY(nd_json_parse(resource->text, resource->length, resource->name, &doc, err));
    nd_status status = read_stack(nd_json_root(doc), &stack, err);
    nd_json_free(doc);
    if (status == ND_OK) {
        *out = stack;
    }
    return status;
}

double *nd_stack_constant(nd_stack *stack, const char *key)
{
    if (strcmp(key, "gemm_frac") == 0) {
        return &stack->gemm_frac;
    }
    if (strcmp(key, "attention_frac") == 0) {
        return &stack->attention_frac;
    }
    return strcmp(key, "launch_s") == 0 ? &stack->launch_s : NULL;
}

size_t nd_stack_builtin_count(void)
{
    return nd_resource_count(nd_stack_resources);
}

const char *nd_stack_builtin_name(size_t index)
{
    return nd_stack_resources[index].name;
}
