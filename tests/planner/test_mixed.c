#include "planner/mixed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/kernels.h"
#include "planner/mixed_internal.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

/* Parts with everything that a search over them needs. */
typedef struct mixed_fixture {
    nd_mixed_cluster cluster;
    planner_fixture parts[ND_MIXED_PARTS_MAX];
    nd_search_options options;
    nd_mixed_input input;
    nd_mixed_plan plan;
} mixed_fixture;

/* `parts` ends with NULL. Equal parts stay apart here, which nd_mixed_cluster_load() would not do. */
static mixed_fixture *fixture_of(const char *model, const char *const *parts, const char *stack, int64_t batch)
{
    mixed_fixture *f = calloc(1, sizeof *f);
    if (f == NULL) {
        CU_FAIL_FATAL("out of memory");
        abort();
    }
    for (int32_t i = 0; parts[i] != NULL; i++) {
        fixture_init(&f->parts[i], model, parts[i], stack, 4096, batch);
        f->cluster.parts[i] = f->parts[i].cluster;
        f->cluster.gpus += f->parts[i].cluster.gpus;
        f->cluster.parts_count = i + 1;
        f->input.parts[i] = &f->parts[i].context;
    }
    f->options = nd_search_options_default();
    f->input.cluster = &f->cluster;
    f->input.options = &f->options;
    return f;
}

static void pin(mixed_fixture *f, const char *text)
{
    nd_error err;
    ND_ASSERT_OK(nd_layout_parse(text, &f->options.pin, &f->options.pinned, &err));
}

static const nd_mixed_plan *solve(mixed_fixture *f)
{
    nd_error err;
    ND_ASSERT_OK(nd_mixed_search(&f->input, &f->plan, &err));
    return &f->plan;
}

/* Options in the order of nd_mixed_plan. */
static const nd_mixed_option *slowest_of(const mixed_fixture *f)
{
    return &f->plan.options[f->cluster.parts_count];
}

static const nd_mixed_option *stages_of(const mixed_fixture *f)
{
    return &f->plan.options[f->cluster.parts_count + 1];
}

static double best_step_s(const char *model, const char *cluster, int64_t batch)
{
    planner_fixture whole;
    nd_search_options options = nd_search_options_default();
    nd_plan_list list;
    nd_error err;
    double step_s = 0.0;
    options.top = 1;
    fixture_init(&whole, model, cluster, "ndplan", 4096, batch);
    memset(&list, 0, sizeof list);
    ND_ASSERT_OK(nd_search(&whole.context, NULL, &options, &list, &err));
    CU_ASSERT_EQUAL(list.count, 1);
    step_s = list.count == 1 ? list.plans[0].estimate.time.step_s : 0.0;
    nd_plan_list_free(&list);
    return step_s;
}

static void equal_kinds_are_one_cluster_of_them(void)
{
    static const char *const parts[] = {"2x8xh100", "2x8xh100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 32);
    solve(f);
    const nd_mixed_option *slowest = slowest_of(f);
    CU_ASSERT_TRUE(slowest->found);
    /* the same cluster with the same constants: not a digit may differ */
    ND_ASSERT_REL(slowest->time.step_s, best_step_s("llama-3.1-8b", "4x8xh100", 32), 1e-12);
    CU_ASSERT_TRUE(f->plan.options[f->plan.best].time.step_s <= slowest->time.step_s);
    free(f);
}

/* Stages on two equal parts are a pipeline on one cluster: its own estimate must say the same. */
static void stages_on_equal_kinds_cost_what_a_pipeline_costs(void)
{
    static const char *const parts[] = {"2x8xh100", "2x8xh100", NULL};
    static const char *const pins[] = {"pp=2,dp_shard=8,tp=2", "pp=4,dp_shard=8,tp=1", "pp=2,dp_shard=2,cp=2,tp=4",
                                       "pp=4,dp_shard=1,tp=8"};
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 32);
        planner_fixture whole;
        nd_estimate estimate;
        fixture_init(&whole, "llama-3.1-8b", "4x8xh100", "ndplan", 4096, 32);
        pin(f, pins[i]);
        solve(f);
        const nd_mixed_option *stages = stages_of(f);
        CU_ASSERT_TRUE(stages->found);
        CU_ASSERT_EQUAL(stages->idle_gpus, 0);
        nd_estimate_layout(&whole.context, &stages->layout, &estimate);
        /* the same sums in another order */
        ND_ASSERT_REL(stages->time.step_s, estimate.time.step_s, 1e-12);
        free(f);
    }
}

