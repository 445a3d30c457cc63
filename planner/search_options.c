/* Pins and limits: which of them contradict each other, the cluster or the batch, and what would work instead. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"
#include "planner/search_space_internal.h"

typedef struct degree_key {
    nd_layout_key key;
    nd_axis axis; /* ND_AXIS_COUNT: not an axis of the mesh */
} degree_key;

static const degree_key degree_keys[] = {
    {ND_LAYOUT_KEY_PP, ND_AXIS_PP},
    {ND_LAYOUT_KEY_DP_REPLICATE, ND_AXIS_DP_REPLICATE},
    {ND_LAYOUT_KEY_DP_SHARD, ND_AXIS_DP_SHARD},
    {ND_LAYOUT_KEY_CP, ND_AXIS_CP},
    {ND_LAYOUT_KEY_TP, ND_AXIS_TP},
    {ND_LAYOUT_KEY_EP, ND_AXIS_COUNT},
    {ND_LAYOUT_KEY_VPP, ND_AXIS_COUNT},
    {ND_LAYOUT_KEY_MICRO_BATCH, ND_AXIS_COUNT},
};

enum { DEGREE_KEYS_COUNT = sizeof degree_keys / sizeof degree_keys[0] };

static bool has(uint32_t set, nd_layout_key key)
{
    return (set >> key & 1u) != 0;
}

typedef struct text {
    char *out;
    size_t bytes, used;
} text;

static void append(text *t, const char *format, ...) ND_PRINTF(2, 3);
static void append(text *t, const char *format, ...)
{
    if (t->used >= t->bytes) {
        return;
    }
    va_list args;
    va_start(args, format);
    int length = vsnprintf(t->out + t->used, t->bytes - t->used, format, args);
    va_end(args);
    t->used += length > 0 ? (size_t)length : 0;
}

static void append_key(text *t, const char *key, const char *relation, int64_t value)
{
    append(t, "%s%s%s%" PRId64, t->used == 0 ? "" : ", ", key, relation, value);
}

static void append_mode(text *t, const char *key, const char *value)
{
    append(t, "%s%s=%s", t->used == 0 ? "" : ", ", key, value);
}

static void append_modes(text *t, const nd_layout *pin, uint32_t pinned)
{
    if (has(pinned, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        append_key(t, "grad_accum", "=", pin->grad_accum);
    }
    if (has(pinned, ND_LAYOUT_KEY_SP)) {
        append_mode(t, "sp", pin->sequence_parallel ? "on" : "off");
    }
    if (has(pinned, ND_LAYOUT_KEY_CP_METHOD)) {
        append_mode(t, "cp_method", nd_cp_method_name(pin->cp_method));
    }
    if (has(pinned, ND_LAYOUT_KEY_SCHEDULE)) {
        append_mode(t, "schedule", nd_schedule_name(pin->schedule));
    }
    if (has(pinned, ND_LAYOUT_KEY_SPLIT)) {
        append_mode(t, "split", nd_split_name(pin->split));
    }
    if (has(pinned, ND_LAYOUT_KEY_SHARDING)) {
        append_mode(t, "sharding", nd_sharding_name(pin->sharding));
    }
    if (has(pinned, ND_LAYOUT_KEY_RECOMPUTE)) {
        append_mode(t, "recompute", nd_recompute_name(pin->recompute));
    }
    if (has(pinned, ND_LAYOUT_KEY_OFFLOAD)) {
        append_mode(t, "offload", nd_offload_name(pin->offload));
    }
}

void nd_search_options_text(const nd_search_options *options, char *out, size_t out_bytes)
{
    text t = {out, out_bytes, 0};
    (void)snprintf(out, out_bytes, "(none)");
    for (int i = 0; i < DEGREE_KEYS_COUNT; i++) {
        const char *name = nd_layout_key_name(degree_keys[i].key);
        if (has(options->pinned, degree_keys[i].key)) {
            append_key(&t, name, "=", nd_layout_key_value(&options->pin, degree_keys[i].key));
        } else if (has(options->limited, degree_keys[i].key)) {
            append_key(&t, name, "<=", nd_layout_key_value(&options->max, degree_keys[i].key));
        }
    }
    append_modes(&t, &options->pin, options->pinned);
}

static nd_status check_values(const nd_search_options *options, nd_error *err)
{
    uint32_t degrees = 0;
    for (int i = 0; i < DEGREE_KEYS_COUNT; i++) {
        const degree_key *key = &degree_keys[i];
        const char *name = nd_layout_key_name(key->key);
        int64_t pin = nd_layout_key_value(&options->pin, key->key);
        int64_t max = nd_layout_key_value(&options->max, key->key);
        bool pinned = has(options->pinned, key->key);
        bool limited = has(options->limited, key->key);
        degrees |= 1u << key->key;
        if (pinned && pin < 1) {
            return nd_fail(err, ND_EINVAL, "pin %s=%" PRId64 ": must be at least 1", name, pin);
        }
        if (limited && max < 1) {
            return nd_fail(err, ND_EINVAL, "max %s=%" PRId64 ": must be at least 1", name, max);
        }
        if (pinned && limited && pin > max) {
            return nd_fail(err, ND_EINVAL,
                           "pin %s=%" PRId64 " is above max %s=%" PRId64 "; raise the limit or lower the pin", name,
                           pin, name, max);
        }
    }
    if (has(options->pinned, ND_LAYOUT_KEY_GRAD_ACCUM) && options->pin.grad_accum < 1) {
        return nd_fail(err, ND_EINVAL, "pin grad_accum=%" PRId64 ": must be at least 1", options->pin.grad_accum);
    }
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        if (has(options->limited & ~degrees, (nd_layout_key)key)) {
            return nd_fail(err, ND_EINVAL, "%s has no upper limit; pin it instead",
                           nd_layout_key_name((nd_layout_key)key));
        }
    }
    return ND_OK;
}

