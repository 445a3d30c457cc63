#include "cost_model/uncertainty.h"

#include <math.h>
#include <string.h>

const double nd_interval80_sd = 1.2816;

/* Widths of the priors that fits start from (fit_runs.c), and of the links: collectives of one system predicted by the
 * others of its family err by about 10 % in the median, exposed traffic is the part of it that did not hide. */
static const double prior_log_sd[ND_TIME_FACTOR_COUNT] = {
    [ND_FACTOR_GEMM] = 0.15,      [ND_FACTOR_ATTENTION] = 0.28, [ND_FACTOR_MEMORY] = 0.15,
    [ND_FACTOR_CONTENTION] = 0.5, [ND_FACTOR_LAUNCH] = 0.7,     [ND_FACTOR_LINKS] = 0.25,
};
/* A relative's rate: A100, H100 and B200 reach 0.80, 0.72 and 0.41 of their peaks in training. */
static const double borrowed_log_sd = 0.25;

nd_time_uncertainty nd_time_uncertainty_prior(bool borrowed)
{
    nd_time_uncertainty prior;
    memset(&prior, 0, sizeof prior);
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        prior.covariance[i][i] = prior_log_sd[i] * prior_log_sd[i];
    }
    if (borrowed) {
        for (int i = ND_FACTOR_GEMM; i <= ND_FACTOR_MEMORY; i++) {
            prior.covariance[i][i] += borrowed_log_sd * borrowed_log_sd;
        }
    }
    prior.form_log_sd = 0.06;
    prior.hard_form_log_sd = 0.15;
    return prior;
}

double nd_time_log_sd(const nd_time_uncertainty *uncertainty, const double shares[ND_TIME_FACTOR_COUNT], bool hard)
{
    double form = hard ? uncertainty->hard_form_log_sd : uncertainty->form_log_sd;
    double variance = form * form;
    for (int i = 0; i < ND_TIME_FACTOR_COUNT; i++) {
        for (int j = 0; j < ND_TIME_FACTOR_COUNT; j++) {
            variance += shares[i] * uncertainty->covariance[i][j] * shares[j];
        }
    }
    return sqrt(fmax(variance, 0.0));
}
