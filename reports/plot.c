#include "reports/plot.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "reports/plot_internal.h"
#include "reports/text_width.h"

/* Pixels. The plot area is square with a diagonal, so that it has 45 degrees. */
enum {
    AREA_WIDTH = 540,
    AREA_HEIGHT = 400,
    AREA_SQUARE = 480,
    MARGIN = 14,
    LINE_HEIGHT = 18,
    TITLE_CHAR = 10,     /* of 15 px, bold */
    LEGEND_COLUMNS = 96, /* longer labels are cut */
    LEGEND_CHAR = 7,     /* text is narrower than digits */
    LEGEND_MARK = 34,    /* from the left of a legend line to its text */
};

typedef struct range {
    double low, high;
} range;

static void widen(range *r, const nd_plot_scale *scale, double value)
{
    if (nd_plot_can_show(scale, value)) {
        r->low = fmin(r->low, value);
        r->high = fmax(r->high, value);
    }
}

static void find_bounds(nd_plot_chart *c)
{
    const nd_plot *plot = c->plot;
    range x = {(double)INFINITY, -(double)INFINITY};
    range y = x;
    c->x.log = plot->x.log;
    c->y.log = plot->y.log;
    for (int32_t s = 0; s < plot->series_count; s++) {
        for (int64_t i = 0; i < plot->series[s].count; i++) {
            const nd_plot_point *point = &plot->series[s].points[i];
            if (!nd_plot_chart_can_show(c, point)) {
                continue;
            }
            widen(&x, &c->x, point->x);
            widen(&y, &c->y, point->y);
            if (nd_plot_series_bar(&plot->series[s], point)) {
                widen(&y, &c->y, point->low);
                widen(&y, &c->y, point->high);
            }
        }
    }
    if (plot->diagonal) {
        x.low = fmin(x.low, y.low);
        x.high = fmax(x.high, y.high);
        y = x;
    }
    nd_plot_scale_bounds(&c->x, &plot->x, x.low, x.high);
    nd_plot_scale_bounds(&c->y, &plot->y, y.low, y.high);
    if (plot->diagonal) { /* bounds given for one axis hold for both */
        bool from_y = plot->x.min == 0.0 && plot->x.max == 0.0;
        c->x.min = from_y ? c->y.min : c->x.min;
        c->x.max = from_y ? c->y.max : c->x.max;
        c->y.min = c->x.min;
        c->y.max = c->x.max;
    }
}

static int32_t widest_label(const nd_plot_scale *scale)
{
    size_t widest = 1;
    for (int32_t i = 0; i < scale->ticks_count; i++) {
        size_t length = strlen(scale->ticks[i].label);
        widest = length > widest ? length : widest;
    }
    return (int32_t)widest * ND_PLOT_CHAR_PX;
}

static bool is_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* Lines of the legend and the width of its longest. */
static int32_t legend_lines(const nd_plot_chart *c, int32_t *columns)
{
    int32_t lines = c->plot->diagonal ? 1 : 0;
    *columns = c->plot->diagonal ? 20 : 0;
    for (int32_t s = 0; s < c->plot->series_count; s++) {
        if (is_text(c->plot->series[s].label)) {
            int32_t own = nd_text_width(c->plot->series[s].label);
            *columns = own > *columns ? own : *columns;
            lines++;
        }
    }
    *columns = *columns < LEGEND_COLUMNS ? *columns : LEGEND_COLUMNS;
    return lines;
}

/* Left to right: title of y, its labels, the area, the legend. Ticks need the size of the area, the left margin needs
 * the ticks. */
static void arrange(nd_plot_chart *c)
{
    const nd_plot *plot = c->plot;
    double area_width = plot->diagonal ? AREA_SQUARE : AREA_WIDTH;
    double area_height = plot->diagonal ? AREA_SQUARE : AREA_HEIGHT;
    c->top = is_text(plot->title) ? 42.0 : 16.0;
    c->bottom = c->top + area_height;
    c->y.from_px = c->bottom;
    c->y.to_px = c->top;
    nd_plot_scale_ticks(&c->y, false);
    c->left = MARGIN + (is_text(plot->y.title) ? 20.0 : 0.0) + widest_label(&c->y) + 8.0;
    c->right = c->left + area_width;
    c->x.from_px = c->left;
    c->x.to_px = c->right;
    nd_plot_scale_ticks(&c->x, true);
    if (plot->diagonal) { /* the same ticks on both: those of x keep further apart */
        memcpy(c->y.ticks, c->x.ticks, sizeof c->y.ticks);
        c->y.ticks_count = c->x.ticks_count;
    }
    int32_t columns = 0;
    int32_t lines = legend_lines(c, &columns);
    double beside = widest_label(&c->x) / 2.0 + 12.0; /* the last label of x reaches beyond the area */
    c->width = c->right + beside + (lines > 0 ? LEGEND_MARK + columns * LEGEND_CHAR + MARGIN : 0.0);
    double below = c->bottom + 24.0 + (is_text(plot->x.title) ? 22.0 : 0.0) + LINE_HEIGHT;
    c->height = fmax(below, c->top + lines * LINE_HEIGHT + MARGIN);
}

