#include "core/train_spec.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const int64_t seq_len_max = INT64_C(1) << 30;
static const int64_t global_batch_max = INT64_C(1) << 40;
static const int64_t step_tokens_max = INT64_C(1) << 53; /* still exact as a double */
enum { LORA_RANK_MAX = 65536, LORA_TEXT_MAX = 64 };

static const struct {
    const char *name;
    int64_t state_bytes;
} optimizers[ND_OPTIMIZER_COUNT] = {
#define ND_OPTIMIZER_ROW(enumerator, text, bytes) [enumerator] = {text, bytes},
    ND_OPTIMIZER_LIST(ND_OPTIMIZER_ROW)
#undef ND_OPTIMIZER_ROW
};

static const char *const attention_names[ND_ATTENTION_COUNT] = {
#define ND_ATTENTION_ROW(enumerator, text) [enumerator] = (text),
    ND_ATTENTION_LIST(ND_ATTENTION_ROW)
#undef ND_ATTENTION_ROW
};

const char *nd_optimizer_name(nd_optimizer optimizer)
{
    assert(optimizer < ND_OPTIMIZER_COUNT);
    return optimizers[optimizer].name;
}

int64_t nd_optimizer_state_bytes(nd_optimizer optimizer)
{
    assert(optimizer < ND_OPTIMIZER_COUNT);
    return optimizers[optimizer].state_bytes;
}

const char *nd_attention_name(nd_attention attention)
{
    assert(attention < ND_ATTENTION_COUNT);
    return attention_names[attention];
}

static const char *optimizer_text(int value)
{
    return nd_optimizer_name((nd_optimizer)value);
}

static const char *attention_text(int value)
{
    return nd_attention_name((nd_attention)value);
}

static const char *precision_text(int value)
{
    return nd_dtype_name((nd_dtype)value);
}

nd_status nd_optimizer_parse(const char *text, nd_optimizer *out, nd_error *err)
{
    int value = 0;
    ND_TRY(nd_text_choice(text, "the optimizer", optimizer_text, ND_OPTIMIZER_COUNT, &value, err));
    *out = (nd_optimizer)value;
    return ND_OK;
}

nd_status nd_attention_parse(const char *text, nd_attention *out, nd_error *err)
{
    int value = 0;
    ND_TRY(nd_text_choice(text, "the attention", attention_text, ND_ATTENTION_COUNT, &value, err));
    *out = (nd_attention)value;
    return ND_OK;
}

nd_status nd_precision_parse(const char *text, nd_dtype *out, nd_error *err)
{
    int value = 0;
    ND_TRY(nd_text_choice(text, "the precision", precision_text, ND_DTYPE_COUNT, &value, err));
    *out = (nd_dtype)value;
    return ND_OK;
}

static bool base_bits_known(int64_t bits)
{
    return bits == 4 || bits == 8 || bits == 16;
}

/* One "r=16" or "bits=4"; 0 in *rank and *bits means not seen yet. */
static nd_status parse_lora_entry(const char *entry, int64_t *rank, int64_t *bits, nd_error *err)
{
    bool is_rank = strncmp(entry, "r=", 2) == 0;
    if (!is_rank && strncmp(entry, "bits=", 5) != 0) {
        return nd_fail(err, ND_EINVAL, "unknown LoRA entry '%s'; write r=16 or r=16,bits=4", entry);
    }
    int64_t *target = is_rank ? rank : bits;
    if (*target != 0) {
        return nd_fail(err, ND_EINVAL, "the LoRA key %s is given twice; keep one", is_rank ? "r" : "bits");
    }
    if (is_rank) {
        return nd_text_int(entry + 2, "the LoRA rank r", 1, LORA_RANK_MAX, rank, err);
    }
    int64_t value = 0;
    ND_TRY(nd_text_int(entry + 5, "the LoRA base bits", 4, 16, &value, err));
    if (!base_bits_known(value)) {
        return nd_fail(err, ND_EINVAL, "the LoRA base bits must be 4, 8 or 16, got %" PRId64, value);
    }
    *bits = value;
    return ND_OK;
}

nd_status nd_lora_parse(const char *text, nd_train_spec *spec, nd_error *err)
{
    int64_t rank = 0;
    int64_t bits = 0;
    for (const char *at = text;; at++) {
        char entry[LORA_TEXT_MAX];
        size_t length = strcspn(at, ",");
        if (length >= sizeof entry) {
            return nd_fail(err, ND_EINVAL, "unknown LoRA entry '%.40s...'; write r=16 or r=16,bits=4", at);
        }
        memcpy(entry, at, length);
        entry[length] = '\0';
        ND_TRY(parse_lora_entry(entry, &rank, &bits, err));
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    if (rank == 0) {
        return nd_fail(err, ND_EINVAL, "LoRA needs its rank, as in r=16; got '%.40s'", text);
    }
    spec->lora_rank = (int32_t)rank;
    spec->base_bits = bits == 0 ? 16 : (int32_t)bits;
    return ND_OK;
}

static nd_status check_sizes(const nd_train_spec *spec, nd_error *err)
{
    if (spec->seq_len_tokens < 1 || spec->seq_len_tokens > seq_len_max) {
        return nd_fail(err, ND_EINVAL, "the sequence length must be from 1 to %" PRId64 " tokens, got %" PRId64,
                       seq_len_max, spec->seq_len_tokens);
    }
    if (spec->global_batch_seqs < 1 || spec->global_batch_seqs > global_batch_max) {
        return nd_fail(err, ND_EINVAL, "the global batch must be from 1 to %" PRId64 " sequences, got %" PRId64,
                       global_batch_max, spec->global_batch_seqs);
    }
    if (spec->global_batch_seqs > step_tokens_max / spec->seq_len_tokens) {
        return nd_fail(err, ND_EINVAL,
                       "%" PRId64 " sequences of %" PRId64 " tokens are more than the %" PRId64
                       " tokens of one step allowed; lower one of them",
                       spec->global_batch_seqs, spec->seq_len_tokens, step_tokens_max);
    }
    return ND_OK;
}

nd_status nd_train_spec_check(const nd_train_spec *spec, nd_error *err)
{
    ND_TRY(check_sizes(spec, err));
    if ((int)spec->precision < 0 || spec->precision >= ND_DTYPE_COUNT || (int)spec->optimizer < 0 ||
        spec->optimizer >= ND_OPTIMIZER_COUNT || (int)spec->attention < 0 || spec->attention >= ND_ATTENTION_COUNT) {
        return nd_fail(err, ND_EINVAL, "precision %d, optimizer %d or attention %d is no known value; use their names",
                       (int)spec->precision, (int)spec->optimizer, (int)spec->attention);
    }
    if (spec->lora_rank < 0 || spec->lora_rank > LORA_RANK_MAX) {
        return nd_fail(err, ND_EINVAL, "the LoRA rank must be from 0 (off) to %d, got %" PRId32, (int)LORA_RANK_MAX,
                       spec->lora_rank);
    }
    if (!base_bits_known(spec->base_bits)) {
        return nd_fail(err, ND_EINVAL, "the base bits must be 4, 8 or 16, got %" PRId32, spec->base_bits);
    }
    if (spec->lora_rank == 0 && spec->base_bits != 16) {
        return nd_fail(err, ND_EINVAL,
                       "%" PRId32 "-bit base weights need LoRA, because they cannot train; set its rank",
                       spec->base_bits);
    }
    return ND_OK;
}
