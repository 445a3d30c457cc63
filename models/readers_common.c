/* Reading keys under their several names, with the defaults of a family. */
#include <stdarg.h>
#include <string.h>

#include "models/reader_internal.h"

bool nd_reader_find(const nd_model_reader *r, const char *key, const char *old_key, nd_json *out)
{
    return nd_json_find(r->object, key, out) || (old_key != NULL && nd_json_find(r->object, old_key, out));
}

nd_json nd_reader_at(const nd_model_reader *r, const char *key, const char *old_key)
{
    nd_json value;
    return nd_reader_find(r, key, old_key, &value) ? value : r->object;
}

/* The name under which the config has it, so that a message quotes what the user can search for. */
static const char *name_in_config(const nd_model_reader *r, const char *key, const char *old_key)
{
    nd_json value;
    return old_key != NULL && !nd_json_find(r->object, key, &value) && nd_json_find(r->object, old_key, &value)
               ? old_key
               : key;
}

nd_status nd_reader_count(const nd_model_reader *r, const char *key, const char *old_key, int64_t max, int64_t missing,
                          int64_t *out)
{
    nd_json value;
    if (nd_reader_find(r, key, old_key, &value)) {
        return nd_json_as_int(value, name_in_config(r, key, old_key), 1, max, out, r->err);
    }
    if (missing == 0) {
        return nd_json_need_int(r->object, key, 1, max, out, r->err);
    }
    *out = missing;
    return ND_OK;
}

nd_status nd_reader_nullable(const nd_model_reader *r, const char *key, const char *old_key, int64_t min, int64_t max,
                             int64_t missing, int64_t if_null, int64_t *out)
{
    nd_json value;
    if (!nd_reader_find(r, key, old_key, &value)) {
        *out = missing;
        return ND_OK;
    }
    if (nd_json_typeof(value) == ND_JSON_NULL) {
        *out = if_null;
        return ND_OK;
    }
    return nd_json_as_int(value, name_in_config(r, key, old_key), min, max, out, r->err);
}

nd_status nd_reader_flag(const nd_model_reader *r, const char *key, const char *old_key, bool missing, bool *out)
{
    nd_json value;
    if (!nd_reader_find(r, key, old_key, &value)) {
        *out = missing;
        return ND_OK;
    }
    if (nd_json_typeof(value) == ND_JSON_NULL) {
        *out = false;
        return ND_OK;
    }
    return nd_json_as_bool(value, name_in_config(r, key, old_key), out, r->err);
}

nd_status nd_reader_tied(const nd_model_reader *r, bool missing)
{
    nd_json value;
    bool inner = nd_json_find(r->object, "tie_word_embeddings", &value);
    if (!inner && !nd_json_find(r->outer, "tie_word_embeddings", &value)) {
        r->spec->tied_embeddings = missing;
        return ND_OK;
    }
    if (nd_json_typeof(value) == ND_JSON_NULL) {
        r->spec->tied_embeddings = false;
        return ND_OK;
    }
    return nd_json_as_bool(value, "tie_word_embeddings", &r->spec->tied_embeddings, r->err);
}

void nd_reader_note(nd_model_spec *spec, const char *format, ...)
{
    size_t used = strlen(spec->note);
    if (used > 0 && used + 2 < sizeof spec->note) {
        memcpy(spec->note + used, "; ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(spec->note + used, sizeof spec->note - used, format, args);
    va_end(args);
}

nd_status nd_reader_unsupported(nd_error *err)
{
    if (err != NULL) {
        err->status = ND_EUNSUPPORTED;
    }
    return ND_EUNSUPPORTED;
}
