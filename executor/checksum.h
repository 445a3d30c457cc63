/** A 64-bit checksum of a stream of bytes, to find damaged files: not against forgery. */
#ifndef ND_EXECUTOR_CHECKSUM_H
#define ND_EXECUTOR_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

typedef struct nd_checksum {
    uint64_t state, length;
    unsigned char tail[8]; /* bytes after the last whole word */
} nd_checksum;

nd_checksum nd_checksum_start(void);

/** Any split of the stream into calls gives the same value. */
void nd_checksum_add(nd_checksum *sum, const void *bytes, size_t count);

uint64_t nd_checksum_value(const nd_checksum *sum);

enum { ND_CHECKSUM_TEXT = 24 };

/** "mix64:" and 16 hexadecimal digits. */
void nd_checksum_text(uint64_t value, char text[ND_CHECKSUM_TEXT]);

ND_END_DECLS

#endif
