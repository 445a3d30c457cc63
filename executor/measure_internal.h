/** The runs that a machine is measured with (executor/measure_runs.c). */
#ifndef ND_EXECUTOR_MEASURE_INTERNAL_H
#define ND_EXECUTOR_MEASURE_INTERNAL_H

#include "core/layout.h"
#include "executor/measure.h"
#include "models/model_spec.h"

ND_BEGIN_DECLS

/** One run: a model, a layout and the length of its sequences. */
typedef struct nd_probe {
    nd_model_spec model;
    nd_layout layout;
    int64_t seq_len;
} nd_probe;

/** Runs for a machine of `processors`; nd_probe_make() fills in one of them. */
int32_t nd_probes_count(int32_t processors);
nd_status nd_probe_make(int32_t index, int32_t processors, nd_probe *out, nd_error *err) ND_NODISCARD;

/** nd_measure_machine() with the probes first .. first + count - 1 only. */
nd_status nd_measure_probes(const nd_measure_options *options, int32_t first, int32_t count,
                            nd_measure_progress progress, nd_measure_sink sink, void *user, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
