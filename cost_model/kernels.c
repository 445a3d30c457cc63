#include "cost_model/kernels.h"

#include <math.h>

/* Output tiles of GEMM libraries, log2 of rows and columns: the large ones either way round, the square one, and a
 * small one for small outputs. More sizes do not lower the error on measured tables (docs/MODEL.md, "GEMM"). */
static const struct {
    int32_t rows_log2, columns_log2;
} tiles[ND_GEMM_TILE_COUNT] = {{8, 7}, {7, 8}, {7, 7}, {6, 6}};

static const double largest_tile = 256.0 * 128.0;
static const int64_t split_k_min = 256; /* shortest part of k that a split leaves to a tile */
static const double split_bytes = 8.0;  /* a split writes and reads fp32 partial sums */

enum { ATTENTION_TILE_ROWS = 128 };

static nd_matrix_rate matrix_rate(double peak_flops_per_s, const nd_calibration *calibration)
{
    double excess = calibration->gemm_burst_frac / calibration->gemm_frac - 1.0;
    return (nd_matrix_rate){
        .burst_flops_per_s = peak_flops_per_s * (excess > 0.0 ? calibration->gemm_burst_frac : calibration->gemm_frac),
        .power_excess = excess > 0.0 ? excess : 0.0,
    };
}

/* Rate of the kernel generation against the newest one. */
static double generation_frac(nd_attention attention, const nd_calibration *calibration)
{
    switch (attention) {
    case ND_ATTENTION_FLASH1:
        return calibration->flash1_frac;
    case ND_ATTENTION_FLASH2:
        return calibration->flash2_frac;
    case ND_ATTENTION_FLASH3:
    case ND_ATTENTION_MATH:
    case ND_ATTENTION_COUNT:
        break;
    }
    return 1.0;
}

nd_kernel_model nd_kernel_model_make(const nd_gpu_spec *gpu, const nd_calibration *calibration,
                                     const nd_train_spec *train)
{
    nd_dtype dtype = train->precision == ND_DTYPE_FP8 ? ND_DTYPE_BF16 : train->precision;
    double peak = gpu->peak_flops_per_s[dtype];
    bool older = train->attention == ND_ATTENTION_FLASH1 || train->attention == ND_ATTENTION_FLASH2;
    nd_kernel_model model = {
        .matrix = matrix_rate(peak, calibration),
        .attention_flops_per_s = peak * calibration->attention_frac * generation_frac(train->attention, calibration),
        .hbm_bytes_per_s = gpu->hbm_bytes_per_s * calibration->hbm_frac,
        .gemm_hbm_bytes_per_s = gpu->hbm_bytes_per_s * calibration->gemm_hbm_frac,
        .sm_count = (double)gpu->sm_count,
        .gemm_k0 = calibration->gemm_k0,
        .wave_frac = calibration->wave_frac,
        .gemm_power_s = calibration->gemm_power_s,
        .kernel_s = calibration->kernel_s,
        .grouped_frac = calibration->grouped_frac,
        .fp8_cast_bytes = calibration->fp8_cast_bytes,
        .fp8_weight_cast_bytes = calibration->fp8_weight_cast_bytes,
        .attention_s0 = calibration->attention_s0,
        .attention_bwd_frac = calibration->attention_bwd_frac,
        .head_dim64_frac = older ? calibration->flash2_head_dim64_frac : calibration->head_dim64_frac,
        .wide_head_bwd_frac = calibration->wide_head_bwd_frac,
        .element_bytes = (double)nd_dtype_compute_bytes(train->precision),
    };
    if (train->precision == ND_DTYPE_FP8) {
        model.fp8 = matrix_rate(gpu->peak_flops_per_s[ND_DTYPE_FP8] * calibration->fp8_frac, calibration);
    }
    for (int i = 0; i < ND_GEMM_TILE_COUNT; i++) {
        double size = (double)(1 << (tiles[i].rows_log2 + tiles[i].columns_log2));
        double rate = pow(size / largest_tile, calibration->tile_exponent);
        model.tile_flops[i] = 2.0 * size * model.sm_count / rate;
    }
    return model;
}

