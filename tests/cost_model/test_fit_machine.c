/* Seconds of a made-up machine for real programs: the fit has to find its constants again. */
#include "cost_model/fit_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/random.h"
#include "tests/nd_test.h"
#include "tests/program/programs.h"

enum { PROCESSORS = 2 };

static const double noise = 0.03;

/* Of the size that a processor of today has; sizes of tiny models make each term count. */
static nd_machine true_machine(void)
{
    static const struct {
        const char *term;
        double seconds;
    } costs[] = {{"call", 3e-7},  {"flop", 2e-10},   {"operand", 4e-10}, {"result", 6e-10},
                 {"score", 5e-9}, {"element", 1e-9}, {"member", 5e-7},   {"byte", 3e-10}};
    nd_machine machine = {.processor = "made up", .date = "2026-12-02", .processors = PROCESSORS};
    nd_compute_rates *rates = &machine.rates[ND_ELEM_F32];
    rates->measured = true;
    rates->gap_s = 8e-8;
    rates->skew_s = 2e-6;
    for (int op = 0; op < ND_INS_COUNT; op++) {
        rates->op[op] = (nd_op_rate){.crowd = 1.25, .rows = 1};
        for (int i = 0; i < ND_WORK_TERMS; i++) {
            for (size_t c = 0; c < sizeof costs / sizeof costs[0]; c++) {
                if (strcmp(nd_work_term_name((nd_ins_op)op, i), costs[c].term) == 0) {
                    rates->op[op].term_s[i] = costs[c].seconds * (1.0 + op % 5 * 0.2);
                }
            }
        }
    }
    return machine;
}

static double true_step_s(const nd_machine *machine, const program_set *set)
{
    nd_error err = {.message = ""};
    nd_program_time time = {0};
    ND_ASSERT_OK(nd_machine_time(machine, set->programs, set->ranks, set->model.kv_heads, &time, &err));
    double step_s = time.step_s;
    nd_program_time_free(&time);
    return step_s;
}

/* What a measurement of instruction `k` would give: neither gaps nor waiting; every fortieth is disturbed. */
static double timed(const nd_machine *machine, const program_set *set, int32_t rank, int32_t k, uint64_t seed)
{
    nd_machine quiet = *machine;
    quiet.rates[ND_ELEM_F32].gap_s = 0.0;
    quiet.rates[ND_ELEM_F32].skew_s = 0.0;
    nd_machine_share share = {.machine = &quiet, .ranks = set->ranks};
    const nd_program *program = set->programs[rank];
    const nd_ins *ins = &program->ins[k];
    int32_t members = nd_ins_is_collective(ins->op)
                          ? nd_members_of(&program->layout, set->model.kv_heads, ins->group, rank).count
                          : 1;
    double seconds = nd_machine_seconds(&share, program, ins, members);
    if (seed == 0) {
        return seconds;
    }
    uint64_t stream = (uint64_t)rank;
    double disturbed = nd_random_bits(seed + 1, stream, (uint64_t)k) % 40 == 0 ? 3.0 : 1.0;
    return seconds * disturbed * exp(noise * nd_random_normal(seed, stream, (uint64_t)k));
}

/** Timed instructions with what lies between them. */
typedef struct timed_step {
    const nd_compute_rates *rates;
    double **seconds;
} timed_step;

static double with_gaps(const void *user, const nd_program *program, const nd_ins *ins, int32_t members)
{
    const timed_step *t = user;
    double seconds = t->seconds[program->rank][ins - program->ins];
    return seconds + t->rates->gap_s + (members > 1 ? t->rates->skew_s : 0.0);
}

/* \param seed 0: without noise */
static void add_set(nd_machine_fit *fit, const nd_machine *machine, const program_set *set, uint64_t seed)
{
    nd_error err = {.message = ""};
    timed_step t = {.rates = &machine->rates[ND_ELEM_F32], .seconds = calloc((size_t)set->ranks, sizeof(double *))};
    CU_ASSERT_PTR_NOT_NULL_FATAL(t.seconds);
    for (int32_t i = 0; i < set->ranks; i++) {
        t.seconds[i] = calloc((size_t)set->programs[i]->ins_count, sizeof(double));
        CU_ASSERT_PTR_NOT_NULL_FATAL(t.seconds[i]);
        for (int32_t k = 0; k < set->programs[i]->ins_count; k++) {
            t.seconds[i][k] = timed(machine, set, i, k, seed);
        }
    }
    nd_program_time time = {0};
    ND_ASSERT_OK(nd_program_time_create(set->programs, set->ranks, set->model.kv_heads, ND_ISSUE_IN_ORDER, with_gaps,
                                        &t, &time, &err));
    ND_ASSERT_OK(nd_machine_fit_add(fit, set->programs, set->ranks, set->model.kv_heads,
                                    (const double *const *)t.seconds, time.step_s, &err));
    nd_program_time_free(&time);
    for (int32_t i = 0; i < set->ranks; i++) {
        free(t.seconds[i]);
    }
    free(t.seconds);
}

