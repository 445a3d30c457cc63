#include "cost_model/measured_run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/units.h"
#include "cost_model/measured_internal.h"

static const char *const columns[] = {
    "id",
    "source",
    "source_locator",
    "year",
    "model",
    "params_b",
    "hidden",
    "layers",
    "heads",
    "kv_heads",
    "ffn_hidden",
    "ffn_kind",
    "vocab",
    "tied_embeddings",
    "experts",
    "experts_topk",
    "moe_ffn_hidden",
    "gpu",
    "gpus",
    "gpus_per_node",
    "inter_node_network",
    "framework",
    "precision",
    "seq_len",
    "micro_batch",
    "global_batch",
    "dp_replicate",
    "dp_shard",
    "zero_stage",
    "tp",
    "sp",
    "cp",
    "pp",
    "vpp",
    "ep",
    "recompute",
    "flash_attn",
    "optimizer",
    "tokens_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu_pct",
    "step_time_s",
    "peak_mem_gib",
    "mem_kind",
    "flops_convention",
    "notes",
    "grade",
};

const char *nd_run_assumption_name(nd_run_assumption assumption)
{
    static const char *const names[] = {
#define ND_ASSUMPTION_NAME(name, text) text,
        ND_ASSUMPTION_LIST(ND_ASSUMPTION_NAME)
#undef ND_ASSUMPTION_NAME
    };
    return names[assumption];
}

nd_status nd_measured_check(const nd_csv *csv, nd_error *err)
{
    ND_TRY(nd_csv_check_columns(csv, columns, sizeof columns / sizeof columns[0], err));
    ND_TRY(nd_csv_need_column(csv, "model", err));
    ND_TRY(nd_csv_need_column(csv, "gpu", err));
    return nd_csv_need_column(csv, "gpus", err);
}

int64_t nd_row_int(nd_row *row, const char *name, int64_t otherwise)
{
    return nd_row_int_to(row, name, (int64_t)1 << 40, otherwise);
}

int64_t nd_row_int_to(nd_row *row, const char *name, int64_t max, int64_t otherwise)
{
    int64_t value = otherwise;
    nd_error err;
    nd_status status = nd_csv_int(row->csv, row->index, name, 0, max, &value, &err);
    if (status != ND_OK && row->status == ND_OK) {
        row->status = status;
        row->err = err;
    }
    return value;
}

double nd_row_double(nd_row *row, const char *name, double otherwise)
{
    double value = otherwise;
    nd_error err;
    nd_status status = nd_csv_double(row->csv, row->index, name, 0.0, 1e15, &value, &err);
    if (status != ND_OK && row->status == ND_OK) {
        row->status = status;
        row->err = err;
    }
    return value;
}

const char *nd_row_text(const nd_row *row, const char *name)
{
    return nd_csv_text(row->csv, row->index, name);
}

bool nd_row_has(const nd_row *row, const char *name, const char *part)
{
    return strstr(nd_row_text(row, name), part) != NULL;
}

bool nd_row_mentions(const nd_row *row, const char *name, const char *part)
{
    char lower[64] = "";
    const char *text = nd_row_text(row, name);
    for (size_t i = 0; i + 1 < sizeof lower && text[i] != '\0'; i++) {
        lower[i] = (char)tolower((unsigned char)text[i]);
    }
    return strstr(lower, part) != NULL;
}

bool nd_row_is_one_of(const nd_row *row, const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(nd_row_text(row, name), words[i]) == 0) {
            return true;
        }
    }
    return false;
}

void nd_row_malformed(nd_row *row, const char *name, const char *expected)
{
    if (row->status == ND_OK) {
        row->status = nd_csv_fail(row->csv, row->index, &row->err, "%s must be %s, got '%.80s'", name, expected,
                                  nd_row_text(row, name));
    }
}

void nd_row_assume(nd_row *row, nd_run_assumption assumption)
{
    row->assumed |= 1u << assumption;
}

