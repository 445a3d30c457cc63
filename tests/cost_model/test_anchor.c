/* One measured step: what it scales, what it leaves, and what it refuses. */
#include "cost_model/anchor.h"

#include <math.h>
#include <string.h>

#include "cost_model/fitted.h"
#include "tests/cost_model/fixture.h"

static const char dense_layout[] = "dp_shard=16,micro_batch=1";   /* compute decides */
static const char network_layout[] = "tp=16,sp=on,micro_batch=1"; /* half of its traffic crosses the network */

static fixture *prepared(void)
{
    static fixture f;
    fixture_make(&f, "llama-3.1-8b", "2x8xh100", "megatron", 8192, 64);
    return &f;
}

static nd_status anchor(fixture *f, const char *text, double step_s, double *factor, nd_error *err)
{
    const nd_layout layout = fixture_layout(f, text);
    return nd_anchor(&f->context, &f->calibration, &f->stack, &layout, step_s, factor, err);
}

static void test_the_anchored_layout_takes_the_measured_step(void)
{
    static const double scales[] = {0.6, 0.97, 1.0, 1.25, 3.0};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        nd_error err = {.message = ""};
        double factor = 0.0;
        fixture *f = prepared();
        double step_s = fixture_estimate(f, dense_layout).time.step_s * scales[i];
        ND_ASSERT_OK(anchor(f, dense_layout, step_s, &factor, &err));
        ND_ASSERT_REL(fixture_estimate(f, dense_layout).time.step_s, step_s, 1e-5);
        CU_ASSERT_TRUE((factor > 1.0) == (scales[i] > 1.0) || fabs(scales[i] - 1.0) < 1e-9);
        /* links keep theirs, so that the rest moves by more than the step */
        CU_ASSERT_TRUE(fabs(log(factor)) >= fabs(log(scales[i])) - 1e-5);
    }
}

static void test_only_rates_and_launches_are_scaled_and_by_one_factor(void)
{
    nd_error err = {.message = ""};
    double factor = 0.0;
    fixture *f = prepared();
    nd_calibration calibration = f->calibration;
    nd_stack stack = f->stack;
    double step_s = fixture_estimate(f, dense_layout).time.step_s * 1.3;
    ND_ASSERT_OK(anchor(f, dense_layout, step_s, &factor, &err));
    ND_ASSERT_REL(f->stack.gemm_frac, stack.gemm_frac / factor, 1e-12);
    ND_ASSERT_REL(f->stack.attention_frac, stack.attention_frac / factor, 1e-12);
    ND_ASSERT_REL(f->stack.launch_s, stack.launch_s * factor, 1e-12);
    ND_ASSERT_REL(f->calibration.hbm_frac, calibration.hbm_frac / factor, 1e-12);
    stack.gemm_frac = f->stack.gemm_frac;
    stack.attention_frac = f->stack.attention_frac;
    stack.launch_s = f->stack.launch_s;
    calibration.hbm_frac = f->calibration.hbm_frac;
    CU_ASSERT_EQUAL(memcmp(&f->stack, &stack, sizeof stack), 0);
    CU_ASSERT_EQUAL(memcmp(&f->calibration, &calibration, sizeof calibration), 0);
}

static void test_links_keep_their_time(void)
{
    nd_error err = {.message = ""};
    static nd_comm_breakdown before;
    static nd_comm_breakdown after;
    fixture *f = prepared();
    const nd_layout layout = fixture_layout(f, network_layout);
    nd_estimate_comm(&f->context, &layout, &before);
    double step_s = fixture_estimate(f, dense_layout).time.step_s;
    ND_ASSERT_OK(anchor(f, dense_layout, step_s * 1.4, NULL, &err)); /* the factor may be left out */
    nd_estimate_comm(&f->context, &layout, &after);
    CU_ASSERT_TRUE_FATAL(before.count > 0 && before.count == after.count);
    for (int32_t i = 0; i < before.count; i++) {
        ND_ASSERT_REL(after.lines[i].call_s, before.lines[i].call_s, 1e-12);
        ND_ASSERT_REL(after.lines[i].total_s, before.lines[i].total_s, 1e-12);
    }
}

