/* GPUs, network and software of a measured row. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/measured_internal.h"

/* Names that tables use -> built-in GPUs; the first that is a prefix counts. */
static const char *const gpu_aliases[][2] = {
    {"A100-PCIE-40", "a100-pcie-40gb"},
    {"A100-PCIE", "a100-pcie-80gb"},
    {"A100-40", "a100-40gb"},
    {"A100", "a100"},
    {"A800", "a800"},
    {"H100-96", "h100-96gb-500w"},
    {"H100-95", "h100-96gb-500w"},
    {"H100-PCIE", "h100-pcie"},
    {"H100-NVL", "h100-nvl"},
    {"H100", "h100"},
    {"H800", "h800"},
    {"H200", "h200"},
    {"GB200", "gb200"},
    {"GB300", "gb300"},
    {"B200", "b200"},
    {"B300", "b300"},
    {"V100-32", "v100-32gb"},
    {"V100", "v100-16gb"},
};

/* "A1000" does not begin with A100; after a hyphen, "A100-40" may go on to "A100-40GB". */
static bool begins_with_word(const char *text, const char *alias)
{
    size_t length = strlen(alias);
    return strncmp(text, alias, length) == 0 && (strchr(alias, '-') != NULL || !isalnum((unsigned char)text[length]));
}

static const char *gpu_name(const char *text)
{
    for (size_t i = 0; i < sizeof gpu_aliases / sizeof gpu_aliases[0]; i++) {
        if (begins_with_word(text, gpu_aliases[i][0])) {
            return gpu_aliases[i][1];
        }
    }
    return text;
}

/* GPUs of one node when the row does not say: 4 in a GB200 or GB300 tray, else 8. */
static int64_t usual_gpus_per_node(const char *gpu)
{
    return strncmp(gpu, "GB", 2) == 0 ? 4 : 8;
}

static const char *network_type(const char *text)
{
    static const char *const types[][2] = {
        {"RoCE", "roce"},
        {"InfiniBand", "ib"},
        {"IB", "ib"},
        {"EFA", "efa"},
        {"OPA", "ib"},
        {"TCP", "tcp"},
        {"Ethernet", "ethernet"},
        {"Slingshot", "slingshot"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strstr(text, types[i][0]) != NULL) {
            return types[i][1];
        }
    }
    return "ib";
}

static const double max_nic_bytes_per_s = 1e13; /* a thousand times the fastest node of 2026 */

/* The 4 of "4 x 100 Gb/s" or "EFA 4x100 Gb/s", where `rate` points to the 100; 0: none, -1: not a count. */
static int64_t nics_before(const char *text, const char *rate)
{
    while (rate > text && rate[-1] == ' ') {
        rate--;
    }
    if (rate == text || rate[-1] != 'x') {
        return 0;
    }
    rate--;
    while (rate > text && rate[-1] == ' ') {
        rate--;
    }
    while (rate > text && isdigit((unsigned char)rate[-1])) {
        rate--;
    }
    int64_t count = strtoll(rate, NULL, 10);
    return count > 0 ? count : -1;
}

/* "4 x 100 Gb/s per node", "1600 Gb/s per node", "400 Gb/s per GPU" -> NICs and the rate of one. */
static bool read_rate(const char *text, int64_t gpus_per_node, int64_t *nics, double *nic_bytes_per_s)
{
    const char *unit = strstr(text, "Gb/s");
    const char *start = unit;
    if (unit == NULL) {
        return false;
    }
    while (start > text && strchr("0123456789. ", start[-1]) != NULL) {
        start--;
    }
    double rate = strtod(start, NULL) * 1e9 / 8.0;
    int64_t count = nics_before(text, start);
    if (!(rate > 0.0 && rate < max_nic_bytes_per_s) || count < 0 || count > 1024) {
        return false;
    }
    if (count > 0) {
        *nics = count;
        *nic_bytes_per_s = rate;
    } else if (strstr(unit, "per GPU") != NULL) {
        *nics = gpus_per_node;
        *nic_bytes_per_s = rate;
    } else { /* of the node, which is taken to have a NIC per GPU */
        *nics = gpus_per_node;
        *nic_bytes_per_s = rate / (double)gpus_per_node;
    }
    return true;
}

/* Jean Zay's A100 partition: four Omni-Path links of 100 Gb/s a node (model card of bigscience/bloom). */
static const char *known_network(const char *text)
{
    return strstr(text, "Jean Zay") != NULL ? "4 x 100 Gb/s OPA" : text;
}

static nd_status set_network(nd_row *row, nd_cluster_spec *cluster, nd_error *err)
{
    const char *text = known_network(nd_row_text(row, "inter_node_network"));
    if (cluster->nodes == 1 || cluster->gpus <= cluster->nvlink_domain) {
        return ND_OK;
    }
    nd_cluster_spec changed = *cluster;
    if (!read_rate(text, cluster->gpus_per_node, &changed.facts.nics_per_node, &changed.facts.nic_bytes_per_s)) {
        nd_row_assume(row, ND_ASSUMED_NETWORK);
        return ND_OK;
    }
    (void)snprintf(changed.network, sizeof changed.network, "%s", network_type(text));
    changed.facts.network_efficiency_frac = 0.0; /* that of the network's type */
    changed.facts.network_step_latency_s = 0.0;
    return nd_cluster_resize(&changed, cluster->nodes, cluster, err);
}

