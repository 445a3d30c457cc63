/* The one-line form of a layout: what --layout takes and what tables and notes print. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/layout.h"
#include "core/text.h"

enum {
    WORD_MAX = 64,           /* longest key or value that can mean something, with its terminator */
    DEGREE_MAX = 1 << 20,    /* of one axis, and of micro_batch */
    RANKS_MAX = 1 << 30,     /* of the whole mesh */
    RECOMPUTE_MAX = 1 << 20, /* k of every:k */
};
static const int64_t grad_accum_max = INT64_C(1) << 40;
static const int64_t global_batch_max = INT64_C(1) << 40; /* as nd_train_spec_check() */

/* Words of other tools for our keys, where spelling alone would suggest the wrong one. */
static const struct {
    const char *word;
    const char *keys;
} synonyms[] = {
    {"dp", "dp_replicate (whole copies) or dp_shard (FSDP, ZeRO)"},
    {"ddp", "dp_replicate"},
    {"fsdp", "dp_shard"},
    {"zero", "sharding"},
    {"sequence_parallel", "sp"},
    {"mbs", "micro_batch"},
    {"micro_batch_size", "micro_batch"},
    {"ga", "grad_accum"},
    {"gas", "grad_accum"},
    {"gradient_accumulation_steps", "grad_accum"},
    {"checkpointing", "recompute"},
    {"activation_checkpointing", "recompute"},
};

typedef const char *(*name_of)(int value);

static const char *sharding_text(int value)
{
    return nd_sharding_name((nd_sharding)value);
}

static const char *cp_method_text(int value)
{
    return nd_cp_method_name((nd_cp_method)value);
}

static const char *schedule_text(int value)
{
    return nd_schedule_name((nd_schedule)value);
}

static const char *split_text(int value)
{
    return nd_split_name((nd_split)value);
}

static const char *offload_text(int value)
{
    return nd_offload_name((nd_offload)value);
}

static nd_status parse_choice(const char *key, const char *text, name_of name, int count, int *out, nd_error *err)
{
    char what[WORD_MAX + sizeof "layout key "];
    (void)snprintf(what, sizeof what, "layout key %s", key);
    return nd_text_choice(text, what, name, count, out, err);
}

static nd_status parse_count(const char *key, const char *text, int64_t max, int64_t *out, nd_error *err)
{
    char what[WORD_MAX];
    (void)snprintf(what, sizeof what, "layout key %s", key);
    return nd_text_int(text, what, 1, max, out, err);
}

static nd_status parse_degree(const char *key, const char *text, int32_t *out, nd_error *err)
{
    int64_t value = 0;
    ND_TRY(parse_count(key, text, DEGREE_MAX, &value, err));
    *out = (int32_t)value;
    return ND_OK;
}

static nd_status parse_switch(const char *text, bool *out, nd_error *err)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
        return nd_fail(err, ND_EINVAL, "layout key sp must be on or off, got '%s'", text);
    }
    *out = strcmp(text, "on") == 0;
    return ND_OK;
}

static nd_status parse_recompute(const char *text, nd_layout *layout, nd_error *err)
{
    static const char every[] = "every:";
    if (strncmp(text, every, sizeof every - 1) == 0) {
        int64_t distance = 0;
        ND_TRY(nd_text_int(text + sizeof every - 1, "the distance in recompute=every:N", 1, RECOMPUTE_MAX, &distance,
                           err));
        layout->recompute = ND_RECOMPUTE_EVERY;
        layout->recompute_every = (int32_t)distance;
        return ND_OK;
    }
    for (int value = 0; value < ND_RECOMPUTE_COUNT; value++) {
        if (value != ND_RECOMPUTE_EVERY && strcmp(text, nd_recompute_name((nd_recompute)value)) == 0) {
            layout->recompute = (nd_recompute)value;
            return ND_OK;
        }
    }
    return nd_fail(err, ND_EINVAL,
                   "layout key recompute must be none, selective, full or every:N (as every:4), got '%s'", text);
}