static int64_t ceil_shift(int64_t n, int32_t log2)
{
    return (n + ((int64_t)1 << log2) - 1) >> log2;
}

static double waves_of(double waves, double wave_frac)
{
    if (waves < 1.0) {
        return 1.0;
    }
    double whole = floor(waves);
    return waves > whole ? waves + wave_frac * (whole + 1.0 - waves) : waves;
}

/* Tensor cores load eight 16-bit elements at once: other sizes take slower kernels. Weight GEMMs run at half (nanoGPT:
 * a vocabulary of 50,304 instead of 50,257 made GPT-2 124M 25 % faster, and its head is a third of the work), strided
 * batches of attention at a tenth (BLOOM's tuning log: 128 heads of 108 made steps of a 13,824-wide model 25 % longer
 * than 64 heads of 216 or 96 of 144, and their GEMMs are 2.5 % of the work). */
static const int64_t aligned_elements = 8;
static const double misaligned_frac = 0.5;
static const double misaligned_batch_frac = 0.1;

static double alignment_frac(const nd_op *op, double misaligned)
{
    return (op->m | op->n | op->k) % aligned_elements == 0 ? 1.0 : misaligned;
}

/* Seconds at burst rate when every tile runs over all of k, or when idle SMs take parts of k, whichever is shorter. */
static double tile_s(const nd_kernel_model *model, const nd_op *op, double s_per_flop, int tile)
{
    double count = (double)op->groups * (double)ceil_shift(op->m, tiles[tile].rows_log2) *
                   (double)ceil_shift(op->n, tiles[tile].columns_log2);
    double k = (double)op->k;
    double waves = count / model->sm_count;
    double one_wave = model->tile_flops[tile] * s_per_flop;
    double whole = waves_of(waves, model->wave_frac) * one_wave * (k + model->gemm_k0);
    if (waves > 0.5 || op->k < 2 * split_k_min) {
        return whole;
    }
    double idle = model->sm_count / count;
    double most = k / (double)split_k_min;
    double parts = floor(idle < most ? idle : most);
    double outputs = (double)op->groups * (double)op->m * (double)op->n;
    /* the partial sums are added by a second kernel */
    double split = one_wave * (k / parts + model->gemm_k0) + model->kernel_s +
                   parts * outputs * split_bytes / model->gemm_hbm_bytes_per_s;
    return split < whole ? split : whole;
}

/* Long kernels reach the power limit and slow down from the burst to the sustained rate. */
static double at_power_limit(const nd_kernel_model *model, const nd_matrix_rate *rate, double burst_s)
{
    return burst_s * (1.0 + rate->power_excess / (1.0 + model->gemm_power_s / burst_s));
}

/* Tensor-core seconds of the best tile at `frac` of the rate. */
static double matrix_s(const nd_kernel_model *model, const nd_op *op, const nd_matrix_rate *rate, double frac)
{
    double s_per_flop = 1.0 / (rate->burst_flops_per_s * frac);
    double burst = HUGE_VAL;
    for (int i = 0; i < ND_GEMM_TILE_COUNT; i++) {
        double seconds = tile_s(model, op, s_per_flop, i);
        burst = seconds < burst ? seconds : burst;
    }
    return at_power_limit(model, rate, burst);
}

/* Close to the larger one; where both are alike neither hides the other completely. */
static double roofline(double a, double b)
{
    return cbrt(a * a * a + b * b * b);
}