/* The divisors of `count` around `value`: "2 or 4". */
static void neighbours(int64_t count, int64_t value, char *out, size_t out_bytes)
{
    int64_t below = value < count ? value : count;
    int64_t above = value + 1;
    while (below > 1 && count % below != 0) {
        below--;
    }
    while (above <= count && count % above != 0) {
        above++;
    }
    if (above <= count) {
        (void)snprintf(out, out_bytes, "%" PRId64 " or %" PRId64, below, above);
    } else {
        (void)snprintf(out, out_bytes, "%" PRId64, below);
    }
}

static nd_status check_divides(const nd_search_options *options, int64_t gpus, nd_error *err)
{
    for (int i = 0; i < DEGREE_KEYS_COUNT; i++) {
        const degree_key *key = &degree_keys[i];
        bool cuts_mesh = key->axis != ND_AXIS_COUNT || key->key == ND_LAYOUT_KEY_EP;
        int64_t value = nd_layout_key_value(&options->pin, key->key);
        if (!cuts_mesh || !has(options->pinned, key->key) || gpus % value == 0) {
            continue;
        }
        char near[48];
        neighbours(gpus, value, near, sizeof near);
        const char *name = nd_layout_key_name(key->key);
        return nd_fail(err, ND_EINVAL, "pin %s=%" PRId64 " does not divide the %" PRId64 " GPU%s; use %s=%s", name,
                       value, gpus, nd_text_plural(gpus), name, near);
    }
    return ND_OK;
}

static nd_status check_product(const nd_search_options *options, int64_t gpus, nd_error *err)
{
    char pins[160];
    text t = {pins, sizeof pins, 0};
    pins[0] = '\0';
    int64_t product = 1;
    int free_axes = 0;
    for (int i = 0; i < DEGREE_KEYS_COUNT; i++) {
        const degree_key *key = &degree_keys[i];
        if (key->axis == ND_AXIS_COUNT) {
            continue;
        }
        if (!has(options->pinned, key->key)) {
            free_axes++;
            continue;
        }
        int64_t value =
            nd_layout_key_value(&options->pin, key->key); /* divides gpus, so the product stays below gpus^2 */
        product = product > gpus ? product : product * value;
        append_key(&t, nd_layout_key_name(key->key), "=", value);
    }
    if (gpus % product != 0) {
        return nd_fail(err, ND_EINVAL,
                       "pins %s multiply to %s%" PRId64 ", which does not divide the %" PRId64
                       " GPUs; pin fewer or smaller degrees",
                       pins, product > gpus ? "at least " : "", product, gpus);
    }
    if (free_axes == 0 && product != gpus) {
        return nd_fail(err, ND_EINVAL,
                       "pins %s multiply to %" PRId64 ", not to the %" PRId64
                       " GPUs; leave one of them free, or multiply one by %" PRId64,
                       pins, product, gpus, gpus / product);
    }
    return ND_OK;
}

