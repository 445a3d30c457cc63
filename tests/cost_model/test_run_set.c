/* Tables of runs: skipped rows, shared calibrations, and damaged tables of every kind. */
#include "cost_model/run_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/measured_table.h"
#include "tests/nd_test.h"

static const char table[] =
    "id,source,model,params_b,hidden,layers,heads,kv_heads,ffn_hidden,ffn_kind,vocab,experts,experts_topk,"
    "moe_ffn_hidden,gpu,gpus,gpus_per_node,inter_node_network,framework,precision,seq_len,micro_batch,global_batch,"
    "dp_replicate,dp_shard,zero_stage,tp,sp,cp,pp,vpp,ep,recompute,step_time_s,tflops_per_gpu,flops_convention,notes\n"
    "A-1,s,llama-3.1-8b,,,,,,,,,,,,H100-80GB,16,8,400 Gb/s per GPU,torchtitan FSDP2,bf16,8192,1,32,2,8,3,1,,1,1,1,1,"
    "full,3.5,,,\n"
    "A-2,s,House,,4096,24,32,8,16384,gelu,51200,,,,A100-80GB,8,8,,Megatron-LM,bf16,2048,,64,4,1,1,2,1,1,1,,,,,150,"
    "model-full,\"sharding group: 2 ranks\"\n"
    "B-1,t,DeepSeek-V3-4L,,,4,,,,,,,,,B200-180GB,8,8,single "
    "node,Megatron-LM,bf16,4096,1,16,4,1,1,1,1,1,2,1,4,none,1,,,\n"
    "B-2,t,MoE,,2048,16,16,4,,swiglu,32000,64,8,1024,H100,64,8,4 x 100 Gb/s RoCE per node,NeMo,fp8,4096,2,128,8,1,1,"
    "2,1,2,2,2,4,selective,2,,,\n"
    "B-3,t,gpt,24,12288,,,,,,,,,,V100-32GB,16,4,,Megatron-DeepSpeed "
    "3D,fp16,2048,1,64,1,1,0,4,0,1,4,1,1,full,90,,,FLAG\n";

static void test_rows_that_cannot_be_predicted_are_kept_with_their_reason(void)
{
    static nd_run_set set;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    static const char text[] = "id,model,gpu,gpus,dp_shard\nA-1,llama-3.1-8b,H100,8,8\nA-2,llama-3.1-8b,H100,8,4\n"
                               "A-3,llama-3.1-8b,H100,16,16\nA-4,llama-3.1-8b,A100,16,16\n";
    ND_ASSERT_OK(nd_csv_parse(text, sizeof text - 1, "runs.csv", &csv, &err));
    ND_ASSERT_OK(nd_run_set_load(csv, NULL, &set, &err));
    CU_ASSERT_EQUAL(set.count, 3);
    CU_ASSERT_EQUAL(set.skipped_count, 1);
    CU_ASSERT_STRING_EQUAL(set.skipped[0].id, "A-2");
    CU_ASSERT_STRING_EQUAL(set.skipped[0].source, "A");
    ND_ASSERT_CONTAINS(set.skipped[0].reason, "multiply to 4 ranks");
    CU_ASSERT_EQUAL(set.calibrations_count, 2); /* one of each GPU type */
    CU_ASSERT_EQUAL(set.entries[0].calibration, set.entries[1].calibration);
    CU_ASSERT_NOT_EQUAL(set.entries[0].calibration, set.entries[2].calibration);
    nd_run_set_free(&set);
    nd_csv_free(csv);
}

