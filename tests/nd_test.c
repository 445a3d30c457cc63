#include "tests/nd_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <CUnit/Basic.h>

int nd_test_main(const char *suite_name, const nd_test_case *cases)
{
    if (CU_initialize_registry() != CUE_SUCCESS) {
        return 1;
    }
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    for (const nd_test_case *test = cases; suite != NULL && test->name != NULL; test++) {
        if (CU_add_test(suite, test->name, test->run) == NULL) {
            fprintf(stderr, "cannot add test %s\n", test->name);
            return 1;
        }
    }
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests(); /* its result says nothing about failed assertions */
    unsigned failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    unsigned ran = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failures == 0 && ran > 0 ? 0 : 1;
}

int nd_test_close(double value, double expected, double tolerance, const char *file, int line)
{
    if (fabs(value - expected) <= tolerance * fabs(expected)) {
        return 1;
    }
    fprintf(stderr, "%s:%d: got %.10g, expected %.10g within %.2g (is %.2g off)\n", file, line, value, expected,
            tolerance, fabs(value - expected) / fabs(expected));
    return 0;
}

int nd_test_ok(nd_status status, const nd_error *err, const char *file, int line)
{
    if (status == ND_OK) {
        return 1;
    }
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, nd_status_text(status), err->message);
    return 0;
}

int nd_test_contains(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part) != NULL) {
        return 1;
    }
    fprintf(stderr, "%s:%d: '%s' is not in: %s\n", file, line, part, text);
    return 0;
}
