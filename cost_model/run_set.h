/** Many measured runs, ready to be predicted again and again with other constants. */
#ifndef ND_COST_MODEL_RUN_SET_H
#define ND_COST_MODEL_RUN_SET_H

#include "cost_model/measured_run.h"

ND_BEGIN_DECLS

typedef struct nd_fitted nd_fitted; /* cost_model/fitted.h */

/** One run of a set and what it is predicted with. */
typedef struct nd_run_entry {
    nd_measured_run run;
    nd_cost_context context; /* borrows from this entry and from the set's calibrations */
    int32_t calibration;     /* index into the set's calibrations */
} nd_run_entry;

/** A row that could not become a run. */
typedef struct nd_skipped_row {
    char id[40];
    char source[24];
    char reason[200];
} nd_skipped_row;

enum { ND_SET_CALIBRATIONS_MAX = 48 };

typedef struct nd_run_set {
    nd_run_entry *entries; /* owned */
    int64_t count;
    nd_skipped_row *skipped; /* owned */
    int64_t skipped_count;
    nd_calibration calibrations[ND_SET_CALIBRATIONS_MAX]; /* one per calibration file in use; may be changed */
    int32_t calibrations_count;
    bool some_own; /* some run is on a GPU with a calibration of its own */
} nd_run_set;

/** Read every row of a table.
 * \param[in] fitted  constants to lay over calibrations and stacks, or NULL for bare priors
 * ND_EPARSE for a malformed table or cell; rows that cannot be predicted land in out->skipped. */
nd_status nd_run_set_load(const nd_csv *csv, const nd_fitted *fitted, nd_run_set *out, nd_error *err) ND_NODISCARD;

void nd_run_set_free(nd_run_set *set);

/** Step time of entry `index` alone, for fits. */
double nd_run_set_step_s(const nd_run_set *set, int64_t index);

/** Predict entry `index` with the set's calibrations as they are now. */
void nd_run_set_predict(const nd_run_set *set, int64_t index, nd_estimate *out);

ND_END_DECLS

#endif
