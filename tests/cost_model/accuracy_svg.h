/** Predicted against measured step times as an SVG picture: docs/accuracy.svg. */
#ifndef ND_TESTS_COST_MODEL_ACCURACY_SVG_H
#define ND_TESTS_COST_MODEL_ACCURACY_SVG_H

#include <stdio.h>

typedef struct nd_accuracy_point {
    char source[8];
    double measured_s, predicted_s;
} nd_accuracy_point;

/** Both axes logarithmic from 0.2 to 400 s; the band is +/- 10 %. Up to four sources get a shape of their own. */
void nd_accuracy_svg(FILE *stream, const nd_accuracy_point *points, int count);

#endif
