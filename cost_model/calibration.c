#include "cost_model/calibration.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/resource.h"

extern const nd_resource nd_calibration_resources[];

/* Calibration that stands for an architecture without one of its own. */
static const char *const family_defaults[][2] = {
    {"volta", "v100-32gb"}, {"turing", "a100"},          {"ampere", "a100"},  {"ada", "a100"},     {"hopper", "h100"},
    {"blackwell", "b200"},  {"blackwell ultra", "b200"}, {"cdna2", "mi300x"}, {"cdna3", "mi300x"}, {"cdna4", "mi300x"},
};

static nd_status read_collective(nd_json object, const char *key, nd_collective_constants *out, nd_error *err)
{
    nd_json entry;
    ND_TRY(nd_json_need(object, key, &entry, err));
    ND_TRY(nd_json_need_double(entry, "efficiency2_frac", 0.01, 2.0, &out->efficiency2_frac, err));
    ND_TRY(nd_json_need_double(entry, "efficiency4_frac", 0.01, 2.0, &out->efficiency4_frac, err));
    ND_TRY(nd_json_need_double(entry, "efficiency8_frac", 0.01, 2.0, &out->efficiency8_frac, err));
    ND_TRY(nd_json_need_double(entry, "base_s", 0.0, 1.0, &out->base_s, err));
    ND_TRY(nd_json_need_double(entry, "step_s", 0.0, 1.0, &out->step_s, err));
    ND_TRY(nd_json_need_double(entry, "small_loss_frac", 0.0, 100.0, &out->small_loss_frac, err));
    ND_TRY(nd_json_need_double(entry, "large_base_s", 0.0, 1.0, &out->large_base_s, err));
    ND_TRY(nd_json_need_double(entry, "large_step_s", 0.0, 1.0, &out->large_step_s, err));
    ND_TRY(nd_json_need_double(entry, "ramp_s", 0.0, 1.0, &out->ramp_s, err));
    nd_json ignored;
    if (!nd_json_find(entry, "switch_frac", &ignored)) {
        return ND_OK; /* no reduction in the switch */
    }
    ND_TRY(nd_json_need_double(entry, "switch_frac", 0.01, 2.0, &out->switch_frac, err));
    return nd_json_need_double(entry, "switch_ranks", 2.0, 1024.0, &out->switch_ranks, err);
}

static nd_status read_collectives(nd_json root, nd_calibration *out, nd_error *err)
{
    nd_json collectives;
    ND_TRY(nd_json_need(root, "collectives", &collectives, err));
    for (int i = 0; i < ND_COLLECTIVE_COUNT; i++) {
        ND_TRY(read_collective(collectives, nd_collective_name((nd_collective)i), &out->collective[i], err));
    }
    return ND_OK;
}

typedef struct constant {
    const char *key;
    double min, max;
    size_t offset;
} constant;

#define CONSTANT(name, low, high)                                                                                      \
    {                                                                                                                  \
#name, low, high, offsetof(nd_calibration, name)                                                               \
    }

static const constant constants[] = {
    CONSTANT(gemm_frac, 0.01, 1.2),
    CONSTANT(gemm_burst_frac, 0.01, 1.2),
    CONSTANT(gemm_power_s, 0.0, 1.0),
    CONSTANT(gemm_k0, 0.0, 4096.0),
    CONSTANT(wave_frac, 0.0, 1.0),
    CONSTANT(tile_exponent, 0.0, 1.0),
    CONSTANT(gemm_hbm_frac, 0.01, 1.5),
    CONSTANT(kernel_s, 0.0, 1e-3),
    CONSTANT(grouped_frac, 0.05, 1.5),
    CONSTANT(fp8_frac, 0.05, 1.5),
    CONSTANT(fp8_cast_bytes, 0.0, 64.0),
    CONSTANT(fp8_weight_cast_bytes, 0.0, 64.0),
    CONSTANT(attention_frac, 0.01, 1.2),
    CONSTANT(attention_s0, 0.0, 65536.0),
    CONSTANT(flash2_frac, 0.05, 1.5),
    CONSTANT(flash1_frac, 0.05, 1.5),
    CONSTANT(attention_bwd_frac, 0.05, 1.5),
    CONSTANT(head_dim64_frac, 0.05, 1.5),
    CONSTANT(flash2_head_dim64_frac, 0.05, 1.5),
    CONSTANT(wide_head_bwd_frac, 0.05, 1.5),
    CONSTANT(hbm_frac, 0.01, 1.2),
    CONSTANT(link_frac, 0.1, 1.5),
    CONSTANT(network_frac, 0.01, 1.5),
    CONSTANT(contention_frac, 0.0, 2.0),
    CONSTANT(straggler_frac, 0.0, 0.5),
    CONSTANT(memory_low_frac, 0.1, 1.0),
    CONSTANT(memory_high_frac, 1.0, 10.0),
};

