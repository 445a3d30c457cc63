#include "cli/mixed_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "core/integers.h"
#include "planner/mixed.h"
#include "reports/mixed_report.h"

/* A default batch is a multiple of all GPU counts only while it is no larger than this many sequences for each GPU. */
enum { BATCH_PER_GPU_MAX = 8 };

/* Everything of one answer: too large for the stack. */
typedef struct mixed_inputs {
    nd_mixed_cluster cluster;
    nd_inputs parts[ND_MIXED_PARTS_MAX];
    nd_assumption assumptions[ND_ASSUMPTIONS_MAX];
    int32_t assumptions_count;
    nd_mixed_plan plan;
} mixed_inputs;

static nd_status check_options(const nd_options *options, const nd_search_options *search, nd_error *err)
{
    static const nd_option_id unmixed[] = {
        ND_OPTION_PARETO, ND_OPTION_TOKENS, ND_OPTION_PRICE, ND_OPTION_MTBF_HOURS, ND_OPTION_CHECKPOINT_INTERVAL,
        ND_OPTION_STORAGE};
    const char *objective = options->value[ND_OPTION_OBJECTIVE];
    if (search->objective != ND_OBJECTIVE_THROUGHPUT || (objective != NULL && strcmp(objective, "throughput") != 0)) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "a cluster of several kinds of node is planned for throughput only; leave --objective out");
    }
    for (size_t i = 0; i < sizeof unmixed / sizeof unmixed[0]; i++) {
        if (nd_options_has(options, unmixed[i])) {
            return nd_fail(err, ND_EUNSUPPORTED,
                           "%s is not available for several kinds of node; leave it out, or name one of them as "
                           "--cluster",
                           nd_option_name(unmixed[i]));
        }
    }
    if (nd_options_has(options, ND_OPTION_ANCHOR)) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "--anchor is one measured step of one kind of GPU; with several kinds leave it out, or name one "
                       "of them as --cluster");
    }
    if (nd_options_has(options, ND_OPTION_ALL)) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "--all ranks layouts of one kind of node; with several kinds leave it out, or name one of them "
                       "as --cluster");
    }
    return ND_OK;
}

static void default_batch(mixed_inputs *all)
{
    int64_t gpus = all->cluster.gpus;
    int64_t multiple = gpus;
    char why[160] = "one sequence for each GPU; yours decides accumulation";
    for (int32_t i = 0; i < all->cluster.parts_count; i++) {
        int64_t part = all->cluster.parts[i].gpus;
        multiple = nd_least_common_multiple(multiple, part);
        if (multiple > gpus * BATCH_PER_GPU_MAX) {
            multiple = gpus;
            break;
        }
    }
    if (multiple > gpus) {
        (void)snprintf(why, sizeof why,
                       "the least that divides over the GPUs of each kind and over all; yours decides accumulation");
    }
    for (int32_t i = 0; i < all->cluster.parts_count; i++) {
        nd_inputs_default_batch(&all->parts[i], multiple, why);
    }
}

/* All kinds compute in one precision: what the oldest can. */
static const char *common_precision(const nd_options *options, const nd_mixed_cluster *cluster)
{
    for (int32_t i = 0; i < cluster->parts_count; i++) {
        if (!(cluster->parts[i].gpu.peak_flops_per_s[ND_DTYPE_BF16] > 0.0)) {
            return options->value[ND_OPTION_PRECISION] != NULL ? options->value[ND_OPTION_PRECISION] : "fp16";
        }
    }
    return options->value[ND_OPTION_PRECISION];
}

static bool same_assumption(const nd_assumption *a, const nd_assumption *b)
{
    return strcmp(a->option, b->option) == 0 && strcmp(a->value, b->value) == 0 && strcmp(a->why, b->why) == 0;
}

static bool has_assumption(const nd_inputs *inputs, const nd_assumption *assumption)
{
    for (int32_t i = 0; i < inputs->assumptions_count; i++) {
        if (same_assumption(&inputs->assumptions[i], assumption)) {
            return true;
        }
    }
    return false;
}

