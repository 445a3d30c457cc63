#include "executor/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a's step and constants (Fowler, Noll and Vo) on words of eight bytes, with the upper bits folded down, which
 * bytes would do by themselves: a changed word always changes the value, for every step can be undone. */
static uint64_t step(uint64_t state, uint64_t word)
{
    state = (state ^ word) * UINT64_C(0x100000001b3);
    return state ^ state >> 32;
}

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

nd_checksum nd_checksum_start(void)
{
    return (nd_checksum){.state = UINT64_C(0xcbf29ce484222325)};
}

void nd_checksum_add(nd_checksum *sum, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    size_t held = (size_t)(sum->length % 8);
    sum->length += count;
    for (; held > 0 && count > 0; at++, count--) {
        sum->tail[held++] = *at;
        if (held == 8) {
            sum->state = step(sum->state, word_at(sum->tail));
            held = 0;
        }
    }
    for (; count >= 8; at += 8, count -= 8) {
        sum->state = step(sum->state, word_at(at));
    }
    if (count > 0) {
        memcpy(sum->tail, at, count);
    }
}

uint64_t nd_checksum_value(const nd_checksum *sum)
{
    unsigned char last[8] = {0};
    memcpy(last, sum->tail, (size_t)(sum->length % 8));
    return step(step(sum->state, word_at(last)), sum->length);
}

void nd_checksum_text(uint64_t value, char text[ND_CHECKSUM_TEXT])
{
    (void)snprintf(text, ND_CHECKSUM_TEXT, "mix64:%016" PRIx64, value);
}
