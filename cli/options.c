#include "cli/options.h"

#include <string.h>

#include "core/text.h"

typedef struct option_row {
    const char *name;     /* with its dashes */
    char short_name;      /* 0: none */
    const char *argument; /* name of the value in the help; NULL: a flag */
    const char *help;     /* NULL: not in this version */
} option_row;

static const option_row option_table[ND_OPTION_COUNT] = {
    [ND_OPTION_MODEL] = {"--model", 0, "M", "a built-in name, a config.json, or a directory that holds one"},
    [ND_OPTION_ASSUME_LLAMA] = {"--assume-llama", 0, NULL, "read an unknown model_type as Llama-like"},
    [ND_OPTION_CLUSTER] = {"--cluster", 0, "C", "2x8xh100, p5.48xlarge:4, or a topology file"},
    [ND_OPTION_LAYOUT] = {"--layout", 0, "L", "dp_replicate=2,dp_shard=4,tp=2,micro_batch=1,recompute=full"},
    [ND_OPTION_AGAINST] = {"--against", 0, "L", "the layout to compare with, instead of the search's first"},
    [ND_OPTION_SEQ_LEN] = {"--seq-len", 0, "N", "tokens of one sequence"},
    [ND_OPTION_GLOBAL_BATCH] = {"--global-batch", 0, "N", "sequences of one optimizer step"},
    [ND_OPTION_GLOBAL_BATCH_TOKENS] = {"--global-batch-tokens", 0, "N", "the same in tokens"},
    [ND_OPTION_PRECISION] = {"--precision", 0, "P", "bf16, fp16, fp32 or fp8"},
    [ND_OPTION_OPTIMIZER] = {"--optimizer", 0, "O", "adamw, adamw-8bit, adamw-bf16, sgd, lion or muon"},
    [ND_OPTION_LORA] = {"--lora", 0, "r=16[,bits=4]", "train adapters; bits=4 is QLoRA"},
    [ND_OPTION_ATTENTION] = {"--attention", 0, "A", "flash3, flash2, flash1 or math"},
    [ND_OPTION_FRAMEWORK] = {"--framework", 0, "F[@VERSION]", "obey this framework's rules and use its stack"},
    [ND_OPTION_STACK] = {"--stack", 0, "S", "the software whose kernels and allocator are priced"},
    [ND_OPTION_CALIBRATION] = {"--calibration", 0, "FILE", "fitted constants instead of the built-in ones"},
    [ND_OPTION_FROM_RUNS] = {"--from-runs", 0, "FILE.csv", "measured runs to fit to"},
    [ND_OPTION_MACHINE] = {"--machine", 0, NULL, "measure this machine, for `ndplan run` (half a minute)"},
    [ND_OPTION_MACHINE_DTYPE] = {"--dtype", 0, "T", "of --machine: only fp32, fp64 or bf16 (all three)"},
    [ND_OPTION_GPU] = {"--gpu", 0, "G", "only runs on this GPU"},
    [ND_OPTION_BARE_PRIORS] = {"--bare-priors", 0, NULL, "start from micro-benchmarks, not from the built-in fit"},
    [ND_OPTION_SKIP_LEFT_OUT] = {"--skip-left-out", 0, NULL, "do not fit again without each source (minutes)"},
    [ND_OPTION_OUTPUT] = {"--output", 'o', "PATH", "where to write"},
    [ND_OPTION_ANCHOR] = {"--anchor", 0, "step_s=S[,L]", "a measured step (of layout L) to scale by"},
    [ND_OPTION_TOP] = {"--top", 0, "N", "plans to show (10; 100 with --json, --csv)"},
    [ND_OPTION_OBJECTIVE] = {"--objective", 0, "GOAL", "throughput (default), memory (headroom), cost or gpus"},
    [ND_OPTION_PIN] = {"--pin", 0, "tp=8,cp=1", "only layouts with these values"},
    [ND_OPTION_MAX] = {"--max", 0, "tp=8", "only layouts up to these degrees"},
    [ND_OPTION_ALL] = {"--all", 0, NULL, "rank layouts that do not fit, too"},
    [ND_OPTION_THREADS] = {"--threads", 0, "N", "search on so many threads (all processors)"},
    [ND_OPTION_PARETO] = {"--pareto", 0, NULL, "all that nothing beats in time, memory and GPUs"},
    [ND_OPTION_TOKENS] = {"--tokens", 0, "N", "of the whole run, like 15T: days, dollars, energy"},
    [ND_OPTION_PRICE] = {"--price", 0, "USD", "of one GPU hour, instead of the cluster's"},
    [ND_OPTION_MTBF_HOURS] = {"--mtbf-hours", 0, "H", "mean hours between failures of one GPU; inf: none"},
    [ND_OPTION_CHECKPOINT_INTERVAL] = {"--checkpoint-interval", 0, "T", "work between two saves: 30m, 2h, 600s"},
    [ND_OPTION_STORAGE] = {"--storage-gb-per-s", 0, "N", "of the storage that all nodes share"},
    [ND_OPTION_RUNS] = {"--runs", 0, "FILE.csv", "measured runs of your own, one for each line"},
    [ND_OPTION_BY] = {"--by", 0, "KEY", "errors by source (default), gpu, framework or model"},
    [ND_OPTION_WORST] = {"--worst", 0, "N", "list the N runs with the largest errors"},
    [ND_OPTION_ROWS] = {"--rows", 0, NULL, "list every run"},
    [ND_OPTION_LEAVE_ONE_OUT] = {"--leave-one-out", 0, NULL, "fit again without each source before predicting it"},
    [ND_OPTION_ANCHORED] = {"--anchor", 0, NULL, "also errors once a step of each source is known"},
    [ND_OPTION_MAX_MEDIAN_ERROR] = {"--max-median-error", 0, "PERCENT",
                                    "exit 1 when the mean of source medians is larger"},
    [ND_OPTION_PLOT] = {"--plot", 0, "FILE.svg", "draw predicted against measured step times"},
    [ND_OPTION_TRACE] = {"--trace", 0, "FILE.json", "write a timeline of the step for ui.perfetto.dev"},
    [ND_OPTION_PLOT_SWEEP] = {"--plot", 0, "FILE.svg", "draw throughput at each value"},
    [ND_OPTION_OF] = {"--of", 0, "Q", "micro-batch, seq-len or gpus (all three)"},
    [ND_OPTION_OVER] = {"--over", 0, "Q", "gpus, seq-len, global-batch, nic or nvlink-domain"},
    [ND_OPTION_FROM] = {"--from", 0, "A", "first value; a NIC rate as 100Gb/s or 50GB/s"},
    [ND_OPTION_TO] = {"--to", 0, "B", "last value"},
    [ND_OPTION_STEPS] = {"--steps", 0, "N", "points, spaced by equal factors (doubling)"},
    [ND_OPTION_VALUES] = {"--values", 0, "A,B,C", "these points, ascending"},
    [ND_OPTION_PROGRAM] = {"--program", 0, NULL, "instead: what a rank executes, instruction by instruction"},
    [ND_OPTION_RANK] = {"--rank", 0, "R", "of --program (0)"},
    [ND_OPTION_PROGRAM_VERBOSE] = {"--verbose", 'v', NULL, "all instructions of --program"},
    [ND_OPTION_RANKS] = {"--ranks", 0, "N", "threads, one a rank: as many as the layout has"},
    [ND_OPTION_RUN_STEPS] = {"--steps", 0, "N", "optimizer steps (10)"},
    [ND_OPTION_BACKEND] = {"--backend", 0, "B", "what computes: cpu"},
    [ND_OPTION_DTYPE] = {"--dtype", 0, "T", "compute in fp32 (default), fp64 or bf16 (fp32 masters)"},
    [ND_OPTION_DATA] = {"--data", 0, "FILE", "train on its bytes instead of synthetic tokens"},
    [ND_OPTION_SEED] = {"--seed", 0, "N", "of initial weights and data (0)"},
    [ND_OPTION_LR] = {"--lr", 0, "R", "learning rate (0.001)"},
    [ND_OPTION_WARMUP] = {"--warmup", 0, "N", "steps in which the learning rate grows to R (0)"},
    [ND_OPTION_CLIP] = {"--clip", 0, "G", "largest gradient norm (1); 0: gradients stay as they are"},
    [ND_OPTION_MASKED_FRAC] = {"--masked-frac", 0, "F", "share of the labels that do not count (0)"},
    [ND_OPTION_SAVE] = {"--save", 0, "DIR", "write a sharded checkpoint there after the last step"},
    [ND_OPTION_SAVE_EVERY] = {"--save-every", 0, "N", "also after every N steps; with --save"},
    [ND_OPTION_KEEP] = {"--keep", 0, "N", "newest checkpoints that stay in DIR (10); 0: all; with --save"},
    [ND_OPTION_RESUME] = {"--resume", 0, "DIR", "go on from the newest checkpoint there, whatever its layout"},
    [ND_OPTION_SAVE_WEIGHTS] = {"--save-weights", 0, "FILE", "all weights in one .safetensors file; with --save"},
    [ND_OPTION_VERIFY] = {"--verify", 0, NULL, "the same steps on one rank must give the same model"},
    [ND_OPTION_CHECK_NAN] = {"--check-nan", 0, NULL, "stop at the first NaN or infinity, and say where"},
    [ND_OPTION_PROFILE] = {"--profile", 0, NULL, "time of every kind of instruction in the last step"},
    [ND_OPTION_RUN_TRACE] = {"--trace", 0, "FILE.json", "timeline of the last step for ui.perfetto.dev"},
    [ND_OPTION_RUN_CALIBRATION] = {"--calibration", 0, "FILE", "of this machine: predict, beside what is measured"},
    [ND_OPTION_RUN_VERBOSE] = {"--verbose", 'v', NULL, "a line on stderr for every step"},
    [ND_OPTION_JSON] = {"--json", 0, NULL, "one JSON object in base units"},
    [ND_OPTION_CSV] = {"--csv", 0, NULL, "comma-separated values in base units"},
    [ND_OPTION_VERBOSE] = {"--verbose", 'v', NULL, "every rule that refused a layout"},
    [ND_OPTION_QUIET] = {"--quiet", 'q', NULL, "results without explanations"},
    [ND_OPTION_HELP] = {"--help", 'h', NULL, "this text"},
    [ND_OPTION_EXPORT] = {"--export", 0, "F", NULL},
    [ND_OPTION_DIAGRAM] = {"--diagram", 0, "FILE", NULL},
    [ND_OPTION_HTML] = {"--html", 0, "FILE", NULL},
};

