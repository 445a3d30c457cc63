#include "core/dtype.h"

#include "tests/nd_test.h"

static void test_stored_widths(void)
{
    CU_ASSERT_EQUAL(nd_dtype_bytes(ND_DTYPE_FP32), 4);
    CU_ASSERT_EQUAL(nd_dtype_bytes(ND_DTYPE_BF16), 2);
    CU_ASSERT_EQUAL(nd_dtype_bytes(ND_DTYPE_FP16), 2);
    CU_ASSERT_EQUAL(nd_dtype_bytes(ND_DTYPE_FP8), 1);
}

static void test_fp8_training_keeps_activations_in_two_bytes(void)
{
    CU_ASSERT_EQUAL(nd_dtype_compute_bytes(ND_DTYPE_FP8), 2);
    CU_ASSERT_EQUAL(nd_dtype_compute_bytes(ND_DTYPE_BF16), 2);
    CU_ASSERT_EQUAL(nd_dtype_compute_bytes(ND_DTYPE_FP32), 4);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(nd_dtype_name(ND_DTYPE_BF16), "bf16");
    CU_ASSERT_STRING_EQUAL(nd_dtype_name(ND_DTYPE_FP8), "fp8");
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_stored_widths),
        ND_TEST(test_fp8_training_keeps_activations_in_two_bytes),
        ND_TEST(test_names),
        {NULL, NULL},
    };
    return nd_test_main("core.dtype", cases);
}
