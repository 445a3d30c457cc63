#include "cli/sweep_input.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

enum { NUMBER_MAX = 64 };

static const double bits_per_byte = 8.0;
static const int64_t counts_max[ND_SWEEP_QUANTITY_COUNT] = {
    [ND_SWEEP_GPUS] = INT64_C(1) << 20, /* as a cluster has at most */
    [ND_SWEEP_SEQ_LEN] = INT64_C(1) << 30,
    [ND_SWEEP_GLOBAL_BATCH] = INT64_C(1) << 40,
    [ND_SWEEP_NVLINK_DOMAIN] = INT64_C(1) << 20,
};

/* A rate of NICs: what network vendors write, and bytes for those who think in them. */
static nd_status parse_rate(const char *text, const char *what, double *out, nd_error *err)
{
    static const struct {
        const char *unit;
        double bytes_per_s;
    } units[] = {{"Gb/s", ND_GIGA / bits_per_byte},
                 {"Gbps", ND_GIGA / bits_per_byte},
                 {"Gbit/s", ND_GIGA / bits_per_byte},
                 {"Tb/s", ND_TERA / bits_per_byte},
                 {"GB/s", ND_GIGA},
                 {"", ND_GIGA / bits_per_byte}};
    char number[NUMBER_MAX];
    size_t digits = strspn(text, "0123456789.eE+-");
    double value = 0.0;
    if (digits >= sizeof number) {
        return nd_fail(err, ND_EINVAL, "%s has %zu characters; write the rate shorter", what, digits);
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)digits, text);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (digits > 0 && strcmp(text + digits, units[i].unit) == 0) {
            ND_TRY(nd_text_double(number, what, 1e-3, 1e6, &value, err));
            *out = value * units[i].bytes_per_s;
            return ND_OK;
        }
    }
    return nd_fail(err, ND_EINVAL, "%s must be a rate like 100Gb/s, 50GB/s or plain Gb/s, got '%.40s'", what, text);
}

static nd_status parse_value(const char *text, const char *what, nd_sweep_quantity quantity, double *out, nd_error *err)
{
    int64_t whole = 0;
    if (quantity == ND_SWEEP_NIC) {
        return parse_rate(text, what, out, err);
    }
    ND_TRY(nd_text_int(text, what, 1, counts_max[quantity], &whole, err));
    *out = (double)whole;
    return ND_OK;
}

static nd_status parse_list(const char *text, nd_sweep_quantity quantity, double *values, int32_t *count, nd_error *err)
{
    *count = 0;
    for (const char *at = text;; at++) {
        char item[NUMBER_MAX];
        size_t length = strcspn(at, ",");
        double value = 0.0;
        if (length >= sizeof item) {
            return nd_fail(err, ND_EINVAL, "--values has an item of %zu characters; write it shorter", length);
        }
        if (*count == ND_SWEEP_POINTS_MAX) {
            return nd_fail(err, ND_EINVAL, "--values has more than %d values", (int)ND_SWEEP_POINTS_MAX);
        }
        if (length == 0) {
            return nd_fail(err, ND_EINVAL, "--values %.80s has an empty item; write values with one comma between them",
                           text);
        }
        (void)snprintf(item, sizeof item, "%.*s", (int)length, at);
        ND_TRY(parse_value(item, "--values", quantity, &value, err));
        if (*count > 0 && value <= values[*count - 1]) {
            return nd_fail(err, ND_EINVAL, "--values %.80s must ascend, and %s is not above the value before it", text,
                           item);
        }
        values[(*count)++] = value;
        at += length;
        if (*at == '\0') {
            return ND_OK;
        }
    }
}

static const char *quantity_name(int value)
{
    return nd_sweep_quantity_name((nd_sweep_quantity)value);
}