static void another_kind_never_makes_the_answer_slower(void)
{
    static const char *const others[] = {"8xh200", "8xa100", "2x4xrtx3090", "4xl40s", "gb200-nvl72"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *const parts[] = {"8xh100", others[i], NULL};
        mixed_fixture *f = fixture_of(fixture_dense, parts, "ndplan", 64);
        const nd_mixed_plan *plan = solve(f);
        CU_ASSERT_TRUE_FATAL(plan->best >= 0);
        for (int32_t o = 0; o < plan->count; o++) {
            if (plan->options[o].found) {
                CU_ASSERT_TRUE(plan->options[plan->best].time.step_s <= plan->options[o].time.step_s * (1.0 + 1e-9));
            }
        }
        CU_ASSERT_EQUAL(plan->options[0].way, ND_MIXED_ALONE);
        CU_ASSERT_TRUE(plan->options[0].found);
        free(f);
    }
}

static void every_stage_fits_its_own_gpu(void)
{
    static const char *const parts[] = {"2x8xh100", "4x8xa100-40gb", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-70b", parts, "ndplan", 96);
    const nd_mixed_plan *plan = solve(f);
    int32_t found = 0;
    for (int32_t o = f->cluster.parts_count + 1; o < plan->count; o++) {
        const nd_mixed_option *option = &plan->options[o];
        int64_t layers = 0;
        int64_t gpus = 0;
        found += option->found;
        for (int32_t g = 0; g < option->groups_count; g++) {
            const nd_mixed_group *group = &option->groups[g];
            const nd_cluster_spec *part = &f->cluster.parts[group->part];
            CU_ASSERT_EQUAL((int64_t)group->memory.capacity_bytes, part->gpu.memory_bytes);
            CU_ASSERT_TRUE(group->memory.peak_bytes <= (double)part->gpu.memory_bytes);
            CU_ASSERT_TRUE(group->memory.peak_bytes > 0.25 * (double)part->gpu.memory_bytes);
            CU_ASSERT_TRUE(group->gpus <= part->gpus);
            layers += group->layers;
            gpus += group->gpus;
        }
        CU_ASSERT_EQUAL(layers, f->parts[0].model.layers);
        CU_ASSERT_EQUAL(gpus, option->gpus);
        CU_ASSERT_EQUAL(option->gpus + option->idle_gpus, f->cluster.gpus);
        CU_ASSERT_EQUAL(nd_layout_ranks(&option->layout), option->gpus);
    }
    CU_ASSERT_EQUAL(found, 2); /* both orders */
    free(f);
}

static void the_faster_kind_gets_more_layers_a_stage(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 64);
    const nd_mixed_plan *plan = solve(f);
    const nd_mixed_option *stages = stages_of(f);
    CU_ASSERT_EQUAL(plan->best, f->cluster.parts_count + 1);
    CU_ASSERT_EQUAL(stages->groups_count, 2);
    for (int32_t g = 0; g < stages->groups_count; g++) {
        const nd_mixed_group *group = &stages->groups[g];
        const nd_mixed_group *other = &stages->groups[1 - g];
        if (group->part == 0) {
            CU_ASSERT_TRUE(group->layers * other->stages > other->layers * group->stages);
        }
    }
    free(f);
}

static void pins_hold_for_stages_too(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 64);
    pin(f, "tp=4,recompute=full,micro_batch=2");
    f->options.max.size[ND_AXIS_PP] = 3;
    f->options.limited = 1u << ND_LAYOUT_KEY_PP;
    solve(f);
    const nd_mixed_option *stages = stages_of(f);
    CU_ASSERT_TRUE(stages->found);
    CU_ASSERT_EQUAL(stages->layout.size[ND_AXIS_TP], 4);
    CU_ASSERT_EQUAL(stages->layout.recompute, ND_RECOMPUTE_FULL);
    CU_ASSERT_EQUAL(stages->layout.micro_batch, 2);
    CU_ASSERT_TRUE(stages->layout.size[ND_AXIS_PP] <= 3);
    CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&stages->layout), 64);
    free(f);
    f = fixture_of("llama-3.1-8b", parts, "ndplan", 64);
    pin(f, "pp=1");
    solve(f);
    CU_ASSERT_FALSE(stages_of(f)->found);
    ND_ASSERT_CONTAINS(stages_of(f)->why_not, "pins");
    free(f);
}

