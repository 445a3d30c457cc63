/** bf16 stored as the upper half of a float's bits. */
#ifndef ND_EXECUTOR_COMM_BF16_INTERNAL_H
#define ND_EXECUTOR_COMM_BF16_INTERNAL_H

#include <stdint.h>
#include <string.h>

static inline float nd_bf16_widen(uint16_t stored)
{
    uint32_t bits = (uint32_t)stored << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** To the nearest, ties to even. A NaN stays one: rounding must not carry it into the infinities. */
static inline uint16_t nd_bf16_round(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40U;
    return (uint16_t)((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

#endif
