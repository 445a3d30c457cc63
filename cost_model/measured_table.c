#include "cost_model/measured_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/resource.h"
#include "cost_model/measured_run.h"

extern const nd_resource nd_measured_resources[];

typedef struct named_row {
    const char *id;
    size_t row;
} named_row;

nd_status nd_measured_builtin(nd_csv **out, nd_error *err)
{
    const nd_resource *resource = &nd_measured_resources[0];
    return nd_csv_parse(resource->text, resource->length, "published runs", out, err);
}

/* By id, then in the order of the table. */
static int compare(const void *a, const void *b)
{
    const named_row *x = a;
    const named_row *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

static nd_status check_ids(const nd_csv *csv, nd_error *err)
{
    size_t rows = nd_csv_rows(csv);
    named_row *named = calloc(rows + 1, sizeof named[0]);
    if (named == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for %zu ids", rows);
    }
    for (size_t row = 0; row < rows; row++) {
        named[row] = (named_row){nd_csv_text(csv, row, "id"), row};
    }
    qsort(named, rows, sizeof named[0], compare);
    nd_status status = ND_OK;
    for (size_t i = 1; i < rows && status == ND_OK; i++) {
        if (named[i].id[0] != '\0' && strcmp(named[i].id, named[i - 1].id) == 0) {
            status =
                nd_csv_fail(csv, named[i].row, err, "id '%.60s' is there twice; every run needs its own", named[i].id);
        }
    }
    free(named);
    return status;
}

/* A line of text (a title, a remark) has the first cell at most. */
static nd_status check_row(const nd_csv *csv, size_t row, nd_error *err)
{
    static const char *const needed[] = {"model", "gpu", "gpus"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (nd_csv_text(csv, row, needed[i])[0] == '\0') {
            return nd_csv_fail(csv, row, err, "the row has no %s; every run needs model, gpu and gpus", needed[i]);
        }
    }
    return ND_OK;
}

nd_status nd_measured_check_table(const nd_csv *csv, nd_error *err)
{
    size_t rows = nd_csv_rows(csv);
    ND_TRY(nd_measured_check(csv, err));
    if (rows == 0) {
        return nd_fail(err, ND_EPARSE, "%s: the table has columns but no runs; add one line for each run",
                       nd_csv_origin(csv));
    }
    if (rows > ND_MEASURED_ROWS_MAX) {
        return nd_fail(err, ND_EPARSE, "%s: %zu runs are more than the %d of one table; split it", nd_csv_origin(csv),
                       rows, (int)ND_MEASURED_ROWS_MAX);
    }
    for (size_t row = 0; row < rows; row++) {
        ND_TRY(check_row(csv, row, err));
    }
    return check_ids(csv, err);
}
