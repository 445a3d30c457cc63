#include "reports/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/nd_test.h"
#include "tests/reports/svg_check.h"

/* The labels of an axis of x from `min` to `max`, as one text. */
static void check_ticks(nd_plot_unit unit, bool log, double min, double max, const char *expected)
{
    nd_plot plot = {.x = {.unit = unit, .log = log, .min = min, .max = max}};
    svg_label labels[64];
    char text[512] = "";
    capture c = svg_draw(&plot);
    int count = svg_labels_of(c.text, "middle", labels, 64);
    for (int i = 0; i < count; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "|" : "", labels[i].text);
    }
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "ticks %s instead of %s\n", text, expected);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    svg_check_picture(c.text);
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

/* The labels of an axis of x with these values to be labelled. */
static void check_given(nd_plot_unit unit, const double *values, int32_t count, const char *expected)
{
    nd_plot_point points[64];
    for (int32_t i = 0; i < count; i++) {
        points[i] = (nd_plot_point){.x = values[i], .y = 1.0};
    }
    nd_plot_series series = {.points = points, .count = count, .kind = ND_PLOT_SCATTER};
    nd_plot plot = {.x = {.unit = unit, .log = true, .tick_at = values, .tick_at_count = count},
                    .series = &series,
                    .series_count = 1};
    svg_label labels[64];
    char text[512] = "";
    capture c = svg_draw(&plot);
    int labels_count = svg_labels_of(c.text, "middle", labels, 64);
    for (int i = 0; i < labels_count; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "|" : "", labels[i].text);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    svg_check_picture(c.text);
    capture_free(&c);
}

static void test_ticks_stand_at_given_values_where_they_keep_apart(void)
{
    static const double doubling[] = {8, 16, 32, 64, 128};
    static const double long_doubling[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    static const double uneven[] = {100, 150, 177.5, 1000};
    static const double rates[] = {100, 112.5, 131.037, 150};
    double many[40];
    for (int i = 0; i < 40; i++) {
        many[i] = 1000.0 * pow(1.1, i);
    }
    check_given(ND_PLOT_WHOLE, doubling, 5, "8|16|32|64|128");
    check_given(ND_PLOT_WHOLE, long_doubling, 16, "1|4|16|64|256|1,024|4,096|16,384");
    check_given(ND_PLOT_NUMBER, rates, 4, "100|112.5|131.0|150");
    check_given(ND_PLOT_NUMBER, uneven, 4, "100|200|500|1,000"); /* two of them would touch: round numbers */
    check_given(ND_PLOT_WHOLE, many, 40, "1,000|2,000|5,000|10,000|20,000");
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_linear_ticks_are_round_in_the_unit),
        ND_TEST(test_log_ticks_are_decades_or_their_parts),
        ND_TEST(test_ticks_stand_at_given_values_where_they_keep_apart),
        {NULL, NULL},
    };
    return nd_test_main("reports.plot_ticks", cases);
}
