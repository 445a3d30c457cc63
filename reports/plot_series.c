/* The points of a chart: markers, error bars, lines. Nothing leaves the plot area. */
#include <math.h>
#include <string.h>

#include "reports/plot_internal.h"

enum { LINE_MARKS_MAX = 40 }; /* a line with more points has no markers: they would hide it */

bool nd_plot_chart_can_show(const nd_plot_chart *c, const nd_plot_point *point)
{
    return nd_plot_can_show(&c->x, point->x) && nd_plot_can_show(&c->y, point->y);
}

bool nd_plot_series_bar(const nd_plot_series *series, const nd_plot_point *point)
{
    return series->bars && isfinite(point->low) && isfinite(point->high);
}

static bool is_inside(const nd_plot_scale *scale, double value)
{
    return value >= scale->min && value <= scale->max;
}

/* Shorten [*from, *to] of the way to where start + way x change lies in [low, high]; whether something is left. */
static bool clip_way(double start, double change, double low, double high, double *from, double *to)
{
    if (change == 0.0) {
        return start >= low && start <= high;
    }
    double a = (low - start) / change;
    double b = (high - start) / change;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
    return *from <= *to;
}

/* One piece of a line inside the area (Liang and Barsky); `joined`: the path already ends where it starts. */
static bool draw_piece(const nd_plot_chart *c, const double a[2], const double b[2], bool joined)
{
    double from = 0.0;
    double to = 1.0;
    double dx = b[0] - a[0];
    double dy = b[1] - a[1];
    if (!clip_way(a[0], dx, c->left, c->right, &from, &to) || !clip_way(a[1], dy, c->top, c->bottom, &from, &to)) {
        return false;
    }
    if (!joined || from > 0.0) {
        fprintf(c->out, "M%.1f %.1f", a[0] + from * dx, a[1] + from * dy);
    }
    fprintf(c->out, "L%.1f %.1f\n", a[0] + to * dx, a[1] + to * dy);
    return to == 1.0;
}

static void draw_line(const nd_plot_chart *c, int32_t index)
{
    const nd_plot_series *series = &c->plot->series[index];
    double last[2] = {0.0, 0.0};
    bool has_last = false;
    bool joined = false;
    fprintf(c->out, "<path fill='none' stroke='currentColor' stroke-width='1.8' stroke-linejoin='round'%s d='",
            nd_plot_dash(index));
    for (int64_t i = 0; i < series->count; i++) {
        const nd_plot_point *point = &series->points[i];
        bool shown = nd_plot_chart_can_show(c, point);
        if (shown) {
            const double next[2] = {nd_plot_scale_px(&c->x, point->x), nd_plot_scale_px(&c->y, point->y)};
            joined = has_last && draw_piece(c, last, next, joined);
            memcpy(last, next, sizeof last);
        }
        joined = joined && shown;
        has_last = shown;
    }
    fputs("'/>\n", c->out);
}

static bool is_in_area(const nd_plot_chart *c, const nd_plot_point *point)
{
    return nd_plot_chart_can_show(c, point) && is_inside(&c->x, point->x) && is_inside(&c->y, point->y);
}

static void draw_bars(const nd_plot_chart *c, const nd_plot_series *series)
{
    fputs("<path fill='none' stroke='currentColor' stroke-opacity='0.45' d='", c->out);
    for (int64_t i = 0; i < series->count; i++) {
        const nd_plot_point *point = &series->points[i];
        double low = fmin(point->low, point->high);
        double high = fmax(point->low, point->high);
        if (!nd_plot_series_bar(series, point) || !is_in_area(c, point) || high < c->y.min || low > c->y.max) {
            continue;
        }
        fprintf(c->out, "M%.1f %.1fV%.1f\n", nd_plot_scale_px(&c->x, point->x),
                nd_plot_scale_px(&c->y, fmax(low, c->y.min)), nd_plot_scale_px(&c->y, fmin(high, c->y.max)));
    }
    fputs("'/>\n", c->out);
}

static bool has_marks(const nd_plot_series *series)
{
    return series->kind == ND_PLOT_SCATTER || (series->kind == ND_PLOT_LINE && series->count <= LINE_MARKS_MAX);
}

static void draw_marks(const nd_plot_chart *c, int32_t index)
{
    const nd_plot_series *series = &c->plot->series[index];
    fprintf(c->out, "<path %s fill-opacity='0.75' d='", nd_plot_mark_paint(index));
    for (int64_t i = 0; i < series->count; i++) {
        const nd_plot_point *point = &series->points[i];
        if (is_in_area(c, point)) {
            nd_plot_mark(c->out, index, nd_plot_scale_px(&c->x, point->x), nd_plot_scale_px(&c->y, point->y));
        }
    }
    fputs("'/>\n", c->out);
}

static void count_point(nd_plot_chart *c, const nd_plot_point *point)
{
    if (is_in_area(c, point)) {
        c->shown++;
    } else if (nd_plot_chart_can_show(c, point)) {
        c->outside++;
    } else if ((c->x.log && point->x <= 0.0) || (c->y.log && point->y <= 0.0)) {
        c->not_positive++;
    } else {
        c->not_finite++;
    }
}

void nd_plot_chart_series(nd_plot_chart *c, int32_t index)
{
    const nd_plot_series *series = &c->plot->series[index];
    for (int64_t i = 0; i < series->count; i++) {
        count_point(c, &series->points[i]);
    }
    fprintf(c->out, "<g class='nd-c%d'>\n", (int)nd_plot_colour(index));
    if (series->bars) {
        draw_bars(c, series);
    }
    if (series->kind != ND_PLOT_SCATTER) {
        draw_line(c, index);
    }
    if (has_marks(series)) {
        draw_marks(c, index);
    }
    fputs("</g>\n", c->out);
}

void nd_plot_chart_sign(const nd_plot_chart *c, int32_t index, double x, double y)
{
    const nd_plot_series *series = &c->plot->series[index];
    fprintf(c->out, "<g class='nd-c%d'>", (int)nd_plot_colour(index));
    if (series->kind != ND_PLOT_SCATTER) {
        fprintf(c->out, "<path fill='none' stroke='currentColor' stroke-width='1.8'%s d='M%.1f %.1fh28'/>",
                nd_plot_dash(index), x, y);
    }
    if (has_marks(series)) {
        fprintf(c->out, "<path %s d='", nd_plot_mark_paint(index));
        nd_plot_mark(c->out, index, x + 14.0, y);
        fputs("'/>", c->out);
    }
    fputs("</g>\n", c->out);
}
