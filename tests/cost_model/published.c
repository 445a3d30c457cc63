#include "tests/cost_model/published.h"

#include <stdlib.h>
#include <string.h>

#include "core/units.h"

enum { COLUMNS_MAX = 64, LINE_BYTES_MAX = 8192 };

typedef struct row {
    char header[LINE_BYTES_MAX];
    char line[LINE_BYTES_MAX];
    char *names[COLUMNS_MAX];
    char *values[COLUMNS_MAX];
    int count;
} row;

/* Split one CSV line in place; quotes are removed, doubled quotes become one. */
static int split(char *line, char **cells)
{
    int count = 0;
    char *read = line;
    while (count < COLUMNS_MAX) {
        bool quoted = *read == '"';
        char *write = read;
        char *cell = read;
        read += quoted;
        while (*read != '\0' && *read != '\n' && *read != '\r' && (quoted || *read != ',')) {
            if (quoted && *read == '"') {
                read++;
                if (*read != '"') {
                    quoted = false;
                    continue;
                }
            }
            *write++ = *read++;
        }
        bool more = *read == ',';
        read += more;
        *write = '\0';
        cells[count++] = cell;
        if (!more) {
            break;
        }
    }
    return count;
}

static const char *text_of(const row *r, const char *name)
{
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->names[i], name) == 0) {
            return r->values[i];
        }
    }
    return "";
}

static double number_of(const row *r, const char *name, double otherwise)
{
    const char *text = text_of(r, name);
    return *text == '\0' ? otherwise : strtod(text, NULL);
}

static int64_t count_of(const row *r, const char *name, int64_t otherwise)
{
    return (int64_t)number_of(r, name, (double)otherwise);
}

static bool has(const row *r, const char *name, const char *part)
{
    return strstr(text_of(r, name), part) != NULL;
}

static const char *gpu_name(const char *text)
{
    static const char *const names[][2] = {
        {"A100-80GB", "a100"}, {"A800", "a100"}, {"A100-40GB", "a100-40gb"}, {"H100-96GB", "h100-96gb-500w"},
        {"H100", "h100"},      {"H200", "h200"}, {"GB200", "gb200"},         {"GB300", "gb300"},
        {"B200", "b200"},      {"B300", "b300"}, {"V100-32GB", "v100-32gb"}, {"V100-16GB", "v100-16gb"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(text, names[i][0], strlen(names[i][0])) == 0) {
            return names[i][1];
        }
    }
    return text;
}

static void one_kind(nd_model_spec *m)
{
    m->layer_kinds_count = 1;
    m->layer_kinds[0] = (nd_layer_kind){.layers = m->layers};
    memset(m->kind_of_layer, 0, sizeof m->kind_of_layer);
}

/* A truncated DeepSeek: the family's shape, one dense layer, then expert layers. */
static nd_status read_deepseek(const row *r, nd_model_spec *m, nd_error *err)
{
    int64_t layers = count_of(r, "layers", 0);
    ND_TRY(nd_model_load(has(r, "model", "V2") ? "deepseek-v2" : "deepseek-v3", false, m, err));
    int64_t dense = layers == m->layers && has(r, "model", "V3") && !has(r, "model", "L") ? 3 : 1;
    m->layers = layers;
    m->layer_kinds_count = 2;
    m->layer_kinds[0] = (nd_layer_kind){.layers = dense};
    m->layer_kinds[1] = (nd_layer_kind){.moe = true, .layers = layers - dense};
    for (int64_t i = 0; i < layers; i++) {
        m->kind_of_layer[i] = i < dense ? 0 : 1;
    }
    return ND_OK;
}

static void read_transformer(const row *r, nd_model_spec *m)
{
    bool gated = has(r, "ffn_kind", "glu");
    memset(m, 0, sizeof *m);
    (void)snprintf(m->name, sizeof m->name, "%s", text_of(r, "model"));
    m->hidden = count_of(r, "hidden", 0);
    m->embed_dim = m->hidden;
    m->layers = count_of(r, "layers", 0);
    m->vocab = count_of(r, "vocab", 32000);
    m->heads = count_of(r, "heads", 1);
    m->kv_heads = count_of(r, "kv_heads", m->heads);
    m->head_dim = m->heads > 0 ? m->hidden / m->heads : 0;
    m->ffn = gated ? ND_FFN_SWIGLU : ND_FFN_GELU;
    m->ffn_hidden = count_of(r, "ffn_hidden", 4 * m->hidden);
    m->norm = gated ? ND_NORM_RMS : ND_NORM_LAYER;
    m->norms_per_layer = 2;
    m->final_norm = true;
    m->tied_embeddings = count_of(r, "tied_embeddings", gated ? 0 : 1) != 0;
    m->experts = count_of(r, "experts", 0);
    m->experts_topk = count_of(r, "experts_topk", 0);
    m->moe_ffn_hidden = count_of(r, "moe_ffn_hidden", 0);
    one_kind(m);
    m->layer_kinds[0].moe = m->experts > 0;
}

