/** One GPU type: data-sheet figures, each with its source in the JSON beside this folder. */
#ifndef ND_TOPOLOGIES_GPU_SPEC_H
#define ND_TOPOLOGIES_GPU_SPEC_H

#include <stdint.h>

#include "core/dtype.h"
#include "core/json.h"
#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_GPU_NAME_MAX = 48 };

typedef struct nd_gpu_spec {
    char name[ND_GPU_NAME_MAX];  /* "h100": what users type in 2x8xh100 */
    char title[ND_GPU_NAME_MAX]; /* "NVIDIA H100 SXM5 80GB" */
    char arch[24];               /* "ampere", "hopper", "blackwell", "ada", "volta", "turing", "cdna3", ... */
    char vendor[16];
    int64_t memory_bytes; /* usable by one process on an idle device (nominal x 0.99 when not measured) */
    double hbm_bytes_per_s;
    double peak_flops_per_s[ND_DTYPE_COUNT]; /* dense tensor-core peaks; 0: not supported */
    double nvlink_bytes_per_s;               /* data sheet, one direction, all links together; 0: none */
    double pcie_bytes_per_s;                 /* one direction */
    int64_t sm_count;
    double power_w;
    char source[512];
} nd_gpu_spec;

/** Built-in GPU by name in canonical form ("H100", "h100-sxm", "A100-80GB" work through aliases).
 * ND_ENOTFOUND names the nearest. */
nd_status nd_gpu_find(const char *name, nd_gpu_spec *out, nd_error *err) ND_NODISCARD;

/** Read a GPU object: the format of topologies/gpus/ *.json, also inline in a topology file. */
nd_status nd_gpu_parse(nd_json object, nd_gpu_spec *out, nd_error *err) ND_NODISCARD;

size_t nd_gpu_builtin_count(void);
const char *nd_gpu_builtin_name(size_t index);

ND_END_DECLS

#endif