nd_status nd_row_cluster(nd_row *row, nd_cluster_spec *out, nd_error *err)
{
    char text[160];
    nd_error found;
    const char *gpu = nd_row_text(row, "gpu");
    int64_t gpus = nd_row_int(row, "gpus", 0);
    int64_t per_node = nd_row_int(row, "gpus_per_node", usual_gpus_per_node(gpu));
    per_node = per_node > gpus ? gpus : per_node;
    if (gpus <= 0 || per_node <= 0 || gpus % per_node != 0) {
        return nd_fail(err, ND_EUNSUPPORTED, "%lld GPUs are no whole nodes of %lld", (long long)gpus,
                       (long long)per_node);
    }
    (void)snprintf(text, sizeof text, "%lldx%lldx%.80s", (long long)(gpus / per_node), (long long)per_node,
                   gpu_name(gpu));
    if (nd_cluster_load(text, out, &found) != ND_OK) {
        return nd_fail(err, ND_EUNSUPPORTED, "%.200s", found.message);
    }
    return set_network(row, out, err);
}

/* Framework text -> stack; the first part that occurs counts. */
static const char *const stacks[][2] = {
    {"AutoModel", "torch-fsdp2-compile"},
    {"Megatron-DeepSpeed", "megatron-deepspeed"},
    {"Composer", "torch-fsdp1"},
    {"FSDP1", "torch-fsdp1"},
    {"torchtitan", "torch-fsdp2"},
    {"Megatron-Bridge", "nemo"},
    {"NeMo", "nemo"},
    {"Megatron-Core", "nemo"},
    {"Transformer Engine", "megatron"},
    {"Megatron", "megatron"},
    {"megatron", "megatron"},
    {"InternEvo", "internevo"},
    {"JAX", "nemo"},
    {"DeepSpeed", "deepspeed"},
    {"deepspeed", "deepspeed"},
    {"Accelerate", "torch-fsdp2"},
    {"accelerate", "torch-fsdp2"},
    {"Axolotl", "torch-fsdp2"},
    {"axolotl", "torch-fsdp2"},
    {"FSDP", "torch-fsdp2"},
    {"DDP", "torch-ddp"},
    {"Colossal", "deepspeed"},
};

static const char *stack_name(nd_row *row)
{
    const char *framework = nd_row_text(row, "framework");
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        if (strstr(framework, stacks[i][0]) != NULL) {
            bool old = strcmp(stacks[i][1], "megatron") == 0 && nd_row_int(row, "flash_attn", 1) == 0;
            return old ? "megatron-2022" : stacks[i][1];
        }
    }
    for (size_t i = 0; i < nd_stack_builtin_count(); i++) {
        if (strcmp(framework, nd_stack_builtin_name(i)) == 0) {
            return nd_stack_builtin_name(i);
        }
    }
    nd_row_assume(row, ND_ASSUMED_STACK);
    return "ndplan";
}

/* torchtitan compiles the loss since 2025 (components/loss.py). Before, it was eager under torch.compile too, at so
 * many bytes a logit: counted 14, fit of torchtitan's rows of 2024 against reserved memory. */
static const int64_t torchtitan_compiles_loss_since = 2025;
static const double compiled_model_eager_loss_bytes = 13.8;

/* torch.compile fuses element-wise chains and the loss; notes say whether it was on. */
static nd_status set_compiled(nd_stack *stack, bool compiled, nd_error *err)
{
    nd_stack other;
    if (stack->style.fused_elementwise == compiled) {
        return ND_OK;
    }
    ND_TRY(nd_stack_find(compiled ? "torch-fsdp2-compile" : "torch-fsdp2", &other, err));
    memcpy(stack->name, other.name, sizeof stack->name); /* its kernels and launches are that stack's */
    stack->gemm_frac = other.gemm_frac;
    stack->style.fused_elementwise = other.style.fused_elementwise;
    stack->style.loss_traffic_bytes = other.style.loss_traffic_bytes;
    stack->style.logit_bytes = other.style.logit_bytes;
    stack->launch_s = other.launch_s;
    return ND_OK;
}

/* GEMMs with a scale per row (CUTLASS, torch 2.6) against one per tensor (cuBLASLt): torchtitan's rows of both kinds.
 */
static const double rowwise_fp8_frac = 0.5;

nd_status nd_row_stack(nd_row *row, nd_stack *out, nd_error *err)
{
    bool torchtitan = nd_row_has(row, "framework", "torchtitan");
    ND_TRY(nd_stack_find(stack_name(row), out, err));
    if (torchtitan) {
        ND_TRY(nd_stack_find("torch-fsdp2-compile", out, err)); /* fp32 reductions, pipelines, sequence parallelism */
    }
    bool eager = nd_row_has(row, "notes", "eager") || nd_row_has(row, "notes", "no compile");
    if (out->fsdp && (eager || nd_row_has(row, "notes", "torch.compile"))) {
        ND_TRY(set_compiled(out, !eager, err));
    }
    if (torchtitan && !eager &&
        nd_row_int(row, "year", torchtitan_compiles_loss_since) < torchtitan_compiles_loss_since) {
        out->style.logit_bytes = compiled_model_eager_loss_bytes;
    }
    if (nd_row_has(row, "notes", "overlap options off")) {
        out->overlaps_dp = false;
    }
    if (nd_row_has(row, "notes", "mode DEFAULT")) {
        out->grad_reduce_bytes = 4.0; /* Composer's DEFAULT reduces in fp32, PURE in the parameters' 16 bits */
    }
    if (nd_row_has(row, "precision", "rowwise")) {
        out->fp8_frac *= rowwise_fp8_frac;
    }
    if (nd_row_has(row, "notes", "overlap of DP, TP and PP")) {
        nd_stack nemo;
        ND_TRY(nd_stack_find("nemo", &nemo, err));
        out->tp_overlap_frac = nemo.tp_overlap_frac;
    }
    if (nd_row_has(row, "notes", "async TP")) {
        out->tp_overlap_frac = 0.6; /* torchtitan's asynchronous tensor parallelism: fit on its tables */
    }
    return ND_OK;
}
