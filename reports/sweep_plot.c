/* Tokens per second over the quantity: one line through the best plans, each run of one layout with its own marker. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "reports/format.h"
#include "reports/plot.h"
#include "reports/sweep_report.h"

enum { LABEL_MAX = 160 };

/* A range wider than this needs a logarithmic axis. */
static const double log_ratio = 4.0;
static const double bits_per_byte = 8.0;

static const nd_plot_axis axes[ND_SWEEP_QUANTITY_COUNT] = {
    [ND_SWEEP_GPUS] = {.title = "GPUs", .unit = ND_PLOT_WHOLE},
    [ND_SWEEP_SEQ_LEN] = {.title = "tokens of one sequence", .unit = ND_PLOT_WHOLE},
    [ND_SWEEP_GLOBAL_BATCH] = {.title = "sequences of one step", .unit = ND_PLOT_WHOLE},
    [ND_SWEEP_NIC] = {.title = "NICs of a node, Gb/s", .unit = ND_PLOT_NUMBER},
    [ND_SWEEP_NVLINK_DOMAIN] = {.title = "GPUs of one NVLink domain", .unit = ND_PLOT_WHOLE},
};

static double x_of(const nd_sweep_view *view, const nd_sweep_point *point)
{
    return view->quantity == ND_SWEEP_NIC ? point->value * bits_per_byte / ND_GIGA : point->value;
}

static void append(char out[LABEL_MAX], const char *format, ...) ND_PRINTF(2, 3);
static void append(char out[LABEL_MAX], const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out + used, LABEL_MAX - used, format, args);
    va_end(args);
}

/* From which value on, and what is not plain: the whole layout does not fit a legend. */
static void describe(const nd_sweep_view *view, const nd_sweep_point *point, char out[LABEL_MAX])
{
    const nd_layout *layout = &point->point.best.layout;
    (void)snprintf(out, LABEL_MAX, "from %s:", nd_format_count(llround(x_of(view, point))).text);
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (layout->size[axis] > 1) {
            append(out, " %s %d", nd_axis_name((nd_axis)axis), (int)layout->size[axis]);
        }
    }
    if (layout->ep > 1) {
        append(out, " ep %d", (int)layout->ep);
    }
    if (layout->vpp > 1) {
        append(out, " vpp %d", (int)layout->vpp);
    }
    append(out, " batch %d", (int)layout->micro_batch);
    if (layout->sharding != ND_SHARDING_NONE) {
        append(out, " %s", nd_sharding_name(layout->sharding));
    }
    if (layout->recompute == ND_RECOMPUTE_EVERY) {
        append(out, " recompute every %d", (int)layout->recompute_every);
    } else if (layout->recompute != ND_RECOMPUTE_NONE) {
        append(out, " recompute %s", nd_recompute_name(layout->recompute));
    }
}

typedef struct picture {
    nd_plot_point line[ND_SWEEP_POINTS_MAX], ideal[ND_SWEEP_POINTS_MAX];
    double values[ND_SWEEP_POINTS_MAX]; /* x of each point: where the ticks are */
    char labels[ND_SWEEP_POINTS_MAX][LABEL_MAX];
    nd_plot_series series[ND_SWEEP_POINTS_MAX + 2];
    int32_t points, series_count;
} picture;

/* Points that fit, and a series of markers for each run of one layout. */
static void collect(const nd_sweep_view *view, picture *p)
{
    p->series_count = 1; /* the first is the line through all */
    if (view->quantity == ND_SWEEP_GPUS) {
        p->series[p->series_count++] = (nd_plot_series){.kind = ND_PLOT_CURVE}; /* add_ideal() fills it */
    }
    for (int32_t i = 0; i < view->count; i++) {
        const nd_sweep_point *point = &view->points[i];
        const nd_estimate *estimate = &point->point.best.estimate;
        if (!point->point.fits) {
            continue;
        }
        double tokens = estimate->tokens_per_s * estimate->time.step_s;
        p->values[p->points] = x_of(view, point);
        p->line[p->points] = (nd_plot_point){.x = x_of(view, point),
                                             .y = estimate->tokens_per_s,
                                             .low = tokens / estimate->time.step_high_s,
                                             .high = tokens / estimate->time.step_low_s};
        if (p->points == 0 || point->changed) {
            describe(view, point, p->labels[p->points]);
            p->series[p->series_count++] = (nd_plot_series){
                .label = p->labels[p->points], .points = &p->line[p->points], .kind = ND_PLOT_SCATTER, .bars = true};
        }
        p->series[p->series_count - 1].count++;
        p->points++;
    }
    p->series[0] = (nd_plot_series){
        .label = "best layout (bars: 80 % interval)", .points = p->line, .count = p->points, .kind = ND_PLOT_CURVE};
}

static void add_ideal(const nd_sweep_view *view, picture *p)
{
    if (view->quantity != ND_SWEEP_GPUS || p->points < 2) {
        return;
    }
    p->series[1] =
        (nd_plot_series){.label = "perfect scaling", .points = p->ideal, .count = p->points, .kind = ND_PLOT_CURVE};
    for (int32_t i = 0; i < p->points; i++) {
        p->ideal[i] = (nd_plot_point){.x = p->line[i].x, .y = p->line[0].y * p->line[i].x / p->line[0].x};
    }
}

nd_status nd_plot_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view, nd_error *err)
{
    picture p;
    char title[160];
    memset(&p, 0, sizeof p);
    collect(view, &p);
    if (p.points == 0) {
        return nd_fail(err, ND_EUNSUPPORTED, "nothing fits at any value, so that there is nothing to draw");
    }
    add_ideal(view, &p);
    (void)snprintf(title, sizeof title, "%.60s on %.60s: best layout over %s", context->cost->model->name,
                   view->quantity == ND_SWEEP_GPUS ? context->cost->cluster->gpu.name : context->cost->cluster->name,
                   axes[view->quantity].title);
    bool wide = p.line[p.points - 1].x >= log_ratio * p.line[0].x;
    nd_plot plot = {
        .title = title,
        .x = axes[view->quantity],
        .y = {.title = "tokens per second", .unit = ND_PLOT_PER_SECOND, .log = wide && view->quantity == ND_SWEEP_GPUS},
        .series = p.series,
        .series_count = p.series_count,
    };
    plot.x.log = wide;
    plot.x.tick_at = p.values;
    plot.x.tick_at_count = p.points;
    return nd_plot_write(&plot, stream, err);
}
