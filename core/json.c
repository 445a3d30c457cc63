#include "core/json.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json_internal.h"

enum {
    ORIGIN_MAX = 320, /* a longer path is shown by its end: the rest of a message needs room too */
    SHOWN_MAX = 64,   /* bytes of a value or key that a message repeats */
};

struct nd_json_doc {
    char origin[ORIGIN_MAX];
    char *text;
    size_t length;
    json_t *root;
    size_t root_offset;
    nd_json_index index;
    void **members; /* jansson's iterator of values[i] where that is an object's member, else NULL */
};

static void set_origin(char out[ORIGIN_MAX], const char *origin)
{
    size_t length = strlen(origin);
    if (length < ORIGIN_MAX) {
        memcpy(out, origin, length + 1);
    } else {
        (void)snprintf(out, ORIGIN_MAX, "...%s", origin + length - (ORIGIN_MAX - 4));
    }
}

static nd_status fail_at(const nd_json_doc *doc, size_t offset, nd_error *err, const char *message)
{
    size_t line = 0;
    size_t column = 0;
    nd_json_line_column(doc->text, doc->length, offset, &line, &column);
    return nd_fail(err, ND_EPARSE, "%s:%zu:%zu: %s", doc->origin, line, column, message);
}

/* jansson points behind the token that it did not expect and quotes it as "... near 'TOKEN'". */
static size_t token_offset(const nd_json_doc *doc, const json_error_t *error)
{
    size_t end = error->position > 0 ? (size_t)error->position : 0;
    end = end < doc->length ? end : doc->length;
    const char *quoted = strstr(error->text, " near '");
    if (quoted == NULL) {
        return end;
    }
    quoted += strlen(" near '");
    size_t length = strlen(quoted);
    length -= length > 0 ? 1 : 0; /* the closing quote */
    if (length <= end && memcmp(doc->text + end - length, quoted, length) == 0) {
        return end - length;
    }
    return end;
}

