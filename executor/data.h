/** Sequences to train on: the bytes of a file, or synthetic tokens. Which tokens a sequence has depends on seed and
 * sequence number alone, never on the layout. */
#ifndef ND_EXECUTOR_DATA_H
#define ND_EXECUTOR_DATA_H

#include "core/status.h"
#include "program/instruction.h"

ND_BEGIN_DECLS

typedef struct nd_data nd_data;

typedef struct nd_data_options {
    const char *path; /* file whose bytes are the tokens; NULL: synthetic */
    int64_t seq_len;  /* tokens of a sequence */
    int64_t vocab;    /* >= 256 with a file */
    uint64_t seed;
    double masked_frac; /* of the labels; sequence 0 has its first half masked too when this is above 0 */
} nd_data_options;

/** \return ND_EIO, ND_EINVAL (file shorter than a sequence, vocabulary below 256), ND_ENOMEM. Free with nd_data_free().
 */
nd_status nd_data_open(const nd_data_options *options, nd_data **out, nd_error *err) ND_NODISCARD;
void nd_data_free(nd_data *data); /* NULL is fine */

/** Size and checksum (executor/checksum.h) of the file; both 0 when tokens are synthetic. */
void nd_data_identity(const nd_data *data, int64_t *bytes, uint64_t *checksum);

/** Tokens and labels of the positions `map` of sequences first_sequence .. + micro_batch - 1; rows sequence-major (row
 * = entry of the map x micro_batch + sequence). The label of a position is the token after it, in the uncut sequence;
 * -1: masked. Either output may be NULL. May be called by several threads. */
void nd_data_rows(const nd_data *data, int64_t first_sequence, int32_t micro_batch, const nd_seq_map *map,
                  int32_t *tokens, int32_t *labels);

ND_END_DECLS

#endif