double nd_gemm_s(const nd_kernel_model *model, const nd_op *op)
{
    bool fp8 = op->fp8 && model->fp8.burst_flops_per_s > 0.0;
    double bytes = op->hbm_bytes;
    double cast_s = 0.0;
    if (fp8) {
        double operands = (double)op->groups * ((double)op->m * (double)op->k + (double)op->k * (double)op->n);
        bytes -= operands * (model->element_bytes - 1.0); /* operands are read as one byte */
        cast_s = (model->fp8_cast_bytes * op->cast_activations + model->fp8_weight_cast_bytes * op->cast_weights) /
                 model->hbm_bytes_per_s;
    }
    double frac = (op->groups > 1 ? model->grouped_frac : 1.0) * alignment_frac(op, misaligned_frac);
    double compute_s = matrix_s(model, op, fp8 ? &model->fp8 : &model->matrix, frac);
    return model->kernel_s + cast_s + roofline(compute_s, bytes / model->gemm_hbm_bytes_per_s);
}

/* Softmax work per FLOP grows as heads get narrower; wider ones than 128 change nothing that was measured. */
static double head_dim_frac(double head_dim64_frac, double head_dim)
{
    if (head_dim >= 128.0) {
        return 1.0;
    }
    return head_dim > 64.0 ? head_dim64_frac + (1.0 - head_dim64_frac) * (head_dim - 64.0) / 64.0
                           : head_dim64_frac * head_dim / 64.0;
}

/* One of the batched GEMMs of attention without a flash kernel: equal shapes in one launch, no loss of groups. */
static double score_gemm_s(const nd_kernel_model *model, const nd_op *op, int64_t m, int64_t n, int64_t k)
{
    nd_op gemm = {.groups = op->batch * op->heads, .m = m, .n = n, .k = k};
    double elements = (double)m * (double)n + (double)m * (double)k + (double)k * (double)n;
    double memory_s = (double)gemm.groups * elements * model->element_bytes / model->gemm_hbm_bytes_per_s;
    double frac = alignment_frac(&gemm, misaligned_batch_frac);
    return model->kernel_s + roofline(matrix_s(model, &gemm, &model->matrix, frac), memory_s);
}

/* Scores and output forward; dP and dV, then dQ and dK backward. */
static double math_attention_s(const nd_kernel_model *model, const nd_op *op)
{
    double into_scores = score_gemm_s(model, op, op->q_len, op->kv_len, op->backward ? op->v_dim : op->qk_dim);
    double from_scores = score_gemm_s(model, op, op->q_len, op->backward ? op->qk_dim : op->v_dim, op->kv_len);
    double times = op->backward ? 2.0 : 1.0;
    return times * (into_scores + from_scores) + nd_elementwise_s(model, op->hbm_bytes, op->kernels);
}

double nd_attention_s(const nd_kernel_model *model, const nd_op *op)
{
    if (op->math) {
        return math_attention_s(model, op);
    }
    /* keys of an average query count twice: s under a causal mask, 2 s without, 2 w in a sliding window */
    double keys = 2.0 * op->pairs / (double)(op->q_len > 0 ? op->q_len : 1);
    double rate = model->attention_flops_per_s * keys / (keys + model->attention_s0) *
                  head_dim_frac(model->head_dim64_frac, (double)op->qk_dim);
    int64_t q_tiles = (op->q_len + ATTENTION_TILE_ROWS - 1) / ATTENTION_TILE_ROWS;
    double blocks = (double)op->batch * (double)op->heads * (double)q_tiles;
    double waves = blocks / model->sm_count;
    rate *= waves > 0.5 ? waves / fmax(1.0, ceil(waves)) : waves; /* idle SMs of the last wave */
    if (op->backward) {
        rate *= model->attention_bwd_frac * (op->qk_dim > 128 ? model->wide_head_bwd_frac : 1.0);
    }
    return op->flops / rate + nd_elementwise_s(model, op->hbm_bytes, op->kernels);
}

double nd_elementwise_s(const nd_kernel_model *model, double bytes, int32_t kernels)
{
    return (double)kernels * model->kernel_s + bytes / model->hbm_bytes_per_s;
}
