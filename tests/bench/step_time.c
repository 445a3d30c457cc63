/* Predicted and measured step time of 20 layouts on this machine.
 *
 * step_time [--dtype fp32] [--budget-s 10] [--rounds 9]
 *
 * First the machine is measured and its constants fitted (what `ndplan calibrate --machine` does), then the layouts are
 * run, taking turns. Neither the models nor the lengths are those that the constants are fitted to. Layouts with more
 * ranks than processors are left out. Prints CSV, and the median and worst error as comment lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pool.h"
#include "core/stats.h"
#include "cost_model/fit_machine.h"
#include "executor/measure.h"

enum { ROUNDS_MAX = 64 };

static const char *const models[] = {
    "{\"model_type\":\"llama\",\"hidden_size\":320,\"num_hidden_layers\":4,\"num_attention_heads\":10,"
    "\"num_key_value_heads\":2,\"intermediate_size\":864,\"vocab_size\":1500,\"max_position_embeddings\":512,"
    "\"tie_word_embeddings\":false}",
    "{\"model_type\":\"mixtral\",\"hidden_size\":160,\"num_hidden_layers\":4,\"num_attention_heads\":8,"
    "\"num_key_value_heads\":4,\"intermediate_size\":320,\"num_local_experts\":4,\"num_experts_per_tok\":2,"
    "\"vocab_size\":1000,\"sliding_window\":null,\"max_position_embeddings\":512,\"tie_word_embeddings\":false}",
    "{\"model_type\":\"gpt2\",\"n_embd\":224,\"n_layer\":3,\"n_head\":8,\"n_positions\":512,\"vocab_size\":1200}",
};

typedef struct row {
    int model;
    int seq_len;
    const char *layout;
} row;

static const row rows[] = {
    {0, 160, "micro_batch=1"},
    {0, 96, "micro_batch=2,grad_accum=2"},
    {0, 160, "micro_batch=1,grad_accum=2,recompute=full"},
    {0, 160, "dp_replicate=2,micro_batch=1"},
    {0, 96, "dp_shard=2,sharding=zero1,micro_batch=1,grad_accum=2"},
    {0, 160, "dp_shard=2,sharding=zero2,micro_batch=1"},
    {0, 160, "dp_shard=2,sharding=zero3,micro_batch=1,grad_accum=2"},
    {0, 160, "tp=2,micro_batch=1"},
    {0, 160, "tp=2,sp=on,micro_batch=2"},
    {0, 256, "cp=2,cp_method=ring,sharding=zero2"},
    {0, 256, "cp=2,cp_method=allgather,sharding=zero3"},
    {0, 256, "cp=2,cp_method=ulysses,sharding=zero1"},
    {0, 160, "pp=2,micro_batch=1,grad_accum=4"},
    {0, 96, "pp=2,vpp=2,micro_batch=1,grad_accum=4"},
    {0, 96, "pp=2,schedule=zero_bubble,micro_batch=1,grad_accum=4"},
    {1, 128, "micro_batch=1,grad_accum=2"},
    {1, 128, "dp_shard=2,ep=2,sharding=zero2,micro_batch=2"},
    {1, 128, "tp=2,micro_batch=1,grad_accum=2"},
    {2, 192, "micro_batch=2"},
    {2, 192, "tp=2,sp=on,micro_batch=1"},
    {2, 192, "dp_shard=2,sharding=zero3,micro_batch=1,recompute=full"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct timed {
    nd_model_spec model;
    nd_run *run;
    double step_s[ROUNDS_MAX], predicted_s;
} timed;

static nd_status add(void *user, const nd_measured_step *step, nd_error *err)
{
    return nd_machine_fit_add(user, step->programs, step->ranks, step->kv_heads, step->seconds, step->step_s, err);
}

static nd_status calibrate(nd_elem real, double budget_s, nd_machine *machine, nd_error *err)
{
    nd_measure_options options = {.real = real, .budget_s = budget_s, .processors = machine->processors};
    nd_machine_fit *fit = nd_machine_fit_create();
    if (fit == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    nd_status status = nd_measure_machine(&options, NULL, add, fit, err);
    if (status == ND_OK) {
        status = nd_machine_fit_solve(fit, real, machine, err);
    }
    nd_machine_fit_free(fit);
    return status;
}

static bool keep_seconds(void *user, const nd_run_step *step)
{
    *(double *)user = step->seconds;
    return true;
}

static nd_status open_row(const row *r, nd_elem real, const nd_machine *machine, timed *out, nd_error *err)
{
    nd_layout layout;
    nd_run_options options = nd_run_options_default();
    const nd_program *programs[64];
    nd_program_time time;
    options.program.real = real;
    ND_TRY(nd_model_parse(models[r->model], strlen(models[r->model]), "model", false, &out->model, err));
    ND_TRY(nd_layout_parse(r->layout, &layout, NULL, err));
    nd_train_spec train = {.seq_len_tokens = r->seq_len,
                           .global_batch_seqs = nd_layout_data_ranks(&layout) * layout.micro_batch * layout.grad_accum,
                           .optimizer = ND_OPTIMIZER_ADAMW,
                           .base_bits = 16};
    if (nd_layout_ranks(&layout) > machine->processors) {
        return ND_OK;
    }
    ND_TRY(nd_run_create(&out->model, &layout, &train, &options, &out->run, err));
    for (int32_t i = 0; i < nd_run_ranks(out->run); i++) {
        programs[i] = nd_rank_program(nd_run_rank(out->run, i));
    }
    ND_TRY(nd_machine_time(machine, programs, nd_run_ranks(out->run), out->model.kv_heads, &time, err));
    out->predicted_s = time.step_s;
    nd_program_time_free(&time);
    return ND_OK;
}

static nd_status measure(timed *runs, int rounds, nd_error *err)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < ROWS; i++) {
            if (runs[i].run != NULL) {
                ND_TRY(nd_run_steps(runs[i].run, 2, keep_seconds, &runs[i].step_s[round], err));
            }
        }
    }
    return ND_OK;
}

static void print(timed *runs, int rounds)
{
    double errors[ROWS];
    int count = 0;
    printf("ranks,model,seq_len,layout,predicted_s,measured_s,error_frac\n");
    for (int i = 0; i < ROWS; i++) {
        if (runs[i].run == NULL) {
            continue;
        }
        double measured_s = nd_median(runs[i].step_s, rounds);
        double error = runs[i].predicted_s / measured_s - 1.0;
        printf("%d,%s,%d,\"%s\",%.6f,%.6f,%+.3f\n", (int)nd_run_ranks(runs[i].run), runs[i].model.family,
               rows[i].seq_len, rows[i].layout, runs[i].predicted_s, measured_s, error);
        errors[count++] = fabs(error);
    }
    double middle = nd_median(errors, count);
    printf("# %d layouts: median error %.1f %%, worst %.1f %%\n", count, 100.0 * middle, 100.0 * errors[count - 1]);
}

static nd_status bench(nd_elem real, double budget_s, int rounds, timed *runs, nd_error *err)
{
    nd_machine machine = {.processors = nd_pool_processors()};
    ND_TRY(calibrate(real, budget_s, &machine, err));
    for (int i = 0; i < ROWS; i++) {
        ND_TRY(open_row(&rows[i], real, &machine, &runs[i], err));
    }
    ND_TRY(measure(runs, rounds, err));
    print(runs, rounds);
    return ND_OK;
}

int main(int argc, char **argv)
{
    static timed runs[ROWS];
    nd_elem real = ND_ELEM_F32;
    double budget_s = 10.0;
    int rounds = 9;
    nd_error err;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dtype") == 0) {
            real = strcmp(argv[i + 1], "fp64") == 0   ? ND_ELEM_F64
                   : strcmp(argv[i + 1], "bf16") == 0 ? ND_ELEM_BF16
                                                      : ND_ELEM_F32;
        } else if (strcmp(argv[i], "--budget-s") == 0) {
            budget_s = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--rounds") == 0) {
            rounds = (int)strtol(argv[i + 1], NULL, 10);
        }
    }
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    nd_status status = bench(real, budget_s, rounds, runs, &err);
    for (int i = 0; i < ROWS; i++) {
        nd_run_free(runs[i].run);
    }
    if (status != ND_OK) {
        fprintf(stderr, "step_time: %s\n", err.message);
        return 1;
    }
    return 0;
}
