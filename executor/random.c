#include "executor/random.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t nd_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return mix(mix(mix(seed + golden) + stream * golden) + (index + 1) * golden);
}

double nd_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(nd_random_bits(seed, stream, index) >> 11) * 0x1p-53;
}

double nd_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    static const double two_pi = 6.283185307179586476925;
    double radius = sqrt(-2.0 * log(1.0 - nd_random_uniform(seed, stream, 2 * index)));
    return radius * cos(two_pi * nd_random_uniform(seed, stream, 2 * index + 1));
}