static nd_status parse_value(nd_layout_key key, const char *text, nd_layout *layout, nd_error *err)
{
    const char *name = nd_layout_key_name(key);
    int choice = 0;
    switch (key) {
    case ND_LAYOUT_KEY_PP:
        return parse_degree(name, text, &layout->size[ND_AXIS_PP], err);
    case ND_LAYOUT_KEY_DP_REPLICATE:
        return parse_degree(name, text, &layout->size[ND_AXIS_DP_REPLICATE], err);
    case ND_LAYOUT_KEY_DP_SHARD:
        return parse_degree(name, text, &layout->size[ND_AXIS_DP_SHARD], err);
    case ND_LAYOUT_KEY_CP:
        return parse_degree(name, text, &layout->size[ND_AXIS_CP], err);
    case ND_LAYOUT_KEY_TP:
        return parse_degree(name, text, &layout->size[ND_AXIS_TP], err);
    case ND_LAYOUT_KEY_EP:
        return parse_degree(name, text, &layout->ep, err);
    case ND_LAYOUT_KEY_VPP:
        return parse_degree(name, text, &layout->vpp, err);
    case ND_LAYOUT_KEY_SP:
        return parse_switch(text, &layout->sequence_parallel, err);
    case ND_LAYOUT_KEY_CP_METHOD:
        ND_TRY(parse_choice(name, text, cp_method_text, ND_CP_METHOD_COUNT, &choice, err));
        layout->cp_method = (nd_cp_method)choice;
        return ND_OK;
    case ND_LAYOUT_KEY_SCHEDULE:
        ND_TRY(parse_choice(name, text, schedule_text, ND_SCHEDULE_COUNT, &choice, err));
        layout->schedule = (nd_schedule)choice;
        return ND_OK;
    case ND_LAYOUT_KEY_SPLIT:
        ND_TRY(parse_choice(name, text, split_text, ND_SPLIT_COUNT, &choice, err));
        layout->split = (nd_split)choice;
        return ND_OK;
    case ND_LAYOUT_KEY_MICRO_BATCH:
        return parse_degree(name, text, &layout->micro_batch, err);
    case ND_LAYOUT_KEY_GRAD_ACCUM:
        return parse_count(name, text, grad_accum_max, &layout->grad_accum, err);
    case ND_LAYOUT_KEY_SHARDING:
        ND_TRY(parse_choice(name, text, sharding_text, ND_SHARDING_COUNT, &choice, err));
        layout->sharding = (nd_sharding)choice;
        return ND_OK;
    case ND_LAYOUT_KEY_RECOMPUTE:
        return parse_recompute(text, layout, err);
    case ND_LAYOUT_KEY_OFFLOAD:
        ND_TRY(parse_choice(name, text, offload_text, ND_OFFLOAD_COUNT, &choice, err));
        layout->offload = (nd_offload)choice;
        return ND_OK;
    case ND_LAYOUT_KEY_COUNT:
        break;
    }
    assert(false);
    return ND_EINVAL;
}

static nd_status unknown_key(const char *text, nd_error *err)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(text, synonyms[i].word) == 0) {
            return nd_fail(err, ND_EINVAL, "unknown layout key '%s'; use %s", text, synonyms[i].keys);
        }
    }
    const char *names[ND_LAYOUT_KEY_COUNT];
    char all[256] = "";
    size_t used = 0;
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        names[key] = nd_layout_key_name((nd_layout_key)key);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", key == 0 ? "" : ", ", names[key]);
        assert(used < sizeof all);
    }
    const char *nearest = nd_text_nearest(text, names, ND_LAYOUT_KEY_COUNT);
    if (nearest != NULL) {
        return nd_fail(err, ND_EINVAL, "unknown layout key '%s'; did you mean '%s'?", text, nearest);
    }
    return nd_fail(err, ND_EINVAL, "unknown layout key '%s'; the keys are %s", text, all);
}

static nd_status find_key(const char *text, nd_layout_key *out, nd_error *err)
{
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        if (strcmp(text, nd_layout_key_name((nd_layout_key)key)) == 0) {
            *out = (nd_layout_key)key;
            return ND_OK;
        }
    }
    return unknown_key(text, err);
}

/* Copy text[0 .. length) without the blanks around it; false when it cannot be a word of a layout. */
static bool copy_word(const char *text, size_t length, char word[WORD_MAX])
{
    while (length > 0 && text[0] == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    if (length == 0 || length >= WORD_MAX) {
        return false;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    return true;
}

/* One "key=value" of `length` bytes; a bare "every:4" stands for recompute=every:4. */
static nd_status parse_entry(const char *entry, size_t length, nd_layout *layout, uint32_t *given, nd_error *err)
{
    char key_text[WORD_MAX] = "";
    char value[WORD_MAX] = "";
    nd_layout_key key = ND_LAYOUT_KEY_RECOMPUTE;
    const char *equals = memchr(entry, '=', length);
    int shown = length < WORD_MAX ? (int)length : WORD_MAX;
    if (equals != NULL) {
        size_t key_length = (size_t)(equals - entry);
        if (!copy_word(entry, key_length, key_text) || !copy_word(equals + 1, length - key_length - 1, value)) {
            return nd_fail(err, ND_EINVAL, "layout entry '%.*s' is not key=value, as in tp=8", shown, entry);
        }
        ND_TRY(find_key(key_text, &key, err));
    } else if (!copy_word(entry, length, value) || strncmp(value, "every:", 6) != 0) {
        return nd_fail(err, ND_EINVAL, "layout entry '%.*s' is not key=value, as in tp=8", shown, entry);
    }
    if ((*given & (1u << key)) != 0) {
        return nd_fail(err, ND_EINVAL, "layout key %s is given twice; keep one", nd_layout_key_name(key));
    }
    ND_TRY(parse_value(key, value, layout, err));
    *given |= 1u << key;
    return ND_OK;
}

/* What no single key can tell: products that would overflow, and a schedule that denies vpp. */
static nd_status check_together(nd_layout *layout, uint32_t given, nd_error *err)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        ranks *= layout->size[axis]; /* at most 2^30 x 2^20 */
        if (ranks > RANKS_MAX) {
            return nd_fail(err, ND_EINVAL, "the layout has more than %d ranks; lower its degrees", (int)RANKS_MAX);
        }
    }
    int64_t rows = layout->micro_batch * nd_layout_data_ranks(layout); /* at most 2^20 x 2^30 */
    if (rows > global_batch_max / layout->grad_accum) {
        return nd_fail(err, ND_EINVAL,
                       "micro_batch x grad_accum x dp_replicate x dp_shard is more than %" PRId64
                       " sequences; lower one of them",
                       global_batch_max);
    }
    bool schedule_given = (given & (1u << ND_LAYOUT_KEY_SCHEDULE)) != 0;
    if (layout->vpp > 1 && layout->schedule == ND_SCHEDULE_1F1B) {
        if (schedule_given) {
            return nd_fail(err, ND_EINVAL,
                           "vpp=%" PRId32 " contradicts schedule=1f1b; use schedule=interleaved or vpp=1", layout->vpp);
        }
        layout->schedule = ND_SCHEDULE_INTERLEAVED;
    }
    return ND_OK;
}