static void test_a_malformed_cell_fails_the_table(void)
{
    static nd_run_set set;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    static const char text[] = "model,gpu,gpus\nllama-3.1-8b,H100,8\nllama-3.1-8b,H100,eight\n";
    ND_ASSERT_OK(nd_csv_parse(text, sizeof text - 1, "runs.csv", &csv, &err));
    CU_ASSERT_EQUAL(nd_run_set_load(csv, NULL, &set, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "runs.csv:3: gpus");
    nd_csv_free(csv);
}

/* xorshift64: the same damage in every run. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *const inserts[] = {
    "0",
    "-1",
    "1e308",
    "9223372036854775807",
    "99999999999999999999",
    "nan",
    ",",
    "\n",
    "\"",
    "1048576",
    "1099511627776",
    "4 x 100 Gb/s",
    "-3 x Gb/s",
    "Gb/s",
    "sharding group: 0 ranks",
    "FLAG",
    "-0L",
    "-99999L",
    "fp4",
    "\xff\xfe",
    "2",
    "LoRA",
    "",
};

/* Overwrite, drop or insert something at a random place, or put a cell elsewhere. */
static size_t mutate(char *text, size_t length, size_t room, uint64_t *state)
{
    size_t at = next_random(state) % length;
    size_t span = next_random(state) % 12;
    const char *insert = inserts[next_random(state) % (sizeof inserts / sizeof inserts[0])];
    size_t insert_length = strlen(insert);
    switch (next_random(state) % 4) {
    case 0:
        text[at] = (char)next_random(state);
        return length;
    case 1:
        span = span < length - at ? span : length - at - 1;
        memmove(text + at, text + at + span, length - at - span);
        return length - span;
    case 2: { /* replace a whole cell */
        size_t end = at;
        while (at > 0 && text[at - 1] != ',' && text[at - 1] != '\n') {
            at--;
        }
        while (end < length && text[end] != ',' && text[end] != '\n') {
            end++;
        }
        if (length - (end - at) + insert_length < room) {
            memmove(text + at + insert_length, text + end, length - end);
            memcpy(text + at, insert, insert_length);
            return length - (end - at) + insert_length;
        }
        return length;
    }
    default:
        if (length + insert_length < room) {
            memmove(text + at + insert_length, text + at, length - at);
            memcpy(text + at, insert, insert_length);
            return length + insert_length;
        }
        return length;
    }
}

/* Load what may be anything; every run that comes out must be predicted without harm. */
static int64_t try_table(const char *text, size_t length, bool *refused)
{
    static nd_run_set set;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    int64_t predicted = 0;
    nd_status status = nd_csv_parse(text, length, "damaged.csv", &csv, &err);
    status = status == ND_OK ? nd_measured_check_table(csv, &err) : status;
    status = status == ND_OK ? nd_run_set_load(csv, NULL, &set, &err) : status;
    *refused = status != ND_OK;
    if (status == ND_OK) {
        for (int64_t i = 0; i < set.count; i++) {
            nd_estimate estimate;
            nd_run_set_predict(&set, i, &estimate);
            CU_ASSERT_TRUE(estimate.time.step_s > 0.0);
            predicted++;
        }
        nd_run_set_free(&set);
    } else {
        CU_ASSERT_EQUAL(status, ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, "damaged.csv");
        CU_ASSERT_PTR_NULL(strchr(err.message, '\n'));
    }
    nd_csv_free(csv);
    return predicted;
}

static void test_damaged_tables_are_refused_or_predicted_but_never_harm(void)
{
    enum { ROUNDS = 3000, ROOM = 8192 };
    static char text[ROOM];
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    int64_t predicted = 0;
    int64_t refusals = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bool refused = false;
        size_t length = sizeof table - 1;
        memcpy(text, table, length);
        for (uint64_t hits = 1 + next_random(&state) % 4; hits > 0 && length > 1; hits--) {
            length = mutate(text, length, ROOM, &state);
        }
        predicted += try_table(text, length, &refused);
        refusals += refused;
    }
    CU_ASSERT_TRUE(predicted > ROUNDS / 4); /* the damage is not always fatal, so that the code behind is reached */
    CU_ASSERT_TRUE(refusals > ROUNDS / 10);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_rows_that_cannot_be_predicted_are_kept_with_their_reason),
        ND_TEST(test_a_malformed_cell_fails_the_table),
        ND_TEST(test_damaged_tables_are_refused_or_predicted_but_never_harm),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/run_set", cases);
}
