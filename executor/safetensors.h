/** Files of the safetensors format: 8 bytes of header length, a JSON header, the tensors one after the other
 * (https://github.com/huggingface/safetensors, README "Format"). */
#ifndef ND_EXECUTOR_SAFETENSORS_H
#define ND_EXECUTOR_SAFETENSORS_H

#include <stddef.h>

#include "core/status.h"
#include "program/instruction.h"

ND_BEGIN_DECLS

enum { ND_SAFETENSORS_NAME_MAX = 128 };

/** A tensor of one or two dimensions. */
typedef struct nd_safetensor {
    char name[ND_SAFETENSORS_NAME_MAX];
    nd_elem elem; /* fp64, fp32, bf16 */
    int32_t dims; /* 1 or 2 */
    int64_t shape[2];
} nd_safetensor;

typedef struct nd_safetensors_writer nd_safetensors_writer;

/** Begin a file with these tensors, in this order. It is written beside `path` and renamed at the end.
 * \param[in] metadata  pairs of key and value, ended by NULL; NULL: none
 * \return ND_EIO, ND_ENOMEM */
nd_status nd_safetensors_create(const char *path, const nd_safetensor *tensors, size_t count,
                                const char *const *metadata, nd_safetensors_writer **out, nd_error *err) ND_NODISCARD;

/** The next numbers, of the type of their tensor, in order of the tensors. */
nd_status nd_safetensors_put(nd_safetensors_writer *writer, const void *numbers, size_t bytes,
                             nd_error *err) ND_NODISCARD;

/** Complete the file: ND_EINVAL when not all bytes were put. Frees the writer in any case. */
nd_status nd_safetensors_finish(nd_safetensors_writer *writer, nd_error *err) ND_NODISCARD;
void nd_safetensors_discard(nd_safetensors_writer *writer); /* removes the file; NULL is fine */

typedef struct nd_safetensors nd_safetensors;

/** Open a file and check its header: known types, shapes that fit their bytes, no gaps, nothing outside the file.
 * \return ND_EIO, ND_EPARSE, ND_EUNSUPPORTED (another type, more dimensions), ND_ENOMEM */
nd_status nd_safetensors_open(const char *path, nd_safetensors **out, nd_error *err) ND_NODISCARD;
void nd_safetensors_close(nd_safetensors *file); /* NULL is fine */

size_t nd_safetensors_count(const nd_safetensors *file);
const nd_safetensor *nd_safetensors_at(const nd_safetensors *file, size_t index);

/** Index of a tensor by name, or -1. */
int64_t nd_safetensors_find(const nd_safetensors *file, const char *name);

/** Elements first .. first + count - 1 of a tensor, as fp64. */
nd_status nd_safetensors_read(const nd_safetensors *file, size_t index, int64_t first, int64_t count, double *out,
                              nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
