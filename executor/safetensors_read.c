#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "executor/bf16.h"
#include "executor/disk.h"
#include "executor/safetensors.h"

typedef struct stored {
    nd_safetensor tensor;
    int64_t first; /* byte in the file */
} stored;

struct nd_safetensors {
    char path[ND_DISK_PATH_MAX];
    int fd;
    int64_t bytes;      /* of the file */
    int64_t data_first; /* byte where the tensors begin */
    size_t count;
    stored *tensors;
};

/* The format's own limit on headers is 100 MB; core/json.h reads 16 MiB. */
static const uint64_t header_bytes_max = (uint64_t)16 << 20;

static nd_status read_type(nd_json value, nd_elem *out, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(value, "dtype", &text, err));
    *out = strcmp(text, "F64") == 0    ? ND_ELEM_F64
           : strcmp(text, "F32") == 0  ? ND_ELEM_F32
           : strcmp(text, "BF16") == 0 ? ND_ELEM_BF16
                                       : ND_ELEM_COUNT;
    if (*out == ND_ELEM_COUNT) {
        return nd_fail(err, ND_EUNSUPPORTED, "tensors of type %.20s cannot be read; F64, F32 and BF16 can", text);
    }
    return ND_OK;
}

static nd_status read_shape(nd_json value, nd_safetensor *out, nd_error *err)
{
    nd_json shape;
    ND_TRY(nd_json_need(value, "shape", &shape, err));
    size_t dims = nd_json_size(shape);
    if (dims < 1 || dims > 2) {
        return nd_fail(err, ND_EUNSUPPORTED, "tensor %.80s has %zu dimensions; 1 and 2 can be read", out->name, dims);
    }
    out->dims = (int32_t)dims;
    out->shape[1] = 1;
    for (size_t i = 0; i < dims; i++) {
        ND_TRY(nd_json_as_int(nd_json_at(shape, i), "shape", 1, INT32_MAX, &out->shape[i], err));
    }
    return ND_OK;
}

static nd_status read_tensor(const nd_safetensors *file, const char *name, nd_json value, stored *out, nd_error *err)
{
    nd_json offsets;
    int64_t first = 0;
    int64_t end = 0;
    if (snprintf(out->tensor.name, sizeof out->tensor.name, "%s", name) >= (int)sizeof out->tensor.name) {
        return nd_json_fail(value, err, "the name %.40s... is longer than %d bytes", name, ND_SAFETENSORS_NAME_MAX - 1);
    }
    ND_TRY(read_type(value, &out->tensor.elem, err));
    ND_TRY(read_shape(value, &out->tensor, err));
    ND_TRY(nd_json_need(value, "data_offsets", &offsets, err));
    if (nd_json_size(offsets) != 2) {
        return nd_json_fail(offsets, err, "data_offsets of %s must be two numbers", name);
    }
    int64_t bytes = file->bytes - file->data_first;
    ND_TRY(nd_json_as_int(nd_json_at(offsets, 0), "data_offsets", 0, bytes, &first, err));
    ND_TRY(nd_json_as_int(nd_json_at(offsets, 1), "data_offsets", first, bytes, &end, err));
    int64_t elem = nd_elem_bytes(out->tensor.elem);
    bool fits = (end - first) % elem == 0 && (end - first) / elem % out->tensor.shape[0] == 0 &&
                (end - first) / elem / out->tensor.shape[0] == out->tensor.shape[1];
    if (!fits) {
        return nd_json_fail(offsets, err, "%s has %" PRId64 " bytes, which its shape does not take", name, end - first);
    }
    out->first = file->data_first + first;
    return ND_OK;
}

static nd_status read_tensors(nd_safetensors *file, nd_json root, nd_error *err)
{
    size_t members = nd_json_size(root);
    file->tensors = calloc(members > 0 ? members : 1, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %zu tensors", members);
    }
    for (size_t i = 0; i < members; i++) {
        nd_json value;
        const char *name = nd_json_member(root, i, &value);
        if (strcmp(name, "__metadata__") != 0) {
            ND_TRY(read_tensor(file, name, value, &file->tensors[file->count], err));
            file->count++;
        }
    }
    return ND_OK;
}

static int by_first(const void *a, const void *b)
{
    const stored *left = a;
    const stored *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

static int64_t elements_of(const nd_safetensor *tensor)
{
    return tensor->shape[0] * tensor->shape[1];
}

/* The format allows neither gaps nor overlaps. */
static nd_status check_gaps(nd_safetensors *file, nd_error *err)
{
    int64_t at = file->data_first;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_first);
    for (size_t i = 0; i < file->count; i++) {
        const stored *s = &file->tensors[i];
        if (s->first != at) {
            return nd_fail(err, ND_EPARSE, "'%s' is damaged: tensor %s begins at byte %" PRId64 ", expected %" PRId64,
                           file->path, s->tensor.name, s->first, at);
        }
        at += elements_of(&s->tensor) * nd_elem_bytes(s->tensor.elem);
    }
    if (at != file->bytes) {
        return nd_fail(err, ND_EPARSE, "'%s' is damaged: it has %" PRId64 " bytes, and its tensors end at %" PRId64,
                       file->path, file->bytes, at);
    }
    return ND_OK;
}