static void text_at(const nd_plot_chart *c, double x, double y, const char *anchor, const char *more, const char *text,
                    int32_t columns)
{
    fprintf(c->out, "<text class='nd-text' x='%.1f' y='%.1f' text-anchor='%s'%s>", x, y, anchor, more);
    nd_plot_text(c->out, text, columns);
    fputs("</text>\n", c->out);
}

static void draw_grid(const nd_plot_chart *c)
{
    fputs("<path class='nd-grid' d='", c->out);
    for (int32_t i = 0; i < c->x.ticks_count; i++) {
        fprintf(c->out, "M%.1f %.1fV%.1f", nd_plot_scale_px(&c->x, c->x.ticks[i].value), c->bottom, c->top);
    }
    for (int32_t i = 0; i < c->y.ticks_count; i++) {
        fprintf(c->out, "M%.1f %.1fH%.1f", c->left, nd_plot_scale_px(&c->y, c->y.ticks[i].value), c->right);
    }
    fputs("'/>\n", c->out);
}

static void draw_axes(const nd_plot_chart *c)
{
    const nd_plot *plot = c->plot;
    fprintf(c->out, "<path class='nd-line' fill='none' d='M%.1f %.1fH%.1fV%.1fH%.1fz'/>\n", c->left, c->top, c->right,
            c->bottom, c->left);
    for (int32_t i = 0; i < c->x.ticks_count; i++) {
        const nd_plot_tick *tick = &c->x.ticks[i];
        text_at(c, nd_plot_scale_px(&c->x, tick->value), c->bottom + 18.0, "middle", "", tick->label, 32);
    }
    for (int32_t i = 0; i < c->y.ticks_count; i++) {
        const nd_plot_tick *tick = &c->y.ticks[i];
        text_at(c, c->left - 8.0, nd_plot_scale_px(&c->y, tick->value) + 4.0, "end", "", tick->label, 32);
    }
    if (is_text(plot->x.title)) {
        text_at(c, (c->left + c->right) / 2.0, c->bottom + 40.0, "middle", "", plot->x.title,
                (int32_t)(c->right - c->left) / ND_PLOT_CHAR_PX);
    }
    if (is_text(plot->y.title)) {
        char turn[96];
        double middle = (c->top + c->bottom) / 2.0;
        (void)snprintf(turn, sizeof turn, " transform='rotate(-90 %.1f %.1f)'", MARGIN + 8.0, middle);
        text_at(c, MARGIN + 8.0, middle, "middle", turn, plot->y.title,
                (int32_t)(c->bottom - c->top) / ND_PLOT_CHAR_PX);
    }
}

/* The bounds of both axes are the same. The band's edges leave the area at the right or above, whichever is first. */
static void draw_diagonal(const nd_plot_chart *c)
{
    double band = c->plot->band_frac;
    double low = fmax(c->x.min, 0.0);
    double high = c->x.max;
    if (band > 0.0 && high > low) {
        const double corners[][2] = {
            {low, low},   {low, fmin(high, low * (1.0 + band))},  {fmax(low, high / (1.0 + band)), high},
            {high, high}, {high, fmax(low, high * (1.0 - band))}, {fmin(high, low / (1.0 - band)), low}};
        fputs("<path class='nd-band' fill-opacity='0.18' d='", c->out);
        for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
            fprintf(c->out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', nd_plot_scale_px(&c->x, corners[i][0]),
                    nd_plot_scale_px(&c->y, corners[i][1]));
        }
        fputs("z'/>\n", c->out);
    }
    fprintf(c->out, "<path class='nd-line' d='M%.1f %.1fL%.1f %.1f'/>\n", c->left, c->bottom, c->right, c->top);
}

static void draw_legend(const nd_plot_chart *c)
{
    double x = c->right + widest_label(&c->x) / 2.0 + 12.0;
    double y = c->top + LINE_HEIGHT / 2.0;
    for (int32_t s = 0; s < c->plot->series_count; s++) {
        if (is_text(c->plot->series[s].label)) {
            nd_plot_chart_sign(c, s, x, y);
            text_at(c, x + LEGEND_MARK, y + 4.0, "start", "", c->plot->series[s].label, LEGEND_COLUMNS);
            y += LINE_HEIGHT;
        }
    }
    if (c->plot->diagonal) {
        char text[48] = "y = x";
        if (c->plot->band_frac > 0.0) {
            (void)snprintf(text, sizeof text, "y = x, band \xC2\xB1%.3g %%", 100.0 * c->plot->band_frac);
            fprintf(c->out, "<rect class='nd-band' fill-opacity='0.18' x='%.1f' y='%.1f' width='28' height='12'/>\n", x,
                    y - 6.0);
        }
        fprintf(c->out, "<path class='nd-line' d='M%.1f %.1fh28'/>\n", x, y);
        text_at(c, x + LEGEND_MARK, y + 4.0, "start", "", text, LEGEND_COLUMNS);
    }
}

