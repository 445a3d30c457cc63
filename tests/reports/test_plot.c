#include "reports/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/svg_check.h"

static void test_user_text_is_escaped(void)
{
    nd_plot_point point = {1.0, 1.0, 0.0, 0.0};
    nd_plot_series series = {"a<b>&\"c'\x01\x1b\x7f\n\t", &point, 1, ND_PLOT_SCATTER, false};
    nd_plot plot = svg_one_series(&series, false);
    plot.title = "</text><script>alert(1)</script>";
    plot.x.title = "caf\xC3\xA9 \xE6\xB0\xB4 \xF0\x9F\x98\x80";
    plot.y.title = "\xff\xC3|\xED\xA0\x80|\xEF\xBF\xBE|\xC0\xAF|\xC2\x85|\xF4\x90\x80\x80|\xE2\x82";
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    ND_ASSERT_CONTAINS(c.text, ">a&lt;b&gt;&amp;&quot;c&apos;     </text>");
    ND_ASSERT_CONTAINS(c.text, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;</text>");
    ND_ASSERT_CONTAINS(c.text, ">caf\xC3\xA9 \xE6\xB0\xB4 \xF0\x9F\x98\x80</text>");
    CU_ASSERT_PTR_NULL(strstr(c.text, "<script"));
    CU_ASSERT_PTR_NULL(strstr(c.text, "\xED\xA0\x80")); /* a surrogate is no character of XML */
    CU_ASSERT_PTR_NULL(strstr(c.text, "\xEF\xBF\xBE"));
    ND_ASSERT_CONTAINS(c.text, ">\xEF\xBF\xBD\xEF\xBF\xBD|");
    capture_free(&c);
}

static void test_long_texts_are_cut(void)
{
    static char wide[10001];
    static char marks[10001]; /* combining: they take no column */
    memset(wide, 'w', sizeof wide - 1);
    for (size_t i = 0; i + 1 < sizeof marks; i += 2) {
        memcpy(marks + i, "\xCC\x81", 2);
    }
    nd_plot_point point = {1.0, 1.0, 0.0, 0.0};
    nd_plot_series series[] = {{wide, &point, 1, ND_PLOT_SCATTER, false}, {marks, &point, 1, ND_PLOT_LINE, false}};
    nd_plot plot = svg_one_series(series, true);
    plot.series_count = 2;
    plot.title = wide;
    plot.x.title = wide;
    plot.y.title = marks;
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    CU_ASSERT_EQUAL(svg_count(c.text, "www...</text>"), 3);
    CU_ASSERT_EQUAL(svg_count(c.text, "\xCC\x81...</text>"), 2);
    CU_ASSERT_TRUE(c.length < 10000);
    capture_free(&c);
}

static void test_series_differ_in_marker_colour_and_dash(void)
{
    static const nd_plot_point points[] = {{1.0, 1.0, 0.0, 0.0}, {2.0, 2.0, 0.0, 0.0}};
    nd_plot_series series[ND_PLOT_SERIES_MAX];
    char labels[ND_PLOT_SERIES_MAX][24];
    for (int i = 0; i < ND_PLOT_SERIES_MAX; i++) {
        (void)snprintf(labels[i], sizeof labels[i], "series %d", i);
        series[i] = (nd_plot_series){labels[i], points, 2, ND_PLOT_LINE, false};
    }
    nd_plot plot = svg_one_series(series, false);
    plot.series_count = ND_PLOT_SERIES_MAX;
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    /* the signs of the legend have line and marker in one line of the file: none is there twice */
    static char signs[ND_PLOT_SERIES_MAX][256];
    int count = 0;
    for (const char *at = strstr(c.text, "'><path "); at != NULL && count < ND_PLOT_SERIES_MAX;
         at = strstr(at + 1, "'><path ")) {
        const char *mark = strstr(at + 4, "<path ");
        const char *shape = mark != NULL ? strpbrk(strstr(mark, " d='M"), "m") : NULL;
        CU_ASSERT_PTR_NOT_NULL_FATAL(shape);
        (void)snprintf(signs[count++], sizeof signs[0], "%.2s %.*s %.*s", at - 2, (int)strcspn(mark, "d"), mark,
                       (int)strcspn(shape, "\n"), shape);
    }
    CU_ASSERT_EQUAL_FATAL(count, ND_PLOT_SERIES_MAX);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            CU_ASSERT_STRING_NOT_EQUAL(signs[i], signs[j]);
        }
    }
    CU_ASSERT_TRUE(svg_count(c.text, "stroke-dasharray='8 4'") > 0);
    capture_free(&c);
}

