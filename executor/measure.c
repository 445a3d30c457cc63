#include "executor/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/stats.h"
#include "executor/measure_internal.h"
#include "program/program_time.h"

enum { ROUNDS_MIN = 3, ROUNDS_MAX = 64, STEPS = 2 /* in a round; the first brings the caches back */ };

/** A run with what was measured of it. */
typedef struct probed {
    nd_probe probe;
    nd_run *run;
    int32_t ranks;
    const nd_program **programs;
    const double **start_s, **end_s; /* of the last step, by rank */
    double **seconds;                /* [rank][instruction x ROUNDS_MAX + round]; at the end [instruction] */
    double step_s[ROUNDS_MAX];
} probed;

static nd_status open_memory(probed *p, nd_error *err)
{
    size_t ranks = (size_t)p->ranks;
    p->programs = calloc(ranks, sizeof(const nd_program *));
    p->start_s = calloc(ranks, sizeof(const double *));
    p->end_s = calloc(ranks, sizeof(const double *));
    p->seconds = calloc(ranks, sizeof(double *));
    bool enough = p->programs != NULL && p->start_s != NULL && p->end_s != NULL && p->seconds != NULL;
    for (int32_t i = 0; i < p->ranks && enough; i++) {
        nd_rank_measured measured = nd_rank_measured_get(nd_run_rank(p->run, i));
        p->programs[i] = nd_rank_program(nd_run_rank(p->run, i));
        p->start_s[i] = measured.start_s;
        p->end_s[i] = measured.end_s;
        p->seconds[i] = calloc((size_t)p->programs[i]->ins_count * ROUNDS_MAX, sizeof(double));
        enough = p->seconds[i] != NULL;
    }
    return enough ? ND_OK : nd_fail(err, ND_ENOMEM, "out of memory for the times of %d ranks", p->ranks);
}

static nd_status open_probe(const nd_measure_options *options, int32_t index, probed *p, nd_error *err)
{
    ND_TRY(nd_probe_make(index, options->processors, &p->probe, err));
    const nd_layout *layout = &p->probe.layout;
    nd_train_spec train = {.seq_len_tokens = p->probe.seq_len,
                           .global_batch_seqs = nd_layout_data_ranks(layout) * layout->micro_batch * layout->grad_accum,
                           .optimizer = ND_OPTIMIZER_ADAMW,
                           .base_bits = 16};
    nd_run_options run = nd_run_options_default();
    run.program.real = options->real;
    run.profile = true;
    ND_TRY(nd_run_create(&p->probe.model, layout, &train, &run, &p->run, err));
    p->ranks = nd_run_ranks(p->run);
    return open_memory(p, err);
}

static void close_probe(probed *p)
{
    for (int32_t i = 0; i < p->ranks && p->seconds != NULL; i++) {
        free(p->seconds[i]);
    }
    free(p->seconds);
    free(p->programs);
    free(p->start_s);
    free(p->end_s);
    nd_run_free(p->run);
}

static bool keep_seconds(void *user, const nd_run_step *step)
{
    *(double *)user = step->seconds;
    return true;
}

static nd_status take_round(probed *p, int32_t round, nd_error *err)
{
    nd_program_time time;
    ND_TRY(nd_run_steps(p->run, STEPS, keep_seconds, &p->step_s[round], err));
    ND_TRY(nd_program_time_measured(p->programs, p->ranks, p->probe.model.kv_heads, p->start_s, p->end_s, &time, err));
    for (int32_t i = 0; i < p->ranks; i++) {
        const nd_rank_time *rank = &time.rank[i];
        for (int32_t k = 0; k < p->programs[i]->ins_count; k++) {
            p->seconds[i][(int64_t)k * ROUNDS_MAX + round] = rank->end_s[k] - rank->begin_s[k];
        }
    }
    nd_program_time_free(&time);
    return ND_OK;
}

static nd_status hand_over(probed *p, int32_t rounds, nd_measure_sink sink, void *user, nd_error *err)
{
    for (int32_t i = 0; i < p->ranks; i++) {
        for (int32_t k = 0; k < p->programs[i]->ins_count; k++) {
            p->seconds[i][k] = nd_median(&p->seconds[i][(int64_t)k * ROUNDS_MAX], rounds); /* moves to the front */
        }
    }
    nd_measured_step step = {.programs = p->programs,
                             .ranks = p->ranks,
                             .kv_heads = p->probe.model.kv_heads,
                             .seconds = (const double *const *)p->seconds,
                             .step_s = nd_median(p->step_s, rounds),
                             .rounds = rounds};
    return sink(user, &step, err);
}

/* The time or the least number of rounds, whichever ends later. */
static double done_frac(const nd_measure_options *options, int32_t rounds, double used_s)
{
    double of_rounds = (double)rounds / ROUNDS_MIN;
    double of_time = used_s < options->budget_s ? used_s / options->budget_s : 1.0;
    double done = of_rounds < of_time ? of_rounds : of_time;
    return done < 1.0 ? done : 1.0;
}

static nd_status measure(const nd_measure_options *options, probed *probes, int32_t first, int32_t count,
                         nd_measure_progress progress, nd_measure_sink sink, void *user, nd_error *err)
{
    int32_t rounds = 0;
    for (int32_t i = 0; i < count; i++) {
        ND_TRY(open_probe(options, first + i, &probes[i], err));
    }
    double start_s = nd_monotonic_s();
    double used_s = 0.0;
    while (rounds < ROUNDS_MIN || (rounds < ROUNDS_MAX && used_s < options->budget_s)) {
        if (progress != NULL && !progress(user, done_frac(options, rounds, used_s))) {
            return nd_fail(err, ND_EINTERRUPTED, "the measurement was interrupted");
        }
        for (int32_t i = 0; i < count; i++) {
            ND_TRY(take_round(&probes[i], rounds, err));
        }
        rounds++;
        used_s = nd_monotonic_s() - start_s;
    }
    for (int32_t i = 0; i < count; i++) {
        ND_TRY(hand_over(&probes[i], rounds, sink, user, err));
    }
    return ND_OK;
}

nd_status nd_measure_probes(const nd_measure_options *options, int32_t first, int32_t count,
                            nd_measure_progress progress, nd_measure_sink sink, void *user, nd_error *err)
{
    probed *probes = calloc((size_t)count, sizeof *probes);
    if (probes == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory to measure this machine");
    }
    nd_status status = measure(options, probes, first, count, progress, sink, user, err);
    for (int32_t i = 0; i < count; i++) {
        close_probe(&probes[i]);
    }
    free(probes);
    return status;
}

void nd_processor_name(char *out, size_t out_bytes)
{
    static const char key[] = "model name";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)snprintf(out, out_bytes, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) == 0 && value != NULL) {
            value += strspn(value, ": \t");
            (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

nd_status nd_measure_machine(const nd_measure_options *options, nd_measure_progress progress, nd_measure_sink sink,
                             void *user, nd_error *err)
{
    return nd_measure_probes(options, 0, nd_probes_count(options->processors), progress, sink, user, err);
}
