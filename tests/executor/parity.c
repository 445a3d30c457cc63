#include "tests/executor/parity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/random.h"
#include "program/replay.h"
#include "tests/nd_test.h"

static bool keep_step(void *user, const nd_run_step *step)
{
    parity *p = user;
    p->loss[step->step - 1] = step->loss;
    p->grad_norm[step->step - 1] = step->grad_norm;
    return true;
}

static nd_run *start(const parity *p, const nd_layout *layout, const nd_program_options *program, nd_error *err)
{
    nd_run *run = NULL;
    nd_run_options options = p->options;
    if (program != NULL) {
        options.program = *program;
    }
    if (options.program.chunks.chunks == 0) {
        options.program.chunks = split_of(&p->model, layout, &p->train);
    }
    return nd_run_create(&p->model, layout, &p->train, &options, &run, err) == ND_OK ? run : NULL;
}

void parity_open(parity *p, const char *file, nd_elem real, int64_t global_batch)
{
    nd_error err = {0};
    char path[512];
    memset(p, 0, sizeof *p);
    (void)snprintf(path, sizeof path, "%s/%s", ND_TEST_DATA, file);
    ND_ASSERT_OK(nd_model_load(path, false, &p->model, &err));
    p->train = (nd_train_spec){.seq_len_tokens = 32, .global_batch_seqs = global_batch, .base_bits = 16};
    p->options = nd_run_options_default();
    p->options.program.real = real;
    p->options.program.clip_norm = 0.5;
    p->options.step.lr = 1e-2;
    p->options.init = (nd_init_options){.seed = 7, .std = 0.15, .noise = 0.1};
    p->options.data = (nd_data_options){.seed = 11, .masked_frac = 0.3};
    p->options.checks = true;
    p->options.poison = true;
    p->params = nd_model_params(&p->model).total;
    p->expected = calloc((size_t)p->params, sizeof *p->expected);
    nd_layout one = nd_layout_single();
    one.grad_accum = global_batch;
    nd_run *run = start(p, &one, NULL, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    ND_ASSERT_OK(nd_run_steps(run, PARITY_STEPS, keep_step, p, &err));
    nd_run_read_params(run, p->expected);
    nd_run_free(run);
}

void parity_close(parity *p)
{
    free(p->expected);
    p->expected = NULL;
}

static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static void compare_params(const parity *p, const nd_run *run, parity_difference *out)
{
    double *found = calloc((size_t)p->params, sizeof *found);
    const nd_param_list *params = nd_run_params(run);
    nd_run_read_params(run, found);
    int64_t at = 0;
    for (int32_t i = 0; i < params->count; i++) {
        for (int64_t k = 0; k < params->params[i].rows * params->params[i].cols; k++, at++) {
            double difference = fabs(found[at] - p->expected[at]);
            if (difference > out->param_abs || isnan(difference)) {
                out->param_abs = difference;
                (void)snprintf(out->param, sizeof out->param, "%s", params->params[i].name);
            }
        }
    }
    free(found);
}

static bool peaks_equal(const nd_run *run)
{
    for (int32_t i = 0; i < nd_run_ranks(run); i++) {
        const nd_rank *rank = nd_run_rank(run, i);
        nd_replay replay = nd_program_replay(nd_rank_program(rank));
        nd_rank_measured measured = nd_rank_measured_get(rank);
        if (replay.peak_bytes != measured.peak_bytes ||
            memcmp(replay.class_peak_bytes, measured.peak_class_bytes, sizeof replay.class_peak_bytes) != 0) {
            return false;
        }
    }
    return true;
}

bool parity_compare(const parity *p, const nd_layout *layout, const nd_program_options *program, parity_difference *out,
                    nd_error *err)
{
    parity found = {0};
    nd_run *run = start(p, layout, program, err);
    if (run == NULL) {
        return false;
    }
    *out = (parity_difference){0};
    bool ran = nd_run_steps(run, PARITY_STEPS, keep_step, &found, err) == ND_OK;
    for (int i = 0; i < PARITY_STEPS && ran; i++) {
        out->loss_abs = larger(out->loss_abs, fabs(found.loss[i] - p->loss[i]));
        out->grad_norm_rel = larger(out->grad_norm_rel, fabs(found.grad_norm[i] / p->grad_norm[i] - 1.0));
    }
    if (ran) {
        compare_params(p, run, out);
        out->peaks_equal = peaks_equal(run);
    }
    nd_run_free(run);
    return ran;
}

bool parity_holds(const parity_difference *d)
{
    return d->loss_abs <= 1e-12 && d->param_abs <= 1e-11 && d->grad_norm_rel <= 1e-11;
}

static void fill_accumulation(const parity *p, nd_layout *layout)
{
    int64_t unit = nd_layout_data_ranks(layout) * layout->micro_batch;
    layout->grad_accum = p->train.global_batch_seqs / unit > 0 ? p->train.global_batch_seqs / unit : 1;
}

nd_layout parity_layout(const parity *p, const char *text)
{
    nd_error err = {0};
    nd_layout layout;
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    if (layout.grad_accum == 1) {
        fill_accumulation(p, &layout);
    }
    return layout;
}

static uint64_t draw(uint64_t seed, uint64_t *count, uint64_t choices)
{
    return nd_random_bits(seed, 0, (*count)++) % choices;
}

static void vary(const parity *p, nd_layout *l, uint64_t seed)
{
    uint64_t n = 0;
    static const nd_recompute recomputes[] = {ND_RECOMPUTE_NONE, ND_RECOMPUTE_SELECTIVE, ND_RECOMPUTE_FULL,
                                              ND_RECOMPUTE_EVERY};
    l->sharding = (nd_sharding)draw(seed, &n, ND_SHARDING_COUNT);
    if (l->sharding == ND_SHARDING_NONE && l->size[ND_AXIS_DP_SHARD] > 1) {
        l->sharding = ND_SHARDING_ZERO3;
    }
    l->cp_method = (nd_cp_method)draw(seed, &n, ND_CP_METHOD_COUNT);
    l->recompute = recomputes[draw(seed, &n, 4)];
    l->recompute_every = l->recompute == ND_RECOMPUTE_EVERY ? 2 : 1;
    l->sequence_parallel = l->size[ND_AXIS_TP] > 1 && draw(seed, &n, 2) == 1;
    l->micro_batch = 1 + (int32_t)draw(seed, &n, 2);
    if (l->size[ND_AXIS_PP] > 1) {
        l->schedule = (nd_schedule)draw(seed, &n, ND_SCHEDULE_COUNT);
        l->vpp = l->schedule == ND_SCHEDULE_INTERLEAVED ? 2 : 1;
    }
    int64_t expert_ranks = (int64_t)l->size[ND_AXIS_DP_SHARD] * l->size[ND_AXIS_CP] * l->size[ND_AXIS_TP];
    l->ep = p->model.experts > 0 ? 1 << draw(seed, &n, 4) : 1;
    l->ep = l->ep > expert_ranks ? (int32_t)expert_ranks : l->ep;
    l->split = l->size[ND_AXIS_PP] > 1 && draw(seed, &n, 2) == 1 ? ND_SPLIT_BALANCED : ND_SPLIT_EVEN;
    fill_accumulation(p, l);
}

bool parity_variant(const parity *p, nd_layout *layout, uint64_t seed)
{
    nd_error err = {0};
    for (uint64_t attempt = 0; attempt < 20; attempt++) {
        nd_layout tried = *layout;
        vary(p, &tried, seed * 20 + attempt);
        if (nd_program_supports(&p->model, &tried, &p->train, &err) == ND_OK) {
            *layout = tried;
            return true;
        }
    }
    return false;
}

/* Ranks of the largest meshes, and sequences of the batch. */
static const int32_t ranks_max = 16;

/* The mesh number `index` of all with exponents 0 .. 4 of two on five axes; false when it has more ranks than allowed.
 */
static bool mesh(int index, int32_t ranks, nd_layout *out)
{
    *out = nd_layout_single();
    int64_t product = 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        out->size[axis] = 1 << index % 5;
        product *= out->size[axis];
        index /= 5;
    }
    return product <= ranks;
}

