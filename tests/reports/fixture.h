/** A report context and plans with round figures, built by hand: what the reports print can be computed in the head. */
#ifndef ND_TESTS_REPORTS_FIXTURE_H
#define ND_TESTS_REPORTS_FIXTURE_H

#include <string.h>

#include "core/units.h"
#include "reports/report.h"

typedef struct fixture {
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_calibration calibration;
    nd_cost_context cost;
    nd_assumption assumption;
    nd_report_context context;
    nd_plan plans[2];
    nd_plan_list list;
} fixture;

/* 40 of 80 GiB, a step of `step_s` seconds that differs in exposed tp communication only. */
static inline nd_plan fixture_plan(int32_t tp, double step_s)
{
    nd_plan plan = {.layout = nd_layout_single()};
    plan.layout.size[ND_AXIS_TP] = tp;
    plan.layout.size[ND_AXIS_DP_SHARD] = 16 / tp;
    plan.layout.sharding = ND_SHARDING_ZERO3;
    plan.layout.sequence_parallel = tp > 1;
    plan.layout.grad_accum = 4;
    nd_memory_breakdown *memory = &plan.estimate.memory;
    memory->weights_bytes = 10.0 * ND_GIB;
    memory->activations_bytes = 30.0 * ND_GIB;
    memory->allocated_bytes = memory->peak_bytes = 40.0 * ND_GIB;
    memory->peak_low_bytes = 38.0 * ND_GIB;
    memory->peak_high_bytes = 44.0 * ND_GIB;
    memory->capacity_bytes = 80.0 * ND_GIB;
    memory->phase = ND_PHASE_FORWARD;
    nd_time_breakdown *time = &plan.estimate.time;
    time->step_s = step_s;
    time->step_low_s = 0.9 * step_s;
    time->step_high_s = 1.1 * step_s;
    time->compute_s = time->gemm_s = 1.0;
    time->exposed_comm_s = time->exposed_tp_s = step_s - 1.0;
    plan.estimate.tokens_per_s = 4096.0 / step_s;
    plan.estimate.tokens_per_s_per_gpu = 256.0 / step_s;
    plan.estimate.mfu_frac = 0.5;
    plan.estimate.hfu_frac = 0.5;
    plan.estimate.flops_per_token = 48e9;
    plan.estimate.bound_by = "compute";
    return plan;
}

/* The fixture must not move afterwards: it points into itself. */
static inline void fixture_init(fixture *f)
{
    memset(f, 0, sizeof *f);
    (void)strcpy(f->model.name, "toy-8b");
    (void)strcpy(f->cluster.name, "2x8xtoy");
    (void)strcpy(f->cluster.gpu.name, "toy");
    (void)strcpy(f->cluster.gpu.title, "Toy 80GB");
    f->cluster.gpu.memory_bytes = INT64_C(80) << 30;
    f->cluster.nodes = 2;
    f->cluster.gpus_per_node = 8;
    f->cluster.gpus = 16;
    f->train = (nd_train_spec){.seq_len_tokens = 1024, .global_batch_seqs = 64, .base_bits = 16};
    (void)strcpy(f->stack.name, "toy-stack");
    (void)strcpy(f->stack.title, "toys");
    (void)strcpy(f->calibration.name, "toy");
    (void)strcpy(f->calibration.gpu, "toy");
    f->cost = (nd_cost_context){.model = &f->model,
                                .cluster = &f->cluster,
                                .train = &f->train,
                                .stack = &f->stack,
                                .calibration = &f->calibration,
                                .params = {.total = 8000000000, .active = 8000000000}};
    (void)strcpy(f->assumption.option, "--optimizer");
    (void)strcpy(f->assumption.value, "adamw");
    (void)strcpy(f->assumption.why, "the usual choice");
    f->context = (nd_report_context){
        .cost = &f->cost, .assumptions = &f->assumption, .assumptions_count = 1, .style = {80, false}};
    f->plans[0] = fixture_plan(2, 1.25);
    f->plans[1] = fixture_plan(8, 1.5);
    f->list = (nd_plan_list){.plans = f->plans,
                             .count = 2,
                             .rejections = {{"tp-divides-heads", 7, "tp=16 does not divide 8 heads", "tp=8"}},
                             .rejections_count = 1,
                             .searched = 100,
                             .evaluated = 20,
                             .fitting = 10,
                             .elapsed_s = 0.002};
}

#endif
