/** Command-line options: one table for all commands, and a parser that explains what it refuses.
 *
 * `--seq-len 8192` and `--seq-len=8192` are the same; `--` ends the options. An option may be given once.
 */
#ifndef ND_CLI_OPTIONS_H
#define ND_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

typedef enum nd_option_id {
    ND_OPTION_MODEL,
    ND_OPTION_ASSUME_LLAMA,
    ND_OPTION_CLUSTER,
    ND_OPTION_LAYOUT,
    ND_OPTION_AGAINST,
    ND_OPTION_SEQ_LEN,
    ND_OPTION_GLOBAL_BATCH,
    ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_PRECISION,
    ND_OPTION_OPTIMIZER,
    ND_OPTION_LORA,
    ND_OPTION_ATTENTION,
    ND_OPTION_FRAMEWORK,
    ND_OPTION_STACK,
    ND_OPTION_CALIBRATION,
    ND_OPTION_FROM_RUNS,
    ND_OPTION_MACHINE,
    ND_OPTION_MACHINE_DTYPE,
    ND_OPTION_GPU,
    ND_OPTION_BARE_PRIORS,
    ND_OPTION_SKIP_LEFT_OUT,
    ND_OPTION_OUTPUT,
    ND_OPTION_ANCHOR,
    ND_OPTION_TOP,
    ND_OPTION_OBJECTIVE,
    ND_OPTION_PIN,
    ND_OPTION_MAX,
    ND_OPTION_ALL,
    ND_OPTION_THREADS,
    ND_OPTION_PARETO,
    ND_OPTION_TOKENS,
    ND_OPTION_PRICE,
    ND_OPTION_MTBF_HOURS,
    ND_OPTION_CHECKPOINT_INTERVAL,
    ND_OPTION_STORAGE,
    ND_OPTION_RUNS,
    ND_OPTION_BY,
    ND_OPTION_WORST,
    ND_OPTION_ROWS,
    ND_OPTION_LEAVE_ONE_OUT,
    ND_OPTION_ANCHORED,
    ND_OPTION_MAX_MEDIAN_ERROR,
    ND_OPTION_OF,
    ND_OPTION_OVER,
    ND_OPTION_FROM,
    ND_OPTION_TO,
    ND_OPTION_STEPS,
    ND_OPTION_VALUES,
    ND_OPTION_PLOT,
    ND_OPTION_TRACE,
    ND_OPTION_PLOT_SWEEP,
    ND_OPTION_PROGRAM,
    ND_OPTION_RANK,
    ND_OPTION_PROGRAM_VERBOSE,
    ND_OPTION_RANKS,
    ND_OPTION_RUN_STEPS,
    ND_OPTION_BACKEND,
    ND_OPTION_DTYPE,
    ND_OPTION_DATA,
    ND_OPTION_SEED,
    ND_OPTION_LR,
    ND_OPTION_WARMUP,
    ND_OPTION_CLIP,
    ND_OPTION_MASKED_FRAC,
    ND_OPTION_SAVE,
    ND_OPTION_SAVE_EVERY,
    ND_OPTION_KEEP,
    ND_OPTION_RESUME,
    ND_OPTION_SAVE_WEIGHTS,
    ND_OPTION_VERIFY,
    ND_OPTION_CHECK_NAN,
    ND_OPTION_PROFILE,
    ND_OPTION_RUN_TRACE,
    ND_OPTION_RUN_CALIBRATION,
    ND_OPTION_RUN_VERBOSE,
    ND_OPTION_JSON,
    ND_OPTION_CSV,
    ND_OPTION_VERBOSE,
    ND_OPTION_QUIET,
    ND_OPTION_HELP,
    ND_OPTION_EXPORT, /* from here on: named in the design, not in this version */
    ND_OPTION_DIAGRAM,
    ND_OPTION_HTML,
    ND_OPTION_COUNT
} nd_option_id;

/** What a command accepts. */
typedef struct nd_command_syntax {
    const char *name;            /* "suggest" */
    const char *summary;         /* one line */
    const char *example;         /* a command line that works */
    const char *usage;           /* "ndplan suggest --model M --cluster C [options]" */
    const nd_option_id *options; /* in the order of the help */
    size_t options_count;
    const char *operand; /* name of the one positional argument, or NULL: none */
    const char *notes;   /* printed after the options, or NULL */
} nd_command_syntax;

/** Parsed options: value[id] is NULL when not given, "" for a flag. The texts are those of argv. */
typedef struct nd_options {
    const char *value[ND_OPTION_COUNT];
    const char *operand; /* NULL when not given */
} nd_options;

/** \param[in] argc, argv  the arguments after the command's name
 * \return ND_EINVAL naming the argument, and the nearest option for a typo. With --help among the arguments nothing
 *         else is checked. */
nd_status nd_options_parse(const nd_command_syntax *syntax, int argc, char *const *argv, nd_options *out,
                           nd_error *err) ND_NODISCARD;

bool nd_options_has(const nd_options *options, nd_option_id id);

/** Example first, then usage, options and notes. */
void nd_options_help(FILE *stream, const nd_command_syntax *syntax);

/** "--seq-len"; never NULL. */
const char *nd_option_name(nd_option_id id);

#endif