/* What is not in the picture, below it: a chart must not hide that it leaves something out. */
static void draw_note(const nd_plot_chart *c)
{
    const struct {
        int64_t count;
        const char *why;
    } parts[] = {{c->not_finite, "not finite"}, {c->not_positive, "not positive"}, {c->outside, "outside of the axes"}};
    char text[192];
    int used = snprintf(text, sizeof text, "not shown:");
    const char *comma = "";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count > 0) {
            used += snprintf(text + used, sizeof text - (size_t)used, "%s %lld %s", comma, (long long)parts[i].count,
                             parts[i].why);
            comma = ",";
        }
    }
    if (c->shown == 0 && comma[0] == '\0') {
        (void)snprintf(text, sizeof text, "no points");
    } else if (comma[0] == '\0') {
        return;
    }
    double y = c->bottom + (is_text(c->plot->x.title) ? 58.0 : 36.0);
    text_at(c, c->left, y, "start", " font-style='italic'", text, (int32_t)(c->right - c->left) / ND_PLOT_CHAR_PX);
}

static void draw(nd_plot_chart *c)
{
    const nd_plot *plot = c->plot;
    fprintf(c->out,
            "<svg xmlns='http://www.w3.org/2000/svg' version='1.1' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' "
            "font-family='sans-serif' font-size='12' role='img'>\n",
            c->width, c->height, c->width, c->height);
    nd_plot_style(c->out);
    fputs("<rect class='nd-bg' width='100%' height='100%'/>\n", c->out);
    if (is_text(plot->title)) {
        int32_t columns = (int32_t)(c->width - c->left - MARGIN) / TITLE_CHAR;
        fputs("<title>", c->out);
        nd_plot_text(c->out, plot->title, 4 * columns);
        fputs("</title>\n", c->out);
        text_at(c, c->left, 25.0, "start", " font-size='15' font-weight='bold'", plot->title, columns);
    }
    draw_grid(c);
    if (plot->diagonal) {
        draw_diagonal(c);
    }
    for (int32_t s = plot->series_count - 1; s >= 0; s--) { /* lines below markers, or they would hide them ... */
        if (plot->series[s].kind == ND_PLOT_CURVE) {
            nd_plot_chart_series(c, s);
        }
    }
    for (int32_t s = plot->series_count - 1; s >= 0; s--) { /* ... and the first on top */
        if (plot->series[s].kind != ND_PLOT_CURVE) {
            nd_plot_chart_series(c, s);
        }
    }
    draw_axes(c);
    draw_legend(c);
    draw_note(c);
    fputs("</svg>\n", c->out);
}

static nd_status check_axis(const nd_plot_axis *axis, const char *name, nd_error *err)
{
    nd_plot_scale scale = {.log = axis->log};
    bool given = axis->min != 0.0 || axis->max != 0.0;
    if (given &&
        !(nd_plot_can_show(&scale, axis->min) && nd_plot_can_show(&scale, axis->max) && axis->min < axis->max)) {
        return nd_fail(err, ND_EINVAL, "the %s axis of a chart cannot go from %g to %g%s", name, axis->min, axis->max,
                       axis->log ? " on a logarithmic scale" : "");
    }
    return ND_OK;
}

static nd_status check(const nd_plot *plot, nd_error *err)
{
    ND_TRY(check_axis(&plot->x, "x", err));
    ND_TRY(check_axis(&plot->y, "y", err));
    if (plot->series_count < 0 || plot->series_count > ND_PLOT_SERIES_MAX) {
        return nd_fail(err, ND_EINVAL, "a chart holds up to %d series, got %d; group some of them",
                       (int)ND_PLOT_SERIES_MAX, (int)plot->series_count);
    }
    if (plot->diagonal && (plot->x.unit != plot->y.unit || plot->x.log != plot->y.log)) {
        return nd_fail(err, ND_EINVAL, "a chart with the diagonal needs the same unit and scale on both axes");
    }
    if (!(plot->band_frac >= 0.0 && plot->band_frac < 1.0)) {
        return nd_fail(err, ND_EINVAL, "the band of a chart must be at least 0 and below 1, got %g", plot->band_frac);
    }
    return ND_OK;
}

nd_status nd_plot_write(const nd_plot *plot, FILE *out, nd_error *err)
{
    assert(plot->series_count <= 0 || plot->series != NULL);
    ND_TRY(check(plot, err));
    nd_plot_chart c = {.plot = plot, .out = out};
    find_bounds(&c);
    arrange(&c);
    draw(&c);
    if (fflush(out) != 0 || ferror(out)) {
        return nd_fail(err, ND_EIO, "the chart could not be written; is the disk full?");
    }
    return ND_OK;
}