static void pins_that_no_way_can_meet_are_refused(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 64);
    nd_error err;
    pin(f, "tp=3");
    memset(&f->plan, 7, sizeof f->plan);
    CU_ASSERT_EQUAL(nd_mixed_search(&f->input, &f->plan, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "tp=3");
    CU_ASSERT_EQUAL(f->plan.count, 0x07070707); /* untouched */
    free(f);
}

static void software_without_pipelines_says_so(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    mixed_fixture *f = fixture_of(fixture_dense, parts, "torch-ddp", 64);
    const nd_mixed_plan *plan = solve(f);
    CU_ASSERT_FALSE(stages_of(f)->found);
    ND_ASSERT_CONTAINS(stages_of(f)->why_not, "no pipeline parallelism");
    CU_ASSERT_TRUE(plan->best >= 0);
    free(f);
}

static void that_nothing_fits_is_an_answer(void)
{
    static const char *const parts[] = {"h100", "a100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-70b", parts, "ndplan", 2);
    const nd_mixed_plan *plan = solve(f);
    CU_ASSERT_EQUAL(plan->best, -1);
    for (int32_t o = 0; o < plan->count; o++) {
        CU_ASSERT_FALSE(plan->options[o].found);
        CU_ASSERT_TRUE(plan->options[o].why_not[0] != '\0');
    }
    CU_ASSERT_TRUE(plan->stages_unfit > 0);
    free(f);
}

/* Counts calls, checks that progress never goes back, and stops at `stop_frac`. */
typedef struct watch {
    int64_t calls;
    double last_frac, stop_frac;
} watch;

static bool look_on(void *data, double done_frac)
{
    watch *w = data;
    CU_ASSERT_TRUE(done_frac >= w->last_frac && done_frac <= 1.0);
    w->calls++;
    w->last_frac = done_frac;
    return done_frac < w->stop_frac;
}

static void progress_is_told_and_stops_the_search(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 16);
    watch all = {.stop_frac = 2.0};
    f->options.control.progress = look_on;
    f->options.control.data = &all;
    solve(f);
    CU_ASSERT_FALSE(f->plan.interrupted);
    CU_ASSERT_TRUE(all.calls > 100 && all.last_frac > 0.8);
    int64_t searched = f->plan.searched;

    watch some = {.stop_frac = 0.2}; /* the first part alone is done, the second in work */
    f->options.control.data = &some;
    memset(&f->plan, 0, sizeof f->plan);
    solve(f);
    CU_ASSERT_TRUE(f->plan.interrupted);
    CU_ASSERT_TRUE(f->plan.searched < searched);
    CU_ASSERT_TRUE(f->plan.options[0].found);
    CU_ASSERT_FALSE(stages_of(f)->found);
    CU_ASSERT_PTR_NOT_NULL(strstr(stages_of(f)->why_not, "interrupted"));
    CU_ASSERT_TRUE(f->plan.best >= 0);
    free(f);
}

/* What is given up early on the way is never the best: the best of all is the best of the parts of the space. */
static void bounds_lose_nothing(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", "4xl40s", NULL};
    mixed_fixture *f = fixture_of(fixture_dense, parts, "ndplan", 16);
    pin(f, "cp=1,recompute=none");
    solve(f);
    double whole_s = stages_of(f)->time.step_s;
    double best_s = HUGE_VAL;
    CU_ASSERT_TRUE(stages_of(f)->found);
    for (int32_t tp = 1; tp <= 8; tp *= 2) {
        for (int32_t dp = 1; dp <= 16; dp *= 2) {
            for (int32_t batch = 1; batch <= 16; batch *= 2) {
                for (int32_t pp = 2; pp <= 12; pp++) {
                    char text[160];
                    (void)snprintf(text, sizeof text, "cp=1,recompute=none,tp=%d,dp_shard=%d,micro_batch=%d,pp=%d",
                                   (int)tp, (int)dp, (int)batch, (int)pp);
                    pin(f, text);
                    memset(&f->plan, 0, sizeof f->plan);
                    nd_error err;
                    if (nd_mixed_search(&f->input, &f->plan, &err) == ND_OK && stages_of(f)->found) {
                        best_s = fmin(best_s, stages_of(f)->time.step_s);
                    }
                }
            }
        }
    }
    /* dp_replicate is left out above, and only helps where sharding is slower */
    CU_ASSERT_TRUE(whole_s <= best_s * (1.0 + 1e-12));
    CU_ASSERT_TRUE(best_s <= 1.1 * whole_s);
    free(f);
}

