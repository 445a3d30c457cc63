/* manifest.json: what a checkpoint says about itself, and LATEST. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "executor/checkpoint_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "checkpoints are written as the numbers lie in memory");

static const char *const schema = "ndplan/checkpoint/1";
static const char *const checksum_key = "\n  \"checksum\": \"";
static const char *const end = "\"\n}\n"; /* after the checksum */
static const size_t manifest_bytes_max = (size_t)16 << 20;

void nd_checkpoint_file_name(int64_t rank, char name[ND_CHECKPOINT_NAME_MAX])
{
    (void)snprintf(name, ND_CHECKPOINT_NAME_MAX, "rank-%05" PRId64 ".bin", rank);
}

void nd_checkpoint_shapes(const nd_model_spec *model, const nd_param_list *params, char text[ND_CHECKSUM_TEXT])
{
    nd_checksum sum = nd_checksum_start();
    const int64_t cuts[] = {model->heads,   model->kv_heads,     model->head_dim,
                            model->experts, model->experts_topk, model->tied_embeddings};
    nd_checksum_add(&sum, cuts, sizeof cuts);
    for (int32_t i = 0; i < params->count; i++) {
        const nd_param *param = &params->params[i];
        const int64_t shape[] = {param->rows, param->cols};
        nd_checksum_add(&sum, param->name, strlen(param->name) + 1);
        nd_checksum_add(&sum, shape, sizeof shape);
    }
    nd_checksum_text(nd_checksum_value(&sum), text);
}

static void put_chunks(nd_json_writer *w, const nd_chunk_map *chunks)
{
    nd_json_key(w, "chunks");
    nd_json_begin_array(w);
    for (int32_t i = 0; i <= chunks->chunks; i++) {
        nd_json_int(w, chunks->first[i]);
    }
    nd_json_end_array(w);
}

static void put_files(nd_json_writer *w, const nd_manifest *manifest)
{
    nd_json_key(w, "files");
    nd_json_begin_array(w);
    for (int64_t rank = 0; rank < manifest->ranks; rank++) {
        const nd_checkpoint_file *file = &manifest->files[rank];
        char text[ND_CHECKSUM_TEXT];
        char name[ND_CHECKPOINT_NAME_MAX];
        if (file->bytes > 0) {
            nd_checksum_text(file->checksum, text);
            nd_checkpoint_file_name(rank, name);
            nd_json_begin_object(w);
            nd_json_put_string(w, "name", name);
            nd_json_put_int(w, "rank", rank);
            nd_json_put_int(w, "bytes", file->bytes);
            nd_json_put_string(w, "checksum", text);
            nd_json_end_object(w);
        }
    }
    nd_json_end_array(w);
}

static void checksum_of(const char *text, size_t length, char out[ND_CHECKSUM_TEXT])
{
    nd_checksum sum = nd_checksum_start();
    nd_checksum_add(&sum, text, length);
    nd_checksum_text(nd_checksum_value(&sum), out);
}

nd_status nd_manifest_write(const nd_manifest *manifest, char **text, size_t *length, nd_error *err)
{
    char layout[512];
    char *buffer = NULL;
    FILE *stream = open_memstream(&buffer, length);
    if (stream == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the manifest of a checkpoint");
    }
    (void)nd_layout_format(&manifest->info.layout, layout, sizeof layout);
    nd_json_writer w = nd_json_writer_start(stream);
    nd_json_begin_object(&w);
    nd_json_put_string(&w, "schema", schema);
    nd_json_put_string(&w, "model", manifest->model);
    nd_json_put_string(&w, "shapes", manifest->shapes);
    nd_json_put_string(&w, "layout", layout);
    put_chunks(&w, &manifest->info.chunks);
    nd_json_put_int(&w, "step", manifest->info.step);
    nd_json_put_int(&w, "number", manifest->number);
    nd_settings_write(&w, &manifest->info.settings);
    nd_json_put_string(&w, "dtype", nd_elem_name(manifest->info.wide));
    put_files(&w, manifest);
    bool failed = fflush(stream) != 0;
    char sum[ND_CHECKSUM_TEXT] = "";
    if (!failed) {
        checksum_of(buffer, *length, sum);
    }
    nd_json_put_string(&w, "checksum", sum);
    nd_json_end_object(&w);
    nd_json_writer_finish(&w);
    failed = fclose(stream) != 0 || failed;
    if (failed) {
        free(buffer);
        return nd_fail(err, ND_ENOMEM, "out of memory for the manifest of a checkpoint");
    }
    *text = buffer;
    return ND_OK;
}

