/** A device that runs compute instructions: one table of functions per kind of device. */
#ifndef ND_EXECUTOR_BACKEND_H
#define ND_EXECUTOR_BACKEND_H

#include "executor/call.h"

ND_BEGIN_DECLS

/** The device of one rank. Not for use by two threads at once. */
typedef struct nd_device nd_device;

typedef struct nd_backend {
    const char *name; /* "cpu" */

    /** Open the device of a rank. \param[in] real  compute type of the program
     * \return ND_EUNSUPPORTED when the device cannot compute in `real`, ND_ENOMEM */
    nd_status (*open)(int32_t rank, nd_elem real, nd_device **out, nd_error *err);
    void (*close)(nd_device *device); /* NULL is fine; frees the arena */

    /** The memory of a rank, once: `bytes` at `*arena`, aligned to 64 bytes, contents undefined. */
    nd_status (*reserve)(nd_device *device, int64_t bytes, void **arena, nd_error *err);

    /** Run a compute instruction (not ALLOC, FREE, WAIT or one that communicates); returns when it is done or, on
     * devices with streams, when it is queued on call->ins->stream. */
    nd_status (*execute)(nd_device *device, const nd_call *call, nd_error *err);

    /** Wait for everything that was queued. */
    nd_status (*synchronise)(nd_device *device, nd_error *err);

    /** Copy between host memory and the arena. */
    nd_status (*read)(nd_device *device, void *host, const void *arena, int64_t bytes, nd_error *err);
    nd_status (*write)(nd_device *device, void *arena, const void *host, int64_t bytes, nd_error *err);
} nd_backend;

/** The processor: fp64, fp32 and emulated bf16; GEMM by CBLAS, one thread a rank. */
const nd_backend *nd_backend_cpu(void);

ND_END_DECLS

#endif
