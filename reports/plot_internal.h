/** Parts of the charts: scales with ticks (plot_scale.c), points (plot_series.c), marks and text of SVG (plot_svg.c).
 */
#ifndef ND_REPORTS_PLOT_INTERNAL_H
#define ND_REPORTS_PLOT_INTERNAL_H

#include "reports/plot.h"

ND_BEGIN_DECLS

enum {
    ND_PLOT_TICKS_MAX = 40,
    ND_PLOT_CHAR_PX = 8, /* a digit of 12 px is no wider in common fonts (DejaVu Sans: 7.6 px) */
};

typedef struct nd_plot_tick {
    double value;
    char label[32];
} nd_plot_tick;

/* One axis on the picture. */
typedef struct nd_plot_scale {
    nd_plot_unit unit;
    bool log;
    double min, max;
    const double *tick_at; /* preferred ticks, borrowed; NULL: round numbers */
    int32_t tick_at_count;
    double from_px, to_px; /* where min and max are */
    nd_plot_tick ticks[ND_PLOT_TICKS_MAX];
    int32_t ticks_count;
} nd_plot_scale;

/* A chart being drawn. */
typedef struct nd_plot_chart {
    const nd_plot *plot;
    FILE *out;
    nd_plot_scale x, y;
    double left, right, top, bottom;                  /* of the plot area */
    double width, height;                             /* of the picture */
    int64_t not_finite, not_positive, outside, shown; /* points */
} nd_plot_chart;

/** Whether the scale's kind of axis can show `value`. */
bool nd_plot_can_show(const nd_plot_scale *scale, double value);

/** Bounds from the axis when it gives them, or else around the data (low > high: there are none). */
void nd_plot_scale_bounds(nd_plot_scale *scale, const nd_plot_axis *axis, double low, double high);

/** The densest round ticks whose labels keep apart; from_px and to_px are set.
 * \param[in] along  labels stand beside each other (x), not above each other (y) */
void nd_plot_scale_ticks(nd_plot_scale *scale, bool along);

/** Pixel of a value that can be shown; far outside it stays finite. */
double nd_plot_scale_px(const nd_plot_scale *scale, double value);

/** Whether both of a point's values can be shown, be it outside of the bounds. */
bool nd_plot_chart_can_show(const nd_plot_chart *chart, const nd_plot_point *point);

/** Whether a point of the series has an error bar. */
bool nd_plot_series_bar(const nd_plot_series *series, const nd_plot_point *point);

/** Draw series `index` and count its points. */
void nd_plot_chart_series(nd_plot_chart *chart, int32_t index);

/** The sign of series `index` in the legend: its line, its marker, from x on at the height y. */
void nd_plot_chart_sign(const nd_plot_chart *chart, int32_t index, double x, double y);

/** Write user text: escaped, valid UTF-8, control bytes as blanks, cut to `columns` with "..." */
void nd_plot_text(FILE *out, const char *text, int32_t columns);

/** The style block: colours of both themes. */
void nd_plot_style(FILE *out);

/** One marker of series `index` as a part of a path, centred at x, y. */
void nd_plot_mark(FILE *out, int32_t index, double x, double y);

/** Attributes of a path of markers of series `index`: filled or hollow. */
const char *nd_plot_mark_paint(int32_t index);

/** Dash attribute of the line of series `index`; may be empty. */
const char *nd_plot_dash(int32_t index);

/** CSS class number of the colour of series `index`. */
int32_t nd_plot_colour(int32_t index);

ND_END_DECLS

#endif