/* The last key, searched from the end: the text before its comma is what was summed. */
static const char *last_key(const char *text, size_t length)
{
    size_t key = strlen(checksum_key);
    for (size_t at = length < key ? 0 : length - key + 1; at-- > 0;) {
        if (memcmp(text + at, checksum_key, key) == 0) {
            return text + at;
        }
    }
    return NULL;
}

static nd_status check_text(const char *path, const char *text, size_t length, nd_error *err)
{
    const char *key = last_key(text, length);
    char expected[ND_CHECKSUM_TEXT];
    if (key == NULL || key == text) {
        return nd_fail(err, ND_EPARSE, "%s is damaged: it does not end with its checksum", path);
    }
    checksum_of(text, (size_t)(key - text) - 1, expected);
    const char *stored = key + strlen(checksum_key);
    size_t left = length - (size_t)(stored - text);
    size_t digits = strlen(expected);
    bool whole = left == digits + strlen(end) && memcmp(stored + digits, end, strlen(end)) == 0;
    if (!whole || memcmp(stored, expected, digits) != 0) {
        return nd_fail(err, ND_EPARSE, "%s is damaged: its text has the checksum %s and says %.*s", path, expected,
                       (int)(left < digits ? left : digits), stored);
    }
    return ND_OK;
}

static nd_status read_chunks(nd_json root, int64_t layers, nd_manifest *out, nd_error *err)
{
    nd_json array;
    ND_TRY(nd_json_need(root, "chunks", &array, err));
    int64_t wanted = (int64_t)out->info.layout.size[ND_AXIS_PP] * out->info.layout.vpp;
    int64_t found = (int64_t)nd_json_size(array) - 1;
    if (found != wanted || wanted > ND_MODEL_LAYERS_MAX) {
        return nd_json_fail(array, err, "%" PRId64 " chunks of layers, and the layout has %" PRId64, found, wanted);
    }
    nd_chunk_map *map = &out->info.chunks;
    map->chunks = (int32_t)wanted;
    int64_t before = 0;
    for (int32_t i = 0; i <= map->chunks; i++) {
        bool last = i == map->chunks;
        ND_TRY(nd_json_as_int(nd_json_at(array, (size_t)i), "chunks", last ? layers : before, i == 0 ? 0 : layers,
                              &before, err));
        map->first[i] = (int32_t)before;
    }
    return ND_OK;
}

static nd_status read_elem(nd_json root, nd_elem *out, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(root, "dtype", &text, err));
    if (strcmp(text, nd_elem_name(ND_ELEM_F64)) != 0 && strcmp(text, nd_elem_name(ND_ELEM_F32)) != 0) {
        return nd_json_fail(root, err, "dtype must be fp32 or fp64, got '%.20s'", text);
    }
    *out = strcmp(text, nd_elem_name(ND_ELEM_F64)) == 0 ? ND_ELEM_F64 : ND_ELEM_F32;
    return ND_OK;
}

static nd_status read_files(nd_json root, nd_manifest *out, nd_error *err)
{
    nd_json array;
    ND_TRY(nd_json_need(root, "files", &array, err));
    for (size_t i = 0; i < nd_json_size(array); i++) {
        nd_json entry = nd_json_at(array, i);
        int64_t rank = 0;
        int64_t bytes = 0;
        uint64_t checksum = 0;
        ND_TRY(nd_json_need_int(entry, "rank", 0, out->ranks - 1, &rank, err));
        ND_TRY(nd_json_need_int(entry, "bytes", 1, INT64_MAX / 2, &bytes, err));
        ND_TRY(nd_checksum_read(entry, &checksum, err));
        out->files[rank] = (nd_checkpoint_file){.bytes = bytes, .checksum = checksum};
    }
    return ND_OK;
}

