#include "reports/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/capture.h"

#define NOT_A_NUMBER ((double)NAN)

enum { POINTS_MAX = 200, NAME_MAX_BYTES = 32, DEPTH_MAX = 16 };

static capture draw(const nd_plot *plot)
{
    nd_error err;
    capture c;
    capture_begin(&c);
    ND_ASSERT_OK(nd_plot_write(plot, c.stream, &err));
    (void)capture_end(&c);
    return c;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ':';
}

/* Behind the reference at `at` ("&amp;"), or NULL. */
static const char *skip_reference(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(at, known[i], strlen(known[i])) == 0) {
            return at + strlen(known[i]);
        }
    }
    return NULL;
}

/* Behind text that ends in `end`: no control bytes but line breaks, no bare & or <. NULL when not so. */
static const char *skip_text(const char *at, char end)
{
    while (at != NULL && *at != end) {
        unsigned char c = (unsigned char)*at;
        if (c == '<' || (c < 0x20 && c != '\n') || c == 0x7f) {
            return NULL;
        }
        at = c == '&' ? skip_reference(at) : at + 1;
    }
    return at;
}

/* Behind a start tag's '>', or NULL; its name, and whether it closes itself. */
static const char *skip_start(const char *at, char name[NAME_MAX_BYTES], bool *closed)
{
    size_t length = 0;
    for (; is_name(*at) && length + 1 < NAME_MAX_BYTES; at++) {
        name[length++] = *at;
    }
    name[length] = '\0';
    while (at != NULL && *at == ' ') {
        for (at++; is_name(*at);) {
            at++;
        }
        if (at[0] != '=' || at[1] != '\'') {
            return NULL;
        }
        at = skip_text(at + 2, '\'');
        at = at != NULL ? at + 1 : NULL;
    }
    *closed = at != NULL && *at == '/';
    at = at != NULL && *closed ? at + 1 : at;
    return length > 0 && at != NULL && *at == '>' ? at + 1 : NULL;
}

/* Well-formed XML with one root: every tag closed in order, attributes quoted, text escaped. */
static bool is_well_formed(const char *at)
{
    char open[DEPTH_MAX][NAME_MAX_BYTES];
    int depth = 0;
    do {
        if (at[0] == '<' && at[1] == '/') {
            size_t length = depth > 0 ? strlen(open[depth - 1]) : 0;
            if (depth == 0 || strncmp(at + 2, open[depth - 1], length) != 0 || at[2 + length] != '>') {
                return false;
            }
            depth--;
            at += length + 3;
        } else if (at[0] == '<') {
            bool closed = false;
            at = depth < DEPTH_MAX ? skip_start(at + 1, open[depth], &closed) : NULL;
            depth += at != NULL && !closed ? 1 : 0;
        } else {
            at = skip_text(at, '<');
        }
    } while (at != NULL && depth > 0);
    return at != NULL && strcmp(at, "\n") == 0;
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        size_t length = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
        for (size_t i = 1; i < length; i++) {
            if ((s[i] & 0xc0) != 0x80) {
                return false;
            }
        }
        if (length == 0) {
            return false;
        }
        s += length;
    }
    return true;
}

typedef struct area {
    double left, right, top, bottom;
} area;

/* The frame is the one path with class nd-line that is not filled: "Mleft topHrightVbottomHleftz". */
static area area_of(const char *svg)
{
    area a = {0};
    const char *frame = strstr(svg, "<path class='nd-line' fill='none' d='M");
    CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
    CU_ASSERT_EQUAL_FATAL(
        sscanf(frame, "<path class='nd-line' fill='none' d='M%lf %lfH%lfV%lf", &a.left, &a.top, &a.right, &a.bottom),
        4);
    return a;
}

static bool is_in(const area *a, double x, double y)
{
    double half = 0.051; /* coordinates have one decimal */
    return x >= a->left - half && x <= a->right + half && y >= a->top - half && y <= a->bottom + half;
}

