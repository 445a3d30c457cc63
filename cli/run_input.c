#include "cli/run_input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "reports/format.h"

static const double tokens_max = 1e18, price_max = 1e4, hours_max = 1e9, storage_gb_max = 1e6, interval_max_s = 3.2e7;

typedef struct suffix {
    const char *text;
    double factor;
} suffix;

/* A number and one of the suffixes. On failure `out` is untouched. */
static bool parse_amount(const char *text, const suffix *suffixes, double *out)
{
    char number[64];
    nd_error ignored;
    for (const suffix *s = suffixes; s->text != NULL; s++) {
        size_t length = strlen(text);
        size_t tail = strlen(s->text);
        if (length <= tail || length - tail >= sizeof number || strcmp(text + length - tail, s->text) != 0) {
            continue;
        }
        (void)snprintf(number, sizeof number, "%.*s", (int)(length - tail), text);
        double value = 0.0;
        if (nd_text_double(number, "", -HUGE_VAL, HUGE_VAL, &value, &ignored) == ND_OK) {
            *out = value * s->factor;
            return true;
        }
    }
    return false;
}

/* What the step is worth, so that a run of no step is refused. */
static nd_status load_tokens(const nd_options *options, const nd_inputs *inputs, nd_run_spec *run, nd_error *err)
{
    static const suffix suffixes[] = {{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"k", 1e3}, {"K", 1e3},
                                      {"t", 1e12}, {"b", 1e9}, {"", 1.0},  {NULL, 0.0}};
    const char *text = options->value[ND_OPTION_TOKENS];
    if (text == NULL) {
        return ND_OK;
    }
    double tokens = 0.0;
    if (!parse_amount(text, suffixes, &tokens) || !(tokens >= 1.0) || tokens > tokens_max) {
        return nd_fail(err, ND_EINVAL,
                       "--tokens must be a number from 1 to 1e18, like 15T, 300B or 1.5e12, got '%.60s'", text);
    }
    double step = (double)inputs->train.global_batch_seqs * (double)inputs->train.seq_len_tokens;
    if (tokens < step) {
        return nd_fail(err, ND_EINVAL, "--tokens %.60s is less than one step of %.0f tokens; nearest: %.0f", text, step,
                       step);
    }
    run->tokens = tokens;
    return ND_OK;
}

static nd_status load_price(const nd_options *options, nd_inputs *inputs, nd_run_spec *run, nd_error *err)
{
    const char *text = options->value[ND_OPTION_PRICE];
    nd_error inner;
    if (text != NULL) {
        double price = 0.0;
        if (nd_text_double(text, "--price", 0.0, price_max, &price, &inner) != ND_OK || !(price > 0.0)) {
            return nd_fail(err, ND_EINVAL,
                           "--price must be the dollars of one GPU hour, above 0 and at most 10000, got '%.60s'", text);
        }
        inputs->cluster.price_usd_per_gpu_hour = price;
        inputs->cluster.price_date[0] = '\0';
        (void)snprintf(inputs->cluster.price_source, sizeof inputs->cluster.price_source, "--price");
    }
    run->price_usd_per_gpu_hour = inputs->cluster.price_usd_per_gpu_hour;
    return ND_OK;
}

static nd_status load_failures(const nd_options *options, nd_inputs *inputs, nd_run_spec *run, nd_error *err)
{
    const char *text = options->value[ND_OPTION_MTBF_HOURS];
    double hours = 0.0;
    if (text == NULL) {
        char value[32];
        (void)snprintf(value, sizeof value, "%.0f", 1.0 / run->failures_per_gpu_hour);
        nd_inputs_assume(inputs, "--mtbf-hours", value,
                         "419 interruptions in 54 days on 16,384 GPUs (Llama 3, 2024); inf: no failures");
        return ND_OK;
    }
    if (strcmp(text, "inf") == 0) {
        run->failures_per_gpu_hour = 0.0;
        return ND_OK;
    }
    nd_error inner;
    if (nd_text_double(text, "--mtbf-hours", 0.0, hours_max, &hours, &inner) != ND_OK || hours < 1.0) {
        return nd_fail(err, ND_EINVAL,
                       "--mtbf-hours must be the mean hours between failures of one GPU, 1 to 1e9 or inf, got '%.60s'",
                       text);
    }
    run->failures_per_gpu_hour = 1.0 / hours;
    return ND_OK;
}

