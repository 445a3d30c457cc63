#include "cost_model/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost_model/calibration.h"
#include "tests/nd_test.h"

static void test_every_built_in_stack_loads(void)
{
    nd_error err = {.message = ""};
    CU_ASSERT_TRUE(nd_stack_builtin_count() >= 6);
    for (size_t i = 0; i < nd_stack_builtin_count(); i++) {
        nd_stack stack;
        ND_ASSERT_OK(nd_stack_find(nd_stack_builtin_name(i), &stack, &err));
        CU_ASSERT_STRING_EQUAL(stack.name, nd_stack_builtin_name(i));
        CU_ASSERT_TRUE(strlen(stack.source) > 0);
        CU_ASSERT_TRUE((stack.shardings >> stack.default_sharding & 1u) != 0);
    }
}

static void test_a_typo_suggests_the_nearest_stack(void)
{
    nd_error err;
    nd_stack stack;
    CU_ASSERT_EQUAL(nd_stack_find("megatrn", &stack, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, "did you mean 'megatron'");
    CU_ASSERT_EQUAL(nd_stack_find("", &stack, &err), ND_ENOTFOUND);
}

static void test_every_built_in_gpu_has_a_calibration(void)
{
    nd_error err = {.message = ""};
    for (size_t i = 0; i < nd_gpu_builtin_count(); i++) {
        nd_gpu_spec gpu;
        nd_calibration calibration;
        ND_ASSERT_OK(nd_gpu_find(nd_gpu_builtin_name(i), &gpu, &err));
        ND_ASSERT_OK(nd_calibration_for_gpu(&gpu, &calibration, &err));
        CU_ASSERT_TRUE(calibration.gemm_frac > 0.1 && calibration.gemm_frac <= 1.0);
        CU_ASSERT_TRUE(strlen(calibration.source) > 0);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_built_in_stack_loads),
        ND_TEST(test_a_typo_suggests_the_nearest_stack),
        ND_TEST(test_every_built_in_gpu_has_a_calibration),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/stack", cases);
}
