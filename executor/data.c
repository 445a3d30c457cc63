#include "executor/data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/file.h"
#include "executor/checksum.h"
#include "executor/random.h"

struct nd_data {
    nd_data_options options;
    char *bytes; /* of the file; NULL: synthetic */
    size_t length;
    uint64_t checksum;
};

/* Streams of random numbers. */
enum { STREAM_START = 1, STREAM_NOISE, STREAM_FRESH, STREAM_MASK, STREAM_MAP };

/* Of the synthetic tokens this share follows from the token before, so that there is something to learn. */
static const double predictable_frac = 0.75;

/* Read whole: text to try a layout on, not a corpus. */
static const size_t file_bytes_max = (size_t)1 << 31;

nd_status nd_data_open(const nd_data_options *options, nd_data **out, nd_error *err)
{
    nd_data *data = calloc(1, sizeof *data);
    if (data == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    data->options = *options;
    nd_status status = ND_OK;
    if (options->path != NULL) {
        nd_file_request request = {
            .path = options->path, .origin = options->path, .format = "text", .bytes_max = file_bytes_max};
        status = nd_file_read(&request, &data->bytes, &data->length, err);
        if (status == ND_OK && options->vocab < 256) {
            status = nd_fail(err, ND_EINVAL,
                             "%s: bytes are tokens 0 to 255, and the model has a vocabulary of %" PRId64
                             "; use a model with at least 256",
                             options->path, options->vocab);
        }
        if (status == ND_OK && data->length < (size_t)options->seq_len + 1) {
            status = nd_fail(err, ND_EINVAL, "%s has %zu bytes, and a sequence with its last label takes %" PRId64,
                             options->path, data->length, options->seq_len + 1);
        }
    }
    if (status != ND_OK) {
        nd_data_free(data);
        return status;
    }
    if (data->bytes != NULL) {
        nd_checksum sum = nd_checksum_start();
        nd_checksum_add(&sum, data->bytes, data->length);
        data->checksum = nd_checksum_value(&sum);
    }
    *out = data;
    return ND_OK;
}

void nd_data_free(nd_data *data)
{
    if (data != NULL) {
        free(data->bytes);
        free(data);
    }
}

void nd_data_identity(const nd_data *data, int64_t *bytes, uint64_t *checksum)
{
    *bytes = (int64_t)data->length;
    *checksum = data->checksum;
}

static int32_t fresh_token(const nd_data *data, uint64_t index)
{
    return (int32_t)(nd_random_bits(data->options.seed, STREAM_FRESH, index) % (uint64_t)data->options.vocab);
}

/* The token that follows another one unless noise replaces it. */
static int32_t successor(const nd_data *data, int32_t token)
{
    return (int32_t)(nd_random_bits(data->options.seed, STREAM_MAP, (uint64_t)token) % (uint64_t)data->options.vocab);
}

/* A fresh token starts a chain of successors; walk back to it. */
static int32_t synthetic_token(const nd_data *data, int64_t sequence, int64_t position)
{
    uint64_t first = (uint64_t)sequence * ((uint64_t)data->options.seq_len + 1);
    int64_t start = position;
    while (start > 0 &&
           nd_random_uniform(data->options.seed, STREAM_NOISE, first + (uint64_t)start) < predictable_frac) {
        start--;
    }
    int32_t token = fresh_token(data, first + (uint64_t)start);
    for (int64_t i = start; i < position; i++) {
        token = successor(data, token);
    }
    return token;
}

static int32_t token_at(const nd_data *data, int64_t sequence, int64_t position)
{
    if (data->bytes == NULL) {
        return synthetic_token(data, sequence, position);
    }
    uint64_t starts = data->length - (uint64_t)data->options.seq_len;
    uint64_t start = nd_random_bits(data->options.seed, STREAM_START, (uint64_t)sequence) % starts;
    return (unsigned char)data->bytes[start + (uint64_t)position];
}

static int32_t label_at(const nd_data *data, int64_t sequence, int64_t position)
{
    const nd_data_options *o = &data->options;
    if (o->masked_frac > 0.0) {
        uint64_t index = (uint64_t)sequence * (uint64_t)o->seq_len + (uint64_t)position;
        bool half = sequence == 0 && position < o->seq_len / 2;
        if (half || nd_random_uniform(o->seed, STREAM_MASK, index) < o->masked_frac) {
            return -1;
        }
    }
    return token_at(data, sequence, position + 1);
}

void nd_data_rows(const nd_data *data, int64_t first_sequence, int32_t micro_batch, const nd_seq_map *map,
                  int32_t *tokens, int32_t *labels)
{
    for (int64_t i = 0; i < map->positions; i++) {
        int64_t position = nd_seq_map_position(map, i);
        for (int32_t s = 0; s < micro_batch; s++) {
            int64_t row = i * micro_batch + s;
            if (tokens != NULL) {
                tokens[row] = token_at(data, first_sequence + s, position);
            }
            if (labels != NULL) {
                labels[row] = label_at(data, first_sequence + s, position);
            }
        }
    }
}
