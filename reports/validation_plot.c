/* Predicted against measured step times, one series for each source. */
#include <stdlib.h>
#include <string.h>

#include "reports/plot.h"
#include "reports/validation_report.h"

static bool is_drawn(const nd_validation_row *row)
{
    return row->scored && row->run->step_s > 0.0;
}

/* The points of one source, appended to `points`. */
static nd_plot_series series_of(const nd_validation *v, const char *source, nd_plot_point *points)
{
    nd_plot_series series = {.label = source, .points = points, .kind = ND_PLOT_SCATTER};
    for (int64_t i = 0; i < v->count; i++) {
        const nd_validation_row *row = &v->rows[i];
        if (is_drawn(row) && strcmp(row->run->source, source) == 0) {
            points[series.count++] =
                (nd_plot_point){.x = row->run->step_s, .y = row->predicted_s, .low = row->low_s, .high = row->high_s};
        }
    }
    return series;
}

nd_status nd_plot_validation(FILE *stream, const nd_validation_view *view, nd_error *err)
{
    const nd_validation *v = view->validation;
    nd_plot_series series[ND_PLOT_SERIES_MAX];
    int32_t count = 0;
    int64_t used = 0;
    if (view->sources->count > ND_PLOT_SERIES_MAX) {
        return nd_fail(err, ND_EUNSUPPORTED, "a picture holds %d sources, and there are %lld", (int)ND_PLOT_SERIES_MAX,
                       (long long)view->sources->count);
    }
    nd_plot_point *points = calloc((size_t)v->count + 1, sizeof points[0]);
    if (points == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a picture of %lld runs", (long long)v->count);
    }
    for (int64_t i = 0; i < view->sources->count; i++) {
        series[count] = series_of(v, view->sources->groups[i].name, &points[used]);
        used += series[count].count;
        count += series[count].count > 0;
    }
    nd_plot plot = {
        .title = view->leave_one_out ? "Step time, constants fitted on the other sources"
                                     : "Step time: predicted against measured",
        .x = {.title = "measured", .unit = ND_PLOT_SECONDS, .log = true},
        .y = {.title = "predicted", .unit = ND_PLOT_SECONDS, .log = true},
        .series = series,
        .series_count = count,
        .diagonal = true,
        .band_frac = 0.1,
    };
    nd_status status = nd_plot_write(&plot, stream, err);
    free(points);
    return status;
}
