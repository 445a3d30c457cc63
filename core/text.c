#include "core/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANONICAL_MAX = 128, /* longer names are compared by their beginning */
    PREFIX_MIN = 3,      /* fewer letters are the beginning of too many names */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c - 'A' + 'a');
    }
    return c;
}

/* Digits of `text` as a value <= 0, because INT64_MIN has no positive twin. Saturates; false when not a number. */
static bool read_negated(const char *digits, int64_t *out)
{
    int64_t value = 0;
    if (*digits == '\0') {
        return false;
    }
    for (const char *c = digits; *c != '\0'; c++) {
        if (!is_digit(*c)) {
            return false;
        }
        int64_t digit = *c - '0';
        value = value < (INT64_MIN + digit) / 10 ? INT64_MIN : value * 10 - digit;
    }
    *out = value;
    return true;
}

static bool is_whole(double value)
{
    return value == floor(value) && value < 1e15;
}

/* "8k" and "1.5M" are written by many and mean two numbers; which one is for the user to say. "; write 8192 or 8000",
 * or empty where `text` is no such number. */
static void suffix_hint(const char *text, char *hint, size_t hint_bytes)
{
    static const struct {
        char letter;
        double binary, decimal;
    } suffixes[] = {{'k', 1024.0, 1e3}, {'m', 1048576.0, 1e6}, {'g', 1073741824.0, 1e9}};
    size_t digits = strspn(text, "0123456789.");
    const char *suffix = text + digits;
    bool only_binary = suffix[0] != '\0' && suffix[1] == 'i';
    char *end = NULL;
    double value = is_digit(text[0]) ? strtod(text, &end) : 0.0;
    hint[0] = '\0';
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        double binary = value * suffixes[i].binary;
        double decimal = value * suffixes[i].decimal;
        if (value <= 0.0 || end != suffix || lower(suffix[0]) != suffixes[i].letter ||
            suffix[only_binary ? 2 : 1] != '\0') {
            continue;
        }
        if (is_whole(binary) && is_whole(decimal) && !only_binary) {
            (void)snprintf(hint, hint_bytes, "; write %.0f or %.0f", binary, decimal);
        } else if (is_whole(binary) || (is_whole(decimal) && !only_binary)) {
            (void)snprintf(hint, hint_bytes, "; write %.0f", is_whole(binary) ? binary : decimal);
        }
        return;
    }
}

nd_status nd_text_int(const char *text, const char *what, int64_t min, int64_t max, int64_t *out, nd_error *err)
{
    bool negative = text[0] == '-';
    int64_t negated = 0;
    if (!read_negated(text + (negative ? 1 : 0), &negated)) {
        char hint[80];
        suffix_hint(text, hint, sizeof hint);
        return nd_fail(err, ND_EINVAL, "%s must be a whole number from %" PRId64 " to %" PRId64 ", got '%.80s'%s", what,
                       min, max, text, hint);
    }
    int64_t value = negative ? negated : (negated == INT64_MIN ? INT64_MAX : -negated);
    if (value < min || value > max) {
        return nd_fail(err, ND_EINVAL, "%s must be from %" PRId64 " to %" PRId64 ", got %.80s", what, min, max, text);
    }
    *out = value;
    return ND_OK;
}

const char *nd_text_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

nd_status nd_text_double(const char *text, const char *what, double min, double max, double *out, nd_error *err)
{
    /* strtod() also takes blanks, hexadecimal, "inf" and "nan": only characters of decimal numbers get there. */
    bool decimal = text[0] != '+' && strspn(text, "0123456789.eE+-") == strlen(text);
    char *end = NULL;
    double value = decimal ? strtod(text, &end) : 0.0;
    if (!decimal || end == text || *end != '\0') {
        return nd_fail(err, ND_EINVAL, "%s must be a number from %g to %g, got '%.80s'", what, min, max, text);
    }
    if (!isfinite(value) || value < min || value > max) {
        return nd_fail(err, ND_EINVAL, "%s must be from %g to %g, got %.80s", what, min, max, text);
    }
    *out = value;
    return ND_OK;
}