const char *nd_option_name(nd_option_id id)
{
    return option_table[id].name;
}

bool nd_options_has(const nd_options *options, nd_option_id id)
{
    return options->value[id] != NULL;
}

static bool accepts(const nd_command_syntax *syntax, nd_option_id id)
{
    for (size_t i = 0; i < syntax->options_count; i++) {
        if (syntax->options[i] == id) {
            return true;
        }
    }
    return false;
}

/* The option that `argument` names, up to '=' for long ones; ND_OPTION_COUNT when there is none. Where two share a name
 * (--anchor), the one that the command takes. */
static nd_option_id find_option(const nd_command_syntax *syntax, const char *argument)
{
    size_t length = strcspn(argument, "=");
    nd_option_id found = ND_OPTION_COUNT;
    for (int id = 0; id < ND_OPTION_COUNT; id++) {
        const option_row *row = &option_table[id];
        bool is_long = strlen(row->name) == length && strncmp(row->name, argument, length) == 0;
        bool is_short = row->short_name != 0 && argument[1] == row->short_name && argument[2] == '\0';
        if ((is_long || is_short) && (found == ND_OPTION_COUNT || accepts(syntax, (nd_option_id)id))) {
            found = (nd_option_id)id;
        }
    }
    return found;
}

static nd_status fail_unknown(const nd_command_syntax *syntax, const char *argument, nd_error *err)
{
    const char *names[ND_OPTION_COUNT];
    for (size_t i = 0; i < syntax->options_count; i++) {
        names[i] = option_table[syntax->options[i]].name;
    }
    char given[64];
    (void)snprintf(given, sizeof given, "%.*s", (int)strcspn(argument, "="), argument);
    const char *nearest = nd_text_nearest(given, names, syntax->options_count);
    if (nearest != NULL) {
        return nd_fail(err, ND_EINVAL, "unknown option '%s'; did you mean '%s'?", given, nearest);
    }
    return nd_fail(err, ND_EINVAL, "unknown option '%s'; `ndplan %s --help` lists them", given, syntax->name);
}

