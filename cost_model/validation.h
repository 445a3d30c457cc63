/** How far predictions are from measured runs: errors by group, intervals, ranking of layouts, held-out errors.
 * docs/MODEL.md, "Validation".
 *
 * An error is predicted / measured - 1. A row is *scored* when its source does not contradict itself (no FLAG) and its
 * grade is not C; the others are predicted too, but stand apart. *Hard* rows are mixtures of experts and fp8 or
 * narrower training, *dense* rows all others. Figures without any row behind them are NAN.
 */
#ifndef ND_COST_MODEL_VALIDATION_H
#define ND_COST_MODEL_VALIDATION_H

#include "cost_model/run_set.h"

ND_BEGIN_DECLS

typedef struct nd_validation_row {
    const nd_measured_run *run; /* borrowed from the set */
    bool scored, hard;
    double predicted_s, low_s, high_s;
    double error_frac;           /* of the step time; NAN when it was not measured */
    double predicted_peak_bytes; /* of the kind that was measured */
    double peak_low_bytes, peak_high_bytes;
    double memory_error_frac; /* NAN when it was not measured */
} nd_validation_row;

typedef struct nd_validation {
    const nd_run_set *set;   /* borrowed; must outlive the validation */
    nd_validation_row *rows; /* owned; one per run of the set, in its order */
    int64_t count;
    int64_t scored, contradictory, grade_c; /* add up to count; a contradictory row counts as that alone */
} nd_validation;

/** Errors of some rows. Quantiles interpolate linearly between the sorted values. */
typedef struct nd_error_summary {
    int64_t rows;               /* with a measured step */
    double median_abs, p90_abs; /* of |error| */
    double bias;                /* median of the signed error */
    double coverage;            /* part of the measured values inside low..high; 0.8 is what the intervals promise */
    int64_t memory_rows;        /* with measured memory */
    double memory_median_abs, memory_p90_abs, memory_bias, memory_coverage;
} nd_error_summary;

/* X(enumerator, text): what rows can be grouped by. */
#define ND_VALIDATION_KEY_LIST(X)                                                                                      \
    X(ND_VALIDATION_BY_SOURCE, "source")                                                                               \
    X(ND_VALIDATION_BY_GPU, "gpu")                                                                                     \
    X(ND_VALIDATION_BY_FRAMEWORK, "framework")                                                                         \
    X(ND_VALIDATION_BY_MODEL, "model")

typedef enum nd_validation_key {
#define ND_VALIDATION_KEY_ENUM(name, text) name,
    ND_VALIDATION_KEY_LIST(ND_VALIDATION_KEY_ENUM)
#undef ND_VALIDATION_KEY_ENUM
        ND_VALIDATION_KEY_COUNT
} nd_validation_key;

const char *nd_validation_key_name(nd_validation_key key);

/** Which rows a figure is about. */
typedef enum nd_run_class { ND_RUNS_ALL, ND_RUNS_DENSE, ND_RUNS_HARD, ND_RUN_CLASS_COUNT } nd_run_class;
const char *nd_run_class_name(nd_run_class kind); /* "all", "dense", "hard" */

typedef struct nd_validation_group {
    char name[ND_MODEL_NAME_MAX];
    nd_error_summary of[ND_RUN_CLASS_COUNT];
} nd_validation_group;

typedef struct nd_validation_groups {
    nd_validation_group *groups; /* owned, sorted by name; scored rows only */
    int64_t count;
} nd_validation_groups;

/** One class over all sources: rows pooled, and sources weighted equally. */
typedef struct nd_class_score {
    nd_error_summary pooled;
    int64_t sources; /* with a measured step in this class */
    double mean_of_medians, mean_of_p90s;
    int64_t memory_sources;
    double mean_of_memory_medians, mean_of_memory_p90s;
} nd_class_score;

/** How well layouts are ranked. Rows compete when they agree in source, model, GPU type, number of GPUs, sequence and
 * global batch, and differ in layout. */
typedef struct nd_ranking_score {
    int64_t pairs; /* measured more than 3 % apart */
    int64_t pairs_right;
    int64_t groups; /* of two or more layouts */
    /* measured time of the layout that is predicted fastest / that of the fastest - 1 */
    double regret_mean, regret_median, regret_worst;
    const nd_measured_run *worst; /* the choice with the worst regret; NULL without groups */
} nd_ranking_score;

typedef struct nd_validation_score {
    nd_class_score of[ND_RUN_CLASS_COUNT];
    nd_ranking_score ranking;
} nd_validation_score;

/** Errors after one measured step of the same source has set the scale. Every row of a source is the anchor once: the
 * others' errors are (1 + e) / (1 + e_anchor) - 1, their median and p90 averaged over the anchors, then over the
 * sources. Sources with one row are left out. */
typedef struct nd_anchored_score {
    int64_t sources[ND_RUN_CLASS_COUNT];
    double median_abs[ND_RUN_CLASS_COUNT], p90_abs[ND_RUN_CLASS_COUNT];
} nd_anchored_score;

/** Predict every run of a set. ND_ENOMEM. */
nd_status nd_validation_create(const nd_run_set *set, nd_validation *out, nd_error *err) ND_NODISCARD;

/** Called before each source is held out: `done` of `sources` are behind. */
typedef void (*nd_validation_progress)(int64_t done, int64_t sources, void *user);

/** Predict the runs of each source with constants fitted on the other sources (nd_fit_runs()). The fits start where the
 * set is: load it with bare priors (fitted NULL), or the source to be held out is in the start. The set is as before
 * afterwards. Minutes for hundreds of runs.
 * \param[in] form  whose form_log_sd and hard_form_log_sd the intervals take
 * \param[in] progress  told how far it is, with `user`; may be NULL
 * \return ND_EINVAL unless at least two sources can be fitted. */
nd_status nd_validation_leave_one_out(nd_run_set *set, const nd_fitted *form, nd_validation_progress progress,
                                      void *user, nd_validation *out, nd_error *err) ND_NODISCARD;

void nd_validation_free(nd_validation *validation);

/** Summaries of the scored rows by `key`. ND_ENOMEM. */
nd_status nd_validation_group_by(const nd_validation *validation, nd_validation_key key, nd_validation_groups *out,
                                 nd_error *err) ND_NODISCARD;
void nd_validation_groups_free(nd_validation_groups *groups);

nd_status nd_validation_score_all(const nd_validation *validation, nd_validation_score *out,
                                  nd_error *err) ND_NODISCARD;
nd_status nd_validation_rank(const nd_validation *validation, nd_ranking_score *out, nd_error *err) ND_NODISCARD;
nd_status nd_validation_anchor(const nd_validation *validation, nd_anchored_score *out, nd_error *err) ND_NODISCARD;

/** Quantile q of `count` values (sorted in place), linear between neighbours; NAN for none. */
double nd_values_quantile(double *values, int64_t count, double q);

ND_END_DECLS

#endif
