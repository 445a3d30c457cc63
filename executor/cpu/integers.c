/* Kernels on indexes and scalars: what to load, where rows go. */
#include <math.h>
#include <string.h>

#include "executor/cpu/cpu_internal.h"

int64_t nd_cpu_runs(nd_cpu *cpu, nd_scratch which, const nd_seq_map *map, nd_position_run **out)
{
    nd_position_run *runs = nd_cpu_scratch(cpu, which, (size_t)(2 * map->cp) * sizeof *runs);
    if (runs == NULL) {
        return 0;
    }
    int64_t count = 0;
    for (int64_t i = 0; i < map->positions; i++) {
        int64_t position = nd_seq_map_position(map, i);
        nd_position_run *last = count > 0 ? &runs[count - 1] : NULL;
        if (last != NULL && position == last->position + last->count) {
            last->count++;
        } else {
            runs[count] = (nd_position_run){.first = i, .count = 1, .position = position};
            count++;
        }
    }
    *out = runs;
    return count;
}

void nd_cpu_load(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    call->load(call->load_user, call->ins->micro, &call->ins->q_map, call->ins->micro_batch, call->out[0].data,
               call->out[1].data);
}

void nd_cpu_count_labels(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    const int32_t *labels = call->in[0].data;
    double *count = call->out[0].data;
    int64_t found = 0;
    for (int64_t i = 0; i < call->ins->rows; i++) {
        found += labels[i] >= 0;
    }
    *count = (call->ins->accumulate ? *count : 0.0) + (double)found;
}

void nd_cpu_zero(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    int64_t elements = call->ins->rows * call->ins->cols;
    memset(call->out[0].data, 0, (size_t)(elements * nd_elem_bytes(call->out[0].elem)));
}

void nd_cpu_positions(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    int32_t *out = call->out[0].data;
    int64_t sequences = call->ins->micro_batch;
    for (int64_t row = 0; row < call->ins->rows; row++) {
        out[row] = (int32_t)nd_seq_map_position(&call->ins->q_map, row / sequences);
    }
}

void nd_cpu_sort(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    const nd_ins *ins = call->ins;
    const int32_t *experts = call->in[0].data;
    int32_t *slots = call->out[0].data;
    int32_t *offsets = call->out[1].data;
    int32_t *counts = call->out[2].data;
    int64_t copies = ins->rows * ins->copies;
    memset(counts, 0, (size_t)ins->cols * sizeof *counts);
    for (int64_t i = 0; i < copies; i++) {
        counts[experts[i]]++;
    }
    offsets[0] = 0;
    for (int64_t e = 0; e < ins->cols; e++) {
        offsets[e + 1] = offsets[e] + counts[e];
        counts[e] = 0;
    }
    for (int64_t i = 0; i < copies; i++) {
        slots[i] = offsets[experts[i]] + counts[experts[i]]++;
    }
}

void nd_cpu_regroup(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    const nd_ins *ins = call->ins;
    const int32_t *own = call->in[0].data;
    const int32_t *received = call->in[1].data;
    int32_t *slots = call->out[0].data;
    int32_t *offsets = call->out[1].data;
    int32_t *send_rows = call->out[2].data;
    int32_t *receive_rows = call->out[3].data;
    int64_t held = ins->cols / ins->parts;
    for (int64_t p = 0; p < ins->parts; p++) {
        send_rows[p] = 0;
        receive_rows[p] = 0;
        for (int64_t e = 0; e < held; e++) {
            send_rows[p] += own[p * held + e];
            receive_rows[p] += received[p * held + e];
        }
    }
    offsets[0] = 0;
    for (int64_t e = 0; e < held; e++) {
        int32_t rows = 0;
        for (int64_t p = 0; p < ins->parts; p++) {
            rows += received[p * held + e];
        }
        offsets[e + 1] = offsets[e] + rows;
    }
    int64_t row = 0;
    for (int64_t p = 0; p < ins->parts; p++) {
        for (int64_t e = 0; e < held; e++) {
            int32_t slot = offsets[e];
            for (int64_t q = 0; q < p; q++) {
                slot += received[q * held + e];
            }
            for (int32_t i = 0; i < received[p * held + e]; i++) {
                slots[row++] = slot + i;
            }
        }
    }
}

void nd_cpu_clip(nd_cpu *cpu, const nd_call *call)
{
    (void)cpu;
    const double *squares = call->in[0].data;
    double *norm = call->out[0].data;
    double *scale = call->out[1].data;
    *norm = sqrt(*squares);
    double limit = call->ins->max_norm / (*norm + 1e-6);
    *scale = call->ins->max_norm > 0.0 && limit < 1.0 ? limit : 1.0;
}
