#include <stdio.h>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/mixed_input.h"
#include "cli/progress.h"
#include "cli/run_input.h"
#include "cli/suggest_input.h"
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
    ND_OPTION_ALL,         ND_OPTION_PARETO,       ND_OPTION_TOKENS,
    ND_OPTION_PRICE,       ND_OPTION_MTBF_HOURS,   ND_OPTION_CHECKPOINT_INTERVAL,
    ND_OPTION_STORAGE,     ND_OPTION_THREADS,      ND_OPTION_JSON,
    ND_OPTION_CSV,         ND_OPTION_VERBOSE,      ND_OPTION_QUIET,
    ND_OPTION_HELP,
};

static const nd_command_syntax suggest_syntax = {
    .name = "suggest",
    .summary = "Search every legal layout of a model on a cluster and rank the best",
    .example = "ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64",
    .usage = "ndplan suggest --model M --cluster C [options]",
    .options = suggest_options,
    .options_count = sizeof suggest_options / sizeof suggest_options[0],
    .notes = "Exit status: 0 something fits, 1 nothing fits, 2 usage or input error, 130 stopped by\nCtrl-C (what is "
             "known is shown).",
};

/* What one run of the command works with. */
typedef struct suggestion {
    nd_inputs inputs;
    nd_suggest_input input;
    nd_run_spec run;
    bool has_run;
    nd_scale_list scale; /* its plans are the answer, also of a search without sizes */
} suggestion;

static nd_status print_plans(const nd_options *options, const suggestion *s, nd_report_format format, nd_error *err)
{
    const nd_plan_list *list = &s->scale.plans;
    nd_report_context context = nd_inputs_report(options, &s->inputs);
    context.run = s->has_run ? &s->run : NULL;
    context.scale = s->input.over_sizes ? &s->scale : NULL;
    context.scale_goal = s->input.goal;
    context.search = &s->input.search;
    context.batch_assumed = !s->inputs.global_batch_given;
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_plans(stdout, &context, list);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_plans_run(stdout, &context, list->plans, list->count);
        if (list->fitting == 0) {
            fputs("ndplan: nothing fits; without --csv the closest layout and the reasons are shown\n", stderr);
        }
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_plans(stdout, &context, list, s->input.search.objective, err);
}

static nd_status load(const nd_options *options, suggestion *s, nd_error *err)
{
    ND_TRY(nd_inputs_load(options, &s->inputs, err));
    if (!s->inputs.global_batch_given) {
        nd_inputs_default_batch(&s->inputs, s->inputs.cluster.gpus,
                                "one sequence for each GPU; yours decides accumulation");
    }
    bool by_cost = s->input.over_sizes && s->input.goal == ND_SCALE_COST;
    ND_TRY(nd_run_input_load(options, &s->inputs, by_cost, &s->run, &s->has_run, err));
    if (by_cost && !(s->run.price_usd_per_gpu_hour > 0.0)) {
        return nd_fail(err, ND_EINVAL,
                       "--objective cost needs a price and none is known for %s; give dollars per GPU hour, like "
                       "--price 2.5",
                       s->inputs.cluster.name);
    }
    ND_TRY(nd_inputs_finish(&s->inputs, err));
    return nd_inputs_anchor(options, &s->inputs, NULL, err);
}

static nd_status search(suggestion *s, nd_error *err)
{
    if (!s->input.over_sizes) {
        return nd_search(&s->inputs.cost, s->inputs.framework, &s->input.search, &s->scale.plans, err);
    }
    nd_scale_options options = {s->input.goal, s->input.search, s->has_run ? &s->run : NULL};
    return nd_scale_search(&s->inputs.cost, s->inputs.framework, &options, &s->scale, err);
}

static nd_status run_suggest(const nd_options *options, int *exit_status, nd_error *err)
{
    suggestion s = {.has_run = false};
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(nd_command_format(options, &format, err));
    ND_TRY(nd_suggest_input_load(options, format, &s.input, err));
    bool handled = false;
    nd_status mixed = nd_mixed_suggest(options, &s.input.search, format, &handled, exit_status, err);
    if (mixed != ND_OK || handled) {
        return mixed;
    }
    ND_TRY(load(options, &s, err));
    ND_TRY(nd_progress_start(options, &s.input.search.control, err));
    nd_status status = search(&s, err);
    nd_progress_end();
    if (status != ND_OK) {
        return status;
    }
    if (s.has_run && s.scale.plans.count > 0) {
        status = nd_run_input_check(&s.inputs, &s.run, &s.scale.plans.plans[0], err);
    }
    if (status == ND_OK) {
        status = print_plans(options, &s, format, err);
    }
    *exit_status = s.scale.plans.interrupted   ? ND_EXIT_INTERRUPTED
                   : s.scale.plans.fitting > 0 ? ND_EXIT_DONE
                                               : ND_EXIT_NO;
    if (s.scale.plans.interrupted) {
        fputs("ndplan: interrupted: the best of what was looked at until then is shown\n", stderr);
    }
    nd_plan_list_free(&s.scale.plans);
    return status;
}

const nd_command nd_command_suggest = {&suggest_syntax, run_suggest};
