/* The shipped constants are what a fit to the shipped runs gives: nobody typed them in. */
#include <stdio.h>
#include <string.h>

#include "cost_model/calibrate.h"
#include "cost_model/measured_table.h"
#include "tests/nd_test.h"

static void test_the_shipped_constants_are_fitted_to_the_shipped_runs(void)
{
    static nd_fitted shipped;
    static nd_calibration_result result;
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_fitted_shipped(&shipped, &err));
    ND_ASSERT_OK(nd_measured_builtin(&csv, &err));
    const nd_calibrate_request request = {.csv = csv, .skip_left_out = true};
    CU_ASSERT_EQUAL_FATAL(nd_calibrate_from_runs(&request, &result, &err), ND_OK);
    const nd_fitted *fitted = &result.fitted;
    CU_ASSERT_STRING_EQUAL(fitted->source, shipped.source);
    CU_ASSERT_STRING_EQUAL(fitted->fingerprint, shipped.fingerprint);
    CU_ASSERT_EQUAL(fitted->runs, shipped.runs);
    CU_ASSERT_EQUAL_FATAL(fitted->constants_count, shipped.constants_count);
    ND_ASSERT_REL(fitted->reduced_chi2, shipped.reduced_chi2, 0.01);
    for (int32_t i = 0; i < shipped.constants_count; i++) {
        CU_ASSERT_EQUAL(fitted->constants[i].of_stack, shipped.constants[i].of_stack);
        CU_ASSERT_STRING_EQUAL(fitted->constants[i].owner, shipped.constants[i].owner);
        CU_ASSERT_STRING_EQUAL(fitted->constants[i].key, shipped.constants[i].key);
        CU_ASSERT_EQUAL(fitted->identified[i], shipped.identified[i]);
        ND_ASSERT_REL(fitted->value[i], shipped.value[i], 0.002); /* compilers round differently */
        ND_ASSERT_REL(fitted->log_sd[i], shipped.log_sd[i], 0.02);
    }
    nd_calibration_result_free(&result);
    nd_csv_free(csv);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_shipped_constants_are_fitted_to_the_shipped_runs),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/shipped_fit", cases);
}