static bool add_layout(nd_machine_fit *fit, const nd_machine *machine, const char *model, const char *layout,
                       int64_t seq_len, uint64_t seed)
{
    program_set set;
    if (!programs_open(&set, model, layout, seq_len, ND_ELEM_F32)) {
        return false;
    }
    if (set.ranks <= PROCESSORS) {
        add_set(fit, machine, &set, seed);
    }
    programs_close(&set);
    return true;
}

static void add_all(nd_machine_fit *fit, const nd_machine *machine, uint64_t seed)
{
    static const int64_t lengths[] = {16, 64};
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int l = 0; l < TINY_LAYOUTS; l++) {
            for (int s = 0; s < 2; s++) {
                (void)add_layout(fit, machine, tiny_models[m], tiny_layouts[l], lengths[s], seed);
                seed += seed == 0 ? 0 : 101;
            }
        }
    }
    CU_ASSERT_TRUE(add_layout(fit, machine, "moe", "dp_shard=2,ep=2,sharding=zero2", 16, seed));
    CU_ASSERT_TRUE(add_layout(fit, machine, "mla", "dp_shard=2,ep=2,sharding=zero2,micro_batch=2", 64, seed));
}

static nd_machine fitted(const nd_machine *machine, uint64_t seed)
{
    nd_error err = {.message = ""};
    nd_machine found = {.processors = machine->processors};
    nd_machine_fit *fit = nd_machine_fit_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
    add_all(fit, machine, seed);
    ND_ASSERT_OK(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err));
    nd_machine_fit_free(fit);
    return found;
}

/* Steps of lengths that were not measured, and of a layout with more micro-batches. */
static void expect_steps(const nd_machine *machine, const nd_machine *found, double tolerance)
{
    static const int64_t lengths[] = {16, 32, 64};
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int l = 0; l < TINY_LAYOUTS; l++) {
            for (int s = 0; s < 3; s++) {
                program_set set;
                if (!programs_open(&set, tiny_models[m], tiny_layouts[l], lengths[s], ND_ELEM_F32)) {
                    continue;
                }
                if (set.ranks <= PROCESSORS) {
                    CU_ASSERT_EQUAL(nd_machine_lacks(found, set.programs[0]), ND_INS_COUNT);
                    ND_ASSERT_REL(true_step_s(found, &set), true_step_s(machine, &set), tolerance);
                }
                programs_close(&set);
            }
        }
    }
}

static void test_constants_are_found_through_noise_and_outliers(void)
{
    nd_machine machine = true_machine();
    nd_machine found = fitted(&machine, 17);
    const nd_compute_rates *x = &found.rates[ND_ELEM_F32];
    const nd_compute_rates *y = &machine.rates[ND_ELEM_F32];
    static const struct {
        nd_ins_op op;
        int term;
    } identified[] = {{ND_INS_GEMM, 1},  {ND_INS_NORM, 1},      {ND_INS_GLU, 1},  {ND_INS_LOSS, 1},
                      {ND_INS_ADAMW, 1}, {ND_INS_NORM_GRAD, 1}, {ND_INS_COPY, 0}, {ND_INS_ADAMW, 0}};
    CU_ASSERT_TRUE(x->measured);
    CU_ASSERT_FALSE(found.rates[ND_ELEM_F64].measured);
    for (size_t i = 0; i < sizeof identified / sizeof identified[0]; i++) {
        nd_ins_op op = identified[i].op;
        ND_ASSERT_REL(x->op[op].term_s[identified[i].term], y->op[op].term_s[identified[i].term], 0.1);
        ND_ASSERT_REL(x->op[op].crowd, y->op[op].crowd, 0.05);
        CU_ASSERT_TRUE(x->op[op].error_frac > 0.005 && x->op[op].error_frac < noise);
        CU_ASSERT_TRUE(x->op[op].rows >= 20);
    }
    expect_steps(&machine, &found, 0.03);
}

static void test_gaps_and_skew_are_what_the_instructions_leave(void)
{
    nd_machine machine = true_machine();
    nd_machine found = fitted(&machine, 0);
    ND_ASSERT_REL(found.rates[ND_ELEM_F32].gap_s, machine.rates[ND_ELEM_F32].gap_s, 1e-6);
    ND_ASSERT_REL(found.rates[ND_ELEM_F32].skew_s, machine.rates[ND_ELEM_F32].skew_s, 0.05);
    expect_steps(&machine, &found, 0.02);
}