/* Every absolute point of the series' paths lies in the area; how many there are. */
static int points_inside(const char *svg)
{
    area a = area_of(svg);
    int count = 0;
    const char *end = strstr(svg, "<path class='nd-line' fill='none'"); /* series come before the frame */
    for (const char *at = strstr(svg, "<g class='nd-c"); at != NULL && at < end; at++) {
        double x = 0.0;
        double y = 0.0;
        if ((*at == 'M' || *at == 'L') && sscanf(at + 1, "%lf %lf", &x, &y) == 2) {
            CU_ASSERT_TRUE(is_in(&a, x, y));
            count++;
        } else if (*at == 'V' && sscanf(at + 1, "%lf", &y) == 1) {
            CU_ASSERT_TRUE(is_in(&a, a.left, y));
        }
    }
    return count;
}

/* The labels with their x and y, in the order of the file: those of x, then those of y. */
typedef struct label {
    double x, y;
    char text[64];
} label;

static int labels_of(const char *svg, const char *anchor, label *labels, int max)
{
    int count = 0;
    char wanted[48];
    (void)snprintf(wanted, sizeof wanted, "text-anchor='%s'>", anchor);
    for (const char *at = strstr(svg, "<text "); at != NULL && count < max; at = strstr(at + 1, "<text ")) {
        const char *close = strchr(at, '>');
        const char *tag = strstr(at, wanted);
        label *l = &labels[count];
        if (tag != NULL && close != NULL && tag < close &&
            sscanf(at, "<text class='nd-text' x='%lf' y='%lf'", &l->x, &l->y) == 2) {
            int length = (int)strcspn(close + 1, "<");
            (void)snprintf(l->text, sizeof l->text, "%.*s", length, close + 1);
            count++;
        }
    }
    return count;
}

/* Labels of x stand beside each other, labels of y above each other, none on the next. */
static void check_labels_apart(const char *svg)
{
    label x[64];
    label y[64];
    int x_count = labels_of(svg, "middle", x, 64);
    int y_count = labels_of(svg, "end", y, 64);
    for (int i = 1; i < x_count; i++) {
        double wide = 7.7 * (double)(strlen(x[i].text) + strlen(x[i - 1].text)) / 2.0;
        CU_ASSERT_TRUE(x[i].y != x[i - 1].y || fabs(x[i].x - x[i - 1].x) > wide);
    }
    area a = area_of(svg);
    for (int i = 0; i < x_count && x[i].y == x[0].y; i++) {
        CU_ASSERT_TRUE(is_in(&a, x[i].x, a.top));
    }
    for (int i = 1; i < y_count; i++) {
        CU_ASSERT_TRUE(fabs(y[i].y - y[i - 1].y) > 14.0);
        CU_ASSERT_TRUE(is_in(&a, a.left, y[i].y - 4.0)); /* the text stands 4 px below its tick */
    }
    for (int i = 0; i < y_count; i++) {
        CU_ASSERT_TRUE(y[i].x - 7.7 * (double)strlen(y[i].text) >= 0.0);
    }
}

static void check_picture(const char *svg)
{
    CU_ASSERT_TRUE(is_well_formed(svg));
    CU_ASSERT_TRUE(is_utf8(svg));
    CU_ASSERT_EQUAL(strncmp(svg, "<svg xmlns='http://www.w3.org/2000/svg' version='1.1' ", 54), 0);
    CU_ASSERT_PTR_NULL(strstr(svg, "nan"));
    CU_ASSERT_PTR_NULL(strstr(svg, "inf"));
    check_labels_apart(svg);
    (void)points_inside(svg);
}

static nd_plot one_series(const nd_plot_series *series, bool log)
{
    return (nd_plot){.title = "title",
                     .x = {.title = "x", .unit = ND_PLOT_SECONDS, .log = log},
                     .y = {.title = "y", .unit = ND_PLOT_SECONDS, .log = log},
                     .series = series,
                     .series_count = 1};
}

