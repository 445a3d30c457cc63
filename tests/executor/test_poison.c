/* Poisoned memory shows: what a list reads before it is written, or after it is freed, is NaN in the gradient norm. */
#include <math.h>

#include "tests/executor/parity.h"
#include "tests/nd_test.h"

static bool keep_norm(void *user, const nd_run_step *step)
{
    *(double *)user = step->grad_norm;
    return true;
}

/* Of one step, after `spoil` has changed the list of rank 1. */
static double norm_after(nd_elem real, void (*spoil)(nd_program *program))
{
    nd_error err = {.message = ""};
    parity p;
    nd_run *run = NULL;
    double norm = 0.0;
    parity_open(&p, "dense.json", real, 4);
    nd_layout layout = parity_layout(&p, "dp_shard=2,tp=2,sharding=zero2");
    ND_ASSERT_OK(nd_run_create(&p.model, &layout, &p.train, &p.options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    spoil((nd_program *)nd_rank_program(nd_run_rank(run, 1))); /* of this run alone */
    ND_ASSERT_OK(nd_run_steps(run, 1, keep_norm, &norm, &err));
    nd_run_free(run);
    parity_close(&p);
    return norm;
}

static void nothing(nd_program *program)
{
    (void)program;
}

static void skip_zero(nd_program *program)
{
    for (int32_t i = 0; i < program->ins_count; i++) {
        if (program->ins[i].op == ND_INS_ZERO) {
            program->ins[i].op = ND_INS_WAIT;
        }
    }
}

static void test_what_was_never_written_is_nan(void)
{
    static const nd_elem types[] = {ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16};
    CU_ASSERT_TRUE(isfinite(norm_after(ND_ELEM_BF16, nothing)));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        CU_ASSERT_TRUE(isnan(norm_after(types[i], skip_zero)));
    }
}

/* The address sanitizer would end the program there, as it should. */
#ifndef ND_TEST_ADDRESS_SANITIZER
static void free_early(nd_program *program)
{
    int32_t at = 1;
    while (at < program->ins_count && !(program->ins[at].op == ND_INS_GEMM && program->ins[at - 1].op == ND_INS_ALLOC &&
                                        program->buffers[program->ins[at].in[0].buffer].dies > at)) {
        at++;
    }
    CU_ASSERT_TRUE_FATAL(at < program->ins_count);
    program->ins[at - 1] = program->ins[program->buffers[program->ins[at].in[0].buffer].dies];
}

static void test_what_was_freed_is_nan(void)
{
    CU_ASSERT_TRUE(isnan(norm_after(ND_ELEM_F32, free_early)));
}
#endif

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_what_was_never_written_is_nan),
#ifndef ND_TEST_ADDRESS_SANITIZER
        ND_TEST(test_what_was_freed_is_nan),
#endif
        {NULL, NULL},
    };
    return nd_test_main("executor/poison", cases);
}