static void test_an_operation_of_one_size_is_predicted_at_that_size(void)
{
    nd_machine machine = true_machine();
    nd_machine found = {.processors = PROCESSORS};
    nd_error err = {.message = ""};
    static hand_set h;
    for (int op = 0; op < ND_INS_COUNT; op++) {
        if (nd_work_term_name((nd_ins_op)op, 0)[0] == '\0' || op == ND_INS_SEND || op == ND_INS_SEND_WAIT ||
            op == ND_INS_RECV) {
            continue;
        }
        hand_open(&h, 1, 1);
        hand_add(&h, 0,
                 (nd_ins){.op = (nd_ins_op)op,
                          .group = ND_MEMBERS_TP,
                          .rows = 40,
                          .cols = 24,
                          .m = 40,
                          .n = 24,
                          .k = 16,
                          .groups = 2,
                          .heads = 2,
                          .kv_heads = 1,
                          .dim = 8,
                          .v_dim = 8,
                          .copies = 2,
                          .vocab_rows = 50,
                          .rot_dim = 8,
                          .micro_batch = 1,
                          .in = {{1, 0}},
                          .out = {{1, 0}},
                          .q_map = {.seq_len = 40, .cp = 1, .positions = 40},
                          .kv_map = {.seq_len = 40, .cp = 1, .positions = 40}});
        program_set set = {.ranks = 1, .programs = h.programs};
        double step_s = true_step_s(&machine, &set);
        nd_machine_fit *fit = nd_machine_fit_create();
        CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
        for (int i = 0; i < 5; i++) {
            add_set(fit, &machine, &set, 0);
        }
        ND_ASSERT_OK(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err));
        nd_machine_fit_free(fit);
        CU_ASSERT_EQUAL(found.rates[ND_ELEM_F32].op[op].rows, 5);
        ND_ASSERT_REL(true_step_s(&found, &set), step_s, 0.01);
    }
}

/* A rank that is always late makes the other wait: what the clock shows of a wait that is over is 0. */
static void test_what_takes_no_time_is_known_to_take_none(void)
{
    static hand_set h;
    nd_machine found = {.processors = 1};
    nd_error err = {.message = ""};
    hand_open(&h, 1, 1);
    hand_add(&h, 0, (nd_ins){.op = ND_INS_ZERO, .rows = 4, .cols = 4, .out = {{1, 0}}});
    hand_add(&h, 0, (nd_ins){.op = ND_INS_CLIP, .out = {{1, 0}}});
    static const double seconds[] = {1e-6, 0.0};
    nd_machine_fit *fit = nd_machine_fit_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
    ND_ASSERT_OK(nd_machine_fit_add(fit, h.programs, 1, 1, (const double *const[]){seconds}, 1e-6, &err));
    ND_ASSERT_OK(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err));
    nd_machine_fit_free(fit);
    CU_ASSERT_EQUAL(nd_machine_lacks(&found, &h.program[0]), ND_INS_COUNT);
    CU_ASSERT_EQUAL(found.rates[ND_ELEM_F32].op[ND_INS_CLIP].term_s[0], 0.0);
    CU_ASSERT_EQUAL(found.rates[ND_ELEM_F32].op[ND_INS_ADD].rows, 0);
}

/* Two ranks on one processor take turns: no skew that a prediction would add once more. */
static void test_ranks_that_take_turns_say_nothing_about_skew(void)
{
    nd_machine machine = true_machine();
    machine.processors = 1;
    nd_machine found = {.processors = 1};
    nd_error err = {.message = ""};
    nd_machine_fit *fit = nd_machine_fit_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
    CU_ASSERT_TRUE(add_layout(fit, &machine, "dense", "tp=2", 32, 0));
    CU_ASSERT_TRUE(add_layout(fit, &machine, "dense", "micro_batch=1", 32, 0));
    ND_ASSERT_OK(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err));
    nd_machine_fit_free(fit);
    CU_ASSERT_EQUAL(found.rates[ND_ELEM_F32].skew_s, 0.0);
    ND_ASSERT_REL(found.rates[ND_ELEM_F32].gap_s, machine.rates[ND_ELEM_F32].gap_s, 1e-6);
}

static void test_nothing_measured_is_refused(void)
{
    static hand_set h;
    nd_machine found = {.processors = 3};
    nd_error err = {.message = ""};
    nd_machine_fit *fit = nd_machine_fit_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
    CU_ASSERT_EQUAL(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nothing was measured");
    CU_ASSERT_FALSE(found.rates[ND_ELEM_F32].measured);
    hand_open(&h, 1, 1); /* instructions without work */
    hand_add(&h, 0, (nd_ins){.op = ND_INS_ALLOC, .out = {{1, 0}}});
    static const double seconds[] = {1e-6};
    ND_ASSERT_OK(nd_machine_fit_add(fit, h.programs, 1, 1, (const double *const[]){seconds}, 1e-6, &err));
    CU_ASSERT_EQUAL(nd_machine_fit_solve(fit, ND_ELEM_F32, &found, &err), ND_EINVAL);
    nd_machine_fit_free(fit);
    nd_machine_fit_free(NULL);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_constants_are_found_through_noise_and_outliers),
                                         ND_TEST(test_gaps_and_skew_are_what_the_instructions_leave),
                                         ND_TEST(test_an_operation_of_one_size_is_predicted_at_that_size),
                                         ND_TEST(test_what_takes_no_time_is_known_to_take_none),
                                         ND_TEST(test_ranks_that_take_turns_say_nothing_about_skew),
                                         ND_TEST(test_nothing_measured_is_refused),
                                         {0}};
    return nd_test_main("fit of a machine's constants", cases);
}
