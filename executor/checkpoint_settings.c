/* The settings of a run in a manifest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/checkpoint_internal.h"

void nd_settings_write(nd_json_writer *json, const nd_settings *settings)
{
    char seed[32];
    char checksum[ND_CHECKSUM_TEXT];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, settings->seed);
    nd_checksum_text(settings->data_checksum, checksum);
    nd_json_key(json, "training");
    nd_json_begin_object(json);
    nd_json_put_string(json, "seed", seed); /* 64 bits: more than a JSON number keeps in many readers */
    nd_json_put_int(json, "data_bytes", settings->data_bytes);
    nd_json_put_string(json, "checksum", checksum);
    nd_json_put_int(json, "seq_len_tokens", settings->seq_len_tokens);
    nd_json_put_int(json, "global_batch_seqs", settings->global_batch_seqs);
    nd_json_put_int(json, "warmup_steps", settings->warmup_steps);
    nd_json_put_int(json, "decay_steps", settings->decay_steps);
    nd_json_put_double(json, "masked_frac", settings->masked_frac);
    nd_json_put_double(json, "beta1", settings->beta1);
    nd_json_put_double(json, "beta2", settings->beta2);
    nd_json_put_double(json, "eps", settings->eps);
    nd_json_put_double(json, "lr", settings->lr);
    nd_json_put_double(json, "weight_decay", settings->weight_decay);
    nd_json_put_double(json, "clip_norm", settings->clip_norm);
    nd_json_end_object(json);
}

nd_status nd_checksum_read(nd_json object, uint64_t *out, nd_error *err)
{
    const char *text = NULL;
    char *end = NULL;
    ND_TRY(nd_json_need_string(object, "checksum", &text, err));
    bool known = strncmp(text, "mix64:", 6) == 0;
    uint64_t checksum = known ? strtoull(text + 6, &end, 16) : 0;
    if (!known || end == text + 6 || *end != '\0') {
        return nd_json_fail(object, err, "checksum must be mix64: and hexadecimal digits, got '%.40s'", text);
    }
    *out = checksum;
    return ND_OK;
}

static nd_status read_seed(nd_json object, uint64_t *out, nd_error *err)
{
    const char *text = NULL;
    char *end = NULL;
    ND_TRY(nd_json_need_string(object, "seed", &text, err));
    uint64_t seed = strtoull(text, &end, 10);
    if (end == text || *end != '\0') {
        return nd_json_fail(object, err, "seed must be digits, got '%.40s'", text);
    }
    *out = seed;
    return ND_OK;
}

/** A member that is a number. */
typedef struct number {
    const char *key;
    double *to;
} number;

nd_status nd_settings_read(nd_json root, nd_settings *out, nd_error *err)
{
    nd_json object;
    nd_settings s = {0};
    ND_TRY(nd_json_need(root, "training", &object, err));
    ND_TRY(read_seed(object, &s.seed, err));
    ND_TRY(nd_json_need_int(object, "data_bytes", 0, INT64_MAX / 2, &s.data_bytes, err));
    ND_TRY(nd_checksum_read(object, &s.data_checksum, err));
    ND_TRY(nd_json_need_int(object, "seq_len_tokens", 1, INT64_MAX / 2, &s.seq_len_tokens, err));
    ND_TRY(nd_json_need_int(object, "global_batch_seqs", 1, INT64_MAX / 2, &s.global_batch_seqs, err));
    ND_TRY(nd_json_need_int(object, "warmup_steps", 0, INT64_MAX / 2, &s.warmup_steps, err));
    ND_TRY(nd_json_need_int(object, "decay_steps", 0, INT64_MAX / 2, &s.decay_steps, err));
    const number numbers[] = {
        {"masked_frac", &s.masked_frac},
        {"beta1", &s.beta1},
        {"beta2", &s.beta2},
        {"eps", &s.eps},
        {"lr", &s.lr},
        {"weight_decay", &s.weight_decay},
        {"clip_norm", &s.clip_norm},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        ND_TRY(nd_json_need_double(object, numbers[i].key, 0.0, HUGE_VAL, numbers[i].to, err));
    }
    *out = s;
    return ND_OK;
}