/* The labels of an axis of x from `min` to `max`, as one text. */
static void check_ticks(nd_plot_unit unit, bool log, double min, double max, const char *expected)
{
    nd_plot plot = {.x = {.unit = unit, .log = log, .min = min, .max = max}};
    label labels[64];
    char text[512] = "";
    capture c = draw(&plot);
    int count = labels_of(c.text, "middle", labels, 64);
    for (int i = 0; i < count; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "|" : "", labels[i].text);
    }
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "ticks %s instead of %s\n", text, expected);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    check_picture(c.text);
    capture_free(&c);
}

static void test_linear_ticks_are_round_in_the_unit(void)
{
    check_ticks(ND_PLOT_NUMBER, false, 0.0, 1.0, "0.0|0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8|0.9|1.0");
    check_ticks(ND_PLOT_NUMBER, false, -30.0, 30.0, "-30|-25|-20|-15|-10|-5|0|5|10|15|20|25|30");
    check_ticks(ND_PLOT_SECONDS, false, 0.0, 0.04, "0 ms|5 ms|10 ms|15 ms|20 ms|25 ms|30 ms|35 ms|40 ms");
    check_ticks(ND_PLOT_SECONDS, false, 0.0, 36000.0, "0 h|1 h|2 h|3 h|4 h|5 h|6 h|7 h|8 h|9 h|10 h");
    check_ticks(ND_PLOT_BYTES, false, 0.0, 80.0 * 1073741824.0,
                "0 GiB|10 GiB|20 GiB|30 GiB|40 GiB|50 GiB|60 GiB|70 GiB|80 GiB");
    check_ticks(ND_PLOT_PER_SECOND, false, 0.0, 50000.0, "0/s|10,000/s|20,000/s|30,000/s|40,000/s|50,000/s");
    check_ticks(ND_PLOT_PER_SECOND, false, 0.0, 2e6, "0.0 M/s|0.5 M/s|1.0 M/s|1.5 M/s|2.0 M/s");
    check_ticks(ND_PLOT_PERCENT, false, 0.0, 0.6, "0 %|10 %|20 %|30 %|40 %|50 %|60 %");
    check_ticks(ND_PLOT_WHOLE, false, 1.0, 3.0, "1|2|3");
    check_ticks(ND_PLOT_WHOLE, false, 0.0, 1024.0, "0|100|200|300|400|500|600|700|800|900|1,000");
}

static void test_log_ticks_are_decades_or_their_parts(void)
{
    check_ticks(ND_PLOT_SECONDS, true, 0.1, 1000.0, "100 ms|300 ms|1 s|3 s|10 s|30 s|100 s|300 s|1,000 s");
    check_ticks(ND_PLOT_NUMBER, true, 1.0, 100.0, "1|2|5|10|20|50|100");
    check_ticks(ND_PLOT_NUMBER, true, 0.5, 2000.0, "1|3|10|30|100|300|1,000");
    check_ticks(ND_PLOT_NUMBER, true, 2.0, 6.0, "2.0|2.5|3.0|3.5|4.0|4.5|5.0|5.5|6.0");
    check_ticks(ND_PLOT_BYTES, true, 1024.0, 1073741824.0, "4 KiB|32 KiB|256 KiB|2 MiB|16 MiB|128 MiB|1 GiB");
    check_ticks(ND_PLOT_WHOLE, true, 1.0, 64.0, "1|2|5|10|20|50");
    check_ticks(ND_PLOT_NUMBER, true, 1e-100, 1e100, "1e-90|1e-60|1e-30|1|1e+30|1e+60|1e+90");
}

