#include "program/traffic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "executor/run.h"
#include "tests/nd_test.h"

enum { SEQ_LEN = 32, BATCH = 8, STEPS = 2 };

/* What all ranks said and counted, in STEPS steps. */
typedef struct both {
    nd_traffic said, counted;
} both;

static void add_rank(const nd_run *run, int32_t rank, int64_t kv_heads, both *sum, both *own)
{
    const nd_comm_counters *counters = nd_run_counters(run, rank);
    memset(own, 0, sizeof *own);
    for (int step = 0; step < STEPS; step++) {
        nd_program_traffic(nd_rank_program(nd_run_rank(run, rank)), kv_heads, &own->said);
        nd_program_traffic(nd_rank_program(nd_run_rank(run, rank)), kv_heads, &sum->said);
    }
    for (int group = 0; group < ND_MEMBERS_COUNT; group++) {
        for (int op = 0; op < ND_INS_COUNT; op++) {
            const nd_comm_count *count = &counters->count[group][op];
            own->counted.count[group][op] = (nd_traffic_count){count->calls, count->bytes};
            sum->counted.count[group][op].calls += count->calls;
            sum->counted.count[group][op].bytes += count->bytes;
        }
    }
}

/* \return operations of groups that communicated */
static int expect_equal(const both *b, bool all_ranks, const char *what)
{
    int used = 0;
    for (int group = 0; group < ND_MEMBERS_COUNT; group++) {
        for (int op = 0; op < ND_INS_COUNT; op++) {
            nd_traffic_count said = b->said.count[group][op];
            nd_traffic_count counted = b->counted.count[group][op];
            bool routed = nd_traffic_is_routed((nd_ins_op)op) && !all_ranks;
            bool equal = said.calls == counted.calls && (routed || said.bytes == counted.bytes);
            if (!equal) {
                printf("%s: %s %s: the program says %" PRId64 " calls, %" PRId64 " bytes; counted %" PRId64 ", %" PRId64
                       "\n",
                       what, nd_members_name((nd_members_kind)group), nd_ins_name((nd_ins_op)op), said.calls,
                       said.bytes, counted.calls, counted.bytes);
            }
            CU_ASSERT_TRUE(equal);
            used += said.calls > 0;
        }
    }
    return used;
}

/* \return operations of groups that communicated */
static int run_layout(const char *model_file, const char *layout_text, both *sum)
{
    char path[512];
    nd_error err;
    nd_model_spec model;
    nd_layout layout;
    nd_run *run = NULL;
    nd_train_spec train = {.seq_len_tokens = SEQ_LEN, .global_batch_seqs = BATCH, .base_bits = 16};
    (void)snprintf(path, sizeof path, "%s/%s.json", ND_TEST_MODELS, model_file);
    ND_ASSERT_OK(nd_model_load(path, false, &model, &err));
    ND_ASSERT_OK(nd_layout_parse(layout_text, &layout, NULL, &err));
    layout.grad_accum = BATCH / (nd_layout_data_ranks(&layout) * layout.micro_batch);
    nd_run_options options = nd_run_options_default();
    options.checks = true;
    ND_ASSERT_OK(nd_run_create(&model, &layout, &train, &options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    ND_ASSERT_OK(nd_run_steps(run, STEPS, NULL, NULL, &err));
    memset(sum, 0, sizeof *sum);
    for (int32_t rank = 0; rank < nd_run_ranks(run); rank++) {
        both own;
        add_rank(run, rank, model.kv_heads, sum, &own);
        (void)expect_equal(&own, false, layout_text);
    }
    nd_run_free(run);
    return expect_equal(sum, true, layout_text);
}

static void the_bytes_counted_are_those_of_the_program(void)
{
    static const struct {
        const char *model, *layout;
        int operations; /* of groups: a layout that communicates less than thought proves less */
    } cases[] = {
        {"dense", "dp_replicate=4", 2},
        {"dense", "dp_shard=4,sharding=zero1", 3},
        {"dense", "dp_shard=4,sharding=zero2,micro_batch=2", 3},
        {"dense", "dp_shard=2,cp=2,sharding=zero3", 4},
        {"dense", "dp_replicate=2,dp_shard=2,cp=2,tp=2,sp=on,sharding=zero3", 6},
        {"dense", "tp=4", 2},
        {"gemma3", "cp=2,tp=2,cp_method=allgather,sharding=zero3", 4},
        {"tied", "pp=2,dp_shard=2,sharding=zero1", 5},
        {"dense", "pp=2,vpp=2,schedule=interleaved,tp=2,sp=on", 5},
        {"dense", "pp=4,schedule=zero_bubble,recompute=full", 3},
        {"dense", "pp=4,schedule=gpipe,recompute=full", 3},
        {"gpt2", "dp_shard=2,cp=2,cp_method=ulysses,sharding=zero3", 4},
        {"moe", "dp_shard=4,ep=4,sharding=zero3", 5},
        {"mixtral", "dp_shard=2,tp=2,ep=2,sp=on,sharding=zero2", 6},
        {"mla", "dp_replicate=2,dp_shard=2,tp=2,ep=4,sp=on,recompute=full,sharding=zero3", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        both sum;
        int operations = run_layout(cases[i].model, cases[i].layout, &sum);
        if (operations < cases[i].operations) {
            printf("%s %s: %d operations\n", cases[i].model, cases[i].layout, operations);
        }
        CU_ASSERT_TRUE(operations >= cases[i].operations);
    }
}

static void one_rank_communicates_nothing(void)
{
    both sum;
    CU_ASSERT_EQUAL(run_layout("dense", "micro_batch=2", &sum), 0);
}

/* By hand: every rank's whole gradients once, in fp32, besides the three scalars of loss, norm and label count. */
static void ddp_reduces_every_gradient_once(void)
{
    both sum;
    nd_error err;
    nd_model_spec model;
    char path[512];
    (void)run_layout("dense", "dp_replicate=4", &sum);
    (void)snprintf(path, sizeof path, "%s/dense.json", ND_TEST_MODELS);
    ND_ASSERT_OK(nd_model_load(path, false, &model, &err));
    int64_t bytes = 0;
    for (int group = 0; group < ND_MEMBERS_COUNT; group++) {
        bytes += group == ND_MEMBERS_WORLD ? 0 : sum.counted.count[group][ND_INS_ALL_REDUCE].bytes;
    }
    const int64_t rank_steps = STEPS * INT64_C(4);
    int64_t rank_bytes = nd_model_params(&model).total * 4;
    CU_ASSERT_TRUE(bytes >= rank_bytes * rank_steps);
    CU_ASSERT_TRUE(bytes <= (rank_bytes + 1024) * rank_steps); /* padding, and a scalar where the group has it */
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(the_bytes_counted_are_those_of_the_program),
                                         ND_TEST(one_rank_communicates_nothing),
                                         ND_TEST(ddp_reduces_every_gradient_once),
                                         {NULL, NULL}};
    return nd_test_main("program/traffic", cases);
}
