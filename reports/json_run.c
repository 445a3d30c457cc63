#include "reports/json_run.h"

#include <math.h>

#include "cost_model/run_cost.h"

/* What is not known is null. */
static void put_known(nd_json_writer *json, const char *key, bool known, double value)
{
    nd_json_put_double(json, key, known ? value : HUGE_VAL);
}

static void put_save(nd_json_writer *json, const char *key, const nd_save_plan *plan)
{
    nd_json_key(json, key);
    nd_json_begin_object(json);
    nd_json_put_double(json, "blocking_s", plan->blocking_s);
    nd_json_put_double(json, "interval_s", plan->interval_s);
    nd_json_put_double(json, "best_interval_s", plan->best_interval_s);
    nd_json_put_double(json, "goodput_frac", plan->goodput_frac);
    nd_json_end_object(json);
}

static void put_checkpoint(nd_json_writer *json, const nd_run_cost *run)
{
    nd_json_key(json, "checkpoint");
    nd_json_begin_object(json);
    nd_json_put_double(json, "weights_bytes", run->saved.weights_bytes);
    nd_json_put_double(json, "optimizer_bytes", run->saved.optimizer_bytes);
    nd_json_put_double(json, "rank_bytes", run->saved.rank_bytes);
    nd_json_put_double(json, "storage_bytes_per_s", run->storage_bytes_per_s);
    nd_json_put_double(json, "copy_s", run->save.copy_s);
    nd_json_put_double(json, "write_s", run->save.write_s);
    nd_json_put_double(json, "restart_s", run->restart_s);
    put_save(json, "blocking", &run->plain);
    put_save(json, "asynchronous", &run->async);
    nd_json_end_object(json);
}

static void put_price(nd_json_writer *json, const nd_report_context *context)
{
    const nd_cluster_spec *cluster = context->cost->cluster;
    nd_json_key(json, "price");
    if (!(context->run->price_usd_per_gpu_hour > 0.0)) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_double(json, "usd_per_gpu_hour", context->run->price_usd_per_gpu_hour);
    nd_json_put_string(json, "source", cluster->price_source);
    nd_json_put_string(json, "date", cluster->price_date);
    nd_json_end_object(json);
}

void nd_json_put_run(nd_json_writer *json, const nd_report_context *context, const nd_plan *plan)
{
    nd_run_cost run;
    nd_json_key(json, "run");
    if (context->run == NULL) {
        nd_json_null(json);
        return;
    }
    nd_run_cost_of(context->cost, &plan->layout, &plan->estimate, context->run, &run);
    bool tokens = context->run->tokens > 0.0;
    bool price = context->run->price_usd_per_gpu_hour > 0.0;
    bool power = run.gpu_power_w > 0.0;
    nd_json_begin_object(json);
    put_known(json, "tokens", tokens, context->run->tokens);
    put_known(json, "steps", tokens, run.steps);
    put_known(json, "steady_s", tokens, run.steady_s);
    put_known(json, "wall_s", tokens, run.wall_s);
    put_known(json, "wall_low_s", tokens, run.wall_low_s);
    put_known(json, "wall_high_s", tokens, run.wall_high_s);
    nd_json_put_double(json, "goodput_frac", run.plain.goodput_frac);
    nd_json_put_double(json, "mtbf_s", run.mtbf_s);
    put_known(json, "failures", tokens, run.failures);
    put_known(json, "gpu_hours", tokens, run.gpu_hours);
    put_price(json, context);
    put_known(json, "usd", tokens && price, run.usd);
    put_known(json, "usd_low", tokens && price, run.usd_low);
    put_known(json, "usd_high", tokens && price, run.usd_high);
    put_known(json, "usd_per_million_tokens", price, run.usd_per_million_tokens);
    put_known(json, "tokens_per_usd", price, run.tokens_per_usd);
    put_known(json, "gpu_joule", tokens && power, run.gpu_joule);
    put_known(json, "site_joule", tokens && power, run.site_joule);
    put_known(json, "joule_per_token", power, run.joule_per_token);
    put_checkpoint(json, &run);
    nd_json_end_object(json);
}
