#include "tests/executor/fault_backend.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"

static fault planted;
static double struck_s; /* written by the rank that fails, read when all threads have ended */

/** What this backend calls a device. */
typedef struct wrapped {
    nd_device *device;
    int32_t rank;
} wrapped;

static wrapped *of(nd_device *device)
{
    return (wrapped *)(void *)device;
}

static bool strikes(const wrapped *w, fault_kind kind)
{
    return planted.kind == kind && planted.rank == w->rank;
}

static nd_status open_device(int32_t rank, nd_elem real, nd_device **out, nd_error *err)
{
    wrapped *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    w->rank = rank;
    nd_status status = nd_backend_cpu()->open(rank, real, &w->device, err);
    if (status != ND_OK) {
        free(w);
        return status;
    }
    *out = (nd_device *)(void *)w;
    return ND_OK;
}

static void close_device(nd_device *device)
{
    if (device != NULL) {
        nd_backend_cpu()->close(of(device)->device);
        free(of(device));
    }
}

static nd_status reserve(nd_device *device, int64_t bytes, void **arena, nd_error *err)
{
    if (strikes(of(device), FAULT_NO_ARENA)) {
        struck_s = nd_monotonic_s();
        return nd_fail(err, ND_ENOMEM, "no %lld bytes of memory for a rank", (long long)bytes);
    }
    return nd_backend_cpu()->reserve(of(device)->device, bytes, arena, err);
}

static nd_status execute(nd_device *device, const nd_call *call, nd_error *err)
{
    bool here = (strikes(of(device), FAULT_FAILS) || strikes(of(device), FAULT_EXITS)) && struck_s <= 0.0 &&
                call->step->step == planted.step && call->ins->op == planted.op && call->ins->layer == planted.layer;
    if (here) {
        struck_s = nd_monotonic_s();
    }
    if (here && planted.kind == FAULT_EXITS) {
        pthread_exit(NULL);
    }
    if (here) {
        return nd_fail(err, ND_ENOMEM, "out of scratch memory in %s", nd_ins_name(call->ins->op));
    }
    return nd_backend_cpu()->execute(of(device)->device, call, err);
}

static nd_status synchronise(nd_device *device, nd_error *err)
{
    return nd_backend_cpu()->synchronise(of(device)->device, err);
}

static nd_status read_arena(nd_device *device, void *host, const void *arena, int64_t bytes, nd_error *err)
{
    return nd_backend_cpu()->read(of(device)->device, host, arena, bytes, err);
}

static nd_status write_arena(nd_device *device, void *arena, const void *host, int64_t bytes, nd_error *err)
{
    return nd_backend_cpu()->write(of(device)->device, arena, host, bytes, err);
}

const nd_backend *fault_backend(const fault *what)
{
    static const nd_backend backend = {.name = "cpu with a fault",
                                       .open = open_device,
                                       .close = close_device,
                                       .reserve = reserve,
                                       .execute = execute,
                                       .synchronise = synchronise,
                                       .read = read_arena,
                                       .write = write_arena};
    planted = *what;
    struck_s = 0.0;
    return &backend;
}

double fault_time_s(void)
{
    return struck_s;
}
