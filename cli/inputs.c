#include "cli/inputs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/text.h"

enum { SEQ_LEN_DEFAULT = 4096 };

static const int64_t seq_len_max = INT64_C(1) << 30; /* the limits of nd_train_spec_check() */
static const int64_t batch_max = INT64_C(1) << 40;

void nd_inputs_assume(nd_inputs *inputs, const char *option, const char *value, const char *format, ...)
{
    if (inputs->assumptions_count >= ND_ASSUMPTIONS_MAX) {
        return;
    }
    nd_assumption *assumption = &inputs->assumptions[inputs->assumptions_count++];
    (void)snprintf(assumption->option, sizeof assumption->option, "%s", option);
    (void)snprintf(assumption->value, sizeof assumption->value, "%s", value);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(assumption->why, sizeof assumption->why, format, args);
    va_end(args);
}

static nd_status load_model(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *name = options->value[ND_OPTION_MODEL];
    if (name == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--model is missing: a name of `ndplan list models`, a config.json, or a "
                       "directory that holds one");
    }
    return nd_model_load(name, nd_options_has(options, ND_OPTION_ASSUME_LLAMA), &inputs->model, err);
}

static nd_status load_cluster(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *name = options->value[ND_OPTION_CLUSTER];
    if (name == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--cluster is missing: NODESxGPUSxTYPE like 2x8xh100, a name of `ndplan list "
                       "clusters`, or a topology file");
    }
    ND_TRY(nd_cluster_load(name, &inputs->cluster, err));
    const nd_cluster_spec *cluster = &inputs->cluster;
    char usual[ND_CLUSTER_NAME_MAX];
    if (nd_cluster_in_usual_nodes(cluster, usual)) {
        nd_inputs_assume(inputs, "--cluster", name,
                         "taken as %s of %" PRId64 " GPUs; those of %s have %" PRId64 ": did you mean %s?",
                         cluster->nodes == 1 ? "one node" : "nodes", cluster->gpus_per_node, cluster->gpu.name,
                         cluster->usual_gpus_per_node, usual);
    }
    return ND_OK;
}

static bool stack_divides_everything(const nd_stack *stack)
{
    bool all = stack->expert_parallel;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        all = all && stack->axis[axis];
    }
    return all;
}

static nd_status load_software(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *framework = options->value[ND_OPTION_FRAMEWORK];
    const char *stack = options->value[ND_OPTION_STACK];
    if (framework != NULL) {
        ND_TRY(nd_framework_find(framework, &inputs->framework, err));
    }
    if (stack != NULL) {
        return nd_stack_find(stack, &inputs->stack, err);
    }
    if (inputs->framework != NULL) {
        return nd_stack_find(inputs->framework->stack, &inputs->stack, err);
    }
    ND_TRY(nd_stack_find("ndplan", &inputs->stack, err));
    nd_inputs_assume(inputs, "--stack", inputs->stack.name,
                     stack_divides_everything(&inputs->stack)
                         ? "no --framework given, so every form of parallelism is searched; --framework accelerate "
                           "keeps to what Accelerate can run (`ndplan list frameworks`)"
                         : "no --framework given; `ndplan list frameworks` shows what else there is");
    return ND_OK;
}

/* What of the user's own file counts here: the rest of the report looks the same with and without it. */
static void report_calibration(nd_inputs *inputs, const char *path)
{
    const nd_fitted *fitted = &inputs->fitted;
    int32_t used = nd_fitted_count_for(fitted, &inputs->calibration, &inputs->stack);
    bool of_gpu = false;
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        const nd_run_constant *constant = &fitted->constants[i];
        of_gpu = of_gpu || (!constant->of_stack && strcmp(constant->owner, inputs->calibration.gpu) == 0);
    }
    if (used == 0) {
        nd_inputs_assume(inputs, "--calibration", "nothing", "no constant of %.60s belongs to %s or to stack %s", path,
                         inputs->calibration.gpu, inputs->stack.name);
        return;
    }
    char value[32];
    (void)snprintf(value, sizeof value, "%d constant%s", (int)used, used == 1 ? "" : "s");
    nd_inputs_assume(inputs, "--calibration", value,
                     "fitted to %" PRId64 " run%s (%.60s), laid over the built-in ones%s", fitted->runs,
                     nd_text_plural(fitted->runs), path,
                     of_gpu ? "" : "; none of these runs is of this GPU, so a share of another GPU's speed is in them");
}

