/** Draws charts and checks what every SVG of the reports must hold. */
#ifndef ND_TESTS_REPORTS_SVG_CHECK_H
#define ND_TESTS_REPORTS_SVG_CHECK_H

#include <math.h>
#include <stdbool.h>

#include "reports/plot.h"
#include "tests/reports/capture.h"

#define NOT_A_NUMBER ((double)NAN)

/** The plot area, in pixels. */
typedef struct svg_area {
    double left, right, top, bottom;
} svg_area;

typedef struct svg_label {
    double x, y;
    char text[64];
} svg_label;

/** The chart as text; capture_free() it. */
capture svg_draw(const nd_plot *plot);

/** How often `part` is in `text`. */
int svg_count(const char *text, const char *part);

/** Well-formed XML with one root: every tag closed in order, attributes quoted, text escaped. */
bool svg_is_well_formed(const char *at);

svg_area svg_area_of(const char *svg);

/** The labels of one anchor with their x and y, in the order of the file: "middle" of x and titles, "end" of y,
 * "start" of the legend. */
int svg_labels_of(const char *svg, const char *anchor, svg_label *labels, int max);

/** Well-formed, every mark inside the area, labels apart from each other. */
void svg_check_picture(const char *svg);

/** A plot of one series in seconds, with titles. */
nd_plot svg_one_series(const nd_plot_series *series, bool log);

#endif