static nd_status check_accepted(const nd_command_syntax *syntax, nd_option_id id, nd_error *err)
{
    if (option_table[id].help == NULL) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "%s is not available in this version (" NDPLAN_VERSION "); `ndplan %s --help` lists what is",
                       option_table[id].name, syntax->name);
    }
    if (!accepts(syntax, id)) {
        return nd_fail(err, ND_EINVAL, "%s does not belong to `ndplan %s`; `ndplan %s --help` lists what does",
                       option_table[id].name, syntax->name, syntax->name);
    }
    return ND_OK;
}

/* Store option argv[*index] and step over its value. */
static nd_status take_option(const nd_command_syntax *syntax, int argc, char *const *argv, int *index, nd_options *out,
                             nd_error *err)
{
    const char *argument = argv[*index];
    nd_option_id id = find_option(syntax, argument);
    if (id == ND_OPTION_COUNT) {
        return fail_unknown(syntax, argument, err);
    }
    ND_TRY(check_accepted(syntax, id, err));
    const option_row *row = &option_table[id];
    const char *equals = strncmp(argument, "--", 2) == 0 ? strchr(argument, '=') : NULL;
    const char *value = "";
    if (row->argument == NULL && equals != NULL) {
        return nd_fail(err, ND_EINVAL, "%s takes no value, got '%s'", row->name, equals + 1);
    }
    if (row->argument != NULL) {
        bool next = *index + 1 < argc && strncmp(argv[*index + 1], "--", 2) != 0;
        value = equals != NULL ? equals + 1 : next ? argv[++*index] : "";
        if (value[0] == '\0') {
            return nd_fail(err, ND_EINVAL, "%s needs a value: %s %s", row->name, row->name, row->argument);
        }
    }
    if (out->value[id] != NULL) {
        return nd_fail(err, ND_EINVAL, "%s is given twice; give it once", row->name);
    }
    out->value[id] = value;
    return ND_OK;
}

