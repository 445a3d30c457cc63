#include "executor/random.h"

#include <math.h>

#include "executor/init.h"
#include "tests/nd_test.h"

enum { DRAWS = 200000 };

static void test_numbers_are_a_function_of_their_place(void)
{
    uint64_t a = nd_random_bits(1, 2, 3);
    CU_ASSERT_EQUAL(a, nd_random_bits(1, 2, 3));
    CU_ASSERT_NOT_EQUAL(a, nd_random_bits(2, 2, 3));
    CU_ASSERT_NOT_EQUAL(a, nd_random_bits(1, 3, 3));
    CU_ASSERT_NOT_EQUAL(a, nd_random_bits(1, 2, 4));
    CU_ASSERT_NOT_EQUAL(nd_random_bits(0, 1, 0), nd_random_bits(0, 0, 1));
}

/* Computed with another implementation (Python integers); data and weights of earlier runs depend on them. */
static void test_the_bits_never_change(void)
{
    CU_ASSERT_EQUAL(nd_random_bits(0, 0, 0), UINT64_C(0x568a9b0b1a2c05ec));
    CU_ASSERT_EQUAL(nd_random_bits(7, 1000, 12345), UINT64_C(0x0dd61550f3f69dee));
    CU_ASSERT_EQUAL(nd_random_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_C(0xbf5ce0170453275c));
}

static void test_uniform_fills_the_interval_evenly(void)
{
    int counts[16] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = nd_random_uniform(3, 4, i);
        CU_ASSERT_TRUE_FATAL(x >= 0.0 && x < 1.0);
        counts[(int)(x * 16.0)]++;
    }
    for (int b = 0; b < 16; b++) {
        ND_ASSERT_REL(counts[b], DRAWS / 16.0, 0.04); /* 4 and a half deviations */
    }
}

static void test_normal_has_its_moments(void)
{
    double sum = 0.0;
    double squares = 0.0;
    double fourth = 0.0;
    double neighbours = 0.0;
    double before = 0.0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = nd_random_normal(5, 6, i);
        CU_ASSERT_TRUE_FATAL(isfinite(x));
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        neighbours += x * before;
        before = x;
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / DRAWS, 0.0, 0.01);
    ND_ASSERT_REL(squares / DRAWS, 1.0, 0.015);
    ND_ASSERT_REL(fourth / DRAWS, 3.0, 0.05);
    CU_ASSERT_DOUBLE_EQUAL(neighbours / DRAWS, 0.0, 0.01);
}

static void test_initial_weights_follow_kind_and_noise(void)
{
    nd_param matrix = {.rows = 100, .cols = 200, .init = ND_INIT_NORMAL};
    nd_param norm = {.rows = 1, .cols = 200, .init = ND_INIT_ONES};
    nd_param bias = {.rows = 1, .cols = 200, .init = ND_INIT_ZEROS};
    nd_init_options plain = nd_init_options_default();
    nd_init_options noisy = plain;
    noisy.noise = 0.1;
    double squares = 0.0;
    for (int64_t i = 0; i < 20000; i++) {
        double x = nd_init_value(&plain, &matrix, 3, i / 200, i % 200);
        squares += x * x;
        CU_ASSERT_EQUAL(x, nd_init_value(&noisy, &matrix, 3, i / 200, i % 200));
    }
    ND_ASSERT_REL(sqrt(squares / 20000.0), 0.02, 0.02);
    CU_ASSERT_EQUAL(nd_init_value(&plain, &norm, 4, 0, 7), 1.0);
    CU_ASSERT_EQUAL(nd_init_value(&plain, &bias, 5, 0, 7), 0.0);
    CU_ASSERT_NOT_EQUAL(nd_init_value(&noisy, &norm, 4, 0, 7), 1.0);
    CU_ASSERT_NOT_EQUAL(nd_init_value(&noisy, &bias, 5, 0, 7), 0.0);
    CU_ASSERT_TRUE(fabs(nd_init_value(&noisy, &norm, 4, 0, 7) - 1.0) < 0.6);
    /* neighbours in another parameter, row or with another seed are other numbers */
    double here = nd_init_value(&plain, &matrix, 3, 5, 6);
    CU_ASSERT_NOT_EQUAL(here, nd_init_value(&plain, &matrix, 4, 5, 6));
    CU_ASSERT_NOT_EQUAL(here, nd_init_value(&plain, &matrix, 3, 6, 6));
    plain.seed = 1;
    CU_ASSERT_NOT_EQUAL(here, nd_init_value(&plain, &matrix, 3, 5, 6));
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_numbers_are_a_function_of_their_place), ND_TEST(test_the_bits_never_change),
        ND_TEST(test_uniform_fills_the_interval_evenly),     ND_TEST(test_normal_has_its_moments),
        ND_TEST(test_initial_weights_follow_kind_and_noise), {NULL, NULL},
    };
    return nd_test_main("executor/random", cases);
}