static nd_status read_model(const row *r, nd_model_spec *m, nd_error *err)
{
    if (has(r, "model", "DeepSeek")) {
        return read_deepseek(r, m, err);
    }
    read_transformer(r, m);
    return nd_model_check(m, err);
}

static nd_status read_stack(const row *r, nd_stack *stack, nd_error *err)
{
    const char *name = "torch-fsdp2";
    if (has(r, "framework", "Megatron") || has(r, "framework", "NeMo") || has(r, "framework", "InternEvo")) {
        name = "megatron";
    } else if (has(r, "framework", "torchtitan")) {
        name = "torch-fsdp2-compile";
    }
    ND_TRY(nd_stack_find(name, stack, err));
    if (has(r, "notes", "eager")) {
        nd_stack eager;
        ND_TRY(nd_stack_find("torch-fsdp2", &eager, err));
        stack->style.fused_elementwise = false;
        stack->style.loss_traffic_bytes = eager.style.loss_traffic_bytes;
        stack->style.logit_bytes = eager.style.logit_bytes;
        stack->launch_s = eager.launch_s;
    }
    if (has(r, "framework", "torchtitan") && !has(r, "notes", "eager") && has(r, "source_locator", "2024")) {
        stack->style.logit_bytes =
            13.8; /* torchtitan compiles the loss since 2025; measured_machine.c has the source */
    }
    if (has(r, "notes", "overlap options off")) {
        stack->overlaps_dp = false;
    }
    if (has(r, "framework", "foundry") || has(r, "framework", "fms")) {
        stack->grad_reduce_bytes = 4.0;
    }
    if (has(r, "notes", "async")) {
        stack->tp_overlap_frac = 0.6; /* torchtitan's async tensor parallelism: fit on its tables */
    }
    return ND_OK;
}

static nd_recompute read_recompute(const row *r)
{
    if (has(r, "recompute", "full")) {
        return ND_RECOMPUTE_FULL;
    }
    return has(r, "recompute", "selective") ? ND_RECOMPUTE_SELECTIVE : ND_RECOMPUTE_NONE;
}

/* torchtitan of 2024 and early 2025 splits the local batch into as many micro-batches as there are stages. */
static int64_t default_micro_batch(const row *r, const nd_layout *layout, int64_t local_batch)
{
    int64_t stages = (int64_t)layout->size[ND_AXIS_PP] * layout->vpp;
    return has(r, "framework", "torchtitan") && local_batch > stages ? local_batch / stages : 1;
}

static nd_layout read_layout(const row *r)
{
    nd_layout l = nd_layout_single();
    int64_t zero = count_of(r, "zero_stage", 0);
    int32_t replicate = (int32_t)count_of(r, "dp_replicate", 1);
    int32_t shard = (int32_t)count_of(r, "dp_shard", 1);
    l.size[ND_AXIS_TP] = (int32_t)count_of(r, "tp", 1);
    l.size[ND_AXIS_CP] = (int32_t)count_of(r, "cp", 1);
    l.size[ND_AXIS_PP] = (int32_t)count_of(r, "pp", 1);
    l.vpp = (int32_t)count_of(r, "vpp", has(r, "notes", "interleaved 1F1B") ? 2 : 1);
    l.ep = (int32_t)count_of(r, "ep", 1);
    l.schedule = l.vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B;
    l.sequence_parallel = count_of(r, "sp", 0) != 0 && l.size[ND_AXIS_TP] > 1;
    l.sharding = zero >= 3   ? ND_SHARDING_ZERO3
                 : zero == 2 ? ND_SHARDING_ZERO2
                 : zero == 1 ? ND_SHARDING_ZERO1
                             : ND_SHARDING_NONE;
    if (zero == 1 && shard == 1) { /* the optimizer is sharded over all data-parallel ranks */
        shard = replicate;
        replicate = 1;
    }
    l.size[ND_AXIS_DP_REPLICATE] = replicate;
    l.size[ND_AXIS_DP_SHARD] = shard;
    if (has(r, "framework", "torchtitan") && l.size[ND_AXIS_PP] > 1 && l.sharding == ND_SHARDING_ZERO3) {
        l.sharding = ND_SHARDING_ZERO2; /* reshard_after_forward "default" is off with pipelines */
    }
    l.recompute = read_recompute(r);
    int64_t data_ranks = (int64_t)replicate * shard;
    int64_t global = count_of(r, "global_batch", count_of(r, "micro_batch", 1) * data_ranks);
    l.micro_batch = (int32_t)count_of(r, "micro_batch", default_micro_batch(r, &l, global / data_ranks));
    l.grad_accum = global / (l.micro_batch * data_ranks);
    l.grad_accum = l.grad_accum > 0 ? l.grad_accum : 1;
    return l;
}

