#include "program/block.h"

#include <assert.h>

#include "program/block_internal.h"

static const char *const collective_names[ND_COLLECTIVE_COUNT] = {
    [ND_ALL_REDUCE] = "all_reduce", [ND_ALL_GATHER] = "all_gather", [ND_REDUCE_SCATTER] = "reduce_scatter",
    [ND_ALL_TO_ALL] = "all_to_all", [ND_SEND_RECV] = "send_recv",
};

static const char *const op_kind_names[ND_OP_KIND_COUNT] = {
    [ND_OP_GEMM] = "gemm",
    [ND_OP_ATTENTION] = "attention",
    [ND_OP_ELEMENTWISE] = "elementwise",
    [ND_OP_COLLECTIVE] = "collective",
};

/* Whether this pass runs an op of the forward pass (again): forward always, recompute by mode. */
static bool runs_forward_ops(const nd_block_builder *builder)
{
    return builder->pass == ND_PASS_FORWARD ||
           (builder->pass == ND_PASS_RECOMPUTE && builder->recompute == ND_RECOMPUTE_FULL);
}

static bool runs_per_op_recompute(const nd_block_builder *builder)
{
    return builder->pass == ND_PASS_RECOMPUTE && builder->recompute == ND_RECOMPUTE_SELECTIVE &&
           builder->style->selective_is_per_op;
}

static nd_op *append(nd_block_builder *builder, nd_op_kind kind, const char *name)
{
    nd_op_list *list = builder->list;
    assert(list->count < ND_BLOCK_OPS_MAX);
    nd_op *op = &list->ops[list->count++];
    *op = (nd_op){.kind = kind, .name = name, .groups = 1, .repeats = 1};
    return op;
}

static void append_gemm(nd_block_builder *builder, const nd_matrix *matrix, int64_t m, int64_t n, int64_t k,
                        bool weight_gradient)
{
    double bytes = builder->element_bytes;
    double groups = (double)matrix->groups;
    bool accumulate = weight_gradient && builder->style->accumulate_wgrad_fp32;
    nd_op *op = append(builder, ND_OP_GEMM, matrix->name);
    op->m = m;
    op->n = n;
    op->k = k;
    op->groups = matrix->groups;
    op->fp8 = matrix->fp8;
    op->accumulate_fp32 = accumulate;
    op->kernels = 1;
    op->flops = 2.0 * (double)m * (double)n * (double)k * groups;
    if (matrix->fp8 && !weight_gradient) {
        /* the weight gradient uses the input that the forward GEMM and the gradient that the data gradient cast, and
         * the data gradient the weights of the forward pass, each in a transposed copy written by the same cast */
        op->cast_activations = groups * (double)m * (double)k;
        op->cast_weights = builder->pass == ND_PASS_FORWARD ? groups * (double)k * (double)n : 0.0;
    }
    /* an fp32 accumulator is read and written */
    op->hbm_bytes = groups * ((accumulate ? 8.0 : bytes) * (double)m * (double)n +
                              bytes * ((double)m * (double)k + (double)k * (double)n));
}

/* LoRA: x A B beside the frozen matrix; both factors train. */
static void append_adapter(nd_block_builder *builder, const nd_matrix *matrix)
{
    int64_t rank = builder->train->lora_rank;
    nd_matrix adapter = *matrix;
    adapter.fp8 = false;
    adapter.name = "lora";
    if (builder->pass == ND_PASS_BACKWARD) {
        append_gemm(builder, &adapter, matrix->rows, rank, matrix->out, false);
        append_gemm(builder, &adapter, rank, matrix->out, matrix->rows, true);
        append_gemm(builder, &adapter, matrix->rows, matrix->in, rank, false);
        append_gemm(builder, &adapter, matrix->in, rank, matrix->rows, true);
    } else {
        append_gemm(builder, &adapter, matrix->rows, rank, matrix->in, false);
        append_gemm(builder, &adapter, matrix->rows, matrix->out, rank, false);
    }
}

/* A quantised frozen weight is expanded to the compute precision before every use. */
static void append_dequantise(nd_block_builder *builder, const nd_matrix *matrix)
{
    double weights = (double)matrix->groups * (double)matrix->out * (double)matrix->in;
    double stored_bytes = (double)builder->train->base_bits / 8.0;
    nd_builder_elementwise(builder, "dequantise", weights * (stored_bytes + builder->element_bytes), 1);
}

