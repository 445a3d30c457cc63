/* From what `--model` was given to a spec: a file, a directory, or a built-in name. */
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "models/reader_internal.h"

enum { PATH_MAX_BYTES = 4096, BUILTINS_MAX = 512 };

static bool path_exists(const char *path, bool *directory)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    *directory = S_ISDIR(info.st_mode);
    return true;
}

/* Written like a path, so that a file that is not there is not taken for a mistyped model name. */
static bool looks_like_path(const char *text)
{
    size_t length = strlen(text);
    return text[0] == '/' || text[0] == '.' || text[0] == '~' ||
           (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

static nd_status load_file(const char *path, bool assume_llama, nd_model_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_load(path, &doc, err));
    nd_status status = nd_reader_document(doc, path, assume_llama, out, err);
    nd_json_free(doc);
    return status;
}

static nd_status load_builtin(const nd_resource *entry, const char *dropped, nd_model_spec *out, nd_error *err)
{
    char origin[ND_MODEL_NAME_MAX + 16];
    nd_model_spec spec;
    (void)snprintf(origin, sizeof origin, "built-in %s", entry->name);
    ND_TRY(nd_model_parse(entry->text, entry->length, origin, false, &spec, err));
    (void)snprintf(spec.name, sizeof spec.name, "%s", entry->name);
    if (dropped[0] != '\0') {
        nd_reader_note(&spec, "'%.40s' in the name ignored: same shapes as %.40s", dropped, entry->name);
    }
    *out = spec;
    return ND_OK;
}

static nd_status fail_no_config(const char *directory, nd_error *err)
{
    static const struct {
        const char *file;
        const char *advice;
    } others[] = {
        {"adapter_config.json", "it holds a LoRA adapter; give its base model and plan LoRA"},
        {"model_index.json", "it holds a diffusers pipeline; give a decoder-only transformer"},
        {"params.json", "it holds a checkpoint in its author's own format; give the one for transformers"},
    };
    char path[PATH_MAX_BYTES];
    bool is_directory = false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", directory, others[i].file);
        if (length > 0 && (size_t)length < sizeof path && path_exists(path, &is_directory)) {
            return nd_fail(err, ND_ENOTFOUND, "directory '%.400s' has no config.json but %s: %s", directory,
                           others[i].file, others[i].advice);
        }
    }
    return nd_fail(err, ND_ENOTFOUND,
                   "directory '%.400s' has no config.json; give the directory of a model or a "
                   "config.json",
                   directory);
}

static nd_status fail_unknown_name(const char *name, nd_error *err)
{
    const char *names[BUILTINS_MAX];
    size_t count = 0;
    for (; count < nd_model_builtin_count() && count < BUILTINS_MAX; count++) {
        names[count] = nd_model_builtin_name(count);
    }
    const char *nearest = nd_text_nearest(name, names, count);
    return nd_fail(err, ND_ENOTFOUND,
                   "no model is called '%.80s'%s%s%s; see `ndplan list models`, or give the path of a config.json",
                   name, nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "'" : "");
}

/* *found tells whether the directory has a config.json; without one its name may still be a built-in's. */
static nd_status load_directory(const char *directory, bool assume_llama, bool *found, nd_model_spec *out,
                                nd_error *err)
{
    char config[PATH_MAX_BYTES];
    bool is_directory = false;
    int length = snprintf(config, sizeof config, "%s/config.json", directory);
    if (length < 0 || (size_t)length >= sizeof config) {
        return nd_fail(err, ND_EINVAL, "the path of the model is longer than %d bytes", PATH_MAX_BYTES - 1);
    }
    *found = path_exists(config, &is_directory);
    return *found ? load_file(config, assume_llama, out, err) : ND_OK;
}

nd_status nd_model_load(const char *name_or_path, bool assume_llama, nd_model_spec *out, nd_error *err)
{
    char dropped[ND_MODEL_NAME_MAX];
    bool directory = false;
    const nd_resource *entry = NULL;
    if (name_or_path[0] == '\0') {
        return nd_fail(err, ND_EINVAL, "the model's name is empty; see `ndplan list models`");
    }
    /* What lies on the disk is meant, as with from_pretrained(): a clone of 'org/model' in the current folder wins. */
    bool exists = path_exists(name_or_path, &directory);
    if (exists && directory) {
        bool found = false;
        ND_TRY(load_directory(name_or_path, assume_llama, &found, out, err));
        if (found) {
            return ND_OK;
        }
    } else if (exists || looks_like_path(name_or_path)) {
        return load_file(name_or_path, assume_llama, out, err);
    }
    if (!looks_like_path(name_or_path)) {
        entry = nd_builtin_find(name_or_path, dropped, sizeof dropped);
    }
    if (entry != NULL) {
        return load_builtin(entry, dropped, out, err);
    }
    return directory ? fail_no_config(name_or_path, err) : fail_unknown_name(name_or_path, err);
}
