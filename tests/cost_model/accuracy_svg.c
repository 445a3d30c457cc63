#include "tests/cost_model/accuracy_svg.h"

#include <math.h>
#include <string.h>

enum { SIZE = 420, MARGIN = 64, SHAPES = 4 };

static const double low_s = 0.2, high_s = 400.0, band = 0.10;

/* Shapes and colours that stay apart in black and white and for colour-blind readers. */
static const struct {
    const char *source, *label, *colour;
} series[SHAPES] = {
    {"KO", "recomputation paper, Megatron-LM, A100", "#0072b2"},
    {"SM", "SimuMax, Megatron-LM, B200", "#d55e00"},
    {"TT", "torchtitan, FSDP2 and TP and PP, H100, A100", "#009e73"},
    {"LF", "llm-foundry, FSDP, A100 and H100", "#999999"},
};

static double position(double seconds)
{
    return log(seconds / low_s) / log(high_s / low_s) * SIZE;
}

static double x_of(double seconds)
{
    return MARGIN + position(seconds);
}

static double y_of(double seconds)
{
    return MARGIN / 2.0 + SIZE - position(seconds);
}

static void mark(FILE *stream, int shape, double x, double y)
{
    const char *colour = series[shape].colour;
    switch (shape) {
    case 0:
        fprintf(stream, "<circle cx='%.1f' cy='%.1f' r='4' fill='none' stroke='%s' stroke-width='2'/>\n", x, y, colour);
        break;
    case 1:
        fprintf(stream, "<rect x='%.1f' y='%.1f' width='6' height='6' fill='%s'/>\n", x - 3.0, y - 3.0, colour);
        break;
    case 2:
        fprintf(stream, "<path d='M%.1f %.1f l4 7 h-8 z' fill='%s'/>\n", x, y - 4.0, colour);
        break;
    default:
        fprintf(stream, "<path d='M%.1f %.1f h6 m-3 -3 v6' stroke='%s' fill='none'/>\n", x - 3.0, y, colour);
        break;
    }
}

static void axes(FILE *stream)
{
    static const double ticks_s[] = {0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0};
    fprintf(stream, "<rect x='%d' y='%d' width='%d' height='%d' fill='none' stroke='#444'/>\n", MARGIN, MARGIN / 2,
            SIZE, SIZE);
    for (size_t i = 0; i < sizeof ticks_s / sizeof ticks_s[0]; i++) {
        double x = x_of(ticks_s[i]);
        double y = y_of(ticks_s[i]);
        fprintf(stream, "<path d='M%.1f %d v-6 M%d %.1f h6' stroke='#444'/>\n", x, MARGIN / 2 + SIZE, MARGIN, y);
        fprintf(stream, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", x, MARGIN / 2 + SIZE + 18,
                ticks_s[i]);
        fprintf(stream, "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", MARGIN - 6, y + 4.0, ticks_s[i]);
    }
    fprintf(stream, "<text x='%d' y='%d' text-anchor='middle'>measured step time, s</text>\n", MARGIN + SIZE / 2,
            MARGIN / 2 + SIZE + 40);
    fprintf(stream,
            "<text transform='translate(16 %d) rotate(-90)' text-anchor='middle'>predicted step time, s</text>\n",
            MARGIN / 2 + SIZE / 2);
}

static void diagonal(FILE *stream)
{
    double top = high_s / (1.0 + band);
    double bottom = low_s * (1.0 + band);
    fprintf(stream,
            "<path d='M%.1f %.1f L%.1f %.1f L%.1f %.1f L%.1f %.1f L%.1f %.1f L%.1f %.1f z' fill='#0072b2' "
            "fill-opacity='0.12'/>\n",
            x_of(low_s), y_of(low_s), x_of(low_s), y_of(bottom), x_of(top), y_of(high_s), x_of(high_s), y_of(high_s),
            x_of(high_s), y_of(top), x_of(bottom), y_of(low_s));
    fprintf(stream, "<path d='M%.1f %.1f L%.1f %.1f' stroke='#0072b2'/>\n", x_of(low_s), y_of(low_s), x_of(high_s),
            y_of(high_s));
}

static void legend(FILE *stream, const int counts[SHAPES])
{
    int line = 0;
    for (int shape = 0; shape < SHAPES; shape++) {
        if (counts[shape] == 0) {
            continue;
        }
        int y = MARGIN / 2 + 20 + 18 * line++;
        mark(stream, shape, MARGIN + 16.0, (double)y);
        fprintf(stream, "<text x='%d' y='%d'>%s (%d)</text>\n", MARGIN + 28, y + 4, series[shape].label, counts[shape]);
    }
    fprintf(stream, "<text x='%d' y='%d'>band: +/- 10 %%</text>\n", MARGIN + 28, MARGIN / 2 + 24 + 18 * line);
}

void nd_accuracy_svg(FILE *stream, const nd_accuracy_point *points, int count)
{
    int counts[SHAPES] = {0};
    fprintf(stream,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' font-family='sans-serif' "
            "font-size='12'>\n<title>Predicted against measured step time</title>\n"
            "<rect width='100%%' height='100%%' fill='#ffffff'/>\n",
            SIZE + MARGIN + 24, SIZE + MARGIN + 24, SIZE + MARGIN + 24);
    diagonal(stream);
    axes(stream);
    for (int shape = SHAPES - 1; shape >= 0; shape--) {
        for (int i = 0; i < count; i++) {
            if (strncmp(points[i].source, series[shape].source, 2) == 0) {
                counts[shape]++;
                mark(stream, shape, x_of(points[i].measured_s), y_of(points[i].predicted_s));
            }
        }
    }
    legend(stream, counts);
    fputs("</svg>\n", stream);
}
