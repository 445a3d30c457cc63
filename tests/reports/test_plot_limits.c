#include "reports/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/svg_check.h"

enum { POINTS_MAX = 200 };

static void test_what_cannot_be_shown_is_counted(void)
{
    static const nd_plot_point points[] = {
        {1.0, 1.0, 0, 0},          {10.0, 9.0, 0, 0},         {0.0, 1.0, 0, 0}, {1.0, -2.0, 0, 0},
        {NOT_A_NUMBER, 1.0, 0, 0}, {1.0, NOT_A_NUMBER, 0, 0}, {2.0, 3.0, 0, 0}, {(double)INFINITY, 1.0, 0, 0},
        {1e300, 1.0, 0, 0}};
    nd_plot_series series = {"s", points, 9, ND_PLOT_SCATTER, true};
    nd_plot plot = svg_one_series(&series, true);
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    ND_ASSERT_CONTAINS(c.text, "not shown: 4 not finite, 2 not positive</text>");
    CU_ASSERT_EQUAL(svg_count(c.text, "m-3.5 0a"), 3 + 1); /* and the legend's */
    capture_free(&c);
    plot.x.max = 5.0;
    plot.x.min = 0.5;
    c = svg_draw(&plot);
    ND_ASSERT_CONTAINS(c.text, "not shown: 4 not finite, 2 not positive, 1 outside of the axes</text>");
    capture_free(&c);
}

static void check_degenerate(const nd_plot_point *points, int64_t count)
{
    for (int k = 0; k < 8; k++) {
        nd_plot_series series = {"s", points, count, k % 2 == 0 ? ND_PLOT_SCATTER : ND_PLOT_LINE, true};
        nd_plot plot = svg_one_series(&series, k % 4 >= 2);
        plot.diagonal = k >= 4;
        plot.band_frac = 0.5;
        for (int unit = 0; unit < ND_PLOT_UNIT_COUNT; unit++) {
            plot.x.unit = (nd_plot_unit)unit;
            plot.y.unit = (nd_plot_unit)unit;
            capture c = svg_draw(&plot);
            svg_check_picture(c.text);
            capture_free(&c);
        }
    }
}

static void test_degenerate_data_give_a_picture(void)
{
    static const nd_plot_point same[] = {{3.0, 3.0, 3.0, 3.0}, {3.0, 3.0, 3.0, 3.0}};
    static const nd_plot_point zeros[] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}};
    static const nd_plot_point below[] = {{-3.0, -3.0, -4.0, -2.0}, {-2.0, -1.0, -1.5, -0.5}};
    static const nd_plot_point nothing[] = {{NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER}};
    static const nd_plot_point huge[] = {
        {1e119, 1e-119, 1e-300, 1e308}, {-1e119, 1e119, -1e308, 1e290}, {1e-119, 1e119, 1e-120, 1e120}};
    static const nd_plot_point tiny[] = {{1e-119, 1e-119, 0.0, 0.0}, {2e-119, 3e-119, 0.0, 0.0}};
    static const nd_plot_point near[] = {{1e9, 1e9, 0.0, 0.0}, {1e9 + 1e-6, 1e9 + 2.0, 0.0, 0.0}};
    check_degenerate(NULL, 0);
    check_degenerate(same, 1);
    check_degenerate(same, 2);
    check_degenerate(zeros, 2);
    check_degenerate(below, 2);
    check_degenerate(nothing, 1);
    check_degenerate(huge, 3);
    check_degenerate(tiny, 2);
    check_degenerate(near, 2);
}

