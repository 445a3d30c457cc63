#include "cost_model/run_cost.h"

#include <math.h>
#include <string.h>

static const double hour_s = 3600.0;

/* Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 H100 ("The Llama 3 Herd of Models", 2024). */
static const double llama3_failures_per_gpu_hour = 419.0 / (16384.0 * 54.0 * 24.0);

/* The same report: a file system that sustains 2 TB/s behind a run of 16,384 GPUs, 2,048 nodes. */
static const double llama3_storage_per_node = 1e9;

/* Own assumption: notice, take the bad node out, start the processes. Daly's examples have ten minutes, too. */
static const double restart_default_s = 600.0;

/* A node of 8 H100 (700 W each) drew up to 8.4 kW in training: Latif et al., IEEE Access 13 (2025), 61740-61747. */
static const double node_per_gpu_power = 8400.0 / (8.0 * 700.0);

/* Upper end of what operators of large sites report, 1.07 to 1.2; a survey of all kinds of sites found 1.58 in 2023
 * (Uptime Institute). */
static const double site_per_node_power = 1.2;

nd_run_spec nd_run_spec_default(void)
{
    return (nd_run_spec){
        .failures_per_gpu_hour = llama3_failures_per_gpu_hour,
        .restart_s = restart_default_s,
        .host_factor = node_per_gpu_power,
        .facility_factor = site_per_node_power,
        .storage_per_node_bytes_per_s = llama3_storage_per_node,
    };
}

static nd_save_plan plan_saves(const nd_run_spec *spec, const nd_run_cost *run, double blocking_s, double hidden_s,
                               double step_s)
{
    nd_failure_costs costs = {run->mtbf_s, blocking_s, hidden_s, run->restart_s};
    nd_save_plan plan = {.blocking_s = blocking_s, .best_interval_s = nd_best_interval_s(&costs, step_s)};
    plan.interval_s = spec->checkpoint_interval_s > 0.0 ? spec->checkpoint_interval_s : plan.best_interval_s;
    plan.goodput_frac = nd_goodput_frac(&costs, plan.interval_s);
    return plan;
}

static void set_saves(const nd_cost_context *context, const nd_layout *layout, const nd_run_spec *spec, double step_s,
                      nd_run_cost *run)
{
    double failures_per_s = spec->failures_per_gpu_hour * (double)run->gpus / hour_s;
    run->mtbf_s = failures_per_s > 0.0 ? 1.0 / failures_per_s : HUGE_VAL;
    run->storage_bytes_per_s = spec->storage_bytes_per_s > 0.0
                                   ? spec->storage_bytes_per_s
                                   : spec->storage_per_node_bytes_per_s * (double)run->nodes;
    run->saved = nd_saved_state_of(context, layout);
    run->save = nd_save_times_of(context, &run->saved, run->storage_bytes_per_s);
    run->restart_s = spec->restart_s + run->save.read_s;
    run->plain = plan_saves(spec, run, run->save.write_s, 0.0, step_s);
    run->async = plan_saves(spec, run, run->save.copy_s, run->save.write_s, step_s);
}

/* What follows from the power cap and the price of one hour of all GPUs. */
static void set_rates(const nd_cost_context *context, const nd_run_spec *spec, double steady_tokens_per_s,
                      nd_run_cost *run)
{
    run->tokens_per_s = steady_tokens_per_s * run->plain.goodput_frac;
    run->gpu_power_w = context->cluster->gpu.power_w * (double)run->gpus;
    run->site_power_w = run->gpu_power_w * spec->host_factor * spec->facility_factor;
    run->usd_per_hour = spec->price_usd_per_gpu_hour * (double)run->gpus;
    run->joule_per_token = run->site_power_w / run->tokens_per_s;
    run->usd_per_million_tokens = run->usd_per_hour / hour_s / run->tokens_per_s * 1e6;
    run->tokens_per_usd = run->usd_per_million_tokens > 0.0 ? 1e6 / run->usd_per_million_tokens : 0.0;
}

static void set_totals(const nd_estimate *estimate, double tokens, double step_tokens, nd_run_cost *run)
{
    const nd_time_breakdown *time = &estimate->time;
    run->steps = ceil(tokens / step_tokens);
    run->steady_s = run->steps * time->step_s;
    run->wall_s = run->steady_s / run->plain.goodput_frac;
    run->wall_low_s = run->wall_s * time->step_low_s / time->step_s;
    run->wall_high_s = run->wall_s * time->step_high_s / time->step_s;
    run->failures = run->wall_s / run->mtbf_s;
    run->gpu_hours = run->wall_s / hour_s * (double)run->gpus;
    run->usd = run->usd_per_hour * run->wall_s / hour_s;
    run->usd_low = run->usd_per_hour * run->wall_low_s / hour_s;
    run->usd_high = run->usd_per_hour * run->wall_high_s / hour_s;
    run->gpu_joule = run->gpu_power_w * run->wall_s;
    run->site_joule = run->site_power_w * run->wall_s;
}

void nd_run_cost_of(const nd_cost_context *context, const nd_layout *layout, const nd_estimate *estimate,
                    const nd_run_spec *spec, nd_run_cost *out)
{
    memset(out, 0, sizeof *out);
    int64_t per_node = context->cluster->gpus_per_node;
    double step_tokens = (double)nd_layout_global_batch_seqs(layout) * (double)context->train->seq_len_tokens;
    out->gpus = nd_layout_ranks(layout);
    out->nodes = (out->gpus + per_node - 1) / per_node;
    set_saves(context, layout, spec, estimate->time.step_s, out);
    set_rates(context, spec, step_tokens / estimate->time.step_s, out);
    if (spec->tokens > 0.0) {
        set_totals(estimate, spec->tokens, step_tokens, out);
    }
}