/* Priors of the GPU, the project's own fit over them, and the user's fit over that. */
static nd_status load_calibration(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *path = options->value[ND_OPTION_CALIBRATION];
    ND_TRY(nd_fitted_shipped(&inputs->fitted, err));
    ND_TRY(nd_calibration_for_gpu(&inputs->cluster.gpu, &inputs->calibration, err));
    nd_fitted_apply(&inputs->fitted, &inputs->calibration, &inputs->stack);
    if (path != NULL) {
        double form = inputs->fitted.form_log_sd;
        double hard_form = inputs->fitted.hard_form_log_sd;
        ND_TRY(nd_fitted_load(path, &inputs->fitted, err));
        report_calibration(inputs, path);
        nd_fitted_apply(&inputs->fitted, &inputs->calibration, &inputs->stack);
        inputs->fitted.form_log_sd = inputs->fitted.form_log_sd > 0.0 ? inputs->fitted.form_log_sd : form;
        inputs->fitted.hard_form_log_sd =
            inputs->fitted.hard_form_log_sd > 0.0 ? inputs->fitted.hard_form_log_sd : hard_form;
    }
    if (inputs->calibration.borrowed) {
        nd_inputs_assume(inputs, "--calibration", inputs->calibration.name,
                         "there is none for %s; its constants were fitted on %s", inputs->cluster.gpu.name,
                         inputs->calibration.gpu);
    }
    return ND_OK;
}

/* `seq_len` when none is given, because `why`. */
static nd_status load_seq_len(const nd_options *options, int64_t seq_len, const char *why, nd_inputs *inputs,
                              nd_error *err)
{
    const char *text = options->value[ND_OPTION_SEQ_LEN];
    int64_t longest = inputs->model.max_seq_len_tokens;
    char value[32];
    if (text != NULL) {
        ND_TRY(nd_text_int(text, "--seq-len", 1, seq_len_max, &inputs->train.seq_len_tokens, err));
        if (longest > 0 && inputs->train.seq_len_tokens > longest) {
            (void)snprintf(value, sizeof value, "%" PRId64, inputs->train.seq_len_tokens);
            nd_inputs_assume(inputs, "--seq-len", value,
                             "longer than the %" PRId64 " positions of the model's config; its position encoding must "
                             "be extended",
                             longest);
        }
        return ND_OK;
    }
    bool shorter = longest > 0 && longest < seq_len;
    inputs->train.seq_len_tokens = shorter ? longest : seq_len;
    (void)snprintf(value, sizeof value, "%" PRId64, inputs->train.seq_len_tokens);
    nd_inputs_assume(inputs, "--seq-len", value, "%s", shorter ? "the longest that the model's config allows" : why);
    return ND_OK;
}

/* The two ways to give the global batch; both at once are refused. */
static nd_status load_batch(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *seqs = options->value[ND_OPTION_GLOBAL_BATCH];
    const char *tokens = options->value[ND_OPTION_GLOBAL_BATCH_TOKENS];
    if (seqs != NULL && tokens != NULL) {
        return nd_fail(err, ND_EINVAL, "--global-batch and --global-batch-tokens say the same thing; give one");
    }
    inputs->global_batch_given = seqs != NULL || tokens != NULL;
    if (seqs != NULL) {
        return nd_text_int(seqs, "--global-batch", 1, batch_max, &inputs->train.global_batch_seqs, err);
    }
    if (tokens == NULL) {
        return ND_OK;
    }
    int64_t count = 0;
    int64_t seq_len = inputs->train.seq_len_tokens;
    ND_TRY(nd_text_int(tokens, "--global-batch-tokens", 1, batch_max, &count, err));
    if (count % seq_len != 0) {
        int64_t below = count / seq_len * seq_len;
        return nd_fail(err, ND_EINVAL,
                       "--global-batch-tokens %" PRId64 " is no whole number of sequences of %" PRId64
                       " tokens; nearest: %" PRId64 " or %" PRId64,
                       count, seq_len, below > 0 ? below : seq_len, below + seq_len);
    }
    inputs->train.global_batch_seqs = count / seq_len;
    return ND_OK;
}

static nd_status load_precision(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *text = options->value[ND_OPTION_PRECISION];
    if (text != NULL) {
        return nd_precision_parse(text, &inputs->train.precision, err);
    }
    const nd_gpu_spec *gpu = &inputs->cluster.gpu;
    bool bf16 = gpu->peak_flops_per_s[ND_DTYPE_BF16] > 0.0;
    inputs->train.precision = bf16 ? ND_DTYPE_BF16 : ND_DTYPE_FP16;
    if (bf16) {
        nd_inputs_assume(inputs, "--precision", "bf16", "the usual choice; fp8 where the GPU has it");
    } else {
        nd_inputs_assume(inputs, "--precision", "fp16", "%s has no bf16", gpu->name);
    }
    return ND_OK;
}