nd_status nd_text_choice(const char *text, const char *what, const char *(*name)(int value), int count, int *out,
                         nd_error *err)
{
    char allowed[128] = "";
    size_t used = 0;
    for (int value = 0; value < count; value++) {
        if (strcmp(text, name(value)) == 0) {
            *out = value;
            return ND_OK;
        }
        used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s", value == 0 ? "" : ", ", name(value));
        assert(used < sizeof allowed);
    }
    return nd_fail(err, ND_EINVAL, "%s must be one of %s, got '%.80s'", what, allowed, text);
}

void nd_text_canonical(const char *text, char *out, size_t out_bytes)
{
    if (out_bytes == 0) {
        return;
    }
    const char *end = text + strlen(text);
    while (end > text && end[-1] == '/') { /* a folder written "llama/" is still called llama */
        end--;
    }
    const char *start = end;
    while (start > text && start[-1] != '/') {
        start--;
    }
    size_t used = 0;
    for (const char *c = start; c < end && used + 1 < out_bytes; c++) {
        if (*c != '.' && *c != '-' && *c != '_' && !is_blank(*c)) {
            out[used++] = lower(*c);
        }
    }
    out[used] = '\0';
}

static int min3(int a, int b, int c)
{
    int least = a < b ? a : b;
    return least < c ? least : c;
}

/* Only cells within `limit` of the diagonal can hold a distance <= limit; band[k] is column i + k - limit. */
int nd_text_distance(const char *a, const char *b, int limit)
{
    assert(limit >= 0 && limit <= ND_TEXT_DISTANCE_MAX);
    int64_t length_a = (int64_t)strlen(a);
    int64_t length_b = (int64_t)strlen(b);
    int over = limit + 1;
    if (length_a - length_b > limit || length_b - length_a > limit) {
        return over;
    }
    int band[2 * ND_TEXT_DISTANCE_MAX + 2] = {0};
    for (int k = 0; k <= 2 * limit + 1; k++) {
        band[k] = k >= limit && k <= 2 * limit ? k - limit : over;
    }
    for (int64_t i = 1; i <= length_a; i++) {
        int left = over;
        int row_min = over;
        for (int k = 0; k <= 2 * limit; k++) {
            int64_t j = i + k - limit;
            int cell = over;
            if (j == 0) {
                cell = i <= limit ? (int)i : over;
            } else if (j > 0 && j <= length_b) {
                cell = min3(band[k] + (a[i - 1] != b[j - 1] ? 1 : 0), band[k + 1] + 1, left + 1);
            }
            band[k] = left = cell < over ? cell : over;
            row_min = cell < row_min ? cell : row_min;
        }
        if (row_min >= over) {
            return over;
        }
    }
    return band[length_b - length_a + limit];
}

const char *nd_text_nearest(const char *text, const char *const *names, size_t count)
{
    char wanted[CANONICAL_MAX] = "";
    nd_text_canonical(text, wanted, sizeof wanted);
    size_t length = strlen(wanted);
    int best = 1 + (int)(length / 4); /* one slip in short names, about one in four letters in long ones */
    const char *nearest = NULL;
    const char *longer = NULL;
    for (size_t i = 0; i < count && length > 0; i++) {
        char name[CANONICAL_MAX] = "";
        nd_text_canonical(names[i], name, sizeof name);
        int limit = nearest == NULL ? best : best - 1;
        if (limit >= 0 && limit < (int)length) { /* as many slips as letters would make anything near */
            int distance = nd_text_distance(wanted, name, limit < ND_TEXT_DISTANCE_MAX ? limit : ND_TEXT_DISTANCE_MAX);
            if (distance <= limit) {
                best = distance;
                nearest = names[i];
            }
        }
        if (longer == NULL && length >= PREFIX_MIN && strncmp(wanted, name, length) == 0) {
            longer = names[i];
        }
    }
    return nearest != NULL ? nearest : longer;
}
