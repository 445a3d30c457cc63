#include "cost_model/fitted.h"

#include <string.h>

static bool belongs(const nd_run_constant *constant, const nd_calibration *calibration, const nd_stack *stack)
{
    if (constant->of_stack) {
        return stack != NULL && strcmp(constant->owner, stack->name) == 0;
    }
    return calibration != NULL && strcmp(constant->owner, calibration->gpu) == 0;
}

int32_t nd_fitted_count_for(const nd_fitted *fitted, const nd_calibration *calibration, const nd_stack *stack)
{
    int32_t count = 0;
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        count += fitted->identified[i] && belongs(&fitted->constants[i], calibration, stack);
    }
    return count;
}

void nd_fitted_apply(const nd_fitted *fitted, nd_calibration *calibration, nd_stack *stack)
{
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        const nd_run_constant *constant = &fitted->constants[i];
        if (!fitted->identified[i] || !belongs(constant, calibration, stack)) {
            continue;
        }
        double *place = constant->of_stack ? nd_stack_constant(stack, constant->key)
                                           : nd_calibration_constant(calibration, constant->key);
        if (place != NULL) {
            *place = fitted->value[i];
        }
    }
}

/* Which part of a step time follows a constant; ND_TIME_FACTOR_COUNT for those that no factor stands for. */
static nd_time_factor factor_of(const char *key)
{
    static const struct {
        const char *key;
        nd_time_factor factor;
    } factors[] = {
        {"gemm_frac", ND_FACTOR_GEMM},  {"attention_frac", ND_FACTOR_ATTENTION},   {"hbm_frac", ND_FACTOR_MEMORY},
        {"launch_s", ND_FACTOR_LAUNCH}, {"contention_frac", ND_FACTOR_CONTENTION},
    };
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        if (strcmp(key, factors[i].key) == 0) {
            return factors[i].factor;
        }
    }
    return ND_TIME_FACTOR_COUNT;
}

/* A rate makes the step shorter, a cost longer: the sign of d log(step) / d log(constant). */
static double sign_of(nd_time_factor factor)
{
    return factor == ND_FACTOR_CONTENTION || factor == ND_FACTOR_LAUNCH ? 1.0 : -1.0;
}

nd_time_uncertainty nd_fitted_uncertainty(const nd_fitted *fitted, const nd_calibration *calibration,
                                          const nd_stack *stack)
{
    nd_time_uncertainty out = nd_time_uncertainty_prior(calibration->borrowed);
    bool seen[ND_TIME_FACTOR_COUNT] = {false};
    double covariance[ND_TIME_FACTOR_COUNT][ND_TIME_FACTOR_COUNT];
    memset(covariance, 0, sizeof covariance);
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        nd_time_factor row = factor_of(fitted->constants[i].key);
        if (row == ND_TIME_FACTOR_COUNT || !belongs(&fitted->constants[i], calibration, stack)) {
            continue;
        }
        seen[row] = seen[row] || fitted->identified[i];
        for (int32_t j = 0; j < fitted->constants_count; j++) {
            nd_time_factor column = factor_of(fitted->constants[j].key);
            if (column != ND_TIME_FACTOR_COUNT && belongs(&fitted->constants[j], calibration, stack)) {
                covariance[row][column] += sign_of(row) * sign_of(column) * fitted->covariance[i][j];
            }
        }
    }
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        for (int j = 0; j < ND_TIME_FACTOR_COUNT && seen[i]; j++) {
            double borrowed = i == j && calibration->borrowed ? out.covariance[i][i] : 0.0;
            out.covariance[i][j] = seen[j] ? covariance[i][j] + borrowed : 0.0;
        }
    }
    out.form_log_sd = fitted->form_log_sd > 0.0 ? fitted->form_log_sd : out.form_log_sd;
    out.hard_form_log_sd = fitted->hard_form_log_sd > 0.0 ? fitted->hard_form_log_sd : out.hard_form_log_sd;
    return out;
}