static void test_user_text_is_escaped(void)
{
    nd_plot_point point = {1.0, 1.0, 0.0, 0.0};
    nd_plot_series series = {"a<b>&\"c'\x01\x1b\x7f\n\t", &point, 1, ND_PLOT_SCATTER, false};
    nd_plot plot = one_series(&series, false);
    plot.title = "</text><script>alert(1)</script>";
    plot.x.title = "caf\xC3\xA9 \xE6\xB0\xB4 \xF0\x9F\x98\x80";
    plot.y.title = "\xff\xC3|\xED\xA0\x80|\xEF\xBF\xBE|\xC0\xAF|\xC2\x85|\xF4\x90\x80\x80|\xE2\x82";
    capture c = draw(&plot);
    check_picture(c.text);
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
    nd_plot plot = one_series(series, true);
    plot.series_count = 2;
    plot.title = wide;
    plot.x.title = wide;
    plot.y.title = marks;
    capture c = draw(&plot);
    check_picture(c.text);
    CU_ASSERT_EQUAL(count_of(c.text, "www...</text>"), 3);
    CU_ASSERT_EQUAL(count_of(c.text, "\xCC\x81...</text>"), 2);
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
    nd_plot plot = one_series(series, false);
    plot.series_count = ND_PLOT_SERIES_MAX;
    capture c = draw(&plot);
    check_picture(c.text);
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
    CU_ASSERT_TRUE(count_of(c.text, "stroke-dasharray='8 4'") > 0);
    capture_free(&c);
}

static void test_the_legend_stands_beside_the_plot_area(void)
{
    nd_plot_point point = {1.0, 1.0, 0.0, 0.0};
    nd_plot_series series[] = {{"first", &point, 1, ND_PLOT_SCATTER, false}, {"", &point, 1, ND_PLOT_SCATTER, false}};
    nd_plot plot = one_series(series, true);
    plot.series_count = 2;
    plot.diagonal = true;
    plot.band_frac = 0.1;
    capture c = draw(&plot);
    area a = area_of(c.text);
    label labels[8];
    int count = labels_of(c.text, "start", labels, 8);
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

static void test_both_themes_are_in_the_style(void)
{
    nd_plot plot = {.title = NULL};
    capture c = draw(&plot);
    ND_ASSERT_CONTAINS(c.text, ".nd-bg{fill:#ffffff}");
    ND_ASSERT_CONTAINS(c.text, "@media (prefers-color-scheme: dark){.nd-bg{fill:#15181c}");
    CU_ASSERT_EQUAL(count_of(c.text, "http"), 1); /* the namespace: nothing is loaded from elsewhere */
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
    capture c = draw(&plot);
    check_picture(c.text);
    area a = area_of(c.text);
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
    capture c = draw(&plot);
    check_picture(c.text);
    area a = area_of(c.text);
    char expected[96];
    double middle = (a.top + a.bottom) / 2.0;
    (void)snprintf(expected, sizeof expected, "M%.1f %.1fL%.1f %.1f\n", a.left, middle, a.right, middle);
    ND_ASSERT_CONTAINS(c.text, expected);
    ND_ASSERT_CONTAINS(c.text, "not shown: 1 not finite, 6 outside of the axes");
    const char *line = strstr(c.text, "stroke-linejoin");
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    char path[1024];
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(line, "/"), line);
    CU_ASSERT_EQUAL(count_of(path, "M"), 4); /* across, down, from below, and behind the gap */
    capture_free(&c);
}

static void test_what_cannot_be_shown_is_counted(void)
{
    static const nd_plot_point points[] = {
        {1.0, 1.0, 0, 0},          {10.0, 9.0, 0, 0},         {0.0, 1.0, 0, 0}, {1.0, -2.0, 0, 0},
        {NOT_A_NUMBER, 1.0, 0, 0}, {1.0, NOT_A_NUMBER, 0, 0}, {2.0, 3.0, 0, 0}, {(double)INFINITY, 1.0, 0, 0},
        {1e300, 1.0, 0, 0}};
    nd_plot_series series = {"s", points, 9, ND_PLOT_SCATTER, true};
    nd_plot plot = one_series(&series, true);
    capture c = draw(&plot);
    check_picture(c.text);
    ND_ASSERT_CONTAINS(c.text, "not shown: 4 not finite, 2 not positive</text>");
    CU_ASSERT_EQUAL(count_of(c.text, "m-3.5 0a"), 3 + 1); /* and the legend's */
    capture_free(&c);
    plot.x.max = 5.0;
    plot.x.min = 0.5;
    c = draw(&plot);
    ND_ASSERT_CONTAINS(c.text, "not shown: 4 not finite, 2 not positive, 1 outside of the axes</text>");
    capture_free(&c);
}

