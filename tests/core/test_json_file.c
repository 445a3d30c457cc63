#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/core/json_check.h"

enum { LIMIT = 16 * 1024 * 1024 };

static char folder[] = "nd_test_json_file_XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const char *head, size_t padding, const char *tail)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(head, file);
    for (size_t i = 0; i < padding; i++) {
        fputc(' ', file);
    }
    fputs(tail, file);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    return path;
}

static void check_refused(const char *path, nd_status status, const char *message)
{
    nd_error err = {0};
    nd_json_doc *doc = NULL;
    CU_ASSERT_EQUAL(nd_json_load(path, &doc, &err), status);
    ND_ASSERT_CONTAINS(err.message, path);
    ND_ASSERT_CONTAINS(err.message, message);
    CU_ASSERT_PTR_NULL(doc);
    nd_json_free(doc);
}

static void test_a_file_is_read(void)
{
    nd_error err;
    nd_json_doc *doc = NULL;
    const char *path = write_file("good.json", "{\"a\": 1,\n \"b\": -1}", 0, "\n");
    ND_ASSERT_OK(nd_json_load(path, &doc, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    int64_t value = 0;
    CU_ASSERT_EQUAL(nd_json_need_int(nd_json_root(doc), "b", 1, 9, &value, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "good.json:2:7: 'b' must be a whole number from 1 to 9, got -1");
    nd_json_free(doc);
}

static void test_what_is_no_readable_file_is_refused(void)
{
    check_refused("no/such/file.json", ND_EIO, "No such file");
    check_refused(folder, ND_EIO, "it is a directory; name the JSON file in it");
}

static void test_the_size_limit_is_exact(void)
{
    nd_error err;
    nd_json_doc *doc = NULL;
    const char *path = write_file("full.json", "[", LIMIT - 2, "]");
    ND_ASSERT_OK(nd_json_load(path, &doc, &err));
    nd_json_free(doc);
    check_refused(write_file("over.json", "[", LIMIT - 1, "]"), ND_EIO,
                  "16777217 bytes, more than the 16777216 allowed");
}

static void test_files_that_are_not_json_name_their_position(void)
{
    check_refused(write_file("empty.json", "", 0, ""), ND_EPARSE, "empty.json:1:1: the JSON text is empty");
    check_refused(write_file("elf.json",
                             "\x7f"
                             "ELF\x02\x01",
                             0, ""),
                  ND_EPARSE, "elf.json:1:1: not valid JSON");
    check_refused(write_file("latin1.json", "{\"name\": \"caf\xe9\"}", 0, ""), ND_EPARSE,
                  "latin1.json:1:10: not UTF-8 text");
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    const nd_test_case cases[] = {
        ND_TEST(test_a_file_is_read),
        ND_TEST(test_what_is_no_readable_file_is_refused),
        ND_TEST(test_the_size_limit_is_exact),
        ND_TEST(test_files_that_are_not_json_name_their_position),
        {NULL, NULL},
    };
    int result = nd_test_main("core.json_file", cases);
    static const char *const made[] = {"good.json", "full.json", "over.json", "empty.json", "elf.json", "latin1.json"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        (void)unlink(in_folder(made[i]));
    }
    (void)rmdir(folder);
    return result;
}