/* Pinned modes that exclude a pinned degree. */
static nd_status check_modes(const nd_search_options *options, nd_error *err)
{
    const nd_layout *pin = &options->pin;
    bool pp1 = has(options->pinned, ND_LAYOUT_KEY_PP) && pin->size[ND_AXIS_PP] == 1;
    bool vpp = has(options->pinned, ND_LAYOUT_KEY_VPP) && pin->vpp > 1;
    bool schedule = has(options->pinned, ND_LAYOUT_KEY_SCHEDULE);
    if (vpp && pp1) {
        return nd_fail(err, ND_EINVAL,
                       "pins pp=1 and vpp=%" PRId32 " contradict: chunks need a pipeline; drop one of them", pin->vpp);
    }
    if (vpp && schedule && pin->schedule != ND_SCHEDULE_INTERLEAVED) {
        return nd_fail(err, ND_EINVAL,
                       "pins vpp=%" PRId32 " and schedule=%s contradict; use schedule=interleaved or vpp=1", pin->vpp,
                       nd_schedule_name(pin->schedule));
    }
    if (pp1 && schedule && pin->schedule != ND_SCHEDULE_1F1B) {
        return nd_fail(err, ND_EINVAL, "pins pp=1 and schedule=%s contradict: it needs a pipeline; drop one of them",
                       nd_schedule_name(pin->schedule));
    }
    if (pp1 && has(options->pinned, ND_LAYOUT_KEY_SPLIT) && pin->split != ND_SPLIT_EVEN) {
        return nd_fail(err, ND_EINVAL, "pins pp=1 and split=%s contradict: it divides a pipeline; drop one of them",
                       nd_split_name(pin->split));
    }
    if (has(options->pinned, ND_LAYOUT_KEY_SP) && pin->sequence_parallel && has(options->pinned, ND_LAYOUT_KEY_TP) &&
        pin->size[ND_AXIS_TP] == 1) {
        return nd_fail(err, ND_EINVAL,
                       "pins tp=1 and sp=on contradict: sequence parallelism divides over tp; drop one");
    }
    if (has(options->pinned, ND_LAYOUT_KEY_SHARDING) && pin->sharding == ND_SHARDING_NONE &&
        has(options->pinned, ND_LAYOUT_KEY_DP_SHARD) && pin->size[ND_AXIS_DP_SHARD] > 1) {
        return nd_fail(err, ND_EINVAL,
                       "pins dp_shard=%" PRId32 " and sharding=none contradict; use dp_replicate=%" PRId32
                       " or another sharding",
                       pin->size[ND_AXIS_DP_SHARD], pin->size[ND_AXIS_DP_SHARD]);
    }
    return ND_OK;
}

static nd_status check_batch(const nd_search_options *options, int64_t global, nd_error *err)
{
    const struct {
        nd_layout_key key;
        int64_t value;
    } factors[] = {
        {ND_LAYOUT_KEY_MICRO_BATCH, options->pin.micro_batch},
        {ND_LAYOUT_KEY_GRAD_ACCUM, options->pin.grad_accum},
        {ND_LAYOUT_KEY_DP_REPLICATE, options->pin.size[ND_AXIS_DP_REPLICATE]},
        {ND_LAYOUT_KEY_DP_SHARD, options->pin.size[ND_AXIS_DP_SHARD]},
    };
    char pins[160];
    text t = {pins, sizeof pins, 0};
    pins[0] = '\0';
    int64_t product = 1;
    int given = 0;
    for (int i = 0; i < 4; i++) {
        if (!has(options->pinned, factors[i].key)) {
            continue;
        }
        if (factors[i].value > INT64_MAX / product) {
            product = INT64_MAX;
        } else {
            product *= factors[i].value;
        }
        given++;
        append_key(&t, nd_layout_key_name(factors[i].key), "=", factors[i].value);
    }
    int64_t below = global / product * product;
    if (global % product != 0 && below == 0) {
        return nd_fail(err, ND_EINVAL,
                       "pins %s take %" PRId64 " sequences a step, more than the global batch of %" PRId64
                       "; lower a pin, or raise --global-batch to %" PRId64,
                       pins, product, global, product);
    }
    if (global % product != 0) {
        return nd_fail(err, ND_EINVAL,
                       "pins %s make %" PRId64 " sequences, which does not divide the global batch of %" PRId64
                       "; use --global-batch %" PRId64 " or %" PRId64,
                       pins, product, global, below, below + product);
    }
    if (given == 4 && product != global) {
        return nd_fail(err, ND_EINVAL,
                       "pins %s make a global batch of %" PRId64 ", not %" PRId64 "; leave grad_accum free", pins,
                       product, global);
    }
    return ND_OK;
}

nd_status nd_search_options_check(const nd_cost_context *context, const nd_search_options *options, nd_error *err)
{
    if (options->top < 1 || options->top > ND_PLANS_MAX) {
        return nd_fail(err, ND_EINVAL, "top must be 1 to %d plans, got %" PRId32, (int)ND_PLANS_MAX, options->top);
    }
    int64_t gpus = context->cluster->gpus;
    ND_TRY(check_values(options, err));
    ND_TRY(check_divides(options, gpus, err));
    ND_TRY(check_product(options, gpus, err));
    ND_TRY(check_modes(options, err));
    return check_batch(options, context->train->global_batch_seqs, err);
}