static void a_slow_network_between_the_kinds_costs_time(void)
{
    static const char *const parts[] = {"8xh100", "8xa100", NULL};
    double step_s[2] = {0.0, 0.0};
    for (int slow = 0; slow < 2; slow++) {
        mixed_fixture *f = fixture_of("llama-3.1-8b", parts, "ndplan", 64);
        f->cluster.between_stated = slow == 1;
        (void)strcpy(f->cluster.between_network, "tcp");
        f->cluster.between = f->cluster.parts[1].facts;
        f->cluster.between.nics_per_node = 1;
        f->cluster.between.nic_bytes_per_s = 1.25e9; /* 10 Gb/s */
        pin(f, "pp=2,dp_shard=8");
        solve(f);
        CU_ASSERT_TRUE(stages_of(f)->found);
        step_s[slow] = stages_of(f)->time.step_s;
        free(f);
    }
    CU_ASSERT_TRUE(step_s[1] > 1.05 * step_s[0]);
}

static void the_slowest_has_no_rate_above_any_part(void)
{
    static const char *const sets[][4] = {
        {"8xh100", "8xa100", NULL}, {"8xh100", "8xl40s", NULL}, {"8xb200", "8xh20", "8xa100", NULL}};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        mixed_fixture *f = fixture_of("llama-3.1-8b", sets[s], "ndplan", 64);
        nd_cluster_spec cluster;
        nd_calibration calibration;
        nd_train_spec train;
        nd_time_uncertainty uncertainty;
        nd_error err;
        ND_ASSERT_OK(nd_mixed_cluster_slowest(&f->cluster, &cluster, NULL, &err));
        nd_mixed_slowest_constants(&f->input, &cluster, &calibration, &train, &uncertainty);
        nd_kernel_model slowest = nd_kernel_model_make(&cluster.gpu, &calibration, &train);
        double least_matrix = HUGE_VAL;
        for (int32_t i = 0; i < f->cluster.parts_count; i++) {
            const planner_fixture *part = &f->parts[i];
            nd_kernel_model model = nd_kernel_model_make(&part->cluster.gpu, &part->calibration, &part->train);
            double sustained = model.matrix.burst_flops_per_s / (1.0 + model.matrix.power_excess);
            least_matrix = fmin(least_matrix, sustained);
            CU_ASSERT_TRUE(slowest.attention_flops_per_s <= model.attention_flops_per_s * (1.0 + 1e-12));
            CU_ASSERT_TRUE(slowest.hbm_bytes_per_s <= model.hbm_bytes_per_s * (1.0 + 1e-12));
            CU_ASSERT_TRUE(slowest.gemm_hbm_bytes_per_s <= model.gemm_hbm_bytes_per_s * (1.0 + 1e-12));
        }
        ND_ASSERT_REL(slowest.matrix.burst_flops_per_s / (1.0 + slowest.matrix.power_excess), least_matrix, 1e-12);
        free(f);
    }
}

/* Numbers that look random and are the same everywhere. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The slowest stage of a division, and all stages together. */
static double pace_of(const nd_model_spec *model, const nd_mixed_work *work, const nd_mixed_line *line,
                      const int32_t *layers, double *sum_s)
{
    double pace_s = 0.0;
    int64_t next = 0;
    *sum_s = 0.0;
    for (int32_t s = 0; s < line->total; s++) {
        int32_t part = line->part_of[s];
        double stage_s = (s == 0 ? work->embedding_s[part] : 0.0) + (s == line->total - 1 ? work->head_s[part] : 0.0);
        for (int32_t i = 0; i < layers[s]; i++) {
            stage_s += work->layer_s[part][model->kind_of_layer[next++]];
        }
        pace_s = fmax(pace_s, stage_s);
        *sum_s += stage_s;
    }
    return pace_s;
}

/* Least pace over all contiguous divisions; checks the bound of the search on every one of them. */
static double brute_force(const nd_model_spec *model, const nd_mixed_work *work, const nd_mixed_line *line,
                          const int32_t *most, int32_t stage, int64_t left, int32_t *layers)
{
    double best_s = HUGE_VAL;
    if (stage == line->total - 1) {
        double sum_s = 0.0;
        layers[stage] = (int32_t)left;
        if (left > most[stage]) {
            return best_s;
        }
        best_s = pace_of(model, work, line, layers, &sum_s);
        for (int32_t micro_batches = 1; micro_batches < 100; micro_batches *= 3) {
            double step_s = ((double)micro_batches - 1.0) * best_s + sum_s;
            CU_ASSERT_TRUE(nd_mixed_least_s(work, line, (double)micro_batches) <= step_s * (1.0 + 1e-12));
        }
        return best_s;
    }
    for (int64_t take = 1; take <= left - (line->total - 1 - stage) && take <= most[stage]; take++) {
        layers[stage] = (int32_t)take;
        best_s = fmin(best_s, brute_force(model, work, line, most, stage + 1, left - take, layers));
    }
    return best_s;
}

