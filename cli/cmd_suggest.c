#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/mixed_input.h"
#include "core/text.h"
#include "planner/search.h"
#include "reports/csv_report.h"
#include "reports/json_report.h"
#include "reports/plan_table.h"

static const nd_option_id suggest_options[] = {
    ND_OPTION_MODEL,       ND_OPTION_ASSUME_LLAMA, ND_OPTION_CLUSTER,
    ND_OPTION_SEQ_LEN,     ND_OPTION_GLOBAL_BATCH, ND_OPTION_GLOBAL_BATCH_TOKENS,
    ND_OPTION_PRECISION,   ND_OPTION_OPTIMIZER,    ND_OPTION_LORA,
    ND_OPTION_ATTENTION,   ND_OPTION_FRAMEWORK,    ND_OPTION_STACK,
    ND_OPTION_CALIBRATION, ND_OPTION_ANCHOR,       ND_OPTION_TOP,
    ND_OPTION_OBJECTIVE,   ND_OPTION_PIN,          ND_OPTION_MAX,
    ND_OPTION_ALL,         ND_OPTION_JSON,         ND_OPTION_CSV,
    ND_OPTION_VERBOSE,     ND_OPTION_QUIET,        ND_OPTION_HELP,
};

static const nd_command_syntax suggest_syntax = {
    .name = "suggest",
    .summary = "Search every legal layout of a model on a cluster and rank the best",
    .example = "ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64",
    .usage = "ndplan suggest --model M --cluster C [options]",
    .options = suggest_options,
    .options_count = sizeof suggest_options / sizeof suggest_options[0],
    .notes = "Exit status: 0 something fits, 1 nothing fits, 2 usage or input error.",
};

/* The layout keys that --max understands: those that are degrees. */
static const uint32_t degree_keys = 1u << ND_LAYOUT_KEY_PP | 1u << ND_LAYOUT_KEY_DP_REPLICATE |
                                    1u << ND_LAYOUT_KEY_DP_SHARD | 1u << ND_LAYOUT_KEY_CP | 1u << ND_LAYOUT_KEY_TP |
                                    1u << ND_LAYOUT_KEY_EP | 1u << ND_LAYOUT_KEY_VPP | 1u << ND_LAYOUT_KEY_MICRO_BATCH;

/* A layout string behind an option: the message begins with the option's name. */
static nd_status parse_layout_option(const nd_options *options, nd_option_id id, nd_layout *layout, uint32_t *given,
                                     nd_error *err)
{
    const char *text = options->value[id];
    if (text == NULL) {
        return ND_OK;
    }
    nd_error inner;
    nd_status status = nd_layout_parse(text, layout, given, &inner);
    return status == ND_OK ? ND_OK : nd_fail(err, status, "%s: %.900s", nd_option_name(id), inner.message);
}

static nd_status check_limits(uint32_t limited, nd_error *err)
{
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        if ((limited & ~degree_keys) >> key & 1u) {
            return nd_fail(err, ND_EINVAL, "--max: %s is no degree; --pin %s=VALUE fixes it",
                           nd_layout_key_name((nd_layout_key)key), nd_layout_key_name((nd_layout_key)key));
        }
    }
    return ND_OK;
}

static nd_status parse_objective(const nd_options *options, nd_objective *out, nd_error *err)
{
    static const char *const names[] = {"throughput", "memory"};
    const char *text = options->value[ND_OPTION_OBJECTIVE];
    if (text == NULL || strcmp(text, "throughput") == 0) {
        *out = ND_OBJECTIVE_THROUGHPUT;
        return ND_OK;
    }
    if (strcmp(text, "memory") == 0) {
        *out = ND_OBJECTIVE_MEMORY;
        return ND_OK;
    }
    if (strcmp(text, "cost") == 0 || strcmp(text, "gpus") == 0) {
        return nd_fail(
            err, ND_EUNSUPPORTED,
            "--objective %s is not available in this version (" NDPLAN_VERSION "); throughput and memory are", text);
    }
    const char *nearest = nd_text_nearest(text, names, 2);
    return nd_fail(err, ND_EINVAL, "--objective must be throughput or memory, got '%s'%s%s%s", text,
                   nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "'?" : "");
}

/* A person reads ten plans; a program looks for the one it has in mind. */
enum { MACHINE_TOP = 100 };

static nd_status load_search(const nd_options *options, nd_report_format format, nd_search_options *out, nd_error *err)
{
    nd_search_options search = nd_search_options_default();
    search.top = format == ND_REPORT_TEXT ? search.top : MACHINE_TOP;
    ND_TRY(parse_objective(options, &search.objective, err));
    if (nd_options_has(options, ND_OPTION_TOP)) {
        int64_t top = 0;
        ND_TRY(nd_text_int(options->value[ND_OPTION_TOP], "--top", 1, ND_PLANS_MAX, &top, err));
        search.top = (int32_t)top;
    }
    ND_TRY(parse_layout_option(options, ND_OPTION_PIN, &search.pin, &search.pinned, err));
    ND_TRY(parse_layout_option(options, ND_OPTION_MAX, &search.max, &search.limited, err));
    ND_TRY(check_limits(search.limited, err));
    search.include_unfit = nd_options_has(options, ND_OPTION_ALL);
    *out = search;
    return ND_OK;
}

static nd_status print_plans(const nd_options *options, const nd_inputs *inputs, const nd_plan_list *list,
                             nd_objective objective, nd_report_format format, nd_error *err)
{
    nd_report_context context = {
        .cost = &inputs->cost,
        .framework = inputs->framework,
        .assumptions = inputs->assumptions,
        .assumptions_count = inputs->assumptions_count,
        .style = nd_command_style(),
        .verbose = nd_options_has(options, ND_OPTION_VERBOSE),
        .quiet = nd_options_has(options, ND_OPTION_QUIET),
    };
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_plans(stdout, &context, list);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_plans(stdout, list->plans, list->count);
        if (list->fitting == 0) {
            fputs("ndplan: nothing fits; without --csv the closest layout and the reasons are shown\n", stderr);
        }
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_plans(stdout, &context, list, objective, err);
}

static nd_status run_suggest(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_inputs inputs;
    nd_search_options search;
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(load_search(options, format, &search, err));
    bool handled = false;
    nd_status mixed = nd_mixed_suggest(options, &search, format, &handled, exit_status, err);
    if (mixed != ND_OK || handled) {
        return mixed;
    }
    ND_TRY(nd_inputs_load(options, &inputs, err));
    if (!inputs.global_batch_given) {
        nd_inputs_default_batch(&inputs, inputs.cluster.gpus, "one sequence for each GPU; yours decides accumulation");
    }
    ND_TRY(nd_inputs_finish(&inputs, err));
    ND_TRY(nd_inputs_anchor(options, &inputs, NULL, err));
    nd_plan_list list = {0};
    ND_TRY(nd_search(&inputs.cost, inputs.framework, &search, &list, err));
    nd_status status = print_plans(options, &inputs, &list, search.objective, format, err);
    *exit_status = list.fitting > 0 ? ND_EXIT_DONE : ND_EXIT_NO;
    nd_plan_list_free(&list);
    return status;
}

const nd_command nd_command_suggest = {&suggest_syntax, run_suggest};
