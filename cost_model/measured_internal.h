/** What the readers of a measured row share. */
#ifndef ND_COST_MODEL_MEASURED_INTERNAL_H
#define ND_COST_MODEL_MEASURED_INTERNAL_H

#include "cost_model/measured_run.h"

/** A row while it is read: the first error of a cell sticks, so readers need no checks of their own. */
typedef struct nd_row {
    const nd_csv *csv;
    size_t index;
    nd_status status;
    nd_error err;
    uint32_t assumed;
} nd_row;

/** A cell, or `otherwise` when it is empty. */
int64_t nd_row_int(nd_row *row, const char *name, int64_t otherwise);
int64_t nd_row_int_to(nd_row *row, const char *name, int64_t max, int64_t otherwise);
double nd_row_double(nd_row *row, const char *name, double otherwise);
const char *nd_row_text(const nd_row *row, const char *name);
bool nd_row_has(const nd_row *row, const char *name, const char *part); /* part of the text, case matters */
bool nd_row_mentions(const nd_row *row, const char *name,
                     const char *part); /* the same in any case; `part` in lower case */
bool nd_row_is_one_of(const nd_row *row, const char *name, const char *const *words,
                      size_t count);                                        /* the whole text, in any case */
void nd_row_malformed(nd_row *row, const char *name, const char *expected); /* a text that means nothing here */
void nd_row_assume(nd_row *row, nd_run_assumption assumption);

/** measured_model.c */
nd_status nd_row_model(nd_row *row, nd_model_spec *out, nd_error *err) ND_NODISCARD;
/** measured_layout.c; needs run->model, cluster and stack */
nd_status nd_row_layout(nd_row *row, nd_measured_run *run, nd_error *err) ND_NODISCARD;
/** measured_check.c: ND_EUNSUPPORTED for a layout that nothing can run. */
nd_status nd_measured_layout_check(const nd_measured_run *run, nd_error *err) ND_NODISCARD;
/** measured_machine.c */
nd_status nd_row_cluster(nd_row *row, nd_cluster_spec *out, nd_error *err) ND_NODISCARD;
nd_status nd_row_stack(nd_row *row, nd_stack *out, nd_error *err) ND_NODISCARD;

#endif
