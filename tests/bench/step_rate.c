/* What part of a core's sgemm rate a training step reaches.
 *
 * step_rate [--model config.json] [--micro-batch 2] [--steps 3] [--repeats 5] [--csv]
 *
 * One rank, fp32, the whole step: forward and backward pass, clipping, AdamW. Product rates and steps are measured in
 * turns, so that a machine that gets slower for a while does so for both. The core's sgemm rate is the median over the
 * different products of the model's own program, each repeated alone with its operands in the cache, through the same
 * library. The step's rate counts
 *   executed  every multiplication and addition of a matrix product in the program, those of attention's blocks that
 *             the mask throws away included (program/work.h); nothing for norms, activations, softmax, the optimizer
 *   model     the same without what the mask throws away: 6 x weights x tokens and causal attention
 * --csv prints the time of every step instead, the first one too, for pytorch_step.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/stats.h"
#include "executor/run.h"
#include "program/work.h"

enum { SIZES_MAX = 64, STEPS_MAX = 256, SAMPLES_MAX = 64 };

static const int64_t seq_len = 512;
static const double product_s = 0.05; /* one measurement of a product lasts at least so long */

/** A product that the program has, once. */
typedef struct size {
    nd_ins ins;
    int64_t calls; /* in a step */
    double rate[SAMPLES_MAX];
    int64_t samples;
} size;

typedef struct bench {
    const char *model;
    int32_t micro_batch;
    int64_t steps, repeats;
    bool csv;
    nd_run *run;
    size sizes[SIZES_MAX];
    int32_t sizes_count;
    double executed, model_flops; /* of a step */
    double step_s[STEPS_MAX];
    int64_t step_samples;
} bench;

static void die(const nd_error *err)
{
    (void)fprintf(stderr, "step_rate: %s\n", err->message);
    exit(1);
}

static bool same(const nd_ins *a, const nd_ins *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->trans_a == b->trans_a && a->trans_b == b->trans_b &&
           a->accumulate == b->accumulate;
}

static void look_at_program(bench *b)
{
    const nd_program *program = nd_rank_program(nd_run_rank(b->run, 0));
    for (int32_t i = 0; i < program->ins_count; i++) {
        const nd_ins *ins = &program->ins[i];
        if (ins->op == ND_INS_GEMM || ins->op == ND_INS_ATTENTION || ins->op == ND_INS_ATTENTION_GRAD) {
            b->executed += nd_ins_work_of(program, ins, 1).term[1];
        }
        int32_t at = 0;
        while (at < b->sizes_count && !same(&b->sizes[at].ins, ins)) {
            at++;
        }
        if (ins->op == ND_INS_GEMM && at < SIZES_MAX) {
            b->sizes[at].ins = *ins;
            b->sizes[at].calls++;
            b->sizes_count = at == b->sizes_count ? at + 1 : b->sizes_count;
        }
    }
    b->model_flops =
        nd_model_flops_per_token(nd_run_model(b->run), seq_len, ND_FLOPS_CAUSAL) * (double)(seq_len * b->micro_batch);
}

static float *matrix(int64_t elements)
{
    float *x = malloc((size_t)elements * sizeof *x);
    if (x == NULL) {
        (void)fprintf(stderr, "step_rate: out of memory\n");
        exit(1);
    }
    for (int64_t i = 0; i < elements; i++) {
        x[i] = (float)(i % 7) - 3.0F;
    }
    return x;
}

