#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "executor/cpu/cpu_internal.h"

struct nd_device {
    nd_cpu cpu;
};

static const size_t align_bytes = 64;

void *nd_cpu_scratch(nd_cpu *cpu, nd_scratch which, size_t bytes)
{
    if (bytes <= cpu->scratch_bytes[which] && cpu->scratch[which] != NULL) {
        return cpu->scratch[which];
    }
    void *larger = NULL;
    size_t rounded = (bytes + bytes / 2 + align_bytes) / align_bytes * align_bytes;
    if (posix_memalign(&larger, align_bytes, rounded) != 0) {
        cpu->failed = true;
        return NULL;
    }
    free(cpu->scratch[which]);
    cpu->scratch[which] = larger;
    cpu->scratch_bytes[which] = rounded;
    return larger;
}

static nd_status open_device(int32_t rank, nd_elem real, nd_device **out, nd_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)rank;
    if (real == ND_ELEM_I32 || real >= ND_ELEM_COUNT) {
        return nd_fail(err, ND_EUNSUPPORTED, "the processor computes in fp64, fp32 or bf16");
    }
    (void)pthread_once(&once, nd_cpu_single_threaded_blas);
    nd_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    device->cpu.real = real;
    *out = device;
    return ND_OK;
}

static void close_device(nd_device *device)
{
    if (device == NULL) {
        return;
    }
    free(device->cpu.arena);
    for (int i = 0; i < ND_SCRATCH_COUNT; i++) {
        free(device->cpu.scratch[i]);
    }
    free(device);
}

static nd_status reserve(nd_device *device, int64_t bytes, void **arena, nd_error *err)
{
    void *memory = NULL;
    if (posix_memalign(&memory, align_bytes, (size_t)(bytes > 0 ? bytes : 1)) != 0) {
        return nd_fail(err, ND_ENOMEM, "no %.1f MiB of memory for a rank", (double)bytes / (1024.0 * 1024.0));
    }
    free(device->cpu.arena);
    device->cpu.arena = memory;
    *arena = memory;
    return ND_OK;
}

static nd_status execute(nd_device *device, const nd_call *call, nd_error *err)
{
    nd_cpu *cpu = &device->cpu;
    const nd_cpu_kernel *kernels = cpu->real == ND_ELEM_F64   ? nd_cpu_kernels_f64
                                   : cpu->real == ND_ELEM_F32 ? nd_cpu_kernels_f32
                                                              : nd_cpu_kernels_bf16;
    nd_cpu_kernel kernel = kernels[call->ins->op];
    if (kernel == NULL) {
        return nd_fail(err, ND_EUNSUPPORTED, "the processor has no kernel for %s", nd_ins_name(call->ins->op));
    }
    kernel(cpu, call);
    if (cpu->failed) {
        return nd_fail(err, ND_ENOMEM, "out of scratch memory in %s", nd_ins_name(call->ins->op));
    }
    return ND_OK;
}

static nd_status synchronise(nd_device *device, nd_error *err)
{
    (void)device;
    (void)err;
    return ND_OK;
}

static nd_status read_memory(nd_device *device, void *host, const void *arena, int64_t bytes, nd_error *err)
{
    (void)device;
    (void)err;
    memcpy(host, arena, (size_t)bytes);
    return ND_OK;
}

static nd_status write_memory(nd_device *device, void *arena, const void *host, int64_t bytes, nd_error *err)
{
    return read_memory(device, arena, host, bytes, err);
}

const nd_backend *nd_backend_cpu(void)
{
    static const nd_backend backend = {
        .name = "cpu",
        .open = open_device,
        .close = close_device,
        .reserve = reserve,
        .execute = execute,
        .synchronise = synchronise,
        .read = read_memory,
        .write = write_memory,
    };
    return &backend;
}