double *nd_calibration_constant(nd_calibration *calibration, const char *key)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (strcmp(constants[i].key, key) == 0) {
            return (double *)(void *)((char *)calibration + constants[i].offset);
        }
    }
    return NULL;
}

static nd_status read_calibration(nd_json root, const char *name, nd_calibration *out, nd_error *err)
{
    const char *text = NULL;
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    ND_TRY(nd_json_need_string(root, "gpu", &text, err));
    (void)snprintf(out->gpu, sizeof out->gpu, "%s", text);
    ND_TRY(nd_json_need_string(root, "source", &text, err));
    (void)snprintf(out->source, sizeof out->source, "%s", text);
    ND_TRY(nd_json_opt_bool(root, "borrowed", &out->borrowed, err));
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        nd_json figure;
        ND_TRY(nd_json_need(root, constants[i].key, &figure, err));
        ND_TRY(nd_json_need_double(figure, "value", constants[i].min, constants[i].max,
                                   nd_calibration_constant(out, constants[i].key), err));
    }
    return read_collectives(root, out, err);
}

static nd_status read_doc(nd_json_doc *doc, const char *name, nd_calibration *out, nd_error *err)
{
    nd_calibration calibration;
    nd_status status = read_calibration(nd_json_root(doc), name, &calibration, err);
    nd_json_free(doc);
    if (status == ND_OK) {
        *out = calibration;
    }
    return status;
}

const char *nd_calibration_family(const nd_gpu_spec *gpu)
{
    for (size_t i = 0; i < sizeof family_defaults / sizeof family_defaults[0]; i++) {
        if (strcmp(gpu->arch, family_defaults[i][0]) == 0) {
            return family_defaults[i][1];
        }
    }
    return "a100";
}

/* GPUs that are another's chip with other memory or links: its constants are their own. */
static bool is_same_chip(const char *gpu, const char *owner)
{
    static const char *const same_chips[][2] = {
        {"a100-40gb", "a100"}, {"a800", "a100"},  {"h200", "h100"},       {"v100-16gb", "v100-32gb"},
        {"h800", "h100"},      {"gh200", "h100"}, {"gh200-96gb", "h100"},
    };
    for (size_t i = 0; i < sizeof same_chips / sizeof same_chips[0]; i++) {
        if (strcmp(gpu, same_chips[i][0]) == 0 && strcmp(owner, same_chips[i][1]) == 0) {
            return true;
        }
    }
    return false;
}

nd_status nd_calibration_for_gpu(const nd_gpu_spec *gpu, nd_calibration *out, nd_error *err)
{
    const nd_resource *resource = nd_resource_find(nd_calibration_resources, gpu->name);
    if (resource == NULL) {
        resource = nd_resource_find(nd_calibration_resources, nd_calibration_family(gpu));
    }
    if (resource == NULL) {
        return nd_fail(err, ND_ENOTFOUND, "no calibration for '%s' and none for its architecture '%s'", gpu->name,
                       gpu->arch);
    }
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_parse(resource->text, resource->length, resource->name, &doc, err));
    ND_TRY(read_doc(doc, resource->name, out, err));
    /* a file may say itself that most of its constants are a relative's */
    out->borrowed = out->borrowed || (strcmp(out->gpu, gpu->name) != 0 && !is_same_chip(gpu->name, out->gpu));
    return ND_OK;
}