static nd_status read_header(nd_safetensors *file, nd_error *err)
{
    unsigned char prefix[8];
    uint64_t length = 0;
    nd_json_doc *doc = NULL;
    ND_TRY(nd_disk_read(file->fd, file->path, prefix, sizeof prefix, 0, err));
    for (int i = 0; i < 8; i++) {
        length |= (uint64_t)prefix[i] << 8 * i;
    }
    if (length > header_bytes_max || (int64_t)length > file->bytes - 8) {
        return nd_fail(err, ND_EPARSE, "'%s' is no safetensors file: its header would have %" PRIu64 " bytes",
                       file->path, length);
    }
    char *text = malloc((size_t)length + 1);
    if (text == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for the header of '%s'", file->path);
    }
    file->data_first = 8 + (int64_t)length;
    nd_status status = nd_disk_read(file->fd, file->path, text, (size_t)length, 8, err);
    status = status == ND_OK ? nd_json_parse(text, (size_t)length, file->path, &doc, err) : status;
    status = status == ND_OK ? read_tensors(file, nd_json_root(doc), err) : status;
    nd_json_free(doc);
    free(text);
    return status == ND_OK ? check_gaps(file, err) : status;
}

static nd_status open_file(nd_safetensors *file, const char *path, nd_error *err)
{
    struct stat info;
    if (snprintf(file->path, sizeof file->path, "%s", path) >= (int)sizeof file->path) {
        return nd_fail(err, ND_EINVAL, "the path '%.80s...' is too long", path);
    }
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &info) != 0) {
        return nd_fail(err, ND_EIO, "cannot read '%s': %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return nd_fail(err, ND_EIO, "cannot read '%s': it is not a regular file", path);
    }
    file->bytes = (int64_t)info.st_size;
    return read_header(file, err);
}

nd_status nd_safetensors_open(const char *path, nd_safetensors **out, nd_error *err)
{
    nd_safetensors *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    file->fd = -1;
    nd_status status = open_file(file, path, err);
    if (status != ND_OK) {
        nd_safetensors_close(file);
        return status;
    }
    *out = file;
    return ND_OK;
}

void nd_safetensors_close(nd_safetensors *file)
{
    if (file != NULL) {
        if (file->fd >= 0) {
            (void)close(file->fd);
        }
        free(file->tensors);
        free(file);
    }
}

size_t nd_safetensors_count(const nd_safetensors *file)
{
    return file->count;
}

const nd_safetensor *nd_safetensors_at(const nd_safetensors *file, size_t index)
{
    return &file->tensors[index].tensor;
}

int64_t nd_safetensors_find(const nd_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].tensor.name, name) == 0) {
            return (int64_t)i;
        }
    }
    return -1;
}

static double number_at(const unsigned char *bytes, nd_elem elem)
{
    double wide;
    float single;
    uint16_t half;
    switch (elem) {
    case ND_ELEM_F64:
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    case ND_ELEM_F32:
        memcpy(&single, bytes, sizeof single);
        return (double)single;
    case ND_ELEM_BF16:
    case ND_ELEM_I32:
    case ND_ELEM_COUNT:
        break;
    }
    memcpy(&half, bytes, sizeof half);
    return (double)nd_from_bf16(half);
}

nd_status nd_safetensors_read(const nd_safetensors *file, size_t index, int64_t first, int64_t count, double *out,
                              nd_error *err)
{
    enum { BLOCK = 4096 };
    const stored *s = &file->tensors[index];
    int64_t elem = nd_elem_bytes(s->tensor.elem);
    unsigned char bytes[BLOCK * 8];
    if (first < 0 || count < 0 || first + count > elements_of(&s->tensor)) {
        return nd_fail(err, ND_EINVAL, "elements %" PRId64 " to %" PRId64 " are outside tensor %s of '%s'", first,
                       first + count, s->tensor.name, file->path);
    }
    for (int64_t done = 0; done < count;) {
        int64_t take = count - done < BLOCK ? count - done : BLOCK;
        int64_t offset = s->first + (first + done) * elem;
        ND_TRY(nd_disk_read(file->fd, file->path, bytes, (size_t)(take * elem), offset, err));
        for (int64_t i = 0; i < take; i++) {
            out[done + i] = number_at(bytes + i * elem, s->tensor.elem);
        }
        done += take;
    }
    return ND_OK;
}