static nd_status take_operand(const nd_command_syntax *syntax, const char *argument, nd_options *out, nd_error *err)
{
    if (syntax->operand == NULL) {
        return nd_fail(err, ND_EINVAL, "unexpected argument '%s'; `ndplan %s` takes options only", argument,
                       syntax->name);
    }
    if (out->operand != NULL) {
        return nd_fail(err, ND_EINVAL, "unexpected argument '%s' after '%s'; `ndplan %s` takes one", argument,
                       out->operand, syntax->name);
    }
    out->operand = argument;
    return ND_OK;
}

static bool asks_for_help(int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

nd_status nd_options_parse(const nd_command_syntax *syntax, int argc, char *const *argv, nd_options *out, nd_error *err)
{
    nd_options options = {0};
    if (asks_for_help(argc, argv)) {
        options.value[ND_OPTION_HELP] = "";
        *out = options;
        return ND_OK;
    }
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (!only_operands && argv[i][0] == '-' && argv[i][1] != '\0') {
            ND_TRY(take_option(syntax, argc, argv, &i, &options, err));
        } else {
            ND_TRY(take_operand(syntax, argv[i], &options, err));
        }
    }
    *out = options;
    return ND_OK;
}

void nd_options_help(FILE *stream, const nd_command_syntax *syntax)
{
    fprintf(stream, "Example:\n  %s\n\n%s.\n\nUsage: %s\n\n", syntax->example, syntax->summary, syntax->usage);
    for (size_t i = 0; i < syntax->options_count; i++) {
        const option_row *row = &option_table[syntax->options[i]];
        char left[64];
        char short_form[8] = "";
        if (row->short_name != 0) {
            (void)snprintf(short_form, sizeof short_form, "-%c, ", row->short_name);
        }
        (void)snprintf(left, sizeof left, "%s%s%s%s", short_form, row->name, row->argument != NULL ? " " : "",
                       row->argument != NULL ? row->argument : "");
        fprintf(stream, "  %-26s %s\n", left, row->help);
    }
    if (syntax->notes != NULL) {
        fprintf(stream, "\n%s\n", syntax->notes);
    }
}