static void check_layout(const parity *p, const nd_layout *layout)
{
    nd_error err = {0};
    parity_difference d = {0};
    char text[256];
    (void)nd_layout_format(layout, text, sizeof text);
    bool ran = parity_compare(p, layout, NULL, &d, &err);
    bool good = ran && parity_holds(&d) && d.peaks_equal;
    if (!good) {
        (void)fprintf(stderr, "%s %s: %s loss %.1e norm %.1e parameter %.1e (%s) peaks %s\n", p->model.name, text,
                      err.message, d.loss_abs, d.grad_norm_rel, d.param_abs, d.param,
                      d.peaks_equal ? "equal" : "differ");
    }
    CU_ASSERT_TRUE(good);
}

static int number_from(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : otherwise;
}

void parity_sweep(const char *file, int least)
{
    parity p;
    int ran = 0;
    int variants = number_from("ND_PARITY_VARIANTS", 1);   /* the target parity_long sets it */
    int ranks = number_from("ND_PARITY_RANKS", ranks_max); /* builds with sanitizers set it */
    parity_open(&p, file, ND_ELEM_F64, ranks_max);
    for (int index = 0; index < 5 * 5 * 5 * 5 * 5; index++) {
        nd_layout base;
        for (int v = 0; v < variants && mesh(index, ranks, &base); v++) {
            nd_layout layout = base;
            if (parity_variant(&p, &layout, (uint64_t)(index * variants + v))) {
                check_layout(&p, &layout);
                ran++;
            }
        }
    }
    CU_ASSERT_TRUE(ran >= (ranks < ranks_max ? 1 : least));
    parity_close(&p);
}