void nd_builder_matrix(nd_block_builder *builder, const nd_matrix *matrix)
{
    bool frozen = builder->train->lora_rank > 0;
    bool adapted = frozen && !matrix->frozen_adapter;
    bool quantised = frozen && builder->train->base_bits < 16;
    int64_t rows = matrix->rows;
    if (builder->pass == ND_PASS_BACKWARD) {
        if (quantised) {
            append_dequantise(builder, matrix);
        }
        append_gemm(builder, matrix, rows, matrix->in, matrix->out, false);
        if (!frozen) {
            append_gemm(builder, matrix, matrix->out, matrix->in, rows, true);
        }
    } else if (runs_forward_ops(builder)) {
        if (quantised) {
            append_dequantise(builder, matrix);
        }
        append_gemm(builder, matrix, rows, matrix->out, matrix->in, false);
    } else if (runs_per_op_recompute(builder) && matrix->per_op_recompute_frac > 0.0) {
        int64_t out = (int64_t)((double)matrix->out * matrix->per_op_recompute_frac);
        append_gemm(builder, matrix, rows, out > 0 ? out : 1, matrix->in, false);
        return;
    } else {
        return;
    }
    if (adapted) {
        append_adapter(builder, matrix);
    }
}

void nd_builder_elementwise(nd_block_builder *builder, const char *name, double bytes, int32_t kernels)
{
    if (builder->pass != ND_PASS_BACKWARD && !runs_forward_ops(builder) && !runs_per_op_recompute(builder)) {
        return;
    }
    nd_op *op = append(builder, ND_OP_ELEMENTWISE, name);
    op->hbm_bytes = bytes;
    op->kernels = kernels;
}

nd_op *nd_builder_collective(nd_block_builder *builder, const char *name, nd_collective collective, nd_group_kind group,
                             double bytes)
{
    nd_op *op = append(builder, ND_OP_COLLECTIVE, name);
    op->collective = collective;
    op->group = group;
    op->bytes = bytes;
    return op;
}

/* Bytes of one sequence-parallel gather of the residual stream. */
static double gather_bytes(const nd_block_builder *builder)
{
    bool fp8 = builder->style->gathers_fp8 && builder->train->precision == ND_DTYPE_FP8;
    return (double)builder->tokens * (double)builder->model->hidden * (fp8 ? 1.0 : builder->element_bytes);
}

void nd_builder_tp_enter(nd_block_builder *builder)
{
    if (builder->tp == 1) {
        return;
    }
    double bytes = (double)builder->tokens * (double)builder->model->hidden * builder->element_bytes;
    bool sp = builder->residual_split > 1;
    if (builder->pass == ND_PASS_BACKWARD) {
        nd_builder_collective(builder, sp ? "tp reduce-scatter" : "tp all-reduce",
                              sp ? ND_REDUCE_SCATTER : ND_ALL_REDUCE, ND_GROUP_TP, bytes);
        if (sp && builder->style->gathers_sp_in_backward) {
            /* the saved shard is gathered again for the weight gradient, behind the data gradient's GEMM */
            nd_op *op = nd_builder_collective(builder, "tp all-gather (saved input)", ND_ALL_GATHER, ND_GROUP_TP,
                                              gather_bytes(builder));
            op->overlap_frac = 0.5;
        }
    } else if (sp && runs_forward_ops(builder)) {
        nd_builder_collective(builder, "tp all-gather", ND_ALL_GATHER, ND_GROUP_TP, gather_bytes(builder));
    }
}

void nd_builder_tp_leave(nd_block_builder *builder)
{
    if (builder->tp == 1) {
        return;
    }
    double bytes = (double)builder->tokens * (double)builder->model->hidden * builder->element_bytes;
    bool sp = builder->residual_split > 1;
    if (builder->pass == ND_PASS_BACKWARD) {
        if (sp) {
            nd_builder_collective(builder, "tp all-gather", ND_ALL_GATHER, ND_GROUP_TP, gather_bytes(builder));
        }
    } else if (runs_forward_ops(builder)) {
        nd_builder_collective(builder, sp ? "tp reduce-scatter" : "tp all-reduce",
                              sp ? ND_REDUCE_SCATTER : ND_ALL_REDUCE, ND_GROUP_TP, bytes);
    }
}

