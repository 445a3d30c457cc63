/** Checks shared by the tests of the JSON reader. */
#ifndef ND_TESTS_CORE_JSON_CHECK_H
#define ND_TESTS_CORE_JSON_CHECK_H

#include <stdbool.h>
#include <string.h>

#include "core/json.h"
#include "tests/nd_test.h"

/* A document of `text` that must parse. */
static inline nd_json_doc *json_must_parse(const char *text)
{
    nd_error err;
    nd_json_doc *doc = NULL;
    ND_ASSERT_OK(nd_json_parse(text, strlen(text), "f.json", &doc, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    return doc;
}

static inline bool json_starts_as(char c, nd_json_type type)
{
    switch (type) {
    case ND_JSON_NULL:
        return c == 'n';
    case ND_JSON_BOOL:
        return c == 't' || c == 'f';
    case ND_JSON_INT:
    case ND_JSON_REAL:
        return c == '-' || (c >= '0' && c <= '9');
    case ND_JSON_STRING:
        return c == '"';
    case ND_JSON_ARRAY:
        return c == '[';
    case ND_JSON_OBJECT:
        return c == '{';
    }
    return false;
}

/* Every value of the tree begins at its offset as its type does, behind the value before it. */
static inline bool json_offsets_hold(nd_json value, const char *text, size_t length)
{
    nd_json_type type = nd_json_typeof(value);
    if (value.offset >= length || !json_starts_as(text[value.offset], type)) {
        return false;
    }
    size_t before = value.offset;
    size_t count = nd_json_size(value);
    for (size_t i = 0; i < count; i++) {
        nd_json child;
        if (type == ND_JSON_ARRAY) {
            child = nd_json_at(value, i);
        } else {
            nd_json found;
            const char *key = nd_json_member(value, i, &child);
            if (!nd_json_find(value, key, &found) || found.offset != child.offset || found.node != child.node) {
                return false;
            }
        }
        if (child.offset <= before || !json_offsets_hold(child, text, length)) {
            return false;
        }
        before = child.offset;
    }
    return true;
}

#endif
