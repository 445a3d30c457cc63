#include "core/dtype.h"

#include <assert.h>

static const struct {
    const char *name;
    int64_t bits;
} dtypes[ND_DTYPE_COUNT] = {
#define ND_DTYPE_ROW(enumerator, text, width) [enumerator] = {text, width},
    ND_DTYPE_LIST(ND_DTYPE_ROW)
#undef ND_DTYPE_ROW
};

const char *nd_dtype_name(nd_dtype dtype)
{
    assert(dtype < ND_DTYPE_COUNT);
    return dtypes[dtype].name;
}

int64_t nd_dtype_bytes(nd_dtype dtype)
{
    assert(dtype < ND_DTYPE_COUNT);
    return dtypes[dtype].bits / 8;
}

int64_t nd_dtype_compute_bytes(nd_dtype dtype)
{
    return dtype == ND_DTYPE_FP8 ? 2 : nd_dtype_bytes(dtype);
}
