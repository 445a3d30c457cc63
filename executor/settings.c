#include "executor/settings.h"

#include <inttypes.h>
#include <stdio.h>

enum { VALUE_TEXT = 160 };

static nd_status refuse(const char *from, const char *saved, const char *now, const char *why, nd_error *err)
{
    return nd_fail(err, ND_EINVAL,
                   "%s was trained with %s, and this run has %s: %s; go on with %s, or begin anew without the "
                   "checkpoint",
                   from, saved, now, why, saved);
}

static void data_text(const nd_settings *s, char text[VALUE_TEXT])
{
    if (s->data_bytes == 0) {
        (void)snprintf(text, VALUE_TEXT, "synthetic tokens");
    } else {
        (void)snprintf(text, VALUE_TEXT, "a data file of %" PRId64 " bytes (checksum %016" PRIx64 ")", s->data_bytes,
                       s->data_checksum);
    }
}

static const char *const other_data = "sequences would be repeated or left out";

static nd_status compare_data(const nd_settings *saved, const nd_settings *now, const char *from, nd_error *err)
{
    char before[VALUE_TEXT];
    char after[VALUE_TEXT];
    if (saved->data_bytes != now->data_bytes || saved->data_checksum != now->data_checksum) {
        data_text(saved, before);
        data_text(now, after);
        return refuse(from, before, after, "other sequences would follow", err);
    }
    if (saved->seed != now->seed) {
        (void)snprintf(before, sizeof before, "data seed %" PRIu64, saved->seed);
        (void)snprintf(after, sizeof after, "%" PRIu64, now->seed);
        return refuse(from, before, after, other_data, err);
    }
    return ND_OK;
}

static nd_status compare_count(int64_t saved, int64_t now, const char *what, const char *why, const char *from,
                               nd_error *err)
{
    char before[VALUE_TEXT];
    char after[VALUE_TEXT];
    if (saved == now) {
        return ND_OK;
    }
    (void)snprintf(before, sizeof before, "%s of %" PRId64, what, saved);
    (void)snprintf(after, sizeof after, "%" PRId64, now);
    return refuse(from, before, after, why, err);
}

/* Both come from the same text or from a manifest, which keeps every bit. */
static bool same(double a, double b)
{
    return a >= b && a <= b;
}

static nd_status compare_number(double saved, double now, const char *what, const char *why, const char *from,
                                nd_error *err)
{
    char before[VALUE_TEXT];
    char after[VALUE_TEXT];
    if (same(saved, now)) {
        return ND_OK;
    }
    (void)snprintf(before, sizeof before, "%s of %.12g", what, saved);
    (void)snprintf(after, sizeof after, "%.12g", now);
    return refuse(from, before, after, why, err);
}

static nd_status compare_fixed(const nd_settings *saved, const nd_settings *now, const char *from, nd_error *err)
{
    static const char *const bent = "the schedule would bend in the middle";
    static const char *const moments = "the moments would mean something else";
    ND_TRY(compare_data(saved, now, from, err));
    ND_TRY(compare_count(saved->seq_len_tokens, now->seq_len_tokens, "a sequence length", other_data, from, err));
    ND_TRY(compare_count(saved->global_batch_seqs, now->global_batch_seqs, "a global batch", other_data, from, err));
    ND_TRY(compare_number(saved->masked_frac, now->masked_frac, "a share of masked labels", "other labels would count",
                          from, err));
    ND_TRY(compare_count(saved->warmup_steps, now->warmup_steps, "a warm-up", bent, from, err));
    ND_TRY(compare_count(saved->decay_steps, now->decay_steps, "a decay until step", bent, from, err));
    ND_TRY(compare_number(saved->beta1, now->beta1, "a first beta", moments, from, err));
    ND_TRY(compare_number(saved->beta2, now->beta2, "a second beta", moments, from, err));
    return compare_number(saved->eps, now->eps, "an epsilon", moments, from, err);
}

static void note(const char *name, double before, double now, nd_setting_change *changes, int32_t *count)
{
    if (!same(before, now)) {
        changes[(*count)++] = (nd_setting_change){.name = name, .before = before, .now = now};
    }
}

nd_status nd_settings_compare(const nd_settings *saved, const nd_settings *now, const char *from,
                              nd_setting_change *changes, int32_t *count, nd_error *err)
{
    ND_TRY(compare_fixed(saved, now, from, err));
    *count = 0;
    note("lr", saved->lr, now->lr, changes, count);
    note("weight_decay", saved->weight_decay, now->weight_decay, changes, count);
    note("clip_norm", saved->clip_norm, now->clip_norm, changes, count);
    return ND_OK;
}
