/* Constants of "the slowest sets the pace": each class of kernels from the GPU that is slowest in it. */
#include <math.h>

#include "planner/mixed_internal.h"

/* Peaks of the combined cluster are the least of all; a rate is a fraction of them. */
typedef struct rates {
    double gemm, attention, elementwise, operands; /* reached, FLOP/s and bytes/s */
} rates;

static nd_dtype matrix_type(const nd_train_spec *train)
{
    return train->precision == ND_DTYPE_FP8 ? ND_DTYPE_BF16 : train->precision;
}

/* As nd_kernel_model_make() counts the generations of attention kernels. */
static double generation_frac(const nd_cost_context *part)
{
    switch (part->train->attention) {
    case ND_ATTENTION_FLASH1:
        return part->calibration->flash1_frac;
    case ND_ATTENTION_FLASH2:
        return part->calibration->flash2_frac;
    case ND_ATTENTION_FLASH3:
    case ND_ATTENTION_MATH:
    case ND_ATTENTION_COUNT:
        break;
    }
    return 1.0;
}

static rates rates_of(const nd_cost_context *part)
{
    const nd_gpu_spec *gpu = &part->cluster->gpu;
    const nd_calibration *calibration = part->calibration;
    double peak = gpu->peak_flops_per_s[matrix_type(part->train)];
    double gemm_peak =
        part->train->precision == ND_DTYPE_FP8 ? gpu->peak_flops_per_s[ND_DTYPE_FP8] * calibration->fp8_frac : peak;
    return (rates){
        .gemm = gemm_peak * calibration->gemm_frac,
        .attention = peak * calibration->attention_frac * generation_frac(part),
        .elementwise = gpu->hbm_bytes_per_s * calibration->hbm_frac,
        .operands = gpu->hbm_bytes_per_s * calibration->gemm_hbm_frac,
    };
}

static void take_gemm(const nd_cost_context *part, nd_cluster_spec *cluster, nd_calibration *out)
{
    const nd_calibration *from = part->calibration;
    nd_dtype type = matrix_type(part->train);
    double lowered = part->cluster->gpu.peak_flops_per_s[type] / cluster->gpu.peak_flops_per_s[type];
    double fp8 = cluster->gpu.peak_flops_per_s[ND_DTYPE_FP8] > 0.0
                     ? part->cluster->gpu.peak_flops_per_s[ND_DTYPE_FP8] / cluster->gpu.peak_flops_per_s[ND_DTYPE_FP8]
                     : 1.0;
    out->gemm_frac = from->gemm_frac * lowered;
    out->gemm_burst_frac = from->gemm_burst_frac * lowered;
    out->gemm_power_s = from->gemm_power_s;
    out->gemm_k0 = from->gemm_k0;
    out->wave_frac = from->wave_frac;
    out->tile_exponent = from->tile_exponent;
    out->grouped_frac = from->grouped_frac;
    out->fp8_frac = from->fp8_frac * fp8 / lowered;
    out->fp8_cast_bytes = from->fp8_cast_bytes;
    out->fp8_weight_cast_bytes = from->fp8_weight_cast_bytes;
    cluster->gpu.sm_count = part->cluster->gpu.sm_count;
}

static void take_attention(const nd_cost_context *part, const nd_cluster_spec *cluster, nd_calibration *out)
{
    const nd_calibration *from = part->calibration;
    nd_dtype type = matrix_type(part->train);
    double lowered = part->cluster->gpu.peak_flops_per_s[type] / cluster->gpu.peak_flops_per_s[type];
    out->attention_frac = from->attention_frac * lowered;
    out->attention_s0 = from->attention_s0;
    out->flash2_frac = from->flash2_frac;
    out->flash1_frac = from->flash1_frac;
    out->attention_bwd_frac = from->attention_bwd_frac;
    out->head_dim64_frac = from->head_dim64_frac;
    out->flash2_head_dim64_frac = from->flash2_head_dim64_frac;
    out->wide_head_bwd_frac = from->wide_head_bwd_frac;
}

/* Collectives wait for the slowest links, whose constants are their GPU's. */
static bool has_slower_links(const nd_cost_context *part, const nd_cost_context *than)
{
    const nd_link_tier *tier = &part->cluster->tiers[0];
    const nd_link_tier *other = &than->cluster->tiers[0];
    return tier->bytes_per_s * tier->efficiency_frac < other->bytes_per_s * other->efficiency_frac;
}

static void take_worst(const nd_calibration *from, nd_calibration *out)
{
    out->kernel_s = fmax(out->kernel_s, from->kernel_s);
    out->network_frac = fmin(out->network_frac, from->network_frac);
    out->contention_frac = fmax(out->contention_frac, from->contention_frac);
    out->straggler_frac = fmax(out->straggler_frac, from->straggler_frac);
    out->memory_low_frac = fmin(out->memory_low_frac, from->memory_low_frac);
    out->memory_high_frac = fmax(out->memory_high_frac, from->memory_high_frac);
    out->borrowed = out->borrowed || from->borrowed;
}

void nd_mixed_slowest_constants(const nd_mixed_input *input, nd_cluster_spec *cluster, nd_calibration *calibration,
                                nd_train_spec *train, nd_time_uncertainty *uncertainty)
{
    const nd_cost_context *gemm = input->parts[0];
    const nd_cost_context *attention = input->parts[0];
    const nd_cost_context *links = input->parts[0];
    rates least = rates_of(input->parts[0]);
    for (int32_t i = 1; i < input->cluster->parts_count; i++) {
        const nd_cost_context *part = input->parts[i];
        rates mine = rates_of(part);
        gemm = mine.gemm < least.gemm ? part : gemm;
        attention = mine.attention < least.attention ? part : attention;
        links = has_slower_links(part, links) ? part : links;
        least.gemm = fmin(least.gemm, mine.gemm);
        least.attention = fmin(least.attention, mine.attention);
        least.elementwise = fmin(least.elementwise, mine.elementwise);
        least.operands = fmin(least.operands, mine.operands);
    }
    nd_calibration slowest = *links->calibration;
    take_gemm(gemm, cluster, &slowest);
    take_attention(attention, cluster, &slowest);
    slowest.hbm_frac = least.elementwise / cluster->gpu.hbm_bytes_per_s;
    slowest.gemm_hbm_frac = least.operands / cluster->gpu.hbm_bytes_per_s;
    for (int32_t i = 0; i < input->cluster->parts_count; i++) {
        take_worst(input->parts[i]->calibration, &slowest);
    }
    *calibration = slowest;
    *train = *gemm->train;
    train->attention = attention->train->attention;
    *uncertainty = gemm->uncertainty;
}
