/** Runs of a made-up machine: steps that the model itself predicts with constants that a fit should find again. */
#ifndef ND_TESTS_COST_MODEL_SYNTHETIC_RUNS_H
#define ND_TESTS_COST_MODEL_SYNTHETIC_RUNS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cost_model/fit_runs.h"
#include "tests/nd_test.h"

enum { ROWS = 36, ROOM = 16384 };

static const char header[] = "id,model,hidden,layers,heads,kv_heads,ffn_hidden,ffn_kind,vocab,gpu,gpus,framework,"
                             "precision,seq_len,micro_batch,global_batch,dp_shard,zero_stage,tp,recompute,step_time_s,"
                             "grade,notes\n";

static const char *const models[] = {
    "llama-3.1-8b,,,,,,,", "House,2048,24,16,16,8192,gelu,51200",
    "Tiny,768,32,12,12,3072,gelu,32000", /* so small that the host decides */
};
static const char *const sources[] = {"AA", "BB", "CC"};

/* Of row `i`: two GPU types, two stacks, three models, three sources, each with each. */
static inline int synthetic_row(char *out, size_t room, int i, double step_s, char grade, const char *notes)
{
    bool megatron = i / 3 % 2 == 1;
    return snprintf(out, room, "%s-%d,%s,%s,8,%s,bf16,%d,1,%d,%d,%d,%d,%s,%.12g,%c,%s\n", sources[i % 3], i,
                    models[i / 3 % 4 % 3], i / 12 == 2 ? "A100-80GB" : "H100-80GB",
                    megatron ? "Megatron-LM" : "Accelerate FSDP2", i % 2 == 0 ? 1024 : 2048, i % 5 == 0 ? 16 : 32,
                    megatron ? 4 : 8, megatron ? 1 : 3, megatron ? 2 : 1, i % 4 == 0 ? "full" : "none", step_s, grade,
                    notes);
}

typedef struct synthetic_table {
    double step_s[ROWS];
    char grade[ROWS];
    const char *notes[ROWS];
} synthetic_table;

/* The table's CSV; free it with nd_csv_free(). */
static inline nd_csv *synthetic_csv(const synthetic_table *t, int rows)
{
    static char text[ROOM];
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    size_t length = strlen(header);
    memcpy(text, header, length);
    for (int i = 0; i < rows; i++) {
        length += (size_t)synthetic_row(text + length, sizeof text - length, i, t->step_s[i], t->grade[i], t->notes[i]);
        CU_ASSERT_TRUE_FATAL(length < sizeof text);
    }
    ND_ASSERT_OK(nd_csv_parse(text, length, "runs.csv", &csv, &err));
    return csv;
}

static inline void synthetic_load(const synthetic_table *t, int rows, nd_run_set *set)
{
    nd_error err = {.message = ""};
    nd_csv *csv = synthetic_csv(t, rows);
    ND_ASSERT_OK(nd_run_set_load(csv, NULL, set, &err));
    CU_ASSERT_EQUAL_FATAL(set->count, rows);
    nd_csv_free(csv);
}

/* What the synthetic machine and software are like. */
static const double h100_gemm = 0.9;  /* of the prior's rate */
static const double a100_gemm = 1.05; /* the same */
static const double fsdp_launch = 2.0;

static inline void synthetic_truth(nd_run_set *set)
{
    for (int32_t i = 0; i < set->calibrations_count; i++) {
        bool h100 = strcmp(set->calibrations[i].gpu, "h100") == 0;
        set->calibrations[i].gemm_frac *= h100 ? h100_gemm : a100_gemm;
    }
    for (int64_t i = 0; i < set->count; i++) {
        bool fsdp = strcmp(set->entries[i].run.stack.name, "torch-fsdp2") == 0;
        set->entries[i].run.stack.launch_s *= fsdp ? fsdp_launch : 1.0;
    }
}

/* Roughly normal with standard deviation 1, the same in every run: twelve uniforms of xorshift64. */
static inline double synthetic_noise(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return sum;
}

/* Measurements of the synthetic machine that scatter by `scatter`. */
static inline synthetic_table synthetic_runs(double scatter)
{
    static nd_run_set set;
    synthetic_table t;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < ROWS; i++) {
        t.step_s[i] = 1.0;
        t.grade[i] = 'A';
        t.notes[i] = "";
    }
    synthetic_load(&t, ROWS, &set);
    synthetic_truth(&set);
    for (int i = 0; i < ROWS; i++) {
        t.step_s[i] = nd_run_set_step_s(&set, i) * exp(scatter * synthetic_noise(&state));
    }
    nd_run_set_free(&set);
    return t;
}

static inline int32_t synthetic_find(const nd_run_constant *constants, int32_t count, bool of_stack, const char *owner,
                                     const char *key)
{
    for (int32_t i = 0; i < count; i++) {
        if (constants[i].of_stack == of_stack && strcmp(constants[i].owner, owner) == 0 &&
            strcmp(constants[i].key, key) == 0) {
            return i;
        }
    }
    return -1;
}

#endif
