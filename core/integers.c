#include "core/integers.h"

int64_t nd_greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int64_t nd_least_common_multiple(int64_t a, int64_t b)
{
    return a / nd_greatest_common_divisor(a, b) * b;
}