/* "LF-001" -> "LF"; otherwise the source column, or "runs". */
static void read_names(const nd_row *row, nd_measured_run *run)
{
    const char *id = nd_row_text(row, "id");
    const char *source = nd_row_text(row, "source");
    size_t letters = 0;
    while (isupper((unsigned char)id[letters])) {
        letters++;
    }
    if (*id == '\0') {
        (void)snprintf(run->id, sizeof run->id, "row %zu", row->index + 1);
    } else {
        (void)snprintf(run->id, sizeof run->id, "%s", id);
    }
    if (letters > 0 && id[letters] == '-') {
        (void)snprintf(run->source, sizeof run->source, "%.*s", (int)letters, id);
    } else {
        (void)snprintf(run->source, sizeof run->source, "%s", *source == '\0' ? "runs" : source);
    }
    (void)snprintf(run->framework, sizeof run->framework, "%s", nd_row_text(row, "framework"));
}

static nd_dtype read_precision(nd_row *row)
{
    if (nd_row_mentions(row, "precision", "fp8")) {
        return ND_DTYPE_FP8;
    }
    bool bf16 = nd_row_mentions(row, "precision", "bf16") || nd_row_mentions(row, "precision", "bfloat16");
    if (!bf16 && (nd_row_mentions(row, "precision", "fp16") || nd_row_mentions(row, "precision", "float16"))) {
        return ND_DTYPE_FP16;
    }
    if (!bf16 && (nd_row_mentions(row, "precision", "fp32") || nd_row_mentions(row, "precision", "float32"))) {
        return ND_DTYPE_FP32;
    }
    if (*nd_row_text(row, "precision") == '\0') {
        nd_row_assume(row, ND_ASSUMED_PRECISION);
    } else if (!bf16) {
        nd_row_malformed(row, "precision", "bf16, fp16, fp32, fp8 or empty");
    }
    return ND_DTYPE_BF16;
}

static nd_attention read_attention(nd_row *row, const nd_stack *stack)
{
    int64_t flash = nd_row_int(row, "flash_attn", -1);
    if (flash < 0) {
        nd_row_assume(row, ND_ASSUMED_ATTENTION);
    }
    if (flash == 0) {
        return ND_ATTENTION_MATH;
    }
    /* its configurations choose the Triton port of FlashAttention 1 (attn_impl: triton) */
    return nd_row_has(row, "framework", "llm-foundry") ? ND_ATTENTION_FLASH1 : stack->default_attention;
}

/* Free text such as "Adam (distributed optimizer)"; what is none of ours counts as AdamW, whose states most have. */
static nd_optimizer read_optimizer(nd_row *row)
{
    static const struct {
        const char *part;
        nd_optimizer optimizer;
    } kinds[] = {
        {"8bit", ND_OPTIMIZER_ADAMW_8BIT}, {"8-bit", ND_OPTIMIZER_ADAMW_8BIT}, {"muon", ND_OPTIMIZER_MUON},
        {"lion", ND_OPTIMIZER_LION},       {"sgd", ND_OPTIMIZER_SGD},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (nd_row_mentions(row, "optimizer", kinds[i].part)) {
            return kinds[i].optimizer;
        }
    }
    return ND_OPTIMIZER_ADAMW;
}

static void read_training(nd_row *row, nd_measured_run *run)
{
    int64_t seq = nd_row_int(row, "seq_len", 0);
    if (seq == 0) {
        nd_row_assume(row, ND_ASSUMED_SEQ_LEN);
        seq = 2048;
    }
    run->train = (nd_train_spec){
        .seq_len_tokens = seq,
        .global_batch_seqs = nd_layout_global_batch_seqs(&run->layout),
        .precision = read_precision(row),
        .optimizer = read_optimizer(row),
        .attention = read_attention(row, &run->stack),
        .base_bits = 16,
    };
    if (nd_row_has(row, "framework", "AutoModel") || nd_row_has(row, "optimizer", "bf16")) {
        run->train.optimizer = ND_OPTIMIZER_ADAMW_BF16; /* AutoModel loads and trains in bf16 throughout */
    }
    if (nd_row_has(row, "notes", "LoRA")) {
        nd_row_assume(row, ND_ASSUMED_LORA);
        run->train.lora_rank = 16;
    }
    if (nd_row_has(row, "notes", "packed")) {
        nd_row_assume(row, ND_ASSUMED_PACKING);
    }
}

