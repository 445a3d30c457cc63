/* Members that a caller needs or may leave out, on top of find and as. */
#include <string.h>

#include "core/json.h"
#include "core/text.h"

enum {
    HINT_MEMBERS_MAX = 512, /* in larger objects nobody looks for a misspelt key */
    HINT_KEY_MIN = 4,       /* shorter keys are near to anything */
    HINT_SHOWN_MAX = 64,
    HINT_EDITS_MAX = 2,
};

/* A present key that is a misspelling of `key`, or NULL. */
static const char *misspelled(nd_json object, const char *key)
{
    size_t count = nd_json_size(object);
    for (size_t i = 0; i < count && count <= HINT_MEMBERS_MAX && strlen(key) >= HINT_KEY_MIN; i++) {
        nd_json value;
        const char *present = nd_json_member(object, i, &value);
        int edits = nd_text_distance(key, present, HINT_EDITS_MAX); /* one more means too far */
        if (strlen(present) < HINT_SHOWN_MAX && edits <= HINT_EDITS_MAX && edits <= (int)strlen(key) / HINT_KEY_MIN) {
            return present;
        }
    }
    return NULL;
}

nd_status nd_json_need(nd_json object, const char *key, nd_json *out, nd_error *err)
{
    if (nd_json_find(object, key, out)) {
        return ND_OK;
    }
    if (nd_json_typeof(object) != ND_JSON_OBJECT) {
        return nd_json_fail(object, err, "expected an object with the key '%s', got %s", key,
                            nd_json_type_name(nd_json_typeof(object)));
    }
    const char *present = misspelled(object, key);
    if (present != NULL) {
        return nd_json_fail(object, err, "missing key '%s'; is '%s' meant to be it?", key, present);
    }
    return nd_json_fail(object, err, "missing key '%s'", key);
}

nd_status nd_json_need_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out, nd_error *err)
{
    nd_json value;
    ND_TRY(nd_json_need(object, key, &value, err));
    return nd_json_as_int(value, key, min, max, out, err);
}

nd_status nd_json_need_double(nd_json object, const char *key, double min, double max, double *out, nd_error *err)
{
    nd_json value;
    ND_TRY(nd_json_need(object, key, &value, err));
    return nd_json_as_double(value, key, min, max, out, err);
}

nd_status nd_json_need_string(nd_json object, const char *key, const char **out, nd_error *err)
{
    nd_json value;
    ND_TRY(nd_json_need(object, key, &value, err));
    return nd_json_as_string(value, key, out, err);
}

nd_status nd_json_opt_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out, nd_error *err)
{
    nd_json value;
    return nd_json_find(object, key, &value) ? nd_json_as_int(value, key, min, max, out, err) : ND_OK;
}

nd_status nd_json_opt_double(nd_json object, const char *key, double min, double max, double *out, nd_error *err)
{
    nd_json value;
    return nd_json_find(object, key, &value) ? nd_json_as_double(value, key, min, max, out, err) : ND_OK;
}

nd_status nd_json_opt_bool(nd_json object, const char *key, bool *out, nd_error *err)
{
    nd_json value;
    return nd_json_find(object, key, &value) ? nd_json_as_bool(value, key, out, err) : ND_OK;
}

nd_status nd_json_opt_string(nd_json object, const char *key, const char **out, nd_error *err)
{
    nd_json value;
    return nd_json_find(object, key, &value) ? nd_json_as_string(value, key, out, err) : ND_OK;
}