static void check_degenerate(const nd_plot_point *points, int64_t count)
{
    for (int k = 0; k < 8; k++) {
        nd_plot_series series = {"s", points, count, k % 2 == 0 ? ND_PLOT_SCATTER : ND_PLOT_LINE, true};
        nd_plot plot = one_series(&series, k % 4 >= 2);
        plot.diagonal = k >= 4;
        plot.band_frac = 0.5;
        for (int unit = 0; unit < ND_PLOT_UNIT_COUNT; unit++) {
            plot.x.unit = (nd_plot_unit)unit;
            plot.y.unit = (nd_plot_unit)unit;
            capture c = draw(&plot);
            check_picture(c.text);
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
    capture c = draw(&plot);
    check_picture(c.text);
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
        nd_plot plot = one_series(series, next_random(&state) % 2 == 0);
        plot.series_count = 3;
        plot.x.unit = plot.y.unit = (nd_plot_unit)(next_random(&state) % ND_PLOT_UNIT_COUNT);
        plot.diagonal = next_random(&state) % 2 == 0;
        plot.band_frac = 0.1;
        capture c = draw(&plot);
        check_picture(c.text);
        capture_free(&c);
    }
}

static void test_the_same_plot_gives_the_same_bytes(void)
{
    static const nd_plot_point points[] = {{1.0, 2.0, 1.5, 2.5}, {3.0, 4.0, 3.5, 4.5}};
    nd_plot_series series = {"s", points, 2, ND_PLOT_LINE, true};
    nd_plot plot = one_series(&series, true);
    capture a = draw(&plot);
    capture b = draw(&plot);
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

static void test_the_checker_sees_what_is_not_well_formed(void)
{
    CU_ASSERT_TRUE(is_well_formed("<a b='c'>d &amp; e<f/></a>\n"));
    static const char *const bad[] = {"<a>\n",         "<a></b>\n",        "<a>&x;</a>\n",
                                      "<a b=c></a>\n", "<a b='<'></a>\n",  "<a></a><b></b>\n",
                                      "<a>\x01</a>\n", "<a><b></a></b>\n", "<a>"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_FALSE(is_well_formed(bad[i]));
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_linear_ticks_are_round_in_the_unit),
        ND_TEST(test_log_ticks_are_decades_or_their_parts),
        ND_TEST(test_user_text_is_escaped),
        ND_TEST(test_long_texts_are_cut),
        ND_TEST(test_series_differ_in_marker_colour_and_dash),
        ND_TEST(test_the_legend_stands_beside_the_plot_area),
        ND_TEST(test_both_themes_are_in_the_style),
        ND_TEST(test_a_point_stands_where_its_values_are),
        ND_TEST(test_lines_are_clipped_at_the_area),
        ND_TEST(test_what_cannot_be_shown_is_counted),
        ND_TEST(test_degenerate_data_give_a_picture),
        ND_TEST(test_an_empty_chart_says_so),
        ND_TEST(test_random_charts_hold),
        ND_TEST(test_the_same_plot_gives_the_same_bytes),
        ND_TEST(test_what_cannot_be_drawn_is_refused),
        ND_TEST(test_a_stream_that_fails_is_an_error),
        ND_TEST(test_the_checker_sees_what_is_not_well_formed),
        {NULL, NULL},
    };
    return nd_test_main("reports.plot", cases);
}