static void read_training(const row *r, nd_published_run *run)
{
    nd_dtype precision = has(r, "precision", "fp8")    ? ND_DTYPE_FP8
                         : has(r, "precision", "fp16") ? ND_DTYPE_FP16
                                                       : ND_DTYPE_BF16;
    /* MPT's configurations choose the Triton port of FlashAttention 1 (`attn_impl: triton`) */
    nd_attention flash = has(r, "framework", "llm-foundry") ? ND_ATTENTION_FLASH1 : run->stack.default_attention;
    run->train = (nd_train_spec){
        .seq_len_tokens = count_of(r, "seq_len", 2048),
        .global_batch_seqs = nd_layout_global_batch_seqs(&run->layout),
        .precision = precision,
        .optimizer = ND_OPTIMIZER_ADAMW,
        .attention = count_of(r, "flash_attn", 1) == 0 ? ND_ATTENTION_MATH : flash,
        .base_bits = 16,
    };
}

static void read_measurement(const row *r, nd_published_run *run)
{
    run->step_s = number_of(r, "step_time_s", 0.0);
    double tokens_per_s = number_of(r, "tokens_per_s_per_gpu", 0.0);
    if (run->step_s <= 0.0 && tokens_per_s > 0.0) {
        double tokens = (double)run->train.global_batch_seqs * (double)run->train.seq_len_tokens;
        run->step_s = tokens / (tokens_per_s * (double)run->cluster.gpus);
    }
    run->peak_bytes = number_of(r, "peak_mem_gib", 0.0) * ND_GIB;
    run->memory_kind = has(r, "mem_kind", "allocated")  ? ND_MEMORY_ALLOCATED
                       : has(r, "mem_kind", "reserved") ? ND_MEMORY_RESERVED
                                                        : ND_MEMORY_DEVICE;
}

static nd_status read_run(const row *r, nd_published_run *run, nd_error *err)
{
    char cluster[96];
    int64_t gpus = count_of(r, "gpus", 0);
    int64_t per_node = count_of(r, "gpus_per_node", 8);
    per_node = per_node > gpus ? gpus : per_node;
    if (gpus <= 0 || gpus % per_node != 0) {
        return nd_fail(err, ND_EINVAL, "%lld GPUs are no whole nodes of %lld", (long long)gpus, (long long)per_node);
    }
    (void)snprintf(cluster, sizeof cluster, "%lldx%lldx%s", (long long)(gpus / per_node), (long long)per_node,
                   gpu_name(text_of(r, "gpu")));
    ND_TRY(nd_cluster_load(cluster, &run->cluster, err));
    ND_TRY(nd_calibration_for_gpu(&run->cluster.gpu, &run->calibration, err));
    ND_TRY(read_model(r, &run->model, err));
    ND_TRY(read_stack(r, &run->stack, err));
    run->layout = read_layout(r);
    if (nd_layout_ranks(&run->layout) != gpus) {
        return nd_fail(err, ND_EINVAL, "the layout multiplies to %lld ranks, not %lld",
                       (long long)nd_layout_ranks(&run->layout), (long long)gpus);
    }
    read_training(r, run);
    read_measurement(r, run);
    return ND_OK;
}

int nd_published_next(FILE *csv, nd_published_run *out, char *why, size_t why_bytes)
{
    row r;
    nd_error err;
    long position = ftell(csv);
    rewind(csv);
    if (fgets(r.header, sizeof r.header, csv) == NULL) {
        return 0;
    }
    if (position > 0) {
        (void)fseek(csv, position, SEEK_SET);
    }
    r.count = split(r.header, r.names);
    if (fgets(r.line, sizeof r.line, csv) == NULL) {
        return 0;
    }
    int cells = split(r.line, r.values);
    for (int i = cells; i < COLUMNS_MAX; i++) {
        r.values[i] = r.line + strlen(r.line); /* short rows end in empty cells */
    }
    memset(out, 0, sizeof *out);
    (void)snprintf(out->id, sizeof out->id, "%s", text_of(&r, "id"));
    if (read_run(&r, out, &err) != ND_OK) {
        (void)snprintf(why, why_bytes, "%s", err.message);
        return -1;
    }
    return 1;
}

double nd_published_memory(const nd_published_run *run, const nd_memory_breakdown *memory)
{
    switch (run->memory_kind) {
    case ND_MEMORY_ALLOCATED:
        return memory->allocated_bytes;
    case ND_MEMORY_RESERVED:
        return memory->allocated_bytes * run->stack.reserved_ratio;
    case ND_MEMORY_DEVICE:
        break;
    }
    return memory->peak_bytes;
}
