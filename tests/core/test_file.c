#include "core/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/nd_test.h"

enum { LIMIT = 4096 };

static char folder[] = "nd_test_file_XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_bytes(const char *name, char byte, size_t count)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (size_t i = 0; i < count; i++) {
        fputc(byte, file);
    }
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    return path;
}

static nd_status read_path(const char *path, char **out, size_t *length, nd_error *err)
{
    nd_file_request request = {.path = path, .origin = path, .format = "CSV", .bytes_max = LIMIT};
    return nd_file_read(&request, out, length, err);
}

static void check_refused(const char *path, const char *message)
{
    nd_error err = {0};
    char *text = NULL;
    size_t length = 77;
    CU_ASSERT_EQUAL(read_path(path, &text, &length, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "cannot read '");
    ND_ASSERT_CONTAINS(err.message, path);
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_PTR_NULL(text);
    CU_ASSERT_EQUAL(length, 77);
    free(text);
}

static void check_read(const char *path, char byte, size_t count)
{
    nd_error err;
    char *text = NULL;
    size_t length = 77;
    ND_ASSERT_OK(read_path(path, &text, &length, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_EQUAL_FATAL(length, count);
    for (size_t i = 0; i < length; i++) {
        CU_ASSERT_EQUAL_FATAL(text[i], byte);
    }
    free(text);
}

static void test_every_byte_is_read_whatever_it_is(void)
{
    check_read(write_bytes("text", 'x', 1000), 'x', 1000);
    check_read(write_bytes("nul", '\0', 3), '\0', 3);
    check_read(write_bytes("empty", 'x', 0), 'x', 0);
}

static void test_the_size_limit_is_exact(void)
{
    check_read(write_bytes("full", 'x', LIMIT), 'x', LIMIT);
    check_refused(write_bytes("over", 'x', LIMIT + 1), "it has 4097 bytes, more than the 4096 allowed; is it CSV?");
}

static void test_what_is_no_readable_file_is_refused(void)
{
    check_refused("no/such/file.csv", "No such file");
    check_refused("", "No such file");
    check_refused(folder, "it is a directory; name the CSV file in it");
    check_refused("/dev/zero", "not a regular file; save the CSV to one");
}

static void test_a_fifo_does_not_block(void)
{
    const char *path = in_folder("fifo");
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    check_refused(path, "not a regular file");
}

static void test_a_file_that_does_not_tell_its_size_is_read_whole(void)
{
    if (access("/proc/self/status", R_OK) != 0) {
        return; /* no procfs here */
    }
    nd_error err;
    char *text = NULL;
    size_t length = 0;
    ND_ASSERT_OK(read_path("/proc/self/status", &text, &length, &err));
    CU_ASSERT_TRUE(length > 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_EQUAL(text[length - 1], '\n');
    free(text);
}

static void test_messages_use_the_origin_and_an_error_may_be_null(void)
{
    nd_error err;
    char *text = NULL;
    size_t length = 0;
    nd_file_request request = {.path = "no/such/file", .origin = "calibration X", .format = "JSON", .bytes_max = LIMIT};
    CU_ASSERT_EQUAL(nd_file_read(&request, &text, &length, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "cannot read 'calibration X': No such file");
    CU_ASSERT_EQUAL(nd_file_read(&request, &text, &length, NULL), ND_EIO);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    const nd_test_case cases[] = {
        ND_TEST(test_every_byte_is_read_whatever_it_is),
        ND_TEST(test_the_size_limit_is_exact),
        ND_TEST(test_what_is_no_readable_file_is_refused),
        ND_TEST(test_a_fifo_does_not_block),
        ND_TEST(test_a_file_that_does_not_tell_its_size_is_read_whole),
        ND_TEST(test_messages_use_the_origin_and_an_error_may_be_null),
        {NULL, NULL},
    };
    int result = nd_test_main("core.file", cases);
    static const char *const made[] = {"text", "nul", "empty", "full", "over", "fifo"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        (void)unlink(in_folder(made[i]));
    }
    (void)rmdir(folder);
    return result;
}