double nd_builder_input_bytes(const nd_block_builder *builder)
{
    bool fp8 = builder->style->fp8_saved_inputs && builder->train->precision == ND_DTYPE_FP8;
    return fp8 ? 1.0 : builder->element_bytes;
}

void nd_builder_keep(nd_block_builder *builder, double bytes, double selective_frac)
{
    if (builder->pass != ND_PASS_FORWARD || builder->list->count == 0 || builder->recompute == ND_RECOMPUTE_FULL) {
        return;
    }
    bool per_op = builder->recompute == ND_RECOMPUTE_SELECTIVE && builder->style->selective_is_per_op;
    builder->list->ops[builder->list->count - 1].saved_bytes += bytes * (per_op ? selective_frac : 1.0);
}

static nd_block_builder start(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                              const nd_block_style *style, int32_t layer_kind, nd_pass pass, nd_op_list *list)
{
    int64_t tp = layout->size[ND_AXIS_TP];
    list->count = 0;
    return (nd_block_builder){
        .model = model,
        .layout = layout,
        .train = train,
        .style = style,
        .pass = pass,
        .layer_kind = layer_kind,
        .list = list,
        .tokens = (int64_t)nd_block_tokens(layout, train),
        .tp = tp,
        .residual_split = layout->sequence_parallel ? tp : 1,
        .element_bytes = (double)nd_dtype_compute_bytes(train->precision),
        .recompute = layout->recompute == ND_RECOMPUTE_EVERY ? ND_RECOMPUTE_FULL : layout->recompute,
    };
}

/* A fully recomputed layer keeps its input only. */
static void keep_layer_input(nd_block_builder *builder)
{
    if (builder->pass == ND_PASS_FORWARD && builder->recompute == ND_RECOMPUTE_FULL) {
        double elements = (double)builder->tokens * (double)builder->model->hidden;
        builder->list->ops[0].saved_bytes = builder->element_bytes * elements / (double)builder->residual_split;
    }
}

void nd_block_ops(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                  const nd_block_style *style, nd_part_kind part, int32_t layer_kind, nd_pass pass, nd_op_list *out)
{
    nd_block_builder builder = start(model, layout, train, style, layer_kind, pass, out);
    switch (part) {
    case ND_PART_EMBEDDING:
        nd_builder_embedding(&builder);
        break;
    case ND_PART_LAYER:
        nd_builder_attention(&builder);
        nd_builder_ffn(&builder);
        keep_layer_input(&builder);
        break;
    case ND_PART_HEAD:
        nd_builder_head(&builder);
        break;
    }
}

double nd_block_saved_bytes(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            const nd_block_style *style, int32_t layer_kind, nd_recompute recompute)
{
    nd_layout this_layer = *layout;
    this_layer.recompute = recompute;
    nd_op_list list;
    nd_block_ops(model, &this_layer, train, style, ND_PART_LAYER, layer_kind, ND_PASS_FORWARD, &list);
    double bytes = 0.0;
    for (int32_t i = 0; i < list.count; i++) {
        bytes += list.ops[i].saved_bytes;
    }
    return bytes;
}

double nd_block_tokens(const nd_layout *layout, const nd_train_spec *train)
{
    return (double)layout->micro_batch * (double)train->seq_len_tokens / (double)layout->size[ND_AXIS_CP];
}

int64_t nd_block_heads(const nd_model_spec *model, const nd_layout *layout)
{
    int64_t heads = model->heads / layout->size[ND_AXIS_TP];
    return heads > 0 ? heads : 1;
}

int64_t nd_block_kv_heads(const nd_model_spec *model, const nd_layout *layout)
{
    int64_t heads = model->kv_heads / layout->size[ND_AXIS_TP];
    return heads > 0 ? heads : 1;
}

int32_t nd_expert_tp(const nd_layout *layout)
{
    return layout->ep > 1 ? 1 : layout->size[ND_AXIS_TP];
}

const char *nd_collective_name(nd_collective collective)
{
    assert(collective < ND_COLLECTIVE_COUNT);
    return collective_names[collective];
}

const char *nd_op_kind_name(nd_op_kind kind)
{
    assert(kind < ND_OP_KIND_COUNT);
    return op_kind_names[kind];
}
