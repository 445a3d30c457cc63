/* A rank that fails stops all ranks, with a message that says which, where and why. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "tests/executor/fault_backend.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_faults.dir";

/* From the fault to the end of all threads. Ranks wait in one another's collectives and messages, so one that nobody
 * wakes would be a hang for ever; a healthy end takes milliseconds, the rest is room for a busy machine. */
static const double stop_s = 2.0;

/* Every kind of waiting: groups of all axes, and messages between stages. */
static const char *const layouts[] = {
    "pp=2,dp_shard=2,cp=2,tp=2,sharding=zero1",
    "pp=2,vpp=2,schedule=interleaved,dp_replicate=2,cp=2,cp_method=ulysses,tp=2,sharding=none",
    "pp=2,schedule=zero_bubble,dp_replicate=2,dp_shard=2,tp=2,sp=on,sharding=zero2",
    "dp_shard=4,cp=2,tp=2,sharding=zero3",
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static nd_run *run_with(const char *layout, const fault *what)
{
    nd_error err = {0};
    nd_run *run = NULL;
    nd_run_options options = state_options(ND_ELEM_F64);
    options.backend = fault_backend(what);
    options.check_nan = true;
    ND_ASSERT_OK(state_create("dense.json", layout, &options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    return run;
}

/* The first rank, counted from `from` on, whose program has the instruction: a stage does not hold every layer. */
static int32_t rank_with(const nd_run *run, nd_ins_op op, int32_t layer, int32_t from)
{
    for (int32_t tries = 0; tries < nd_run_ranks(run); tries++) {
        int32_t rank = (from + tries) % nd_run_ranks(run);
        const nd_program *program = nd_rank_program(nd_run_rank(run, rank));
        for (int32_t i = 0; i < program->ins_count; i++) {
            if (program->ins[i].op == op && program->ins[i].layer == layer) {
                return rank;
            }
        }
    }
    return -1;
}

/* Neither steps nor saves; the checkpoint of before is what another run goes on from. */
static void expect_unusable(nd_run *run, const char *layout)
{
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_run_steps(run, 1, NULL, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "failed half-way");
    CU_ASSERT_EQUAL(nd_run_save(run, directory, 0, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "create another run and resume");
    CU_ASSERT_EQUAL(nd_run_resume(run, directory, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "failed half-way");
    nd_run *next = run_with(layout, &(fault){.kind = FAULT_NONE});
    ND_ASSERT_OK(nd_run_resume(next, directory, NULL, &err));
    CU_ASSERT_EQUAL(nd_run_steps_done(next), 1);
    state_steps(next, 1);
    nd_run_free(next);
}

/* Saves step 1 and runs into the fault in step 2. */
static void expect_stop(const char *layout, fault planted, const char *reason)
{
    nd_error err = {0};
    char where[96];
    nd_run *run = run_with(layout, &planted);
    planted.rank = rank_with(run, planted.op, planted.layer, planted.rank);
    CU_ASSERT_TRUE_FATAL(planted.rank >= 0);
    (void)fault_backend(&planted);
    state_remove(directory);
    state_steps(run, 1);
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    CU_ASSERT_NOT_EQUAL(nd_run_steps(run, 5, NULL, NULL, &err), ND_OK);
    double end_s = nd_monotonic_s();
    CU_ASSERT_TRUE(fault_time_s() > 0.0 && end_s - fault_time_s() < stop_s);
    (void)snprintf(where, sizeof where, "rank %d, instruction ", planted.rank);
    CU_ASSERT_EQUAL(strncmp(err.message, where, strlen(where)), 0);
    (void)snprintf(where, sizeof where, " (%s, ", nd_ins_name(planted.op));
    ND_ASSERT_CONTAINS(err.message, where);
    (void)snprintf(where, sizeof where, "), layer %d: ", planted.layer);
    ND_ASSERT_CONTAINS(err.message, where);
    ND_ASSERT_CONTAINS(err.message, reason);
    CU_ASSERT_EQUAL(nd_run_steps_done(run), 1);
    expect_unusable(run, layout);
    nd_run_free(run);
    state_remove(directory);
}

static void test_an_instruction_that_fails_stops_all_ranks(void)
{
    for (int i = 0; i < LAYOUTS; i++) {
        const fault planted = {.kind = FAULT_FAILS, .rank = 5 * i % 16, .step = 2, .op = ND_INS_GEMM, .layer = i % 2};
        expect_stop(layouts[i], planted, "out of scratch memory in gemm");
    }
}

static void test_a_thread_that_ends_stops_all_ranks(void)
{
    static const nd_ins_op ops[] = {ND_INS_GEMM, ND_INS_ATTENTION, ND_INS_NORM, ND_INS_ATTENTION_GRAD};
    for (int i = 0; i < LAYOUTS; i++) {
        fault planted = {.kind = FAULT_EXITS, .rank = 0, .step = 2, .op = ops[i], .layer = 1};
        expect_stop(layouts[i], planted, "its thread ended");
        planted.rank = 7;
        expect_stop(layouts[i], planted, "its thread ended");
    }
}

static void test_the_only_rank_may_end_too(void)
{
    expect_stop("micro_batch=1", (fault){.kind = FAULT_EXITS, .step = 2, .op = ND_INS_GEMM, .layer = 1},
                "its thread ended");
}

static void test_no_memory_at_the_start_names_the_rank(void)
{
    for (int32_t rank = 0; rank < 16; rank += 5) {
        nd_error err = {0};
        nd_run *run = NULL;
        char part[64];
        nd_run_options options = state_options(ND_ELEM_F32);
        const fault planted = {.kind = FAULT_NO_ARENA, .rank = rank};
        options.backend = fault_backend(&planted);
        CU_ASSERT_EQUAL(state_create("dense.json", layouts[0], &options, &run, &err), ND_ENOMEM);
        CU_ASSERT_PTR_NULL(run);
        CU_ASSERT_TRUE(nd_monotonic_s() - fault_time_s() < stop_s);
        (void)snprintf(part, sizeof part, "rank %d of 16 cannot start: no ", rank);
        ND_ASSERT_CONTAINS(err.message, part);
    }
}

/* NaN in one element of the weights of one rank's unit of a layer. */
static void plant_nan(nd_run *run, int32_t rank, int32_t layer)
{
    const double nan_value = (double)NAN;
    const nd_program *program = nd_rank_program(nd_run_rank(run, rank));
    for (int32_t i = 0; i < program->placement.units_count; i++) {
        const nd_unit *unit = &program->placement.units[i];
        for (int32_t p = 0; p < unit->pieces; p++) {
            const nd_piece *piece = &program->placement.pieces[unit->first_piece + p];
            const nd_param *param = &program->params.params[piece->param];
            if (param->layer == layer && strstr(param->name, "mlp.up_proj") != NULL) {
                const nd_ref at = {.buffer = program->states[i].weights, .offset = piece->offset};
                nd_rank_write(nd_run_rank(run, rank), at, 1, &nan_value);
                return;
            }
        }
    }
    CU_FAIL("the rank does not hold the layer");
}

/* The first instruction that meets it is a product of the very rank, before anything is communicated. */
static void test_a_planted_nan_is_found_where_it_is(void)
{
    for (int i = 0; i < LAYOUTS - 1; i++) { /* of the last, gathering passes weights on before they are used */
        nd_error err = {0};
        char where[64];
        int32_t layer = i % 2;
        nd_run *run = run_with(layouts[i], &(fault){.kind = FAULT_NONE});
        int32_t rank = rank_with(run, ND_INS_GEMM, layer, 3 + 2 * i);
        CU_ASSERT_TRUE_FATAL(rank >= 0);
        plant_nan(run, rank, layer);
        double start_s = nd_monotonic_s();
        CU_ASSERT_EQUAL(nd_run_steps(run, 1, NULL, NULL, &err), ND_EINVAL);
        CU_ASSERT_TRUE(nd_monotonic_s() - start_s < stop_s);
        (void)snprintf(where, sizeof where, "rank %d, instruction ", rank);
        CU_ASSERT_EQUAL(strncmp(err.message, where, strlen(where)), 0);
        ND_ASSERT_CONTAINS(err.message, "(gemm, ");
        (void)snprintf(where, sizeof where, "), layer %d: step 1: NaN in element ", layer);
        ND_ASSERT_CONTAINS(err.message, where);
        CU_ASSERT_EQUAL(nd_run_save(run, directory, 0, &err), ND_EINVAL);
        nd_run_free(run);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_an_instruction_that_fails_stops_all_ranks),
        ND_TEST(test_a_thread_that_ends_stops_all_ranks),
        ND_TEST(test_the_only_rank_may_end_too),
        ND_TEST(test_no_memory_at_the_start_names_the_rank),
        ND_TEST(test_a_planted_nan_is_found_where_it_is),
        {NULL, NULL},
    };
    return nd_test_main("executor/faults", cases);
}
