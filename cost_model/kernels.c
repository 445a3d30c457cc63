#include "cost_model/kernels.h"

#include <math.h>

/* Output tiles of current GEMM libraries, rows x columns. */
static const int32_t tiles[][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
enum { TILE_COUNT = sizeof tiles / sizeof tiles[0], ATTENTION_TILE_ROWS = 128 };

nd_kernel_model nd_kernel_model_make(const nd_gpu_spec *gpu, const nd_calibration *calibration,
                                     const nd_train_spec *train)
{
    nd_dtype dtype = train->precision == ND_DTYPE_FP8 ? ND_DTYPE_BF16 : train->precision;
    double peak = gpu->peak_flops_per_s[dtype];
    /* generations of flash attention differ on GPUs with asynchronous tensor cores only */
    double kernel_frac = train->attention == ND_ATTENTION_FLASH2 ? calibration->flash2_frac : 1.0;
    nd_kernel_model model = {
        .matrix_flops_per_s = peak * calibration->gemm_frac,
        .attention_flops_per_s = peak * calibration->attention_frac * kernel_frac,
        .hbm_bytes_per_s = gpu->hbm_bytes_per_s * calibration->hbm_frac,
        .sm_count = (double)gpu->sm_count,
        .gemm_k0 = calibration->gemm_k0,
        .wave_frac = calibration->wave_frac,
        .kernel_s = calibration->kernel_s,
        .grouped_frac = calibration->grouped_frac,
        .attention_s0 = calibration->attention_s0,
        .attention_bwd_frac = calibration->attention_bwd_frac,
        .head_dim64_frac = calibration->head_dim64_frac,
        .element_bytes = (double)nd_dtype_compute_bytes(train->precision),
    };
    if (train->precision == ND_DTYPE_FP8) {
        model.fp8_flops_per_s = gpu->peak_flops_per_s[ND_DTYPE_FP8] * calibration->gemm_frac * calibration->fp8_frac;
    }
    return model;
}

static double ceil_div(int64_t n, int64_t d)
{
    int64_t quotient = (n + d - 1) / d;
    return (double)quotient;
}

static double waves_of(double tile_count, double sm_count, double wave_frac)
{
    double waves = tile_count / sm_count;
    return waves < 1.0 ? 1.0 : waves + wave_frac * (ceil(waves) - waves);
}

/* Seconds x FLOP/s of the best tile: work with the loss of partial tiles, waves and the k prologue. */
static double best_tile_flops(const nd_kernel_model *model, const nd_op *op)
{
    double best = HUGE_VAL;
    for (int i = 0; i < TILE_COUNT; i++) {
        int64_t rows = tiles[i][0];
        int64_t columns = tiles[i][1];
        double count = (double)op->groups * ceil_div(op->m, rows) * ceil_div(op->n, columns);
        double waves = waves_of(count, model->sm_count, model->wave_frac);
        double flops = waves * (double)(rows * columns) * 2.0 * ((double)op->k + model->gemm_k0) * model->sm_count;
        best = flops < best ? flops : best;
    }
    return best;
}

double nd_gemm_s(const nd_kernel_model *model, const nd_op *op)
{
    bool fp8 = op->fp8 && model->fp8_flops_per_s > 0.0;
    double rate = fp8 ? model->fp8_flops_per_s : model->matrix_flops_per_s;
    if (op->groups > 1) {
        rate *= model->grouped_frac;
    }
    double matrix_s = best_tile_flops(model, op) / rate;
    double bytes = op->hbm_bytes;
    if (fp8) {
        double operands = (double)op->groups * ((double)op->m * (double)op->k + (double)op->k * (double)op->n);
        bytes -= operands * (model->element_bytes - 1.0); /* operands are read as one byte */
        /* casts of activations or gradients: read two bytes, write one */
        matrix_s += 3.0 * (double)op->groups * (double)op->m * (double)op->k / model->hbm_bytes_per_s;
    }
    double memory_s = bytes / model->hbm_bytes_per_s;
    return model->kernel_s + (matrix_s > memory_s ? matrix_s : memory_s);
}

/* One of the batched GEMMs of attention without a flash kernel. */
static double score_gemm_s(const nd_kernel_model *model, const nd_op *op, int64_t m, int64_t n, int64_t k)
{
    nd_op gemm = {.groups = op->batch * op->heads, .m = m, .n = n, .k = k};
    double elements = (double)m * (double)n + (double)m * (double)k + (double)k * (double)n;
    double memory_s = (double)gemm.groups * elements * model->element_bytes / model->hbm_bytes_per_s;
    return model->kernel_s + fmax(best_tile_flops(model, &gemm) / model->matrix_flops_per_s, memory_s);
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
    double keys = (double)op->kv_len;
    double rate = model->attention_flops_per_s * keys / (keys + model->attention_s0);
    if (op->qk_dim < 128) {
        rate *= model->head_dim64_frac;
    }
    double blocks = (double)op->batch * (double)op->heads * ceil_div(op->q_len, ATTENTION_TILE_ROWS);
    double waves = blocks / model->sm_count;
    rate *= waves > 0.5 ? waves / fmax(1.0, ceil(waves)) : waves; /* idle SMs of the last wave */
    if (op->backward) {
        rate *= model->attention_bwd_frac;
    }
    return op->flops / rate + nd_elementwise_s(model, op->hbm_bytes, op->kernels);
}

double nd_elementwise_s(const nd_kernel_model *model, double bytes, int32_t kernels)
{
    return (double)kernels * model->kernel_s + bytes / model->hbm_bytes_per_s;
}
