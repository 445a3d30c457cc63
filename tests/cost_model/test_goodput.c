/* Young's and Daly's intervals against the figures of Daly's paper, and what every goodput must obey. */
#include <math.h>

#include "cost_model/goodput.h"
#include "tests/nd_test.h"

static const double minute_s = 60.0, hour_s = 3600.0;

/* J. T. Daly, Future Generation Computer Systems 22 (2006), captions of figures 3 to 5: a dump takes 5 minutes. The
 * figures have two or three digits: half a unit of the last. */
static void dalys_intervals_are_those_of_his_paper(void)
{
    ND_ASSERT_REL(nd_daly_interval_s(5.0 * minute_s, 24.0 * hour_s) / minute_s, 117.0, 0.5 / 117.0);
    ND_ASSERT_REL(nd_daly_interval_s(5.0 * minute_s, 6.0 * hour_s) / minute_s, 57.0, 0.5 / 57.0);
    ND_ASSERT_REL(nd_daly_interval_s(5.0 * minute_s, 0.25 * hour_s) / minute_s, 9.1, 0.05 / 9.1);
}

static void youngs_interval_is_the_first_order(void)
{
    ND_ASSERT_REL(nd_young_interval_s(2.0, 100.0), 20.0, 1e-12);
    /* far from failures both agree: the series and the save are of the order of sqrt(save / mtbf) */
    ND_ASSERT_REL(nd_daly_interval_s(1.0, 1e8), nd_young_interval_s(1.0, 1e8), 1e-4);
}

static void a_save_longer_than_two_lives_leaves_one_life(void)
{
    ND_ASSERT_REL(nd_daly_interval_s(200.0, 100.0), 100.0, 1e-12);
    ND_ASSERT_REL(nd_daly_interval_s(1e9, 100.0), 100.0, 1e-12);
}

/* A scan of intervals finds none that is better by more than what the series leaves out. */
static void no_interval_beats_dalys_by_much(void)
{
    static const double mtbfs[] = {0.5 * 3600.0, 3.0 * 3600.0, 100.0 * 3600.0};
    for (size_t i = 0; i < sizeof mtbfs / sizeof mtbfs[0]; i++) {
        nd_failure_costs costs = {mtbfs[i], 30.0, 0.0, 600.0};
        double best = nd_goodput_frac(&costs, nd_best_interval_s(&costs, 1.0));
        double interval_s = 10.0;
        for (int k = 0; k < 236; k++) { /* up to a million seconds */
            interval_s *= 1.05;
            CU_ASSERT_TRUE(nd_goodput_frac(&costs, interval_s) <= best * (1.0 + 1e-5));
        }
    }
}

static void goodput_is_a_fraction_whatever_happens(void)
{
    static const double values[] = {0.0, 1e-3, 1.0, 60.0, 1e4, 1e9};
    static const double lives[] = {1e-6, 1.0, 1e4, 1e12, HUGE_VAL};
    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        for (size_t b = 0; b < sizeof values / sizeof values[0]; b++) {
            for (size_t r = 0; r < sizeof values / sizeof values[0]; r++) {
                nd_failure_costs costs = {lives[i], values[b], values[r], values[r]};
                double interval_s = 1e-3;
                for (int k = 0; k < 11; k++) {
                    interval_s *= 31.0;
                    double goodput = nd_goodput_frac(&costs, interval_s);
                    CU_ASSERT_TRUE(goodput >= 0.0 && goodput <= 1.0);
                }
            }
        }
    }
}

static void worse_machines_and_slower_saves_never_help(void)
{
    nd_failure_costs costs = {5.0 * 3600.0, 20.0, 10.0, 300.0};
    double base = nd_goodput_frac(&costs, 1800.0);
    nd_failure_costs worse = costs;
    worse.mtbf_s /= 2.0;
    CU_ASSERT_TRUE(nd_goodput_frac(&worse, 1800.0) < base);
    worse = costs;
    worse.blocking_s *= 2.0;
    CU_ASSERT_TRUE(nd_goodput_frac(&worse, 1800.0) < base);
    worse = costs;
    worse.hidden_s *= 2.0;
    CU_ASSERT_TRUE(nd_goodput_frac(&worse, 1800.0) < base);
    worse = costs;
    worse.restart_s *= 2.0;
    CU_ASSERT_TRUE(nd_goodput_frac(&worse, 1800.0) < base);
}

static void without_failures_only_saves_cost(void)
{
    nd_failure_costs costs = {HUGE_VAL, 10.0, 0.0, 600.0};
    ND_ASSERT_REL(nd_goodput_frac(&costs, 90.0), 0.9, 1e-12);
    CU_ASSERT_EQUAL(nd_goodput_frac(&costs, HUGE_VAL), 1.0);
    CU_ASSERT_TRUE(isinf(nd_best_interval_s(&costs, 1.0)));
}

/* To first order the loss is save / interval + (interval / 2 + save / 2 + restart) / mtbf. */
static void rare_failures_cost_what_the_first_order_says(void)
{
    nd_failure_costs costs = {1e7, 5.0, 0.0, 600.0};
    double interval_s = 1000.0;
    double loss = 5.0 / (interval_s + 5.0) + (interval_s / 2.0 + 2.5 + 600.0) / 1e7;
    ND_ASSERT_REL(1.0 - nd_goodput_frac(&costs, interval_s), loss, 1e-3);
}

static void the_next_save_waits_for_the_last(void)
{
    nd_failure_costs costs = {3600.0, 1.0, 900.0, 0.0};
    ND_ASSERT_REL(nd_best_interval_s(&costs, 1.0), 899.0, 1e-12);
    ND_ASSERT_REL(nd_best_interval_s(&costs, 5000.0), 5000.0, 1e-12); /* one saves between steps */
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(dalys_intervals_are_those_of_his_paper),
        ND_TEST(youngs_interval_is_the_first_order),
        ND_TEST(a_save_longer_than_two_lives_leaves_one_life),
        ND_TEST(no_interval_beats_dalys_by_much),
        ND_TEST(goodput_is_a_fraction_whatever_happens),
        ND_TEST(worse_machines_and_slower_saves_never_help),
        ND_TEST(without_failures_only_saves_cost),
        ND_TEST(rare_failures_cost_what_the_first_order_says),
        ND_TEST(the_next_save_waits_for_the_last),
        {NULL, NULL},
    };
    return nd_test_main("cost_model.goodput", cases);
}
