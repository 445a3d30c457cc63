/* One safetensors file from the shards of a checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/bf16.h"
#include "executor/checkpoint.h"
#include "executor/safetensors.h"

/* Families whose names differ from the parameter list's: the text after "model.layers.N.". */
static const struct {
    const char *family, *from, *to;
} renames[] = {
    {"mixtral", "mlp.gate.", "block_sparse_moe.gate."},
    {"mixtral", "mlp.experts.", "block_sparse_moe.experts."},
    {"mixtral", "gate_proj.", "w1."},
    {"mixtral", "down_proj.", "w2."},
    {"mixtral", "up_proj.", "w3."},
    {"qwen2_moe", "mlp.shared_experts.", "mlp.shared_expert."},
};

/* Families whose names and shapes in the file are those of Hugging Face. The others fuse or transpose matrices (gpt2,
 * phi3, gpt_neox, falcon, llama4, dbrx) or are unknown. */
static const char *const huggingface[] = {"llama",  "mistral",     "mixtral", "qwen2",     "qwen3",       "qwen2_moe",
                                          "gemma2", "gemma3_text", "gemma3",  "qwen3_moe", "deepseek_v2", "granite"};

static void replace(char *text, size_t capacity, const char *from, const char *to)
{
    char rest[ND_SAFETENSORS_NAME_MAX];
    char *at = strstr(text, from);
    if (at != NULL) {
        (void)snprintf(rest, sizeof rest, "%s", at + strlen(from));
        (void)snprintf(at, capacity - (size_t)(at - text), "%s%s", to, rest);
    }
}

static void name_tensor(const nd_model_spec *model, const nd_param *param, char out[ND_SAFETENSORS_NAME_MAX])
{
    (void)snprintf(out, ND_SAFETENSORS_NAME_MAX, "%s", param->name);
    for (size_t i = 0; i < sizeof renames / sizeof renames[0]; i++) {
        if (strcmp(model->family, renames[i].family) == 0) {
            replace(out, ND_SAFETENSORS_NAME_MAX, renames[i].from, renames[i].to);
        }
    }
}

static nd_safetensor tensor_of(const nd_model_spec *model, const nd_param *param, nd_elem type)
{
    bool matrix = param->decay; /* a gate of one row is a matrix too */
    nd_safetensor tensor = {.elem = type, .dims = matrix ? 2 : 1, .shape = {matrix ? param->rows : param->cols, 1}};
    tensor.shape[1] = matrix ? param->cols : 1;
    name_tensor(model, param, tensor.name);
    return tensor;
}

static const char *names_of(const nd_model_spec *model)
{
    for (size_t i = 0; i < sizeof huggingface / sizeof huggingface[0]; i++) {
        if (strcmp(model->family, huggingface[i]) == 0) {
            return "huggingface";
        }
    }
    return "ndplan";
}

static double wide_at(const void *numbers, nd_elem wide, int64_t i)
{
    return wide == ND_ELEM_F64 ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];
}

/* Rounded from fp64 to bf16 through fp32, as training rounds its masters. */
static void convert(const void *from, nd_elem wide, nd_elem type, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        double x = wide_at(from, wide, i);
        if (type == ND_ELEM_F64) {
            ((double *)to)[i] = x;
        } else if (type == ND_ELEM_F32) {
            ((float *)to)[i] = (float)x;
        } else {
            ((uint16_t *)to)[i] = nd_to_bf16((float)x);
        }
    }
}

/** Where blocks of rows are read and converted. */
typedef struct merge {
    const nd_checkpoint *checkpoint;
    const nd_param_list *params;
    nd_elem wide, type;
    int64_t capacity; /* elements */
    void *from, *to;
    nd_safetensors_writer *writer;
} merge;

static nd_status merge_param(const merge *m, int32_t index, nd_error *err)
{
    const nd_param *param = &m->params->params[index];
    int64_t rows = m->capacity / param->cols;
    for (int64_t row = 0; row < param->rows;) {
        int64_t take = param->rows - row < rows ? param->rows - row : rows;
        int64_t count = take * param->cols;
        ND_TRY(nd_checkpoint_read_param(m->checkpoint, index, ND_CHECKPOINT_MASTER, row, take, m->from, err));
        convert(m->from, m->wide, m->type, count, m->to);
        ND_TRY(nd_safetensors_put(m->writer, m->to, (size_t)(count * nd_elem_bytes(m->type)), err));
        row += take;
    }
    return ND_OK;
}

static nd_status merge_all(merge *m, const nd_model_spec *model, const char *path, nd_error *err)
{
    const char *const metadata[] = {"format", "pt", "names", names_of(model), "model", model->name, NULL};
    nd_safetensor *tensors = calloc((size_t)m->params->count, sizeof *tensors);
    m->from = malloc((size_t)m->capacity * sizeof(double));
    m->to = malloc((size_t)m->capacity * sizeof(double));
    if (tensors == NULL || m->from == NULL || m->to == NULL) {
        free(tensors);
        return nd_fail(err, ND_ENOMEM, "out of memory to merge a checkpoint");
    }
    for (int32_t i = 0; i < m->params->count; i++) {
        tensors[i] = tensor_of(model, &m->params->params[i], m->type);
    }
    nd_status status = nd_safetensors_create(path, tensors, (size_t)m->params->count, metadata, &m->writer, err);
    free(tensors);
    ND_TRY(status);
    for (int32_t i = 0; i < m->params->count && status == ND_OK; i++) {
        status = merge_param(m, i, err);
    }
    if (status != ND_OK) {
        nd_safetensors_discard(m->writer);
        return status;
    }
    return nd_safetensors_finish(m->writer, err);
}

nd_status nd_checkpoint_merge(const nd_checkpoint *checkpoint, const nd_model_spec *model, nd_elem type,
                              const char *path, nd_error *err)
{
    static const int64_t block = (int64_t)1 << 18;
    if (type != ND_ELEM_F64 && type != ND_ELEM_F32 && type != ND_ELEM_BF16) {
        return nd_fail(err, ND_EINVAL, "weights can be merged as fp64, fp32 or bf16, not %s", nd_elem_name(type));
    }
    merge m = {.checkpoint = checkpoint,
               .params = nd_checkpoint_params(checkpoint),
               .wide = nd_checkpoint_info_get(checkpoint)->wide,
               .type = type,
               .capacity = block};
    for (int32_t i = 0; i < m.params->count; i++) {
        m.capacity = m.params->params[i].cols > m.capacity ? m.params->params[i].cols : m.capacity;
    }
    nd_status status = merge_all(&m, model, path, err);
    free(m.from);
    free(m.to);
    return status;
}