nd_status nd_sweep_input_quantity(const nd_options *options, nd_sweep_quantity *out, nd_error *err)
{
    static const struct {
        nd_sweep_quantity quantity;
        nd_option_id option;
    } same[] = {{ND_SWEEP_SEQ_LEN, ND_OPTION_SEQ_LEN},
                {ND_SWEEP_GLOBAL_BATCH, ND_OPTION_GLOBAL_BATCH},
                {ND_SWEEP_GLOBAL_BATCH, ND_OPTION_GLOBAL_BATCH_TOKENS}};
    const char *text = options->value[ND_OPTION_OVER];
    int quantity = 0;
    if (text == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--over is missing: what varies, one of gpus, seq-len, global-batch, nic, nvlink-domain");
    }
    ND_TRY(nd_text_choice(text, "--over", quantity_name, ND_SWEEP_QUANTITY_COUNT, &quantity, err));
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        bool whole_batch = same[i].option == ND_OPTION_GLOBAL_BATCH_TOKENS;
        if (same[i].quantity == (nd_sweep_quantity)quantity && nd_options_has(options, same[i].option)) {
            return nd_fail(err, ND_EINVAL, "--over %s varies %s; leave %s out", text,
                           whole_batch ? "the batch" : nd_option_name(same[i].option), nd_option_name(same[i].option));
        }
    }
    *out = (nd_sweep_quantity)quantity;
    return ND_OK;
}

nd_status nd_sweep_input_values(const nd_options *options, const nd_cluster_spec *cluster, nd_sweep_quantity quantity,
                                double *values, int32_t *count, nd_error *err)
{
    const char *list = options->value[ND_OPTION_VALUES];
    const char *from = options->value[ND_OPTION_FROM];
    const char *to = options->value[ND_OPTION_TO];
    const char *steps = options->value[ND_OPTION_STEPS];
    nd_sweep_range range = {0.0, 0.0, 0};
    if (list != NULL && (from != NULL || to != NULL || steps != NULL)) {
        return nd_fail(err, ND_EINVAL, "--values names the points and %s says where they lie; give one of them",
                       from != NULL ? "--from"
                       : to != NULL ? "--to"
                                    : "--steps");
    }
    if (list != NULL) {
        return parse_list(list, quantity, values, count, err);
    }
    if (from != NULL) {
        ND_TRY(parse_value(from, "--from", quantity, &range.from, err));
    }
    if (to != NULL) {
        ND_TRY(parse_value(to, "--to", quantity, &range.to, err));
    }
    if (range.from > 0.0 && range.to > 0.0 && range.from > range.to) {
        return nd_fail(err, ND_EINVAL, "--from %s is above --to %s; exchange them", from, to);
    }
    if (steps != NULL) {
        int64_t points = 0;
        ND_TRY(nd_text_int(steps, "--steps", 2, ND_SWEEP_POINTS_MAX, &points, err));
        range.steps = (int32_t)points;
    }
    return nd_sweep_values(cluster, quantity, &range, values, count, err);
}

/* The option that value `index` of `count` is from, as it was typed. */
static void origin_of(const nd_options *options, nd_sweep_quantity quantity, int32_t index, char *out, size_t out_bytes)
{
    const char *from = options->value[ND_OPTION_FROM];
    const char *to = options->value[ND_OPTION_TO];
    if (options->value[ND_OPTION_VALUES] != NULL) {
        (void)snprintf(out, out_bytes, "--values");
    } else if (index == 0 && from != NULL) {
        (void)snprintf(out, out_bytes, "--from %.40s", from);
    } else if (to != NULL) { /* what lies between follows from it, too */
        (void)snprintf(out, out_bytes, "--to %.40s", to);
    } else {
        (void)snprintf(out, out_bytes, "--over %s", nd_sweep_quantity_name(quantity));
    }
}

nd_status nd_sweep_input_check(const nd_options *options, const nd_task *task, nd_sweep_quantity quantity,
                               const double *values, int32_t count, nd_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        nd_cluster_spec cluster;
        nd_train_spec train;
        nd_error inner;
        nd_status status = nd_sweep_inputs(task, quantity, values[i], &cluster, &train, &inner);
        if (status != ND_OK) {
            char origin[80];
            origin_of(options, quantity, i, origin, sizeof origin);
            return nd_fail(err, status, "%s: %.900s", origin, inner.message);
        }
    }
    return ND_OK;
}