static double product_rate(nd_device *device, const nd_ins *ins)
{
    nd_error err;
    float *a = matrix(ins->m * ins->k);
    float *b = matrix(ins->k * ins->n);
    float *c = matrix(ins->m * ins->n);
    const nd_call call = {.ins = ins, .in = {{a, ND_ELEM_F32}, {b, ND_ELEM_F32}}, .out = {{c, ND_ELEM_F32}}};
    double seconds = 0.0;
    int64_t done = 0;
    for (int64_t i = -1; seconds < product_s; i++) { /* the first call brings the operands near */
        double begin_s = nd_monotonic_s();
        if (nd_backend_cpu()->execute(device, &call, &err) != ND_OK) {
            die(&err);
        }
        seconds += i >= 0 ? nd_monotonic_s() - begin_s : 0.0;
        done += i >= 0;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * (double)ins->m * (double)ins->n * (double)ins->k * (double)done / seconds;
}

static void measure_products(bench *b)
{
    nd_error err;
    nd_device *device = NULL;
    if (nd_backend_cpu()->open(0, ND_ELEM_F32, &device, &err) != ND_OK) {
        die(&err);
    }
    for (int32_t i = 0; i < b->sizes_count; i++) {
        b->sizes[i].rate[b->sizes[i].samples++] = product_rate(device, &b->sizes[i].ins);
    }
    nd_backend_cpu()->close(device);
}

static bool keep_step(void *user, const nd_run_step *step)
{
    bench *b = user;
    b->step_s[b->step_samples++] = step->seconds;
    if (b->csv) {
        (void)printf("%lld,%.4f,%.6f\n", (long long)step->step, step->seconds, step->loss);
        (void)fflush(stdout);
    }
    return true;
}

static void take_steps(bench *b, int64_t count)
{
    nd_error err = {.message = ""};
    if (nd_run_steps(b->run, count, keep_step, b, &err) != ND_OK) {
        die(&err);
    }
}

static double quantile(double *values, int64_t count, double part)
{
    (void)nd_median(values, count); /* sorts */
    return values[(int64_t)(part * (double)(count - 1) + 0.5)];
}

static void report(bench *b)
{
    double rates[SIZES_MAX];
    double best = 0.0;
    (void)printf("      m      n      k  trans  calls  GFLOP/s\n");
    for (int32_t i = 0; i < b->sizes_count; i++) {
        const nd_ins *ins = &b->sizes[i].ins;
        rates[i] = nd_median(b->sizes[i].rate, b->sizes[i].samples);
        best = fmax(best, rates[i]);
        (void)printf("%7lld %6lld %6lld  %s%s%s   %5lld  %7.1f\n", (long long)ins->m, (long long)ins->n,
                     (long long)ins->k, ins->trans_a ? "a" : "-", ins->trans_b ? "b" : "-", ins->accumulate ? "+" : " ",
                     (long long)b->sizes[i].calls, rates[i] * 1e-9);
    }
    double sgemm = nd_median(rates, b->sizes_count);
    double step_s = nd_median(b->step_s, b->step_samples);
    (void)printf("sgemm of this core: median %.1f, best %.1f GFLOP/s over %d products of the model\n", sgemm * 1e-9,
                 best * 1e-9, (int)b->sizes_count);
    (void)printf("step of %lld parameters, %lld tokens: median %.3f s of %lld, 10 %% to 90 %%: %.3f to %.3f s\n",
                 (long long)nd_model_params(nd_run_model(b->run)).total, (long long)(seq_len * b->micro_batch), step_s,
                 (long long)b->step_samples, quantile(b->step_s, b->step_samples, 0.1),
                 quantile(b->step_s, b->step_samples, 0.9));
    (void)printf("executed: %.1f GFLOP a step, %.1f GFLOP/s, %.1f %% of the median and %.1f %% of the best sgemm\n",
                 b->executed * 1e-9, b->executed / step_s * 1e-9, 100.0 * b->executed / step_s / sgemm,
                 100.0 * b->executed / step_s / best);
    (void)printf("model:    %.1f GFLOP a step, %.1f GFLOP/s, %.1f %% of the median and %.1f %% of the best sgemm\n",
                 b->model_flops * 1e-9, b->model_flops / step_s * 1e-9, 100.0 * b->model_flops / step_s / sgemm,
                 100.0 * b->model_flops / step_s / best);
}

static void open_run(bench *b)
{
    nd_error err = {.message = ""};
    nd_model_spec model;
    nd_layout layout = nd_layout_single();
    layout.micro_batch = b->micro_batch;
    const nd_train_spec train = {.seq_len_tokens = seq_len, .global_batch_seqs = b->micro_batch, .base_bits = 16};
    const nd_run_options options = nd_run_options_default();
    if (nd_model_load(b->model, false, &model, &err) != ND_OK ||
        nd_run_create(&model, &layout, &train, &options, &b->run, &err) != ND_OK) {
        die(&err);
    }
}

/* \return the number after the option, or -1 */
static int64_t number_of(int argc, char **argv, const char *option, int64_t otherwise, int64_t most)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0) {
            char *end = NULL;
            long long number = strtoll(argv[i + 1], &end, 10);
            return *end == '\0' && number >= 1 && number <= most ? number : -1;
        }
    }
    return otherwise;
}

int main(int argc, char **argv)
{
    static bench b = {.model = ND_BENCH_DATA "/llama_50m.json"};
    for (int i = 1; i < argc; i++) {
        b.csv = b.csv || strcmp(argv[i], "--csv") == 0;
        b.model = strcmp(argv[i], "--model") == 0 && i + 1 < argc ? argv[i + 1] : b.model;
    }
    b.micro_batch = (int32_t)number_of(argc, argv, "--micro-batch", 2, 64);
    b.steps = number_of(argc, argv, "--steps", 3, 16);
    b.repeats = number_of(argc, argv, "--repeats", 5, STEPS_MAX / 16);
    if (b.micro_batch < 0 || b.steps < 0 || b.repeats < 0) {
        (void)fprintf(stderr,
                      "step_rate [--model FILE] [--micro-batch 1..64] [--steps 1..16] [--repeats 1..16] [--csv]\n");
        return 2;
    }
    open_run(&b);
    look_at_program(&b);
    if (b.csv) {
        (void)printf("# parameters %lld\n# tokens %lld\nstep,seconds,loss\n",
                     (long long)nd_model_params(nd_run_model(b.run)).total, (long long)(seq_len * b.micro_batch));
    }
    take_steps(&b, 1); /* touches all memory */
    b.step_samples = 0;
    for (int64_t i = 0; i < b.repeats; i++) {
        if (!b.csv) {
            measure_products(&b);
        }
        take_steps(&b, b.steps);
    }
    if (!b.csv) {
        report(&b);
    }
    nd_run_free(b.run);
    return 0;
}
