#include "core/status.h"

#include <string.h>

#include "tests/nd_test.h"

static void test_every_status_has_its_own_text(void)
{
    for (int a = 0; a < ND_STATUS_COUNT; a++) {
        CU_ASSERT_TRUE(strlen(nd_status_text((nd_status)a)) > 0);
        for (int b = 0; b < a; b++) {
            CU_ASSERT_STRING_NOT_EQUAL(nd_status_text((nd_status)a), nd_status_text((nd_status)b));
        }
    }
    CU_ASSERT_STRING_EQUAL(nd_status_text((nd_status)999), "unknown status");
}

static void test_failing_fills_the_message_and_returns_the_status(void)
{
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_fail(&err, ND_EIO, "%s is %d", "tp", 3), ND_EIO);
    CU_ASSERT_EQUAL(err.status, ND_EIO);
    CU_ASSERT_STRING_EQUAL(err.message, "tp is 3");
}

static void test_failing_without_an_error_is_allowed(void)
{
    CU_ASSERT_EQUAL(nd_fail(NULL, ND_EPARSE, "%d", 1), ND_EPARSE);
}

static void test_a_message_is_one_line_without_escape_sequences(void)
{
    nd_error err;
    (void)nd_fail(&err, ND_EINVAL, "a\nb\x1b[31mc\x7f");
    CU_ASSERT_STRING_EQUAL(err.message, "a?b?[31mc?");
}

static void test_a_long_message_is_cut_not_overrun(void)
{
    char text[3 * ND_ERROR_MESSAGE_MAX];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    nd_error err;
    (void)nd_fail(&err, ND_EINVAL, "%s", text);
    CU_ASSERT_EQUAL(strlen(err.message), ND_ERROR_MESSAGE_MAX - 1);
}

static nd_status try_it(nd_status inner, int *reached)
{
    ND_TRY(inner);
    *reached += 1;
    return ND_OK;
}

static void test_try_returns_early_on_failure_only(void)
{
    int reached = 0;
    CU_ASSERT_EQUAL(try_it(ND_ENOMEM, &reached), ND_ENOMEM);
    CU_ASSERT_EQUAL(reached, 0);
    CU_ASSERT_EQUAL(try_it(ND_OK, &reached), ND_OK);
    CU_ASSERT_EQUAL(reached, 1);
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_every_status_has_its_own_text),
        ND_TEST(test_failing_fills_the_message_and_returns_the_status),
        ND_TEST(test_failing_without_an_error_is_allowed),
        ND_TEST(test_a_message_is_one_line_without_escape_sequences),
        ND_TEST(test_a_long_message_is_cut_not_overrun),
        ND_TEST(test_try_returns_early_on_failure_only),
        {NULL, NULL},
    };
    return nd_test_main("core.status", cases);
}