static nd_status load_attention(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *text = options->value[ND_OPTION_ATTENTION];
    const nd_gpu_spec *gpu = &inputs->cluster.gpu;
    /* kernels with asynchronous tensor cores: FlashAttention-3 and cuDNN on Hopper, their successors on Blackwell */
    bool newest = strcmp(gpu->arch, "hopper") == 0 || strncmp(gpu->arch, "blackwell", strlen("blackwell")) == 0;
    if (text != NULL) {
        nd_attention attention = ND_ATTENTION_FLASH2;
        ND_TRY(nd_attention_parse(text, &attention, err));
        if (attention == ND_ATTENTION_FLASH3 && !newest) {
            return nd_fail(err, ND_EINVAL,
                           "--attention flash3 needs a Hopper or Blackwell GPU and %s is %s; nearest: flash2",
                           gpu->name, gpu->arch);
        }
        inputs->train.attention = attention;
        return ND_OK;
    }
    inputs->train.attention = inputs->stack.default_attention;
    if (inputs->train.attention == ND_ATTENTION_FLASH3 && !newest) {
        inputs->train.attention = ND_ATTENTION_FLASH2;
    }
    nd_inputs_assume(inputs, "--attention", nd_attention_name(inputs->train.attention),
                     "what stack %s uses on this GPU", inputs->stack.name);
    return ND_OK;
}

static nd_status load_optimizer(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *text = options->value[ND_OPTION_OPTIMIZER];
    if (text != NULL) {
        return nd_optimizer_parse(text, &inputs->train.optimizer, err);
    }
    inputs->train.optimizer = ND_OPTIMIZER_ADAMW;
    nd_inputs_assume(inputs, "--optimizer", "adamw", "the usual choice");
    return ND_OK;
}

static nd_status load_lora(const nd_options *options, nd_inputs *inputs, nd_error *err)
{
    const char *text = options->value[ND_OPTION_LORA];
    inputs->train.base_bits = 16;
    return text != NULL ? nd_lora_parse(text, &inputs->train, err) : ND_OK;
}

nd_status nd_inputs_load_on(const nd_options *options, const nd_cluster_spec *cluster, nd_inputs *out, nd_error *err)
{
    memset(out, 0, sizeof *out);
    ND_TRY(load_model(options, out, err));
    if (cluster != NULL) {
        out->cluster = *cluster;
    } else {
        ND_TRY(load_cluster(options, out, err));
    }
    ND_TRY(load_seq_len(options, SEQ_LEN_DEFAULT, "a usual length; yours decides memory", out, err));
    ND_TRY(load_batch(options, out, err));
    ND_TRY(load_software(options, out, err));
    ND_TRY(load_precision(options, out, err));
    ND_TRY(load_optimizer(options, out, err));
    ND_TRY(load_attention(options, out, err));
    ND_TRY(load_lora(options, out, err));
    return load_calibration(options, out, err);
}

nd_status nd_inputs_load(const nd_options *options, nd_inputs *out, nd_error *err)
{
    return nd_inputs_load_on(options, NULL, out, err);
}

nd_status nd_inputs_load_training(const nd_options *options, int64_t seq_len, const char *why, nd_inputs *out,
                                  nd_error *err)
{
    const char *optimizer = options->value[ND_OPTION_OPTIMIZER];
    memset(out, 0, sizeof *out);
    ND_TRY(load_model(options, out, err));
    ND_TRY(load_seq_len(options, seq_len, why, out, err));
    ND_TRY(load_batch(options, out, err));
    out->train.optimizer = ND_OPTIMIZER_ADAMW;
    if (optimizer != NULL) {
        ND_TRY(nd_optimizer_parse(optimizer, &out->train.optimizer, err));
    }
    ND_TRY(load_lora(options, out, err));
    return nd_stack_find("ndplan", &out->stack, err);
}

void nd_inputs_default_batch(nd_inputs *inputs, int64_t global_batch_seqs, const char *why)
{
    char value[32];
    inputs->train.global_batch_seqs = global_batch_seqs;
    (void)snprintf(value, sizeof value, "%" PRId64, global_batch_seqs);
    nd_inputs_assume(inputs, "--global-batch", value, "%s", why);
}

nd_status nd_inputs_finish(nd_inputs *inputs, nd_error *err)
{
    ND_TRY(nd_train_spec_check(&inputs->train, err));
    ND_TRY(nd_cost_context_init(&inputs->model, &inputs->cluster, &inputs->train, &inputs->stack, &inputs->calibration,
                                &inputs->cost, err));
    inputs->cost.simulates = true;
    inputs->cost.uncertainty = nd_fitted_uncertainty(&inputs->fitted, &inputs->calibration, &inputs->stack);
    return ND_OK;
}

nd_report_context nd_inputs_report(const nd_options *options, const nd_inputs *inputs)
{
    return (nd_report_context){
        .cost = &inputs->cost,
        .framework = inputs->framework,
        .assumptions = inputs->assumptions,
        .assumptions_count = inputs->assumptions_count,
        .style = nd_command_style(),
        .verbose = nd_options_has(options, ND_OPTION_VERBOSE),
        .quiet = nd_options_has(options, ND_OPTION_QUIET),
    };
}