static void test_a_layout_that_waits_for_links_moves_less_than_the_factor(void)
{
    nd_error err = {.message = ""};
    double factor = 0.0;
    fixture *f = prepared();
    const nd_time_breakdown dense = fixture_estimate(f, dense_layout).time;
    const nd_time_breakdown network = fixture_estimate(f, network_layout).time;
    CU_ASSERT_TRUE_FATAL(network.exposed_comm_s > 0.4 * network.step_s); /* it does wait */
    ND_ASSERT_OK(anchor(f, dense_layout, dense.step_s * 1.4, &factor, &err));
    double moved = fixture_estimate(f, network_layout).time.step_s / network.step_s;
    CU_ASSERT_TRUE(moved > 1.0 && moved < 1.4);
    CU_ASSERT_TRUE(moved < factor);
    ND_ASSERT_REL(moved, 1.0 + (factor - 1.0) * (1.0 - network.exposed_comm_s / network.step_s), 0.05);
}

static void test_intervals_narrow_and_never_widen(void)
{
    nd_error err = {.message = ""};
    static nd_fitted shipped;
    fixture *f = prepared();
    ND_ASSERT_OK(nd_fitted_shipped(&shipped, &err));
    for (int fitted = 0; fitted < 2; fitted++) {
        f = prepared();
        if (fitted == 1) {
            f->context.uncertainty = nd_fitted_uncertainty(&shipped, &f->calibration, &f->stack);
        }
        const nd_time_uncertainty before = f->context.uncertainty;
        const nd_time_breakdown wide = fixture_estimate(f, dense_layout).time;
        ND_ASSERT_OK(anchor(f, dense_layout, wide.step_s, NULL, &err));
        const nd_time_breakdown narrow = fixture_estimate(f, dense_layout).time;
        CU_ASSERT_TRUE(narrow.step_high_s / narrow.step_low_s < wide.step_high_s / wide.step_low_s);
        CU_ASSERT_TRUE(narrow.step_high_s > narrow.step_s); /* one run is no proof */
        CU_ASSERT_EQUAL(f->context.uncertainty.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS],
                        before.covariance[ND_FACTOR_LINKS][ND_FACTOR_LINKS]);
        CU_ASSERT_EQUAL(f->context.uncertainty.covariance[ND_FACTOR_GEMM][ND_FACTOR_GEMM], 0.0);
    }
    f->context.uncertainty.form_log_sd = 0.01; /* of better runs than those that the project ships */
    f->context.uncertainty.hard_form_log_sd = 0.02;
    ND_ASSERT_OK(anchor(f, dense_layout, fixture_estimate(f, dense_layout).time.step_s, NULL, &err));
    CU_ASSERT_EQUAL(f->context.uncertainty.form_log_sd, 0.01);
    CU_ASSERT_EQUAL(f->context.uncertainty.hard_form_log_sd, 0.02);
}

static void test_absurd_steps_are_refused_and_change_nothing(void)
{
    const struct {
        double step_s;
        const char *words;
    } steps[] = {
        {1e-5, "a step of 1e-05 s is out of reach: the layout is predicted to take"},
        {1e6, "check the step, the layout and the cluster"},
        {0.0, "must be a positive time, got 0 s"},
        {-1.0, "must be a positive time, got -1 s"},
        {nan(""), "must be a positive time"},
        {HUGE_VAL, "must be a positive time, got inf s"},
    };
    fixture *f = prepared();
    const nd_calibration calibration = f->calibration;
    const nd_stack stack = f->stack;
    const nd_time_uncertainty uncertainty = f->context.uncertainty;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        nd_error err = {.message = ""};
        double factor = 42.0;
        CU_ASSERT_EQUAL(anchor(f, dense_layout, steps[i].step_s, &factor, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, steps[i].words);
        CU_ASSERT_EQUAL(factor, 42.0);
        CU_ASSERT_EQUAL(memcmp(&f->calibration, &calibration, sizeof calibration), 0);
        CU_ASSERT_EQUAL(memcmp(&f->stack, &stack, sizeof stack), 0);
        CU_ASSERT_EQUAL(memcmp(&f->context.uncertainty, &uncertainty, sizeof uncertainty), 0);
    }
}

static void test_a_step_shorter_than_its_exposed_traffic_is_refused(void)
{
    nd_error err = {.message = ""};
    fixture *f = prepared();
    double exposed_s = fixture_estimate(f, network_layout).time.exposed_comm_s;
    CU_ASSERT_EQUAL(anchor(f, network_layout, exposed_s * 0.9, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "out of reach");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_anchored_layout_takes_the_measured_step),
        ND_TEST(test_only_rates_and_launches_are_scaled_and_by_one_factor),
        ND_TEST(test_links_keep_their_time),
        ND_TEST(test_a_layout_that_waits_for_links_moves_less_than_the_factor),
        ND_TEST(test_intervals_narrow_and_never_widen),
        ND_TEST(test_absurd_steps_are_refused_and_change_nothing),
        ND_TEST(test_a_step_shorter_than_its_exposed_traffic_is_refused),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/anchor", cases);
}
