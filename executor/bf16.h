/** bf16 on the host: the upper half of an fp32. */
#ifndef ND_EXECUTOR_BF16_H
#define ND_EXECUTOR_BF16_H

#include <stdint.h>
#include <string.h>

#include "core/decls.h"

ND_BEGIN_DECLS

static inline float nd_from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** To the nearest, ties to even; NaN stays NaN. */
static inline uint16_t nd_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return (uint16_t)(bits >> 16 | 0x40U);
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

ND_END_DECLS

#endif