/* FLOPs of one token in the convention that the row states; 0 when it states none that is known. */
static double flops_per_token(nd_row *row, const nd_measured_run *run)
{
    int64_t seq = run->train.seq_len_tokens;
    if (nd_row_has(row, "flops_convention", "model-causal")) {
        return nd_model_flops_per_token(&run->model, seq, ND_FLOPS_CAUSAL);
    }
    return nd_row_has(row, "flops_convention", "model-full") ? nd_model_flops_per_token(&run->model, seq, ND_FLOPS_FULL)
                                                             : 0.0;
}

static void read_measurement(nd_row *row, nd_measured_run *run)
{
    double tokens = (double)run->train.global_batch_seqs * (double)run->train.seq_len_tokens;
    double tokens_per_s = nd_row_double(row, "tokens_per_s_per_gpu", 0.0);
    double flops_per_s = nd_row_double(row, "tflops_per_gpu", 0.0) * 1e12;
    run->step_s = nd_row_double(row, "step_time_s", 0.0);
    if (run->step_s <= 0.0 && tokens_per_s <= 0.0 && flops_per_s > 0.0) {
        double per_token = flops_per_token(row, run);
        tokens_per_s = per_token > 0.0 ? flops_per_s / per_token : 0.0;
    }
    if (run->step_s <= 0.0 && tokens_per_s > 0.0) {
        run->step_s = tokens / (tokens_per_s * (double)run->cluster.gpus);
    }
    run->peak_bytes = nd_row_double(row, "peak_mem_gib", 0.0) * ND_GIB;
    run->memory_kind = nd_row_has(row, "mem_kind", "allocated")  ? ND_MEMORY_ALLOCATED
                       : nd_row_has(row, "mem_kind", "reserved") ? ND_MEMORY_RESERVED
                                                                 : ND_MEMORY_DEVICE;
    const char *grade = nd_row_text(row, "grade");
    run->grade = *grade == '\0' ? ' ' : (char)toupper((unsigned char)*grade);
    run->contradictory = nd_row_has(row, "notes", "FLAG");
}

static nd_status read_run(nd_row *row, nd_measured_run *run, nd_error *err)
{
    if (nd_row_mentions(row, "precision", "fp4")) {
        return nd_fail(err, ND_EUNSUPPORTED, "precision '%.20s' is not modelled", nd_row_text(row, "precision"));
    }
    ND_TRY(nd_row_cluster(row, &run->cluster, err));
    ND_TRY(nd_row_model(row, &run->model, err));
    ND_TRY(nd_row_stack(row, &run->stack, err));
    ND_TRY(nd_row_layout(row, run, err));
    read_training(row, run);
    read_measurement(row, run);
    run->assumed = row->assumed;
    ND_TRY(nd_measured_layout_check(run, err));
    return nd_train_spec_check(&run->train, err);
}

nd_status nd_measured_read(const nd_csv *csv, size_t row_index, nd_measured_run *out, nd_error *err)
{
    nd_row row = {.csv = csv, .index = row_index, .status = ND_OK};
    nd_error found;
    memset(out, 0, sizeof *out);
    read_names(&row, out);
    nd_status status = read_run(&row, out, &found);
    out->assumed = row.assumed;
    if (row.status != ND_OK) { /* a malformed cell matters more than what followed from it */
        return nd_fail(err, ND_EPARSE, "%s", row.err.message);
    }
    return status == ND_OK ? ND_OK : nd_fail(err, ND_EUNSUPPORTED, "%s", found.message);
}

bool nd_measured_is_hard(const nd_measured_run *run)
{
    return run->model.experts > 0 || run->train.precision == ND_DTYPE_FP8;
}

double nd_measured_memory(const nd_measured_run *run, const nd_memory_breakdown *memory)
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
