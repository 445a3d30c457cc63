#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json_writer.h"
#include "executor/disk.h"
#include "executor/safetensors.h"

struct nd_safetensors_writer {
    char path[ND_DISK_PATH_MAX];
    char temporary[ND_DISK_PATH_MAX];
    int fd;
    int64_t left; /* bytes of tensors that are to come */
};

static const char *type_name(nd_elem elem)
{
    return elem == ND_ELEM_F64 ? "F64" : elem == ND_ELEM_F32 ? "F32" : "BF16";
}

static int64_t tensor_bytes(const nd_safetensor *tensor)
{
    return tensor->shape[0] * (tensor->dims == 2 ? tensor->shape[1] : 1) * nd_elem_bytes(tensor->elem);
}

static void put_tensor(nd_json_writer *w, const nd_safetensor *tensor, int64_t first)
{
    nd_json_key(w, tensor->name);
    nd_json_begin_object(w);
    nd_json_put_string(w, "dtype", type_name(tensor->elem));
    nd_json_key(w, "shape");
    nd_json_begin_array(w);
    for (int32_t i = 0; i < tensor->dims; i++) {
        nd_json_int(w, tensor->shape[i]);
    }
    nd_json_end_array(w);
    nd_json_key(w, "data_offsets");
    nd_json_begin_array(w);
    nd_json_int(w, first);
    nd_json_int(w, first + tensor_bytes(tensor));
    nd_json_end_array(w);
    nd_json_end_object(w);
}

static void put_metadata(nd_json_writer *w, const char *const *metadata)
{
    if (metadata == NULL) {
        return;
    }
    nd_json_key(w, "__metadata__");
    nd_json_begin_object(w);
    for (; metadata[0] != NULL; metadata += 2) {
        nd_json_put_string(w, metadata[0], metadata[1]);
    }
    nd_json_end_object(w);
}

/* The header, padded with blanks so that the tensors are aligned to 8 bytes. Returns the bytes of all tensors. */
static nd_status header(const nd_safetensor *tensors, size_t count, const char *const *metadata, char **text,
                        size_t *length, int64_t *bytes, nd_error *err)
{
    char *buffer = NULL;
    int64_t first = 0;
    FILE *stream = open_memstream(&buffer, length);
    if (stream == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the header of a safetensors file");
    }
    nd_json_writer w = nd_json_writer_start(stream);
    nd_json_begin_object(&w);
    put_metadata(&w, metadata);
    for (size_t i = 0; i < count; i++) {
        put_tensor(&w, &tensors[i], first);
        first += tensor_bytes(&tensors[i]);
    }
    nd_json_end_object(&w);
    nd_json_writer_finish(&w);
    bool failed = fflush(stream) != 0;
    for (size_t at = *length; at % 8 != 0; at++) {
        (void)fputc(' ', stream);
    }
    if (fclose(stream) != 0 || failed) {
        free(buffer);
        return nd_fail(err, ND_ENOMEM, "out of memory for the header of a safetensors file");
    }
    *text = buffer;
    *bytes = first;
    return ND_OK;
}

static nd_status begin(nd_safetensors_writer *w, const char *text, size_t length, nd_error *err)
{
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) {
        prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
    }
    ND_TRY(nd_disk_create(w->temporary, &w->fd, err));
    nd_status status = nd_disk_write(w->fd, w->temporary, prefix, sizeof prefix, err);
    return status == ND_OK ? nd_disk_write(w->fd, w->temporary, text, length, err) : status;
}

nd_status nd_safetensors_create(const char *path, const nd_safetensor *tensors, size_t count,
                                const char *const *metadata, nd_safetensors_writer **out, nd_error *err)
{
    char *text = NULL;
    size_t length = 0;
    nd_safetensors_writer *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    w->fd = -1;
    int used = snprintf(w->temporary, sizeof w->temporary, "%s.%ld.tmp", path, (long)getpid());
    nd_status status = used < 0 || (size_t)used >= sizeof w->temporary
                           ? nd_fail(err, ND_EINVAL, "the path '%.80s...' is too long", path)
                           : header(tensors, count, metadata, &text, &length, &w->left, err);
    if (status == ND_OK) {
        (void)snprintf(w->path, sizeof w->path, "%s", path);
        status = begin(w, text, length, err);
    }
    free(text);
    if (status != ND_OK) {
        nd_safetensors_discard(w);
        return status;
    }
    *out = w;
    return ND_OK;
}

nd_status nd_safetensors_put(nd_safetensors_writer *writer, const void *numbers, size_t bytes, nd_error *err)
{
    if ((int64_t)bytes > writer->left) {
        return nd_fail(err, ND_EINVAL, "%zu bytes are too many for '%s': its tensors have %" PRId64 " left", bytes,
                       writer->path, writer->left);
    }
    writer->left -= (int64_t)bytes;
    return nd_disk_write(writer->fd, writer->temporary, numbers, bytes, err);
}

nd_status nd_safetensors_finish(nd_safetensors_writer *writer, nd_error *err)
{
    nd_status status = ND_OK;
    if (writer->left > 0) {
        status = nd_fail(err, ND_EINVAL, "'%s' lacks %" PRId64 " bytes of its tensors", writer->path, writer->left);
    }
    if (status == ND_OK) {
        int fd = writer->fd;
        writer->fd = -1;
        status = nd_disk_close(fd, writer->temporary, err);
    }
    if (status == ND_OK) {
        status = nd_disk_rename(writer->temporary, writer->path, err);
    }
    if (status == ND_OK) {
        free(writer);
        return ND_OK;
    }
    nd_safetensors_discard(writer);
    return status;
}

void nd_safetensors_discard(nd_safetensors_writer *writer)
{
    if (writer != NULL) {
        if (writer->fd >= 0) {
            (void)close(writer->fd);
        }
        if (writer->temporary[0] != '\0') {
            (void)unlink(writer->temporary);
        }
        free(writer);
    }
}