static nd_status load_interval(const nd_options *options, nd_inputs *inputs, nd_run_spec *run, nd_error *err)
{
    static const suffix suffixes[] = {{"d", 86400.0}, {"h", 3600.0}, {"m", 60.0}, {"s", 1.0}, {"", 1.0}, {NULL, 0.0}};
    const char *text = options->value[ND_OPTION_CHECKPOINT_INTERVAL];
    if (text == NULL) {
        nd_inputs_assume(inputs, "--checkpoint-interval", "the best",
                         "after Daly (2006), from the failures and the time of a save");
        return ND_OK;
    }
    double seconds = 0.0;
    if (!parse_amount(text, suffixes, &seconds) || !(seconds >= 1.0) || seconds > interval_max_s) {
        return nd_fail(err, ND_EINVAL, "--checkpoint-interval must be 1s to 370d, like 30m or 2h, got '%.60s'", text);
    }
    run->checkpoint_interval_s = seconds;
    return ND_OK;
}

static nd_status load_storage(const nd_options *options, nd_inputs *inputs, nd_run_spec *run, nd_error *err)
{
    const char *text = options->value[ND_OPTION_STORAGE];
    double gb_per_s = 0.0;
    if (text == NULL) {
        nd_inputs_assume(inputs, "--storage-gb-per-s", "1 a node",
                         "as behind Llama 3: 2 TB/s sustained for 2,048 nodes; restarts take 10 minutes (own "
                         "assumption) and the reading of the checkpoint");
        return ND_OK;
    }
    nd_error inner;
    if (nd_text_double(text, "--storage-gb-per-s", 0.0, storage_gb_max, &gb_per_s, &inner) != ND_OK ||
        gb_per_s < 1e-3) {
        return nd_fail(err, ND_EINVAL,
                       "--storage-gb-per-s must be the GB/s of the storage of all nodes, 0.001 to 1e6, got '%.60s'",
                       text);
    }
    run->storage_bytes_per_s = gb_per_s * 1e9;
    return ND_OK;
}

/* Options that say how the run goes, and so need one. */
static nd_status refuse_details(const nd_options *options, nd_error *err)
{
    static const nd_option_id details[] = {ND_OPTION_MTBF_HOURS, ND_OPTION_CHECKPOINT_INTERVAL, ND_OPTION_STORAGE};
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
        if (nd_options_has(options, details[i])) {
            return nd_fail(err, ND_EINVAL,
                           "%s describes a whole run; say how long it is with --tokens, like --tokens 1T",
                           nd_option_name(details[i]));
        }
    }
    return ND_OK;
}

nd_status nd_run_input_load(const nd_options *options, nd_inputs *inputs, bool asked, nd_run_spec *out, bool *given,
                            nd_error *err)
{
    nd_run_spec run = nd_run_spec_default();
    *given = asked || nd_options_has(options, ND_OPTION_TOKENS) || nd_options_has(options, ND_OPTION_PRICE);
    if (*given) {
        ND_TRY(load_tokens(options, inputs, &run, err));
        ND_TRY(load_price(options, inputs, &run, err));
        ND_TRY(load_failures(options, inputs, &run, err));
        ND_TRY(load_interval(options, inputs, &run, err));
        ND_TRY(load_storage(options, inputs, &run, err));
    } else {
        ND_TRY(refuse_details(options, err));
    }
    *out = run;
    return ND_OK;
}

nd_status nd_run_input_check(const nd_inputs *inputs, const nd_run_spec *run, const nd_plan *plan, nd_error *err)
{
    nd_run_cost cost;
    if (!(run->checkpoint_interval_s > 0.0) || !(run->tokens > 0.0)) {
        return ND_OK;
    }
    nd_run_cost_of(&inputs->cost, &plan->layout, &plan->estimate, run, &cost);
    if (run->checkpoint_interval_s <= cost.steady_s) {
        return ND_OK;
    }
    return nd_fail(err, ND_EINVAL,
                   "--checkpoint-interval %s is longer than the whole run of %s, so nothing would be saved; leave it "
                   "out for the best, %s",
                   nd_format_seconds(run->checkpoint_interval_s).text, nd_format_seconds(cost.steady_s).text,
                   nd_format_seconds(fmin(cost.plain.best_interval_s, cost.steady_s)).text);
}