static void test_an_empty_chart_says_so(void)
{
    nd_plot plot = {.title = "nothing"};
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    ND_ASSERT_CONTAINS(c.text, ">no points</text>");
    capture_free(&c);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Values of every size and kind, in every unit and scale. */
static void test_random_charts_hold(void)
{
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    for (int round = 0; round < 400; round++) {
        nd_plot_point points[POINTS_MAX];
        nd_plot_series series[3];
        double scale = pow(10.0, (double)(next_random(&state) % 41) - 20.0);
        double spread = (double)(next_random(&state) % 12);
        for (int i = 0; i < POINTS_MAX; i++) {
            double *fields[] = {&points[i].x, &points[i].y, &points[i].low, &points[i].high};
            for (int k = 0; k < 4; k++) {
                double unit = (double)(next_random(&state) >> 11) / 9007199254740992.0;
                *fields[k] = next_random(&state) % 50 == 0 ? NOT_A_NUMBER : scale * pow(10.0, spread * (unit - 0.5));
                *fields[k] *= next_random(&state) % 100 == 0 ? -1.0 : 1.0;
            }
        }
        for (int k = 0; k < 3; k++) {
            series[k] = (nd_plot_series){"s", points + 50 * k, (int64_t)(next_random(&state) % 100),
                                         (nd_plot_kind)(next_random(&state) % ND_PLOT_KIND_COUNT), k == 0};
        }
        nd_plot plot = svg_one_series(series, next_random(&state) % 2 == 0);
        plot.series_count = 3;
        plot.x.unit = plot.y.unit = (nd_plot_unit)(next_random(&state) % ND_PLOT_UNIT_COUNT);
        plot.diagonal = next_random(&state) % 2 == 0;
        plot.band_frac = 0.1;
        capture c = svg_draw(&plot);
        svg_check_picture(c.text);
        capture_free(&c);
    }
}

static void test_the_same_plot_gives_the_same_bytes(void)
{
    static const nd_plot_point points[] = {{1.0, 2.0, 1.5, 2.5}, {3.0, 4.0, 3.5, 4.5}};
    nd_plot_series series = {"s", points, 2, ND_PLOT_LINE, true};
    nd_plot plot = svg_one_series(&series, true);
    capture a = svg_draw(&plot);
    capture b = svg_draw(&plot);
    CU_ASSERT_STRING_EQUAL(a.text, b.text);
    capture_free(&a);
    capture_free(&b);
}

static void check_refused(const nd_plot *plot, const char *message)
{
    nd_error err = {0};
    capture c;
    capture_begin(&c);
    CU_ASSERT_EQUAL(nd_plot_write(plot, c.stream, &err), ND_EINVAL);
    (void)capture_end(&c);
    CU_ASSERT_EQUAL(c.length, 0);
    ND_ASSERT_CONTAINS(err.message, message);
    capture_free(&c);
}

static void test_what_cannot_be_drawn_is_refused(void)
{
    static const double bounds[][2] = {
        {1.0, 1.0}, {2.0, 1.0}, {0.0, NOT_A_NUMBER}, {0.0, (double)INFINITY}, {-1e300, 1e300}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        nd_plot plot = {.y = {.min = bounds[i][0], .max = bounds[i][1]}};
        check_refused(&plot, "the y axis of a chart cannot go from ");
    }
    nd_plot log = {.x = {.log = true, .min = 0.0, .max = 1.0}};
    check_refused(&log, "the x axis of a chart cannot go from 0 to 1 on a logarithmic scale");
    nd_plot_series none = {NULL, NULL, 0, ND_PLOT_LINE, false};
    nd_plot many = {.series = &none, .series_count = ND_PLOT_SERIES_MAX + 1};
    check_refused(&many, "a chart holds up to 112 series, got 113");
    many.series_count = -1;
    check_refused(&many, "got -1");
    nd_plot diagonal = {.diagonal = true, .x = {.unit = ND_PLOT_BYTES}};
    check_refused(&diagonal, "the same unit and scale on both axes");
    diagonal = (nd_plot){.diagonal = true, .x = {.log = true}};
    check_refused(&diagonal, "the same unit and scale on both axes");
    static const double bands[] = {-0.1, 1.0, NOT_A_NUMBER};
    for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        nd_plot band = {.diagonal = true, .band_frac = bands[i]};
        check_refused(&band, "the band of a chart must be at least 0 and below 1");
    }
}

static void test_a_stream_that_fails_is_an_error(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        return; /* not on this system */
    }
    nd_plot plot = {.title = "t"};
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_plot_write(&plot, full, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "could not be written");
    (void)fclose(full);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_what_cannot_be_shown_is_counted),
        ND_TEST(test_degenerate_data_give_a_picture),
        ND_TEST(test_an_empty_chart_says_so),
        ND_TEST(test_random_charts_hold),
        ND_TEST(test_the_same_plot_gives_the_same_bytes),
        ND_TEST(test_what_cannot_be_drawn_is_refused),
        ND_TEST(test_a_stream_that_fails_is_an_error),
        {NULL, NULL},
    };
    return nd_test_main("reports.plot_limits", cases);
}
