#include "core/clock.h"
#include "core/integers.h"
#include "tests/nd_test.h"

static void test_divisors_and_multiples(void)
{
    CU_ASSERT_EQUAL(nd_greatest_common_divisor(12, 18), 6);
    CU_ASSERT_EQUAL(nd_greatest_common_divisor(7, 0), 7);
    CU_ASSERT_EQUAL(nd_greatest_common_divisor(0, 7), 7);
    CU_ASSERT_EQUAL(nd_least_common_multiple(4, 6), 12);
    CU_ASSERT_EQUAL(nd_least_common_multiple(INT64_C(1) << 40, 3), 3 * (INT64_C(1) << 40));
    for (int64_t a = 1; a <= 40; a++) {
        for (int64_t b = 1; b <= 40; b++) {
            int64_t divisor = nd_greatest_common_divisor(a, b);
            CU_ASSERT_TRUE(a % divisor == 0 && b % divisor == 0);
            CU_ASSERT_EQUAL(divisor * nd_least_common_multiple(a, b), a * b);
        }
    }
}

static void test_the_clock_never_goes_back(void)
{
    double before = nd_monotonic_s();
    for (int i = 0; i < 1000; i++) {
        double now = nd_monotonic_s();
        CU_ASSERT_TRUE(now >= before);
        before = now;
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_divisors_and_multiples),
        ND_TEST(test_the_clock_never_goes_back),
        {NULL, NULL},
    };
    return nd_test_main("integers and clock", cases);
}
