#include "tests/reports/svg_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"

enum { NAME_MAX_BYTES = 32, DEPTH_MAX = 16 };

capture svg_draw(const nd_plot *plot)
{
    nd_error err;
    capture c;
    capture_begin(&c);
    ND_ASSERT_OK(nd_plot_write(plot, c.stream, &err));
    (void)capture_end(&c);
    return c;
}

int svg_count(const char *text, const char *part)
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
bool svg_is_well_formed(const char *at)
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

/* The frame is the one path with class nd-line that is not filled: "Mleft topHrightVbottomHleftz". */
svg_area svg_area_of(const char *svg)
{
    svg_area a = {0};
    const char *frame = strstr(svg, "<path class='nd-line' fill='none' d='M");
    CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
    CU_ASSERT_EQUAL_FATAL(
        sscanf(frame, "<path class='nd-line' fill='none' d='M%lf %lfH%lfV%lf", &a.left, &a.top, &a.right, &a.bottom),
        4);
    return a;
}

static bool is_in(const svg_area *a, double x, double y)
{
    double half = 0.051; /* coordinates have one decimal */
    return x >= a->left - half && x <= a->right + half && y >= a->top - half && y <= a->bottom + half;
}

/* Every absolute point of the series' paths lies in the area; how many there are. */
static int points_inside(const char *svg)
{
    svg_area a = svg_area_of(svg);
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

int svg_labels_of(const char *svg, const char *anchor, svg_label *labels, int max)
{
    int count = 0;
    char wanted[48];
    (void)snprintf(wanted, sizeof wanted, "text-anchor='%s'>", anchor);
    for (const char *at = strstr(svg, "<text "); at != NULL && count < max; at = strstr(at + 1, "<text ")) {
        const char *close = strchr(at, '>');
        const char *tag = strstr(at, wanted);
        svg_label *l = &labels[count];
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
    svg_label x[64];
    svg_label y[64];
    int x_count = svg_labels_of(svg, "middle", x, 64);
    int y_count = svg_labels_of(svg, "end", y, 64);
    for (int i = 1; i < x_count; i++) {
        double wide = 7.7 * (double)(strlen(x[i].text) + strlen(x[i - 1].text)) / 2.0;
        CU_ASSERT_TRUE(x[i].y != x[i - 1].y || fabs(x[i].x - x[i - 1].x) > wide);
    }
    svg_area a = svg_area_of(svg);
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

void svg_check_picture(const char *svg)
{
    CU_ASSERT_TRUE(svg_is_well_formed(svg));
    CU_ASSERT_TRUE(is_utf8(svg));
    CU_ASSERT_EQUAL(strncmp(svg, "<svg xmlns='http://www.w3.org/2000/svg' version='1.1' ", 54), 0);
    CU_ASSERT_PTR_NULL(strstr(svg, "nan"));
    CU_ASSERT_PTR_NULL(strstr(svg, "inf"));
    check_labels_apart(svg);
    (void)points_inside(svg);
}

nd_plot svg_one_series(const nd_plot_series *series, bool log)
{
    return (nd_plot){.title = "title",
                     .x = {.title = "x", .unit = ND_PLOT_SECONDS, .log = log},
                     .y = {.title = "y", .unit = ND_PLOT_SECONDS, .log = log},
                     .series = series,
                     .series_count = 1};
}