nd_status nd_layout_parse(const char *text, nd_layout *out, uint32_t *given, nd_error *err)
{
    if (text[strspn(text, " ")] == '\0') {
        return nd_fail(err, ND_EINVAL, "the layout is empty; write for example dp_shard=8,tp=2");
    }
    nd_layout layout = nd_layout_single();
    uint32_t keys = 0;
    for (const char *entry = text;;) {
        size_t length = strcspn(entry, ",");
        ND_TRY(parse_entry(entry, length, &layout, &keys, err));
        if (entry[length] == '\0') {
            break;
        }
        entry += length + 1;
    }
    ND_TRY(check_together(&layout, keys, err));
    *out = layout;
    if (given != NULL) {
        *given = keys;
    }
    return ND_OK;
}

typedef struct sink {
    char *buffer;
    size_t bytes;
    size_t used; /* as if the buffer were endless */
} sink;

static void put(sink *out, const char *format, ...) ND_PRINTF(2, 3);
static void put(sink *out, const char *format, ...)
{
    char entry[WORD_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(entry, sizeof entry, format, args);
    va_end(args);
    assert(length > 0 && length < WORD_MAX);
    (void)length;
    const char *text = out->used == 0 ? entry + 1 : entry; /* every entry starts with its comma */
    for (; *text != '\0'; text++, out->used++) {
        if (out->used + 1 < out->bytes) {
            out->buffer[out->used] = *text;
        }
    }
}

static void put_degrees(sink *out, const nd_layout *layout)
{
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (layout->size[axis] != 1) {
            put(out, ",%s=%" PRId32, nd_axis_name((nd_axis)axis), layout->size[axis]);
        }
    }
    if (layout->ep != 1) {
        put(out, ",ep=%" PRId32, layout->ep);
    }
    if (layout->vpp != 1) {
        put(out, ",vpp=%" PRId32, layout->vpp);
    }
}

/* Batch and sharding are written even at their default where readers of the text would otherwise choose them. */
size_t nd_layout_format(const nd_layout *layout, char *buffer, size_t buffer_bytes)
{
    sink out = {.buffer = buffer, .bytes = buffer_bytes};
    put_degrees(&out, layout);
    if (layout->sequence_parallel || layout->size[ND_AXIS_TP] > 1) {
        put(&out, ",sp=%s", layout->sequence_parallel ? "on" : "off");
    }
    if (layout->cp_method != ND_CP_METHOD_RING || layout->size[ND_AXIS_CP] > 1) {
        put(&out, ",cp_method=%s", nd_cp_method_name(layout->cp_method));
    }
    if (layout->schedule != (layout->vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B)) {
        put(&out, ",schedule=%s", nd_schedule_name(layout->schedule));
    }
    if (layout->split != ND_SPLIT_EVEN) {
        put(&out, ",split=%s", nd_split_name(layout->split));
    }
    put(&out, ",micro_batch=%" PRId32, layout->micro_batch);
    put(&out, ",grad_accum=%" PRId64, layout->grad_accum);
    if (layout->sharding != ND_SHARDING_NONE || layout->size[ND_AXIS_DP_SHARD] > 1 || layout->size[ND_AXIS_CP] > 1) {
        put(&out, ",sharding=%s", nd_sharding_name(layout->sharding));
    }
    if (layout->recompute == ND_RECOMPUTE_EVERY) {
        put(&out, ",recompute=every:%" PRId32, layout->recompute_every);
    } else if (layout->recompute != ND_RECOMPUTE_NONE) {
        put(&out, ",recompute=%s", nd_recompute_name(layout->recompute));
    }
    if (layout->offload != ND_OFFLOAD_NONE) {
        put(&out, ",offload=%s", nd_offload_name(layout->offload));
    }
    if (buffer_bytes > 0) {
        buffer[out.used < buffer_bytes ? out.used : buffer_bytes - 1] = '\0';
    }
    return out.used;
}
