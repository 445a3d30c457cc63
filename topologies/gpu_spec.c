#include "topologies/gpu_spec.h"

#include <string.h>

#include "topologies/catalog_internal.h"
#include "topologies/figure_internal.h"

static const char *const gpu_keys[] = {"name",
                                       "title",
                                       "vendor",
                                       "arch",
                                       "aliases",
                                       "based_on",
                                       "memory_bytes",
                                       "hbm_bytes_per_s",
                                       "peak_flops_per_s",
                                       "nvlink_bytes_per_s",
                                       "pcie_bytes_per_s",
                                       "sm_count",
                                       "power_w",
                                       "reference_node",
                                       "source",
                                       "remarks",
                                       NULL};

/* Ranges that no real device leaves: they catch a figure given in the wrong unit. */
static const double rate_min = 1e8, rate_max = 1e15;
static const double peak_min = 1e9, peak_max = 1e19;
static const int64_t memory_min = (int64_t)64 << 20, memory_max = (int64_t)1 << 46;

static nd_status parse_peaks(nd_json object, nd_gpu_spec *gpu, nd_error *err)
{
    static const char *const keys[] = {"bf16", "fp16", "fp32", "fp8", "tf32", NULL};
    nd_json peaks;
    bool found = false;
    double tf32 = 0.0; /* kept in the files as a fact; a run in fp32 does not use it unless asked to */
    ND_TRY(nd_figure_object(object, "peak_flops_per_s", &peaks, &found, err));
    if (!found) {
        return ND_OK;
    }
    ND_TRY(nd_figure_check_keys(peaks, "peak_flops_per_s", keys, err));
    for (int d = 0; d < ND_DTYPE_COUNT; d++) {
        ND_TRY(nd_figure_double(peaks, nd_dtype_name((nd_dtype)d), peak_min, peak_max, &gpu->peak_flops_per_s[d], NULL,
                                0, err));
    }
    return nd_figure_double(peaks, "tf32", peak_min, peak_max, &tf32, NULL, 0, err);
}

static nd_status parse_figures(nd_json object, nd_gpu_spec *gpu, nd_error *err)
{
    ND_TRY(nd_figure_int(object, "memory_bytes", memory_min, memory_max, &gpu->memory_bytes, NULL, 0, err));
    ND_TRY(nd_figure_double(object, "hbm_bytes_per_s", rate_min, rate_max, &gpu->hbm_bytes_per_s, NULL, 0, err));
    ND_TRY(nd_figure_double(object, "nvlink_bytes_per_s", 0.0, rate_max, &gpu->nvlink_bytes_per_s, NULL, 0, err));
    if (gpu->nvlink_bytes_per_s > 0.0 && gpu->nvlink_bytes_per_s < rate_min) {
        return nd_json_fail(object, err, "'nvlink_bytes_per_s' must be 0 (none) or at least %g, got %g", rate_min,
                            gpu->nvlink_bytes_per_s);
    }
    ND_TRY(nd_figure_double(object, "pcie_bytes_per_s", rate_min, rate_max, &gpu->pcie_bytes_per_s, NULL, 0, err));
    ND_TRY(nd_figure_int(object, "sm_count", 1, 100000, &gpu->sm_count, NULL, 0, err));
    ND_TRY(nd_figure_double(object, "power_w", 0.0, 1e5, &gpu->power_w, NULL, 0, err));
    return parse_peaks(object, gpu, err);
}

/* What the cost model cannot do without; `based_on` may have supplied it. */
static nd_status check_complete(nd_json object, const nd_gpu_spec *gpu, nd_error *err)
{
    const char *missing = NULL;
    bool computes = false;
    for (int d = 0; d < ND_DTYPE_COUNT; d++) {
        computes = computes || gpu->peak_flops_per_s[d] > 0.0;
    }
    if (gpu->name[0] == '\0') {
        missing = "name";
    } else if (gpu->memory_bytes == 0) {
        missing = "memory_bytes";
    } else if (!(gpu->hbm_bytes_per_s > 0.0)) {
        missing = "hbm_bytes_per_s";
    } else if (!(gpu->pcie_bytes_per_s > 0.0)) {
        missing = "pcie_bytes_per_s";
    } else if (gpu->sm_count == 0) {
        missing = "sm_count";
    } else if (!computes) {
        missing = "peak_flops_per_s";
    }
    if (missing != NULL) {
        return nd_json_fail(object, err, "missing key '%s' in the GPU; add it, or \"based_on\" a built-in GPU",
                            missing);
    }
    return ND_OK;
}

static nd_status parse_base(nd_json object, nd_gpu_spec *gpu, nd_error *err)
{
    nd_json value;
    const char *base = NULL;
    nd_error inner;
    if (!nd_json_find(object, "based_on", &value)) {
        return ND_OK;
    }
    ND_TRY(nd_json_as_string(value, "based_on", &base, err));
    if (nd_gpu_find(base, gpu, &inner) != ND_OK) {
        return nd_json_fail(value, err, "%s", inner.message);
    }
    return ND_OK;
}

nd_status nd_gpu_parse(nd_json object, nd_gpu_spec *out, nd_error *err)
{
    nd_gpu_spec gpu;
    memset(&gpu, 0, sizeof gpu);
    nd_figure_copy(gpu.arch, sizeof gpu.arch, "unknown");
    nd_figure_copy(gpu.vendor, sizeof gpu.vendor, "unknown");
    ND_TRY(nd_figure_check_keys(object, "the GPU", gpu_keys, err));
    ND_TRY(parse_base(object, &gpu, err));
    ND_TRY(nd_figure_text(object, "name", gpu.name, sizeof gpu.name, false, err));
    ND_TRY(nd_figure_text(object, "title", gpu.title, sizeof gpu.title, false, err));
    ND_TRY(nd_figure_text(object, "arch", gpu.arch, sizeof gpu.arch, false, err));
    ND_TRY(nd_figure_text(object, "vendor", gpu.vendor, sizeof gpu.vendor, false, err));
    ND_TRY(nd_figure_text(object, "source", gpu.source, sizeof gpu.source, true, err));
    ND_TRY(parse_figures(object, &gpu, err));
    ND_TRY(check_complete(object, &gpu, err));
    if (gpu.title[0] == '\0') {
        nd_figure_copy(gpu.title, sizeof gpu.title, gpu.name);
    }
    *out = gpu;
    return ND_OK;
}

nd_status nd_gpu_find(const char *name, nd_gpu_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    if (name == NULL || name[0] == '\0') {
        return nd_fail(err, ND_EINVAL, "empty GPU name; `ndplan list gpus` shows what is known");
    }
    const nd_resource *entry = nd_catalog_find(nd_gpu_resources, name);
    if (entry == NULL) {
        const char *nearest = nd_catalog_nearest(nd_gpu_resources, name);
        return nearest != NULL
                   ? nd_fail(err, ND_ENOTFOUND, "unknown GPU '%.60s'; did you mean '%s'? `ndplan list gpus` shows all",
                             name, nearest)
                   : nd_fail(err, ND_ENOTFOUND, "unknown GPU '%.60s'; `ndplan list gpus` shows what is known", name);
    }
    ND_TRY(nd_catalog_open(entry, &doc, err));
    nd_status status = nd_gpu_parse(nd_json_root(doc), out, err);
    nd_json_free(doc);
    return status;
}

size_t nd_gpu_builtin_count(void)
{
    return nd_resource_count(nd_gpu_resources);
}

const char *nd_gpu_builtin_name(size_t index)
{
    return index < nd_gpu_builtin_count() ? nd_gpu_resources[index].name : NULL;
}