/* Python writes these, and they are the most usual reason for a file that "is JSON" but is not. */
static bool is_non_finite(const nd_json_doc *doc, size_t offset)
{
    static const char *const words[] = {"NaN", "nan", "Inf", "inf", "-Inf", "-inf"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (doc->length - offset >= length && memcmp(doc->text + offset, words[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static nd_status fail_syntax(const nd_json_doc *doc, const json_error_t *error, nd_error *err)
{
    char message[JSON_ERROR_TEXT_LENGTH + 64];
    const char *text = NULL;
    switch ((int)json_error_code(error)) { /* the cast: jansson may know more codes than we name */
    case json_error_out_of_memory:
        return nd_fail(err, ND_ENOMEM, "out of memory while reading '%s'", doc->origin);
    case json_error_premature_end_of_input:
        text = "the JSON ends too early; a bracket or quote is not closed";
        break;
    case json_error_end_of_input_expected:
        text = "there is text after the end of the JSON value; remove it";
        break;
    case json_error_invalid_utf8:
        text = "not UTF-8 text; is this a JSON file?";
        break;
    case json_error_duplicate_key:
        (void)snprintf(message, sizeof message, "%s; keep one of the two", error->text);
        text = message;
        break;
    case json_error_numeric_overflow:
        text = "a number is out of range (integers need 64 bits, reals must be finite doubles)";
        break;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        text = "a string contains the NUL character (\\u0000); remove it";
        break;
    default:
        (void)snprintf(message, sizeof message, "not valid JSON: %s%s", error->text,
                       is_non_finite(doc, token_offset(doc, error)) ? "; JSON has only finite numbers" : "");
        text = message;
        break;
    }
    return fail_at(doc, token_offset(doc, error), err, text);
}

static nd_status check_text(const nd_json_doc *doc, nd_error *err)
{
    size_t offset = 0;
    if (nd_json_root_offset(doc->text, doc->length) == doc->length) {
        return fail_at(doc, 0, err, "the JSON text is empty");
    }
    if (doc->length >= 3 && memcmp(doc->text, "\xEF\xBB\xBF", 3) == 0) {
        return fail_at(doc, 0, err, "the text starts with a byte order mark; save it as UTF-8 without one");
    }
    const char *nul = memchr(doc->text, '\0', doc->length); /* jansson would skip it without a word */
    if (nul != NULL) {
        return fail_at(doc, (size_t)(nul - doc->text), err, "the text contains a NUL byte; is this UTF-8 text?");
    }
    if (nd_json_too_deep(doc->text, doc->length, &offset)) {
        char message[96];
        (void)snprintf(message, sizeof message, "arrays and objects nest deeper than the %d levels allowed",
                       (int)ND_JSON_DEPTH_MAX);
        return fail_at(doc, offset, err, message);
    }
    return ND_OK;
}

/* jansson keeps members in the order of the text, so the n-th container met here is the n-th of the index.
 * Recursion is as deep as ND_JSON_DEPTH_MAX. */
static void link_members(nd_json_doc *doc, json_t *node, size_t *container) // NOLINT(misc-no-recursion): bounded
{
    if (!json_is_array(node) && !json_is_object(node)) {
        return;
    }
    assert(*container < doc->index.container_count);
    size_t slot = doc->index.containers[(*container)++].first;
    if (json_is_array(node)) {
        size_t count = json_array_size(node);
        for (size_t i = 0; i < count; i++) {
            link_members(doc, json_array_get(node, i), container);
        }
        return;
    }
    for (void *member = json_object_iter(node); member != NULL; member = json_object_iter_next(node, member)) {
        doc->members[slot++] = member;
        link_members(doc, json_object_iter_value(member), container);
    }
}

/* Fill the document from its text. On failure what it holds is left to nd_json_free(). */
static nd_status parse_text(nd_json_doc *doc, nd_error *err)
{
    ND_TRY(check_text(doc, err));
    json_error_t error;
    doc->root = json_loadb(doc->text, doc->length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (doc->root == NULL) {
        return fail_syntax(doc, &error, err);
    }
    doc->root_offset = nd_json_root_offset(doc->text, doc->length);
    ND_TRY(nd_json_index_build(doc->text, doc->length, &doc->index, err));
    doc->members = calloc(doc->index.value_count + 1, sizeof *doc->members);
    if (doc->members == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while reading '%s'", doc->origin);
    }
    size_t container = 0;
    link_members(doc, doc->root, &container);
    return ND_OK;
}

/* Takes `text`, also on failure. */
static nd_status create(char *text, size_t length, const char *origin, nd_json_doc **out, nd_error *err)
{
    nd_json_doc *doc = calloc(1, sizeof *doc);
    if (doc == NULL || text == NULL) {
        free(doc);
        free(text);
        return nd_fail(err, ND_ENOMEM, "out of memory while reading '%.*s'", (int)ORIGIN_MAX, origin);
    }
    set_origin(doc->origin, origin);
    doc->text = text;
    doc->length = length;
    nd_status status = parse_text(doc, err);
    if (status != ND_OK) {
        nd_json_free(doc);
        return status;
    }
    *out = doc;
    return ND_OK;
}

nd_status nd_json_load(const char *path, nd_json_doc **out, nd_error *err)
{
    char origin[ORIGIN_MAX];
    char *text = NULL;
    size_t length = 0;
    set_origin(origin, path);
    nd_file_request request = {.path = path, .origin = origin, .format = "JSON", .bytes_max = ND_JSON_BYTES_MAX};
    ND_TRY(nd_file_read(&request, &text, &length, err));
    return create(text, length, path, out, err);
}

nd_status nd_json_parse(const char *text, size_t length, const char *origin, nd_json_doc **out, nd_error *err)
{
    if (length > ND_JSON_BYTES_MAX) {
        return nd_fail(err, ND_EPARSE, "%.*s: the JSON has %zu bytes, more than the %d allowed", (int)ORIGIN_MAX,
                       origin, length, (int)ND_JSON_BYTES_MAX);
    }
    char *copy = malloc(length + 1);
    if (copy != NULL && length > 0) {
        memcpy(copy, text, length);
    }
    return create(copy, length, origin, out, err);
}

void nd_json_free(nd_json_doc *doc)
{
    if (doc == NULL) {
        return;
    }
    json_decref(doc->root);
    nd_json_index_free(&doc->index);
    free(doc->members);
    free(doc->text);
    free(doc);
}

nd_json nd_json_root(const nd_json_doc *doc)
{
    return (nd_json){.doc = doc, .node = doc->root, .offset = doc->root_offset};
}

nd_json_type nd_json_typeof(nd_json value)
{
    const json_t *node = value.node;
    switch (json_typeof(node)) {
    case JSON_OBJECT:
        return ND_JSON_OBJECT;
    case JSON_ARRAY:
        return ND_JSON_ARRAY;
    case JSON_STRING:
        return ND_JSON_STRING;
    case JSON_INTEGER:
        return ND_JSON_INT;
    case JSON_REAL:
        return ND_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return ND_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return ND_JSON_NULL;
}

const char *nd_json_type_name(nd_json_type type)
{
    static const char *const names[] = {
        [ND_JSON_NULL] = "null",        [ND_JSON_BOOL] = "true or false", [ND_JSON_INT] = "a whole number",
        [ND_JSON_REAL] = "a number",    [ND_JSON_STRING] = "a string",    [ND_JSON_ARRAY] = "an array",
        [ND_JSON_OBJECT] = "an object",
    };
    assert((size_t)type < sizeof names / sizeof names[0]);
    return names[type];
}

/* Linear in the members, by comparing pointers: objects that are looked into by key are small. */
bool nd_json_find(nd_json object, const char *key, nd_json *out)
{
    json_t *node = (json_t *)object.node;
    void *member = json_is_object(node) ? json_object_iter_at(node, key) : NULL;
    if (member == NULL) {
        return false;
    }
    const nd_json_doc *doc = object.doc;
    size_t slot = nd_json_index_find(&doc->index, object.offset)->first;
    while (doc->members[slot] != member) {
        slot++;
    }
    *out = (nd_json){.doc = doc, .node = json_object_iter_value(member), .offset = doc->index.values[slot]};
    return true;
}

size_t nd_json_size(nd_json value)
{
    const json_t *node = value.node;
    return json_is_array(node) ? json_array_size(node) : json_object_size(node);
}

nd_json nd_json_at(nd_json array, size_t index)
{
    const json_t *node = array.node;
    assert(index < json_array_size(node));
    size_t slot = nd_json_index_find(&array.doc->index, array.offset)->first + index;
    return (nd_json){.doc = array.doc, .node = json_array_get(node, index), .offset = array.doc->index.values[slot]};
}

const char *nd_json_member(nd_json object, size_t index, nd_json *out)
{
    assert(index < json_object_size((const json_t *)object.node));
    size_t slot = nd_json_index_find(&object.doc->index, object.offset)->first + index;
    void *member = object.doc->members[slot];
    *out =
        (nd_json){.doc = object.doc, .node = json_object_iter_value(member), .offset = object.doc->index.values[slot]};
    return json_object_iter_key(member);
}

nd_status nd_json_fail(nd_json value, nd_error *err, const char *format, ...)
{
    char message[ND_ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return fail_at(value.doc, value.offset, err, message);
}

/* What a message says that it got: the value of a scalar, else its type. */
static void describe(nd_json value, char *out, size_t out_bytes)
{
    const json_t *node = value.node;
    nd_json_type type = nd_json_typeof(value);
    if (type == ND_JSON_INT) {
        (void)snprintf(out, out_bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(node));
    } else if (type == ND_JSON_REAL) {
        (void)snprintf(out, out_bytes, "%.15g", json_real_value(node));
    } else if (type == ND_JSON_STRING) {
        (void)snprintf(out, out_bytes, "the string \"%.40s\"", json_string_value(node));
    } else if (type == ND_JSON_BOOL) {
        (void)snprintf(out, out_bytes, "%s", json_is_true(node) ? "true" : "false");
    } else {
        (void)snprintf(out, out_bytes, "%s", nd_json_type_name(type));
    }
}

static nd_status fail_type(nd_json value, const char *key, const char *wanted, nd_error *err)
{
    char got[SHOWN_MAX];
    describe(value, got, sizeof got);
    return nd_json_fail(value, err, "'%.*s' must be %s, got %s", (int)SHOWN_MAX, key, wanted, got);
}

/* A real that names a whole number within int64_t, exactly. */
static bool real_as_int(double real, int64_t *out)
{
    const double limit = 9223372036854775808.0; /* 2^63, the first double over INT64_MAX */
    if (!(real >= -limit && real < limit) || floor(real) < real) {
        return false;
    }
    *out = (int64_t)real;
    return true;
}

nd_status nd_json_as_int(nd_json value, const char *key, int64_t min, int64_t max, int64_t *out, nd_error *err)
{
    const json_t *node = value.node;
    int64_t number = json_integer_value(node);
    bool whole = json_is_integer(node) || (json_is_real(node) && real_as_int(json_real_value(node), &number));
    if (!whole || number < min || number > max) {
        char wanted[96];
        (void)snprintf(wanted, sizeof wanted, "a whole number from %" PRId64 " to %" PRId64, min, max);
        return fail_type(value, key, wanted, err);
    }
    *out = number;
    return ND_OK;
}

nd_status nd_json_as_double(nd_json value, const char *key, double min, double max, double *out, nd_error *err)
{
    const json_t *node = value.node;
    double number = json_number_value(node);
    if (!json_is_number(node) || !(number >= min && number <= max)) {
        char wanted[96];
        (void)snprintf(wanted, sizeof wanted, "a number from %g to %g", min, max);
        return fail_type(value, key, wanted, err);
    }
    *out = number;
    return ND_OK;
}

nd_status nd_json_as_bool(nd_json value, const char *key, bool *out, nd_error *err)
{
    const json_t *node = value.node;
    if (!json_is_boolean(node)) {
        return fail_type(value, key, "true or false", err);
    }
    *out = json_is_true(node);
    return ND_OK;
}

nd_status nd_json_as_string(nd_json value, const char *key, const char **out, nd_error *err)
{
    const json_t *node = value.node;
    if (!json_is_string(node)) {
        return fail_type(value, key, "a string", err);
    }
    *out = json_string_value(node);
    return ND_OK;
}