static void random_case(uint32_t *state, nd_model_spec *model, nd_mixed_work *work, nd_mixed_line *line, int32_t *most)
{
    memset(model, 0, sizeof *model);
    memset(work, 0, sizeof *work);
    memset(line, 0, sizeof *line);
    model->layers = 4 + next_random(state) % 7;
    model->layer_kinds_count = 1 + next_random(state) % 2;
    for (int64_t i = 0; i < model->layers; i++) {
        int kind = model->layer_kinds_count == 2 && i >= 2;
        model->kind_of_layer[i] = (uint8_t)kind;
        model->layer_kinds[kind].layers++;
    }
    line->groups = 2 + (int32_t)(next_random(state) % 2);
    for (int32_t p = 0; p < line->groups; p++) {
        line->part[p] = line->groups - 1 - p;
        line->stages[p] = 1 + (int32_t)(next_random(state) % (line->groups == 2 ? 2 : 1));
        work->embedding_s[p] = 0.1 * (next_random(state) % 10);
        work->head_s[p] = 0.3 * (next_random(state) % 10);
        for (int kind = 0; kind < 2; kind++) {
            work->layer_s[p][kind] = 0.5 + 0.25 * (next_random(state) % 12);
        }
    }
    nd_mixed_line_finish(line);
    nd_mixed_work_finish(model, line->groups, work);
    for (int32_t s = 0; s < line->total; s++) {
        most[s] = next_random(state) % 3 == 0 ? 1 + (int32_t)(next_random(state) % 4) : (int32_t)model->layers;
    }
}

static void divisions_are_the_best_of_all(void)
{
    uint32_t state = 1;
    int32_t possible = 0;
    for (int i = 0; i < 400; i++) {
        nd_model_spec model;
        nd_mixed_work work;
        nd_mixed_line line;
        int32_t most[ND_MIXED_STAGES_MAX];
        int32_t layers[ND_MIXED_STAGES_MAX];
        int32_t tried[ND_MIXED_STAGES_MAX];
        double sum_s = 0.0;
        random_case(&state, &model, &work, &line, most);
        double best_s = brute_force(&model, &work, &line, most, 0, model.layers, tried);
        bool divided = nd_mixed_divide(&model, &work, &line, most, 1e9, layers);
        CU_ASSERT_EQUAL(divided, isfinite(best_s));
        if (!divided) {
            continue;
        }
        possible++;
        int64_t total = 0;
        for (int32_t s = 0; s < line.total; s++) {
            CU_ASSERT_TRUE(layers[s] >= 1 && layers[s] <= most[s]);
            total += layers[s];
        }
        CU_ASSERT_EQUAL(total, model.layers);
        /* the pace is found to 1e-7 of itself */
        ND_ASSERT_REL(pace_of(&model, &work, &line, layers, &sum_s), best_s, 2e-7);
        CU_ASSERT_FALSE(nd_mixed_divide(&model, &work, &line, most, 0.999 * best_s, layers));
    }
    CU_ASSERT_TRUE(possible > 200);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(equal_kinds_are_one_cluster_of_them),
        ND_TEST(stages_on_equal_kinds_cost_what_a_pipeline_costs),
        ND_TEST(another_kind_never_makes_the_answer_slower),
        ND_TEST(every_stage_fits_its_own_gpu),
        ND_TEST(the_faster_kind_gets_more_layers_a_stage),
        ND_TEST(pins_hold_for_stages_too),
        ND_TEST(pins_that_no_way_can_meet_are_refused),
        ND_TEST(software_without_pipelines_says_so),
        ND_TEST(that_nothing_fits_is_an_answer),
        ND_TEST(progress_is_told_and_stops_the_search),
        ND_TEST(bounds_lose_nothing),
        ND_TEST(a_slow_network_between_the_kinds_costs_time),
        ND_TEST(the_slowest_has_no_rate_above_any_part),
        ND_TEST(divisions_are_the_best_of_all),
        {NULL, NULL},
    };
    return nd_test_main("mixed", cases);
}