/* A layout that the model cannot have would divide by zero later. */
static nd_status read_layout(nd_json root, const nd_model_spec *model, nd_manifest *out, nd_error *err)
{
    const char *text = NULL;
    nd_layout *layout = &out->info.layout;
    ND_TRY(nd_json_need_string(root, "layout", &text, err));
    ND_TRY(nd_layout_parse(text, layout, NULL, err));
    out->ranks = nd_layout_ranks(layout);
    if (out->ranks > ND_CHECKPOINT_RANKS_MAX) {
        return nd_json_fail(root, err, "the layout has %" PRId64 " ranks, more than %d", out->ranks,
                            ND_CHECKPOINT_RANKS_MAX);
    }
    int64_t inner = (int64_t)layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] * layout->size[ND_AXIS_TP];
    if (layout->ep > 1 && (model->experts == 0 || model->experts % layout->ep != 0 || inner % layout->ep != 0)) {
        return nd_json_fail(root, err, "the layout %s has ep=%d, and %s has %" PRId64 " experts", text, layout->ep,
                            model->name, model->experts);
    }
    return ND_OK;
}

static nd_status read_head(nd_json root, nd_manifest *out, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(root, "schema", &text, err));
    if (strcmp(text, schema) != 0) {
        return nd_json_fail(root, err, "schema must be %s, got '%.40s'", schema, text);
    }
    ND_TRY(nd_json_need_string(root, "model", &text, err));
    (void)snprintf(out->model, sizeof out->model, "%s", text);
    ND_TRY(nd_json_need_string(root, "shapes", &text, err));
    (void)snprintf(out->shapes, sizeof out->shapes, "%s", text);
    ND_TRY(nd_json_need_int(root, "step", 0, INT64_MAX / 2, &out->info.step, err));
    ND_TRY(nd_json_need_int(root, "number", 1, INT64_MAX / 2, &out->number, err));
    ND_TRY(nd_settings_read(root, &out->info.settings, err));
    return read_elem(root, &out->info.wide, err);
}

static nd_status check_model(const nd_manifest *manifest, const nd_model_spec *model, const nd_param_list *params,
                             const char *path, nd_error *err)
{
    char shapes[ND_CHECKSUM_TEXT];
    nd_checkpoint_shapes(model, params, shapes);
    if (strcmp(shapes, manifest->shapes) != 0) {
        return nd_fail(err, ND_EINVAL,
                       "%s is a checkpoint of the model %s (shapes %s), and this run has %s (shapes %s); name another "
                       "directory or that model",
                       path, manifest->model, manifest->shapes, model->name, shapes);
    }
    return ND_OK;
}

static nd_status read_manifest(nd_json root, const nd_model_spec *model, const nd_param_list *params, const char *path,
                               nd_manifest *out, nd_error *err)
{
    ND_TRY(read_head(root, out, err));
    ND_TRY(check_model(out, model, params, path, err));
    ND_TRY(read_layout(root, model, out, err));
    ND_TRY(read_chunks(root, model->layers, out, err));
    out->files = calloc((size_t)out->ranks, sizeof *out->files);
    if (out->files == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the files of %" PRId64 " ranks", out->ranks);
    }
    return read_files(root, out, err);
}

nd_status nd_manifest_load(const char *directory, const nd_model_spec *model, const nd_param_list *params,
                           nd_manifest *out, nd_error *err)
{
    char path[ND_DISK_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    nd_json_doc *doc = NULL;
    nd_manifest manifest = {0};
    ND_TRY(nd_disk_path(path, directory, "manifest.json", err));
    const nd_file_request request = {.path = path, .origin = path, .format = "JSON", .bytes_max = manifest_bytes_max};
    ND_TRY(nd_file_read(&request, &text, &length, err));
    nd_status status = check_text(path, text, length, err);
    if (status == ND_OK) {
        status = nd_json_parse(text, length, path, &doc, err);
    }
    if (status == ND_OK) {
        status = read_manifest(nd_json_root(doc), model, params, path, &manifest, err);
    }
    nd_json_free(doc);
    free(text);
    if (status != ND_OK) {
        free(manifest.files);
        return status;
    }
    *out = manifest;
    return ND_OK;
}

bool nd_checkpoint_writes(const nd_placement *placement, const nd_unit *unit, const nd_layout *layout, int64_t kv_heads)
{
    bool primary = false;
    for (int32_t i = 0; i < unit->pieces; i++) {
        primary = primary || placement->pieces[unit->first_piece + i].primary;
    }
    nd_members replicas = nd_members_of(layout, kv_heads, ND_MEMBERS_REPLICATE, placement->rank);
    nd_members copies = nd_members_of(layout, kv_heads, unit->shard, placement->rank);
    return primary && replicas.index == 0 && (unit->shards > 1 || copies.index == 0);
}
