/** e^x in fp32 as plain arithmetic, which compilers turn into vector instructions: libm's is a call for every number,
 * and was a third of the time of attention. */
#ifndef ND_EXECUTOR_CPU_EXP_INTERNAL_H
#define ND_EXECUTOR_CPU_EXP_INTERNAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/** e^x to 2e-7 relative: 2^n e^r with |r| <= ln(2)/2, ln(2) in two parts (Cody and Waite 1980), polynomial of Cephes'
 * expf (Moshier 1992). 0 below -87.3 where fp32 has no normal numbers left, infinity from 88.37 on, NaN of NaN. */
static inline float nd_expf(float x)
{
    const float shift = 12582912.0F; /* 1.5 x 2^23: what is added to it is rounded to an integer */
    float bounded = x < -87.3F ? -87.3F : x;
    bounded = bounded > 89.0F ? 89.0F : bounded;
    float shifted = bounded * 1.44269504088896341F + shift;
    float n = shifted - shift;
    float r = bounded - n * 0.693359375F - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000U; /* 2^n: n is in the low bits */
    float power;
    memcpy(&power, &bits, sizeof power);
    float y = p * power;
    return x < -87.3F ? 0.0F : y;
}

ND_END_DECLS

#endif
