#include "topologies/figure_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { KEYS_TEXT_MAX = 400 };

static size_t count_keys(const char *const *allowed)
{
    size_t count = 0;
    while (allowed[count] != NULL) {
        count++;
    }
    return count;
}

static bool is_allowed(const char *key, const char *const *allowed)
{
    for (size_t i = 0; allowed[i] != NULL; i++) {
        if (strcmp(key, allowed[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void join_keys(const char *const *allowed, char out[KEYS_TEXT_MAX])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; allowed[i] != NULL && used + strlen(allowed[i]) + 3 < KEYS_TEXT_MAX; i++) {
        used += (size_t)snprintf(out + used, KEYS_TEXT_MAX - used, "%s%s", i == 0 ? "" : ", ", allowed[i]);
    }
}

static nd_status fail_unknown(nd_json at, const char *key, const char *what, const char *const *allowed, nd_error *err)
{
    const char *nearest = nd_text_nearest(key, allowed, count_keys(allowed));
    if (nearest != NULL) {
        return nd_json_fail(at, err, "unknown key '%.60s' in %s; did you mean '%s'?", key, what, nearest);
    }
    char known[KEYS_TEXT_MAX];
    join_keys(allowed, known);
    return nd_json_fail(at, err, "unknown key '%.60s' in %s; known are %s", key, what, known);
}

nd_status nd_figure_check_keys(nd_json object, const char *what, const char *const *allowed, nd_error *err)
{
    if (nd_json_typeof(object) != ND_JSON_OBJECT) {
        return nd_json_fail(object, err, "%s must be an object, got %s", what,
                            nd_json_type_name(nd_json_typeof(object)));
    }
    size_t count = nd_json_size(object);
    for (size_t i = 0; i < count; i++) {
        nd_json value;
        const char *key = nd_json_member(object, i, &value);
        if (!is_allowed(key, allowed)) {
            return fail_unknown(value, key, what, allowed, err);
        }
    }
    return ND_OK;
}

void nd_figure_copy(char *out, size_t out_bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= out_bytes) {
        length = out_bytes - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--; /* not in the middle of a character */
        }
    }
    memmove(out, text, length);
    out[length] = '\0';
}

/* The number of a figure; a figure object is opened and its source copied. */
static nd_status open_figure(nd_json figure, const char *key, nd_json *number, char *source, size_t source_bytes,
                             nd_error *err)
{
    static const char *const allowed[] = {"value", "source", NULL};
    *number = figure;
    if (nd_json_typeof(figure) != ND_JSON_OBJECT) {
        return ND_OK;
    }
    char what[80];
    const char *text = NULL;
    (void)snprintf(what, sizeof what, "'%.60s'", key);
    ND_TRY(nd_figure_check_keys(figure, what, allowed, err));
    ND_TRY(nd_json_need(figure, "value", number, err));
    ND_TRY(nd_json_opt_string(figure, "source", &text, err));
    if (text != NULL && source != NULL) {
        nd_figure_copy(source, source_bytes, text);
    }
    return ND_OK;
}

nd_status nd_figure_double(nd_json object, const char *key, double min, double max, double *out, char *source,
                           size_t source_bytes, nd_error *err)
{
    nd_json figure;
    nd_json number;
    if (!nd_json_find(object, key, &figure)) {
        return ND_OK;
    }
    ND_TRY(open_figure(figure, key, &number, source, source_bytes, err));
    return nd_json_as_double(number, key, min, max, out, err);
}

nd_status nd_figure_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out, char *source,
                        size_t source_bytes, nd_error *err)
{
    nd_json figure;
    nd_json number;
    if (!nd_json_find(object, key, &figure)) {
        return ND_OK;
    }
    ND_TRY(open_figure(figure, key, &number, source, source_bytes, err));
    return nd_json_as_int(number, key, min, max, out, err);
}

nd_status nd_figure_text(nd_json object, const char *key, char *out, size_t out_bytes, bool cut, nd_error *err)
{
    nd_json value;
    const char *text = NULL;
    if (!nd_json_find(object, key, &value)) {
        return ND_OK;
    }
    ND_TRY(nd_json_as_string(value, key, &text, err));
    if (!cut && strlen(text) >= out_bytes) {
        return nd_json_fail(value, err, "'%s' must have at most %zu bytes, got %zu; shorten it", key, out_bytes - 1,
                            strlen(text));
    }
    nd_figure_copy(out, out_bytes, text);
    return ND_OK;
}

nd_status nd_figure_object(nd_json object, const char *key, nd_json *out, bool *found, nd_error *err)
{
    *found = nd_json_find(object, key, out);
    if (*found && nd_json_typeof(*out) != ND_JSON_OBJECT) {
        return nd_json_fail(*out, err, "'%s' must be an object, got %s", key, nd_json_type_name(nd_json_typeof(*out)));
    }
    return ND_OK;
}
