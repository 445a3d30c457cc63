/** What every test file needs: CUnit, a relative comparison that says what it saw, and a main. */
#ifndef ND_TESTS_ND_TEST_H
#define ND_TESTS_ND_TEST_H

#include <CUnit/CUnit.h>

#include "core/status.h"

/** One test: its function and its name, which states the fact that it checks. */
typedef struct nd_test_case {
    const char *name;
    void (*run)(void);
} nd_test_case;

#define ND_TEST(function)                                                                                              \
    {                                                                                                                  \
#function, function                                                                                            \
    }

/** Run the cases (ends with a NULL name) as one suite; exit status for main: 0 all passed, 1 otherwise (also when
 * none ran). */
int nd_test_main(const char *suite, const nd_test_case *cases);

/** |value - expected| <= tolerance x |expected|; prints both when not. NaN fails. */
int nd_test_close(double value, double expected, double tolerance, const char *file, int line);
#define ND_ASSERT_REL(value, expected, tolerance)                                                                      \
    CU_ASSERT_TRUE(nd_test_close((value), (expected), (tolerance), __FILE__, __LINE__))

/** `call` succeeds; prints the error's message when not. Needs a local `nd_error err`. */
int nd_test_ok(nd_status status, const nd_error *err, const char *file, int line);
#define ND_ASSERT_OK(call) CU_ASSERT_TRUE(nd_test_ok((call), &err, __FILE__, __LINE__))

/** `text` contains `part`; prints `text` when not. */
int nd_test_contains(const char *text, const char *part, const char *file, int line);
#define ND_ASSERT_CONTAINS(text, part) CU_ASSERT_TRUE(nd_test_contains((text), (part), __FILE__, __LINE__))

#endif
