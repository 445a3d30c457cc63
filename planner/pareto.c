#include "planner/pareto.h"

#include <stdlib.h>
#include <string.h>

static int by_double(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_time_memory_gpus(const void *left, const void *right)
{
    const nd_plan *a = left;
    const nd_plan *b = right;
    char text[2][512];
    int order = by_double(a->estimate.time.step_s, b->estimate.time.step_s);
    order = order != 0 ? order : by_double(a->estimate.memory.peak_bytes, b->estimate.memory.peak_bytes);
    if (order == 0) {
        order = by_double((double)nd_layout_ranks(&a->layout), (double)nd_layout_ranks(&b->layout));
    }
    if (order != 0) {
        return order;
    }
    (void)nd_layout_format(&a->layout, text[0], sizeof text[0]);
    (void)nd_layout_format(&b->layout, text[1], sizeof text[1]);
    return strcmp(text[0], text[1]);
}

/* Is `a` as good as `b` in everything, but for the factor? */
static bool covers(const nd_plan *a, const nd_plan *b, double factor)
{
    return a->estimate.time.step_s <= factor * b->estimate.time.step_s &&
           a->estimate.memory.peak_bytes <= factor * b->estimate.memory.peak_bytes &&
           (double)nd_layout_ranks(&a->layout) <= factor * (double)nd_layout_ranks(&b->layout);
}

/* Mark what no marked plan before it covers. With factor 1 that is the front, since what beats a plan sorts before
 * it. */
static int32_t mark(const nd_plan *plans, int32_t count, double factor, bool *keep)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        keep[i] = true;
        for (int32_t k = 0; k < i && keep[i]; k++) {
            keep[i] = !(keep[k] && covers(&plans[k], &plans[i], factor));
        }
        kept += keep[i];
    }
    return kept;
}

nd_status nd_pareto_front(nd_plan *plans, int32_t *count, int32_t limit, double *coarseness_frac, nd_error *err)
{
    if (*count == 0) {
        *coarseness_frac = 0.0;
        return ND_OK;
    }
    bool *keep = calloc((size_t)*count, sizeof *keep);
    if (keep == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a front of %d plans", (int)*count);
    }
    double coarseness = 0.0;
    qsort(plans, (size_t)*count, sizeof *plans, by_time_memory_gpus);
    while (mark(plans, *count, 1.0 + coarseness, keep) > limit) {
        coarseness = coarseness > 0.0 ? 1.25 * coarseness : 0.01;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < *count; i++) {
        if (keep[i]) {
            plans[kept++] = plans[i];
        }
    }
    free(keep);
    *count = kept;
    *coarseness_frac = coarseness;
    return ND_OK;
}