/* Assumptions of all parts, each once; those that do not hold for every part say for which. */
static void join_assumptions(mixed_inputs *all)
{
    int32_t parts = all->cluster.parts_count;
    for (int32_t p = 0; p < parts; p++) {
        for (int32_t i = 0; i < all->parts[p].assumptions_count; i++) {
            nd_assumption assumption = all->parts[p].assumptions[i];
            char where[ND_CLUSTER_NAME_MAX] = "";
            int32_t holders = 0;
            bool said = false;
            for (int32_t other = 0; other < parts; other++) {
                bool holds = has_assumption(&all->parts[other], &assumption);
                size_t used = strlen(where);
                said = said || (holds && other < p);
                holders += holds;
                if (holds) {
                    (void)snprintf(where + used, sizeof where - used, "%s%s", used > 0 ? ", " : "",
                                   all->cluster.parts[other].gpu.name);
                }
            }
            if (said || all->assumptions_count >= ND_ASSUMPTIONS_MAX) {
                continue;
            }
            if (holders < parts) {
                size_t used = strlen(assumption.value);
                (void)snprintf(assumption.value + used, sizeof assumption.value - used, " (%.60s)", where);
            }
            all->assumptions[all->assumptions_count++] = assumption;
        }
    }
}

static nd_status load_parts(const nd_options *options, mixed_inputs *all, nd_error *err)
{
    nd_options common = *options;
    common.value[ND_OPTION_PRECISION] = common_precision(options, &all->cluster);
    for (int32_t i = 0; i < all->cluster.parts_count; i++) {
        ND_TRY(nd_inputs_load_on(&common, &all->cluster.parts[i], &all->parts[i], err));
        if (options->value[ND_OPTION_PRECISION] == NULL && common.value[ND_OPTION_PRECISION] != NULL) {
            nd_inputs_assume(&all->parts[i], "--precision", common.value[ND_OPTION_PRECISION],
                             "one of the kinds of GPU has no bf16");
        }
    }
    if (!all->parts[0].global_batch_given) {
        default_batch(all);
    }
    for (int32_t i = 0; i < all->cluster.parts_count; i++) {
        ND_TRY(nd_inputs_finish(&all->parts[i], err));
        all->parts[i].cost.simulates = false; /* stages on several kinds have a closed form only: like with like */
    }
    join_assumptions(all);
    return ND_OK;
}

static nd_status answer(const nd_options *options, const nd_search_options *search, nd_report_format format,
                        mixed_inputs *all, nd_error *err)
{
    ND_TRY(check_options(options, search, err));
    ND_TRY(load_parts(options, all, err));
    nd_mixed_input input = {.cluster = &all->cluster, .framework = all->parts[0].framework, .options = search};
    for (int32_t i = 0; i < all->cluster.parts_count; i++) {
        input.parts[i] = &all->parts[i].cost;
    }
    nd_search_options controlled = *search;
    input.options = &controlled;
    ND_TRY(nd_progress_start(options, &controlled.control, err));
    nd_status status = nd_mixed_search(&input, &all->plan, err);
    nd_progress_end();
    ND_TRY(status);
    if (all->plan.interrupted) {
        fputs("ndplan: interrupted: the best of what was looked at until then is shown\n", stderr);
    }
    nd_report_context context = nd_inputs_report(options, &all->parts[0]);
    context.mixed = &all->cluster;
    context.assumptions = all->assumptions;
    context.assumptions_count = all->assumptions_count;
    switch (format) {
    case ND_REPORT_JSON:
        nd_json_mixed(stdout, &context, &input, &all->plan);
        return ND_OK;
    case ND_REPORT_CSV:
        nd_csv_mixed(stdout, &all->cluster, &all->plan);
        return ND_OK;
    case ND_REPORT_TEXT:
        break;
    }
    return nd_report_mixed(stdout, &context, &all->plan, search->top, err);
}

nd_status nd_mixed_suggest(const nd_options *options, const nd_search_options *search, nd_report_format format,
                           bool *handled, int *exit_status, nd_error *err)
{
    *handled = false;
    if (!nd_mixed_cluster_is(options->value[ND_OPTION_CLUSTER])) {
        return ND_OK;
    }
    mixed_inputs *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the parts of the cluster");
    }
    nd_status status = nd_mixed_cluster_load(options->value[ND_OPTION_CLUSTER], &all->cluster, err);
    if (status == ND_OK && all->cluster.parts_count > 1) {
        *handled = true;
        status = answer(options, search, format, all, err);
        *exit_status = all->plan.interrupted ? ND_EXIT_INTERRUPTED : all->plan.best >= 0 ? ND_EXIT_DONE : ND_EXIT_NO;
    }
    free(all);
    return status;
}