static void test_the_legend_stands_beside_the_plot_area(void)
{
    nd_plot_point point = {1.0, 1.0, 0.0, 0.0};
    nd_plot_series series[] = {{"first", &point, 1, ND_PLOT_SCATTER, false}, {"", &point, 1, ND_PLOT_SCATTER, false}};
    nd_plot plot = svg_one_series(series, true);
    plot.series_count = 2;
    plot.diagonal = true;
    plot.band_frac = 0.1;
    capture c = svg_draw(&plot);
    svg_area a = svg_area_of(c.text);
    svg_label labels[8];
    int count = svg_labels_of(c.text, "start", labels, 8);
    CU_ASSERT_EQUAL_FATAL(count, 2); /* a series without a label has no line */
    CU_ASSERT_STRING_EQUAL(labels[0].text, "first");
    CU_ASSERT_STRING_EQUAL(labels[1].text, "y = x, band \xC2\xB1"
                                           "10 %");
    for (int i = 0; i < count; i++) {
        CU_ASSERT_TRUE(labels[i].x > a.right + 20.0);
    }
    CU_ASSERT_TRUE(labels[1].y - labels[0].y > 14.0);
    CU_ASSERT_TRUE(fabs((a.right - a.left) - (a.bottom - a.top)) < 0.2); /* square */
    capture_free(&c);
}

static void test_markers_stand_above_the_line_through_them(void)
{
    static const nd_plot_point points[] = {{1.0, 1.0, 0.0, 0.0}, {2.0, 2.0, 0.0, 0.0}};
    nd_plot_series series[] = {{"line", points, 2, ND_PLOT_CURVE, false}, {"marks", points, 2, ND_PLOT_SCATTER, false}};
    nd_plot plot = svg_one_series(series, false);
    plot.series_count = 2;
    capture c = svg_draw(&plot);
    const char *line = strstr(c.text, "stroke-linejoin='round'");
    const char *marks = strstr(c.text, "fill-opacity='0.75'");
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    CU_ASSERT_PTR_NOT_NULL_FATAL(marks);
    CU_ASSERT_TRUE(line < marks); /* what comes later is drawn above */
    capture_free(&c);
}

static void test_both_themes_are_in_the_style(void)
{
    nd_plot plot = {.title = NULL};
    capture c = svg_draw(&plot);
    ND_ASSERT_CONTAINS(c.text, ".nd-bg{fill:#ffffff}");
    ND_ASSERT_CONTAINS(c.text, "@media (prefers-color-scheme: dark){.nd-bg{fill:#15181c}");
    CU_ASSERT_EQUAL(svg_count(c.text, "http"), 1); /* the namespace: nothing is loaded from elsewhere */
    capture_free(&c);
}

