/** Number formats of tensors and of a training run. */
#ifndef ND_CORE_DTYPE_H
#define ND_CORE_DTYPE_H

#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/* X(enumerator, text, bits) */
#define ND_DTYPE_LIST(X)                                                                                               \
    X(ND_DTYPE_BF16, "bf16", 16)                                                                                       \
    X(ND_DTYPE_FP16, "fp16", 16)                                                                                       \
    X(ND_DTYPE_FP32, "fp32", 32)                                                                                       \
    X(ND_DTYPE_FP8, "fp8", 8)

typedef enum nd_dtype {
#define ND_DTYPE_ENUM(name, text, bits) name,
    ND_DTYPE_LIST(ND_DTYPE_ENUM)
#undef ND_DTYPE_ENUM
        ND_DTYPE_COUNT
} nd_dtype;

/** "bf16", ...; never NULL. */
const char *nd_dtype_name(nd_dtype dtype);

/** Bytes of one stored element. */
int64_t nd_dtype_bytes(nd_dtype dtype);

/** Bytes of one activation or gathered weight when `dtype` is the compute precision:
 * fp8 training keeps activations in bf16 and casts at the GEMM, so it counts 2. */
int64_t nd_dtype_compute_bytes(nd_dtype dtype);

ND_END_DECLS

#endif
