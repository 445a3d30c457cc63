/** Charts as self-contained SVG 1.1: points with error bars, lines, the diagonal y = x with a band.
 *
 * The picture needs no script, font or style sheet. It is light, and dark where the reader prefers that; series differ
 * in colour (told apart by colour-blind readers), in marker and in dash, so that it reads in black and white. The same
 * plot gives the same bytes. Nothing is drawn outside of the axes, texts do not overlap, and what cannot be shown (not
 * finite, not positive on a logarithmic axis, outside of given bounds) is left out and counted below the chart.
 */
#ifndef ND_REPORTS_PLOT_H
#define ND_REPORTS_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_PLOT_SERIES_MAX = 112 }; /* 16 markers x 7 colours before a pair comes back */

/** What the values of an axis are, in base units; only the tick labels convert. */
typedef enum nd_plot_unit {
    ND_PLOT_NUMBER,
    ND_PLOT_SECONDS,    /* "20 ms", "3 s", "8 h" */
    ND_PLOT_BYTES,      /* "512 MiB", "40 GiB"; ticks at round binary sizes */
    ND_PLOT_PER_SECOND, /* "20,000/s": tokens, requests; the title says which */
    ND_PLOT_PERCENT,    /* the value is a fraction: 0.4 reads "40 %" */
    ND_PLOT_WHOLE,      /* counts: no ticks between whole numbers */
    ND_PLOT_UNIT_COUNT
} nd_plot_unit;

typedef struct nd_plot_axis {
    const char *title; /* NULL: none */
    nd_plot_unit unit;
    bool log;
    double min, max; /* min < max, both > 0 when log; both 0: from the data */
    /* Ascending values worth a tick each, those that were measured or tried: used, or every second of them, where
     * labels keep apart, else round numbers. Borrowed; NULL: there are none. */
    const double *tick_at;
    int32_t tick_at_count;
} nd_plot_axis;

typedef struct nd_plot_point {
    double x, y;
    double low, high; /* of y; drawn where the series has bars and both are finite */
} nd_plot_point;

typedef enum nd_plot_kind {
    ND_PLOT_SCATTER,
    ND_PLOT_LINE,  /* through the points in their order; a gap where one cannot be shown */
    ND_PLOT_CURVE, /* a line without markers */
    ND_PLOT_KIND_COUNT
} nd_plot_kind;

typedef struct nd_plot_series {
    const char *label;           /* in the legend; NULL or "": not there */
    const nd_plot_point *points; /* borrowed; may be NULL when count is 0 */
    int64_t count;
    nd_plot_kind kind;
    bool bars;
} nd_plot_series;

typedef struct nd_plot {
    const char *title; /* NULL: none. Every text may hold any bytes; long ones end in "..." */
    nd_plot_axis x, y;
    const nd_plot_series *series; /* borrowed; at most ND_PLOT_SERIES_MAX */
    int32_t series_count;
    bool diagonal;    /* y = x on a square area with the same bounds on both axes (those given for x, or else for y),
                       * which must agree in unit and log */
    double band_frac; /* 0 <= band < 1: shades x (1 - band) <= y <= x (1 + band) where x > 0 */
} nd_plot;

/** Write one <svg> element.
 * \return ND_EINVAL for bounds, counts or a diagonal that cannot be (nothing is written), ND_EIO when `out` fails. */
nd_status nd_plot_write(const nd_plot *plot, FILE *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