static void test_a_point_stands_where_its_values_are(void)
{
    static const nd_plot_point points[] = {
        {1.0, 10.0, 1.0, 100.0}, {100.0, 1.0, 0.0, 1e9}, {10.0, 100.0, 5.0, NOT_A_NUMBER}};
    nd_plot_series series = {NULL, points, 3, ND_PLOT_SCATTER, true};
    nd_plot plot = {.x = {.log = true, .min = 1.0, .max = 100.0},
                    .y = {.log = true, .min = 1.0, .max = 100.0},
                    .series = &series,
                    .series_count = 1};
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    svg_area a = svg_area_of(c.text);
    char expected[96];
    double x = (a.left + a.right) / 2.0;
    double y = (a.top + a.bottom) / 2.0;
    (void)snprintf(expected, sizeof expected, "M%.1f %.1fm-3.5 0", a.left, y);
    ND_ASSERT_CONTAINS(c.text, expected);
    (void)snprintf(expected, sizeof expected, "M%.1f %.1fm-3.5 0", a.right, a.bottom);
    ND_ASSERT_CONTAINS(c.text, expected);
    (void)snprintf(expected, sizeof expected, "M%.1f %.1fm-3.5 0", x, a.top);
    ND_ASSERT_CONTAINS(c.text, expected);
    (void)snprintf(expected, sizeof expected, "'M%.1f %.1fV%.1f\nM%.1f %.1fV%.1f\n'/>", a.left, a.bottom, a.top,
                   a.right, a.bottom, a.top); /* two bars, cut at the area; the third has no end */
    ND_ASSERT_CONTAINS(c.text, expected);
    capture_free(&c);
}

static void test_lines_are_clipped_at_the_area(void)
{
    static const nd_plot_point points[] = {
        {-1.0, 0.5, 0, 0},  {2.0, 0.5, 0, 0},          {2.0, 5.0, 0, 0},   {0.5, 5.0, 0, 0}, {0.5, -9.0, 0, 0},
        {0.25, 0.25, 0, 0}, {NOT_A_NUMBER, 0.3, 0, 0}, {0.75, 0.75, 0, 0}, {0.8, 0.9, 0, 0}, {1e110, -1e110, 0, 0}};
    nd_plot_series series = {"s", points, 10, ND_PLOT_LINE, false};
    nd_plot plot = {.x = {.min = 0.0, .max = 1.0}, .y = {.min = 0.0, .max = 1.0}, .series = &series, .series_count = 1};
    capture c = svg_draw(&plot);
    svg_check_picture(c.text);
    svg_area a = svg_area_of(c.text);
    char expected[96];
    double middle = (a.top + a.bottom) / 2.0;
    (void)snprintf(expected, sizeof expected, "M%.1f %.1fL%.1f %.1f\n", a.left, middle, a.right, middle);
    ND_ASSERT_CONTAINS(c.text, expected);
    ND_ASSERT_CONTAINS(c.text, "not shown: 1 not finite, 6 outside of the axes");
    const char *line = strstr(c.text, "stroke-linejoin");
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    char path[1024];
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(line, "/"), line);
    CU_ASSERT_EQUAL(svg_count(path, "M"), 4); /* across, down, from below, and behind the gap */
    capture_free(&c);
}

static void test_the_checker_sees_what_is_not_well_formed(void)
{
    CU_ASSERT_TRUE(svg_is_well_formed("<a b='c'>d &amp; e<f/></a>\n"));
    static const char *const bad[] = {"<a>\n",         "<a></b>\n",        "<a>&x;</a>\n",
                                      "<a b=c></a>\n", "<a b='<'></a>\n",  "<a></a><b></b>\n",
                                      "<a>\x01</a>\n", "<a><b></a></b>\n", "<a>"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_FALSE(svg_is_well_formed(bad[i]));
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_user_text_is_escaped),
        ND_TEST(test_long_texts_are_cut),
        ND_TEST(test_series_differ_in_marker_colour_and_dash),
        ND_TEST(test_the_legend_stands_beside_the_plot_area),
        ND_TEST(test_markers_stand_above_the_line_through_them),
        ND_TEST(test_both_themes_are_in_the_style),
        ND_TEST(test_a_point_stands_where_its_values_are),
        ND_TEST(test_lines_are_clipped_at_the_area),
        ND_TEST(test_the_checker_sees_what_is_not_well_formed),
        {NULL, NULL},
    };
    return nd_test_main("reports.plot", cases);
}
