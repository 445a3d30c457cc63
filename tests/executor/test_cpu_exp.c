/* White box: the exponential of fp32 kernels against libm's in fp64. */
#include <math.h>

#include "executor/cpu/exp_internal.h"
#include "tests/nd_test.h"

static void it_is_exact_to_two_units_in_the_last_place(void)
{
    double worst = 0.0;
    for (int32_t i = -873 * 128; i < 883 * 128; i++) {
        float x = (float)i / 1280.0F;
        double expected = exp((double)x);
        worst = fmax(worst, fabs((double)nd_expf(x) - expected) / expected);
    }
    CU_ASSERT_TRUE(worst < 2e-7);
    CU_ASSERT_TRUE(worst > 1e-8); /* something was compared */
}

static void it_has_the_right_ends(void)
{
    CU_ASSERT_EQUAL(nd_expf(0.0F), 1.0F);
    CU_ASSERT_EQUAL(nd_expf(-0.0F), 1.0F);
    CU_ASSERT_EQUAL(nd_expf(-87.4F), 0.0F);
    CU_ASSERT_EQUAL(nd_expf(-1e30F), 0.0F);
    CU_ASSERT_EQUAL(nd_expf(-INFINITY), 0.0F);
    CU_ASSERT_EQUAL(nd_expf(88.8F), INFINITY);
    CU_ASSERT_EQUAL(nd_expf(1e30F), INFINITY);
    CU_ASSERT_EQUAL(nd_expf(INFINITY), INFINITY);
    CU_ASSERT_TRUE(isnan(nd_expf(NAN)));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(it_is_exact_to_two_units_in_the_last_place), ND_TEST(it_has_the_right_ends), {NULL, NULL}};
    return nd_test_main("cpu exp", cases);
}
